/* The output layer over the vocabulary with softmax cross entropy, its most probable entries, and the largest of each sequence.
 * Predictions are processed in chunks, where gradients replace the logits (fp32) in place. */
#include "backend/cuda/gemm.h"

/* The words of a product: the few at the end that exceed a multiple, or all others. */
struct words {
	int64_t first, count;
};

static struct words words_at_end(const struct weight *table)
{
	int64_t count = table->master.rows % WORD_MULTIPLE;
	return (struct words){table->master.rows - count, count};
}

static struct words words_before(struct words end)
{
	return (struct words){0, end.first};
}

/* Element `index` of an array. */
static const void *at(const void *array, int64_t index, enum dtype dtype)
{
	return (const char *)array + (size_t)index * dtype_bytes(dtype);
}

static const void *row_of(const struct tensor *t, int64_t row)
{
	return at(t->data, row * t->columns, t->dtype);
}

static void logits_of(struct replica *r, const char *operation, const struct tensor *x, const struct weight *table, int64_t first,
		      int64_t rows, struct words words)
{
	struct cuda_scratch *scratch = cuda_scratch(r);
	cuda_product(r, &(struct product){
				.operation = operation,
				.inputs = x->dtype,
				.output = DTYPE_F32,
				.rows = rows,
				.columns = words.count,
				.depth = x->columns,
				.a = row_of(x, first),
				.a_stride = x->columns,
				.b = at(cuda_weight_operand(r, table), words.first * x->columns, x->dtype),
				.b_stride = x->columns,
				.b_transposed = true,
				.y = scratch->logits + words.first,
				.y_stride = scratch->logit_stride,
			});
}

static void compute_logits(struct replica *r, const char *operation, const struct tensor *x, const struct weight *table,
			   int64_t first, int64_t rows)
{
	struct words end = words_at_end(table);
	logits_of(r, operation, x, table, first, rows, words_before(end));
	logits_of(r, operation, x, table, first, rows, end);
}

/* Stride of a chunk's gradients, which replace its logits. */
static int64_t gradient_stride(struct replica *r, enum dtype dtype)
{
	return cuda_scratch(r)->logit_stride * (int64_t)(sizeof(float) / dtype_bytes(dtype));
}

/* The words' part of the gradients of a chunk's rows of x; added to the part that is there already. */
static void gradient_of_rows(struct replica *r, const struct vocab_xent *a, int64_t first, int64_t rows, struct words words,
			     bool adds)
{
	enum dtype dtype = a->x.dtype;
	int64_t width = a->x.columns;
	void *dx = (void *)row_of(&a->dx, first);
	cuda_product(r, &(struct product){
				.operation = "vocab_xent",
				.inputs = dtype,
				.output = a->dx.dtype,
				.rows = rows,
				.columns = width,
				.depth = words.count,
				.a = at(cuda_scratch(r)->logits, words.first, dtype),
				.a_stride = gradient_stride(r, dtype),
				.b = at(cuda_weight_operand(r, a->table), words.first * width, dtype),
				.b_stride = width,
				.add = adds ? dx : NULL,
				.y = dx,
				.y_stride = width,
			});
}

/* The gradients of the words' rows of the table. */
static void gradient_of_words(struct replica *r, const struct vocab_xent *a, int64_t first, int64_t rows, struct words words,
			      bool overwrite)
{
	enum dtype dtype = a->x.dtype;
	int64_t width = a->x.columns;
	float *gradient = (float *)a->table->gradient.data + words.first * width;
	cuda_product(r, &(struct product){
				.operation = "vocab_xent",
				.inputs = dtype,
				.output = DTYPE_F32,
				.rows = words.count,
				.columns = width,
				.depth = rows,
				.a = at(cuda_scratch(r)->logits, words.first, dtype),
				.a_stride = gradient_stride(r, dtype),
				.a_transposed = true,
				.b = row_of(&a->x, first),
				.b_stride = width,
				.add = overwrite ? NULL : gradient,
				.y = gradient,
				.y_stride = width,
			});
}

/* From the gradients of a chunk's logits, computes those of its rows of x, of the table and of the bias. */
static void chunk_backward(struct replica *r, const struct vocab_xent *a, int64_t first, int64_t rows)
{
	struct cuda_scratch *scratch = cuda_scratch(r);
	struct words end = words_at_end(a->table), others = words_before(end);
	bool overwrite = a->overwrite && first == 0;
	/* The few words first: their part is small, so rounding it in between costs nothing. */
	if (end.count > 0)
		gradient_of_rows(r, a, first, rows, end, false);
	if (others.count > 0)
		gradient_of_rows(r, a, first, rows, others, end.count > 0);
	gradient_of_words(r, a, first, rows, others, overwrite);
	gradient_of_words(r, a, first, rows, end, overwrite);
	cuda_column_sums(r,
			 &(struct kernel_columns){
				 .dtype = a->x.dtype,
				 .rows = rows,
				 .columns = a->table->master.rows,
				 .stride = gradient_stride(r, a->x.dtype),
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

void cuda_vocab_max_fwd(struct replica *r, const struct vocab_max_fwd *a)
{
	struct cuda_scratch *scratch = cuda_scratch(r);
	for (int64_t first = 0; first < a->x.rows; first += scratch->logit_rows) {
		int64_t left = a->x.rows - first, rows = left < scratch->logit_rows ? left : scratch->logit_rows;
		compute_logits(r, "vocab_max_fwd", &a->x, a->table, first, rows);
		struct kernel_vocab_max max = {
			.first = (int)first,
			.count = (int)rows,
			.sequences = a->batch->sequence_count,
			.vocab = (int)a->y.columns,
			.stride = scratch->logit_stride,
			.starts = a->batch->starts,
			.logits = scratch->logits,
			.bias = a->bias->master.data,
			.y = a->y.data,
			.rows = a->rows,
		};
		cuda_run(r, kernel_vocab_max(cuda_stream(r), &max), "vocab_max_fwd");
	}
}

void cuda_vocab_max_bwd(struct replica *r, const struct vocab_max_bwd *a)
{
	struct kernel_vocab_max_bwd max = {
		.dtype = a->x.dtype,
		.overwrite = a->overwrite,
		.tokens = (int)a->x.rows,
		.sequences = a->batch->sequence_count,
		.vocab = (int)a->y.columns,
		.columns = (int)a->x.columns,
		.starts = a->batch->starts,
		.rows = a->rows,
		.x = a->x.data,
		.table = cuda_weight_operand(r, a->table),
		.dy = a->dy.data,
		.y = a->y.data,
		.dx = a->dx.data,
		.table_gradient = a->table->gradient.data,
		.bias_gradient = a->bias->gradient.data,
		.scalars = r->scalars,
	};
	cuda_run(r, kernel_vocab_max_bwd(cuda_stream(r), &max), "vocab_max_bwd");
}
