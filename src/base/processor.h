/* What the processor offers beyond C, in the words of each architecture; kernels that compute are in backend/cpu/kernels. */
#ifndef BASE_PROCESSOR_H
#define BASE_PROCESSOR_H

#include <stddef.h>
#include <stdint.h>

/* Widths of vectors beyond those that every build may use, widest first: X(name, gcc's names of the extensions, whether the
 * processor has them). */
#if defined(__x86_64__)
#define PROCESSOR_WIDTHS(X)                                                                                                      \
	X(avx512, "avx512f,avx512dq,prefer-vector-width=512",                                                                    \
	  __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq"))                                               \
	X(avx2, "avx2", __builtin_cpu_supports("avx2"))
#else
#define PROCESSOR_WIDTHS(X)
#endif

/* Once per round of a loop that waits for another thread's store. */
static inline void processor_pause(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb"); /* "yield" does nothing on most processors */
#endif
}

/* Has the calling thread treat denormal numbers as zero, read or computed; returns the previous mode, to be restored. */
static inline uint64_t processor_flush_denormals(void)
{
	uint64_t mode = 0;
#if defined(__x86_64__)
	mode = __builtin_ia32_stmxcsr();
	__builtin_ia32_ldmxcsr((unsigned)mode | 0x8040);
#elif defined(__aarch64__)
	__asm__ volatile("mrs %0, fpcr" : "=r"(mode));
	__asm__ volatile("msr fpcr, %0" : : "r"(mode | 1u << 24));
#endif
	return mode;
}

static inline void processor_restore_denormals(uint64_t mode)
{
#if defined(__x86_64__)
	__builtin_ia32_ldmxcsr((unsigned)mode);
#elif defined(__aarch64__)
	__asm__ volatile("msr fpcr, %0" : : "r"(mode));
#else
	(void)mode;
#endif
}

/* crc32c() of hash.h by the processor's instruction, or NULL if it has none. */
typedef uint32_t crc32c_function(uint32_t crc, const void *bytes, size_t count);
crc32c_function *processor_crc32c(void);

#endif
