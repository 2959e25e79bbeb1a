/* How a run's ranks spend their time, and which rank keeps the others waiting. */
#ifndef REPORT_TIMES_H
#define REPORT_TIMES_H

#include <stdint.h>

/* How a rank spent its seconds since the last report. */
struct rank_times {
	double waited;       /* waiting for data */
	double computed;     /* forward, backward, and the norm, including overlapped communication */
	double communicated; /* large operations between ranks */
	double exposed;      /* the part of these that the rank had to wait for */
	int64_t steps;
	char host[64];
};

/* The rank that computes longest if it exceeds the median by a certain margin; otherwise -1. *ratio becomes the longest time
 * divided by the median. */
int32_t report_straggler(const struct rank_times *all, int32_t count, double *ratio);

#endif
