/* The speed of this machine in an operation, measured so that other programs on it matter little. */
#ifndef BACKEND_CPU_RATE_H
#define BACKEND_CPU_RATE_H

#include "base/pool.h"

/* FLOP/s of `task`, of which one call makes `flops`, on all threads of the pool together: each calls it with index 0 to
 * count - 1, a few times over, and the best time counts. It is processor time, so that threads which wait for a core that another
 * program has are not taken for slow ones. 0 without memory. */
double measured_rate(struct pool *pool, int64_t count, pool_task *task, void *context, double flops);

#endif
