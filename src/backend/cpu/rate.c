/* Adds up the rates of all threads, each by the processor time of its fastest round. */
#include "backend/cpu/rate.h"

#include <stdlib.h>
#include <time.h>

#include "base/memory.h"

#define ROUNDS 8
#define ENOUGH 1.0 /* seconds: slow processors, and emulated ones, do less than all rounds */

struct measured {
	int64_t count;
	pool_task *task;
	void *context;
	double *seconds; /* of a call, in the best round of each worker */
};

static double thread_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void measure_worker(void *context, int64_t index, int worker)
{
	(void)index;
	const struct measured *measured = context;
	double begun = thread_seconds(), now = begun;
	for (int round = 0; round < ROUNDS && now - begun < ENOUGH; round++) {
		double started = now;
		int64_t done = 0;
		while (done < measured->count && now - begun < ENOUGH) {
			measured->task(measured->context, done++, worker);
			now = thread_seconds();
		}
		double seconds = (now - started) / (double)done;
		if (round == 0 || seconds < measured->seconds[worker])
			measured->seconds[worker] = seconds;
	}
}

double measured_rate(struct pool *pool, int64_t count, pool_task *task, void *context, double flops)
{
	struct measured measured = {.count = count, .task = task, .context = context};
	double rate = 0;
	if (memory_new(&measured.seconds, pool_threads(pool), sizeof *measured.seconds, "measuring") != OK)
		return 0;
	pool_run_each(pool, measure_worker, &measured);
	for (int i = 0; i < pool_threads(pool); i++)
		if (measured.seconds[i] > 0)
			rate += flops / measured.seconds[i];
	free(measured.seconds);
	return rate;
}
