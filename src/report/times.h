/* What the seconds of a run's ranks went into, and the rank that keeps the others waiting. */
#ifndef REPORT_TIMES_H
#define REPORT_TIMES_H

#include <stdint.h>

/* What a rank's seconds went into since the last report. */
struct rank_times {
	double waited;       /* for data */
	double computed;     /* forward, backward and the norm, and whatever communication ran beside them */
	double communicated; /* in the large operations between ranks */
	double exposed;      /* ... and the part of those that the rank had to wait for */
	int64_t steps;
	char host[64];
};

/* The rank whose computing takes longest, if by more than a margin over the median; otherwise -1. *ratio is its time over the
 * median. */
int32_t report_straggler(const struct rank_times *all, int32_t count, double *ratio);

#endif
