/* Makes conditions that wait by the monotonic clock. */
#include "base/condition.h"

#include <time.h>

#include "base/error.h"

void condition_init(pthread_cond_t *condition)
{
	pthread_condattr_t attributes;
	BUG_IF(pthread_condattr_init(&attributes) != 0 || pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) != 0);
	BUG_IF(pthread_cond_init(condition, &attributes) != 0);
	pthread_condattr_destroy(&attributes);
}
