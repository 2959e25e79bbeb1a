#include "backend/described.h"

#include "base/memory.h"

/* What a library of products takes for itself, and a block of logits that loss and gradient are computed from. */
#define LIBRARY_BYTES ((size_t)64 << 20)
#define LOGIT_ROWS 2048

/* As backend/cuda/weights.c has it. */
static size_t copy_bytes(struct backend *be, const struct weight *weight)
{
	size_t elements = (size_t)weight->master.rows * (size_t)weight->master.columns;
	bool narrow = be->state != NULL;
	if (be->dtype == DTYPE_F32 || weight->use == WEIGHT_TABLE)
		return 0;
	return elements * 2 + (narrow && weight->use == WEIGHT_LINEAR ? elements * 2 : 0);
}

static size_t workspace_bytes(struct backend *be, const struct shape_limits *limits)
{
	size_t rows = (size_t)limits->batch.predictions < LOGIT_ROWS ? (size_t)limits->batch.predictions : LOGIT_ROWS;
	size_t sums = limits->training ? (size_t)limits->batch.tokens * (size_t)limits->hidden * sizeof(float) : 0;
	return LIBRARY_BYTES + rows * (size_t)limits->vocab * dtype_bytes(be->dtype) + sums;
}

static const struct backend_functions functions = {
	.weight_copy_bytes = copy_bytes,
	.workspace_bytes = workspace_bytes,
};

void backend_describe(struct backend *out, enum dtype dtype, bool narrow)
{
	static char is_narrow;
	*out = (struct backend){
		.name = "described",
		.description = "a device that is not here",
		.numerics = "",
		.dtype = dtype,
		.master_dtype = DTYPE_F32,
		.functions = &functions,
		.state = narrow ? &is_narrow : NULL,
	};
}
