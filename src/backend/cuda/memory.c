/* Device memory, copies through pinned memory, and the way of a batch to the device.
 *
 * Everything that an operation may read later is ordered by streams and events; the host waits only where it needs a
 * pinned block again. */
#include "backend/cuda/state.h"

#include <stdlib.h>
#include <string.h>
#include "base/log.h"

enum status cuda_allocate(struct backend *be, void **out, size_t bytes, const char *what)
{
	struct cuda_state *state = be->state;
	*out = NULL;
	TRY(memory_grow(&state->blocks, &state->block_capacity, state->block_count + 1, sizeof(*state->blocks), what));
	cudaError_t error = cudaMalloc(out, bytes > 0 ? bytes : 1);
	if (error == cudaErrorMemoryAllocation) {
		size_t available = 0, total = 0;
		char needed[FORMAT_BYTES], left[FORMAT_BYTES], all[FORMAT_BYTES];
		cudaGetLastError();
		cudaMemGetInfo(&available, &total);
		enum status status = error_set(ERR_RESOURCE, "not enough memory on the GPU for %s: %s needed, %s of %s left", what,
					       format_size(needed, (double)bytes), format_size(left, (double)available),
					       format_size(all, (double)total));
		error_hint("give a smaller --micro_batch or more --gradient_accumulation_steps, or end what else runs on the GPU "
			   "(nvidia-smi shows it)");
		return status;
	}
	if (error != cudaSuccess)
		return cuda_error(error, "cudaMalloc");
	state->blocks[state->block_count++] = *out;
	/* Waited for: the stream of batches knows nothing of this one. */
	error = cudaMemsetAsync(*out, 0, bytes, state->stream);
	if (error == cudaSuccess)
		error = cudaStreamSynchronize(state->stream);
	return error == cudaSuccess ? OK : cuda_error(error, "cudaMemset");
}

void cuda_release(struct backend *be, void *memory)
{
	struct cuda_state *state = be->state;
	if (!memory)
		return;
	int64_t i = 0;
	while (i < state->block_count && state->blocks[i] != memory)
		i++;
	BUG_IF(i == state->block_count);
	cuda_check(state, cudaStreamSynchronize(state->stream), "cudaStreamSynchronize");
	cuda_check(state, cudaFree(memory), "cudaFree");
	state->blocks[i] = state->blocks[--state->block_count];
}

enum status cuda_stages_create(struct cuda_state *state)
{
	for (int i = 0; i < STAGE_COUNT; i++) {
		cudaError_t error = cudaHostAlloc((void **)&state->stages[i].memory, STAGE_BYTES, cudaHostAllocDefault);
		if (error == cudaSuccess)
			error = cudaEventCreateWithFlags(&state->stages[i].done, cudaEventDisableTiming);
		if (error != cudaSuccess)
			return cuda_error(error, "pinned memory");
	}
	return OK;
}

void cuda_stages_release(struct cuda_state *state)
{
	for (int i = 0; i < STAGE_COUNT; i++) {
		cudaFreeHost(state->stages[i].memory);
		if (state->stages[i].done)
			cudaEventDestroy(state->stages[i].done);
	}
}

/* The next pinned block, when the copy before has left it. */
static struct stage *next_stage(struct cuda_state *state)
{
	struct stage *stage = &state->stages[state->next_stage];
	state->next_stage = (state->next_stage + 1) % STAGE_COUNT;
	cuda_check(state, cudaEventSynchronize(stage->done), "cudaEventSynchronize");
	return stage;
}

void cuda_to_device(struct backend *be, void *device, const void *host, size_t bytes)
{
	struct cuda_state *state = be->state;
	for (size_t done = 0; done < bytes; done += STAGE_BYTES) {
		size_t part = bytes - done < STAGE_BYTES ? bytes - done : STAGE_BYTES;
		struct stage *stage = next_stage(state);
		memcpy(stage->memory, (const char *)host + done, part);
		cuda_check(state,
			   cudaMemcpyAsync((char *)device + done, stage->memory, part, cudaMemcpyHostToDevice, state->stream),
			   "copy to the GPU");
		cuda_check(state, cudaEventRecord(stage->done, state->stream), "cudaEventRecord");
	}
}

void cuda_to_host(struct backend *be, void *host, const void *device, size_t bytes)
{
	struct cuda_state *state = be->state;
	size_t parts = (bytes + STAGE_BYTES - 1) / STAGE_BYTES;
	struct stage *stages[STAGE_COUNT];
	/* A part is on its way while the one before is moved to where it belongs. */
	for (size_t i = 0; i <= parts; i++) {
		size_t done = i * STAGE_BYTES;
		if (i < parts) {
			size_t part = bytes - done < STAGE_BYTES ? bytes - done : STAGE_BYTES;
			struct stage *stage = stages[i % STAGE_COUNT] = next_stage(state);
			cuda_check(state,
				   cudaMemcpyAsync(stage->memory, (const char *)device + done, part, cudaMemcpyDeviceToHost,
						   state->stream),
				   "copy from the GPU");
			cuda_check(state, cudaEventRecord(stage->done, state->stream), "cudaEventRecord");
		}
		if (i > 0) {
			struct stage *stage = stages[(i - 1) % STAGE_COUNT];
			size_t part = bytes - (done - STAGE_BYTES) < STAGE_BYTES ? bytes - (done - STAGE_BYTES) : STAGE_BYTES;
			cuda_check(state, cudaEventSynchronize(stage->done), "cudaEventSynchronize");
			memcpy((char *)host + done - STAGE_BYTES, stage->memory, part);
		}
	}
}

/* ---- Batches ---- */

/* Elements of the arrays of a batch, in the order of struct batch; all have four bytes. */
enum { BATCH_ARRAYS = 12 };

static size_t batch_layout(const struct batch_capacity *c, size_t offsets[BATCH_ARRAYS])
{
	int64_t t = c->tokens, b = c->sequences, p = c->predictions;
	const int64_t elements[BATCH_ARRAYS] = {t, t, t, t, b + 1, b, b, p, p, p, t, b};
	size_t bytes = 0;
	for (int i = 0; i < BATCH_ARRAYS; i++) {
		offsets[i] = bytes;
		bytes += (size_t)round_up(elements[i], ROW_MULTIPLE) * 4;
	}
	return bytes;
}

enum status cuda_slots_create(struct replica *replica, const struct batch_capacity *capacity)
{
	struct cuda_replica *state = replica->state;
	size_t offsets[BATCH_ARRAYS], bytes = batch_layout(capacity, offsets);
	state->capacity = *capacity;
	for (int i = 0; i < 2; i++) {
		struct batch_slot *slot = &state->slots[i];
		void *memory;
		TRY(cuda_allocate(replica->backend, &memory, bytes, "a batch"));
		slot->device = memory;
		cudaError_t error = cudaHostAlloc((void **)&slot->pinned, bytes, cudaHostAllocDefault);
		if (error == cudaSuccess)
			error = cudaEventCreateWithFlags(&slot->copied, cudaEventDisableTiming);
		if (error == cudaSuccess)
			error = cudaEventCreateWithFlags(&slot->used, cudaEventDisableTiming);
		if (error != cudaSuccess)
			return cuda_error(error, "pinned memory for a batch");
	}
	return OK;
}

void cuda_slots_release(struct replica *replica)
{
	struct cuda_replica *state = replica->state;
	for (int i = 0; i < 2; i++) {
		struct batch_slot *slot = &state->slots[i];
		if (slot->copied)
			cudaEventSynchronize(slot->copied);
		cuda_release(replica->backend, slot->device);
		cudaFreeHost(slot->pinned);
		if (slot->copied)
			cudaEventDestroy(slot->copied);
		if (slot->used)
			cudaEventDestroy(slot->used);
	}
}

/* The numbers of `count` sequences, longest first: what works on whole sequences then ends with the short ones, and no
 * processor is left alone with a long one. */
static void sort_by_length(int32_t *order, const int32_t *starts, int32_t count)
{
	for (int32_t i = 0; i < count; i++)
		order[i] = i;
	/* Shell's sort: nothing is allocated here. */
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

void cuda_upload(struct replica *replica, const struct batch *host, struct batch *device)
{
	struct cuda_state *state = cuda_state(replica);
	struct cuda_replica *own = replica->state;
	struct batch_slot *slot = &own->slots[own->next_slot], *before = &own->slots[!own->next_slot];
	own->next_slot = !own->next_slot;
	int64_t t = host->token_count, b = host->sequence_count, p = host->prediction_count;
	BUG_IF(t > own->capacity.tokens || b > own->capacity.sequences || p > own->capacity.predictions);
	const struct {
		const void *from;
		int64_t elements;
	} arrays[BATCH_ARRAYS] = {
		{host->ids, t},
		{host->types, t},
		{host->positions, t},
		{host->token_samples, t},
		{host->starts, b + 1},
		{host->samples, b},
		{host->next_labels, b},
		{host->prediction_rows, p},
		{host->prediction_labels, p},
		{host->prediction_weights, p},
		{host->id_order, t},
		{NULL, b},
	};
	size_t offsets[BATCH_ARRAYS], bytes = batch_layout(&own->capacity, offsets);

	cuda_check(state, cudaEventSynchronize(slot->copied), "cudaEventSynchronize");
	memset(slot->pinned, 0, bytes);
	for (int i = 0; i < BATCH_ARRAYS; i++)
		if (arrays[i].from)
			memcpy(slot->pinned + offsets[i], arrays[i].from, (size_t)arrays[i].elements * 4);
	int32_t *length_order = (int32_t *)(void *)(slot->pinned + offsets[11]);
	if (host->starts)
		sort_by_length(length_order, host->starts, host->sequence_count);
	for (int32_t i = host->sequence_count; i < own->capacity.sequences; i++)
		length_order[i] = i; /* empty */

	/* What is queued so far may read the batch before; this slot's own was read by what was queued before that. */
	cuda_check(state, cudaEventRecord(before->used, state->stream), "cudaEventRecord");
	cuda_check(state, cudaStreamWaitEvent(state->copies, slot->used, 0), "cudaStreamWaitEvent");
	cuda_check(state, cudaMemcpyAsync(slot->device, slot->pinned, bytes, cudaMemcpyHostToDevice, state->copies),
		   "copy of a batch");
	cuda_check(state, cudaEventRecord(slot->copied, state->copies), "cudaEventRecord");
	cuda_check(state, cudaStreamWaitEvent(state->stream, slot->copied, 0), "cudaStreamWaitEvent");

	unsigned char *at = slot->device;
	*device = *host;
	device->ids = (int32_t *)(at + offsets[0]);
	device->types = (int32_t *)(at + offsets[1]);
	device->positions = (int32_t *)(at + offsets[2]);
	device->token_samples = (uint32_t *)(at + offsets[3]);
	device->starts = (int32_t *)(at + offsets[4]);
	device->samples = (uint32_t *)(at + offsets[5]);
	device->next_labels = (int32_t *)(at + offsets[6]);
	device->prediction_rows = (int32_t *)(at + offsets[7]);
	device->prediction_labels = (int32_t *)(at + offsets[8]);
	device->prediction_weights = (float *)(at + offsets[9]);
	device->host_starts = (const int32_t *)(slot->pinned + offsets[4]);
	device->id_order = (int32_t *)(at + offsets[10]);
	device->length_order = (int32_t *)(at + offsets[11]);
}
