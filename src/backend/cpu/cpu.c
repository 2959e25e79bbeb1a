/* The CPU back end's memory and replicas. */
#include "backend/cpu/cpu.h"

#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include "backend/cpu/attention.h"
#include "backend/cpu/fp8.h"
#include "backend/cpu/gemm.h"
#include "backend/cpu/inference.h"
#include "backend/cpu/state.h"
#include "backend/cpu/weights.h"
#include "backend/cpu/wgrad.h"
#include "backend/dropout.h"
#include "backend/open.h"
#include "base/numbers.h"

/* LAMB's second pass then finds weights and moments in the shared cache, and the refresh of compute copies finds the weights
 * there: on BERT-base 0.27 s of one core instead of 0.29, and 0.5 instead of 0.75 when other programs compete for memory
 * bandwidth. */
#define UPDATE_ELEMENTS (1 << 18)

static enum status cpu_allocate(struct backend *be, void **out, size_t bytes, const char *what)
{
	struct cpu_state *state = be->state;
	TRY(memory_grow(&state->blocks, &state->block_capacity, state->block_count + 1, sizeof *state->blocks, what));
	struct arena block;
	TRY(arena_create(&block, bytes, what));
	state->blocks[state->block_count++] = block;
	*out = block.base;
	return OK;
}

static void cpu_release(struct backend *be, void *memory)
{
	struct cpu_state *state = be->state;
	if (!memory)
		return;
	int64_t i = 0;
	while (i < state->block_count && state->blocks[i].base != memory)
		i++;
	BUG_IF(i == state->block_count);
	arena_release(&state->blocks[i]);
	state->blocks[i] = state->blocks[--state->block_count];
}

static void cpu_to_device(struct backend *be, void *device, const void *host, size_t bytes)
{
	(void)be;
	memcpy(device, host, bytes);
}

static void cpu_to_host(struct backend *be, void *host, const void *device, size_t bytes)
{
	(void)be;
	memcpy(host, device, bytes);
}

static size_t larger_bytes(size_t a, size_t b)
{
	return a > b ? a : b;
}

/* Workspace needed by attention and weight gradients, given that the first `scratch` bytes are taken. */
static size_t kernel_bytes(struct backend *be, const struct shape_limits *l, size_t scratch)
{
	int threads = pool_threads(be->pool);
	size_t bytes = larger_bytes(scratch, cpu_attention_workspace_bytes(l, threads));
	if (!l->training)
		return bytes;
	int64_t rows = larger(l->batch.tokens, larger(l->batch.sequences, most_labels(&l->batch)));
	int64_t width = widest_norm(l);
	size_t wgrad = cpu_wgrad_workspace_bytes(rows, 3 * width, width, threads);
	wgrad = larger_bytes(wgrad, cpu_wgrad_workspace_bytes(rows, l->intermediate, width, threads));
	wgrad = larger_bytes(wgrad, cpu_wgrad_workspace_bytes(rows, width, l->intermediate, threads));
	bytes = larger_bytes(bytes, scratch + wgrad);
	return larger_bytes(bytes, cpu_wgrad_workspace_bytes(VOCABULARY_ROWS, VOCABULARY_BLOCK, width, threads));
}

/* Lays out the scratch at `base` (NULL: only measures); returns its size in bytes. */
static size_t scratch_lay_out(struct backend *be, const struct shape_limits *l, struct cpu_scratch *s, void *base)
{
	int64_t threads = pool_threads(be->pool), width = widest_norm(l), widest = larger(3 * width, l->intermediate);
	bool own = cpu_gemm_kernels(be->dtype)->multiply_panel;
	*s = (struct cpu_scratch){
		.slices = slice_count(larger(l->batch.tokens, larger(l->batch.sequences, most_labels(&l->batch)))),
		.tile_floats =
			own ? larger(KEPT_ROWS * round_up(larger(width, KEPT_COLUMNS), GEMM_GROUP), GEMM_ROWS_MOST * GEMM_GROUP)
			    : ROW_MULTIPLE * round_up(larger(width, TILE_COLUMNS), 64),
		.blocks_bytes = own ? (int64_t)GEMM_ROWS_BYTES : 0,
		.row_floats = 2 * round_up(width, 16),
		.part_floats = widest,
		.bits_bytes = DROPOUT_BYTES(round_up(larger(width, l->intermediate), 512)),
	};
	struct arena arena = {.base = base, .capacity = SIZE_MAX / 4};
	s->tiles = arena_take(&arena, (size_t)(threads * s->tile_floats) * sizeof(float));
	s->blocks = arena_take(&arena, (size_t)(threads * s->blocks_bytes));
	s->rows = arena_take(&arena, (size_t)(threads * s->row_floats) * sizeof(float));
	s->bits = arena_take(&arena, (size_t)(threads * s->bits_bytes));
	s->parts = arena_take(&arena, (size_t)(s->slices * s->part_floats) * sizeof(float));
	s->range_sums = arena_take(&arena, RANGE_PARTS * sizeof(double));
	s->slice_sums = arena_take(&arena, (size_t)s->slices * 2 * sizeof(double));
	s->bytes = (size_t)round_up((int64_t)arena.used, ARENA_ALIGNMENT);
	arena.used = kernel_bytes(be, l, s->bytes);
	if (be->inference) {
		inference_lay_out(be, l, &s->inference, &arena);
		return arena.used;
	}

	int64_t rows = round_up(larger(most_labels(&l->batch), 1), ROW_MULTIPLE);
	int64_t blocks = (l->vocab + VOCABULARY_BLOCK - 1) / VOCABULARY_BLOCK;
	rows = rows < VOCABULARY_ROWS ? rows : VOCABULARY_ROWS;
	size_t elements = (size_t)(rows * blocks * VOCABULARY_BLOCK), numbers = (size_t)(rows * blocks);
	s->vocabulary.rows = rows;
	s->vocabulary.logits = arena_take(&arena, elements * sizeof(float));
	s->vocabulary.dlogits = arena_take(&arena, l->training ? elements * dtype_bytes(be->dtype) : 0);
	s->vocabulary.max = arena_take(&arena, numbers * sizeof(float));
	s->vocabulary.sum = arena_take(&arena, numbers * sizeof(float));
	s->vocabulary.best = arena_take(&arena, numbers * sizeof(int32_t));
	s->vocabulary.lse = arena_take(&arena, (size_t)rows * sizeof(float));
	s->vocabulary.factor = arena_take(&arena, (size_t)rows * sizeof(float));
	s->vocabulary.label_logit = arena_take(&arena, (size_t)rows * sizeof(float));
	s->vocabulary.loss = arena_take(&arena, (size_t)rows * sizeof(double));
	s->vocabulary.correct = arena_take(&arena, (size_t)rows * sizeof(double));
	s->operand_bytes = cpu_fp8_operand_bytes(be, l);
	s->operands = arena_take(&arena, 2 * s->operand_bytes);
	return arena.used;
}

static size_t cpu_workspace_bytes(struct backend *be, const struct shape_limits *limits)
{
	struct cpu_scratch scratch;
	return scratch_lay_out(be, limits, &scratch, NULL);
}

static void cpu_replica_release(struct replica *replica)
{
	cpu_release(replica->backend, replica->workspace);
	cpu_release(replica->backend, replica->accumulators);
	cpu_release(replica->backend, replica->scalars);
	free(replica->state);
	*replica = (struct replica){.backend = NULL};
}

static enum status cpu_replica_create(struct backend *be, struct replica *replica, const struct shape_limits *limits)
{
	*replica = (struct replica){.backend = be, .operations = be->operations};
	struct cpu_scratch *scratch;
	enum status status;
	TRY_GOTO(memory_new(&scratch, 1, sizeof *scratch, "a replica"), fail);
	replica->state = scratch;
	void *memory;
	TRY_GOTO(cpu_allocate(be, &memory, sizeof(struct scalars), "the scalars of a step"), fail);
	replica->scalars = memory;
	TRY_GOTO(cpu_allocate(be, &memory, sizeof(struct accumulators), "the sums of a step"), fail);
	replica->accumulators = memory;
	replica->workspace_bytes = cpu_workspace_bytes(be, limits);
	TRY_GOTO(cpu_allocate(be, &replica->workspace, replica->workspace_bytes, "the workspace"), fail);
	scratch_lay_out(be, limits, scratch, replica->workspace);
	return OK;
fail:
	cpu_replica_release(replica);
	return status;
}

static void cpu_upload(struct replica *replica, const struct batch *host, struct batch *device)
{
	(void)replica;
	*device = *host;
}

static enum status cpu_synchronize(struct replica *replica)
{
	(void)replica;
	return OK;
}

static void cpu_close(struct backend *be)
{
	struct cpu_state *state = be->state;
	if (!state)
		return;
	for (int64_t i = 0; i < state->block_count; i++)
		arena_release(&state->blocks[i]);
	free(state->blocks);
	onednn_close(state->dnnl);
	free(state);
	be->state = NULL;
}

static const struct backend_functions functions = {
	.allocate = cpu_allocate,
	.release = cpu_release,
	.to_device = cpu_to_device,
	.to_host = cpu_to_host,
	.weight_copy_bytes = cpu_weight_copy_bytes,
	.weights_refresh = cpu_weights_refresh,
	.workspace_bytes = cpu_workspace_bytes,
	.replica_create = cpu_replica_create,
	.replica_release = cpu_replica_release,
	.upload = cpu_upload,
	.synchronize = cpu_synchronize,
	.gemm_rate = cpu_gemm_rate,
	.whole_product = cpu_whole_product,
	.close = cpu_close,
};

static const struct operations operations = {
	.embed_fwd = cpu_embed_fwd,
	.embed_bwd = cpu_embed_bwd,
	.linear_fwd = cpu_linear_fwd,
	.linear_gelu_fwd = cpu_linear_gelu_fwd,
	.gated_fwd = cpu_gated_fwd,
	.gated_bwd = cpu_gated_bwd,
	.linear_norm_fwd = cpu_linear_norm_fwd,
	.norm_bwd = cpu_norm_bwd,
	.linear_bwd = cpu_linear_bwd,
	.rotary = cpu_rotary,
	.attention_fwd = cpu_attention_fwd,
	.attention_bwd = cpu_attention_bwd,
	.gather_fwd = cpu_gather_fwd,
	.gather_bwd = cpu_gather_bwd,
	.pooling_fwd = cpu_pooling_fwd,
	.pooling_bwd = cpu_pooling_bwd,
	.vocab_xent = cpu_vocab_xent,
	.vocab_topk = cpu_vocab_topk,
	.vocab_max_fwd = cpu_vocab_max_fwd,
	.vocab_max_bwd = cpu_vocab_max_bwd,
	.xent = cpu_xent,
	.squared_error = cpu_squared_error,
	.binary_xent = cpu_binary_xent,
	.group_xent = cpu_group_xent,
	.list_loss = cpu_list_loss,
	.segment_xent = cpu_segment_xent,
	.pointer_xent = cpu_pointer_xent,
	.soft_loss = cpu_soft_loss,
	.hidden_error = cpu_hidden_error,
	.row_dropout = cpu_row_dropout,
	.sumsq_finite = cpu_sumsq_finite,
	.adamw = cpu_adamw,
	.lamb_norms = cpu_lamb_norms,
	.lamb_apply = cpu_lamb_apply,
};

enum dtype cpu_best_dtype(void)
{
	enum cpu_isa isa;
	return cpu_isa_detect(&isa) == OK && cpu_levels[isa].prefers_bf16 ? DTYPE_BF16 : DTYPE_F32;
}

static enum status check_dtype(enum dtype dtype, const struct cpu_level *level)
{
	enum status status = OK;
	if (dtype != DTYPE_F32 && dtype != DTYPE_BF16)
		status = error_set(ERR_USAGE, "the CPU does not compute in %s", dtype == DTYPE_F16 ? "fp16" : dtype_names[dtype]);
	else if (dtype == DTYPE_BF16 && !level->computes_bf16)
		status = error_set(ERR_USAGE, "this processor does not compute in bf16 (it lacks %s)", cpu_bf16_needed);
	if (status != OK)
		error_hint("use --precision %s", level->computes_bf16 ? "fp32 or bf16" : "fp32");
	return status;
}

/* The library must be initialized before its version can be queried. */
enum status cpu_describe(struct cpu_description *out)
{
	enum cpu_isa isa;
	struct pool *pool;
	struct onednn *onednn;
	*out = (struct cpu_description){0};
	for (int i = 0; i < CPU_ISA_COUNT; i++) {
		size_t length = strlen(out->built);
		snprintf(out->built + length, sizeof out->built - length, "%s%s", i ? " " : "", cpu_levels[i].name);
	}
	TRY(cpu_isa_detect(&isa));
	out->kernels = cpu_levels[isa].name;
	if (pool_create(&pool, 1) != OK)
		return OK;
	if (onednn_open(&onednn, pool, isa, false) == OK) {
		snprintf(out->products, sizeof out->products, "%s", onednn_version(onednn));
		onednn_close(onednn);
	}
	pool_free(pool);
	return OK;
}

enum status cpu_backend_open(struct backend *be, const struct backend_settings *settings)
{
	enum cpu_isa isa;
	enum status status;
	TRY(cpu_isa_detect(&isa));
	/* With FP8 and int8, everything else is in fp32 where bf16 is unavailable. */
	const struct cpu_level *level = &cpu_levels[isa];
	enum dtype dtype = (settings->fp8 || settings->int8) && !level->computes_bf16 ? DTYPE_F32 : settings->dtype;
	TRY(check_dtype(dtype, level));
	struct cpu_state *state;
	TRY(memory_new(&state, 1, sizeof *state, "the back end"));
	*be = (struct backend){.name = "cpu",
			       .description = state->description,
			       .numerics = state->numerics,
			       .dtype = dtype,
			       .master_dtype = DTYPE_F32,
			       .fp8 = settings->fp8,
			       .inference = settings->inference,
			       .int8 = settings->int8,
			       .update_elements = UPDATE_ELEMENTS,
			       .functions = &state->functions,
			       .operations = &state->operations,
			       .pool = settings->pool,
			       .state = state};
	state->operations = operations;
	state->functions = functions;
	if (settings->inference)
		inference_use(&state->operations, &state->functions);
	/* Inference uses our own kernels for its products, and its caller may be another program, whose OpenMP setting must be
	 * left unchanged. */
	TRY_GOTO(onednn_open(&state->dnnl, settings->pool, isa, settings->inference), fail);
	state->kernels = cpu_kernels();
	int threads = pool_threads(settings->pool);
	const char *library = onednn_version(state->dnnl);
	snprintf(state->numerics, sizeof state->numerics, "%s%s%s %s%s%s", library, *library ? ", " : "", level->floats,
		 dtype == DTYPE_BF16 ? "bf16" : "fp32", settings->fp8 || settings->int8 ? ", " : "",
		 settings->fp8    ? "FP8 simulated"
		 : settings->int8 ? level->int8
				  : "");
	snprintf(state->description, sizeof state->description, "%s, %d thread%s", state->numerics, threads,
		 threads == 1 ? "" : "s");
	return OK;
fail:
	cpu_close(be);
	return status;
}
