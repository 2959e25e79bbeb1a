/* Chooses the table of kernels for this machine's instruction set. */
#include "backend/cpu/kernels.h"

#include "backend/cpu/gelu_table.h"
#include "backend/cpu/isa.h"

const struct cpu_kernels *cpu_kernels(void)
{
	gelu_tables_fill();
	return cpu_level()->kernels;
}
