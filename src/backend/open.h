/* Opens a back end by name, and reports what this machine supports. */
#ifndef BACKEND_OPEN_H
#define BACKEND_OPEN_H

#include "backend/backend.h"
#include "base/library_list.h"

/* "cpu", "cuda" or "ref". An unknown device, one that was not built in, or a precision that this machine does not support is
 * ERR_USAGE with a hint. */
MUST_USE enum status backend_open(struct backend **out, const struct backend_settings *settings);
void backend_close(struct backend *be);
/* The capacity that activations need so that batches of up to `capacity` fit after upload. */
struct batch_capacity backend_room(const struct backend *be, struct batch_capacity capacity);
/* What the CPU back end uses on this machine. ERR_USAGE: the processor cannot run it. */
struct cpu_description {
	const char *kernels; /* instruction set of our kernels: "avx512_bf16" */
	char built[64];      /* all instruction sets that the program has kernels for: "avx2 avx512 ..." */
	char products[64];   /* the matrix product library: "oneDNN 2.6.3"; "" if it cannot be initialized here */
};
MUST_USE enum status backend_describe_cpu(struct cpu_description *out);
/* NVIDIA's libraries, in a build with CUDA; loads them. */
void backend_libraries(struct library_list *list);
/* Whether this program was built with CUDA. */
bool backend_has_cuda(void);
/* How many GPUs the driver sees, at most GPUS_LIMIT. From then on this process sees no others, whatever CUDA_VISIBLE_DEVICES
 * says. */
#define GPUS_LIMIT 64
int backend_count_gpus(void);
/* "cuda" in a build with CUDA on a machine with a GPU, else "cpu". */
const char *backend_best_device(void);
/* The fastest precision here ("bf16" with AVX-512 BF16 or AMX, else "fp32"). */
enum dtype backend_best_dtype(const char *device);

#endif
