/* Errors as values.
 *
 * Three sorts, kept apart:
 *   - our own mistake: BUG_IF() prints and aborts, in release builds too;
 *   - the world's fault (files, arguments, memory, devices): the function returns an enum status that the
 *     compiler forces the caller to use, and leaves a message for the thread;
 *   - what the user sees: only src/cmd prints the message and exits; the status is the exit code.
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

/* Every status is also the exit code of the program: scripts rely on the numbers. */
enum status {
	OK = 0,
	ERR_INTERNAL = 1, /* a bug of ours */
	DIFFERENT = 1,    /* `compare`: the two differ, the exit status that diff and cmp have */
	ERR_USAGE = 2,    /* wrong option or setting: fix the command */
	ERR_DATA = 3,     /* bad input file: corrupt, truncated, wrong format */
	ERR_STATE = 4,    /* things that do not fit together: checkpoint, vocabulary, settings, data */
	ERR_RESOURCE = 5, /* disk, memory, permission, device */
	ERR_PEER = 6,     /* another rank died, hung or disagreed */
	ERR_NUMERIC = 7,  /* the numbers went wrong: NaN, infinity, divergence */
	ERR_LOCKED = 8,   /* another run owns the output folder */
	STOPPED = 75,     /* stopped on request after saving; run the same command again */
};

#define MUST_USE __attribute__((warn_unused_result))
#define PRINTF_LIKE(format_index, first) __attribute__((format(printf, format_index, first)))

/* The last failure of a thread: what failed, where, and (hint) what to do about it. */
struct error {
	enum status status;
	char message[1536];
	char hint[768]; /* empty when there is nothing to advise */
};

/* Records a message for this thread, clears its hint and returns `status`. Style: lower case, no full stop,
 * the subject in quotes: "'x.gz': corrupt gzip data at byte 1234". */
MUST_USE enum status error_set(enum status status, const char *format, ...) PRINTF_LIKE(2, 3);

/* As error_set, with strerror(errno) appended; statuses: ENOENT and the like become ERR_USAGE only where the
 * caller says so, this one always returns `status`. */
MUST_USE enum status error_set_errno(enum status status, const char *format, ...) PRINTF_LIKE(2, 3);

/* Adds advice to the last error of this thread ("give --text_form sentences"). */
void error_hint(const char *format, ...) PRINTF_LIKE(1, 2);

/* The last error of this thread; never NULL. */
const struct error *error_last(void);

/* Carries an error from a worker thread to the thread that waits for it: copy out with error_last(), put back
 * with error_restore(), which returns its status. */
MUST_USE enum status error_restore(const struct error *error);

/* Passes a failing status up. */
#define TRY(call)                                                                                                                \
	do {                                                                                                                     \
		enum status try_status_ = (call);                                                                                \
		if (try_status_ != OK)                                                                                           \
			return try_status_;                                                                                      \
	} while (0)

/* Passes a failing status to the clean-up label; needs a variable `enum status status` in scope. */
#define TRY_GOTO(call, label)                                                                                                    \
	do {                                                                                                                     \
		status = (call);                                                                                                 \
		if (status != OK)                                                                                                \
			goto label;                                                                                              \
	} while (0)

/* Our own mistakes: prints expression, file and line, then aborts. */
#define BUG_IF(condition)                                                                                                        \
	do {                                                                                                                     \
		if (__builtin_expect(!!(condition), 0))                                                                          \
			bug_abort(#condition, __FILE__, __LINE__);                                                               \
	} while (0)
__attribute__((noreturn)) void bug_abort(const char *condition, const char *file, int line);

#endif
