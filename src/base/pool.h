/* The one thread pool. Pinned workers; denormals are flushed to zero in each (FTZ and DAZ), since denormal
 * operands cost several times the normal ones. Libraries run single-threaded inside workers. */
#ifndef BASE_POOL_H
#define BASE_POOL_H

#include <stdint.h>
#include "base/error.h"

struct pool;

/* threads = 0: one for each core this process may use. The calling thread is worker 0 of its own pool_run. */
MUST_USE enum status pool_create(struct pool **out, int threads);
/* The same for a caller with threads of its own that are none of ours, which the library has: the workers run where the system
 * puts them, and the caller's thread is never moved. */
MUST_USE enum status pool_create_unpinned(struct pool **out, int threads);
void pool_free(struct pool *pool);
int pool_threads(const struct pool *pool);
/* Cores this process may run on (affinity and cgroup quota). */
int pool_available_cores(void);

typedef void pool_task(void *context, int64_t index, int worker);

/* Runs task(context, i, worker) for every i in [0, count) and returns when all are done. Indices are claimed in
 * order by whichever worker is free, so results must depend on the index alone, never on `worker` (which is
 * only for picking scratch memory). One caller at a time; not from within a task. */
void pool_run(struct pool *pool, int64_t count, pool_task *task, void *context);

/* Runs task(context, worker, worker) exactly once on every worker (thread-local set-up). */
void pool_run_each(struct pool *pool, pool_task *task, void *context);

#endif
