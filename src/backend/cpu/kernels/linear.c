/* The operations after a linear's product, on one tile of it. */
#include "backend/cpu/kernels/dropout.h"
#include "backend/cpu/kernels/table.h"

/* A tile's rows are short pieces of long rows, too short for hardware prefetchers to detect: inputs are prefetched explicitly
 * four rows ahead, which halves the time of backward. For outputs it brings nothing. */
#define FETCH_ROWS 4

INLINE void linear_rows(const struct linear_rows *a, bool has_tanh, enum dtype dtype)
{
	for (int64_t i = 0; i < a->rows; i++) {
		const float *x = a->x + i * a->x_row;
		void *y = out_row(a->y, i, a->stride, dtype);
		int64_t c = 0;
		for (; c + 2 * LANES <= a->columns; c += 2 * LANES) {
			vector v = vector_load(x + c), w = vector_load(x + c + LANES);
			if (a->bias) {
				v += vector_load(a->bias + c);
				w += vector_load(a->bias + c + LANES);
			}
			store_two(y, c, has_tanh ? vector_tanh(v) : v, has_tanh ? vector_tanh(w) : w, dtype, a->past);
		}
		for (; c < a->columns; c += LANES) {
			int64_t left = a->columns - c;
			vector v = load_floats(x, c, left);
			if (a->bias)
				v += load_floats(a->bias, c, left);
			store(y, c, left, has_tanh ? vector_tanh(v) : v, dtype);
		}
	}
}

void KERNEL(linear_fwd)(const struct linear_rows *a)
{
	bool has_tanh = a->activation == ACTIVATION_TANH;
	if (a->dtype == DTYPE_BF16)
		has_tanh ? linear_rows(a, true, DTYPE_BF16) : linear_rows(a, false, DTYPE_BF16);
	else
		has_tanh ? linear_rows(a, true, DTYPE_F32) : linear_rows(a, false, DTYPE_F32);
	store_past_end();
}

/* gelu is computed from the rounded pre, because that is what backward reads. */
INLINE void gelu_rows(const struct linear_rows *a, enum activation form, enum dtype dtype)
{
	const struct gelu g = gelu_start(form, false, dtype);
	for (int64_t i = 0; i < a->rows; i++) {
		const float *x = a->x + i * a->x_row;
		void *pre = a->pre ? out_row(a->pre, i, a->stride, dtype) : NULL;
		void *y = out_row(a->y, i, a->stride, dtype);
		int64_t c = 0;
		for (; c + 2 * LANES <= a->columns; c += 2 * LANES) {
			vector v = vector_load(x + c), w = vector_load(x + c + LANES);
			if (a->bias) {
				v += vector_load(a->bias + c);
				w += vector_load(a->bias + c + LANES);
			}
			v = rounded(v, dtype);
			w = rounded(w, dtype);
			if (pre)
				store_two(pre, c, v, w, dtype, a->past);
			store_two(y, c, gelu(&g, v), gelu(&g, w), dtype, a->past);
		}
		for (; c < a->columns; c += LANES) {
			int64_t left = a->columns - c;
			vector v = load_floats(x, c, left);
			if (a->bias)
				v += load_floats(a->bias, c, left);
			v = rounded(v, dtype);
			if (pre)
				store(pre, c, left, v, dtype);
			store(y, c, left, gelu(&g, v), dtype);
		}
	}
}

/* The common forms are constants for the compiler. */
INLINE void gelu_forms(const struct linear_rows *a, enum dtype dtype)
{
	if (a->activation == ACTIVATION_GELU_ERF)
		gelu_rows(a, ACTIVATION_GELU_ERF, dtype);
	else if (a->activation == ACTIVATION_GELU_TANH)
		gelu_rows(a, ACTIVATION_GELU_TANH, dtype);
	else
		gelu_rows(a, a->activation, dtype);
}

void KERNEL(gelu_fwd)(const struct linear_rows *a)
{
	if (a->dtype == DTYPE_BF16)
		gelu_forms(a, DTYPE_BF16);
	else
		gelu_forms(a, DTYPE_F32);
	store_past_end();
}

/* dx = x [* gelu'(pre)] [+ add] for the vector at column c of row i. */
INLINE vector backward_vector(const struct linear_rows *a, int64_t i, int64_t c, const struct gelu *g, bool has_pre,
			      enum dtype dtype)
{
	int64_t left = a->columns - c;
	vector v = load_floats(a->x + i * a->x_row, c, left);
	if (has_pre) {
		const void *pre = row_of(a->pre, i, a->stride, dtype);
		fetch(pre, c + FETCH_ROWS * a->stride, dtype);
		v *= gelu_derivative(g, load(pre, c, left, dtype));
	}
	if (a->add) {
		const void *add = row_of(a->add, i, a->stride, dtype);
		fetch(add, c + FETCH_ROWS * a->stride, dtype);
		v += load(add, c, left, dtype);
	}
	if (a->sums)
		store_floats(a->sums, c, left, load_floats(a->sums, c, left) + v);
	return v;
}

INLINE void backward_rows(const struct linear_rows *a, bool has_pre, enum activation form, enum dtype dtype)
{
	const struct gelu g = gelu_start(form, true, dtype);
	if (a->sums)
		memset(a->sums, 0, (size_t)a->columns * sizeof *a->sums);
	for (int64_t i = 0; i < a->rows; i++) {
		void *y = out_row(a->y, i, a->stride, dtype);
		int64_t c = 0;
		for (; c + 2 * LANES <= a->columns; c += 2 * LANES) {
			vector v = backward_vector(a, i, c, &g, has_pre, dtype);
			vector w = backward_vector(a, i, c + LANES, &g, has_pre, dtype);
			store_two(y, c, v, w, dtype, a->past);
		}
		for (; c < a->columns; c += LANES)
			store(y, c, a->columns - c, backward_vector(a, i, c, &g, has_pre, dtype), dtype);
	}
}

INLINE void backward_forms(const struct linear_rows *a, enum dtype dtype)
{
	if (!a->pre)
		backward_rows(a, false, ACTIVATION_NONE, dtype);
	else if (a->activation == ACTIVATION_GELU_ERF)
		backward_rows(a, true, ACTIVATION_GELU_ERF, dtype);
	else if (a->activation == ACTIVATION_GELU_TANH)
		backward_rows(a, true, ACTIVATION_GELU_TANH, dtype);
	else
		backward_rows(a, true, a->activation, dtype);
}

void KERNEL(linear_bwd)(const struct linear_rows *a)
{
	if (a->dtype == DTYPE_BF16)
		backward_forms(a, DTYPE_BF16);
	else
		backward_forms(a, DTYPE_F32);
	store_past_end();
}

/* One row, whose a and g are the halves of pre; with dpre, backward. */
INLINE void gated_row(const struct gated_rows *a, int64_t i, const struct gelu *g, const struct gelu *derivative,
		      enum dtype dtype)
{
	int64_t columns = a->columns;
	const void *pre = row_of(a->pre, i, 2 * columns, dtype);
	void *y = a->y ? out_row(a->y, i, columns, dtype) : NULL,
	     *dpre = a->dpre ? out_row(a->dpre, i, 2 * columns, dtype) : NULL;
	row_bits(&a->dropout, i, columns);
	for (int64_t c = 0; c < columns; c += LANES) {
		int64_t left = columns - c;
		vector x = load(pre, c, left, dtype), gate = load(pre, columns + c, left, dtype), active = gelu(g, x);
		if (!dpre) {
			store(y, c, left, drop(&a->dropout, active * gate, c), dtype);
			continue;
		}
		vector dy = drop(&a->dropout, load(row_of(a->dy, i, columns, dtype), c, left, dtype), c);
		store(dpre, c, left, dy * gate * gelu_derivative(derivative, x), dtype);
		store(dpre, columns + c, left, dy * active, dtype);
	}
}

INLINE void gated_rows(const struct gated_rows *a, enum dtype dtype)
{
	const struct gelu g = gelu_start(a->activation, false, dtype), derivative = gelu_start(a->activation, true, dtype);
	for (int64_t i = 0; i < a->rows; i++)
		gated_row(a, i, &g, &derivative, dtype);
}

void KERNEL(gated)(const struct gated_rows *a)
{
	if (a->dtype == DTYPE_BF16)
		gated_rows(a, DTYPE_BF16);
	else
		gated_rows(a, DTYPE_F32);
}

INLINE void tanh_row(void *dy, const void *y, int64_t count, enum dtype dtype)
{
	for (int64_t i = 0; i < count; i += LANES) {
		vector value = load(y, i, count - i, dtype), d = load(dy, i, count - i, dtype);
		store(dy, i, count - i, d * (vector_set(1) - value * value), dtype);
	}
}

void KERNEL(tanh_bwd)(void *dy, const void *y, int64_t count, enum dtype dtype)
{
	if (dtype == DTYPE_BF16)
		tanh_row(dy, y, count, DTYPE_BF16);
	else
		tanh_row(dy, y, count, DTYPE_F32);
}
