/* What becomes of a record that cannot be used: by --on_bad_record it stops the reading, or it is left out and counted. */
#ifndef FORMATS_BAD_RECORDS_H
#define FORMATS_BAD_RECORDS_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"

struct bad_records {
	bool skip;          /* set by the caller: --on_bad_record skip */
	int64_t count;      /* records left out so far */
	struct error first; /* why the first of them was */
};

/* To be called with the status of an error that was just set: under "stop" it is returned, with advice to skip added if the
 * error has none of its own. Under "skip" an ERR_DATA is counted and OK returned, so that the caller leaves the record out
 * and continues; other errors (memory, disk) stop the reading all the same. */
MUST_USE enum status bad_record(struct bad_records *bad, enum status status);
/* Notes in the log how many records of `path` were left out and why the first was; says nothing if none were. */
void bad_records_log(const struct bad_records *bad, const char *path);

#endif
