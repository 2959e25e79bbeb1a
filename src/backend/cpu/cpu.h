/* The CPU back end: oneDNN for forward and dgrad products, our own kernels for everything else; fp32 and bf16, and FP8
 * simulated with bf16 (fp8.h).
 *
 * Rows of activations are processed in slices of ROW_MULTIPLE, which the pool's workers claim one by one: a worker multiplies
 * its slice with a packed block of a weight using single-threaded oneDNN, into a tile of fp32 scratch, and applies everything
 * that follows (bias, GELU, dropout, residual, layer norm) while the tile is in the worker's cache. In bf16 on AMX the
 * products are our own (gemm_rows), which work best on several slices at a time. Sums over rows are taken first within each
 * slice and then over slices in order, so no result depends on the number of threads. */
#ifndef BACKEND_CPU_CPU_H
#define BACKEND_CPU_CPU_H

#include "backend/nearest.h"
#include "backend/open.h"

/* Fills the zeroed `be`. ERR_USAGE: a precision that this machine or this back end does not support. */
MUST_USE enum status cpu_backend_open(struct backend *be, const struct backend_settings *settings);
/* BF16 where the processor has bf16 products, else F32. */
enum dtype cpu_best_dtype(void);
/* backend_describe_cpu(). */
MUST_USE enum status cpu_describe(struct cpu_description *out);

/* The function of nearest.h. */
void cpu_nearest(struct backend *be, const struct nearest *a);

#endif
