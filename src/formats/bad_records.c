/* Decides whether a bad record ends the reading, and counts those that were skipped. */
#include "formats/bad_records.h"

#include <stdio.h>
#include "base/log.h"

enum status bad_record(struct bad_records *bad, enum status status)
{
	if (status != ERR_DATA)
		return status;
	if (!bad->skip) {
		if (!error_last()->hint[0])
			error_hint("correct the record, or give --on_bad_record skip to leave such records out and count them");
		return status;
	}
	if (bad->count++ == 0)
		bad->first = *error_last();
	return OK;
}

void bad_records_log(const struct bad_records *bad, const char *path)
{
	char count[FORMAT_BYTES];
	if (bad->count > 0)
		log_warning("'%s': %s left out; the first because: %s", path,
			    format_counted(count, bad->count, "bad record", "bad records"), bad->first.message);
}
