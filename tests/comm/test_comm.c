/* Collective operations of ranks on one machine, for 1, 2, 3, 4 and 8 ranks. */
#include <sys/resource.h>
#include "base/file.h"
#include "base/log.h"
#include "comm/collectives.h"
#include "comm/rendezvous.h"
#include "memory_limit.h"

static const int32_t sizes[] = {1, 2, 3, 4, 8};
enum { SIZES = sizeof sizes / sizeof *sizes };

static void test_small_things(void **state)
{
	for (int i = 0; i < SIZES; i++)
		run_ranks(sizes[i], small_things, NULL, NULL);
}

static void test_large_sums(void **state)
{
	static const int64_t counts[] = {1, 63, 64, 65, 511, 4097, 20000};
	static const enum comm_type types[][2] = {
		{COMM_F32, COMM_F32}, {COMM_F64, COMM_F64}, {COMM_F32, COMM_BF16}, {COMM_F32, COMM_F16}, {COMM_F64, COMM_BF16}};
	int trial = 0;
	for (int i = 0; i < SIZES; i++)
		for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
			const enum comm_type *pair = types[trial % 5];
			run_ranks(sizes[i], large_sum, &(struct large_case){counts[k], pair[0], pair[1], trial % 2 == 0, trial},
				  NULL);
			trial++;
		}
	/* More than the copy area holds. */
	run_ranks(3, large_sum, &(struct large_case){900001, COMM_F32, COMM_BF16, false, 77}, NULL);
	run_ranks(2, large_sum, &(struct large_case){900001, COMM_F32, COMM_F32, true, 78}, NULL);
}

static void test_many_at_once(void **state)
{
	for (int i = 0; i < SIZES; i++)
		run_ranks(sizes[i], many_at_once, NULL, NULL);
}

static void test_allocations(void **state)
{
	run_ranks(1, allocations, NULL, NULL);
	run_ranks(4, allocations, NULL, NULL);
	run_ranks(2, threads, NULL, NULL);
}

/* If one rank has no room for a block, no rank gets it, and the next block has the same position in all ranks. */
static enum status one_has_no_room(struct comm *comm, void *context)
{
	enum { COUNT = 32 << 20, ROOM = 32 << 20 };
	int32_t rank = comm_place(comm)->rank;
	struct buffer pages = {0};
	struct rlimit before, low;
	float *data = NULL, *early;
	(void)context;
	RANK_CHECK(comm_allocate(comm, (void **)&early, 4096, "a test") == OK);
	RANK_CHECK(file_read("/proc/self/statm", 4096, &pages) == OK && getrlimit(RLIMIT_AS, &before) == 0);
	low = before;
	low.rlim_cur = (rlim_t)strtoull(buffer_string(&pages), NULL, 10) * (rlim_t)sysconf(_SC_PAGESIZE) + ROOM;
	buffer_release(&pages);
	RANK_CHECK(rank != 1 || setrlimit(RLIMIT_AS, &low) == 0);
	RANK_CHECK(comm_allocate(comm, (void **)&data, COUNT * sizeof *data, "a test") == ERR_RESOURCE && !data);
	RANK_CHECK(strstr(error_last()->message, "a test of 3 ranks"));
	RANK_CHECK(setrlimit(RLIMIT_AS, &before) == 0);
	RANK_CHECK(comm_allocate(comm, (void **)&data, 1000 * sizeof *data, "a test") == OK);
	for (int i = 0; i < 1000; i++)
		data[i] = (float)rank;
	RANK_CHECK(comm_wait(comm, comm_all_gather(comm, data, 1000, COMM_F32)) == OK);
	for (int32_t other = 0; other < comm_place(comm)->size; other++)
		for (int64_t k = comm_share(comm, 1000, other); k < comm_share(comm, 1000, other + 1); k++)
			RANK_CHECK(data[k] == (float)other);
	comm_release(comm, data);
	comm_release(comm, early);
	return OK;
}

static void test_one_has_no_room(void **state)
{
	struct rlimit before;
	limit_memory(&before, (size_t)1 << 30); /* can it be limited at all? */
	assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
	run_ranks(3, one_has_no_room, NULL, NULL);
}

static void test_shares(void **state)
{
	struct comm *comm;
	assert_ok(comm_open(&comm, &(struct comm_settings){0}));
	assert_int_equal(comm_share(comm, 100, 0), 0);
	assert_int_equal(comm_share(comm, 100, 1), 100);
	assert_int_equal(comm_place(comm)->size, 1);
	comm_close(comm);
}

static void test_shares_cover(void **state)
{
	run_ranks(3, shares_cover, NULL, NULL);
	run_ranks(8, shares_cover, NULL, NULL);
}

static void test_disagree(void **state)
{
	for (int32_t odd = 0; odd < 4; odd++)
		run_ranks(4, disagree, &odd, NULL);
}

static void test_agree_status(void **state)
{
	run_ranks(3, failing, NULL, NULL);
}

static void test_leave_early(void **state)
{
	for (int large = 0; large < 2; large++) {
		bool is_large = large;
		run_ranks(3, leave_early, &is_large, NULL);
	}
}

/* One rank saves, and compares a hash, while the others go on with a sum. */
static enum status different_messages(struct comm *comm, void *context)
{
	double values[3] = {1, 2, 3}, all[3];
	(void)context;
	enum status status =
		comm_place(comm)->rank == 0 ? comm_gather(comm, values, sizeof *values, all) : comm_sum(comm, values, 3);
	RANK_CHECK(status == ERR_STATE || status == ERR_PEER);
	RANK_CHECK(strstr(error_last()->message, "not at the same operation"));
	return OK;
}

static void test_different_operations(void **state)
{
	run_ranks(3, different_operations, NULL, NULL);
	run_ranks(3, different_messages, NULL, NULL);
}

/* Rank 0 is killed between creating its name and meeting the others: rank 1 does not wait for it, and the name is removed. */
static void test_dead_rendezvous(void **state)
{
	struct place place = {.ranks = {0, 2, 0, 2, "here"}, .meeting = MEETING_NAME};
	char name[128];
	int file;
	snprintf(place.name, sizeof place.name, "test-%d", (int)getpid());
	snprintf(name, sizeof name, "/dev/shm/bertc-%u-%s", (unsigned)getuid(), place.name);
	for (int again = 0; again < 2; again++) {
		pid_t child = fork();
		if (child == 0) {
			if (rendezvous_find(&place, &file) == OK)
				raise(SIGKILL);
			_exit(1);
		}
		int status;
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFSIGNALED(status));
		assert_true(file_exists(name));
		struct place other = place;
		other.ranks.rank = other.ranks.local_rank = 1;
		if (again) { /* rank 0 of another job cleans up */
			other.ranks.rank = other.ranks.local_rank = 0;
			snprintf(other.name, sizeof other.name, "other-%d", (int)getpid());
			assert_ok(rendezvous_find(&other, &file));
			close(file);
			rendezvous_end(&other);
		} else {
			double begin = clock_seconds();
			assert_error(ERR_PEER, "died before the ranks had connected", rendezvous_find(&other, &file));
			assert_true(clock_seconds() - begin < 5);
		}
		assert_false(file_exists(name));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_small_things),         cmocka_unit_test(test_large_sums),
		cmocka_unit_test(test_many_at_once),         cmocka_unit_test(test_allocations),
		cmocka_unit_test(test_one_has_no_room),      cmocka_unit_test(test_shares),
		cmocka_unit_test(test_shares_cover),         cmocka_unit_test(test_disagree),
		cmocka_unit_test(test_agree_status),         cmocka_unit_test(test_leave_early),
		cmocka_unit_test(test_different_operations), cmocka_unit_test(test_dead_rendezvous),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
