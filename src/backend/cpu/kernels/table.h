/* The functions of struct cpu_kernels, as defined in the kernel files. */
#ifndef BACKEND_CPU_KERNELS_TABLE_H
#define BACKEND_CPU_KERNELS_TABLE_H

#include "backend/cpu/kernels.h"

#ifdef ISA
#include "backend/cpu/kernels/elements.h"

void KERNEL(linear_fwd)(const struct linear_rows *a);
void KERNEL(gelu_fwd)(const struct linear_rows *a);
void KERNEL(linear_bwd)(const struct linear_rows *a);
void KERNEL(tanh_bwd)(void *dy, const void *y, int64_t count, enum dtype dtype);
void KERNEL(gated)(const struct gated_rows *a);
void KERNEL(rotary)(const struct rotary_rows *a);
void KERNEL(norm_fwd)(const struct norm_rows *a);
void KERNEL(embed_fwd)(const struct embed_rows *a);
void KERNEL(norm_bwd)(const struct norm_bwd_rows *a);
void KERNEL(softmax_fwd)(const struct softmax_rows *a);
void KERNEL(softmax_bwd)(const struct softmax_bwd_rows *a);
void KERNEL(add_row)(float *sum, const void *row, int64_t count, enum dtype dtype);
void KERNEL(add_scaled_row)(float *sum, float factor, const void *row, int64_t count, enum dtype dtype);
void KERNEL(add_row_into)(void *out, const void *row, int64_t count, enum dtype dtype);
double KERNEL(sum_squares)(const float *x, int64_t count);
void KERNEL(adamw)(const struct adamw_range *a);
void KERNEL(lamb_norms)(const struct lamb_range *a, double sums[2]);
void KERNEL(lamb_apply)(const struct lamb_range *a);
void KERNEL(pack)(const struct pack_piece *a);
#endif

/* Declares the tables of a level, and the members of struct cpu_level that refer to them. */
#define LEVEL_KERNELS(isa)                                                                                                       \
	extern const struct cpu_kernels cpu_kernels_##isa;                                                                       \
	extern const struct gemm_kernels gemm_kernels_f32_##isa, gemm_kernels_bf16_##isa;                                        \
	extern const struct attention_kernels attention_kernels_f32_##isa, attention_kernels_bf16_##isa;                         \
	extern const struct inference_kernels inference_kernels_##isa
#define LEVEL(isa)                                                                                                               \
	.name = #isa, .kernels = &cpu_kernels_##isa, .gemm_f32 = &gemm_kernels_f32_##isa, .gemm_bf16 = &gemm_kernels_bf16_##isa, \
	.attention_f32 = &attention_kernels_f32_##isa, .attention_bf16 = &attention_kernels_bf16_##isa,                          \
	.inference = &inference_kernels_##isa

#endif
