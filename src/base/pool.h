/* The thread pool. Workers are pinned and flush denormals to zero (FTZ and DAZ), since operations on denormals take several times
 * as long. Libraries run single-threaded inside workers. */
#ifndef BASE_POOL_H
#define BASE_POOL_H

#include <stdint.h>
#include "base/error.h"

struct pool;

/* threads = 0: one for each core that this process may use. The thread that calls pool_run is worker 0. */
MUST_USE enum status pool_create(struct pool **out, int threads);
/* The same for the library, whose caller has threads of its own: the workers run where the system puts them, and the caller's
 * thread is never moved. */
MUST_USE enum status pool_create_unpinned(struct pool **out, int threads);
void pool_free(struct pool *pool);
int pool_threads(const struct pool *pool);
/* Number of cores this process may use (affinity and cgroup quota). */
int pool_available_cores(void);

typedef void pool_task(void *context, int64_t index, int worker);

/* Runs task(context, i, worker) for every i in [0, count) and returns when all are done. Indices are claimed in order by
 * whichever worker is free, so results must depend only on the index, never on `worker` (which is only for choosing scratch
 * memory). One caller at a time, and not from within a task. */
void pool_run(struct pool *pool, int64_t count, pool_task *task, void *context);

/* Runs task(context, worker, worker) exactly once on every worker (for thread-local setup). */
void pool_run_each(struct pool *pool, pool_task *task, void *context);

#endif
