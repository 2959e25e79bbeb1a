/* Which instruction set the kernels use. Decided once per process. */
#ifndef BACKEND_CPU_ISA_H
#define BACKEND_CPU_ISA_H

#include "base/error.h"

/* Each level includes those before it. */
enum cpu_isa {
	CPU_ISA_AVX2,        /* with FMA, F16C and BMI2 */
	CPU_ISA_AVX512,      /* F, BW, DQ, VL, CD */
	CPU_ISA_AVX512_VNNI, /* vpdpbusd: products of bytes */
	CPU_ISA_AVX512_BF16, /* vdpbf16ps */
	CPU_ISA_AMX,         /* tdpbf16ps, tdpbusd; the process has permission to use tiles */
	CPU_ISA_COUNT,
};

extern const char *const cpu_isa_names[CPU_ISA_COUNT]; /* "avx2" "avx512" "avx512_vnni" "avx512_bf16" "amx" */

/* The highest level that both processor and operating system support, or the one that the environment variable BERTC_ISA
 * names. ERR_USAGE: the processor lacks AVX2 or FMA, or BERTC_ISA is unknown or above what is supported. The first call
 * decides; it also requests AMX tiles from the kernel, which all threads of the process may then use. */
MUST_USE enum status cpu_isa_detect(enum cpu_isa *out);

/* The level decided on; it is a bug to call this if cpu_isa_detect() fails on this machine. */
enum cpu_isa cpu_isa(void);

#endif
