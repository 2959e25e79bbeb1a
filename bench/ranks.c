/* The cost of communication between ranks, on this machine or under another launcher: small messages, and large sums and
 * gathers.
 *
 *   make build/bench/ranks && build/bench/ranks 2            two ranks of this machine (shared memory)
 *   BERTC_TRANSPORT=mpi mpirun -n 2 build/bench/ranks 0      through MPI
 *
 * Each figure is the median over 15 rounds of the slowest rank's time. "GB/s" is the size of the range divided by that
 * time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "comm/launcher.h"
#include "comm/place.h"

enum { ROUNDS = 15, SMALL_REPEATS = 200 };

static int compare(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;
	return left < right ? -1 : left > right;
}

enum kind { BARRIER, SUM, REDUCE, REDUCE_BF16, GATHER, COPY, KINDS };
static const char *const names[KINDS] = {"barrier",    "sum of 8 numbers", "reduce-scatter", "reduce-scatter bf16",
					 "all-gather", "copy in memory"};

static enum status once(struct comm *comm, enum kind kind, float *data, float *other, int64_t count)
{
	double values[8] = {1};
	switch (kind) {
	case BARRIER: return comm_gather(comm, NULL, 0, NULL);
	case SUM: return comm_sum(comm, values, 8);
	case REDUCE: return comm_wait(comm, comm_reduce_scatter(comm, data, count, COMM_F32, COMM_F32));
	case REDUCE_BF16: return comm_wait(comm, comm_reduce_scatter(comm, data, count, COMM_F32, COMM_BF16));
	case GATHER: return comm_wait(comm, comm_all_gather(comm, data, count, COMM_F32));
	default: memcpy(other, data, (size_t)count * sizeof *data); return OK;
	}
}

static enum status measure(struct comm *comm, enum kind kind, float *data, float *other, int64_t count)
{
	double times[ROUNDS];
	int repeats = kind <= SUM ? SMALL_REPEATS : 1;
	for (int round = 0; round < ROUNDS; round++) {
		TRY(comm_gather(comm, NULL, 0, NULL));
		double started = clock_seconds();
		for (int i = 0; i < repeats; i++)
			TRY(once(comm, kind, data, other, count));
		times[round] = (clock_seconds() - started) / repeats;
		TRY(comm_max(comm, &times[round], 1));
	}
	qsort(times, ROUNDS, sizeof *times, compare);
	double median = times[ROUNDS / 2];
	if (comm_place(comm)->rank != 0)
		return OK;
	if (kind <= SUM)
		printf("%-20s %10.1f us\n", names[kind], 1e6 * median);
	else
		printf("%-20s %10.3f ms  %6.2f GB/s  of %.1f MB\n", names[kind], 1e3 * median, 4e-9 * (double)count / median,
		       4e-6 * (double)count);
	return OK;
}

static enum status run(struct comm *comm)
{
	static const int64_t counts[] = {16384, 262144, 6553600, 33554432};
	int64_t most = counts[3];
	float *data, *other;
	if (comm_place(comm)->rank == 0)
		printf("%d ranks, %s\n", comm_place(comm)->size, comm_description(comm));
	TRY(comm_allocate(comm, (void **)&data, (size_t)most * sizeof *data, "numbers"));
	TRY(memory_new(&other, most, sizeof *other, "numbers"));
	for (int64_t i = 0; i < most; i++)
		data[i] = other[i] = (float)(i % 1000) * 0.001f;
	TRY(measure(comm, BARRIER, NULL, NULL, 0));
	TRY(measure(comm, SUM, NULL, NULL, 0));
	for (int size = 0; size < 4; size++)
		for (enum kind kind = REDUCE; kind < KINDS; kind++)
			TRY(measure(comm, kind, data, other, counts[size]));
	comm_release(comm, data);
	free(other);
	return OK;
}

int main(int argc, char **argv)
{
	struct place place;
	struct comm *comm = NULL;
	int32_t ranks = argc > 1 ? (int32_t)strtol(argv[1], NULL, 10) : 2;
	enum status status = place_find(&place);
	if (status == OK && place.ranks.size == 1 && ranks > 1) {
		char folder[] = "/tmp/bertc-ranks-XXXXXX";
		if (!mkdtemp(folder))
			return ERR_RESOURCE;
		status = launcher_run(&(struct launcher_settings){.ranks = ranks, .folder = folder});
		enum status removed = folder_remove(folder);
		(void)removed;
		return (int)status;
	}
	if (status == OK)
		status = comm_open(&comm, &(struct comm_settings){.place = &place});
	if (status == OK)
		status = run(comm);
	comm_fail(comm, status);
	if (status != OK)
		fprintf(stderr, "%s\n", error_last()->message);
	comm_close(comm);
	return (int)status;
}
