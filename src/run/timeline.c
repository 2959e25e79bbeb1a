/* Simulates one device's queue of work and one of transfers. */
#include "run/timeline.h"

#include <stdbool.h>

#include "base/error.h"

double timeline_run(const struct timeline_work *work, int64_t work_count, struct timeline_transfer *transfers,
		    int64_t transfer_count, double slowed, double *done)
{
	int64_t w = 0, t = 0; /* the first ones not done */
	double now = 0, work_left = work_count > 0 ? work[0].seconds : 0;
	double transfer_left = transfer_count > 0 ? transfers[0].seconds : 0;
	bool transferring = false;
	while (w < work_count || t < transfer_count) {
		bool computes = w < work_count && work[w].needs < t;
		bool transfers_now = t < transfer_count && transfers[t].after < w;
		BUG_IF(!computes && !transfers_now);
		if (transfers_now && !transferring) {
			transfers[t].begin = now;
			transferring = true;
		}
		double speed = transfers_now ? 1 - slowed : 1;
		double work_ends = computes ? work_left / speed : 0, transfer_ends = transfers_now ? transfer_left : 0;
		if (!transfers_now || (computes && work_ends <= transfer_ends)) {
			now += work_ends;
			transfer_left -= transfers_now ? work_ends : 0;
			done[w++] = now;
			work_left = w < work_count ? work[w].seconds : 0;
		} else {
			now += transfer_ends;
			work_left -= computes ? transfer_ends * speed : 0;
			transfers[t++].end = now;
			transferring = false;
			transfer_left = t < transfer_count ? transfers[t].seconds : 0;
		}
		transfer_left = transfer_left > 0 ? transfer_left : 0;
		work_left = work_left > 0 ? work_left : 0;
	}
	return work_count > 0 ? done[work_count - 1] : 0;
}
