/* Losses over the outputs of heads, and dropout of their inputs. */
#include "backend/cuda/state.h"

#include <math.h>

#include "backend/dropout.h"

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
		.head = a->head,
		.label_smoothing = (float)a->label_smoothing,
		.labels = a->labels,
		.weights = a->weights,
		.scalars = r->scalars,
		.losses = scratch->losses,
		.corrects = scratch->losses + scratch->loss_rows,
		.loss = a->loss,
		.correct = a->correct,
	};
	cuda_run(r, kernel_xent(cuda_stream(r), &xent), "xent");
}

/* The fields that all kinds have in common. */
static struct kernel_loss loss_of(struct replica *r, enum loss_kind kind, int64_t items, int head, const struct tensor *outputs,
				  const struct tensor *gradients, const float *weights)
{
	struct cuda_scratch *scratch = cuda_scratch(r);
	BUG_IF(items > scratch->loss_rows);
	return (struct kernel_loss){
		.kind = kind,
		.dtype = outputs->dtype,
		.items = items,
		.columns = (int)outputs->columns,
		.head = head,
		.outputs = outputs->data,
		.gradients = gradients->data,
		.weights = weights,
		.scalars = r->scalars,
		.losses = scratch->losses,
		.corrects = scratch->losses + scratch->loss_rows,
	};
}

void cuda_squared_error(struct replica *r, const struct squared_error *a)
{
	struct kernel_loss loss = loss_of(r, LOSS_KIND_SQUARED, a->outputs.rows, a->head, &a->outputs, &a->doutputs, a->weights);
	loss.values = a->values;
	loss.loss = a->loss;
	cuda_run(r, kernel_loss(cuda_stream(r), &loss), "squared_error");
}

void cuda_binary_xent(struct replica *r, const struct binary_xent *a)
{
	struct kernel_loss loss = loss_of(r, LOSS_KIND_BINARY, a->logits.rows, a->head, &a->logits, &a->dlogits, a->weights);
	loss.values = a->values;
	loss.positive_weights = a->positive_weights;
	loss.loss = a->loss;
	loss.correct = a->correct;
	cuda_run(r, kernel_loss(cuda_stream(r), &loss), "binary_xent");
}

void cuda_group_xent(struct replica *r, const struct group_xent *a)
{
	struct kernel_loss loss = loss_of(r, LOSS_KIND_GROUP, a->count, a->head, &a->logits, &a->dlogits, a->weights);
	loss.starts = a->starts;
	loss.labels = a->labels;
	loss.loss = a->loss;
	loss.correct = a->correct;
	cuda_run(r, kernel_loss(cuda_stream(r), &loss), "group_xent");
}

void cuda_list_loss(struct replica *r, const struct list_loss *a)
{
	enum loss_kind kind = a->kind == LIST_SHARES ? LOSS_KIND_SHARES : LOSS_KIND_MARGINS;
	struct kernel_loss loss = loss_of(r, kind, a->count, a->head, &a->logits, &a->dlogits, a->weights);
	loss.starts = a->starts;
	loss.values = a->targets;
	loss.loss = a->loss;
	cuda_run(r, kernel_loss(cuda_stream(r), &loss), "list_loss");
}

void cuda_segment_xent(struct replica *r, const struct segment_xent *a)
{
	struct kernel_loss loss =
		loss_of(r, LOSS_KIND_SEGMENT, a->batch->sequence_count, a->head, &a->logits, &a->dlogits, a->weights);
	loss.starts = a->batch->starts;
	loss.labels = a->labels;
	loss.loss = a->loss;
	loss.correct = a->correct;
	cuda_run(r, kernel_loss(cuda_stream(r), &loss), "segment_xent");
}

void cuda_pointer_xent(struct replica *r, const struct pointer_xent *a)
{
	struct cuda_scratch *scratch = cuda_scratch(r);
	int size = (int)(a->logits.columns - a->classes) / (2 * a->pointers);
	BUG_IF(a->batch->sequence_count > scratch->loss_rows);
	struct kernel_pointer_xent pointers = {
		.dtype = a->logits.dtype,
		.sequences = a->batch->sequence_count,
		.items = a->count,
		.columns = (int)a->logits.columns,
		.classes = a->classes,
		.pointers = a->pointers,
		.size = size,
		.head = a->head,
		.scale = 1 / sqrtf((float)size),
		.logits = a->logits.data,
		.gradients = a->dlogits.data,
		.starts = a->batch->starts,
		.rows = a->rows,
		.labels = a->labels,
		.weights = a->weights,
		.lse = a->lse.data,
		.scalars = r->scalars,
		.losses = scratch->losses,
		.corrects = scratch->losses + scratch->loss_rows,
		.loss = a->loss,
		.correct = a->correct,
	};
	cuda_run(r, kernel_pointer_xent(cuda_stream(r), &pointers), "pointer_xent");
}

void cuda_soft_loss(struct replica *r, const struct soft_loss *a)
{
	struct cuda_scratch *scratch = cuda_scratch(r);
	BUG_IF(a->count > scratch->loss_rows);
	struct kernel_soft_loss loss = {
		.kind = a->kind,
		.dtype = a->logits.dtype,
		.items = a->count,
		.columns = (int)a->logits.columns,
		.head = a->head,
		.teacher = a->teacher.data,
		.outputs = a->logits.data,
		.gradients = a->dlogits.data,
		.starts = a->starts,
		.weights = a->weights,
		.temperature = a->temperature,
		.share = a->share,
		.scalars = r->scalars,
		.losses = scratch->losses,
		.loss = a->loss,
	};
	cuda_run(r, kernel_soft_loss(cuda_stream(r), &loss), "soft_loss");
}

void cuda_hidden_error(struct replica *r, const struct hidden_error *a)
{
	struct kernel_hidden_error error = {
		.dtype = a->x.dtype,
		.tokens = a->x.rows,
		.columns = a->x.columns,
		.own_tokens = a->batch->own_tokens,
		.factor = a->factor,
		.x = a->x.data,
		.target = a->target.data,
		.dx = a->dx.data,
		.scalars = r->scalars,
		.parts = cuda_scratch(r)->sums,
		.loss = a->loss,
	};
	cuda_run(r, kernel_hidden_error(cuda_stream(r), &error), "hidden_error");
}

void cuda_row_dropout(struct replica *r, const struct row_dropout *a)
{
	struct kernel_row_dropout dropout = {
		.dtype = a->x.dtype,
		.rows = a->x.rows,
		.columns = (int)a->x.columns,
		.threshold = dropout_threshold(a->dropout.p),
		.site = a->dropout.site,
		.scale = (float)dropout_scale(a->dropout.p),
		.row_tokens = a->rows,
		.positions = a->batch->positions,
		.token_samples = a->batch->token_samples,
		.scalars = r->scalars,
		.x = a->x.data,
		.y = a->y.data,
	};
	cuda_run(r, kernel_row_dropout(cuda_stream(r), &dropout), "row_dropout");
}
