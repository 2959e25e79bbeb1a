/* Chooses the table of kernels for this machine's instruction set. */
#include "backend/cpu/kernels.h"

#include "backend/cpu/gelu_table.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/kernels/table.h"

const struct cpu_kernels *cpu_kernels(void)
{
	gelu_tables_fill();
	switch (cpu_isa()) {
	case CPU_ISA_AVX2: return &cpu_kernels_avx2;
	case CPU_ISA_AVX512: return &cpu_kernels_avx512;
	case CPU_ISA_AVX512_VNNI: return &cpu_kernels_avx512_vnni;
	case CPU_ISA_AVX512_BF16: return &cpu_kernels_avx512_bf16;
	default: return &cpu_kernels_amx;
	}
}
