/* Which instruction set the kernels use, and the kernels compiled for it. Decided once per process. */
#ifndef BACKEND_CPU_ISA_H
#define BACKEND_CPU_ISA_H

#include <stdbool.h>
#include "base/error.h"

/* Each level includes those before it. */
enum cpu_isa {
#ifdef __aarch64__
	CPU_ISA_NEON,      /* Advanced SIMD, which every arm64 processor has */
	CPU_ISA_NEON_DOT,  /* sdot: products of bytes */
	CPU_ISA_NEON_MMLA, /* bfmmla, smmla: products of small matrices of bf16 numbers and of bytes */
#else
	CPU_ISA_AVX2,        /* with FMA, F16C and BMI2 */
	CPU_ISA_AVX512,      /* F, BW, DQ, VL, CD */
	CPU_ISA_AVX512_VNNI, /* vpdpbusd: products of bytes */
	CPU_ISA_AVX512_BF16, /* vdpbf16ps */
	CPU_ISA_AMX,         /* tdpbf16ps, tdpbusd; the process has permission to use tiles */
#endif
	CPU_ISA_COUNT,
};

/* A level: isa_x86.c and isa_arm64.c have the rows of their processors. */
struct cpu_level {
	const char *name;                  /* "avx512_bf16" */
	const char *floats, *int8;         /* as in descriptions: "AVX-512 BF16", "int8 VNNI" */
	bool computes_bf16, prefers_bf16;  /* at all; faster than fp32 */
	const struct cpu_kernels *kernels; /* kernels.h */
	const struct gemm_kernels *gemm_f32, *gemm_bf16;
	const struct attention_kernels *attention_f32, *attention_bf16;
	const struct inference_kernels *inference;
};

extern const struct cpu_level cpu_levels[CPU_ISA_COUNT];
/* What a processor without the first level lacks: "AVX2 or FMA"; without bf16: "AVX-512". */
extern const char *const cpu_isa_needed, *const cpu_bf16_needed;

/* The highest level that both processor and operating system support, or the one that the environment variable BERTC_ISA
 * names. ERR_USAGE: the processor lacks even the first level, or BERTC_ISA is unknown or above what is supported. The first call
 * decides; it also requests AMX tiles from the kernel, which all threads of the process may then use. */
MUST_USE enum status cpu_isa_detect(enum cpu_isa *out);

/* The level decided on; it is a bug to call this if cpu_isa_detect() fails on this machine. */
enum cpu_isa cpu_isa(void);

/* Its row. */
static inline const struct cpu_level *cpu_level(void)
{
	return &cpu_levels[cpu_isa()];
}

/* The highest level that this machine supports, or -1: asked once. */
int cpu_isa_of_machine(void);

#endif
