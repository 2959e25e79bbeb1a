/* Vectors of the instruction set that a kernel file is compiled for, and all the operations that kernels are written in. Each
 * instruction set defines the same ones, in a header of its own; the comments are in vector_avx512.h. */
#ifndef BACKEND_CPU_KERNELS_VECTOR_H
#define BACKEND_CPU_KERNELS_VECTOR_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "backend/tensor.h"

/* Kernels are written with dtype as a constant argument, which inlining eliminates. */
#define INLINE static inline __attribute__((always_inline))

#if defined(__aarch64__)
#include "backend/cpu/kernels/vector_neon.h"
#elif defined(__AVX512F__)
#include "backend/cpu/kernels/vector_avx512.h"
#else
#include "backend/cpu/kernels/vector_avx2.h"
#endif

#endif
