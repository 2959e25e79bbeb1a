/* Errors as values.
 *
 * There are three kinds, kept apart:
 *   - our own mistakes: BUG_IF() prints a message and aborts, in release builds too;
 *   - external failures (files, arguments, memory, devices): the function returns an enum status that the
 *     compiler forces the caller to use, and leaves a message for the thread;
 *   - what the user sees: only src/cmd prints the message and exits; the status is the exit code.
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <stdbool.h>

#define MUST_USE __attribute__((warn_unused_result))
#define PRINTF_LIKE(format_index, first) __attribute__((format(printf, format_index, first)))

/* clang also warns of a type whose value is dropped, so that it covers functions without MUST_USE. */
#ifdef __clang__
#define MUST_USE_TYPE MUST_USE
#else
#define MUST_USE_TYPE
#endif

/* Every status is also the exit code of the program: scripts rely on the numbers. */
enum MUST_USE_TYPE status {
	OK = 0,
	ERR_INTERNAL = 1, /* a bug of ours */
	DIFFERENT = 1,    /* `compare`: the two differ, with the same exit code as diff and cmp */
	ERR_USAGE = 2,    /* wrong option or setting: fix the command */
	ERR_DATA = 3,     /* bad input file: corrupt, truncated, wrong format */
	ERR_STATE = 4,    /* inputs that do not fit together: checkpoint, vocabulary, settings, data */
	ERR_RESOURCE = 5, /* disk, memory, permission, device */
	ERR_PEER = 6,     /* another rank died, hung, or disagreed */
	ERR_NUMERIC = 7,  /* numerical failure: NaN, infinity, divergence */
	ERR_LOCKED = 8,   /* another run owns the output folder */
	STOPPED = 75,     /* stopped on request after saving; run the same command again */
};

/* The last failure of a thread: what failed, where, and (hint) what to do about it. */
struct error {
	enum status status;
	char message[1536];
	char hint[768]; /* empty if there is no advice */
};

/* Records a message for this thread, clears its hint, and returns `status` (ERR_INTERNAL instead of OK). Style: lower case, no
 * final period, the subject in quotes: "'x.gz': corrupt gzip data at byte 1234". */
MUST_USE enum status error_set(enum status status, const char *format, ...) PRINTF_LIKE(2, 3);

/* Like error_set, with strerror(errno) appended. It always returns `status`: whether ENOENT and the like are ERR_USAGE is for the
 * caller to decide. */
MUST_USE enum status error_set_errno(enum status status, const char *format, ...) PRINTF_LIKE(2, 3);

/* Adds advice, such as "give --text_form sentences", to the last error of this thread. */
void error_hint(const char *format, ...) PRINTF_LIKE(1, 2);
/* The same, and returns `status`: return error_hinted(error_set(...), "give ..."); */
MUST_USE enum status error_hinted(enum status status, const char *format, ...) PRINTF_LIKE(2, 3);

/* The last error of this thread; never NULL. */
const struct error *error_last(void);

/* Carries an error from a worker thread to the thread that waits for it: copy out with error_last(), put back
 * with error_restore(), which returns its status; never OK. */
MUST_USE enum status error_restore(const struct error *error);

/* Whether any thread has reported STOPPED: then the process must not end as if its work were complete. */
bool error_has_stopped(void);

/* Returns a failing status to the caller. */
#define TRY(call)                                                                                                                \
	do {                                                                                                                     \
		enum status try_status_ = (call);                                                                                \
		if (try_status_ != OK)                                                                                           \
			return try_status_;                                                                                      \
	} while (0)

/* Jumps to the cleanup label with a failing status; needs a variable `enum status status` in scope. */
#define TRY_GOTO(call, label)                                                                                                    \
	do {                                                                                                                     \
		status = (call);                                                                                                 \
		if (status != OK)                                                                                                \
			goto label;                                                                                              \
	} while (0)

/* For our own mistakes: prints the expression, file, and line, then aborts. */
#define BUG_IF(condition)                                                                                                        \
	do {                                                                                                                     \
		if (__builtin_expect(!!(condition), 0))                                                                          \
			bug_abort(#condition, __FILE__, __LINE__);                                                               \
	} while (0)
__attribute__((noreturn)) void bug_abort(const char *condition, const char *file, int line);

#endif
