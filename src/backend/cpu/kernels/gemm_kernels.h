/* The tables of gemm.h, one for each instruction set and source type. */
#ifndef BACKEND_CPU_KERNELS_GEMM_KERNELS_H
#define BACKEND_CPU_KERNELS_GEMM_KERNELS_H

#include "backend/cpu/gemm.h"

extern const struct gemm_kernels gemm_kernels_f32_avx2, gemm_kernels_bf16_avx2;
extern const struct gemm_kernels gemm_kernels_f32_avx512, gemm_kernels_bf16_avx512;
extern const struct gemm_kernels gemm_kernels_f32_avx512_bf16, gemm_kernels_bf16_avx512_bf16;
extern const struct gemm_kernels gemm_kernels_f32_amx, gemm_kernels_bf16_amx;

#ifdef ISA
#include "backend/cpu/kernels/elements.h"

/* Defined in gemm_product.c, listed in gemm_pack.c's tables. */
void KERNEL(gemm_multiply_f32)(const struct block_product *product);
void KERNEL(gemm_multiply_bf16)(const struct block_product *product); /* from avx512_bf16 on */
void KERNEL(gemm_multiply_panel)(const struct panel_product *product); /* amx */
void KERNEL(gemm_begin)(void);
void KERNEL(gemm_end)(void);
#endif

#endif
