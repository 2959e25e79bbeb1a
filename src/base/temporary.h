/* Folders that exist only while a command runs, in $TMPDIR or /tmp. A killed process leaves its folder behind; the next one that
 * needs such a folder removes it. */
#ifndef BASE_TEMPORARY_H
#define BASE_TEMPORARY_H

#include "base/error.h"
#include "base/file.h"

struct temporary_folder {
	char path[PATH_BYTES];
	int lock; /* tells other processes that it is in use */
};

/* Makes "bertc-<use>-XXXXXX". `use` is a plain word such as "evaluate". */
MUST_USE enum status temporary_folder_make(struct temporary_folder *out, const char *use);
/* Removes the folder and everything in it; the thread's last error is kept. */
void temporary_folder_remove(struct temporary_folder *folder);

#endif
