#include "train/schedule.h"

double schedule_rate(const struct schedule *schedule, int64_t step)
{
	int64_t warmup = schedule->warmup_steps, total = schedule->total_steps;
	if (step <= warmup)
		return schedule->peak * (double)step / (double)warmup;
	if (schedule->decay == DECAY_CONSTANT)
		return schedule->peak;
	if (step > total)
		return 0.0;
	return schedule->peak * (double)(total + 1 - step) / (double)(total + 1 - warmup);
}
