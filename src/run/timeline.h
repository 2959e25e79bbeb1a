/* A device's work and its transfers, which overlap: when each begins and ends, given that either may have to wait for the
 * other. */
#ifndef RUN_TIMELINE_H
#define RUN_TIMELINE_H

#include <stdint.h>

/* Work and transfers are each executed in order. */
struct timeline_work {
	double seconds;
	int64_t needs; /* the transfer that must be done before it begins; -1: none */
};
struct timeline_transfer {
	double seconds;
	int64_t after;     /* the work that must be done before it begins */
	double begin, end; /* filled in */
};
/* Simulates both; `slowed` is the share of the device's speed lost while a transfer is under way. Returns the time when all work
 * is done; `done` [work_count] gets the time for each piece. Waiting for something that comes later in the order is a bug of the
 * caller. */
double timeline_run(const struct timeline_work *work, int64_t work_count, struct timeline_transfer *transfers,
		    int64_t transfer_count, double slowed, double *done);

#endif
