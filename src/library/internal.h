/* What the functions of include/bertc.h share: statuses and errors on their way out, options of any version on their way in. */
#ifndef LIBRARY_INTERNAL_H
#define LIBRARY_INTERNAL_H

#include <stdbool.h>
#include "base/error.h"
#include "bertc.h"

/* Fills *out (may be NULL) with `status` and, unless that is OK, the last error of the thread. */
bertc_status library_leave(enum status status, bertc_error *out);

/* Copies options of the caller's version into *out, which is as large as the library knows them. `given` NULL: all zero.
 * ERR_USAGE: the size is wrong, or a later version's member is set. */
MUST_USE enum status library_options(void *out, size_t size, const void *given, const char *name);

/* ERR_USAGE that names the argument if it is NULL. */
MUST_USE enum status library_given(const void *argument, const char *name);
/* The same for an array of `count` texts, none of which may be NULL. `optional`: each may. */
MUST_USE enum status library_texts(const char *const *texts, int64_t count, const char *name, bool optional);
/* A number of threads or tokens is not negative. */
MUST_USE enum status library_not_negative(int64_t value, const char *name);

#endif
