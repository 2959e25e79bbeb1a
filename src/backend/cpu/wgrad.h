/* Gradient of a linear's weight: dw = dy' x, the product that sums over the tokens. */
#ifndef BACKEND_CPU_WGRAD_H
#define BACKEND_CPU_WGRAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "backend/backend.h"

/* dw (O,I) = or += dy' x; column_sums (O) = or += column sums of dy. Sums are in fp32; their order depends only on shapes and
 * the instruction set, never on the number of threads. Exactly M rows count: tail rows are not read. */
struct cpu_wgrad {
	struct tensor dy;   /* (M,O) F32 or BF16 */
	struct tensor x;    /* (M,I) same type */
	float *dw;          /* acc (O,I), rows contiguous */
	float *column_sums; /* optional acc (O): the bias gradient; costs almost nothing here */
	bool overwrite;
	size_t offset; /* into replica->workspace: what lies before it is left alone */
	bool has_dy;   /* cpu_wgrad_take_dy() has been called for all of dy */
	bool has_x;    /* the previous call had the same sizes, x and offset, and cpu_wgrad_takes_dy() was true */
};

/* Whether all of dy may be handed over in advance, by code that reads it anyway: not if there are too many rows. */
bool cpu_wgrad_takes_dy(const struct cpu_wgrad *a);
/* Packs a piece of dy into the workspace: rows from a multiple of 32 up to another multiple or the end; columns likewise.
 * Pieces may come in any order, from different threads of the pool. */
void cpu_wgrad_take_dy(struct replica *r, const struct cpu_wgrad *a, int64_t row, int64_t rows, int64_t column, int64_t columns);

/* Bytes of replica->workspace that cpu_wgrad needs for matrices of exactly these sizes, or with fewer rows, of either type,
 * with a pool of `threads`. */
size_t cpu_wgrad_workspace_bytes(int64_t rows, int64_t outputs, int64_t inputs, int threads);

/* Uses replica->workspace from its beginning (or a->offset) and the back end's pool; must not be called from within a pool
 * task. */
void cpu_wgrad(struct replica *r, const struct cpu_wgrad *a);

#endif
