/* How long collective operations take over given links: what a plan of a run on many devices is computed with.
 *
 * The formulas are those by which NCCL itself chooses among its algorithms and protocols (2.x, src/graph/tuning.cc, and
 * nccl-tests' doc/PERFORMANCE.md): a latency that grows with the steps of the algorithm, and the bytes that each link
 * carries over its bandwidth. docs/parallel.md has them. Nothing here communicates.
 */
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

/* What a link is made of decides the latencies. */
enum link_wire {
	WIRE_NVLINK,
	WIRE_PCI,
	WIRE_INFINIBAND, /* or another network that reads device memory */
	WIRE_TCP,        /* a network through the kernel's sockets */
	WIRE_MEMORY,     /* processes of one machine through memory they share: bertc's own */
};

struct link_kind {
	const char *name; /* "nvlink4" */
	enum link_wire wire;
	/* Bytes/s. Within a host: bus bandwidth of a ring over all its devices, what nccl-tests call busbw. Between hosts: of
	 * one network card. */
	double bandwidth;
	double switched; /* bytes/s of all-reduce where the switch itself adds (NVLS); 0: it does not */
	enum provenance provenance;
	const char *source; /* of the bandwidth, in words */
	double copies;      /* WIRE_MEMORY: bytes/s of copies, where `bandwidth` is that of sums; 0: the same */
};
/* Ends with a row whose name is NULL. Wires WIRE_INFINIBAND and WIRE_TCP lie between hosts, the others within one. */
extern const struct link_kind link_kinds[];
/* NULL if there is none. */
const struct link_kind *link_find(const char *name);
/* Memory that ranks share, on this machine: sums and copies by one thread as comm/shared.c makes them, measured now. */
MUST_USE enum status link_measure_memory(struct link_kind *out);

/* Ranks in hosts of `per_host` (the last may have fewer). */
struct topology {
	int64_t ranks, per_host;
	struct link_kind local, network;
	int64_t cards; /* network cards of a host */
};
int64_t topology_hosts(const struct topology *topology);

enum collective { COLLECTIVE_ALL_REDUCE, COLLECTIVE_REDUCE_SCATTER, COLLECTIVE_ALL_GATHER };

struct collective_time {
	double seconds, latency; /* latency: the part that does not depend on the bytes */
	double bus_bandwidth;    /* bytes/s of the slowest link */
	const char *algorithm;   /* "ring, LL128"; "" for one rank */
};
/* The fastest of the algorithms that apply, for a buffer of `bytes` in every rank. One rank takes no time. */
struct collective_time collective_time(const struct topology *topology, enum collective collective, double bytes);
/* Reduction in two stages, as NVIDIA's DistributedFusedLAMB has it: reduce-scatter within each host, then all-reduce of each
 * share between the hosts. Afterwards every host has the sum, a share in each of its ranks. */
struct collective_time hierarchical_reduce(const struct topology *topology, double bytes);
/* The ranks of one host alone. */
struct topology topology_within_host(const struct topology *topology);

#endif
