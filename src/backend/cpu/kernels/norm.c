/* Layer normalization and what is fused with it: dropout, residual, embedding rows, gelu's derivative. */
#include "backend/cpu/kernels/dropout.h"
#include "backend/cpu/kernels/table.h"

/* Rows to prefetch ahead explicitly; saves a fifth of the time. */
#define FETCH_ROWS 2

/* Mean and rstd of a row of floats whose sum is known. Two passes: the sum of squared deviations, because the difference of
 * squares would cancel. */
INLINE void statistics(const float *row, int64_t columns, float total, float epsilon, float *mean, float *rstd)
{
	*mean = total / (float)columns;
	vector squares = vector_set(0), m = vector_set(*mean);
	int64_t c = 0;
	for (; c + LANES <= columns; c += LANES) {
		vector d = vector_load(row + c) - m;
		squares = vector_fma(d, d, squares);
	}
	float sum = vector_sum(squares);
	for (; c < columns; c++)
		sum += (row[c] - *mean) * (row[c] - *mean);
	*rstd = 1 / __builtin_sqrtf(sum / (float)columns + epsilon);
}

/* y = gamma (row - mean) rstd [+ beta] */
INLINE vector normalize(const float *row, float mean, float rstd, const float *gamma, const float *beta, int64_t c, int64_t left)
{
	vector n = (load_floats(row, c, left) - vector_set(mean)) * vector_set(rstd);
	return vector_fma(n, load_floats(gamma, c, left), beta ? load_floats(beta, c, left) : vector_set(0));
}

/* The rounded sum at column c of a row, which is also stored in a->row. */
INLINE vector sum_vector(const struct norm_rows *a, const void *x_row, enum dtype x_dtype, int64_t first, int64_t c, int64_t end,
			 const void *residual, enum dtype dtype)
{
	int64_t left = end - c;
	vector v = load(x_row, c - first, left, x_dtype);
	if (a->bias)
		v += load_floats(a->bias, c, left);
	v = drop(&a->dropout, v, c);
	if (residual) {
		fetch(residual, c + FETCH_ROWS * a->columns, dtype);
		v += load(residual, c, left, dtype);
	}
	v = rounded(v, dtype);
	store_floats(a->row, c, left, v);
	return v;
}

/* Computes the sum for columns [first, end) of a row, with x from x_row (whose element 0 is column `first`). Returns per-lane
 * totals. Statistics are those of the rounded sum, because that is what backward reads. */
INLINE vector sum_columns(const struct norm_rows *a, const void *x_row, enum dtype x_dtype, int64_t first, int64_t end,
			  const void *residual, void *sum, enum dtype dtype)
{
	vector total = vector_set(0);
	int64_t c = first;
	for (; c + 2 * LANES <= end; c += 2 * LANES) {
		vector v = sum_vector(a, x_row, x_dtype, first, c, end, residual, dtype);
		vector w = sum_vector(a, x_row, x_dtype, first, c + LANES, end, residual, dtype);
		if (sum)
			store_two(sum, c, v, w, dtype, a->past);
		total += v + w;
	}
	for (; c < end; c += LANES) {
		vector v = sum_vector(a, x_row, x_dtype, first, c, end, residual, dtype);
		if (sum)
			store(sum, c, end - c, v, dtype);
		total += v;
	}
	return total;
}

INLINE void norm_rows(const struct norm_rows *a, enum dtype dtype)
{
	int64_t columns = a->columns, width = a->product.width;
	for (int64_t i = 0; i < a->rows; i++) {
		const void *residual = a->residual ? row_of(a->residual, i, columns, dtype) : NULL;
		void *sum = a->sum ? out_row(a->sum, i, columns, dtype) : NULL;
		vector total = vector_set(0);
		row_bits(&a->dropout, i, columns);
		if (a->product.data) {
			for (int64_t first = 0; first < columns; first += width) {
				int64_t end = first + width < columns ? first + width : columns;
				const float *tile = a->product.data + first / width * a->product.tile;
				int64_t row = a->product.row ? a->product.row : end - first;
				total += sum_columns(a, tile + i * row, DTYPE_F32, first, end, residual, sum, dtype);
			}
		} else {
			total = sum_columns(a, row_of(a->x, i, columns, dtype), dtype, 0, columns, residual, sum, dtype);
		}
		float mean, rstd;
		statistics(a->row, columns, vector_sum(total), a->epsilon, &mean, &rstd);
		if (sum) {
			a->mean[i] = mean;
			a->rstd[i] = rstd;
		}
		void *y = out_row(a->y, i, columns, dtype);
		int64_t c = 0;
		for (; c + 2 * LANES <= columns; c += 2 * LANES)
			store_two(y, c, normalize(a->row, mean, rstd, a->gamma, a->beta, c, columns - c),
				  normalize(a->row, mean, rstd, a->gamma, a->beta, c + LANES, columns - c - LANES), dtype,
				  a->past);
		for (; c < columns; c += LANES)
			store(y, c, columns - c, normalize(a->row, mean, rstd, a->gamma, a->beta, c, columns - c), dtype);
	}
}

void KERNEL(norm_fwd)(const struct norm_rows *a)
{
	if (a->dtype == DTYPE_BF16)
		norm_rows(a, DTYPE_BF16);
	else
		norm_rows(a, DTYPE_F32);
	store_past_end();
}

INLINE void embed_rows(const struct embed_rows *a, enum dtype dtype, enum dtype tables)
{
	int64_t columns = a->columns;
	for (int64_t i = 0; i < a->rows; i++) {
		const void *word = row_of(a->word, a->ids[i], columns, tables);
		const void *type = a->type ? row_of(a->type, a->types[i], columns, tables) : NULL;
		const void *position = a->position ? row_of(a->position, a->positions[i], columns, tables) : NULL;
		void *sum = a->sum ? out_row(a->sum, i, columns, dtype) : NULL, *y = out_row(a->y, i, columns, dtype);
		vector total = vector_set(0);
		for (int64_t c = 0; c < columns; c += LANES) {
			int64_t left = columns - c;
			vector v = load(word, c, left, tables);
			if (type)
				v += load(type, c, left, tables);
			if (position)
				v += load(position, c, left, tables);
			v = rounded(v, dtype);
			if (sum)
				store(sum, c, left, v, dtype);
			store_floats(a->row, c, left, v);
			total += v;
		}
		float mean, rstd;
		statistics(a->row, columns, vector_sum(total), a->epsilon, &mean, &rstd);
		if (sum) {
			a->mean[i] = mean;
			a->rstd[i] = rstd;
		}
		row_bits(&a->dropout, i, columns);
		for (int64_t c = 0; c < columns; c += LANES) {
			vector v = normalize(a->row, mean, rstd, a->gamma, a->beta, c, columns - c);
			store(y, c, columns - c, drop(&a->dropout, v, c), dtype);
		}
	}
}

void KERNEL(embed_fwd)(const struct embed_rows *a)
{
	if (a->tables == DTYPE_BF16)
		embed_rows(a, DTYPE_BF16, DTYPE_BF16);
	else if (a->dtype == DTYPE_BF16)
		embed_rows(a, DTYPE_BF16, DTYPE_F32);
	else
		embed_rows(a, DTYPE_F32, DTYPE_F32);
}

INLINE void add_floats(float *sums, int64_t c, int64_t left, vector v)
{
	store_floats(sums, c, left, load_floats(sums, c, left) + v);
}

/* With n = (sum - mean) rstd and g = dy gamma: dresidual = rstd (g - mean(g) - n mean(g n)) [+ add]; a row's g and n are kept in
 * a->row between the two passes. */
INLINE void backward_rows(const struct norm_bwd_rows *a, bool has_pre, enum dtype dtype)
{
	int64_t columns = a->columns, wide = round_up(columns, 16);
	float *g_row = a->row, *n_row = a->row + wide;
	bool mask_dx = a->dx && !a->dropout_first;
	const struct gelu derivative = gelu_start(a->activation, true, dtype);
	memset(a->dgamma, 0, (size_t)columns * sizeof(float));
	memset(a->dbeta, 0, (size_t)columns * sizeof(float));
	if (a->dbias)
		memset(a->dbias, 0, (size_t)columns * sizeof(float));
	for (int64_t i = 0; i < a->rows; i++) {
		const void *dy = row_of(a->dy, i, columns, dtype), *sum = row_of(a->sum, i, columns, dtype);
		const void *pre = has_pre ? row_of(a->pre, i, columns, dtype) : NULL;
		const void *add = a->add ? row_of(a->add, i, columns, dtype) : NULL;
		const vector mean = vector_set(a->mean[i]), rstd = vector_set(a->rstd[i]);
		vector total_g = vector_set(0), total_gn = vector_set(0);
		if (mask_dx || a->dropout_first)
			row_bits(&a->dropout, i, columns);
		for (int64_t c = 0; c < columns; c += LANES) {
			int64_t left = columns - c;
			fetch(dy, c + FETCH_ROWS * columns, dtype);
			fetch(sum, c + FETCH_ROWS * columns, dtype);
			vector d = load(dy, c, left, dtype);
			if (a->dropout_first)
				d = drop(&a->dropout, d, c);
			vector n = (load(sum, c, left, dtype) - mean) * rstd, g = d * load_floats(a->gamma, c, left);
			store_floats(n_row, c, left, n);
			store_floats(g_row, c, left, g);
			add_floats(a->dgamma, c, left, d * n);
			add_floats(a->dbeta, c, left, d);
			total_g += g;
			total_gn = vector_fma(g, n, total_gn); /* g is 0 after the last column */
		}
		const vector mean_g = vector_set(vector_sum(total_g) / (float)columns);
		const vector mean_gn = vector_set(vector_sum(total_gn) / (float)columns);
		void *dresidual = out_row(a->dresidual, i, columns, dtype);
		void *dx = a->dx ? out_row(a->dx, i, columns, dtype) : NULL;
		for (int64_t c = 0; c < columns; c += 2 * LANES) {
			bool two = c + 2 * LANES <= columns;
			vector d[2] = {vector_set(0), vector_set(0)};
			for (int j = 0; j < 2 && c + j * LANES < columns; j++) {
				int64_t at = c + j * LANES, left = columns - at;
				d[j] = load_floats(g_row, at, left) - vector_fma(load_floats(n_row, at, left), mean_gn, mean_g);
				d[j] *= rstd;
				if (add)
					d[j] += load(add, at, left, dtype);
				if (!two)
					store(dresidual, at, left, d[j], dtype);
			}
			if (two)
				store_two(dresidual, c, d[0], d[1], dtype, a->past);
			for (int j = 0; j < 2 && c + j * LANES < columns; j++) {
				int64_t at = c + j * LANES, left = columns - at;
				if (mask_dx)
					d[j] = drop(&a->dropout, d[j], at);
				if (has_pre)
					d[j] *= gelu_derivative(&derivative, load(pre, at, left, dtype));
				if (dx && !two)
					store(dx, at, left, d[j], dtype);
				if (a->dbias)
					add_floats(a->dbias, at, left, d[j]);
			}
			if (dx && two)
				store_two(dx, c, d[0], d[1], dtype, a->past);
		}
	}
}

void KERNEL(norm_bwd)(const struct norm_bwd_rows *a)
{
	if (a->dtype == DTYPE_BF16)
		a->pre ? backward_rows(a, true, DTYPE_BF16) : backward_rows(a, false, DTYPE_BF16);
	else
		a->pre ? backward_rows(a, true, DTYPE_F32) : backward_rows(a, false, DTYPE_F32);
	store_past_end();
}
