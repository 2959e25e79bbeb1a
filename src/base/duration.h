/* Durations as people and schedulers write them. */
#ifndef BASE_DURATION_H
#define BASE_DURATION_H

#include "base/error.h"

/* Converts "5400", "90.5", "1h30m", "2d", "45m", "1:30:00" (H:M:S), "45:00" (M:S), or "1-12:00:00" (with days, as Slurm writes
 * it) to seconds. Anything else, and a duration of 0, is ERR_USAGE. */
MUST_USE enum status duration_parse(const char *text, double *out_seconds);

#endif
