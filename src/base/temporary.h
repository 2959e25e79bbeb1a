/* Folders for as long as a command runs, in $TMPDIR or /tmp. A process that is killed leaves its folder; the next one that needs
 * such a folder removes it. */
#ifndef BASE_TEMPORARY_H
#define BASE_TEMPORARY_H

#include "base/error.h"
#include "base/file.h"

struct temporary_folder {
	char path[PATH_BYTES];
	int lock; /* tells others that it is in use */
};

/* "bertc-<use>-XXXXXX". `use`: "evaluate", a plain word. */
MUST_USE enum status temporary_folder_make(struct temporary_folder *out, const char *use);
/* With all that is in it; the thread's last error stays. */
void temporary_folder_remove(struct temporary_folder *folder);

#endif
