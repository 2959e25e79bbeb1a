/* The tables of gemm.h, one per instruction set and source type. */
#ifndef BACKEND_CPU_KERNELS_GEMM_KERNELS_H
#define BACKEND_CPU_KERNELS_GEMM_KERNELS_H

#include "backend/cpu/gemm.h"

extern const struct gemm_kernels gemm_kernels_f32_avx2, gemm_kernels_bf16_avx2;
extern const struct gemm_kernels gemm_kernels_f32_avx512, gemm_kernels_bf16_avx512;
extern const struct gemm_kernels gemm_kernels_f32_avx512_vnni, gemm_kernels_bf16_avx512_vnni;
extern const struct gemm_kernels gemm_kernels_f32_avx512_bf16, gemm_kernels_bf16_avx512_bf16;
extern const struct gemm_kernels gemm_kernels_f32_amx, gemm_kernels_bf16_amx;

#ifdef ISA
#include "backend/cpu/kernels/elements.h"

/* Defined in gemm_product.c, used in gemm_pack.c's tables. */
void KERNEL(gemm_multiply_f32)(const struct block_product *product);
void KERNEL(gemm_multiply_bf16)(const struct block_product *product);  /* avx512_bf16 and above */
void KERNEL(gemm_multiply_panel)(const struct panel_product *product); /* amx only */
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
		_mm_prefetch(w->line, _MM_HINT_T1);
		w->line += CACHE_LINE;
		if (w->line >= w->end) {
			w->end += w->stride;
			w->line = w->end - w->row_bytes;
			w->rows--;
		}
	}
}
#endif

#endif
