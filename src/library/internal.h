/* Shared by the functions of include/bertc.h: statuses and errors on their way out, options of any version on their way in. */
#ifndef LIBRARY_INTERNAL_H
#define LIBRARY_INTERNAL_H

#include <stdbool.h>
#include "base/error.h"
#include "bertc.h"

/* Fills *out (may be NULL) with `status` and, unless that is OK, with the thread's last error. Returns the status. */
bertc_status library_leave(enum status status, bertc_error *out);

/* Copies options of the caller's version into *out, which has the size that this version of the library knows. `given` NULL: all
 * zero. ERR_USAGE: the size is invalid, or a member that only a later version knows is set. */
MUST_USE enum status library_options(void *out, size_t size, const void *given, const char *name);

/* ERR_USAGE, naming the argument, if it is NULL. */
MUST_USE enum status library_given(const void *argument, const char *name);
/* The same for an array of `count` texts, none of which may be NULL. `optional`: the array and each text may be NULL. */
MUST_USE enum status library_texts(const char *const *texts, int64_t count, const char *name, bool optional);
/* ERR_USAGE if a number, such as one of threads or tokens, is negative. */
MUST_USE enum status library_not_negative(int64_t value, const char *name);

#endif
