/* arm64: asks the kernel which instruction sets the processor has; and the kernels of each. */
#include "backend/cpu/isa.h"

#include <sys/auxv.h>
#include "backend/cpu/kernels/table.h"

LEVEL_KERNELS(neon);
LEVEL_KERNELS(neon_dot);
LEVEL_KERNELS(neon_mmla);

const struct cpu_level cpu_levels[CPU_ISA_COUNT] = {
	[CPU_ISA_NEON] = {LEVEL(neon), .floats = "NEON", .int8 = "int8"},
	[CPU_ISA_NEON_DOT] = {LEVEL(neon_dot), .floats = "NEON", .int8 = "int8 dot product"},
	[CPU_ISA_NEON_MMLA] = {LEVEL(neon_mmla), .floats = "NEON BF16", .int8 = "int8 I8MM", .computes_bf16 = true,
			       .prefers_bf16 = true},
};
const char *const cpu_isa_needed = "NEON", *const cpu_bf16_needed = "BF16";

int cpu_isa_of_machine(void)
{
	unsigned long has = getauxval(AT_HWCAP), has2 = getauxval(AT_HWCAP2);
	if (!(has & HWCAP_ASIMD))
		return -1;
	if (!(has & HWCAP_ASIMDDP))
		return CPU_ISA_NEON;
	if (!(has2 & HWCAP2_BF16) || !(has2 & HWCAP2_I8MM))
		return CPU_ISA_NEON_DOT;
	return CPU_ISA_NEON_MMLA;
}
