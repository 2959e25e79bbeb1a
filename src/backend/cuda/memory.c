/* Device memory, and copies through pinned memory.
 *
 * Everything that an operation may read later is ordered by streams and events; the host waits only when it needs to reuse a
 * pinned block. */
#include "backend/cuda/state.h"

#include <stdlib.h>
#include <string.h>
#include "backend/cuda/graphs.h"
#include "base/log.h"

enum status cuda_allocate(struct backend *be, void **out, size_t bytes, const char *what)
{
	struct cuda_state *state = be->state;
	*out = NULL;
	TRY(memory_grow(&state->blocks, &state->block_capacity, state->block_count + 1, sizeof *state->blocks, what));
	cudaError_t error = cudaMalloc(out, bytes > 0 ? bytes : 1);
	if (error == cudaErrorMemoryAllocation) {
		size_t available = 0, total = 0;
		char needed[FORMAT_BYTES], left[FORMAT_BYTES], all[FORMAT_BYTES];
		cudaGetLastError();
		cudaMemGetInfo(&available, &total);
		return error_hinted(error_set(ERR_RESOURCE, "not enough GPU memory for %s: %s needed, %s of %s left", what,
					      format_size(needed, (double)bytes), format_size(left, (double)available),
					      format_size(all, (double)total)),
				    "give a smaller --micro_batch_tokens or more --gradient_accumulation_steps, or stop other "
				    "programs on the GPU (see nvidia-smi)");
	}
	if (error != cudaSuccess)
		return cuda_error(error, "cudaMalloc");
	state->blocks[state->block_count++] = *out;
	/* Wait for it, because other streams are not ordered after this one. */
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
	graphs_forget(state);
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

/* The next pinned block, once the previous copy no longer needs it. */
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
	/* One part is in flight while the previous one is moved to its destination. */
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
