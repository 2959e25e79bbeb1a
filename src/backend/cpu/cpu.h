/* The CPU back end: oneDNN for forward and dgrad products, our own kernels for all else; fp32 and bf16, and
 * FP8 simulated with bf16 (fp8.h).
 *
 * Rows of activations are worked on in slices of ROW_MULTIPLE, which the pool's workers claim one by one: a worker
 * multiplies its slice with a packed block of a weight by single-threaded oneDNN, into a tile of fp32 scratch, and
 * does everything that follows (bias, GELU, dropout, residual, layer norm) on the tile while it is in the
 * worker's cache. In bf16 on AMX the products are our own (gemm_rows), which are best on several slices at a time. Sums
 * over rows are first taken within a slice and then over slices in order, so no result depends on the number of
 * threads. */
#ifndef BACKEND_CPU_CPU_H
#define BACKEND_CPU_CPU_H

#include "backend/open.h"

/* Fills the zeroed `be`. ERR_USAGE: a precision that this machine or this back end does not have. */
MUST_USE enum status cpu_backend_open(struct backend *be, const struct backend_settings *settings);
/* BF16 where the processor multiplies it, else F32. */
enum dtype cpu_best_dtype(void);
/* backend_describe_cpu(). */
MUST_USE enum status cpu_describe(struct cpu_description *out);

#endif
