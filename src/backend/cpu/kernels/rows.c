/* Adds rows, and turns them. */
#include "backend/cpu/kernels/table.h"

INLINE void add_row(float *sum, const void *row, int64_t count, enum dtype dtype)
{
	for (int64_t i = 0; i < count; i += LANES)
		store_floats(sum, i, count - i, load_floats(sum, i, count - i) + load(row, i, count - i, dtype));
}

void KERNEL(add_row)(float *sum, const void *row, int64_t count, enum dtype dtype)
{
	if (dtype == DTYPE_BF16)
		add_row(sum, row, count, DTYPE_BF16);
	else
		add_row(sum, row, count, DTYPE_F32);
}

INLINE void add_scaled_row(float *sum, float factor, const void *row, int64_t count, enum dtype dtype)
{
	for (int64_t i = 0; i < count; i += LANES)
		store_floats(sum, i, count - i, load_floats(sum, i, count - i) + factor * load(row, i, count - i, dtype));
}

void KERNEL(add_scaled_row)(float *sum, float factor, const void *row, int64_t count, enum dtype dtype)
{
	if (dtype == DTYPE_BF16)
		add_scaled_row(sum, factor, row, count, DTYPE_BF16);
	else
		add_scaled_row(sum, factor, row, count, DTYPE_F32);
}

INLINE void add_row_into(void *out, const void *row, int64_t count, enum dtype dtype)
{
	for (int64_t i = 0; i < count; i += LANES) {
		vector sum = load(out, i, count - i, dtype) + load(row, i, count - i, dtype);
		store(out, i, count - i, sum, dtype);
	}
}

/* Cosine and sine, for angles of up to some 100,000: reduced by multiples of pi/2, then Cephes' polynomials. */
INLINE void turn(float angle, float *cosine, float *sine)
{
	float q = __builtin_rintf(angle * 0.636619772f);
	float r = __builtin_fmaf(q, -1.5707962513f, angle);
	r = __builtin_fmaf(q, -7.5497894e-8f, r);
	r = __builtin_fmaf(q, -5.3903029e-15f, r);
	float z = r * r;
	float s = __builtin_fmaf(__builtin_fmaf(__builtin_fmaf(-1.9515295891e-4f, z, 8.3321608736e-3f), z, -1.6666654611e-1f),
				 z * r, r);
	float c = __builtin_fmaf(__builtin_fmaf(2.443315711809948e-5f, z, -1.388731625493765e-3f), z, 4.166664568298827e-2f);
	c = __builtin_fmaf(c, z * z, __builtin_fmaf(-0.5f, z, 1));
	int quadrant = (int)q;
	float x = quadrant & 1 ? s : c, y = quadrant & 1 ? c : s;
	*cosine = (quadrant + 1) & 2 ? -x : x;
	*sine = quadrant & 2 ? -y : y;
}

INLINE void rotary_rows(const struct rotary_rows *a, enum dtype dtype)
{
	int64_t half = a->size / 2;
	float *cosines = a->row, *sines = a->row + round_up(half, 16);
	for (int64_t i = 0; i < a->rows; i++) {
		void *row = out_row(a->qkv, i, a->stride, dtype);
		float position = (float)a->positions[i];
		for (int64_t c = 0; c < half; c++)
			turn(position * a->frequencies[c], &cosines[c], &sines[c]);
		for (int64_t head = 0; head < a->heads; head++)
			for (int64_t c = 0; c < half; c += LANES) {
				int64_t at = head * a->size + c, left = half - c;
				vector low = load(row, at, left, dtype), high = load(row, at + half, left, dtype);
				vector cosine = load_floats(cosines, c, left), sine = load_floats(sines, c, left);
				if (a->back)
					sine = vector_set(0) - sine;
				store(row, at, left, low * cosine - high * sine, dtype);
				store(row, at + half, left, high * cosine + low * sine, dtype);
			}
	}
}

void KERNEL(rotary)(const struct rotary_rows *a)
{
	if (a->dtype == DTYPE_BF16)
		rotary_rows(a, DTYPE_BF16);
	else
		rotary_rows(a, DTYPE_F32);
}

void KERNEL(add_row_into)(void *out, const void *row, int64_t count, enum dtype dtype)
{
	if (dtype == DTYPE_BF16)
		add_row_into(out, row, count, DTYPE_BF16);
	else
		add_row_into(out, row, count, DTYPE_F32);
}
