/* The files of a task in one folder, as --data_dir names it: GLUE's under their published names, else train, dev and test. */
#ifndef TASKS_DATA_FOLDER_H
#define TASKS_DATA_FOLDER_H

#include "base/string_store.h"
#include "tasks/task.h"

#define DATA_SETS 2
/* Zero-initialise; released also after a failure. */
struct data_folder {
	const char *train;                            /* path; NULL: there is none */
	const char *dev[DATA_SETS], *test[DATA_SETS]; /* [NAME=]PATH; NULL ends the list */
	struct string_store strings;
};

/* Looks for the files of `task` (a published one: of `layout`), packed ones too. A folder that is none, or that has none of them,
 * is ERR_USAGE with the names that were looked for. */
MUST_USE enum status data_folder_find(struct data_folder *out, const struct task *task, const struct layout *layout,
				      bool version_2, const char *folder);
void data_folder_release(struct data_folder *folder);

#endif
