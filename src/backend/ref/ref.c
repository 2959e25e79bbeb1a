/* The reference back end: its memory, its replicas, and helpers shared by its operations. */
#include "backend/ref/ref.h"

#include <stdlib.h>
#include <string.h>
#include "base/memory.h"

/* Blocks handed out by allocate; freed one by one, or all at close. */
struct ref_state {
	struct arena *blocks;
	int64_t count, capacity;
};

static enum status ref_allocate(struct backend *be, void **out, size_t bytes, const char *what)
{
	struct ref_state *state = be->state;
	TRY(memory_grow(&state->blocks, &state->capacity, state->count + 1, sizeof *state->blocks, what));
	struct arena block;
	TRY(arena_create(&block, bytes, what));
	state->blocks[state->count++] = block;
	*out = block.base;
	return OK;
}

static void ref_release(struct backend *be, void *memory)
{
	struct ref_state *state = be->state;
	if (memory == NULL)
		return;
	int64_t i = 0;
	while (i < state->count && state->blocks[i].base != memory)
		i++;
	BUG_IF(i == state->count);
	arena_release(&state->blocks[i]);
	state->blocks[i] = state->blocks[--state->count];
}

static void ref_copy_to_device(struct backend *be, void *device, const void *host, size_t bytes)
{
	(void)be;
	memcpy(device, host, bytes);
}

static void ref_copy_to_host(struct backend *be, void *host, const void *device, size_t bytes)
{
	(void)be;
	memcpy(host, device, bytes);
}

/* A worker's scratch: two rows of attention scores, or one row of logits over the vocabulary. */
static int64_t worker_scratch(const struct shape_limits *limits)
{
	int64_t scores = 2 * (int64_t)limits->longest;
	return scores > limits->vocab ? scores : limits->vocab;
}

/* Shared by all workers: loss, correct and log-sum-exp of each prediction. */
static int64_t shared_scratch(const struct shape_limits *limits)
{
	return 3 * (int64_t)most_labels(&limits->batch);
}

/* For an operand rounded to FP8 or int8; a product has up to two besides the weight. */
static int64_t operand_scratch(const struct backend *be, const struct shape_limits *limits)
{
	int64_t rows = limits->batch.tokens, columns = 3 * (int64_t)widest_norm(limits);
	return be->fp8 || be->int8 ? rows * (limits->intermediate > columns ? limits->intermediate : columns) : 0;
}

static size_t ref_workspace_bytes(struct backend *be, const struct shape_limits *limits)
{
	int64_t count =
		pool_threads(be->pool) * worker_scratch(limits) + shared_scratch(limits) + 2 * operand_scratch(be, limits);
	return (size_t)count * sizeof(double);
}

/* A replica's private state. */
struct ref_replica {
	int64_t per_worker, shared, operand; /* in doubles, within the workspace */
	int threads;
};

static enum status ref_replica_create(struct backend *be, struct replica *replica, const struct shape_limits *limits)
{
	*replica = (struct replica){.backend = be, .operations = be->operations};
	replica->workspace_bytes = ref_workspace_bytes(be, limits);
	struct ref_replica *state = NULL;
	enum status status;
	TRY_GOTO(memory_new(&state, 1, sizeof *state, "a replica of the reference back end"), failed);
	replica->state = state;
	*state = (struct ref_replica){.per_worker = worker_scratch(limits),
				      .shared = shared_scratch(limits),
				      .operand = operand_scratch(be, limits),
				      .threads = pool_threads(be->pool)};
	void *memory;
	TRY_GOTO(ref_allocate(be, &memory, sizeof(struct scalars), "the scalars of a step"), failed);
	replica->scalars = memory;
	TRY_GOTO(ref_allocate(be, &memory, sizeof(struct accumulators), "the sums of a step"), failed);
	replica->accumulators = memory;
	TRY_GOTO(ref_allocate(be, &replica->workspace, replica->workspace_bytes, "the workspace"), failed);
	return OK;
failed:
	be->functions->replica_release(replica);
	return status;
}

static void ref_replica_release(struct replica *replica)
{
	ref_release(replica->backend, replica->workspace);
	ref_release(replica->backend, replica->accumulators);
	ref_release(replica->backend, replica->scalars);
	free(replica->state);
	*replica = (struct replica){.backend = NULL};
}

static void ref_upload(struct replica *replica, const struct batch *host, struct batch *device)
{
	(void)replica;
	*device = *host;
}

static enum status ref_synchronize(struct replica *replica)
{
	(void)replica;
	return OK;
}

static void ref_close(struct backend *be)
{
	struct ref_state *state = be->state;
	if (state == NULL)
		return;
	for (int64_t i = 0; i < state->count; i++)
		arena_release(&state->blocks[i]);
	free(state->blocks);
	free(state);
	be->state = NULL;
}

static const struct backend_functions functions = {
	.allocate = ref_allocate,
	.release = ref_release,
	.to_device = ref_copy_to_device,
	.to_host = ref_copy_to_host,
	.weight_copy_bytes = ref_weight_copy_bytes,
	.weights_refresh = ref_weights_refresh,
	.workspace_bytes = ref_workspace_bytes,
	.replica_create = ref_replica_create,
	.replica_release = ref_replica_release,
	.upload = ref_upload,
	.synchronize = ref_synchronize,
	.close = ref_close,
};

static const struct operations operations = {
	.embed_fwd = ref_embed_fwd,
	.embed_bwd = ref_embed_bwd,
	.linear_fwd = ref_linear_fwd,
	.linear_gelu_fwd = ref_linear_gelu_fwd,
	.gated_fwd = ref_gated_fwd,
	.gated_bwd = ref_gated_bwd,
	.linear_norm_fwd = ref_linear_norm_fwd,
	.norm_bwd = ref_norm_bwd,
	.linear_bwd = ref_linear_bwd,
	.rotary = ref_rotary,
	.attention_fwd = ref_attention_fwd,
	.attention_bwd = ref_attention_bwd,
	.gather_fwd = ref_gather_fwd,
	.gather_bwd = ref_gather_bwd,
	.pooling_fwd = ref_pooling_fwd,
	.pooling_bwd = ref_pooling_bwd,
	.vocab_xent = ref_vocab_xent,
	.vocab_topk = ref_vocab_topk,
	.vocab_max_fwd = ref_vocab_max_fwd,
	.vocab_max_bwd = ref_vocab_max_bwd,
	.xent = ref_xent,
	.squared_error = ref_squared_error,
	.binary_xent = ref_binary_xent,
	.group_xent = ref_group_xent,
	.list_loss = ref_list_loss,
	.segment_xent = ref_segment_xent,
	.pointer_xent = ref_pointer_xent,
	.soft_loss = ref_soft_loss,
	.hidden_error = ref_hidden_error,
	.row_dropout = ref_row_dropout,
	.sumsq_finite = ref_sumsq_finite,
	.adamw = ref_adamw,
	.lamb_norms = ref_lamb_norms,
	.lamb_apply = ref_lamb_apply,
};

enum status ref_backend_open(struct backend *be, const struct backend_settings *settings)
{
	*be = (struct backend){.name = "ref",
			       .description = settings->fp8    ? "reference, float64 in plain loops, linear layers as if in FP8"
					      : settings->int8 ? "reference, float64 in plain loops, linear layers in int8"
							       : "reference, float64 in plain loops",
			       .numerics = settings->fp8    ? "reference, float64, linear layers as if in FP8"
					   : settings->int8 ? "reference, float64, linear layers in int8"
							    : "reference, float64",
			       .dtype = DTYPE_F64,
			       .master_dtype = DTYPE_F64,
			       .fp8 = settings->fp8,
			       .inference = settings->inference,
			       .int8 = settings->int8,
			       .update_elements = INT64_MAX,
			       .functions = &functions,
			       .operations = &operations,
			       .pool = settings->pool};
	return memory_new(&be->state, 1, sizeof(struct ref_state), "the reference back end");
}

void ref_run(struct replica *r, int64_t count, pool_task *task, const void *arguments)
{
	struct ref_call call = {r, arguments};
	pool_run(r->backend->pool, count, task, &call);
}

double *ref_scratch(struct replica *r, int worker, int64_t count)
{
	const struct ref_replica *state = r->state;
	BUG_IF(count > state->per_worker || worker >= state->threads);
	return (double *)r->workspace + worker * state->per_worker;
}

double *ref_shared_scratch(struct replica *r, int64_t count)
{
	const struct ref_replica *state = r->state;
	BUG_IF(count > state->shared);
	return (double *)r->workspace + state->threads * state->per_worker;
}

double *ref_operand_scratch(struct replica *r, int which, int64_t count)
{
	const struct ref_replica *state = r->state;
	BUG_IF(count > state->operand);
	return (double *)r->workspace + state->threads * state->per_worker + state->shared + which * state->operand;
}

double ref_dot(const double *a, const double *b, int64_t count)
{
	double sum = 0;
#pragma omp simd reduction(+ : sum) simdlen(8)
	for (int64_t i = 0; i < count; i++)
		sum += a[i] * b[i];
	return sum;
}

/* Columns per task of a column sum. */
#define COLUMN_BLOCK 64

struct column_sums {
	const struct tensor *x, *out;
	bool overwrite;
};

static void column_sums_task(void *context, int64_t block, int worker)
{
	(void)worker;
	const struct ref_call *call = context;
	const struct column_sums *a = call->arguments;
	int64_t first = block * COLUMN_BLOCK, end = first + COLUMN_BLOCK;
	if (end > a->x->columns)
		end = a->x->columns;
	double *out = a->out->data, sum[COLUMN_BLOCK] = {0};
	for (int64_t i = 0; i < a->x->rows; i++)
		for (int64_t j = first; j < end; j++)
			sum[j - first] += ref_row(a->x, i)[j];
	for (int64_t j = first; j < end; j++)
		out[j] = (a->overwrite ? 0 : out[j]) + sum[j - first];
}

void ref_column_sums(struct replica *r, const struct tensor *x, const struct tensor *out, bool overwrite)
{
	struct column_sums a = {x, out, overwrite};
	ref_run(r, (x->columns + COLUMN_BLOCK - 1) / COLUMN_BLOCK, column_sums_task, &a);
}

void ref_dropout_row(const struct replica *r, const struct dropout *dropout, const struct batch *batch, int64_t token,
		     double *row, int64_t columns)
{
	if (dropout->p <= 0)
		return;
	uint32_t threshold = dropout_threshold(dropout->p);
	double scale = dropout_scale(dropout->p);
	for (int64_t first = 0; first < columns; first += 8) {
		uint16_t u[8];
		dropout_block(r->scalars->seed, (uint32_t)(first / 8), (uint32_t)batch->positions[token], dropout->site,
			      batch->token_samples[token], u);
		for (int64_t j = first; j < first + 8 && j < columns; j++)
			row[j] *= u[j - first] < threshold ? 0 : scale;
	}
}

void ref_row_dropout(struct replica *r, const struct row_dropout *a)
{
	for (int64_t i = 0; i < a->x.rows; i++) {
		double *y = ref_row(&a->y, i);
		memmove(y, ref_row(&a->x, i), (size_t)a->x.columns * sizeof *y);
		ref_dropout_row(r, &a->dropout, a->batch, a->rows ? a->rows[i] : i, y, a->x.columns);
	}
}
