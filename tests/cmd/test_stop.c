/* Stopping at every moment at which a command asks whether to stop (BERTC_FAULT=stop:N:SIGTERM): whatever is not complete, the
 * exit code is 75, and the same command finishes the work. */
#include "cmd/labeled_files.h"

static int setup(void **state)
{
	return small_run_make(state, 13) != 0 ? -1 : labeled_files_make("cpu");
}

/* How often a command can be stopped before it no longer asks. */
enum { MOST_STOPS = 120 };

/* Runs the command with a request to stop at its `moment`-th question; returns the exit code. */
static int stopped_at(int moment, const char *command)
{
	char fault[64];
	snprintf(fault, sizeof fault, "stop:%d:SIGTERM", moment);
	assert_int_equal(setenv("BERTC_FAULT", fault, 1), 0);
	int code = program("%s", command);
	assert_int_equal(unsetenv("BERTC_FAULT"), 0);
	return code;
}

static void assert_entries(const char *folder, int64_t expected)
{
	struct name_list names = {0};
	assert_ok(folder_list(folder, &names));
	if (names.count != expected)
		fail_msg("'%s' has %lld entries, such as %s", folder, (long long)names.count, names.names[0]);
	name_list_release(&names);
}

static void finetunes_on(const char *more)
{
	static const char *const results[] = {"eval_results.json", "predict.txt", "test_results.json", "again/predict.txt"};
	char command[2048], path[256];
	snprintf(command, sizeof command,
		 "finetune -q --task classification --model %s/base --train %s/classification.train --dev %s/classification.dev "
		 "--test %s/classification.dev --test again=%s/classification.train --out %s/stopped --max_seq_length 24 "
		 "--num_train_steps 2 --learning_rate 2e-3 --threads 1 %s",
		 test_folder, test_folder, test_folder, test_folder, test_folder, test_folder, more);
	assert_int_equal(program("%s", command), 0);
	for (int moment = 1, stopped = 0;; moment++) {
		/* Nothing is trained again, and the results of the earlier run are there to be taken for those of this one. */
		int code = stopped_at(moment, command);
		bool complete = true;
		for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
			snprintf(path, sizeof path, "stopped/%s", results[i]);
			complete &= file_exists(test_path(path));
		}
		if (code == 0) {
			assert_true(complete && stopped > 3);
			break;
		}
		stopped++;
		bool finishing = strstr(buffer_string(&program_errors), "before the results were complete") != NULL;
		if (code != 75 || complete == finishing || moment == MOST_STOPS)
			fail_msg("moment %d: exit code %d, results %s:\n%s", moment, code, complete ? "complete" : "missing",
				 buffer_string(&program_errors));
		assert_said("stopped");
		assert_said("run the same command again");
	}
	assert_ok(folder_remove(test_path("stopped")));
}

static void final_results(void **state)
{
	(void)state;
	finetunes_on("");
	finetunes_on("--ranks 2");
}

static void whole_runs(void **state)
{
	(void)state;
	char command[2048];
	snprintf(command, sizeof command,
		 "finetune -q --task classification --model %s/base --train %s/classification.train --dev %s/classification.dev "
		 "--test %s/classification.dev --out %s/whole --max_seq_length 24 --num_train_steps 2 --eval_steps 1 "
		 "--learning_rate 2e-3 --threads 1",
		 test_folder, test_folder, test_folder, test_folder, test_folder);
	for (int moment = 1;; moment++) {
		int code = stopped_at(moment, command);
		if (code == 0)
			break;
		if (code != 75 || moment == MOST_STOPS)
			fail_msg("moment %d: exit code %d:\n%s", moment, code, buffer_string(&program_errors));
		assert_said("stopped");
		assert_ok(folder_remove(test_path("whole")));
	}
	assert_true(file_exists(test_path("whole/predict.txt")));
}

static void temporary_folders(void **state)
{
	(void)state;
	char command[1024];
	assert_ok(folder_make(test_path("temporary")));
	assert_int_equal(setenv("TMPDIR", test_path("temporary"), 1), 0);
	snprintf(command, sizeof command, "evaluate --model %s/base --corpus %s --max_seq_length 32 --threads 1", test_folder,
		 corpus);
	for (int moment = 1;; moment++) {
		int code = stopped_at(moment, command);
		assert_entries(test_path("temporary"), 0);
		if (code == 0) {
			assert_true(moment > 3);
			break;
		}
		if (code != 75 || moment == MOST_STOPS)
			fail_msg("moment %d: exit code %d:\n%s", moment, code, buffer_string(&program_errors));
		assert_said("stopped by SIGTERM");
	}
	assert_int_equal(unsetenv("TMPDIR"), 0);
}

/* Signals from outside, and the time limit, while the test set is answered. (A shell lets its background jobs ignore SIGINT.) */
static void every_signal(void **state)
{
	(void)state;
	static const char *const names[] = {"TERM", "HUP", "USR1"};
	char command[1024];
	put_labeled("classification", "many.test", 150000, 4);
	snprintf(command, sizeof command,
		 "finetune -q --task classification --model %s/base --train %s/classification.train --test %s/many.test "
		 "--out %s/signal --max_seq_length 24 --num_train_steps 1 --learning_rate 2e-3 --threads 1",
		 test_folder, test_folder, test_folder, test_folder);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		int code = program(
			"%s 2>/dev/null & p=$!; while ! [ -e %s/signal/final ] && kill -0 $p; do sleep 0.01; done; kill -%s $p; "
			"wait $p; exit $?; :",
			command, test_folder, names[i]);
		if (code != 75 || file_exists(test_path("signal/predict.txt")))
			fail_msg("SIG%s: exit code %d:\n%s", names[i], code, buffer_string(&program_errors));
		assert_ok(folder_remove(test_path("signal")));
	}
	assert_program(75, "stopped by the time limit", "%s --max_time 0.7", command);
}

/* Before the first step there is nothing to save: the signals end a run at once, with the code that says to run it again.
 * Whatever feeds it text sends the signal when the run has its folder. */
static void before_training(void **state)
{
	(void)state;
	static const char *const names[] = {"TERM", "INT", "HUP", "USR1"};
	char line[2048];
	const char *bertc = getenv("BERTC");
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(line, sizeof line,
			 "D=%s; (n=0; while ! [ -e $D/early/.lock ] && [ $n -lt 200 ]; do sleep 0.05; n=$((n+1)); done; p=$(cat "
			 "$D/pid); "
			 "kill -%s $p; while kill -0 $p 2>/dev/null && [ $n -lt 200 ]; do sleep 0.05; n=$((n+1)); done) | sh -c "
			 "'echo $$ "
			 ">$1/pid; exec $0 pretrain --corpus - --vocab_file $1/base/final/vocab.txt --model tiny --out $1/early' "
			 "%s $D "
			 ">$D/said 2>&1",
			 test_folder, names[i], bertc ? bertc : "build/bertc");
		int status = system(line);
		struct buffer said = {0};
		assert_ok(file_read(test_path("said"), 1 << 16, &said));
		if (WEXITSTATUS(status) != 75 || !strstr(buffer_string(&said), "stopped before the first step"))
			fail_msg("SIG%s: exit status %d: %s", names[i], WEXITSTATUS(status), buffer_string(&said));
		assert_false(file_exists(test_path("early/settings.json")));
		buffer_release(&said);
		assert_ok(folder_remove(test_path("early")));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(final_results), cmocka_unit_test(whole_runs),      cmocka_unit_test(temporary_folders),
		cmocka_unit_test(every_signal),  cmocka_unit_test(before_training),
	};
	return cmocka_run_group_tests(tests, setup, program_teardown);
}
