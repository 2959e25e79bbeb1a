/* Messages and hints, one set per thread, and the abort at our own mistakes. */
#include "test.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void message_and_hint(void **state)
{
	assert_int_equal(error_set(ERR_DATA, "'%s': bad byte %d", "x", 7), ERR_DATA);
	error_hint("give %s", "another");
	assert_string_equal(error_last()->message, "'x': bad byte 7");
	assert_string_equal(error_last()->hint, "give another");
	/* A new error starts without a hint, and may quote the old message. */
	assert_int_equal(error_set(ERR_STATE, "while reading: %s", error_last()->message), ERR_STATE);
	assert_string_equal(error_last()->message, "while reading: 'x': bad byte 7");
	assert_string_equal(error_last()->hint, "");
	errno = ENOENT;
	assert_int_equal(error_set_errno(ERR_USAGE, "'%s'", "y"), ERR_USAGE);
	assert_string_equal(error_last()->message, "'y': No such file or directory");
}

static void long_messages_are_cut(void **state)
{
	char text[4000];
	memset(text, 'a', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	errno = EIO;
	assert_int_equal(error_set_errno(ERR_DATA, "%s", text), ERR_DATA);
	error_hint("%s", text);
	assert_int_equal(strlen(error_last()->message), sizeof error_last()->message - 1);
	assert_int_equal(strlen(error_last()->hint), sizeof error_last()->hint - 1);
}

static void *other_thread(void *copy)
{
	int *seen = copy;
	*seen = error_last()->status;
	return error_set(ERR_NUMERIC, "from the worker") == ERR_NUMERIC ? copy : NULL;
}

static void each_thread_has_its_own(void **state)
{
	pthread_t thread;
	int seen = -1;
	void *result;
	assert_int_equal(error_set(ERR_DATA, "mine"), ERR_DATA);
	assert_int_equal(pthread_create(&thread, NULL, other_thread, &seen), 0);
	pthread_join(thread, &result);
	assert_int_equal(seen, OK);
	assert_string_equal(error_last()->message, "mine");

	struct error carried = {.status = ERR_PEER, .message = "carried", .hint = "far"};
	assert_int_equal(error_restore(&carried), ERR_PEER);
	assert_string_equal(error_last()->message, "carried");
	assert_string_equal(error_last()->hint, "far");
	assert_int_equal(error_restore(error_last()), ERR_PEER);
}

static enum status tries(enum status inner, int *reached)
{
	TRY(inner);
	*reached = 1;
	return OK;
}

static void try_passes_failures_up(void **state)
{
	int reached = 0;
	assert_int_equal(tries(ERR_DATA, &reached), ERR_DATA);
	assert_int_equal(reached, 0);
	assert_int_equal(tries(OK, &reached), OK);
	assert_int_equal(reached, 1);
}

static void our_mistakes_abort(void **state)
{
	BUG_IF(1 + 1 != 2);
	pid_t child = fork();
	if (child == 0) {
		fclose(stderr);
		BUG_IF(1 + 1 == 2);
		_exit(0);
	}
	int result;
	assert_int_equal(waitpid(child, &result, 0), child);
	assert_true(WIFSIGNALED(result) && WTERMSIG(result) == SIGABRT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(message_and_hint),        cmocka_unit_test(long_messages_are_cut),
		cmocka_unit_test(each_thread_has_its_own), cmocka_unit_test(try_passes_failures_up),
		cmocka_unit_test(our_mistakes_abort),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
