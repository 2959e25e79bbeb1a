/* Embeddings, and the gradients of their tables. */
#include "backend/cuda/state.h"

void cuda_embed_fwd(struct replica *r, const struct embed_fwd *a)
{
	const struct batch *batch = a->batch;
	struct kernel_embed_fwd embed = {
		.dtype = a->y.dtype,
		.tokens = a->y.rows,
		.columns = a->y.columns,
		.ids = batch->ids,
		.types = batch->types,
		.positions = batch->positions,
		.word = a->word->master.data,
		.position = cuda_vector(a->position),
		.type = cuda_vector(a->type),
		.gamma = a->gamma->master.data,
		.beta = cuda_vector(a->beta),
		.epsilon = (float)a->epsilon,
		.dropout = cuda_dropout(r, &a->dropout, batch),
		.sum = a->sum.data,
		.y = a->y.data,
		.mean = a->mean.data,
		.rstd = a->rstd.data,
		.largest = cuda_largest(&a->y),
	};
	cuda_run(r, kernel_embed_fwd(cuda_stream(r), &embed), "embed_fwd");
}

static void zero(struct replica *r, float *from, int64_t count)
{
	if (count > 0)
		cuda_run(r, cudaMemsetAsync(from, 0, (size_t)count * sizeof(float), cuda_stream(r)), "embed_bwd");
}

static void word_gradient(struct replica *r, const struct embed_bwd *a)
{
	const struct tensor *gradient = &a->word->gradient;
	if (a->overwrite_word)
		zero(r, gradient->data, gradient->rows * gradient->columns);
	struct kernel_word_gradient word = {
		.dtype = a->dy.dtype,
		.tokens = a->dy.rows,
		.columns = a->dy.columns,
		.dy = a->dy.data,
		.ids = a->batch->ids,
		.order = a->batch->id_order,
		.gradient = gradient->data,
		.edges = cuda_scratch(r)->embedding,
	};
	cuda_run(r, kernel_word_gradient(cuda_stream(r), &word), "embed_bwd");
}

/* Many short sequences are divided into parts, to fill the GPU. */
static void position_gradient(struct replica *r, const struct embed_bwd *a)
{
	const struct tensor *gradient = &a->position->gradient;
	int32_t longest = a->dy.rows > 0 ? a->batch->longest : 0, parts = cuda_position_parts(a->batch->sequence_count, longest);
	int64_t count = longest * gradient->columns;
	struct kernel_position_gradient position = {
		.dtype = a->dy.dtype,
		.sequences = a->batch->sequence_count,
		.longest = longest,
		.part_count = parts,
		.columns = a->dy.columns,
		.dy = a->dy.data,
		.starts = a->batch->starts,
		.parts = cuda_scratch(r)->embedding,
	};
	if (count > 0) {
		cuda_run(r, kernel_position_gradient(cuda_stream(r), &position), "embed_bwd");
		cuda_add_parts(r, position.parts, parts, count, gradient->data, a->overwrite, "embed_bwd");
	}
	if (a->overwrite)
		zero(r, (float *)gradient->data + count, gradient->rows * gradient->columns - count);
}

static void type_gradient(struct replica *r, const struct embed_bwd *a)
{
	const struct tensor *gradient = &a->type->gradient;
	/* Batches have no other types than 0 and 1, however many the model has. */
	int kinds = gradient->rows < 2 ? 1 : 2;
	int64_t count = kinds * gradient->columns;
	struct kernel_type_gradient type = {
		.dtype = a->dy.dtype,
		.tokens = a->dy.rows,
		.columns = a->dy.columns,
		.kinds = kinds,
		.dy = a->dy.data,
		.types = a->batch->types,
		.parts = cuda_scratch(r)->parts,
	};
	cuda_run(r, kernel_type_gradient(cuda_stream(r), &type), "embed_bwd");
	cuda_add_parts(r, type.parts, row_parts(type.tokens), count, gradient->data, a->overwrite, "embed_bwd");
	if (a->overwrite)
		zero(r, (float *)gradient->data + count, gradient->rows * gradient->columns - count);
}

void cuda_embed_bwd(struct replica *r, const struct embed_bwd *a)
{
	/* dy becomes the gradient of the sum. */
	cuda_norm_backward(r, "embed_bwd", a->gamma, a->beta, NULL, a->overwrite,
			   &(struct kernel_norm_bwd){
				   .dtype = a->dy.dtype,
				   .rows = a->dy.rows,
				   .columns = a->dy.columns,
				   .dy = a->dy.data,
				   .sum = a->sum.data,
				   .mean = a->mean.data,
				   .rstd = a->rstd.data,
				   .gamma = a->gamma->master.data,
				   .dropout = cuda_dropout(r, &a->dropout, a->batch),
				   .drops_dy = true,
				   .dresidual = a->dy.data,
			   });
	word_gradient(r, a);
	if (a->position)
		position_gradient(r, a);
	if (a->type)
		type_gradient(r, a);
}
