/* The gradient's norm, AdamW in one pass over weight, moments and gradient, and LAMB in two. */
#include "backend/cpu/kernels/table.h"

double KERNEL(sum_squares)(const float *x, int64_t count)
{
	square_sums sums = {0};
	for (int64_t i = 0; i < count; i += LANES)
		add_squares(&sums, load_floats(x, i, count - i));
	return square_total(sums);
}

void KERNEL(adamw)(const struct adamw_range *a)
{
	const vector beta1 = vector_set(a->beta1), beta2 = vector_set(a->beta2);
	const vector rest1 = vector_set(a->one_minus_beta1), rest2 = vector_set(a->one_minus_beta2);
	const vector scale = vector_set(a->gradient_scale), step = vector_set(a->step_size);
	const vector root = vector_set(a->root_scale), epsilon = vector_set(a->epsilon), decay = vector_set(a->decay);
	for (int64_t i = 0; i < a->count; i += LANES) {
		int64_t left = a->count - i;
		vector g = load_floats(a->g, i, left) * scale, w = load_floats(a->w, i, left);
		vector m = vector_fma(beta1, load_floats(a->m, i, left), rest1 * g);
		vector v = vector_fma(beta2, load_floats(a->v, i, left), rest2 * g * g);
		vector update = step * m / vector_fma(vector_sqrt(v), root, epsilon);
		store_floats(a->m, i, left, m);
		store_floats(a->v, i, left, v);
		store_floats(a->w, i, left, w - vector_fma(decay, w, update));
	}
}

/* Gives the same bits in both passes. */
INLINE vector lamb_update(const struct lamb_range *a, vector m, vector v, vector w)
{
	vector root = vector_fma(vector_sqrt(v), vector_set(a->root_scale), vector_set(a->epsilon));
	return vector_fma(vector_set(a->decay), w, vector_set(a->moment_scale) * m / root);
}

void KERNEL(lamb_norms)(const struct lamb_range *a, double sums[2])
{
	const vector beta1 = vector_set(a->beta1), beta2 = vector_set(a->beta2);
	const vector beta3 = vector_set(a->beta3), rest2 = vector_set(a->one_minus_beta2);
	const vector scale = vector_set(a->gradient_scale);
	square_sums w_squares = {0}, u_squares = {0};
	for (int64_t i = 0; i < a->count; i += LANES) {
		int64_t left = a->count - i;
		vector g = load_floats(a->g, i, left) * scale, w = load_floats(a->w, i, left);
		vector m = vector_fma(beta1, load_floats(a->m, i, left), beta3 * g);
		vector v = vector_fma(beta2, load_floats(a->v, i, left), rest2 * g * g);
		store_floats(a->m, i, left, m);
		store_floats(a->v, i, left, v);
		add_squares(&w_squares, w);
		add_squares(&u_squares, lamb_update(a, m, v, w)); /* lanes after the end: 0 */
	}
	sums[0] = square_total(w_squares);
	sums[1] = square_total(u_squares);
}

void KERNEL(lamb_apply)(const struct lamb_range *a)
{
	const vector step = vector_set(-a->step_size);
	for (int64_t i = 0; i < a->count; i += LANES) {
		int64_t left = a->count - i;
		vector w = load_floats(a->w, i, left);
		vector u = lamb_update(a, load_floats(a->m, i, left), load_floats(a->v, i, left), w);
		store_floats(a->w, i, left, vector_fma(step, u, w));
	}
}
