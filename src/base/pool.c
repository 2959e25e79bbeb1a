/* How a job runs: the caller describes it, opens it under a new number, and starts to claim indices itself. Workers that are
 * awake enter and claim indices, too. When no index is left, the caller closes the job and waits for those that entered; a worker
 * that the system has not scheduled yet delays nobody, since it finds the job closed. */
#include "base/pool.h"

#include <limits.h>
#include <linux/futex.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/cgroup.h"
#include "base/memory.h"
#include "base/processor.h"

/* Threads check for work (or its end) this many times before they sleep: about 20 to 60 microseconds, roughly the cost of waking
 * a sleeping thread. */
#define SPINS 1000

/* Job state in one word: number << 32 | OPEN | workers inside. */
#define OPEN ((uint64_t)1 << 31)
#define INSIDE(state) ((uint32_t)(state)&0x7FFFFFFF)
#define NUMBER(state) ((uint32_t)((state) >> 32))

struct pool {
	int threads; /* including the caller's */
	int spins;
	bool pinned;
	int home; /* the caller's CPU, if pinned */
	cpu_set_t *allowed;
	pthread_t *ids; /* [threads - 1] */
	int started;

	/* The job; written by the caller while the state is closed. */
	pool_task *task;
	void *context;
	int64_t count;
	bool each;

	/* In separate cache lines, since different threads write them all the time. */
	_Alignas(64) _Atomic uint64_t state;
	_Alignas(64) _Atomic int64_t next;    /* first index that nobody has claimed */
	_Alignas(64) _Atomic uint32_t left;   /* workers that have left the job */
	_Alignas(64) _Atomic uint32_t signal; /* changes with each job; sleeping workers wait on it */
	_Atomic uint32_t sleepers, caller_sleeps;
	_Atomic bool running, quit;
};

struct worker_start {
	struct pool *pool;
	int worker, cpu;
};

#define CPU_LIMIT 8192
#define CPU_BYTES CPU_ALLOC_SIZE(CPU_LIMIT)

static void futex_wait(_Atomic uint32_t *word, uint32_t seen)
{
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word, int count)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

static void claim_all(struct pool *pool, int worker)
{
	if (pool->each) {
		pool->task(pool->context, worker, worker);
		return;
	}
	for (;;) {
		int64_t index = atomic_fetch_add_explicit(&pool->next, 1, memory_order_relaxed);
		if (index >= pool->count)
			return;
		pool->task(pool->context, index, worker);
	}
}

/* Enters the open job if its number is not `done`. */
static bool enter(struct pool *pool, uint32_t done, uint32_t *out_number)
{
	uint64_t state = atomic_load(&pool->state);
	while ((state & OPEN) && NUMBER(state) != done) {
		if (atomic_compare_exchange_weak(&pool->state, &state, state + 1)) {
			*out_number = NUMBER(state);
			return true;
		}
	}
	return false;
}

static void *worker_main(void *argument)
{
	struct worker_start start = *(struct worker_start *)argument;
	struct pool *pool = start.pool;
	free(argument);
	if (start.cpu >= 0) {
		cpu_set_t *set = CPU_ALLOC(CPU_LIMIT);
		if (set) {
			CPU_ZERO_S(CPU_BYTES, set);
			CPU_SET_S(start.cpu, CPU_BYTES, set);
			sched_setaffinity(0, CPU_BYTES, set); /* if refused, it runs unpinned */
			CPU_FREE(set);
		}
	}
	processor_flush_denormals();

	uint32_t done = 0;
	for (;;) {
		/* Read before what it announces, so that a change after this line ends the wait below at once. */
		uint32_t signal = atomic_load(&pool->signal);
		if (atomic_load(&pool->quit))
			return NULL;
		if (enter(pool, done, &done)) {
			claim_all(pool, start.worker);
			atomic_fetch_add(&pool->left, 1);
			if (atomic_load(&pool->caller_sleeps))
				futex_wake(&pool->left, 1);
			continue;
		}
		int spins = pool->spins;
		while (spins > 0 && atomic_load_explicit(&pool->signal, memory_order_relaxed) == signal) {
			processor_pause();
			spins--;
		}
		if (spins > 0)
			continue;
		atomic_fetch_add(&pool->sleepers, 1);
		futex_wait(&pool->signal, signal);
		atomic_fetch_sub(&pool->sleepers, 1);
	}
}

/* Waits until `count` workers have left the job. */
static void wait_until_left(struct pool *pool, uint32_t count)
{
	for (int spins = pool->spins; spins > 0; spins--) {
		if (atomic_load(&pool->left) == count)
			return;
		processor_pause();
	}
	atomic_store(&pool->caller_sleeps, 1);
	for (uint32_t left; (left = atomic_load(&pool->left)) != count;)
		futex_wait(&pool->left, left);
	atomic_store(&pool->caller_sleeps, 0);
}

/* A pinned pool leaves one CPU to its caller. The caller itself stays unpinned, so that threads it starts can run anywhere; but
 * if it finds itself on a worker's CPU, it first moves home. */
static void go_home(const struct pool *pool)
{
	if (!pool->pinned || sched_getcpu() == pool->home)
		return;
	cpu_set_t *set = CPU_ALLOC(CPU_LIMIT);
	if (!set)
		return;
	CPU_ZERO_S(CPU_BYTES, set);
	CPU_SET_S(pool->home, CPU_BYTES, set);
	sched_setaffinity(0, CPU_BYTES, set);
	sched_setaffinity(0, CPU_BYTES, pool->allowed);
	CPU_FREE(set);
}

static void run_job(struct pool *pool, int64_t count, bool each, pool_task *task, void *context)
{
	BUG_IF(count < 0);
	BUG_IF(atomic_exchange(&pool->running, true)); /* nested, or two callers */
	uint64_t mode = processor_flush_denormals();
	if (pool->threads == 1 || (count <= 1 && !each)) {
		for (int64_t i = 0; i < count; i++)
			task(context, i, 0);
	} else {
		go_home(pool);
		pool->task = task;
		pool->context = context;
		pool->count = count;
		pool->each = each;
		atomic_store(&pool->next, 0);
		atomic_store(&pool->left, 0);
		uint32_t number = NUMBER(atomic_load(&pool->state)) + 1;
		if (number == 0) /* to a worker, 0 means "none yet" */
			number = 1;
		atomic_store(&pool->state, (uint64_t)number << 32 | OPEN);
		atomic_fetch_add(&pool->signal, 1);
		if (atomic_load(&pool->sleepers)) {
			int64_t useful = count - 1 < pool->threads - 1 ? count - 1 : pool->threads - 1;
			futex_wake(&pool->signal, (int)useful);
		}
		claim_all(pool, 0);
		if (each)
			wait_until_left(pool, (uint32_t)pool->threads - 1);
		uint64_t closed = atomic_fetch_and(&pool->state, ~OPEN);
		wait_until_left(pool, INSIDE(closed));
	}
	processor_restore_denormals(mode);
	atomic_store(&pool->running, false);
}

void pool_run(struct pool *pool, int64_t count, pool_task *task, void *context)
{
	run_job(pool, count, false, task, context);
}

void pool_run_each(struct pool *pool, pool_task *task, void *context)
{
	run_job(pool, pool->threads, true, task, context);
}

int pool_threads(const struct pool *pool)
{
	return pool->threads;
}

int pool_available_cores(void)
{
	int cores = 0;
	cpu_set_t *set = CPU_ALLOC(CPU_LIMIT);
	if (set && sched_getaffinity(0, CPU_BYTES, set) == 0)
		cores = CPU_COUNT_S(CPU_BYTES, set);
	CPU_FREE(set);
	if (cores < 1)
		cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
	double quota = cgroup_cpu_quota();
	if (quota > 0 && ceil(quota) < cores)
		cores = (int)ceil(quota);
	return cores < 1 ? 1 : cores;
}

/* Sets `cpus` to the CPU of each thread and returns true if each can have one to itself. A smaller pool is left to the scheduler,
 * since another process on the same machine would choose the same CPUs. */
static bool choose_cpus(struct pool *pool, int *cpus)
{
	pool->allowed = CPU_ALLOC(CPU_LIMIT);
	if (!pool->allowed || sched_getaffinity(0, CPU_BYTES, pool->allowed) != 0 ||
	    CPU_COUNT_S(CPU_BYTES, pool->allowed) != pool->threads)
		return false;
	int found = 0;
	for (int cpu = 0; cpu < CPU_LIMIT && found < pool->threads; cpu++) {
		if (CPU_ISSET_S(cpu, CPU_BYTES, pool->allowed))
			cpus[found++] = cpu;
	}
	return found == pool->threads;
}

static enum status create(struct pool **out, int threads, bool pins)
{
	int available = pool_available_cores();
	int *cpus = NULL;
	enum status status;
	BUG_IF(threads < 0);
	if (threads == 0)
		threads = available;
	struct pool *pool = aligned_alloc(64, sizeof *pool);
	if (!pool)
		return error_set(ERR_RESOURCE, "not enough memory for a thread pool");
	memset(pool, 0, sizeof *pool);
	pool->threads = threads;
	/* With more threads than cores, the thread waited for may need the core of the one that waits. */
	pool->spins = threads > available ? 0 : SPINS;
	TRY_GOTO(memory_new(&pool->ids, threads, sizeof *pool->ids, "the thread pool"), fail);
	TRY_GOTO(memory_new(&cpus, threads, sizeof *cpus, "the thread pool"), fail);
	pool->pinned = pins && threads > 1 && choose_cpus(pool, cpus);
	pool->home = cpus[0];
	for (int worker = 1; worker < threads; worker++) {
		struct worker_start *start;
		TRY_GOTO(memory_new(&start, 1, sizeof *start, "the thread pool"), fail);
		*start = (struct worker_start){pool, worker, pool->pinned ? cpus[worker] : -1};
		if (pthread_create(&pool->ids[worker - 1], NULL, worker_main, start) != 0) {
			free(start);
			status = error_set(ERR_RESOURCE, "cannot start thread %d of %d", worker + 1, threads);
			error_hint("use a smaller --threads, or raise the process limit (ulimit -u)");
			goto fail;
		}
		pool->started++;
	}
	free(cpus);
	*out = pool;
	return OK;
fail:
	free(cpus);
	pool_free(pool);
	return status;
}

enum status pool_create(struct pool **out, int threads)
{
	return create(out, threads, true);
}

enum status pool_create_unpinned(struct pool **out, int threads)
{
	return create(out, threads, false);
}

void pool_free(struct pool *pool)
{
	if (!pool)
		return;
	BUG_IF(atomic_load(&pool->running));
	atomic_store(&pool->quit, true);
	atomic_fetch_add(&pool->signal, 1);
	futex_wake(&pool->signal, INT_MAX);
	for (int i = 0; i < pool->started; i++)
		pthread_join(pool->ids[i], NULL);
	CPU_FREE(pool->allowed);
	free(pool->ids);
	free(pool);
}
