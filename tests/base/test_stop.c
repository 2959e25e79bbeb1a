/* Requests to stop by signal, in child processes. */
#include "test.h"
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/stop.h"

/* Sends signals to itself in a child; exits with 0 if the expected request is seen, or is ended by a signal. */
static int child_result(const int *signals, int count, const char *reason)
{
	pid_t child = fork();
	if (child == 0) {
		stop_install();
		if (stop_requested() || stop_reason())
			_exit(1);
		for (int i = 0; i < count; i++)
			raise(signals[i]);
		_exit(stop_requested() && stop_reason() && !strcmp(stop_reason(), reason) ? 0 : 2);
	}
	int result = -1;
	waitpid(child, &result, 0);
	return result;
}

static void signals_ask_to_stop(void **state)
{
	assert_int_equal(child_result((int[]){SIGINT}, 1, "SIGINT"), 0);
	assert_int_equal(child_result((int[]){SIGTERM}, 1, "SIGTERM"), 0);
	assert_int_equal(child_result((int[]){SIGUSR1}, 1, "SIGUSR1"), 0);
	/* A terminal that closes; its shell may send the signal again. */
	assert_int_equal(child_result((int[]){SIGHUP, SIGHUP, SIGTERM}, 3, "SIGHUP"), 0);
	/* A scheduler may repeat SIGUSR1, or follow it with SIGTERM: still one request. */
	assert_int_equal(child_result((int[]){SIGUSR1, SIGUSR1, SIGTERM}, 3, "SIGUSR1"), 0);
	assert_int_equal(child_result((int[]){SIGTERM, SIGUSR1}, 2, "SIGTERM"), 0);
}

static void a_second_order_leaves_at_once(void **state)
{
	int result = child_result((int[]){SIGINT, SIGINT}, 2, "SIGINT");
	assert_true(WIFSIGNALED(result) && WTERMSIG(result) == SIGINT);
	result = child_result((int[]){SIGINT, SIGTERM}, 2, "SIGINT");
	assert_true(WIFSIGNALED(result) && WTERMSIG(result) == SIGTERM);
}

/* What the signal handler itself writes, from a child that receives `signals`. */
static void said_at(const int *signals, int count, char *out, size_t size)
{
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();
	if (child == 0) {
		dup2(ends[1], STDERR_FILENO);
		stop_loss("nothing is saved");
		stop_announce("finishing this step, then saving");
		stop_loss("what was trained since checkpoint-%d is lost", 12);
		stop_install();
		for (int i = 0; i < count; i++)
			raise(signals[i]);
		_exit(0);
	}
	close(ends[1]);
	size_t used = 0;
	for (ssize_t got; (got = read(ends[0], out + used, size - 1 - used)) > 0;)
		used += (size_t)got;
	out[used] = '\0';
	close(ends[0]);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

static void requests_are_acknowledged_at_once(void **state)
{
	char said[1024];
	said_at((int[]){SIGINT}, 1, said, sizeof said);
	assert_string_equal(said, "finishing this step, then saving; press Ctrl-C again to quit now\n");
	said_at((int[]){SIGTERM}, 1, said, sizeof said);
	assert_string_equal(said, "SIGTERM: finishing this step, then saving\n");
	said_at((int[]){SIGINT, SIGINT}, 2, said, sizeof said);
	assert_string_equal(said, "finishing this step, then saving; press Ctrl-C again to quit now\n"
				  "quitting now: what was trained since checkpoint-12 is lost\n");
}

static void ignored_signals_stay_ignored(void **state)
{
	pid_t child = fork();
	if (child == 0) {
		signal(SIGINT, SIG_IGN);
		stop_install();
		raise(SIGINT);
		raise(SIGINT);
		_exit(stop_requested());
	}
	int result;
	waitpid(child, &result, 0);
	assert_int_equal(result, 0);
}

static void closed_pipes_do_not_kill(void **state)
{
	pid_t child = fork();
	if (child == 0) {
		int pipes[2];
		stop_install();
		if (pipe(pipes) != 0 || close(pipes[0]) != 0)
			_exit(1);
		_exit(write(pipes[1], "x", 1) == -1 ? 0 : 2);
	}
	int result;
	waitpid(child, &result, 0);
	assert_int_equal(result, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(signals_ask_to_stop),
		cmocka_unit_test(a_second_order_leaves_at_once),
		cmocka_unit_test(requests_are_acknowledged_at_once),
		cmocka_unit_test(ignored_signals_stay_ignored),
		cmocka_unit_test(closed_pipes_do_not_kill),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
