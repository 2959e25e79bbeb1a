/* What the files that make the tables of gemm.h share. */
#ifndef BACKEND_CPU_KERNELS_GEMM_KERNELS_H
#define BACKEND_CPU_KERNELS_GEMM_KERNELS_H

#include "backend/cpu/gemm.h"
#include "backend/cpu/kernels/elements.h"

/* Defined in gemm_product.c, used in gemm_pack.c's tables. */
void KERNEL(gemm_multiply_f32)(const struct block_product *product);
void KERNEL(gemm_multiply_bf16)(const struct block_product *product);       /* where gemm_kernels_bf16 has bf16 blocks */
void KERNEL(gemm_multiply_panel_bf16)(const struct panel_product *product); /* amx, neon_mmla */
void KERNEL(gemm_multiply_panel_f32)(const struct panel_product *product);  /* on arm64 */
void KERNEL(gemm_begin)(void);
void KERNEL(gemm_end)(void);

enum { CACHE_LINE = 64 };

/* What remains to be prefetched into L2, and how much of it per step. */
struct walk {
	const char *line, *end; /* of the current row */
	int64_t rows, row_bytes, stride, lines;
};

INLINE struct walk walk_start(const struct gemm_fetch *f, int64_t steps)
{
	int64_t lines = f->rows * ((f->row_bytes + CACHE_LINE - 1) / CACHE_LINE);
	return (struct walk){.line = f->from,
			     .end = (const char *)f->from + f->row_bytes,
			     .rows = f->row_bytes > 0 ? f->rows : 0,
			     .row_bytes = f->row_bytes,
			     .stride = f->stride,
			     .lines = (lines + steps - 1) / steps};
}

INLINE void walk_on(struct walk *w)
{
	for (int64_t i = 0; i < w->lines && w->rows > 0; i++) {
		__builtin_prefetch(w->line, 0, 2);
		w->line += CACHE_LINE;
		if (w->line >= w->end) {
			w->end += w->stride;
			w->line = w->end - w->row_bytes;
			w->rows--;
		}
	}
}

#endif
