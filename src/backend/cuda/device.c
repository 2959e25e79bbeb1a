/* Opens the device, and creates replicas. */
#include "backend/cuda/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "backend/cuda/fill.h"
#include "backend/cuda/gemm.h"
#include "backend/cuda/graphs.h"
#include "backend/dropout.h"
#include "base/numbers.h"

/* Oldest compute capability that kernels are built for. */
#define OLDEST_MAJOR 7
#define OLDEST_MINOR 5
/* Oldest compute capability with FP8 products, times ten. */
#define OLDEST_FP8 89
/* To be raised whenever a kernel gives other bits than before. Checkpoints record it as a part of `numerics`, so that a run of
 * an earlier version that is resumed is said to continue up to rounding. 2: since 0.1.0, bounds for FP8, narrow products. */
#define KERNELS_VERSION 2

static enum status cuda_synchronize(struct replica *replica)
{
	struct cuda_state *state = cuda_state(replica);
	cuda_check(state, cudaStreamSynchronize(state->stream), "a kernel");
	if (state->failed == cudaSuccess && state->refused != OK)
		return error_restore(&state->refusal);
	return state->failed == cudaSuccess ? OK : cuda_error(state->failed, state->failed_call);
}

static enum status cuda_memory_left(struct backend *be, size_t *out_left, size_t *out_all)
{
	(void)be;
	cudaError_t error = cudaMemGetInfo(out_left, out_all);
	return error == cudaSuccess ? OK : cuda_error(error, "cudaMemGetInfo");
}

static void *cuda_queue(struct backend *be)
{
	struct cuda_state *state = be->state;
	return state->stream;
}

/* ---- Replicas ---- */

/* Enough parts that positions times parts is about 2,000. */
int32_t cuda_position_parts(int32_t sequences, int32_t longest)
{
	int32_t parts = longest > 0 ? 2048 / longest : 1;
	parts = parts < 1 ? 1 : parts > 16 ? 16 : parts;
	return parts < sequences ? parts : sequences;
}

/* Sums of word chunks; or of positions in parts, whose total is largest at 2048 / 16 or at the longest length. */
static int64_t embedding_floats(const struct shape_limits *limits)
{
	int64_t chunks = (limits->batch.tokens + WORD_CHUNK - 1) / WORD_CHUNK;
	return larger(2 * chunks, larger(2048, limits->longest)) * widest_norm(limits);
}

/* The capacity of batches as operations see them. */
static struct batch_capacity room_of(const struct shape_limits *limits)
{
	return limits->exact ? limits->batch : fill_room(limits->batch);
}

/* Lays out the scratch; with base NULL it only measures. */
static size_t scratch_lay_out(const struct backend *be, const struct shape_limits *asked, struct cuda_scratch *s, void *base)
{
	const struct cuda_state *state = be->state;
	struct shape_limits own = *asked, *limits = &own;
	limits->batch = room_of(asked);
	struct arena arena = {.base = base, .capacity = SIZE_MAX};
	int64_t widest = 3 * (int64_t)widest_norm(limits);
	widest = larger(widest, limits->intermediate);
	widest = larger(widest, (VOCABULARY_PARTS * (int64_t)limits->vocab + ROW_PARTS - 1) / ROW_PARTS);
	*s = (struct cuda_scratch){.part_floats = widest};
	s->gemm_bytes = state->major >= 9 ? (size_t)64 << 20 : (size_t)32 << 20;
	s->gemm = arena_take(&arena, s->gemm_bytes);
	s->parts = arena_take(&arena, (size_t)(ROW_PARTS * s->part_floats) * sizeof(float));
	int64_t sums = limits->training ? (int64_t)limits->batch.sequences * 3 * limits->hidden : 0;
	s->attention_sums = arena_take(&arena, (size_t)sums * sizeof(float));
	s->loss_rows = larger(most_labels(&limits->batch), limits->batch.sequences);
	s->losses = arena_take(&arena, (size_t)(2 * s->loss_rows) * sizeof(double));
	s->logit_rows = most_labels(&limits->batch) < LOGIT_ROWS ? most_labels(&limits->batch) : LOGIT_ROWS;
	s->logit_stride = round_up(limits->vocab, 64);
	s->logits = arena_take(&arena, (size_t)(s->logit_rows * s->logit_stride) * sizeof(float));
	if (be->fp8) {
		int64_t rows = round_up(limits->batch.tokens, FP8_MULTIPLE);
		s->fp8.operand_bytes = rows * larger(3 * (int64_t)widest_norm(limits), limits->intermediate);
		s->fp8.rows = arena_take(&arena, (size_t)s->fp8.operand_bytes);
		s->fp8.dy_columns = arena_take(&arena, limits->training ? (size_t)s->fp8.operand_bytes : 0);
		s->fp8.x = arena_take(&arena, sizeof *s->fp8.x);
		s->fp8.dy = arena_take(&arena, sizeof *s->fp8.dy);
	}
	if (limits->training) {
		s->embedding = arena_take(&arena, (size_t)embedding_floats(limits) * sizeof(float));
		s->sums = arena_take(&arena, (size_t)larger(SQUARE_PARTS, 2 * LAMB_TENSORS * LAMB_PARTS) * sizeof(double));
	}
	return arena.used;
}

static size_t cuda_workspace_bytes(struct backend *be, const struct shape_limits *limits)
{
	struct cuda_scratch scratch;
	return scratch_lay_out(be, limits, &scratch, NULL);
}

static void cuda_replica_release(struct replica *replica)
{
	if (replica->state)
		cuda_batches_release(replica);
	cuda_release(replica->backend, replica->workspace);
	cuda_release(replica->backend, replica->accumulators);
	cuda_release(replica->backend, replica->scalars);
	free(replica->state);
	*replica = (struct replica){.backend = NULL};
}

static enum status cuda_replica_create(struct backend *be, struct replica *replica, const struct shape_limits *limits)
{
	*replica = (struct replica){.backend = be, .operations = be->operations};
	if (widest_norm(limits) > NORM_WIDTH_LIMIT)
		return error_hinted(error_set(ERR_USAGE,
					      "a hidden or embedding size of %d is more than the %d that the GPU's kernels take",
					      widest_norm(limits), NORM_WIDTH_LIMIT),
				    "give --device cpu");
	struct cuda_replica *state;
	enum status status;
	struct shape_limits filled = *limits;
	filled.batch = room_of(limits);
	TRY(cuda_attention_check(be->state, &filled));
	TRY_GOTO(memory_new(&state, 1, sizeof *state, "a replica"), fail);
	replica->state = state;
	state->room = filled.batch;
	state->exact = limits->exact;
	state->answers = !limits->training;
	state->longest = limits->longest;
	void *memory;
	TRY_GOTO(cuda_allocate(be, &memory, sizeof(struct scalars), "the scalars of a step"), fail);
	replica->scalars = memory;
	TRY_GOTO(cuda_allocate(be, &memory, sizeof(struct accumulators), "the sums of a step"), fail);
	replica->accumulators = memory;
	replica->workspace_bytes = cuda_workspace_bytes(be, limits);
	TRY_GOTO(cuda_allocate(be, &replica->workspace, replica->workspace_bytes, "the workspace"), fail);
	scratch_lay_out(be, limits, &state->scratch, replica->workspace);
	TRY_GOTO(cuda_batches_create(replica), fail);
	return OK;
fail:
	cuda_replica_release(replica);
	return status;
}

struct kernel_dropout cuda_dropout(const struct replica *r, const struct dropout *dropout, const struct batch *batch)
{
	uint32_t threshold = dropout_threshold(dropout->p);
	if (threshold == 0)
		return (struct kernel_dropout){0};
	return (struct kernel_dropout){.threshold = threshold,
				       .site = dropout->site,
				       .scale = (float)dropout_scale(dropout->p),
				       .scalars = r->scalars,
				       .positions = batch->positions,
				       .samples = batch->token_samples};
}

/* ---- The back end ---- */

static void cuda_close(struct backend *be)
{
	struct cuda_state *state = be->state;
	if (!state)
		return;
	for (int64_t i = 0; i < state->block_count; i++)
		cudaFree(state->blocks[i]);
	graphs_close(state);
	cuda_stages_release(state);
	gemm_close(state->gemm);
	if (state->stream)
		cudaStreamDestroy(state->stream);
	free(state->blocks);
	free(state);
	be->state = NULL;
}

static size_t memory_used(struct backend *be)
{
	size_t available = 0, total = 0;
	(void)be;
	return cudaMemGetInfo(&available, &total) == cudaSuccess ? total - available : 0;
}

static void cuda_queue_work(struct replica *r, const struct work_key *key, void (*work)(void *context), void *context)
{
	graphs_queue(cuda_state(r), key, work, context);
	cuda_batches_clear_next(r);
}

static void cuda_hook(struct backend *be, void (*call)(void *context, int32_t layer), void *context, int32_t layer)
{
	graphs_hook(be->state, call, context, layer);
}

static const struct backend_functions functions = {
	.allocate = cuda_allocate,
	.release = cuda_release,
	.to_device = cuda_to_device,
	.to_host = cuda_to_host,
	.weight_copy_bytes = cuda_weight_copy_bytes,
	.weights_refresh = cuda_weights_refresh,
	.workspace_bytes = cuda_workspace_bytes,
	.twin_bytes = cuda_twin_bytes,
	.kept_bytes = cuda_kept_bytes,
	.batch_bytes = cuda_batch_bytes,
	.memory_left = cuda_memory_left,
	.replica_create = cuda_replica_create,
	.replica_release = cuda_replica_release,
	.room = fill_room,
	.filled = fill_count,
	.upload = cuda_upload,
	.queue_work = cuda_queue_work,
	.hook = cuda_hook,
	.synchronize = cuda_synchronize,
	.queue = cuda_queue,
	.convert = cuda_convert,
	.explain = cuda_explain,
	.gemm_rate = cuda_gemm_rate,
	.copy_rate = cuda_copy_rate,
	.memory_used = memory_used,
	.whole_product = cuda_whole_product,
	.choices = cuda_choices,
	.use_choices = cuda_use_choices,
	.close = cuda_close,
};

static const struct operations operations = {
	.linear_fwd = cuda_few_linear_fwd,
	.linear_gelu_fwd = cuda_few_linear_gelu_fwd,
	.linear_bwd = cuda_linear_bwd,
	.embed_fwd = cuda_embed_fwd,
	.embed_bwd = cuda_embed_bwd,
	.gated_fwd = cuda_gated_fwd,
	.gated_bwd = cuda_gated_bwd,
	.linear_norm_fwd = cuda_few_linear_norm_fwd,
	.rotary = cuda_rotary,
	.attention_fwd = cuda_attention_fwd,
	.attention_bwd = cuda_attention_bwd,
	.norm_bwd = cuda_norm_bwd,
	.gather_fwd = cuda_gather_fwd,
	.gather_bwd = cuda_gather_bwd,
	.pooling_fwd = cuda_pooling_fwd,
	.pooling_bwd = cuda_pooling_bwd,
	.vocab_xent = cuda_vocab_xent,
	.vocab_topk = cuda_vocab_topk,
	.vocab_max_fwd = cuda_vocab_max_fwd,
	.vocab_max_bwd = cuda_vocab_max_bwd,
	.xent = cuda_xent,
	.squared_error = cuda_squared_error,
	.binary_xent = cuda_binary_xent,
	.group_xent = cuda_group_xent,
	.list_loss = cuda_list_loss,
	.segment_xent = cuda_segment_xent,
	.pointer_xent = cuda_pointer_xent,
	.soft_loss = cuda_soft_loss,
	.hidden_error = cuda_hidden_error,
	.row_dropout = cuda_row_dropout,
	.sumsq_finite = cuda_sumsq_finite,
	.adamw = cuda_adamw,
	.lamb_norms = cuda_lamb_norms,
	.lamb_apply = cuda_lamb_apply,
};

/* Uses the first GPU (CUDA_VISIBLE_DEVICES determines which one that is). */
static enum status find_device(struct cuda_state *state, struct cudaDeviceProp *properties)
{
	int count = 0;
	cudaError_t error = cudaGetDeviceCount(&count);
	if (error == cudaSuccess && count == 0)
		error = cudaErrorNoDevice;
	if (error == cudaSuccess)
		error = cudaSetDevice(state->device);
	if (error == cudaSuccess)
		error = cudaGetDeviceProperties(properties, state->device);
	if (error != cudaSuccess)
		return cuda_error(error, "cudaGetDeviceCount");
	state->major = properties->major;
	state->minor = properties->minor;
	state->shared_limit = properties->sharedMemPerBlockOptin;
	state->processors = properties->multiProcessorCount;
	snprintf(state->name, sizeof state->name, "%.63s", properties->name);
	if (state->major > OLDEST_MAJOR || (state->major == OLDEST_MAJOR && state->minor >= OLDEST_MINOR))
		return OK;
	return error_hinted(error_set(ERR_RESOURCE, "'%s' is too old: it has compute capability %d.%d, %d.%d is needed",
				      state->name, state->major, state->minor, OLDEST_MAJOR, OLDEST_MINOR),
			    "use a GPU of the Turing generation (T4, RTX 20) or a later one, or give --device cpu");
}

static enum status check_dtype(const struct cuda_state *state, enum dtype dtype, bool tf32, bool fp8)
{
	if (fp8 && 10 * state->major + state->minor < OLDEST_FP8)
		return error_hinted(error_set(ERR_USAGE,
					      "'%s' does not compute in FP8: it has compute capability %d.%d, %d.%d is needed",
					      state->name, state->major, state->minor, OLDEST_FP8 / 10, OLDEST_FP8 % 10),
				    "use --precision %s; FP8 began with the Ada (L4, RTX 40) and Hopper (H100) generations",
				    state->major >= 8 ? "bf16" : "fp16");
	if (tf32 && state->major < 8)
		return error_hinted(error_set(ERR_USAGE, "'%s' does not compute in TF32", state->name),
				    "use --precision fp16 or fp32");
	if (dtype == DTYPE_F32 || dtype == DTYPE_F16 || (dtype == DTYPE_BF16 && state->major >= 8))
		return OK;
	enum status status;
	if (dtype == DTYPE_BF16)
		status = error_set(ERR_USAGE, "'%s' does not compute in bf16", state->name);
	else
		status = error_set(ERR_USAGE, "the GPU does not train in %s", dtype_names[dtype]);
	error_hint("use --precision %s", dtype == DTYPE_BF16 ? "fp16 or fp32" : "bf16, fp16, tf32 or fp32");
	return status;
}

enum status cuda_backend_open(struct backend *be, const struct backend_settings *settings)
{
	struct cuda_state *state;
	struct cudaDeviceProp properties;
	enum status status;
	TRY(memory_new(&state, 1, sizeof *state, "the back end"));
	*be = (struct backend){.name = "cuda",
			       .description = state->description,
			       .numerics = state->numerics,
			       .queues = true,
			       .dtype = settings->dtype,
			       .master_dtype = DTYPE_F32,
			       .fp8 = settings->fp8,
			       .mirrors_masters = settings->dtype != DTYPE_F32 && !settings->fp8,
			       .update_elements = INT64_MAX, /* a launch costs more than the caches would save */
			       .functions = &functions,
			       .operations = &operations,
			       .pool = settings->pool,
			       .state = state};
	TRY_GOTO(find_device(state, &properties), fail);
	be->processors = state->processors;
	TRY_GOTO(check_dtype(state, settings->dtype, settings->tf32, settings->fp8), fail);
	state->tf32 = settings->tf32 && settings->dtype == DTYPE_F32;
	cudaError_t error = cudaStreamCreateWithFlags(&state->stream, cudaStreamNonBlocking);
	if (error != cudaSuccess) {
		status = cuda_error(error, "cudaStreamCreate");
		goto fail;
	}
	TRY_GOTO(cuda_stages_create(state), fail);
	TRY_GOTO(gemm_open(&state->gemm, state), fail);
	TRY_GOTO(cuda_attention_open(state), fail);
	TRY_GOTO(cuda_few_rows_open(state), fail);
	TRY_GOTO(graphs_open(state), fail);
	snprintf(state->numerics, sizeof state->numerics, "%s, kernels %d, sm_%d%d%s %s", gemm_version(state->gemm),
		 KERNELS_VERSION, state->major, state->minor, state->wgmma ? " wgmma" : "",
		 settings->fp8                  ? "fp8"
		 : state->tf32                  ? "tf32"
		 : settings->dtype == DTYPE_F32 ? "fp32"
		 : settings->dtype == DTYPE_F16 ? "fp16"
						: "bf16");
	snprintf(state->description, sizeof state->description, "%s, %s", state->name, state->numerics);
	return OK;
fail:
	cuda_close(be);
	return status;
}

bool cuda_is_built(void)
{
	return true;
}

int cuda_count_gpus(void)
{
	int count = 0;
	return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

enum dtype cuda_best_dtype(void)
{
	int major = 0;
	if (cuda_count_gpus() == 0 || cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0) != cudaSuccess)
		return DTYPE_F32;
	return major >= 8 ? DTYPE_BF16 : DTYPE_F16;
}
