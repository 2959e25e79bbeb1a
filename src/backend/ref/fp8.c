/* Rounds operands of products to FP8 or int8, in float64: the reference for the other back ends' products. */
#include "backend/fp8.h"
#include "backend/int8.h"
#include "backend/ref/ref.h"

/* to = from rounded, with one scale for all `count` numbers. */
static void round_matrix(enum dtype format, const double *from, int64_t count, double *to)
{
	uint32_t largest = 0;
	for (int64_t i = 0; i < count; i++) {
		uint32_t magnitude = fp8_bits_of((float)from[i]) & 0x7fffffffu;
		largest = magnitude > largest ? magnitude : largest;
	}
	struct fp8_scale scale = fp8_scale_of(format, largest);
	for (int64_t i = 0; i < count; i++)
		to[i] = (double)fp8_decode(format, fp8_encode(format, (float)from[i] * scale.scale)) * (double)scale.inverse;
}

/* to = from rounded to int8, each row with its own scale. */
static void round_rows(const double *from, int64_t rows, int64_t columns, double *to)
{
	for (int64_t i = 0; i < rows; i++, from += columns, to += columns) {
		uint32_t largest = 0;
		for (int64_t j = 0; j < columns; j++) {
			uint32_t magnitude = fp8_bits_of((float)from[j]) & 0x7fffffffu;
			largest = magnitude > largest ? magnitude : largest;
		}
		struct int8_scale scale = int8_scale_of(largest);
		for (int64_t j = 0; j < columns; j++)
			to[j] = isnan(scale.scale) ? NAN : (double)scale.scale * int8_rounded((float)from[j], scale.factor);
	}
}

static bool is_rounded(const struct backend *be, const struct weight *weight)
{
	return weight_in_fp8(be, weight) || weight_in_int8(be, weight);
}

size_t ref_weight_copy_bytes(struct backend *be, const struct weight *weight)
{
	return is_rounded(be, weight) ? (size_t)(weight->master.rows * weight->master.columns) * sizeof(double) : 0;
}

void ref_weights_refresh(struct replica *replica, struct weight *const *weights, int64_t count)
{
	for (int64_t i = 0; i < count; i++) {
		if (weight_in_int8(replica->backend, weights[i]))
			round_rows(weights[i]->master.data, weights[i]->master.rows, weights[i]->master.columns,
				   weights[i]->copy);
		else if (weight_in_fp8(replica->backend, weights[i]))
			round_matrix(DTYPE_E4M3, weights[i]->master.data, weights[i]->master.rows * weights[i]->master.columns,
				     weights[i]->copy);
	}
}

struct weight ref_weight_operand(const struct replica *r, const struct weight *weight)
{
	struct weight out = *weight;
	if (is_rounded(r->backend, weight))
		out.master.data = weight->copy;
	return out;
}

struct tensor ref_operand(struct replica *r, const struct weight *weight, enum dtype format, const struct tensor *x)
{
	struct tensor out = *x;
	if (weight_in_int8(r->backend, weight)) {
		out.data = ref_operand_scratch(r, 0, x->rows * x->columns);
		round_rows(x->data, x->rows, x->columns, out.data);
	} else if (weight_in_fp8(r->backend, weight)) {
		out.data = ref_operand_scratch(r, format == DTYPE_E5M2, x->rows * x->columns);
		round_matrix(format, x->data, x->rows * x->columns, out.data);
	}
	return out;
}
