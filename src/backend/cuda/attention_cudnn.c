#include "backend/cuda/attention_cudnn.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "backend/cuda/cudnn_graph.h"

/* Forward with and without dropout, backward; and of another shape, should there be one. */
#define PLANS 8

struct shaped_plan {
	struct cudnn_attention attention;
	struct cudnn_plan plan;
	void *workspace;
	float score_scale, minus_infinity, dropout_scale, kept; /* what the graph's scalars point to */
};

struct attention_cudnn {
	struct cuda_state *state;
	struct cudnn_library library;
	cudnnHandle_t handle;
	char name[24];
	struct shaped_plan plans[PLANS];
	int plan_count;
};

static enum status refuse(const char *what, const char *who)
{
	enum status status = error_set(ERR_USAGE, "cuDNN's attention %s: %s", what, who);
	error_hint("give --attention own");
	return status;
}

enum status attention_cudnn_open(struct attention_cudnn **out, struct cuda_state *state, enum dtype dtype)
{
	struct attention_cudnn *cudnn;
	*out = NULL;
	if (dtype != DTYPE_BF16 && dtype != DTYPE_F16)
		return refuse("is for bf16 and fp16", "not for this --precision");
	if (state->major < 9)
		return refuse("of packed rows needs a GPU of the Hopper generation or later", state->name);
	TRY(memory_new(&cudnn, 1, sizeof(*cudnn), "cuDNN"));
	cudnn->state = state;
	enum status status;
	TRY_GOTO(cudnn_library_open(&cudnn->library), fail);
	cudnn_library_name(&cudnn->library, cudnn->name);
	cudnnStatus_t error = cudnn->library.create(&cudnn->handle);
	if (error == CUDNN_STATUS_SUCCESS)
		error = cudnn->library.set_stream(cudnn->handle, state->stream);
	if (error != CUDNN_STATUS_SUCCESS) {
		status = error_set(ERR_RESOURCE, "%s does not start on '%s': %s", cudnn->name, state->name,
				   cudnn->library.error_string(error));
		goto fail;
	}
	*out = cudnn;
	return OK;
fail:
	attention_cudnn_close(cudnn);
	return status;
}

void attention_cudnn_close(struct attention_cudnn *cudnn)
{
	if (!cudnn)
		return;
	for (int i = 0; i < cudnn->plan_count; i++) {
		cudnn_plan_release(&cudnn->plans[i].plan);
		if (cudnn->plans[i].workspace)
			cudaFree(cudnn->plans[i].workspace);
	}
	if (cudnn->handle)
		cudnn->library.destroy(cudnn->handle);
	cudnn_library_close(&cudnn->library);
	free(cudnn);
}

const char *attention_cudnn_name(const struct attention_cudnn *cudnn)
{
	return cudnn->name;
}

/* Whole blocks of queries and keys. */
static int64_t round_longest(int32_t longest)
{
	return round_up(longest, 128);
}

enum status attention_cudnn_check(const struct attention_cudnn *cudnn, const struct shape_limits *limits)
{
	int32_t size = limits->hidden / limits->heads;
	if (size % 8 != 0 || size > 128)
		return refuse("takes heads of 8, 16, ... 128 columns", cudnn->name);
	if ((int64_t)limits->batch.tokens * 3 * limits->hidden > INT32_MAX)
		return refuse("counts elements with 31 bits: give a smaller batch", cudnn->name);
	return OK;
}

void attention_cudnn_lay_out(const struct shape_limits *limits, struct cudnn_scratch *out, struct arena *arena)
{
	int64_t sequences = limits->batch.sequences, longest = round_longest(limits->longest);
	*out = (struct cudnn_scratch){.sequences = sequences, .longest = longest};
	out->numbers = arena_take(arena, (size_t)(4 * (sequences + 1)) * sizeof(int32_t));
	out->seed = arena_take(arena, 2 * sizeof(int64_t));
	if (!limits->training)
		return;
	out->row_sums = arena_take(arena, (size_t)(sequences * limits->heads * longest) * sizeof(float));
	out->dq_sums = arena_take(arena, (size_t)((int64_t)limits->batch.tokens * 3 * limits->hidden) * sizeof(float));
}

/* Kept until synchronize; what follows is not computed. */
static void fail_with(struct attention_cudnn *cudnn, enum status status)
{
	if (cudnn->state->refused == OK) {
		cudnn->state->refused = status;
		cudnn->state->refusal = *error_last();
	}
}

static enum status make_plan(struct attention_cudnn *cudnn, struct shaped_plan *shaped)
{
	enum cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
	if (cudnn->plan_count == PLANS)
		return error_set(ERR_USAGE, "cuDNN's attention is used in more than %d shapes", PLANS);
	if (cudaStreamIsCapturing(cudnn->state->stream, &capturing) != cudaSuccess || capturing != cudaStreamCaptureStatusNone)
		return error_set(ERR_USAGE, "cuDNN's attention of a new shape cannot be planned while a graph is recorded");
	TRY(cudnn_plan_make(&shaped->plan, &cudnn->library, &shaped->attention, cudnn->handle, NULL, CUDNN_READY));
	cudaError_t error = cudaSuccess;
	if (shaped->plan.workspace > 0)
		error = cudaMalloc(&shaped->workspace, (size_t)shaped->plan.workspace);
	return error == cudaSuccess ? OK : cuda_error(error, "cuDNN's workspace");
}

static struct shaped_plan *find_plan(struct attention_cudnn *cudnn, const struct cudnn_attention *attention)
{
	for (int i = 0; i < cudnn->plan_count; i++)
		if (memcmp(&cudnn->plans[i].attention, attention, sizeof(*attention)) == 0)
			return &cudnn->plans[i];
	struct shaped_plan made = {
		.score_scale = (float)(1 / sqrt((double)attention->head_size)),
		.minus_infinity = -INFINITY,
		.dropout_scale = (float)(1 / (1 - attention->dropout)),
		.kept = (float)(1 - attention->dropout),
	};
	memcpy(&made.attention, attention, sizeof(*attention)); /* with the bytes between its members */
	enum status status = make_plan(cudnn, &made);
	if (status != OK) {
		struct error error = *error_last();
		cudnn_plan_release(&made.plan);
		fail_with(cudnn, error_restore(&error));
		return NULL;
	}
	cudnn->plans[cudnn->plan_count] = made;
	return &cudnn->plans[cudnn->plan_count++];
}

/* What both directions share: the batch's numbers, the plan, and the tensors that both have. */
static struct shaped_plan *prepare(const struct replica *r, const struct batch *batch, const struct dropout *dropout,
				   int32_t heads, const struct tensor *qkv, bool backward, bool saves,
				   void *tensors[CUDNN_TENSORS])
{
	struct attention_cudnn *cudnn = cuda_state(r)->cudnn;
	const struct cudnn_scratch *scratch = &cuda_scratch(r)->cudnn;
	int64_t hidden = qkv->columns / 3, each = scratch->sequences + 1;
	struct cudnn_attention attention;
	memset(&attention, 0, sizeof(attention)); /* it is compared as bytes */
	attention.dtype = qkv->dtype;
	attention.sequences = scratch->sequences;
	attention.heads = heads;
	attention.longest = scratch->longest;
	attention.head_size = hidden / heads;
	attention.dropout = dropout->p;
	attention.backward = backward;
	attention.saves = saves;
	if (cuda_state(r)->refused != OK)
		return NULL;
	struct shaped_plan *shaped = find_plan(cudnn, &attention);
	if (!shaped)
		return NULL;
	cuda_run(r,
		 kernel_cudnn_numbers(cuda_stream(r), &(struct kernel_cudnn_numbers){.starts = batch->starts,
										     .samples = batch->samples,
										     .scalars = r->scalars,
										     .sequences = batch->sequence_count,
										     .capacity = (int32_t)scratch->sequences,
										     .hidden = (int32_t)hidden,
										     .heads = heads,
										     .site = dropout->site,
										     .numbers = scratch->numbers,
										     .seed = scratch->seed}),
		 "attention");
	char *base = qkv->data;
	size_t width = (size_t)hidden * dtype_bytes(qkv->dtype);
	memset(tensors, 0, CUDNN_TENSORS * sizeof(*tensors));
	tensors[CUDNN_Q] = base;
	tensors[CUDNN_K] = base + width;
	tensors[CUDNN_V] = base + 2 * width;
	tensors[CUDNN_LENGTHS_Q] = tensors[CUDNN_LENGTHS_K] = scratch->numbers;
	tensors[CUDNN_OFFSETS_QKV] = scratch->numbers + each;
	tensors[CUDNN_OFFSETS_O] = scratch->numbers + 2 * each;
	tensors[CUDNN_OFFSETS_LSE] = scratch->numbers + 3 * each;
	tensors[CUDNN_SEED] = scratch->seed;
	tensors[CUDNN_OFFSET] = scratch->seed + 1;
	tensors[CUDNN_SCORE_SCALE] = &shaped->score_scale;
	tensors[CUDNN_MINUS_INFINITY] = &shaped->minus_infinity;
	tensors[CUDNN_DROPOUT_SCALE] = &shaped->dropout_scale;
	tensors[CUDNN_KEPT] = &shaped->kept;
	return shaped;
}

static void run(const struct replica *r, const struct shaped_plan *shaped, void *const tensors[CUDNN_TENSORS],
		const char *operation)
{
	struct attention_cudnn *cudnn = cuda_state(r)->cudnn;
	cudnnStatus_t error = cudnn_plan_run(&shaped->plan, cudnn->handle, tensors, shaped->workspace);
	if (error != CUDNN_STATUS_SUCCESS)
		fail_with(cudnn, error_set(ERR_RESOURCE, "%s failed: %s, in %s", cudnn->name, cudnn->library.error_string(error),
					   operation));
}

void attention_cudnn_fwd(struct replica *r, const struct attention_fwd *a)
{
	void *tensors[CUDNN_TENSORS];
	struct shaped_plan *shaped = prepare(r, a->batch, &a->dropout, a->heads, &a->qkv, false, a->lse.data != NULL, tensors);
	if (!shaped)
		return;
	tensors[CUDNN_O] = a->y.data;
	tensors[CUDNN_LSE] = a->lse.data;
	run(r, shaped, tensors, "attention_fwd");
}

void attention_cudnn_bwd(struct replica *r, const struct attention_bwd *a)
{
	void *tensors[CUDNN_TENSORS];
	const struct cudnn_scratch *scratch = &cuda_scratch(r)->cudnn;
	struct shaped_plan *shaped = prepare(r, a->batch, &a->dropout, a->heads, &a->qkv, true, true, tensors);
	if (!shaped)
		return;
	size_t width = (size_t)a->dy.columns * dtype_bytes(a->dy.dtype);
	char *gradients = a->dqkv.data;
	tensors[CUDNN_O] = a->y.data;
	tensors[CUDNN_DO] = a->dy.data;
	tensors[CUDNN_LSE] = a->lse.data;
	tensors[CUDNN_DQ] = gradients;
	tensors[CUDNN_DK] = gradients + width;
	tensors[CUDNN_DV] = gradients + 2 * width;
	tensors[CUDNN_ROW_SUMS] = scratch->row_sums;
	tensors[CUDNN_DQ_SUMS] = scratch->dq_sums;
	run(r, shaped, tensors, "attention_bwd");
}
