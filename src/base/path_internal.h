/* What path.c lends to file.c, file_map.c and folder.c alone. */
#ifndef BASE_PATH_INTERNAL_H
#define BASE_PATH_INTERNAL_H

#include <sys/stat.h>
#include "base/error.h"

/* Repeats a call that a signal interrupted; needs errno.h. */
#define RETRY(result, call)                                                                                                      \
	do {                                                                                                                     \
		result = (call);                                                                                                 \
	} while (result < 0 && errno == EINTR)

/* The status for errno after a call that took a path: one that cannot be right is the user's to correct, the
 * rest is the machine's. */
enum status file_path_status(void);

/* The folder that holds `path`, "." for a bare name, into a char[PATH_BYTES]; out may be path. */
void file_parent(char *out, const char *path);

/* Opens a file that is not a folder. */
MUST_USE enum status file_open_for_reading(const char *path, int *out_fd, struct stat *out_facts);

#endif
