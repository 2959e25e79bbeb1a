/* What a run settled on where the user left something open. It stands beside the settings, which stay as they were given; the
 * command shows both in one table and records both in checkpoints. */
#ifndef RUN_CHOICES_H
#define RUN_CHOICES_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"

struct choice {
	const char *name; /* of the option; borrowed */
	char *text;       /* its value as a person would write it */
};

/* Zero-initialise. */
struct choices {
	struct choice *items; /* [count], each name once */
	int64_t count, capacity;
};

/* Each replaces an earlier choice of this name. *out is what the text says, so that a run which reads its own record computes
 * the same numbers. */
MUST_USE enum status choose_text(struct choices *choices, const char *name, const char *text);
MUST_USE enum status choose_integer(struct choices *choices, const char *name, int64_t value, int64_t *out);
/* With so many significant digits. */
MUST_USE enum status choose_number(struct choices *choices, const char *name, double value, int digits, double *out);
/* A flag that is -1 while it is open. */
MUST_USE enum status choose_flag(struct choices *choices, const char *name, bool value, int *out);
void choices_release(struct choices *choices);

#endif
