/* Named evaluation sets as the user lists them: "old=a.txt b.txt new=c.txt" gives two sets, of two files and of one. */
#ifndef RUN_EVALUATION_GROUPS_H
#define RUN_EVALUATION_GROUPS_H

#include <stdint.h>
#include "base/error.h"
#include "base/option.h"

struct evaluation_group {
	char name[64];       /* "" before the first name */
	const char **values; /* [count] paths; the strings belong to the option list */
	int64_t count;
};

struct evaluation_groups {
	struct evaluation_group *groups; /* [count] in the order of their first values */
	int64_t count;
	const char **values; /* the array that the groups' `values` point into */
};

/* A name consists of letters, digits, '_', '-' and '.'; set_name_size() says which values have none. A name that occurs again
 * continues its set. ERR_USAGE names what cannot be read. */
MUST_USE enum status evaluation_groups_parse(struct evaluation_groups *out, const struct option_list *list);
/* ERR_USAGE if a name occurs in both. */
MUST_USE enum status evaluation_groups_check(const struct evaluation_groups *a, const struct evaluation_groups *b);
void evaluation_groups_release(struct evaluation_groups *groups);

#endif
