/* Transfers a batch to the device: padded to a recurring shape, through pinned memory, in stream order. */
#include "backend/cuda/state.h"

#include <stdlib.h>
#include <string.h>
#include "backend/cuda/fill.h"

/* Lays out the label arrays of one head. */
static void labels_lay_out(struct batch_labels *labels, struct arena *arena, const struct label_capacity *capacity)
{
	size_t items = (size_t)round_up(capacity->count, ROW_MULTIPLE) * 4, numbers = items * (size_t)capacity->width;
	labels->width = capacity->width;
	labels->row_width = capacity->row_width;
	labels->rows = capacity->row_width > 0 ? arena_take(arena, items * (size_t)capacity->row_width) : NULL;
	labels->weights = capacity->width > 0 ? arena_take(arena, items) : NULL;
	labels->values = capacity->width > 0 && capacity->values ? arena_take(arena, numbers) : NULL;
	labels->classes = capacity->width > 0 && !capacity->values ? arena_take(arena, numbers) : NULL;
}

/* Points the arrays of `batch`, whose elements all have four bytes, into a block at `base`; returns its size in bytes. With
 * base NULL it only measures. */
static size_t batch_lay_out(struct batch *batch, void *base, const struct batch_capacity *capacity)
{
	struct arena arena = {.base = base, .capacity = SIZE_MAX};
	size_t tokens = (size_t)round_up(capacity->tokens, ROW_MULTIPLE) * 4;
	size_t sequences = (size_t)round_up((int64_t)capacity->sequences + 1, ROW_MULTIPLE) * 4;
	size_t examples = (size_t)round_up((int64_t)capacity->examples + 1, ROW_MULTIPLE) * 4;
	batch->ids = arena_take(&arena, tokens);
	batch->types = arena_take(&arena, tokens);
	batch->positions = arena_take(&arena, tokens);
	batch->token_samples = arena_take(&arena, tokens);
	batch->id_order = arena_take(&arena, tokens);
	batch->starts = arena_take(&arena, sequences);
	batch->samples = arena_take(&arena, sequences);
	batch->example_starts = arena_take(&arena, examples);
	batch->length_order = arena_take(&arena, sequences);
	batch->own_tokens = arena_take(&arena, sizeof *batch->own_tokens);
	for (int h = 0; h < BATCH_HEADS; h++)
		labels_lay_out(&batch->labels[h], &arena, &capacity->labels[h]);
	return arena.used;
}

void cuda_batch_bytes(struct backend *be, const struct shape_limits *limits, size_t *out_device, size_t *out_host)
{
	(void)be;
	struct batch measured = {0};
	struct batch_capacity room = limits->exact ? limits->batch : fill_room(limits->batch);
	size_t bytes = batch_lay_out(&measured, NULL, &room);
	*out_device = bytes + sizeof(struct scalars) + sizeof(struct accumulators);
	*out_host = 2 * bytes + STAGE_COUNT * STAGE_BYTES;
}

enum status cuda_batches_create(struct replica *replica)
{
	struct cuda_replica *state = replica->state;
	struct batch measured;
	void *memory;
	state->batch_bytes = batch_lay_out(&measured, NULL, &state->room);
	TRY(cuda_allocate(replica->backend, &memory, state->batch_bytes, "a batch"));
	state->batch = memory;
	for (int i = 0; i < 2; i++) {
		struct pinned_batch *pinned = &state->pinned[i];
		cudaError_t error = cudaHostAlloc(&pinned->memory, state->batch_bytes, cudaHostAllocDefault);
		if (error == cudaSuccess)
			error = cudaEventCreateWithFlags(&pinned->copied, cudaEventDisableTiming);
		if (error != cudaSuccess)
			return cuda_error(error, "pinned memory for a batch");
	}
	return OK;
}

void cuda_batches_release(struct replica *replica)
{
	struct cuda_replica *state = replica->state;
	for (int i = 0; i < 2; i++) {
		struct pinned_batch *pinned = &state->pinned[i];
		if (pinned->copied) {
			cudaEventSynchronize(pinned->copied);
			cudaEventDestroy(pinned->copied);
		}
		cudaFreeHost(pinned->memory);
	}
	cuda_release(replica->backend, state->batch);
}

/* Sorts the numbers of `count` sequences, longest first: kernels that process whole sequences then end with the short ones, so
 * no multiprocessor is left alone with a long one. */
static void sort_by_length(int32_t *order, const int32_t *starts, int32_t count)
{
	for (int32_t i = 0; i < count; i++)
		order[i] = i;
	/* Shell sort, which allocates nothing. */
	for (int32_t gap = count / 2; gap > 0; gap /= 2) {
		for (int32_t i = gap; i < count; i++) {
			int32_t own = order[i], length = starts[own + 1] - starts[own], at = i;
			for (; at >= gap; at -= gap) {
				int32_t other = order[at - gap];
				if (starts[other + 1] - starts[other] >= length)
					break;
				order[at] = other;
			}
			order[at] = own;
		}
	}
}

struct copied_array {
	void *to;
	const void *from;
	size_t elements; /* of four bytes */
};

static void copy_arrays(const struct copied_array *arrays, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (arrays[i].from && arrays[i].to)
			memcpy(arrays[i].to, arrays[i].from, arrays[i].elements * 4);
}

/* Copies those arrays that are present. */
static void copy_batch(const struct batch *to, const struct batch *from)
{
	size_t t = (size_t)from->token_count, b = (size_t)from->sequence_count, e = (size_t)from->example_count;
	const struct copied_array arrays[] = {
		{to->ids, from->ids, t},
		{to->types, from->types, t},
		{to->positions, from->positions, t},
		{to->token_samples, from->token_samples, t},
		{to->id_order, from->id_order, t},
		{to->starts, from->starts, b + 1},
		{to->samples, from->samples, b},
		{to->example_starts, from->example_starts, e + 1},
	};
	copy_arrays(arrays, sizeof arrays / sizeof arrays[0]);
	for (int h = 0; h < BATCH_HEADS; h++) {
		const struct batch_labels *own = &from->labels[h], *theirs = &to->labels[h];
		size_t items = (size_t)own->count, numbers = items * (size_t)own->width;
		const struct copied_array labels[] = {
			{theirs->rows, own->rows, items * (size_t)own->row_width},
			{theirs->weights, own->weights, items},
			{theirs->classes, own->classes, numbers},
			{theirs->values, own->values, numbers},
		};
		copy_arrays(labels, sizeof labels / sizeof labels[0]);
	}
}

void cuda_batches_clear_next(struct replica *replica)
{
	struct cuda_replica *own = replica->state;
	struct pinned_batch *next = &own->pinned[own->next_pinned];
	if (next->cleared)
		return;
	if (cudaEventQuery(next->copied) != cudaSuccess) {
		cudaGetLastError(); /* clears cudaErrorNotReady, which is not a failure */
		return;
	}
	memset(next->memory, 0, own->batch_bytes);
	next->cleared = true;
}

/* Copies into pinned memory, where two blocks alternate, so that the host can prepare the next batch while this one waits;
 * then, in stream order, to the one place where operations read it: a recorded graph always reads the same addresses. */
void cuda_upload(struct replica *replica, const struct batch *host, struct batch *device)
{
	struct cuda_state *state = cuda_state(replica);
	struct cuda_replica *own = replica->state;
	struct pinned_batch *pinned = &own->pinned[own->next_pinned];
	struct batch filled = *host;
	own->next_pinned = !own->next_pinned;
	own->scratch.fp8.written = NULL; /* of another batch */
	if (!own->exact)
		fill_shape(&filled, own->longest);
	BUG_IF(!batch_fits(&filled, &own->room));

	cuda_check(state, cudaEventSynchronize(pinned->copied), "cudaEventSynchronize");
	if (!pinned->cleared)
		memset(pinned->memory, 0, own->batch_bytes);
	pinned->cleared = false;
	batch_lay_out(&filled, pinned->memory, &own->room);
	copy_batch(&filled, host);
	fill_batch(&filled, host);
	filled.own_tokens[0] = host->token_count;
	if (host->starts)
		sort_by_length(filled.length_order, filled.starts, filled.sequence_count);
	for (int32_t i = filled.sequence_count; i < own->room.sequences; i++)
		filled.length_order[i] = i; /* empty sequences */

	*device = filled;
	batch_lay_out(device, own->batch, &own->room);
	device->host_starts = filled.starts;
	cuda_check(state, cudaMemcpyAsync(own->batch, pinned->memory, own->batch_bytes, cudaMemcpyHostToDevice, state->stream),
		   "copy of a batch");
	cuda_check(state, cudaEventRecord(pinned->copied, state->stream), "cudaEventRecord");
}
