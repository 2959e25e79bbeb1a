/* Estimates how long collective operations take over given links, for plans of runs on many devices.
 *
 * The formulas are those by which NCCL chooses among its algorithms and protocols (2.x, src/graph/tuning.cc, and nccl-tests'
 * doc/PERFORMANCE.md): a latency that grows with the number of steps of the algorithm, plus the bytes that each link carries
 * divided by its bandwidth. docs/parallel.md lists them. Nothing here communicates. */
#ifndef COMM_LINK_H
#define COMM_LINK_H

#include <stdint.h>
#include "base/error.h"

/* Where a figure comes from. */
enum provenance {
	FIGURE_GIVEN,     /* by the user */
	FIGURE_MEASURED,  /* by bertc: on this machine, or on one of the kind named */
	FIGURE_PUBLISHED, /* by others */
	FIGURE_ESTIMATE,  /* derived from data sheets */
};
extern const char *const provenance_names[]; /* "given", "measured", ... */

/* The medium of a link, which determines its latencies. */
enum link_wire {
	WIRE_NVLINK,
	WIRE_PCI,
	WIRE_INFINIBAND, /* or another network with direct access to device memory */
	WIRE_TCP,        /* a network, through the kernel's sockets */
	WIRE_MEMORY,     /* processes of one machine, through memory shared by bertc's ranks */
};

struct link_kind {
	const char *name; /* "nvlink4" */
	enum link_wire wire;
	/* Bytes/s. Within a host: the bus bandwidth of a ring over all its devices, which nccl-tests call busbw. Between
	 * hosts: the bandwidth of one network card. */
	double bandwidth;
	enum provenance provenance;
	const char *source; /* where the bandwidth comes from, in words */
	double copies;      /* WIRE_MEMORY: bytes/s of copies, `bandwidth` being that of sums; 0: the same */
};
/* Ends with an entry whose name is NULL. WIRE_INFINIBAND and WIRE_TCP links connect hosts; the others are within one. */
extern const struct link_kind link_kinds[];
/* Returns NULL if no link has this name. */
const struct link_kind *link_find(const char *name);
/* Measures now the shared memory of this machine: sums and copies by one thread, as comm/shared.c makes them. */
MUST_USE enum status link_measure_memory(struct link_kind *out);

/* Ranks on hosts with `per_host` ranks each (the last may have fewer). */
struct topology {
	int64_t ranks, per_host;
	struct link_kind local, network;
	int64_t cards; /* network cards per host */
};
int64_t topology_hosts(const struct topology *topology);

enum collective { COLLECTIVE_ALL_REDUCE, COLLECTIVE_REDUCE_SCATTER, COLLECTIVE_ALL_GATHER };

struct collective_time {
	double seconds, latency; /* latency: the part that does not depend on the bytes */
	double bus_bandwidth;    /* bytes/s of the slowest link */
	const char *algorithm;   /* "ring, LL128"; "" for one rank */
};
/* The time of the fastest applicable algorithm for a buffer of `bytes` in every rank. A single rank takes no time. */
struct collective_time collective_time(const struct topology *topology, enum collective collective, double bytes);

#endif
