/* The files of a task in one folder, as --data_dir names it: for GLUE under their published names, else train, dev and test. */
#ifndef TASKS_DATA_DIR_H
#define TASKS_DATA_DIR_H

#include "base/string_store.h"
#include "tasks/task.h"

#define DATA_SETS 2
/* Zero-initialize; released also after a failure. */
struct data_dir {
	const char *train;                            /* path; NULL: there is none */
	const char *dev[DATA_SETS], *test[DATA_SETS]; /* [NAME=]PATH; NULL ends the list */
	struct string_store strings;
};

/* Looks for the files of `task` with its own settings (of `layout`, for a published task), including compressed ones. ERR_USAGE:
 * this is not a folder, or it has none of the files; the message lists the names that were looked for. */
MUST_USE enum status data_dir_find(struct data_dir *out, const struct task *task, const struct layout *layout, const void *own,
				   const char *folder);
void data_dir_release(struct data_dir *folder);

#endif
