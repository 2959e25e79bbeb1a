/* Which cores each rank of this machine runs on. */
#ifndef COMM_AFFINITY_H
#define COMM_AFFINITY_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include "comm/comm.h"

#define AFFINITY_CPUS 8192
#define AFFINITY_BYTES CPU_ALLOC_SIZE(AFFINITY_CPUS)

/* The CPUs this process may use, ordered so that those of one memory node are together, and in it those of one core. */
struct affinity {
	int *cpus; /* [count] */
	int count;
	int cores; /* what may be used at a time: a container's quota can be less than its CPUs */
};

/* `root`: "/sys", or a test's copy of it. What cannot be read there is left out of the order. */
MUST_USE enum status affinity_read(struct affinity *out, const char *root);
void affinity_release(struct affinity *affinity);

/* The CPUs of rank `rank` of `ranks`: a stretch of the order, as long as any other's to within one. Into `set` (of
 * AFFINITY_BYTES). Returns the threads the rank should have. With fewer CPUs than ranks all share all. */
int affinity_share(const struct affinity *affinity, int rank, int ranks, cpu_set_t *set);

/* Threads for this rank where others started the ranks: its CPUs, divided among those of its machine that may use just the
 * same. [all] */
MUST_USE enum status affinity_threads(struct comm *comm, int *out);

#endif
