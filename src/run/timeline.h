/* A device's work and its transfers, side by side: when each begins and ends where either may have to wait for the other. */
#ifndef RUN_TIMELINE_H
#define RUN_TIMELINE_H

#include <stdint.h>

/* Work of a device in its order, and collectives in theirs; each waits for the other where it must. */
struct timeline_work {
	double seconds;
	int64_t needs; /* collective that must be done before it begins; -1: none */
};
struct timeline_transfer {
	double seconds;
	int64_t after;     /* work that must be done before it begins */
	double begin, end; /* filled in */
};
/* Runs both; `slowed` is the share of the device's speed lost while a transfer is under way. Returns when all work is
 * done; `done` [work_count] is when each piece was. What waits for something later than itself is a bug. */
double timeline_run(const struct timeline_work *work, int64_t work_count, struct timeline_transfer *transfers,
		    int64_t transfer_count, double slowed, double *done);

#endif
