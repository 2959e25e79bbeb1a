/* Measures this machine's speed at an operation in a way that other running programs hardly disturb. */
#ifndef BACKEND_CPU_RATE_H
#define BACKEND_CPU_RATE_H

#include "base/pool.h"

/* FLOP/s of `task`, each call of which performs `flops`, on all threads of the pool together: each thread calls it with index
 * 0 to count - 1, several times over or until a second has passed, and the best time counts. Processor time is used, so that
 * threads waiting for a core that another program occupies do not look slow. 0 if memory runs out. */
double measured_rate(struct pool *pool, int64_t count, pool_task *task, void *context, double flops);

#endif
