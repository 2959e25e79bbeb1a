/* A rank that dies, hangs or differs from the others ends the run; the same command resumes and gives the same bits. */
#include <sys/stat.h>
#include "cmd/rank_faults.h"
#include "comm/ranks.h"

static void goes_on_after_a_death(void **state)
{
	double seconds;
	assert_int_equal(fault_run("straight", 2, NULL, "", NULL), 0);
	assert_int_equal(fault_run("killed", 2, "1:reduction:5:SIGKILL", "", &seconds), ERR_PEER);
	assert_true(seconds < 15);
	assert_said("bertc: rank 1 on ");
	assert_said("was killed by SIGKILL in '");
	assert_said("of step 5");
	assert_said("run the same command again");
	assert_true(file_exists(test_path("killed/checkpoint-4")));
	/* The terminal shows it only once. */
	const char *first = strstr(buffer_string(&program_errors), "was killed by");
	assert_null(strstr(first + 1, "was killed by"));
	assert_int_equal(fault_run("killed", 2, NULL, "", NULL), 0);
	assert_same_end("straight", "killed");
	/* Restarts by itself, without repeating the --fresh of the first start. */
	assert_int_equal(fault_run("killed", 2, "0:forward and backward:5:SIGSEGV", "--fresh --max_restarts 1", NULL), 0);
	assert_said("restarting all ranks (1 of 1)");
	assert_said("resuming from ");
	assert_same_end("straight", "killed");
}

static void a_stopped_rank_is_found(void **state)
{
	double seconds;
	assert_int_equal(fault_run("stopped", 2, "1:reduce:3:SIGSTOP", "--watchdog_seconds 2", &seconds), ERR_PEER);
	assert_said("rank 1 on ");
	assert_said("has given no sign of life for ");
	assert_said("in 'reduce' of step 3: a signal has stopped it");
	assert_true(seconds < 20);
	assert_int_equal(fault_run("stopped", 2, NULL, "", NULL), 0);
}

/* Ranks started by something else, each with options of its own; returns the exit code of both. */
static int run_apart(const char *name, const char *environment, const char *first, const char *second)
{
	char command[8192], output[2][128];
	const char *more[] = {first, second};
	pid_t children[2];
	int statuses[2], status;
	static int jobs;
	int port = 1 + (getpid() + 31 * jobs++) % 65000;
	for (int rank = 0; rank < 2; rank++) {
		snprintf(output[rank], sizeof output[rank], "%s/errors-%d", test_folder, rank);
		snprintf(command, sizeof command,
			 "RANK=%d WORLD_SIZE=2 LOCAL_RANK=%d LOCAL_WORLD_SIZE=2 MASTER_PORT=%d %s exec timeout 100 %s " FAULT_RUN
			 " >%s/output-%d 2>%s",
			 rank, rank, port, environment, getenv("BERTC") ? getenv("BERTC") : "build/bertc", corpus, config,
			 test_folder, name, 0, more[rank], test_folder, rank, output[rank]);
		fflush(NULL);
		children[rank] = fork();
		assert_true(children[rank] >= 0);
		if (children[rank] == 0) {
			execl("/bin/sh", "sh", "-c", command, (char *)NULL);
			_exit(99);
		}
	}
	for (int rank = 0; rank < 2; rank++) {
		assert_int_equal(waitpid(children[rank], &status, 0), children[rank]);
		statuses[rank] = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	}
	buffer_clear(&program_errors);
	assert_ok(file_read(output[0], 1 << 24, &program_errors));
	if (statuses[0] != statuses[1])
		fail_msg("statuses %d and %d:\n%s", statuses[0], statuses[1], buffer_string(&program_errors));
	return statuses[0];
}

static void ranks_that_differ(void **state)
{
	assert_int_equal(run_apart("apart", "", "", ""), 0);
	assert_int_equal(run_apart("apart-2", "", "--seed 1", "--seed 2"), ERR_STATE);
	assert_said("ranks disagree about the settings of the run: rank 0 on ");
	assert_said("\"seed\": \"1\"");
	assert_said("\"seed\": \"2\"");
	assert_int_equal(run_apart("apart-3", "", "--weight_decay 0.01", "--weight_decay 0.02"), ERR_STATE);
}

/* One rank has another vocabulary, or other text. */
static void ranks_with_other_data(void **state)
{
	struct buffer words = {0}, text = {0};
	char own[160], other[160];
	assert_int_equal(program("vocab --corpus %s --vocab_size 80 --out %s/words", corpus, test_folder), 0);
	assert_ok(file_read(test_path("words"), 1 << 20, &words));
	buffer_format(&words, "zebra\n");
	assert_ok(file_write(test_path("more-words"), words.data, words.size));
	snprintf(own, sizeof own, "--vocab_file %s/words", test_folder);
	snprintf(other, sizeof other, "--vocab_file %s/more-words", test_folder);
	assert_int_equal(run_apart("words-0", "", own, own), 0);
	assert_int_equal(run_apart("words-1", "", own, other), ERR_STATE);
	assert_said("rank 1 on ");
	assert_said("/more-words' differs from '");
	assert_true(file_exists(test_path("words-1/data/vocab.txt"))); /* rank 0's */

	assert_ok(file_read(corpus, 1 << 20, &text));
	assert_ok(file_write(test_path("more-text"), text.data, text.size));
	snprintf(other, sizeof other, "--corpus %s/more-text", test_folder);
	assert_int_equal(run_apart("text-1", "", "", other), ERR_STATE);
	assert_said("rank 1 on ");
	buffer_release(&words);
	buffer_release(&text);
}

/* Whatever started the ranks, and however they communicate: the same bits. */
static void the_way_does_not_matter(void **state)
{
	char command[8192];
	assert_int_equal(fault_run("shared", 2, NULL, "", NULL), 0);
	assert_int_equal(run_apart("named", "", "", ""), 0);
	assert_true(file_size(test_path("output-0")) > 0 && file_size(test_path("output-1")) == 0); /* the first rank reports */
	assert_same_end("shared", "named");
	assert_int_equal(run_apart("tcp", "BERTC_TRANSPORT=tcp MASTER_ADDR=127.0.0.1", "", ""), 0);
	assert_same_end("shared", "tcp");
	if (!MPI_CAN_BE_TESTED)
		skip();
	snprintf(command, sizeof command,
		 MPI_ENVIRONMENT "BERTC_TRANSPORT=mpi timeout 100 mpirun "
				 "--oversubscribe -n 2 %s " FAULT_RUN " >/dev/null 2>&1",
		 getenv("BERTC") ? getenv("BERTC") : "build/bertc", corpus, config, test_folder, "mpi", 0, "");
	assert_int_equal(system(command), 0);
	assert_same_end("shared", "mpi");
}

/* Begins a run, waits for its first steps, then runs `then`, in which $run is the run's process id. */
static int meanwhile(const char *name, const char *then)
{
	static char run[8192], command[20000];
	const char *bertc = getenv("BERTC") ? getenv("BERTC") : "build/bertc";
	snprintf(run, sizeof run, FAULT_RUN, corpus, config, test_folder, name, 2,
		 "--num_train_steps 100000 --eval_steps 0 --save_checkpoints_steps 0");
	snprintf(command, sizeof command,
		 "{ exec %s %s; } >/dev/null 2>%s/errors & run=$!\n"
		 "lines() { cat %s/%s/metrics.jsonl 2>/dev/null | wc -l; }; before=$(lines)\n"
		 "for i in $(seq 1000); do [ $(lines) -gt $((before + 3)) ] && break; sleep 0.02; done\n"
		 "again() { %s %s >/dev/null 2>&1; }\n%s",
		 bertc, run, test_folder, test_folder, name, bertc, run, then);
	int status = system(command);
	buffer_clear(&program_errors);
	assert_ok(file_read(test_path("errors"), 1 << 24, &program_errors));
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* A save that waits for the previous one for longer than a section may take is not a hang. */
static void a_slow_disk_is_no_hang(void **state)
{
	setenv("BERTC_FAULT", "mkdir:1+:slow", 1);
	int status = fault_run("slow", 2, NULL,
			       "--watchdog_seconds 1 --save_checkpoints_steps 4 --eval_steps 0 --save_best false", NULL);
	unsetenv("BERTC_FAULT");
	if (status != 0)
		fail_msg("status %d:\n%s", status, buffer_string(&program_errors));
	assert_same_end("straight", "slow");
}

static void signals_stop_all(void **state)
{
	assert_int_equal(meanwhile("signalled", "kill -USR1 $run; wait $run"), STOPPED);
	assert_said("stopped at step ");
	assert_said("by SIGUSR1, saved");
	assert_int_equal(meanwhile("signalled", "kill -TERM $run; wait $run"), STOPPED);
	assert_said("resuming from ");
}

static void two_launchers(void **state)
{
	assert_int_equal(meanwhile("owned", "again; status=$?; kill -KILL $run; wait $run; exit $status"), ERR_LOCKED);
	/* The lock and the ranks are gone with the launcher. */
	assert_int_equal(meanwhile("owned", "kill -USR1 $run; wait $run"), STOPPED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(goes_on_after_a_death),   cmocka_unit_test(a_stopped_rank_is_found),
		cmocka_unit_test(ranks_that_differ),       cmocka_unit_test(ranks_with_other_data),
		cmocka_unit_test(the_way_does_not_matter), cmocka_unit_test(signals_stop_all),
		cmocka_unit_test(two_launchers),           cmocka_unit_test(a_slow_disk_is_no_hang),
	};
	return cmocka_run_group_tests(tests, rank_faults_setup, rank_faults_teardown);
}
