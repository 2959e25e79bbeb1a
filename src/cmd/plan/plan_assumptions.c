/* Adds a line to the list of figures on which a plan is based. */
#include "cmd/plan/plan_assumptions.h"

#include <stdarg.h>
#include <stdio.h>

void plan_assume(struct assumptions *assumptions, enum provenance provenance, const char *name, const char *value,
		 const char *format, ...)
{
	va_list arguments;
	BUG_IF(assumptions->count == ASSUMPTIONS);
	struct assumption *row = &assumptions->items[assumptions->count++];
	row->provenance = provenance;
	snprintf(row->name, sizeof row->name, "%s", name);
	snprintf(row->value, sizeof row->value, "%s", value);
	va_start(arguments, format);
	vsnprintf(row->source, sizeof row->source, format, arguments);
	va_end(arguments);
}
