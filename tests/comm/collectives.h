/* What ranks must compute alike on every transport, checked against plain loops: bodies for run_ranks(). */
#ifndef TESTS_COMM_COLLECTIVES_H
#define TESTS_COMM_COLLECTIVES_H

#include <math.h>
#include "base/hash.h"
#include "base/pool.h"
#include "base/rng.h"
#include "comm/affinity.h"
#include "comm/ranks.h"

/* Number `i` of rank `rank` in trial `trial`: magnitudes vary widely, so that the order of summation shows. */
static inline double number(int32_t rank, int64_t i, int trial)
{
	struct rng rng = rng_start(7, RNG_TEST, (uint64_t)(trial * 1000003 + i * 131 + rank));
	double value = rng_double(&rng) - 0.5;
	return ldexp(value, (int)rng_below(&rng, 30) - 20);
}

static inline enum status small_things(struct comm *comm, void *context)
{
	const struct comm_place *place = comm_place(comm);
	int32_t size = place->size;
	enum { MANY = 5000 };
	static double values[MANY], largest[MANY];
	static char long_text[40000], everyones[8 * 40000];
	(void)context;
	for (int trial = 0; trial < 3; trial++) {
		RANK_CHECK(comm_gather(comm, NULL, 0, NULL) == OK);
		for (int64_t i = 0; i < MANY; i++)
			values[i] = largest[i] = number(place->rank, i, trial);
		RANK_CHECK(comm_sum(comm, values, MANY) == OK);
		RANK_CHECK(comm_max(comm, largest, MANY) == OK);
		for (int64_t i = 0; i < MANY; i++) {
			double sum = number(0, i, trial), most = sum;
			for (int32_t rank = 1; rank < size; rank++) {
				sum += number(rank, i, trial);
				most = fmax(most, number(rank, i, trial));
			}
			RANK_CHECK(values[i] == sum && largest[i] == most);
		}
		for (int32_t root = 0; root < size; root++) {
			memset(long_text, 'a' + place->rank, sizeof long_text);
			RANK_CHECK(comm_broadcast(comm, long_text, sizeof long_text, root) == OK);
			RANK_CHECK(long_text[0] == 'a' + root && long_text[sizeof long_text - 1] == 'a' + root);
		}
		memset(long_text, 'a' + place->rank, sizeof long_text);
		RANK_CHECK(comm_gather(comm, long_text, sizeof long_text, everyones) == OK);
		for (int32_t rank = 0; rank < size; rank++)
			for (size_t i = 0; i < sizeof long_text; i++)
				RANK_CHECK(everyones[(size_t)rank * sizeof long_text + i] == 'a' + rank);
	}
	double wrong = place->rank == size - 1 ? NAN : 1;
	RANK_CHECK(comm_max(comm, &wrong, 1) == OK && isnan(wrong));
	return OK;
}

/* By the definition of the format, in double precision: 11 or 8 significant bits, the smallest exponent, ties to even. */
static inline double round_to(double x, enum comm_type wire)
{
	int digits = wire == COMM_F16 ? 11 : 8, lowest = wire == COMM_F16 ? -24 : -133, exponent;
	if (wire == COMM_F32 || wire == COMM_F64 || x == 0 || !isfinite(x))
		return x;
	frexp(x, &exponent);
	int unit = exponent - digits < lowest ? lowest : exponent - digits;
	double rounded = ldexp(nearbyint(ldexp(x, -unit)), unit);
	if (wire == COMM_F16 && fabs(rounded) >= 65536)
		return copysign(INFINITY, x);
	return rounded;
}

struct large_case {
	int64_t count;
	enum comm_type type, wire;
	bool allocated; /* by comm_allocate; otherwise the block lies in the middle of other memory */
	int trial;
};

static inline double get(const void *data, int64_t i, enum comm_type type)
{
	return type == COMM_F64 ? ((const double *)data)[i] : (double)((const float *)data)[i];
}

static inline enum status large_sum(struct comm *comm, void *context)
{
	const struct large_case *test = context;
	const struct comm_place *place = comm_place(comm);
	size_t bytes = (size_t)test->count * (test->type == COMM_F64 ? 8 : 4);
	void *memory = NULL;
	enum { INSIDE = 256 };
	RANK_CHECK((test->allocated ? comm_allocate(comm, &memory, bytes + INSIDE, "a test")
				    : (memory = calloc(1, bytes + INSIDE), OK)) == OK);
	for (size_t i = 0; i < bytes; i++)
		RANK_CHECK(((unsigned char *)memory)[i] == 0);
	unsigned char *data = (unsigned char *)memory + INSIDE;
	for (int64_t i = 0; i < test->count; i++) {
		double value = number(place->rank, i, test->trial);
		if (test->type == COMM_F64)
			((double *)(void *)data)[i] = value;
		else
			((float *)(void *)data)[i] = (float)value;
	}
	comm_ticket ticket = comm_reduce_scatter(comm, data, test->count, test->type, test->wire);
	RANK_CHECK(comm_wait(comm, ticket) == OK);
	for (int64_t i = comm_share(comm, test->count, place->rank); i < comm_share(comm, test->count, place->rank + 1); i++) {
		double sum = 0;
		float narrow = 0;
		for (int32_t rank = 0; rank < place->size; rank++) {
			double value = number(rank, i, test->trial);
			if (test->type == COMM_F32 || test->wire != COMM_F64)
				value = (float)value;
			if (place->size > 1)
				value = round_to(value, test->wire);
			else if (test->type == COMM_F64)
				value = number(rank, i, test->trial);
			sum = rank == 0 ? value : sum + value;
			narrow = rank == 0 ? (float)value : narrow + (float)value;
		}
		RANK_CHECK(get(data, i, test->type) == (test->type == COMM_F64 ? sum : (double)narrow));
	}
	ticket = comm_all_gather(comm, data, test->count, test->type);
	RANK_CHECK(comm_wait(comm, ticket) == OK);
	/* All have the same bits. */
	uint64_t hash = hash64(data, bytes), all[8];
	RANK_CHECK(comm_gather(comm, &hash, sizeof hash, all) == OK);
	for (int32_t rank = 0; rank < place->size; rank++)
		RANK_CHECK(all[rank] == hash);
	if (test->allocated)
		comm_release(comm, memory);
	else
		free(memory);
	return OK;
}

/* Many operations in flight at once, on ranges of one block, as in a backward pass; the same bits each time. */
static inline enum status many_at_once(struct comm *comm, void *context)
{
	enum { BUCKETS = 300, LENGTH = 1000 };
	float *data;
	uint64_t first = 0;
	(void)context;
	RANK_CHECK(comm_allocate(comm, (void **)&data, BUCKETS * LENGTH * sizeof *data, "a test") == OK);
	for (int round = 0; round < 3; round++) {
		comm_ticket last = 0;
		for (int64_t i = 0; i < BUCKETS * LENGTH; i++)
			data[i] = (float)number(comm_place(comm)->rank, i, 1);
		for (int bucket = BUCKETS - 1; bucket >= 0; bucket--)
			comm_reduce_scatter(comm, data + bucket * LENGTH, LENGTH, COMM_F32, COMM_F32);
		for (int bucket = 0; bucket < BUCKETS; bucket++)
			last = comm_all_gather(comm, data + bucket * LENGTH, LENGTH, COMM_F32);
		RANK_CHECK(comm_wait(comm, last) == OK);
		uint64_t hash = hash64(data, BUCKETS * LENGTH * sizeof *data);
		RANK_CHECK(round == 0 || hash == first);
		first = hash;
	}
	double busy, exposed;
	comm_seconds(comm, &busy, &exposed);
	RANK_CHECK(comm_place(comm)->size == 1 || (busy > 0 && exposed > 0));
	comm_release(comm, data);
	return OK;
}

/* Ranks that may use the same cores divide them among themselves. */
static inline enum status threads(struct comm *comm, void *context)
{
	int own, cores = pool_available_cores(), size = comm_place(comm)->size;
	(void)context;
	RANK_CHECK(affinity_threads(comm, &own) == OK);
	RANK_CHECK(own == (cores / size < 1 ? 1 : cores / size));
	return OK;
}

/* Several allocations live side by side, in any order of release. */
static inline enum status allocations(struct comm *comm, void *context)
{
	enum { BLOCKS = 6, COUNT = 3000 };
	int32_t *blocks[BLOCKS];
	int32_t rank = comm_place(comm)->rank, size = comm_place(comm)->size;
	(void)context;
	for (int i = 0; i < BLOCKS; i++) {
		RANK_CHECK(comm_allocate(comm, (void **)&blocks[i], COUNT * sizeof(int32_t), "a test") == OK);
		for (int k = 0; k < COUNT; k++)
			blocks[i][k] = rank * 100 + i;
		if (i == 3) {
			comm_release(comm, blocks[1]);
			blocks[1] = NULL;
		}
	}
	for (int i = 0; i < BLOCKS; i++) {
		if (!blocks[i])
			continue;
		RANK_CHECK(comm_wait(comm, comm_all_gather(comm, blocks[i], COUNT, COMM_F32)) == OK);
		for (int32_t other = 0; other < size; other++)
			for (int64_t k = comm_share(comm, COUNT, other); k < comm_share(comm, COUNT, other + 1); k++)
				RANK_CHECK(blocks[i][k] == other * 100 + i);
	}
	for (int i = 0; i < BLOCKS; i++)
		comm_release(comm, blocks[i]);
	void *none = NULL;
	RANK_CHECK(comm_allocate(comm, &none, (size_t)1 << 50, "a petabyte") == ERR_RESOURCE && !none);
	return comm_gather(comm, NULL, 0, NULL);
}

static inline enum status shares_cover(struct comm *comm, void *context)
{
	int32_t size = comm_place(comm)->size;
	(void)context;
	for (int64_t count = 0; count < 2000; count++) {
		RANK_CHECK(comm_share(comm, count, 0) == 0 && comm_share(comm, count, size) == count);
		for (int32_t rank = 0; rank < size; rank++) {
			RANK_CHECK(comm_share(comm, count, rank) <= comm_share(comm, count, rank + 1));
			RANK_CHECK(comm_share(comm, count, rank) % 64 == 0 || comm_share(comm, count, rank) == count);
		}
	}
	return OK;
}

/* One rank of four has another text; all ranks name it, and the line. */
static inline enum status disagree(struct comm *comm, void *context)
{
	int32_t odd = *(int32_t *)context;
	bool is_odd = comm_place(comm)->rank == odd;
	RANK_CHECK(comm_agree(comm, "the seed", "42") == OK);
	const char *text = is_odd ? "a = 1\nrate = 0.2\nc = 5" : "a = 1\nrate = 0.1\nc = 5";
	RANK_CHECK(comm_agree(comm, "the settings", text) == ERR_STATE);
	char expected[300];
	snprintf(expected, sizeof expected,
		 "ranks disagree about the settings: rank %d on %s has 'rate = 0.1', rank %d on %s has 'rate = 0.2'",
		 odd == 0 ? 1 : 0, comm_place(comm)->host, odd, comm_place(comm)->host);
	RANK_CHECK(strcmp(error_last()->message, expected) == 0);
	return OK;
}

static inline enum status failing(struct comm *comm, void *context)
{
	int32_t rank = comm_place(comm)->rank;
	(void)context;
	RANK_CHECK(comm_agree_status(comm, OK) == OK);
	RANK_CHECK(comm_agree_status(comm, rank == 1 ? error_set(STOPPED, "stop") : OK) == STOPPED);
	enum status own = rank == 0 ? error_set(STOPPED, "stop") : rank == 2 ? error_set(ERR_DATA, "'x' is broken") : OK;
	if (rank == 2)
		error_hint("mend it");
	RANK_CHECK(comm_agree_status(comm, own) == ERR_DATA);
	RANK_CHECK(strstr(error_last()->message, "'x' is broken") != NULL);
	RANK_CHECK(rank == 2 || strncmp(error_last()->message, "rank 2 on ", 10) == 0);
	RANK_CHECK(strcmp(error_last()->hint, "mend it") == 0);
	return OK;
}

/* A rank that returns early is named by the ranks that wait, in both kinds of operations. */
static inline enum status leave_early(struct comm *comm, void *context)
{
	static float data[1000];
	comm_section(comm, "forward", 17);
	if (comm_place(comm)->rank == 1)
		return OK;
	enum status status = *(bool *)context ? comm_wait(comm, comm_reduce_scatter(comm, data, 1000, COMM_F32, COMM_F32))
					      : comm_gather(comm, NULL, 0, NULL);
	RANK_CHECK(status == ERR_PEER);
	RANK_CHECK(strstr(error_last()->message, "rank 1 ") && strstr(error_last()->message, "'forward' of step 17"));
	/* And so does everything after it. */
	RANK_CHECK(comm_gather(comm, NULL, 0, NULL) == ERR_PEER);
	RANK_CHECK(comm_sum(comm, (double[]){1}, 1) == ERR_PEER);
	return OK;
}

/* Ranks that call different operations. */
static inline enum status different_operations(struct comm *comm, void *context)
{
	static float data[1000];
	(void)context;
	comm_ticket ticket = comm_reduce_scatter(comm, data, comm_place(comm)->rank == 1 ? 999 : 1000, COMM_F32, COMM_F32);
	enum status status = comm_wait(comm, ticket);
	RANK_CHECK(status == ERR_STATE || status == ERR_PEER);
	RANK_CHECK(strstr(error_last()->message, "not at the same operation"));
	return OK;
}

#endif
