/* The sizes of the cuda back end, computed without a device. */
#include "backend/described.h"

#include "backend/dropout.h"
#include "base/memory.h"

/* Estimated workspace of a product library, and the rows of the block of logits that loss and gradient are computed from. */
#define LIBRARY_BYTES ((size_t)64 << 20)
#define LOGIT_ROWS 2048

/* Matches backend/cuda/weights.c. */
static size_t copy_bytes(struct backend *be, const struct weight *weight)
{
	size_t elements = (size_t)weight->master.rows * (size_t)weight->master.columns;
	return be->dtype == DTYPE_F32 || weight->use == WEIGHT_TABLE ? 0 : elements * 2; /* FP8 has two copies of one byte each */
}

/* Matches backend/cuda/fp8.c, except for the constant part. */
static size_t twin_bytes(struct backend *be, int64_t rows, int64_t columns, bool gradient)
{
	return be->fp8 && !gradient ? (size_t)(rows * columns) : 0;
}

/* Matches backend/cuda/attention.c. */
static size_t kept_bytes(struct backend *be, int64_t heads, int64_t head_size, int64_t longest,
			 const struct batch_capacity *capacity)
{
	bool matrix = be->dtype != DTYPE_F32 && (head_size == 32 || head_size == 64 || head_size == 128);
	int64_t count = attention_kept_count(heads, longest, capacity->tokens, capacity->sequences);
	return matrix ? (size_t)count * sizeof(uint16_t) : 0;
}

static size_t workspace_bytes(struct backend *be, const struct shape_limits *limits)
{
	size_t rows = (size_t)most_labels(&limits->batch) < LOGIT_ROWS ? (size_t)most_labels(&limits->batch) : LOGIT_ROWS;
	size_t tokens = (size_t)limits->batch.tokens, width = (size_t)widest_norm(limits), wide = (size_t)limits->intermediate;
	size_t sums = limits->training ? tokens * width * sizeof(float) : 0;
	size_t operands = be->fp8 ? (limits->training ? 2 : 1) * tokens * (wide > 3 * width ? wide : 3 * width) : 0;
	return LIBRARY_BYTES + rows * (size_t)limits->vocab * dtype_bytes(be->dtype) + sums + operands;
}

static const struct backend_functions functions = {
	.weight_copy_bytes = copy_bytes,
	.workspace_bytes = workspace_bytes,
	.twin_bytes = twin_bytes,
	.kept_bytes = kept_bytes,
};

void backend_describe(struct backend *out, enum dtype dtype, bool fp8)
{
	*out = (struct backend){
		.name = "described",
		.description = "a device that is not here",
		.numerics = "",
		.dtype = dtype,
		.master_dtype = DTYPE_F32,
		.fp8 = fp8,
		.functions = &functions,
	};
}
