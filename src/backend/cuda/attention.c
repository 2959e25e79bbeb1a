/* Attention: which kernels handle a call.
 *
 *   forward    the matrix kernel for bf16 and f16 with heads of 32, 64 or 128 columns, else the general one
 *   backward   one block for each head of each sequence, if a block can hold the gradients of all queries of a head; for longer
 *              sequences, and for windows, two kernels, the second of which recomputes scores; else the general ones
 *
 * On Hopper, kernels with wgmma replace the matrix kernels for heads of 64 columns, except those for longer sequences and
 * windows, unless BERTC_ATTENTION=mma. The choice depends only on type, head size, a sequence's length and the GPU's shared
 * memory. With dropout, the matrix kernels' forward saves its mask in lse's twin for backward. Bias gradients are column sums of
 * each sequence, added in sequence order. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "backend/cuda/state.h"
#include "backend/dropout.h"

enum status cuda_attention_open(struct cuda_state *state)
{
	const char *wanted = getenv("BERTC_ATTENTION");
	bool hopper = state->major == 9 && state->minor == 0, mma = wanted && strcmp(wanted, "mma") == 0;
	state->wgmma = hopper && !mma;
	if (!wanted || mma || (hopper && strcmp(wanted, "wgmma") == 0))
		return OK;
	if (strcmp(wanted, "wgmma") != 0)
		return error_set(ERR_USAGE, "BERTC_ATTENTION is '%s': it can be mma or wgmma", wanted);
	return error_set(ERR_USAGE, "BERTC_ATTENTION is 'wgmma', which only GPUs of compute capability 9.0 have: not '%s'",
			 state->name);
}

static struct kernel_attention arguments(const struct replica *r, const struct batch *batch, const struct dropout *dropout,
					 int32_t heads, int32_t window, const struct tensor *qkv, const struct tensor *lse)
{
	int32_t hidden = (int32_t)(qkv->columns / 3);
	bool windowed = window > 0 && window < batch->longest - 1;
	return (struct kernel_attention){
		.starts = batch->starts,
		.order = batch->length_order,
		.samples = batch->samples,
		.sequences = batch->sequence_count,
		.heads = heads,
		.hidden = hidden,
		.longest = batch->longest,
		.above = -1,
		.upto = batch->longest,
		.window = windowed ? window : INT32_MAX / 2,
		.windowed = windowed,
		.tokens = lse->columns,
		.scale = (float)(1 / sqrt((double)hidden / heads)),
		.threshold = dropout_threshold(dropout->p),
		.site = dropout->site,
		.dropout_scale = (float)dropout_scale(dropout->p),
		.scalars = r->scalars,
		.qkv = qkv->data,
		.lse = lse->data,
	};
}

static bool has_matrix_kernels(const struct cuda_state *state, enum dtype dtype, int32_t head_size)
{
	return kernel_attention_has(dtype, head_size) && kernel_attention_fwd_shared(head_size) <= state->shared_limit &&
	       kernel_attention_bwd_long_shared(head_size) <= state->shared_limit;
}

size_t cuda_kept_bytes(struct backend *be, int64_t heads, int64_t head_size, int64_t longest,
		       const struct batch_capacity *capacity)
{
	int64_t count = attention_kept_count(heads, longest, capacity->tokens, capacity->sequences);
	return has_matrix_kernels(be->state, be->dtype, (int32_t)head_size) ? (size_t)count * sizeof(uint16_t) : 0;
}

void cuda_attention_fwd(struct replica *r, const struct attention_fwd *a)
{
	struct kernel_attention k = arguments(r, a->batch, &a->dropout, a->heads, a->window, &a->qkv, &a->lse);
	k.y = a->y.data;
	k.largest = cuda_largest(&a->y);
	k.early = cuda_starts_early(r);
	enum dtype dtype = a->qkv.dtype;
	int32_t head_size = k.hidden / k.heads;
	if (has_matrix_kernels(cuda_state(r), dtype, head_size)) {
		k.kept = k.threshold > 0 ? a->lse.twin : NULL;
		bool wgmma = cuda_state(r)->wgmma && head_size == 64 && !k.windowed;
		cuda_run(r, (wgmma ? kernel_attention_fwd_wgmma : kernel_attention_fwd)(cuda_stream(r), dtype, &k),
			 "attention_fwd");
	} else {
		cuda_run(r, kernel_attention_any_fwd(cuda_stream(r), dtype, &k), "attention_fwd");
		cuda_largest_pass(r, "attention_fwd", &a->y);
	}
}

/* One launch for each class of lengths that the batch may have: what handles a sequence, and how much memory its blocks take,
 * depends on its own length and not on the longest. Blocks of other sequences return at once. */
static void matrix_bwd(struct replica *r, enum dtype dtype, struct kernel_attention k, int64_t tokens)
{
	const struct cuda_state *state = cuda_state(r);
	int32_t head_size = k.hidden / k.heads,
		room = k.windowed ? 0 : kernel_attention_bwd_longest(head_size, state->shared_limit);
	const int32_t bounds[] = {room < ATTENTION_SHORT ? room : ATTENTION_SHORT, room, k.longest};
	bool wgmma = state->wgmma && head_size == 64;
	for (size_t i = 0; i < sizeof bounds / sizeof *bounds && k.above < k.longest; i++) {
		k.upto = bounds[i] < k.longest ? bounds[i] : k.longest;
		/* if one sequence is that short, the others cannot have the rest */
		bool none = k.upto < k.longest && tokens > (k.sequences - 1) * (int64_t)k.longest + k.upto;
		if (k.upto <= k.above || k.upto == 0 || none)
			continue;
		if (k.upto <= room) {
			cuda_run(r, (wgmma ? kernel_attention_bwd_wgmma : kernel_attention_bwd)(state->stream, dtype, &k),
				 "attention_bwd");
		} else {
			cuda_run(r, kernel_attention_bwd_long(state->stream, dtype, &k, state->shared_limit), "attention_bwd");
			if (k.sums)
				cuda_run(r, kernel_attention_sums(state->stream, dtype, &k), "attention_bwd");
		}
		k.above = k.upto;
	}
}

void cuda_attention_bwd(struct replica *r, const struct attention_bwd *a)
{
	struct kernel_attention k = arguments(r, a->batch, &a->dropout, a->heads, a->window, &a->qkv, &a->lse);
	k.y = a->y.data;
	k.dy = a->dy.data;
	k.dqkv = a->dqkv.data;
	k.sums = a->bias ? cuda_scratch(r)->attention_sums : NULL;
	enum dtype dtype = a->qkv.dtype;
	cudaStream_t stream = cuda_stream(r);
	if (has_matrix_kernels(cuda_state(r), dtype, k.hidden / k.heads)) {
		k.kept = a->lse.twin;
		BUG_IF(k.threshold > 0 && !k.kept);
		k.largest = cuda_largest(&a->dqkv);
		matrix_bwd(r, dtype, k, a->batch->token_count);
	} else {
		cuda_run(r, kernel_attention_any_bwd(stream, dtype, &k), "attention_bwd");
		if (k.sums)
			cuda_run(r, kernel_attention_sums(stream, dtype, &k), "attention_bwd");
		cuda_largest_pass(r, "attention_bwd", &a->dqkv);
	}
	if (a->bias)
		cuda_add_parts(r, k.sums, k.sequences, 3 * (int64_t)k.hidden, a->bias->gradient.data, a->overwrite,
			       "attention_bwd");
}

void cuda_rotary(struct replica *r, const struct rotary *a)
{
	struct kernel_rotary rotary = {
		.dtype = a->qkv.dtype,
		.back = a->back,
		.rows = a->qkv.rows,
		.stride = a->qkv.columns,
		.heads = 2 * a->heads, /* of queries, then of keys */
		.size = (int)(a->qkv.columns / 3 / a->heads),
		.positions = a->batch->positions,
		.qkv = a->qkv.data,
	};
	rotary_frequencies(a->base, rotary.size, rotary.frequencies);
	cuda_run(r, kernel_rotary(cuda_stream(r), &rotary), "rotary");
	cuda_largest_pass(r, "rotary", &a->qkv);
}

enum status cuda_attention_check(const struct cuda_state *state, const struct shape_limits *limits)
{
	int32_t size = limits->hidden / limits->heads;
	if (size <= ATTENTION_HEAD_LIMIT && kernel_attention_any_shared(size) <= state->shared_limit)
		return OK;
	return error_hinted(
		error_set(ERR_USAGE, "attention heads of %d columns are more than the kernels for '%s' take", size, state->name),
		"give --device cpu, or a model with more heads: 64 columns each are usual, and fastest");
}
