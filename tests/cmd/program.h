/* Runs the program as a user does: a shell command line, its exit code, and what it printed. */
#ifndef TESTS_CMD_PROGRAM_H
#define TESTS_CMD_PROGRAM_H

#include <fcntl.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/buffer.h"
#include "test.h"

static struct buffer program_output, program_errors;

/* Runs "bertc <arguments>" (a printf format; %s for paths without spaces) and returns its exit code, 128 + n for a signal.
 * Output and errors are left in the buffers; standard input is empty unless the arguments redirect it. */
static inline int program(const char *format, ...) PRINTF_LIKE(1, 2);
static inline int program(const char *format, ...)
{
	static char arguments[8192], command[12000];
	va_list list;
	va_start(list, format);
	vsnprintf(arguments, sizeof arguments, format, list);
	va_end(list);
	const char *bertc = getenv("BERTC");
	char output[128], errors[128];
	snprintf(output, sizeof output, "%s/output", test_folder);
	snprintf(errors, sizeof errors, "%s/errors", test_folder);
	snprintf(command, sizeof command, "%s </dev/null %s >%s 2>%s", bertc ? bertc : "build/bertc", arguments, output, errors);
	int status = system(command);
	buffer_clear(&program_output);
	buffer_clear(&program_errors);
	assert_ok(file_read(output, 1 << 24, &program_output));
	assert_ok(file_read(errors, 1 << 24, &program_errors));
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Like program(), but calls `change` during the run: after the log line containing `said` has been read, and at most two
 * lines later. The log goes through a pipe that holds one line, so that the program waits with each line until the one
 * before has been read. */
static inline int program_changed_at(const char *said, void (*change)(void), const char *format, ...) PRINTF_LIKE(3, 4);
static inline int program_changed_at(const char *said, void (*change)(void), const char *format, ...)
{
	char arguments[8192], command[9000], line[4096];
	int ends[2], status;
	bool changed = false;
	ssize_t size;
	va_list list;
	va_start(list, format);
	vsnprintf(arguments, sizeof arguments, format, list);
	va_end(list);
	const char *bertc = getenv("BERTC");
	snprintf(command, sizeof command, "exec %s %s </dev/null >/dev/null", bertc ? bertc : "build/bertc", arguments);
	assert_int_equal(pipe2(ends, O_DIRECT | O_CLOEXEC), 0);
	assert_true(fcntl(ends[1], F_SETPIPE_SZ, 4096) > 0);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		dup2(ends[1], STDERR_FILENO);
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	buffer_clear(&program_output);
	buffer_clear(&program_errors);
	while ((size = read(ends[0], line, sizeof line)) > 0) {
		buffer_append(&program_errors, line, (size_t)size);
		if (!changed && strstr(buffer_string(&program_errors), said)) {
			changed = true;
			change();
		}
	}
	close(ends[0]);
	assert_true(size == 0 && waitpid(child, &status, 0) == child);
	if (!changed)
		fail_msg("'%s' is not in:\n%s", said, buffer_string(&program_errors));
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Checks that the command ends with this exit code and says `part` on standard error. */
#define assert_program(expected, part, ...)                                                                                      \
	do {                                                                                                                     \
		int got_ = program(__VA_ARGS__);                                                                                 \
		if (got_ != (expected) || !strstr(buffer_string(&program_errors), part))                                         \
			fail_msg("exit status %d, expected %d and '%s':\n%s", got_, expected, part,                              \
				 buffer_string(&program_errors));                                                                \
	} while (0)

/* Checks that the last command said it on standard error. */
static inline void assert_said(const char *part)
{
	if (!strstr(buffer_string(&program_errors), part))
		fail_msg("'%s' is not in:\n%s", part, buffer_string(&program_errors));
}

/* ... or printed it. */
static inline void assert_printed(const char *part)
{
	if (!strstr(buffer_string(&program_output), part))
		fail_msg("'%s' is not in:\n%s", part, buffer_string(&program_output));
}

/* Checks that a file of the test folder contains `part`. */
static inline void assert_holds(const char *name, const char *part)
{
	struct buffer text = {0};
	assert_ok(file_read(test_path(name), 1 << 24, &text));
	if (!strstr(buffer_string(&text), part))
		fail_msg("'%s' is not in '%s':\n%.2000s", part, name, buffer_string(&text));
	buffer_release(&text);
}

/* From here on programs run as on a machine without these libraries (a list that ends with NULL): the loader finds damaged
 * files under their names. libraries_shown() undoes it. */
static inline void libraries_hidden(const char *const *files)
{
	for (; *files; files++) {
		char path[512];
		snprintf(path, sizeof path, "%s/%s", test_folder, *files);
		assert_ok(file_write(path, "damaged", 7));
	}
	assert_int_equal(setenv("LD_LIBRARY_PATH", test_folder, 1), 0);
}

static inline void libraries_shown(void)
{
	assert_int_equal(unsetenv("LD_LIBRARY_PATH"), 0);
}

/* Group teardown: removes the test folder, and frees what the last run printed. */
static inline int program_teardown(void **state)
{
	buffer_release(&program_output);
	buffer_release(&program_errors);
	return test_folder_drop(state);
}

static inline bool files_are_same(const char *a, const char *b)
{
	struct buffer left = {0}, right = {0};
	assert_ok(file_read(a, 1 << 28, &left));
	assert_ok(file_read(b, 1 << 28, &right));
	bool same = left.size == right.size && memcmp(left.data, right.data, left.size) == 0;
	buffer_release(&left);
	buffer_release(&right);
	return same;
}

static inline void assert_same_file(const char *a, const char *b)
{
	if (!files_are_same(a, b))
		fail_msg("'%s' and '%s' differ", a, b);
}

static inline void assert_different_files(const char *a, const char *b)
{
	if (files_are_same(a, b))
		fail_msg("'%s' and '%s' are the same", a, b);
}

#endif
