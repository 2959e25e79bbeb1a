/* Reads the machine's cores and memory nodes from /sys, and gives each rank a share of them. */
#include "comm/affinity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/pool.h"

struct cpu_place {
	int node, package, core, cpu;
};

/* Calls `call` for each number in a list such as "0-3,8,10-11". */
static void for_each_cpu(const char *list, void (*call)(void *context, int cpu, int value), void *context, int value)
{
	while (*list) {
		char *end;
		long first = strtol(list, &end, 10), last = first;
		if (end == list)
			return;
		if (*end == '-')
			last = strtol(end + 1, &end, 10);
		for (long cpu = first; cpu <= last && cpu < AFFINITY_CPUS; cpu++)
			call(context, (int)cpu, value);
		list = end + (*end == ',');
	}
}

static void set_node(void *context, int cpu, int node)
{
	struct cpu_place *places = context;
	if (cpu >= 0)
		places[cpu].node = node;
}

static int read_number(const char *root, int cpu, const char *name)
{
	char path[PATH_BYTES];
	struct buffer text = {0};
	snprintf(path, sizeof path, "%s/devices/system/cpu/cpu%d/topology/%s", root, cpu, name);
	int number = file_read(path, 4096, &text) == OK ? (int)strtol(buffer_string(&text), NULL, 10) : 0;
	buffer_release(&text);
	return number;
}

static void read_nodes(const char *root, struct cpu_place *places)
{
	char folder[PATH_BYTES], path[PATH_BYTES];
	struct name_list names = {0};
	snprintf(folder, sizeof folder, "%s/devices/system/node", root);
	enum status status = folder_list(folder, &names);
	for (int64_t i = 0; status == OK && i < names.count; i++) {
		struct buffer text = {0};
		int node;
		if (sscanf(names.names[i], "node%d", &node) != 1)
			continue;
		snprintf(path, sizeof path, "%.3000s/node%d/cpulist", folder, node);
		if (file_read(path, 1 << 16, &text) == OK)
			for_each_cpu(buffer_string(&text), set_node, places, node);
		buffer_release(&text);
	}
	name_list_release(&names);
}

static int compare(const void *a, const void *b)
{
	const struct cpu_place *left = a, *right = b;
	if (left->node != right->node)
		return left->node < right->node ? -1 : 1;
	if (left->package != right->package)
		return left->package < right->package ? -1 : 1;
	if (left->core != right->core)
		return left->core < right->core ? -1 : 1;
	return left->cpu < right->cpu ? -1 : left->cpu > right->cpu;
}

enum status affinity_read(struct affinity *out, const char *root)
{
	struct cpu_place *places = NULL;
	enum status status = OK;
	int count = 0;
	*out = (struct affinity){.cores = pool_available_cores()};
	cpu_set_t *set = CPU_ALLOC(AFFINITY_CPUS);
	if (!set || sched_getaffinity(0, AFFINITY_BYTES, set) != 0)
		CPU_FREE(set), set = NULL; /* unknown: no rank is bound */
	TRY_GOTO(memory_new(&places, AFFINITY_CPUS, sizeof *places, "a list of cores"), done);
	TRY_GOTO(memory_new(&out->cpus, AFFINITY_CPUS, sizeof *out->cpus, "a list of cores"), done);
	read_nodes(root, places);
	for (int cpu = 0; set && cpu < AFFINITY_CPUS; cpu++) {
		if (!CPU_ISSET_S(cpu, AFFINITY_BYTES, set))
			continue;
		places[count] = (struct cpu_place){.node = places[cpu].node,
						   .package = read_number(root, cpu, "physical_package_id"),
						   .core = read_number(root, cpu, "core_id"),
						   .cpu = cpu};
		count++;
	}
	qsort(places, (size_t)count, sizeof *places, compare);
	for (int i = 0; i < count; i++)
		out->cpus[i] = places[i].cpu;
	out->count = count;
done:
	free(places);
	CPU_FREE(set);
	return status;
}

void affinity_release(struct affinity *affinity)
{
	free(affinity->cpus);
	*affinity = (struct affinity){0};
}

int affinity_share(const struct affinity *affinity, int rank, int ranks, cpu_set_t *set)
{
	bool divided = affinity->count >= ranks;
	int first = divided ? (int)((int64_t)affinity->count * rank / ranks) : 0;
	int last = divided ? (int)((int64_t)affinity->count * (rank + 1) / ranks) : affinity->count;
	int threads = (int)((int64_t)affinity->cores * (rank + 1) / ranks - (int64_t)affinity->cores * rank / ranks);
	CPU_ZERO_S(AFFINITY_BYTES, set);
	for (int i = first; i < last; i++)
		CPU_SET_S(affinity->cpus[i], AFFINITY_BYTES, set);
	return threads < 1 ? 1 : threads;
}

enum status affinity_threads(struct comm *comm, int *out)
{
	struct {
		uint64_t cpus;
		char host[64];
	} own = {0}, *all;
	int sharers = 0;
	cpu_set_t *set = CPU_ALLOC(AFFINITY_CPUS);
	if (set && sched_getaffinity(0, AFFINITY_BYTES, set) == 0)
		own.cpus = hash64(set, AFFINITY_BYTES);
	CPU_FREE(set);
	snprintf(own.host, sizeof own.host, "%s", comm_place(comm)->host);
	TRY(memory_new(&all, comm_place(comm)->size, sizeof *all, "a list of ranks"));
	enum status status = comm_gather(comm, &own, sizeof own, all);
	for (int32_t rank = 0; status == OK && rank < comm_place(comm)->size; rank++)
		sharers += all[rank].cpus == own.cpus && strcmp(all[rank].host, own.host) == 0;
	free(all);
	if (status == OK)
		*out = pool_available_cores() > sharers ? pool_available_cores() / sharers : 1;
	return status;
}
