/* What path.c shares with file.c, file_map.c, and folder.c only. */
#ifndef BASE_PATH_INTERNAL_H
#define BASE_PATH_INTERNAL_H

#include <sys/stat.h>
#include "base/error.h"

/* Repeats a call that is interrupted by a signal; needs errno.h. */
#define RETRY(result, call)                                                                                                      \
	do {                                                                                                                     \
		result = (call);                                                                                                 \
	} while (result < 0 && errno == EINTR)

/* The status for errno after a call that took a path: ERR_USAGE if the path cannot be right, which the user must correct;
 * otherwise ERR_RESOURCE. */
enum status file_path_status(void);

/* Opens a file that is not a folder. */
MUST_USE enum status file_open_for_reading(const char *path, int *out_fd, struct stat *out_facts);

#endif
