/* Named evaluation sets as they are written: "old=a.txt b.txt new=c.txt" are two, of two files and of one. */
#ifndef RUN_EVALUATION_GROUPS_H
#define RUN_EVALUATION_GROUPS_H

#include <stdint.h>
#include "base/error.h"
#include "base/option.h"

struct evaluation_group {
	char name[64];       /* "" before the first name */
	const char **values; /* [count] paths; the texts are the list's */
	int64_t count;
};

struct evaluation_groups {
	struct evaluation_group *groups; /* [count] in the order of their first value */
	int64_t count;
	const char **values; /* owns the groups' values */
};

/* A name is letters, digits, '_', '-' and '.'; a value that is an existing file as a whole has none. A name that comes
 * again continues its set. ERR_USAGE names what cannot be read. */
MUST_USE enum status evaluation_groups_parse(struct evaluation_groups *out, const struct option_list *list);
/* No name may stand in both. */
MUST_USE enum status evaluation_groups_check(const struct evaluation_groups *a, const struct evaluation_groups *b);
void evaluation_groups_release(struct evaluation_groups *groups);

#endif
