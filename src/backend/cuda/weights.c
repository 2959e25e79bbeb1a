/* Compute copies of weights: the fp32 master rounded to the activations' type. fp32 and TF32 use the masters;
 * FP8 has copies of its own (fp8.c). */
#include "backend/cuda/weight_products.h"

/* What precedes the numbers of a copy. */
static size_t head_bytes(const struct backend *be)
{
	return be->fp8 ? sizeof(struct fp8_head) : 0;
}

size_t cuda_weight_copy_bytes(struct backend *be, const struct weight *weight)
{
	if (weight_in_fp8(be, weight))
		return cuda_fp8_copy_bytes(weight);
	/* Includes vectors: a bias that a product adds has the type of the product's output. */
	if (be->dtype == DTYPE_F32 || weight->use == WEIGHT_TABLE)
		return 0;
	return head_bytes(be) + (size_t)(weight->master.rows * weight->master.columns) * dtype_bytes(be->dtype);
}

void cuda_weights_refresh(struct replica *replica, struct weight *const *weights, int64_t count)
{
	struct kernel_cast cast = {.dtype = replica->backend->dtype};
	for (int64_t i = 0; i < count; i++) {
		const struct weight *w = weights[i];
		if (cuda_weight_copy_bytes(replica->backend, w) == 0 || weight_in_fp8(replica->backend, w))
			continue;
		cast.range[cast.count].from = w->master.data;
		cast.range[cast.count].to = (unsigned char *)w->copy + head_bytes(replica->backend);
		cast.range[cast.count++].elements = w->master.rows * w->master.columns;
		if (cast.count == CAST_RANGES) {
			cuda_run(replica, kernel_cast(cuda_stream(replica), &cast), "weights_refresh");
			cast.count = 0;
		}
	}
	cuda_run(replica, kernel_cast(cuda_stream(replica), &cast), "weights_refresh");
	cuda_fp8_refresh(replica, weights, count);
	cuda_state(replica)->weights_written = true;
}

enum status cuda_convert(struct backend *be, void *queue, void *out, enum dtype to, const void *in, enum dtype from,
			 int64_t count)
{
	(void)be;
	struct kernel_cast cast = {.dtype = to, .count = 1, .range = {{.from = in, .to = out, .elements = count}}};
	BUG_IF((to == DTYPE_F32) == (from == DTYPE_F32));
	cudaError_t error = to == DTYPE_F32 ? kernel_widen(queue, from, in, out, count) : kernel_cast(queue, &cast);
	return error == cudaSuccess ? OK : cuda_error(error, "convert");
}

const void *cuda_weight_operand(const struct replica *r, const struct weight *weight)
{
	BUG_IF(weight_in_fp8(r->backend, weight));
	if (r->backend->dtype == DTYPE_F32)
		return weight->master.data;
	return (const unsigned char *)weight->copy + head_bytes(r->backend);
}
