/* Sets of files as the user lists them, [NAME=]PATH...: a name begins a new set; paths without a name belong to the preceding
 * set, or to a first set, which then has no name. */
#ifndef TASKS_SET_LIST_H
#define TASKS_SET_LIST_H

#include <stddef.h>
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
	struct file_set *sets; /* [count] */
	int64_t count;
	const char **paths;
	struct string_store names;
};

/* Parses the list of option --`option`. ERR_USAGE: two sets of the same name; with `name_folders` (results are written into
 * folders of these names) a name that is not a plain file name, or that has a meaning in a run's folder. */
MUST_USE enum status set_list_parse(struct set_list *out, const char *option, const struct option_list *list, bool name_folders);
void set_list_release(struct set_list *list);

#endif
