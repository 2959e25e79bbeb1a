/* Softmax cross entropy over a few classes. */
#include "backend/cuda/state.h"

void cuda_xent(struct replica *r, const struct xent *a)
{
	struct cuda_scratch *scratch = cuda_scratch(r);
	BUG_IF(a->logits.rows > scratch->loss_rows);
	struct kernel_xent xent = {
		.dtype = a->logits.dtype,
		.rows = a->logits.rows,
		.classes = (int)a->logits.columns,
		.logits = a->logits.data,
		.dlogits = a->dlogits.data,
		.labels = a->labels,
		.scalars = r->scalars,
		.losses = scratch->losses,
		.corrects = scratch->losses + scratch->loss_rows,
		.loss = a->loss,
		.correct = a->correct,
	};
	cuda_run(r, kernel_xent(cuda_stream(r), &xent), "xent");
}
