/* Sets of files as the user lists them, [NAME=]PATH...: paths without a name belong to the set before, or to a first one, which
 * then has no name; a name that occurs again continues its set. "old=a.txt b.txt new=c.txt" is two sets, of two files and of one.
 */
#ifndef BASE_SET_LIST_H
#define BASE_SET_LIST_H

#include <stdint.h>

#include "base/error.h"
#include "base/option.h"
#include "base/path.h"
#include "base/string_store.h"

struct file_set {
	const char *name;   /* "" for the first if it has no name */
	const char **paths; /* [count] borrowed from the list */
	int64_t count;
};
/* Zero-initialize; released also after a failure. */
struct set_list {
	struct file_set *sets; /* [count] in the order of their first paths */
	int64_t count;
	const char **paths;
	struct string_store names;
};

/* set_name_size() says which values have a name. ERR_USAGE: a name without a path. `list` NULL: there are no sets. */
MUST_USE enum status set_list_parse(struct set_list *out, const struct option_list *list);
void set_list_release(struct set_list *list);

/* For sets of --`option` whose results are written into folders of their names: ERR_USAGE if a run's folder has one of that name.
 */
MUST_USE enum status set_list_check_folders(const struct set_list *list, const char *option);
/* For names that become those of measures: letters, digits, '_', '-' and '.', at most 63. */
MUST_USE enum status set_list_check_names(const struct set_list *list);
/* ERR_USAGE if a name occurs in both. */
MUST_USE enum status set_list_check_apart(const struct set_list *a, const struct set_list *b);

#endif
