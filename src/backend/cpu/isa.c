/* Decides which instruction set is used: the best that this machine has, or what BERTC_ISA names. */
#include "backend/cpu/isa.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_once_t decided = PTHREAD_ONCE_INIT;
static int available, wanted; /* levels; wanted == CPU_ISA_COUNT: the name is unknown */

static void decide(void)
{
	available = cpu_isa_of_machine();
	wanted = available;
	const char *name = getenv("BERTC_ISA");
	if (name && *name)
		for (wanted = 0; wanted < CPU_ISA_COUNT && strcmp(name, cpu_levels[wanted].name) != 0; wanted++)
			continue;
}

enum status cpu_isa_detect(enum cpu_isa *out)
{
	pthread_once(&decided, decide);
	if (available < 0)
		return error_hinted(error_set(ERR_USAGE, "this processor (or its hypervisor) lacks %s", cpu_isa_needed),
				    "the CPU back end needs them; '--device ref' runs anywhere, slowly");
	if (wanted == CPU_ISA_COUNT) {
		char names[64] = "";
		for (int i = 0; i < CPU_ISA_COUNT; i++) {
			size_t length = strlen(names);
			const char *between = i == 0 ? "" : i + 1 < CPU_ISA_COUNT ? ", " : " or ";
			snprintf(names + length, sizeof names - length, "%s%s", between, cpu_levels[i].name);
		}
		return error_hinted(error_set(ERR_USAGE, "BERTC_ISA=%s: no such instruction set", getenv("BERTC_ISA")),
				    "use %s, or unset it", names);
	}
	if (wanted > available)
		return error_hinted(error_set(ERR_USAGE, "BERTC_ISA=%s: this machine only has %s", cpu_levels[wanted].name,
					      cpu_levels[available].name),
				    "BERTC_ISA can only lower the instruction set; unset it");
	*out = (enum cpu_isa)wanted;
	return OK;
}

enum cpu_isa cpu_isa(void)
{
	enum cpu_isa isa = 0;
	BUG_IF(cpu_isa_detect(&isa) != OK);
	return isa;
}
