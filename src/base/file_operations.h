/* The system calls used for writing. All of them go through one table, so that tests can make the k-th call fail, write less than
 * asked, or kill the process. */
#ifndef BASE_FILE_OPERATIONS_H
#define BASE_FILE_OPERATIONS_H

#include <stdbool.h>
#include <sys/types.h>
#include "base/error.h"

/* BERTC_FAULT="write:3:ENOSPC" in the environment makes the third write fail with ENOSPC (operations: open write fsync close
 * rename unlink mkdir; modes: ENOSPC EIO EROFS EINTR short slow kill; "3+": the third and all later ones). `short` writes half
 * and returns that count, `slow` waits two seconds first, `kill` writes half and kills the process. "stop:3:SIGTERM" sends the
 * process that signal when it asks for the third time whether to stop. */
struct file_operations {
	int (*open)(const char *path, int flags, mode_t mode);
	ssize_t (*write)(int fd, const void *bytes, size_t count);
	int (*fsync)(int fd);
	int (*close)(int fd);
	int (*rename)(const char *from, const char *to);
	int (*unlink)(const char *path);
	int (*mkdir)(const char *path, mode_t mode);
};
extern struct file_operations file_operations;
/* The same, set by a test: NULL turns it off; counting starts again from zero. An invalid specification is ERR_USAGE. */
MUST_USE enum status file_fault_set(const char *specification);
void file_fault_stop(void); /* to be called whenever the process asks whether to stop */
bool file_fault_hit(void);  /* whether the fault has happened since it was set */

#endif
