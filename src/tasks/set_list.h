/* Sets of files as a person lists them, [NAME=]PATH...: a name begins a set of its own, paths without one belong to the set
 * before, or to the first, which then has no name. */
#ifndef TASKS_SET_LIST_H
#define TASKS_SET_LIST_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/option.h"
#include "base/string_store.h"

struct file_set {
	const char *name;   /* "" for the first without a name */
	const char **paths; /* [count] borrowed from the list */
	int64_t count;
};
/* Zero-initialise; released also after a failure. */
struct set_list {
	struct file_set *sets; /* [count] */
	int64_t count;
	const char **paths;
	struct string_store names;
};

/* Bytes of NAME in [NAME=]PATH; 0: there is none. A text with a slash before its equals sign, or one under which there is a file,
 * is a path. */
size_t set_name_size(const char *value);
/* Its PATH. */
const char *set_path(const char *value);

/* Takes the list of option --`option` apart. ERR_USAGE: two sets of one name; with `name_folders`, where results are written into
 * folders of these names, a name that is no plain file name, or that a run's folder has a use for. */
MUST_USE enum status set_list_parse(struct set_list *out, const char *option, const struct option_list *list, bool name_folders);
void set_list_release(struct set_list *list);

#endif
