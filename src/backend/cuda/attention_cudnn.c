#include "backend/cuda/attention_cudnn.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "backend/cuda/cudnn_graph.h"
#include "base/log.h"

/* Forward with and without dropout, and backward, with room for further shapes. */
#define PLANS 8
/* Bytes of backward's workspace in addition to its scores. */
#define WORKSPACE_MORE ((size_t)4 << 20)
/* Sequences in the trial that measures the dropout rate. */
#define TRIAL_SEQUENCES 4

struct shaped_plan {
	struct cudnn_attention attention;
	struct cudnn_plan plan;
	void *workspace;                                        /* allocated if the replica's scratch is too small */
	float score_scale, minus_infinity, dropout_scale, kept; /* the graph's scalars point here */
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
		return refuse("on packed rows needs a GPU of the Hopper generation or later", state->name);
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

void attention_cudnn_library(struct library_list *list)
{
	struct cudnn_library library;
	char name[24] = "cuDNN ";
	enum status status = cudnn_library_open(&library);
	if (status == OK)
		cudnn_library_name(&library, name);
	library_list_add_loaded(list, "cuDNN", status, name + strlen("cuDNN "));
	if (status == OK)
		cudnn_library_close(&library);
}

/* Rounds up to whole blocks of queries and keys. */
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
	out->row_sums = arena_take(arena, (size_t)((int64_t)limits->batch.tokens * limits->heads) * sizeof(float));
	out->workspace_bytes = (size_t)(sequences * limits->heads * longest * longest) * 2 + WORKSPACE_MORE;
	out->workspace = arena_take(arena, out->workspace_bytes);
}

/* Keeps the error until synchronize; everything after it is skipped. */
static void fail_with(struct attention_cudnn *cudnn, enum status status)
{
	if (cudnn->state->refused == OK) {
		cudnn->state->refused = status;
		cudnn->state->refusal = *error_last();
	}
}

static void set_scalars(const struct shaped_plan *shaped, void *tensors[CUDNN_TENSORS])
{
	/* cuDNN only reads them. */
	tensors[CUDNN_SCORE_SCALE] = (void *)(uintptr_t)&shaped->score_scale;
	tensors[CUDNN_MINUS_INFINITY] = (void *)(uintptr_t)&shaped->minus_infinity;
	tensors[CUDNN_DROPOUT_SCALE] = (void *)(uintptr_t)&shaped->dropout_scale;
	tensors[CUDNN_KEPT] = (void *)(uintptr_t)&shaped->kept;
}

/* ---- The dropout rate ---- */

/* A forward pass of a few whole sequences whose keys are all equal and whose values are 1: each output is the share of keys
 * that were kept, times dropout's scale. */
struct trial {
	int64_t tokens, hidden;
	void *memory; /* in device memory; contains the following arrays */
	int32_t *numbers;
	int64_t *seed;
	uint16_t *qkv, *y;
	float *lse;
};

static size_t trial_lay_out(struct trial *t, const struct cudnn_attention *a, void *base)
{
	struct arena arena = {.base = base, .capacity = SIZE_MAX};
	int64_t sequences = a->sequences < TRIAL_SEQUENCES ? a->sequences : TRIAL_SEQUENCES;
	*t = (struct trial){.tokens = sequences * a->longest, .hidden = a->heads * a->head_size, .memory = base};
	t->numbers = arena_take(&arena, (size_t)(4 * (a->sequences + 1)) * sizeof(*t->numbers));
	t->seed = arena_take(&arena, 2 * sizeof(*t->seed));
	t->qkv = arena_take(&arena, (size_t)(t->tokens * 3 * t->hidden) * sizeof(*t->qkv));
	t->y = arena_take(&arena, (size_t)(t->tokens * t->hidden) * sizeof(*t->y));
	t->lse = arena_take(&arena, (size_t)(t->tokens * a->heads) * sizeof(*t->lse));
	return arena.used;
}

/* Fills the host's copy with the initial contents of the device's block: lengths, offsets, a seed; zeros, and values of 1. */
static void trial_fill(const struct trial *t, const struct cudnn_attention *a)
{
	int64_t each = a->sequences + 1;
	for (int64_t i = 0; i < each; i++) {
		int64_t first = i * a->longest < t->tokens ? i * a->longest : t->tokens;
		t->numbers[i] = first < t->tokens ? (int32_t)a->longest : 0;
		t->numbers[each + i] = (int32_t)(first * 3 * t->hidden);
		t->numbers[2 * each + i] = (int32_t)(first * t->hidden);
		t->numbers[3 * each + i] = (int32_t)(first * a->heads);
	}
	t->seed[0] = 1;
	for (int64_t i = 0; i < t->tokens; i++)
		for (int64_t c = 0; c < t->hidden; c++)
			t->qkv[(3 * i + 2) * t->hidden + c] = a->dtype == DTYPE_BF16 ? 0x3f80 : 0x3c00;
}

static double wide(uint16_t bits, enum dtype dtype)
{
	if (dtype == DTYPE_F16) /* range 0 to 2: normal numbers only */
		return bits == 0 ? 0 : ldexp(1024 + (bits & 1023), (bits >> 10) - 25);
	uint32_t word = (uint32_t)bits << 16;
	float number;
	memcpy(&number, &word, sizeof(number));
	return number;
}

/* Some cuDNN kernels have been reported to round dropout to sixteenths: a run must not silently train with 0.125 instead of
 * 0.1. */
static enum status check_dropout(struct attention_cudnn *cudnn, const struct shaped_plan *shaped)
{
	const struct cudnn_attention *a = &shaped->attention;
	cudaStream_t stream = cudnn->state->stream;
	struct trial device, host = {0};
	void *memory = NULL, *copy = NULL;
	enum status status = OK;
	size_t bytes = trial_lay_out(&device, a, NULL);
	TRY(memory_new(&copy, (int64_t)bytes, 1, "cuDNN's dropout"));
	cudaError_t error = cudaMalloc(&memory, bytes);
	if (error != cudaSuccess)
		goto done;
	trial_lay_out(&device, a, memory);
	trial_lay_out(&host, a, copy);
	trial_fill(&host, a);
	error = cudaMemcpyAsync(memory, copy, bytes, cudaMemcpyHostToDevice, stream);
	if (error != cudaSuccess)
		goto done;
	void *tensors[CUDNN_TENSORS] = {0};
	int64_t each = a->sequences + 1;
	tensors[CUDNN_Q] = device.qkv;
	tensors[CUDNN_K] = device.qkv + device.hidden;
	tensors[CUDNN_V] = device.qkv + 2 * device.hidden;
	tensors[CUDNN_O] = device.y;
	tensors[CUDNN_LSE] = device.lse;
	tensors[CUDNN_LENGTHS_Q] = tensors[CUDNN_LENGTHS_K] = device.numbers;
	tensors[CUDNN_OFFSETS_QKV] = device.numbers + each;
	tensors[CUDNN_OFFSETS_O] = device.numbers + 2 * each;
	tensors[CUDNN_OFFSETS_LSE] = device.numbers + 3 * each;
	tensors[CUDNN_SEED] = device.seed;
	tensors[CUDNN_OFFSET] = device.seed + 1;
	set_scalars(shaped, tensors);
	cudnnStatus_t ran = cudnn_plan_run(&shaped->plan, cudnn->handle, tensors, shaped->workspace);
	error = cudaMemcpyAsync(copy, memory, bytes, cudaMemcpyDeviceToHost, stream);
	if (error == cudaSuccess)
		error = cudaStreamSynchronize(stream);
	if (error != cudaSuccess)
		goto done;
	double sum = 0, drawn = (double)(device.tokens * a->heads);
	for (int64_t i = 0; i < device.tokens; i++)
		for (int64_t head = 0; head < a->heads; head++)
			sum += wide(host.y[i * device.hidden + head * a->head_size], a->dtype);
	double dropped = 1 - sum / drawn * (1 - a->dropout);
	double deviation = sqrt(a->dropout * (1 - a->dropout) / (drawn * (double)a->longest));
	log_detail("%s drops %.5f of the attention probabilities; requested: %g", cudnn->name, dropped, a->dropout);
	if (ran != CUDNN_STATUS_SUCCESS) {
		status = error_set(ERR_RESOURCE, "%s failed: %s while its dropout was being counted", cudnn->name,
				   cudnn->library.error_string(ran));
	} else if (!(fabs(dropped - a->dropout) <= 6 * deviation + 2e-3)) {
		status = error_set(ERR_USAGE, "%s drops %.4f of the attention probabilities instead of %g", cudnn->name, dropped,
				   a->dropout);
		error_hint("give --attention own, or an --attention_probs_dropout_prob that is a multiple of 1/16");
	}
done:
	if (error != cudaSuccess)
		status = cuda_error(error, "cuDNN's dropout");
	if (memory)
		cudaFree(memory);
	free(copy);
	return status;
}

/* ---- Plans ---- */

static enum status make_plan(struct attention_cudnn *cudnn, struct shaped_plan *shaped, size_t workspace_bytes)
{
	enum cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
	if (cudnn->plan_count == PLANS)
		return error_set(ERR_USAGE, "cuDNN's attention is used in more than %d shapes", PLANS);
	if (cudaStreamIsCapturing(cudnn->state->stream, &capturing) != cudaSuccess || capturing != cudaStreamCaptureStatusNone)
		return error_set(ERR_USAGE, "cuDNN's attention of a new shape cannot be planned while a graph is recorded");
	TRY(cudnn_plan_make(&shaped->plan, &cudnn->library, &shaped->attention, cudnn->handle, NULL, CUDNN_READY));
	cudaError_t error = cudaSuccess;
	bool counts = shaped->attention.dropout > 0 && !shaped->attention.backward;
	if (shaped->plan.workspace > 0 && (counts || (size_t)shaped->plan.workspace > workspace_bytes))
		error = cudaMalloc(&shaped->workspace, (size_t)shaped->plan.workspace);
	if (error != cudaSuccess)
		return cuda_error(error, "cuDNN's workspace");
	return counts ? check_dropout(cudnn, shaped) : OK;
}

static struct shaped_plan *find_plan(struct attention_cudnn *cudnn, const struct cudnn_attention *attention,
				     size_t workspace_bytes)
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
	memcpy(&made.attention, attention, sizeof(*attention)); /* including padding bytes */
	enum status status = make_plan(cudnn, &made, workspace_bytes);
	if (status != OK) {
		struct error error = *error_last();
		cudnn_plan_release(&made.plan);
		if (made.workspace)
			cudaFree(made.workspace);
		fail_with(cudnn, error_restore(&error));
		return NULL;
	}
	cudnn->plans[cudnn->plan_count] = made;
	return &cudnn->plans[cudnn->plan_count++];
}

/* Common to both directions: the batch's numbers, the plan, and the shared tensors. */
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
	struct shaped_plan *shaped = find_plan(cudnn, &attention, scratch->workspace_bytes);
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
	set_scalars(shaped, tensors);
	return shaped;
}

static void run(const struct replica *r, const struct shaped_plan *shaped, void *const tensors[CUDNN_TENSORS],
		const char *operation)
{
	struct attention_cudnn *cudnn = cuda_state(r)->cudnn;
	cudnnStatus_t error = cudnn_plan_run(&shaped->plan, cudnn->handle, tensors,
					     shaped->workspace ? shaped->workspace : cuda_scratch(r)->cudnn.workspace);
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
	run(r, shaped, tensors, "attention_bwd");
}
