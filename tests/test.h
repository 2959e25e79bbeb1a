/* Shared by all tests: cmocka and the headers it needs, checks of statuses, a temporary folder. */
#ifndef TESTS_TEST_H
#define TESTS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/error.h"
#include "base/file.h"

/* Tests are given a state and callbacks a context, whether they use it or not. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

/* The call must succeed; otherwise the test fails with the message. */
#define assert_ok(call)                                                                                                          \
	do {                                                                                                                     \
		if ((call) != OK)                                                                                                \
			fail_msg("%s: %s", #call, error_last()->message);                                                        \
	} while (0)

/* The call must fail with this status, with `part` in the message. */
#define assert_error(expected, part, call)                                                                                       \
	do {                                                                                                                     \
		enum status got_ = (call);                                                                                       \
		if (got_ != (expected) || (got_ != OK && !strstr(error_last()->message, part)))                                  \
			fail_msg("%s: status %d, '%s'; expected %d, '%s'", #call, got_, got_ == OK ? "" : error_last()->message, \
				 expected, part);                                                                                \
	} while (0)

/* |a - b| <= tolerance; NaN fails. */
#define assert_near(a, b, tolerance)                                                                                             \
	do {                                                                                                                     \
		double a_ = (a), b_ = (b), difference_ = a_ > b_ ? a_ - b_ : b_ - a_;                                            \
		if (!(difference_ <= (tolerance)))                                                                               \
			fail_msg("%s is %.17g, %s is %.17g", #a, a_, #b, b_);                                                    \
	} while (0)

/* A folder for this test alone, for group_setup and group_teardown (or a test's own). */
static char test_folder[64];

static inline int test_folder_make(void **state)
{
	const char *base = getenv("TMPDIR");
	snprintf(test_folder, sizeof test_folder, "%.40s/bertc-XXXXXX", base && *base ? base : "/tmp");
	return mkdtemp(test_folder) ? 0 : -1;
}

static inline int test_folder_drop(void **state)
{
	return folder_remove(test_folder) == OK ? 0 : -1;
}

/* "test_folder/name", in one of eight buffers used in turn. */
static inline const char *test_path(const char *name)
{
	static char paths[8][PATH_BYTES];
	static int turn;
	char *path = paths[turn++ % 8];
	snprintf(path, PATH_BYTES, "%s/%s", test_folder, name);
	return path;
}

static inline void put_file(const char *name, const char *text)
{
	assert_ok(file_write(test_path(name), text, strlen(text)));
}

/* How many times as long a test may take here as on a processor that is not emulated, as arm64 may be. */
#ifdef __aarch64__
enum { SLOWNESS = 20 };
#else
enum { SLOWNESS = 1 };
#endif

#endif
