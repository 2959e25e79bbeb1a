/* Opening a back end by name, and what this machine has. */
#ifndef BACKEND_OPEN_H
#define BACKEND_OPEN_H

#include "backend/backend.h"
#include "base/library_list.h"

/* "cpu", "cuda", "ref". An unknown or not built device, or a precision that this machine cannot do, is ERR_USAGE with what
 * to do. */
MUST_USE enum status backend_open(struct backend **out, const struct backend_settings *settings);
void backend_close(struct backend *be);
/* What activations need room for, so that batches of up to `capacity` find it after upload. */
struct batch_capacity backend_room(const struct backend *be, struct batch_capacity capacity);
/* What the CPU back end computes with on this machine. ERR_USAGE: the processor cannot run it. */
struct cpu_description {
	const char *kernels; /* instruction set of our kernels: "avx512_bf16" */
	char built[64];      /* those that the program has kernels for: "avx2 avx512 ..." */
	char products[64];   /* the library of matrix products: "oneDNN 2.6.3"; "" if it does not begin to work here */
};
MUST_USE enum status backend_describe_cpu(struct cpu_description *out);
/* NVIDIA's, in a build with CUDA; loads them. */
void backend_libraries(struct library_list *list);
/* Was this program built with it? */
bool backend_has_cuda(void);
/* "cuda" in a build with it on a machine with a GPU, else "cpu". */
const char *backend_best_device(void);
/* The precision that is fastest here ("bf16" with AVX-512 BF16 or AMX, else "fp32"). */
enum dtype backend_best_dtype(const char *device);

#endif
