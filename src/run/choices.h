/* What a run chose for settings that the user left open. Choices are kept separately from the settings, which stay as they were
 * given; the command shows both in one table and records both in checkpoints. */
#ifndef RUN_CHOICES_H
#define RUN_CHOICES_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"

struct choice {
	const char *name; /* of the option; borrowed */
	char *text;       /* its value as a user would write it */
};

/* Zero-initialize. */
struct choices {
	struct choice *items; /* [count], each name once */
	int64_t count, capacity;
};

/* Each of these replaces an earlier choice of the same name. *out is the value as written in the text, so that a run which reads
 * its own record computes with the same numbers. */
MUST_USE enum status choose_text(struct choices *choices, const char *name, const char *text);
MUST_USE enum status choose_integer(struct choices *choices, const char *name, int64_t value, int64_t *out);
/* Rounded to `digits` significant digits. */
MUST_USE enum status choose_number(struct choices *choices, const char *name, double value, int digits, double *out);
/* For a flag that is -1 while it is open. */
MUST_USE enum status choose_flag(struct choices *choices, const char *name, bool value, int *out);
void choices_release(struct choices *choices);

#endif
