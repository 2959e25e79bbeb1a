/* How records that cannot be used are treated: depending on --on_bad_record, one stops reading or is skipped and counted. */
#ifndef FORMATS_BAD_RECORDS_H
#define FORMATS_BAD_RECORDS_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"

/* The words of --on_bad_record, in their order. */
enum on_bad_record { STOP_ON_BAD_RECORD, SKIP_BAD_RECORD };

struct bad_records {
	bool skip;          /* set by the caller: --on_bad_record skip */
	int64_t count;      /* records skipped so far */
	struct error first; /* why the first of them was skipped */
};

/* Call this with the status of an error that was just set. Under "stop" the status is returned, with advice to skip added if the
 * error has no hint of its own. Under "skip" an ERR_DATA is counted and OK returned, so that the caller skips the record and
 * continues; other errors (memory, disk) stop reading in either case. */
MUST_USE enum status bad_record(struct bad_records *bad, enum status status);
/* Logs how many records of `path` were skipped and why the first one was; prints nothing if none were. */
void bad_records_log(const struct bad_records *bad, const char *path);

#endif
