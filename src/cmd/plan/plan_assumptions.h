/* The figures that a plan is based on, and where each comes from. */
#ifndef CMD_PLAN_PLAN_ASSUMPTIONS_H
#define CMD_PLAN_PLAN_ASSUMPTIONS_H

#include "base/error.h"
#include "comm/link.h"

struct assumption {
	char name[40], value[64], source[128];
	enum provenance provenance;
};

#define ASSUMPTIONS 128 /* --device_rate makes one for each phase, of which there can be 100 */
struct assumptions {
	struct assumption items[ASSUMPTIONS];
	int count;
};

/* Notes an assumption; the source is formatted. */
void plan_assume(struct assumptions *assumptions, enum provenance provenance, const char *name, const char *value,
		 const char *format, ...) PRINTF_LIKE(5, 6);

#endif
