#include "test.h"
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/stop.h"

/* In a child: sends itself signals; ends with 0 if what is asked for is seen, or by a signal. */
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
	(void)state;
	assert_int_equal(child_result((int[]){SIGINT}, 1, "SIGINT"), 0);
	assert_int_equal(child_result((int[]){SIGTERM}, 1, "SIGTERM"), 0);
	assert_int_equal(child_result((int[]){SIGUSR1}, 1, "SIGUSR1"), 0);
	/* A terminal that closes; its shell may say so once more. */
	assert_int_equal(child_result((int[]){SIGHUP, SIGHUP, SIGTERM}, 3, "SIGHUP"), 0);
	/* A scheduler may repeat SIGUSR1, or follow it with SIGTERM: still one request. */
	assert_int_equal(child_result((int[]){SIGUSR1, SIGUSR1, SIGTERM}, 3, "SIGUSR1"), 0);
	assert_int_equal(child_result((int[]){SIGTERM, SIGUSR1}, 2, "SIGTERM"), 0);
}

static void a_second_order_leaves_at_once(void **state)
{
	(void)state;
	int result = child_result((int[]){SIGINT, SIGINT}, 2, "SIGINT");
	assert_true(WIFSIGNALED(result) && WTERMSIG(result) == SIGINT);
	result = child_result((int[]){SIGINT, SIGTERM}, 2, "SIGINT");
	assert_true(WIFSIGNALED(result) && WTERMSIG(result) == SIGTERM);
}

static void ignored_signals_stay_ignored(void **state)
{
	(void)state;
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
	(void)state;
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
		cmocka_unit_test(ignored_signals_stay_ignored),
		cmocka_unit_test(closed_pipes_do_not_kill),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
