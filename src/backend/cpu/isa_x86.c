/* x86-64: asks the processor and the operating system which instruction set can be used; and the kernels of each. */
#include "backend/cpu/isa.h"

#include <cpuid.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "backend/cpu/kernels/table.h"

LEVEL_KERNELS(avx2);
LEVEL_KERNELS(avx512);
LEVEL_KERNELS(avx512_vnni);
LEVEL_KERNELS(avx512_bf16);
LEVEL_KERNELS(amx);

const struct cpu_level cpu_levels[CPU_ISA_COUNT] = {
	[CPU_ISA_AVX2] = {LEVEL(avx2), .floats = "AVX2", .int8 = "int8"},
	[CPU_ISA_AVX512] = {LEVEL(avx512), .floats = "AVX-512", .int8 = "int8", .computes_bf16 = true},
	[CPU_ISA_AVX512_VNNI] = {LEVEL(avx512_vnni), .floats = "AVX-512", .int8 = "int8 VNNI", .computes_bf16 = true},
	[CPU_ISA_AVX512_BF16] = {LEVEL(avx512_bf16), .floats = "AVX-512 BF16", .int8 = "int8 VNNI", .computes_bf16 = true,
				 .prefers_bf16 = true},
	[CPU_ISA_AMX] = {LEVEL(amx), .floats = "AMX", .int8 = "int8 VNNI", .computes_bf16 = true, .prefers_bf16 = true},
};
const char *const cpu_isa_needed = "AVX2 or FMA", *const cpu_bf16_needed = "AVX-512";

/* Register state that the operating system saves (bits of XCR0): without it the instructions fault, whatever cpuid reports. */
enum {
	XCR0_AVX = 1 << 1 | 1 << 2,
	XCR0_AVX512 = XCR0_AVX | 1 << 5 | 1 << 6 | 1 << 7,
	XCR0_AMX = 1 << 17 | 1 << 18,
};

static uint32_t xcr0(void)
{
	uint32_t low, high;
	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	return low;
}

/* Linux allows tile state only for processes that request it, because the signal frame grows by 8 KiB. */
static bool request_tiles(void)
{
	enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
	return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
}

static bool has(uint32_t word, uint32_t bits)
{
	return (word & bits) == bits;
}

int cpu_isa_of_machine(void)
{
	uint32_t a, b, c, d, features7a = 0, features7b, features7c, features7d, subleaves;
	if (!__get_cpuid(1, &a, &b, &c, &d) || !has(c, bit_OSXSAVE | bit_AVX | bit_FMA | bit_F16C))
		return -1;
	if (!__get_cpuid_count(7, 0, &subleaves, &features7b, &features7c, &features7d))
		return -1;
	if (subleaves >= 1)
		__get_cpuid_count(7, 1, &features7a, &b, &c, &d);
	uint32_t saved = xcr0();
	if (!has(saved, XCR0_AVX) || !has(features7b, bit_AVX2 | bit_BMI2))
		return -1;
	if (!has(saved, XCR0_AVX512) || !has(features7b, bit_AVX512F | bit_AVX512DQ | bit_AVX512CD | bit_AVX512BW | bit_AVX512VL))
		return CPU_ISA_AVX2;
	if (!has(features7c, bit_AVX512VNNI))
		return CPU_ISA_AVX512;
	if (!has(features7a, bit_AVX512BF16))
		return CPU_ISA_AVX512_VNNI;
	if (!has(saved, XCR0_AMX) || !has(features7d, bit_AMX_TILE | bit_AMX_BF16 | bit_AMX_INT8) || !request_tiles())
		return CPU_ISA_AVX512_BF16;
	return CPU_ISA_AMX;
}
