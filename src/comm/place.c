/* Reads a rank's place from the environment that its launcher has set. */
#include "comm/place.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

/* Reads a number from the environment; *found is false if it is not set. */
static enum status read_number(const char *name, int64_t low, int64_t high, bool *found, int32_t *out)
{
	const char *text = getenv(name);
	char *end;
	*found = text && *text;
	if (!*found)
		return OK;
	errno = 0;
	long long value = strtoll(text, &end, 10);
	if (*end || errno || value < low || value > high)
		return error_set(ERR_USAGE, "the variable %s is '%s': not a number from %lld to %lld", name, text, (long long)low,
				 (long long)high);
	*out = (int32_t)value;
	return OK;
}

/* Reads what our launcher has set. */
static enum status find_launched(struct place *out)
{
	bool found;
	int32_t segment = -1;
	TRY(read_number(PLACE_RANK, 0, 65535, &found, &out->ranks.rank));
	TRY(read_number(PLACE_SIZE, 1, 65536, &found, &out->ranks.size));
	TRY(read_number(PLACE_CORES, 0, 65536, &found, &out->cores));
	TRY(read_number(PLACE_RESTARTS, 0, INT32_MAX, &found, &out->restarts));
	TRY(read_number(PLACE_SEGMENT, 0, 65536, &found, &segment));
	out->ranks.local_rank = out->ranks.rank;
	out->ranks.local_size = out->ranks.size;
	out->segment = segment;
	out->meeting = MEETING_SEGMENT;
	out->launched = true;
	return OK;
}

/* The variables in which other launchers say the same, and those that identify the job on this machine. torchrun's come first,
 * since torchrun itself may run under one of the others. */
static const struct starter {
	const char *name, *rank, *size, *local_rank, *local_size;
	const char *job[2]; /* the first one that is set is used */
} starters[] = {
	{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", {"MASTER_PORT"}},
	{"Open MPI's mpirun",
	 "OMPI_COMM_WORLD_RANK",
	 "OMPI_COMM_WORLD_SIZE",
	 "OMPI_COMM_WORLD_LOCAL_RANK",
	 "OMPI_COMM_WORLD_LOCAL_SIZE",
	 {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}},
	{"mpiexec", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", {"PMI_KVSNAME", "SLURM_JOB_ID"}},
	/* Variables of a job step: the batch script itself also has SLURM_PROCID. */
	{"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", NULL, {"SLURM_JOB_ID"}},
};

/* In a list such as "4(x2),3", the number of tasks of each node in order: returns that of node `node`, or 0 if it is unknown. */
static int32_t tasks_of_node(const char *list, int32_t node)
{
	while (list && *list) {
		char *end;
		long tasks = strtol(list, &end, 10), times = 1;
		if (end == list || tasks < 1)
			return 0;
		if (strncmp(end, "(x", 2) == 0)
			times = strtol(end + 2, &end, 10);
		if (node < times)
			return (int32_t)tasks;
		node -= (int32_t)times;
		end += strspn(end, "),");
		list = end;
	}
	return 0;
}

static enum status find_started(const struct starter *starter, struct place *out, bool *found)
{
	bool has_rank, has_size, has_local = false, has_local_size = false;
	struct comm_place *ranks = &out->ranks;
	TRY(read_number(starter->size, 1, 65536, &has_size, &ranks->size));
	TRY(read_number(starter->rank, 0, 65535, &has_rank, &ranks->rank));
	*found = has_rank && has_size;
	/* srun --mpi=pmi2 sets the ranks of mpiexec, but not those on a machine, which only srun's own variables say. */
	if (strcmp(starter->name, "mpiexec") == 0 && !getenv(starter->local_rank) && getenv("SLURM_STEP_NUM_TASKS") &&
	    getenv("SLURM_LOCALID"))
		*found = false;
	if (!*found) {
		ranks->rank = 0;
		ranks->size = 1;
		return OK;
	}
	if (ranks->rank >= ranks->size)
		return error_set(ERR_USAGE, "the variables %s=%d and %s=%d contradict each other", starter->rank, ranks->rank,
				 starter->size, ranks->size);
	TRY(read_number(starter->local_rank, 0, 65535, &has_local, &ranks->local_rank));
	if (starter->local_size) {
		TRY(read_number(starter->local_size, 1, 65536, &has_local_size, &ranks->local_size));
	} else {
		int32_t node = 0;
		TRY(read_number("SLURM_NODEID", 0, 65535, &has_local_size, &node));
		ranks->local_size = tasks_of_node(getenv("SLURM_STEP_TASKS_PER_NODE"), node);
		has_local_size = ranks->local_size > 0;
	}
	/* A launcher that says nothing about machines is taken to use only one. */
	if (!has_local)
		ranks->local_rank = ranks->rank;
	if (!has_local_size)
		ranks->local_size = ranks->size;
	if (ranks->local_rank >= ranks->local_size || ranks->local_size > ranks->size)
		return error_set(ERR_USAGE, "rank %d of %d cannot be number %d of %d on its machine: see the variables of %s",
				 ranks->rank, ranks->size, ranks->local_rank, ranks->local_size, starter->name);
	return OK;
}

static enum status choose_transport(struct place *out)
{
	const char *wish = getenv("BERTC_TRANSPORT"), *address = getenv("MASTER_ADDR");
	bool has_port, is_local = out->ranks.local_size == out->ranks.size;
	TRY(read_number("MASTER_PORT", 1, 65534, &has_port, &out->port));
	snprintf(out->address, sizeof out->address, "%s", address ? address : "");
	/* torchrun itself listens at MASTER_PORT. */
	const char *store = getenv("TORCHELASTIC_USE_AGENT_STORE");
	out->port += store && strcmp(store, "True") == 0;
	bool has_address = address && *address && has_port;
	if (out->ranks.size == 1)
		out->meeting = MEETING_ALONE;
	else if (wish ? strcmp(wish, "shared") == 0 : is_local)
		out->meeting = MEETING_NAME;
	else if (wish ? strcmp(wish, "tcp") == 0 : has_address)
		out->meeting = MEETING_ADDRESS;
	else if (!wish || strcmp(wish, "mpi") == 0)
		out->meeting = MEETING_MPI;
	else
		return error_set(ERR_USAGE, "the variable BERTC_TRANSPORT is '%s': not shared, tcp or mpi", wish);
	if (out->meeting == MEETING_NAME && !is_local)
		return error_set(ERR_USAGE, "BERTC_TRANSPORT=shared: the ranks are not all on one machine");
	if (out->meeting == MEETING_ADDRESS && !has_address)
		return error_set(ERR_USAGE,
				 "BERTC_TRANSPORT=tcp needs MASTER_ADDR and MASTER_PORT, rank 0's machine and a free port");
	return OK;
}

/* Determines what the ranks of a job have in common, and how they reach each other. */
static enum status choose_meeting(const struct starter *starter, struct place *out)
{
	const char *job = NULL, *step = getenv("SLURM_STEP_ID"), *restart = getenv("TORCHELASTIC_RESTART_COUNT");
	bool found;
	for (size_t i = 0; i < 2 && (!job || !*job); i++)
		job = starter->job[i] ? getenv(starter->job[i]) : NULL;
	TRY(read_number("TORCHELASTIC_RESTART_COUNT", 0, INT32_MAX, &found, &out->restarts));
	char parent[32];
	snprintf(parent, sizeof parent, "parent-%d", (int)getppid());
	/* PRRTE's jobs end with what tells them apart: prterun-HOST-PROCESS@1. */
	snprintf(out->name, sizeof out->name, "%.73s-%.12s-%.8s", job && *job ? job : parent, step ? step : "",
		 restart ? restart : "");
	for (char *at = out->name; *at; at++)
		*at = *at == '/' ? '_' : *at;
	return choose_transport(out);
}

enum status place_find(struct place *out)
{
	*out = (struct place){.ranks = {.size = 1, .local_size = 1}, .meeting = MEETING_ALONE, .segment = -1};
	gethostname(out->ranks.host, sizeof out->ranks.host - 1);
	if (getenv(PLACE_SEGMENT))
		return find_launched(out);
	for (size_t i = 0; i < sizeof starters / sizeof *starters; i++) {
		bool found;
		TRY(find_started(&starters[i], out, &found));
		if (found)
			return choose_meeting(&starters[i], out);
	}
	const char *rank = getenv("RANK"), *size = getenv("WORLD_SIZE");
	if (rank ? !size : size && strcmp(size, "1") != 0)
		log_warning("the variable %s is set, but %s is not: this process is not one of several ranks",
			    rank ? "RANK" : "WORLD_SIZE", rank ? "WORLD_SIZE" : "RANK");
	return OK;
}
