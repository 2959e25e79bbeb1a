/* Which cores each rank of this machine runs on. */
#ifndef COMM_AFFINITY_H
#define COMM_AFFINITY_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include "comm/comm.h"

#define AFFINITY_CPUS 8192
#define AFFINITY_BYTES CPU_ALLOC_SIZE(AFFINITY_CPUS)

/* The CPUs this process may use, ordered so that the CPUs of a memory node are adjacent and, within a node, those of a core. */
struct affinity {
	int *cpus; /* [count] */
	int count;
	int cores; /* how many may be busy at a time: a container's quota can be lower than its number of CPUs */
};

/* `root`: "/sys", or a test's copy of it. Whatever cannot be read there is ignored in the order. */
MUST_USE enum status affinity_read(struct affinity *out, const char *root);
void affinity_release(struct affinity *affinity);

/* Puts the CPUs of rank `rank` of `ranks` into `set` (of AFFINITY_BYTES): a contiguous part of the order; the parts differ by
 * at most one in length. Returns the number of threads the rank should use. If there are fewer CPUs than ranks, all ranks
 * share all CPUs. */
int affinity_share(const struct affinity *affinity, int rank, int ranks, cpu_set_t *set);

/* The number of threads for this rank if something other than our launcher started the ranks: its CPUs, divided among the
 * ranks of its machine that may use exactly the same ones. [all] */
MUST_USE enum status affinity_threads(struct comm *comm, int *out);

#endif
