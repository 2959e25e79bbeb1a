/* What tests can tell the emulated device and ask it, and what the emulated headers share. */
#ifndef EMULATION_H
#define EMULATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "cuda_runtime_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The device that programs find; to be set before the first call. */
struct emulated_device {
	int count;          /* 0: no device */
	int driver_version; /* 0: no driver */
	int major, minor;
	int processors; /* SMs */
	size_t memory;  /* bytes */
};
extern struct emulated_device emulated_device;
/* The same for whole programs, in the environment:
 *   EMULATED_DEVICE=count,driver,capability,bytes    for example 1,13000,90,4000000000
 *   EMULATED_FAIL=launches:error                      emulated_fail_after()
 *   EMULATED_TAKEN=allocations:bytes                  another program takes this much memory after so many allocations
 *   EMULATED_LACKS=file                               a library that this machine does not have: libnccl.so.2
 *   EMULATED_FAULTY=device                            the three above apply only to the process that sees only this device
 *   EMULATED_REFUSAL=1                                cuBLASLt has no algorithm for any product
 *   EMULATED_REPORT=path                              written at the end of a process that used the device: peak bytes of device
 *                                                     memory and of pinned memory; kernels launched; blocks allocated */

/* Seed of the order in which the blocks of a launch and the warps of a block run; 0: in order of their numbers. */
extern uint64_t emulated_order;
/* Whether races are looked for (not with EMULATED_RACES=0 in the environment): this takes longer, and eight
 * bytes for each byte of memory that kernels touch. */
extern bool emulated_race_check;
/* Kernels launched so far; and a failure to simulate: the n-th launch from now makes the device fail with `error` (an ECC
 * error, a lost device), and all calls after it; n < 0: none. */
extern int64_t emulated_launches;
void emulated_fail_after(int64_t launches, cudaError_t error);
/* The number of graphs that can still be instantiated before memory runs out. */
extern int64_t emulated_graphs_left;
/* Bytes currently allocated on the device; and blocks not freed. */
size_t emulated_memory_used(void);
int64_t emulated_blocks(void);

/* Prints a kernel's error, with kernel, block and thread, and aborts. */
__attribute__((noreturn, format(printf, 1, 2))) void emulation_fault(const char *format, ...);

/* Whether this range lies inside one device allocation or pinned host memory. */
bool emulation_is_device(const void *memory, size_t bytes);
/* The addresses in which all device memory lies. */
const unsigned char *emulation_arena(size_t *out_bytes);
/* The block of device memory that contains an address. */
void emulation_block(const void *at, const unsigned char **out_first, const unsigned char **out_end);
bool emulation_is_pinned(const void *memory, size_t bytes);
/* What lies at this address, for messages. */
const char *emulation_describe(const void *memory);

/* Queues work on a stream (or records it while the stream captures): `run` gets `context`, which `drop` frees. */
cudaError_t emulation_enqueue(cudaStream_t stream, void (*run)(void *context), void *context, void (*drop)(void *context));
/* The same for work that other processes take part in: ready() tells whether run() can proceed without waiting for them. */
cudaError_t emulation_enqueue_when(cudaStream_t stream, bool (*ready)(void *context), void (*run)(void *context), void *context,
				   void (*drop)(void *context));

/* A kernel launch: `invoke` calls the kernel with the parameters stored in `parameters`. */
struct emulated_launch {
	const void *kernel;
	unsigned grid[3], block[3];
	size_t shared;
	bool early; /* may start before the launch ahead of it has ended */
	cudaStream_t stream;
	void (*invoke)(const void *parameters);
	void (*drop)(void *parameters);
	void *parameters;
	size_t parameter_bytes;
};
cudaError_t emulation_launch(const struct emulated_launch *launch);
/* Runs all blocks of a launch immediately. */
void emulation_run_grid(const struct emulated_launch *launch);

/* Called in a kernel. `site` identifies the call: all threads that meet must come from the same site. */
void emulation_barrier(int id, int threads, const char *site);
/* All lanes of `mask` meet: the last to arrive calls run() with what each of them passed (NULL for lanes not in the mask). */
void emulation_warp(unsigned mask, void *mine, void (*run)(void *const lanes[32], unsigned mask, const void *context),
		    const void *context, const char *site);
/* All threads of a warpgroup meet in the same way. */
void emulation_warpgroup(void *mine, void (*run)(void *const threads[128]), const char *site);
void *emulation_shared(size_t *out_bytes);
unsigned emulation_lane(void);

/* Checks an access of a kernel; called by the compiler's hooks and by vector loads and stores. */
void emulation_access(const void *memory, size_t bytes, bool write);
void emulation_access_aligned(const void *memory, size_t bytes, bool write, size_t alignment);
/* Reads of up to 16 bytes of shared memory by wgmma: after its last write, the thread that wrote must have executed a fence. */
void emulation_access_by_product(const void *memory, size_t bytes);
void emulation_fence_shared(void);
/* griddepcontrol.wait */
void emulation_wait_for_previous(void);
/* Atomic accesses race only with plain ones: they are only checked for bounds. */
void emulation_access_atomic(const void *memory, size_t bytes);

#define EMULATION_STRING_(x) #x
#define EMULATION_STRING(x) EMULATION_STRING_(x)
#define EMULATION_SITE __FILE__ ":" EMULATION_STRING(__LINE__)

#ifdef __cplusplus
}
#endif

#endif
