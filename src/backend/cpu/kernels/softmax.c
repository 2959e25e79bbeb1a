/* Softmax over one tile of the vocabulary's logits. */
#include "backend/cpu/kernels/table.h"

void KERNEL(softmax_fwd)(const struct softmax_rows *a)
{
	for (int64_t i = 0; i < a->rows; i++) {
		float *logits = a->logits + i * a->columns;
		const vector lowest = vector_set(-__builtin_inff());
		vector largest = lowest;
		for (int64_t c = 0; c < a->columns; c += LANES) {
			int64_t left = a->columns - c;
			vector v = load_floats(logits, c, left) + load_floats(a->bias, c, left);
			store_floats(logits, c, left, v);
			if (left >= LANES)
				largest = vector_max(largest, v);
			else
				for (int64_t j = c; j < a->columns; j++)
					largest = vector_max(largest, vector_set(logits[j]));
		}
		float max = vector_largest(largest);
		vector sum = vector_set(0), shift = vector_set(max);
		int32_t best = -1;
		int64_t c = 0;
		for (; c + LANES <= a->columns; c += LANES) {
			vector v = vector_load(logits + c);
			sum += vector_exp(v - shift);
			uint32_t equal = equal_lanes(v, shift);
			if (best < 0 && equal)
				best = (int32_t)c + __builtin_ctz(equal);
		}
		float total = vector_sum(sum);
		for (; c < a->columns; c++) {
			float e[LANES];
			vector_store(e, vector_exp(vector_set(logits[c] - max)));
			total += e[0];
			if (best < 0 && logits[c] == max)
				best = (int32_t)c;
		}
		a->max[i] = max;
		a->sum[i] = total;
		a->best[i] = best < 0 ? 0 : best; /* all NaN */
	}
}

INLINE void backward_rows(const struct softmax_bwd_rows *a, enum dtype dtype)
{
	for (int64_t i = 0; i < a->rows; i++) {
		const float *logits = a->logits + i * a->columns;
		void *d = out_row(a->dlogits, i, a->columns, dtype);
		if (a->factor[i] == 0) {
			memset(d, 0, (size_t)a->columns * dtype_bytes(dtype));
			continue;
		}
		const vector lse = vector_set(a->lse[i]), factor = vector_set(a->factor[i]);
		for (int64_t c = 0; c < a->columns; c += LANES) {
			vector v = vector_exp(load_floats(logits, c, a->columns - c) - lse) * factor;
			store(d, c, a->columns - c, v, dtype);
		}
		int64_t label = a->labels[i];
		if (label >= 0 && label < a->columns) {
			float p[LANES];
			vector_store(p, vector_exp(vector_set(logits[label] - a->lse[i])));
			store(d, label, 1, vector_set((p[0] - 1) * a->factor[i]), dtype);
		}
	}
}

void KERNEL(softmax_bwd)(const struct softmax_bwd_rows *a)
{
	if (a->dtype == DTYPE_BF16)
		backward_rows(a, DTYPE_BF16);
	else
		backward_rows(a, DTYPE_F32);
}
