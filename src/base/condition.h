/* Conditions with timeouts. */
#ifndef BASE_CONDITION_H
#define BASE_CONDITION_H

#include <pthread.h>

/* Makes a condition whose timeouts use the clock of clock_seconds(), CLOCK_MONOTONIC: the time of day may be set back, and a wait
 * until then may take hours. */
void condition_init(pthread_cond_t *condition);

#endif
