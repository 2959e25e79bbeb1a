/* Whether the CPU back end computes in bf16 on this machine: on x86-64 it needs AVX-512, though not its bf16 instructions.
 * Elsewhere the tests of bf16 are skipped. */
#ifndef TESTS_BACKEND_CPU_BF16_H
#define TESTS_BACKEND_CPU_BF16_H

#include <stdbool.h>
#include "backend/cpu/isa.h"

static inline bool cpu_computes_bf16(void)
{
	enum cpu_isa isa;
	return cpu_isa_detect(&isa) == OK && cpu_levels[isa].computes_bf16;
}

#endif
