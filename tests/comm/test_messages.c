/* Ranks that send each other messages: over TCP on this machine, and through MPI where it is built in. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include "comm/collectives.h"
#include "comm/messages.h"

/* A port that is free now. */
static int32_t free_port(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t length = sizeof address;
	int number = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(number, (struct sockaddr *)&address, length), 0);
	assert_int_equal(getsockname(number, (struct sockaddr *)&address, &length), 0);
	close(number);
	return ntohs(address.sin_port);
}

static struct large_case large_cases[] = {
	{1, COMM_F32, COMM_F32, true, 1},      {65, COMM_F64, COMM_F64, true, 2},    {4097, COMM_F32, COMM_BF16, true, 3},
	{20000, COMM_F32, COMM_F16, false, 4}, {4000, COMM_F64, COMM_BF16, true, 5}, {900001, COMM_F32, COMM_F32, true, 6},
};
static bool no = false, yes = true;
static int32_t one = 1;

/* All that every transport must do, one after the other. */
static inline enum status everything(struct comm *comm, void *context)
{
	(void)context;
	TRY(small_things(comm, NULL));
	for (size_t i = 0; i < sizeof large_cases / sizeof *large_cases; i++)
		TRY(large_sum(comm, &large_cases[i]));
	TRY(many_at_once(comm, NULL));
	TRY(threads(comm, NULL));
	TRY(allocations(comm, NULL));
	if (comm_place(comm)->size < 3)
		return OK;
	TRY(disagree(comm, &one));
	return failing(comm, NULL);
}

static void test_tcp(void **state)
{
	(void)state;
	for (int32_t size = 2; size <= 8; size += size < 4 ? 1 : 4) {
		ranks_port = free_port();
		run_ranks(size, everything, NULL, NULL);
	}
	for (int large = 0; large < 2; large++) {
		ranks_port = free_port();
		run_ranks(3, leave_early, large ? &yes : &no, NULL);
	}
	ranks_port = 0;
}

/* ---- Faults ---- */

static enum status steps(struct comm *comm, void *context)
{
	static float data[5000];
	(void)context;
	for (int64_t step = 1; step < 30; step++) {
		comm_section(comm, "forward", step);
		usleep(2000);
		comm_section(comm, "reduce", step);
		enum status status = comm_wait(comm, comm_reduce_scatter(comm, data, 5000, COMM_F32, COMM_F32));
		if (status == OK)
			status = comm_barrier(comm);
		if (status == OK)
			continue;
		const char *expected = context;
		RANK_CHECK(status == ERR_PEER);
		if (!strstr(error_last()->message, expected)) {
			fprintf(stderr, "rank %d: %s\n", comm_place(comm)->rank, error_last()->message);
			return ERR_DATA;
		}
		return status;
	}
	return OK;
}

static void test_tcp_faults(void **state)
{
	int statuses[64];
	char closed[] = "rank 1 on here has closed its connection (it died";
	(void)state;
	setenv("BERTC_RANK_FAULT", "1:forward:7:SIGKILL", 1);
	ranks_port = free_port();
	run_ranks(3, steps, closed, statuses);
	assert_int_equal(statuses[0], ERR_PEER);
	assert_int_equal(statuses[1], 128 + SIGKILL);
	assert_int_equal(statuses[2], ERR_PEER);
	/* Wherever a rank hangs, all others hear of it. */
	for (int rank = 0; rank < 3; rank++) {
		char fault[64], expected[64];
		snprintf(fault, sizeof fault, "%d:reduction:5:hang", rank);
		snprintf(expected, sizeof expected, "rank %d on here (process", rank);
		setenv("BERTC_RANK_FAULT", fault, 1);
		ranks_port = free_port();
		ranks_watchdog = 1;
		run_ranks(3, steps, expected, statuses);
		for (int other = 0; other < 3; other++)
			assert_int_equal(statuses[other], ERR_PEER);
	}
	ranks_watchdog = 0;
	ranks_port = 0;
	unsetenv("BERTC_RANK_FAULT");
}

/* ---- Through mpirun: this program again, with the name of what to do ---- */

static int mpi_rank_main(const char *body)
{
	struct place place;
	struct comm *comm = NULL;
	char nothing[] = "";
	alarm(60);
	const char *seconds = getenv("BERTC_TEST_WATCHDOG");
	setenv("BERTC_TRANSPORT", "mpi", 1);
	enum status status = place_find(&place);
	if (status == OK)
		status = comm_open(
			&comm, &(struct comm_settings){.place = &place, .watchdog_seconds = seconds ? strtod(seconds, NULL) : 0});
	if (status == OK && !strstr(comm_description(comm), "MPI"))
		status = error_set(ERR_STATE, "the transport is %s", comm_description(comm));
	if (status == OK)
		status = strcmp(body, "everything") == 0 ? everything(comm, NULL) : steps(comm, nothing);
	if (status != OK)
		fprintf(stderr, "rank %d: %s\n", place.ranks.rank, error_last()->message);
	comm_close(comm);
	return (int)status;
}

static int run_mpi(int32_t size, bool is_everything, const char *environment)
{
	char self[1024] = "", command[2048];
	assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
	snprintf(command, sizeof command,
		 "%s " MPI_ENVIRONMENT "BERTC_TEST_BODY=%s timeout 100 "
		 "mpirun --oversubscribe -n %d %s",
		 environment, is_everything ? "everything" : "steps", size, self);
	int status = system(command);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void test_mpi(void **state)
{
	(void)state;
	if (!MPI_CAN_BE_TESTED)
		skip();
	for (int32_t size = 2; size <= 4; size++)
		assert_int_equal(run_mpi(size, true, ""), 0);
}

static void test_mpi_faults(void **state)
{
	(void)state;
	if (!MPI_CAN_BE_TESTED)
		skip();
	unsetenv("BERTC_RANK_FAULT");
	assert_int_equal(run_mpi(3, false, ""), 0);
	assert_int_not_equal(run_mpi(3, false, "BERTC_RANK_FAULT=1:forward:7:SIGKILL"), 0);
	/* mpirun itself does not notice a rank that hangs. */
	assert_int_equal(run_mpi(3, false, "BERTC_TEST_WATCHDOG=1 BERTC_RANK_FAULT=2:reduction:5:hang"), ERR_PEER);
	assert_int_equal(run_mpi(3, false, "BERTC_TEST_WATCHDOG=1 BERTC_RANK_FAULT=1:forward:5:SIGSTOP"), ERR_PEER);
}

int main(void)
{
	const char *body = getenv("BERTC_TEST_BODY");
	if (body)
		return mpi_rank_main(body);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tcp),
		cmocka_unit_test(test_tcp_faults),
		cmocka_unit_test(test_mpi),
		cmocka_unit_test(test_mpi_faults),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
