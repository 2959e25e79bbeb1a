/* Every fault in every section of a step, with 2 and 4 ranks: the run ends in time and says who, where and why; the same
 * command resumes and gives the bits of a run without faults. */
#include "cmd/rank_faults.h"

#define WATCHDOG "--watchdog_seconds 3"
enum { WATCHDOG_SECONDS_GIVEN = 3 };

static const char *const sections[] = {"start", "data", "forward and backward", "reduction", "reduce", "save", "evaluate"};
static const struct {
	const char *name, *said;
	enum status status;
	bool hangs;
} faults[] = {
	{"SIGKILL", "was killed by SIGKILL", ERR_PEER, false},        {"SIGSEGV", "was killed by SIGSEGV", ERR_PEER, false},
	{"SIGABRT", "was killed by SIGABRT", ERR_PEER, false},        {"exit", "ended with exit status 1", ERR_INTERNAL, false},
	{"SIGSTOP", "has given no sign of life for", ERR_PEER, true}, {"hang", "hangs in", ERR_PEER, true},
};

static double slowest_death, slowest_hang;

static void one_case(const char *straight, int ranks, int rank, const char *section, size_t which)
{
	char fault[128], who[32];
	double seconds;
	/* A rank that has started shows signs of life before its first step, but no more can be expected of it. */
	bool at_start = strcmp(section, "start") == 0;
	if (at_start && strcmp(faults[which].name, "hang") == 0)
		return;
	/* Starts from nothing: a run that never begins could otherwise pass with the result of an earlier case. */
	if (file_exists(test_path("faulty")))
		assert_ok(folder_remove(test_path("faulty")));
	snprintf(fault, sizeof fault, "%d:%s:%s:%s", rank, section,
		 at_start                                                           ? "0"
		 : strcmp(section, "save") == 0 || strcmp(section, "evaluate") == 0 ? "6"
										    : "5",
		 faults[which].name);
	snprintf(who, sizeof who, "rank %d on ", rank);
	int status = fault_run("faulty", ranks, fault, WATCHDOG, &seconds);
	if (status != (int)faults[which].status || !strstr(buffer_string(&program_errors), who) ||
	    !strstr(buffer_string(&program_errors), faults[which].said))
		fail_msg("%s with %d ranks: status %d:\n%s", fault, ranks, status, buffer_string(&program_errors));
	if (faults[which].hangs)
		slowest_hang = seconds > slowest_hang ? seconds : slowest_hang;
	else
		slowest_death = seconds > slowest_death ? seconds : slowest_death;
	status = fault_run("faulty", ranks, NULL, "", NULL);
	if (status != 0)
		fail_msg("after %s with %d ranks: status %d:\n%s", fault, ranks, status, buffer_string(&program_errors));
	assert_same_end(straight, "faulty");
}

static void test_matrix(void **state)
{
	double undisturbed;
	for (int ranks = 2; ranks <= 4; ranks *= 2) {
		char straight[32];
		snprintf(straight, sizeof straight, "straight-%d", ranks);
		assert_int_equal(fault_run(straight, ranks, NULL, "", &undisturbed), 0);
		for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
			for (size_t which = 0; which < sizeof faults / sizeof *faults; which++)
				one_case(straight, ranks, (int)(i + which) % ranks, sections[i], which);
		printf("%d ranks: %.1f s undisturbed; from start to end %.1f s with a death, %.1f s with a hang (limit %d s)\n",
		       ranks, undisturbed, slowest_death, slowest_hang, WATCHDOG_SECONDS_GIVEN);
		assert_true(slowest_death < undisturbed + 10);
		assert_true(slowest_hang < undisturbed + 10 * WATCHDOG_SECONDS_GIVEN + 10);
	}
}

/* All faults, one after another, in one run that restarts itself until there are no more. */
static void test_restarts(void **state)
{
	assert_int_equal(fault_run("straight", 3, NULL, "", NULL), 0);
	for (int step = 1; step <= 8; step++) {
		char fault[64];
		snprintf(fault, sizeof fault, "%d:reduction:%d:SIGKILL", step % 3, step);
		assert_int_equal(fault_run("restarted", 3, fault, "--fresh --max_restarts 1", NULL), 0);
		assert_same_end("straight", "restarted");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_matrix),
		cmocka_unit_test(test_restarts),
	};
	return cmocka_run_group_tests(tests, rank_faults_setup, rank_faults_teardown);
}
