/* The time of reductions, gathers, and broadcasts over kinds of links, by NCCL's own formulas. */
#include "comm/link.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

const char *const provenance_names[] = {"given", "measured", "published", "estimate"};

#define GB 1e9
#define US 1e-6

const struct link_kind link_kinds[] = {
	/* within a host */
	{"nvlink5", WIRE_NVLINK, 700 * GB, FIGURE_ESTIMATE, "B200: NVLink 4's shares of 900 GB/s", 0},
	{"nvlink4", WIRE_NVLINK, 369 * GB, FIGURE_PUBLISHED, "8 x H100/H200, nccl-tests issues 212, 272, 309", 0},
	{"nvlink3", WIRE_NVLINK, 235 * GB, FIGURE_PUBLISHED, "8 x A100, the bound in NCCL's tuning.cc", 0},
	{"pcie4", WIRE_PCI, 20 * GB, FIGURE_ESTIMATE, "16 lanes, 31.5 GB/s on paper", 0},
	{"pcie3", WIRE_PCI, 10 * GB, FIGURE_ESTIMATE, "16 lanes, 15.8 GB/s on paper", 0},
	{"shared", WIRE_MEMORY, 5 * GB, FIGURE_ESTIMATE, "memory shared by processes; measured here where it is planned for", 0},
	/* one network card between hosts */
	{"ndr", WIRE_INFINIBAND, 46.9 * GB, FIGURE_PUBLISHED, "NDR InfiniBand, 400 Gbit/s, nccl-tests issue 290", 0},
	{"hdr", WIRE_INFINIBAND, 23.5 * GB, FIGURE_ESTIMATE, "HDR InfiniBand, 200 Gbit/s at NDR's share", 0},
	{"100gbe", WIRE_TCP, 11 * GB, FIGURE_PUBLISHED, "100 Gbit/s Ethernet, sockets", 0},
	{"10gbe", WIRE_TCP, 1.15 * GB, FIGURE_ESTIMATE, "10 Gbit/s Ethernet, nine tenths", 0},
	{0},
};

const struct link_kind *link_find(const char *name)
{
	for (const struct link_kind *kind = link_kinds; kind->name; kind++)
		if (strcmp(kind->name, name) == 0)
			return kind;
	return NULL;
}

/* NCCL's protocols: flags between small words, between lines of 128 bytes, or after whole blocks of data. */
enum protocol { LL, LL128, SIMPLE, PROTOCOL_COUNT };

/* From NCCL's table: seconds for starting an operation, and for one step over a wire. */
static const double ring_base[PROTOCOL_COUNT] = {6.6 * US, 14.0 * US, 8.4 * US};
static const double ring_step[][PROTOCOL_COUNT] = {
	[WIRE_NVLINK] = {0.6 * US, 1.9 * US, 3.4 * US},
	[WIRE_PCI] = {1.0 * US, 2.5 * US, 5.7 * US},
	[WIRE_INFINIBAND] = {2.7 * US, 4.0 * US, 14.0 * US},
};
/* The same for a tree with LL. */
#define TREE_BASE (6.8 * US)
static const double tree_step[] = {[WIRE_NVLINK] = 0.6 * US, [WIRE_PCI] = 1.0 * US, [WIRE_INFINIBAND] = 5.0 * US};
/* The share of the bandwidth that carries data. */
static const double ring_share[PROTOCOL_COUNT] = {0.5, 120.0 / 128, 1};
#define TREE_SHARE (0.92 / 3.8)
/* With several hosts, LL's steps within a host take longer, too. */
#define LL_BETWEEN_HOSTS 1.8

/* Without NCCL: a round trip through the kernel's sockets, one through a fast network, and a meeting of processes in shared
 * memory. */
#define TCP_STEP (30 * US)
#define FAST_NETWORK_STEP (3 * US)
#define MEMORY_BASE (20 * US)

int64_t topology_hosts(const struct topology *t)
{
	return (t->ranks + t->per_host - 1) / t->per_host;
}

static void keep_faster(struct collective_time *best, double latency, double bytes, double bandwidth, const char *algorithm)
{
	double seconds = latency + bytes / bandwidth;
	if (best->algorithm[0] == '\0' || seconds < best->seconds)
		*best = (struct collective_time){seconds, latency, bandwidth, algorithm};
}

static int log2_ceiling(int64_t n)
{
	int log = 0;
	while ((INT64_C(1) << log) < n)
		log++;
	return log;
}

/* Bytes/s of the slowest link of a ring through all ranks. */
static double ring_bandwidth(const struct topology *t)
{
	int64_t hosts = topology_hosts(t);
	double local = t->per_host > 1 ? t->local.bandwidth : 1e30;
	return hosts > 1 ? fmin(local, (double)t->cards * t->network.bandwidth) : local;
}

static void consider_rings(struct collective_time *best, const struct topology *t, int rounds, double bytes)
{
	static const char *const names[] = {"ring, LL", "ring, LL128", "ring, Simple"};
	int64_t hosts = topology_hosts(t), steps = rounds * (t->ranks - 1), between = rounds * (hosts - 1);
	double carried = bytes * (double)steps / (double)t->ranks;
	for (int p = 0; p < PROTOCOL_COUNT; p++) {
		double step = ring_step[t->local.wire][p], bandwidth = ring_bandwidth(t) * ring_share[p];
		if (p == LL128 && t->local.wire != WIRE_NVLINK)
			continue;
		if (p == LL && hosts > 1)
			step *= LL_BETWEEN_HOSTS;
		double latency = ring_base[p] + (double)(steps - between) * step;
		if (hosts > 1)
			latency += (double)between * ring_step[WIRE_INFINIBAND][p];
		keep_faster(best, latency, carried, bandwidth, names[p]);
	}
}

/* bertc reduces only a few numbers in all ranks at once, for which LL is the fastest protocol. */
static void consider_tree(struct collective_time *best, const struct topology *t, double bytes)
{
	int64_t hosts = topology_hosts(t);
	double local = tree_step[t->local.wire] * (hosts > 1 ? LL_BETWEEN_HOSTS : 1);
	double latency = TREE_BASE + 2 * ((double)(t->per_host - 1) * local + log2_ceiling(hosts) * tree_step[WIRE_INFINIBAND]);
	keep_faster(best, latency, 2 * bytes, ring_bandwidth(t) * TREE_SHARE, "tree, LL");
}

static double copy_rate(const struct topology *t)
{
	return t->local.copies > 0 ? t->local.copies : t->local.bandwidth;
}

/* bertc's ranks on one machine read each other's memory: to sum its share, a rank reads that share from all ranks, which is as
 * many bytes as the whole range; to gather, it reads the shares it does not have. */
static struct collective_time memory_time(const struct topology *t, enum collective collective, double bytes)
{
	double rest = bytes * (double)(t->ranks - 1) / (double)t->ranks;
	double latency = (collective == COLLECTIVE_ALL_REDUCE ? 2 : 1) * MEMORY_BASE, seconds = 0;
	if (collective != COLLECTIVE_ALL_GATHER)
		seconds += bytes / t->local.bandwidth;
	if (collective != COLLECTIVE_REDUCE_SCATTER)
		seconds += rest / copy_rate(t);
	return (struct collective_time){latency + seconds, latency, t->local.bandwidth, "shared memory"};
}

/* bertc's CPU ranks on several machines send every other rank its share directly, in rounds of this many bytes. All traffic
 * that leaves a host goes through its network cards; everything that is summed or copied passes through memory. */
#define SUM_ROUND (4.0 * (1 << 20))
#define GATHER_ROUND (16.0 * (1 << 20))

static struct collective_time exchange_time(const struct topology *t, enum collective collective, double bytes)
{
	double ranks = (double)t->ranks, others = (ranks - (double)t->per_host) / ranks;
	double round = t->network.wire == WIRE_TCP ? TCP_STEP : FAST_NETWORK_STEP, latency = 0, seconds = 0;
	double cards = (double)t->cards * t->network.bandwidth, leaving = bytes * (double)t->per_host * others;
	if (collective != COLLECTIVE_ALL_GATHER) {
		latency += ceil(bytes / SUM_ROUND) * round;
		seconds += leaving / cards + bytes / t->local.bandwidth;
	}
	if (collective != COLLECTIVE_REDUCE_SCATTER) {
		latency += ceil(bytes / ranks / GATHER_ROUND) * round;
		seconds += leaving / cards + bytes * others / copy_rate(t);
	}
	return (struct collective_time){latency + seconds, latency, cards, "exchange"};
}

struct collective_time collective_time(const struct topology *t, enum collective collective, double bytes)
{
	struct collective_time best = {.algorithm = ""};
	int rounds = collective == COLLECTIVE_ALL_REDUCE ? 2 : 1;
	if (t->ranks <= 1)
		return best;
	bool one_host = topology_hosts(t) == 1;
	if (t->local.wire == WIRE_MEMORY && one_host)
		return memory_time(t, collective, bytes);
	if (t->local.wire == WIRE_MEMORY) /* ranks on CPUs; GPUs use NCCL over any network */
		return exchange_time(t, collective, bytes);
	consider_rings(&best, t, rounds, bytes);
	if (collective == COLLECTIVE_ALL_REDUCE)
		consider_tree(&best, t, bytes);
	return best;
}
