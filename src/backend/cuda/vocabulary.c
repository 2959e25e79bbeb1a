/* The output layer over the vocabulary with softmax cross entropy, and its most probable entries. Predictions are processed in
 * chunks, where gradients replace the logits (fp32) in place. */
#include "backend/cuda/gemm.h"

static const void *row_of(const struct tensor *t, int64_t row)
{
	return (const char *)t->data + (size_t)(row * t->columns) * dtype_bytes(t->dtype);
}

static void compute_logits(struct replica *r, const char *operation, const struct tensor *x, const struct weight *table,
			   int64_t first, int64_t rows)
{
	struct cuda_scratch *scratch = cuda_scratch(r);
	cuda_product(r, &(struct product){
				.operation = operation,
				.inputs = x->dtype,
				.output = DTYPE_F32,
				.rows = rows,
				.columns = table->master.rows,
				.depth = x->columns,
				.a = row_of(x, first),
				.a_stride = x->columns,
				.b = cuda_weight_operand(r, table),
				.b_stride = x->columns,
				.b_transposed = true,
				.y = scratch->logits,
				.y_stride = scratch->logit_stride,
			});
}

/* From the gradients of a chunk's logits, computes those of its rows of x, of the table and of the bias. */
static void chunk_backward(struct replica *r, const struct vocab_xent *a, int64_t first, int64_t rows)
{
	struct cuda_scratch *scratch = cuda_scratch(r);
	int64_t vocab = a->table->master.rows, width = a->x.columns;
	int64_t stride = scratch->logit_stride * (int64_t)(sizeof(float) / dtype_bytes(a->x.dtype));
	bool overwrite = a->overwrite && first == 0;
	cuda_product(r, &(struct product){
				.operation = "vocab_xent",
				.inputs = a->x.dtype,
				.output = a->dx.dtype,
				.rows = rows,
				.columns = width,
				.depth = vocab,
				.a = scratch->logits,
				.a_stride = stride,
				.b = cuda_weight_operand(r, a->table),
				.b_stride = width,
				.y = (void *)row_of(&a->dx, first),
				.y_stride = width,
			});
	cuda_product(r, &(struct product){
				.operation = "vocab_xent",
				.inputs = a->x.dtype,
				.output = DTYPE_F32,
				.rows = vocab,
				.columns = width,
				.depth = rows,
				.a = scratch->logits,
				.a_stride = stride,
				.a_transposed = true,
				.b = row_of(&a->x, first),
				.b_stride = width,
				.add = overwrite ? NULL : a->table->gradient.data,
				.y = a->table->gradient.data,
				.y_stride = width,
			});
	cuda_column_sums(r,
			 &(struct kernel_columns){
				 .dtype = a->x.dtype,
				 .rows = rows,
				 .columns = vocab,
				 .stride = stride,
				 .dx = scratch->logits,
			 },
			 a->bias, overwrite, "vocab_xent");
}

void cuda_vocab_xent(struct replica *r, const struct vocab_xent *a)
{
	struct cuda_scratch *scratch = cuda_scratch(r);
	if (a->training && a->overwrite && a->x.rows == 0)
		chunk_backward(r, a, 0, 0); /* zeroes the gradients */
	for (int64_t first = 0; first < a->x.rows; first += scratch->logit_rows) {
		int64_t left = a->x.rows - first, rows = left < scratch->logit_rows ? left : scratch->logit_rows;
		compute_logits(r, "vocab_xent", &a->x, a->table, first, rows);
		struct kernel_vocab_xent xent = {
			.head = a->head,
			.dtype = a->x.dtype,
			.rows = rows,
			.stride = scratch->logit_stride,
			.vocab = (int)a->table->master.rows,
			.logits = scratch->logits,
			.bias = a->bias->master.data,
			.weights = a->weights + first,
			.labels = a->labels + first,
			.training = a->training,
			.scalars = r->scalars,
			.losses = a->losses ? a->losses + first : scratch->losses,
			.corrects = scratch->losses + scratch->loss_rows,
			.loss = a->loss,
			.correct = a->correct,
		};
		cuda_run(r, kernel_vocab_xent(cuda_stream(r), &xent), "vocab_xent");
		if (a->training)
			chunk_backward(r, a, first, rows);
	}
}

void cuda_vocab_topk(struct replica *r, const struct vocab_topk *a)
{
	struct cuda_scratch *scratch = cuda_scratch(r);
	for (int64_t first = 0; first < a->x.rows; first += scratch->logit_rows) {
		int64_t left = a->x.rows - first, rows = left < scratch->logit_rows ? left : scratch->logit_rows;
		compute_logits(r, "vocab_topk", &a->x, a->table, first, rows);
		struct kernel_vocab_topk topk = {
			.rows = rows,
			.stride = scratch->logit_stride,
			.vocab = (int)a->table->master.rows,
			.k = a->k,
			.logits = scratch->logits,
			.bias = a->bias->master.data,
			.ids = a->ids + first * a->k,
			.probabilities = a->probabilities + first * a->k,
		};
		cuda_run(r, kernel_vocab_topk(cuda_stream(r), &topk), "vocab_topk");
	}
}
