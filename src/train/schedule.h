/* Learning rate as a function of the step. */
#ifndef TRAIN_SCHEDULE_H
#define TRAIN_SCHEDULE_H

#include <stdint.h>

enum decay { DECAY_LINEAR, DECAY_CONSTANT };

struct schedule {
	double peak;
	int64_t warmup_steps, total_steps;
	enum decay decay;
};

/* Rate of update t = 1 … total: t/W of the peak while t <= W, then straight down so that update total + 1 would have
 * rate 0. Google's formula jumps at t = W and wastes the first update on rate 0; this one is continuous and
 * every update moves. */
double schedule_rate(const struct schedule *schedule, int64_t step);

#endif
