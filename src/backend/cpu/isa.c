/* Asks the processor and the operating system which instruction set can be used, and honors BERTC_ISA. */
#include "backend/cpu/isa.h"

#include <cpuid.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

const char *const cpu_isa_names[CPU_ISA_COUNT] = {"avx2", "avx512", "avx512_vnni", "avx512_bf16", "amx"};

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

/* The highest level that this machine supports, or -1. */
static int machine_isa(void)
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

static pthread_once_t decided = PTHREAD_ONCE_INIT;
static int available, wanted; /* levels; wanted == CPU_ISA_COUNT: the name is unknown */

static void decide(void)
{
	available = machine_isa();
	wanted = available;
	const char *name = getenv("BERTC_ISA");
	if (name && *name)
		for (wanted = 0; wanted < CPU_ISA_COUNT && strcmp(name, cpu_isa_names[wanted]) != 0; wanted++)
			continue;
}

enum status cpu_isa_detect(enum cpu_isa *out)
{
	pthread_once(&decided, decide);
	if (available < 0)
		return error_hinted(error_set(ERR_USAGE, "this processor (or its hypervisor) lacks AVX2 or FMA"),
				    "the CPU back end needs them; '--device ref' runs anywhere, slowly");
	if (wanted == CPU_ISA_COUNT)
		return error_hinted(error_set(ERR_USAGE, "BERTC_ISA=%s: no such instruction set", getenv("BERTC_ISA")),
				    "use avx2, avx512, avx512_vnni, avx512_bf16 or amx, or unset it");
	if (wanted > available)
		return error_hinted(error_set(ERR_USAGE, "BERTC_ISA=%s: this machine only has %s", cpu_isa_names[wanted],
					      cpu_isa_names[available]),
				    "BERTC_ISA can only lower the instruction set; unset it");
	*out = (enum cpu_isa)wanted;
	return OK;
}

enum cpu_isa cpu_isa(void)
{
	enum cpu_isa isa = CPU_ISA_AVX2;
	BUG_IF(cpu_isa_detect(&isa) != OK);
	return isa;
}
