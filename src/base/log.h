/* What the person at the terminal sees. Everything here goes to standard error; results go to standard output
 * and are printed by src/cmd alone. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"

enum log_level { LOG_QUIET = 0, LOG_NORMAL = 1, LOG_VERBOSE = 2 };
extern enum log_level log_level;
extern bool log_progress; /* false: no progress bars, nor the lines in their place */

/* One line; `log_note` is left out with --quiet, `log_detail` shown with --verbose only. A progress bar on the
 * terminal is wiped first and drawn again after. Safe from any thread. */
void log_note(const char *format, ...) PRINTF_LIKE(1, 2);
void log_detail(const char *format, ...) PRINTF_LIKE(1, 2);
void log_warning(const char *format, ...) PRINTF_LIKE(1, 2);

/* Also appends every line (without colours) to this file from now on; NULL ends it. */
void log_to_file(const char *path);

/* Hands every warning to `take` from now on, in the thread that gives it, instead of writing it to standard error; NULL ends it.
 * For the library, whose caller owns standard error. */
typedef void log_warning_taker(void *context, const char *message);
void log_warnings_to(log_warning_taker *take, void *context);

/* Terminal facts, decided once: colours honour NO_COLOR, TERM=dumb, and whether stderr is a terminal. */
bool log_is_terminal(void);
bool log_has_colour(void);
int log_columns(void);

/* Progress: on a terminal a bar redrawn in place at most 10 times a second, with share, rate, ETA and the
 * caller's text; elsewhere one line a minute (and one at the end).
 *   struct progress p; progress_start(&p, "training", total, "steps"); progress_update(&p, done, "loss %.3f", l);
 *   progress_finish(&p); */
struct progress {
	const char *title, *unit;
	int64_t total;         /* 0 = unknown */
	int64_t done, first;   /* `first`: where this process began (a resumed run) */
	double started, drawn; /* seconds, monotonic */
	char text[160];
};
void progress_start(struct progress *progress, const char *title, int64_t first, int64_t total, const char *unit);
void progress_update(struct progress *progress, int64_t done, const char *format, ...) PRINTF_LIKE(3, 4);
void progress_finish(struct progress *progress);

/* Monotonic seconds. */
double clock_seconds(void);
/* Sleeps; a signal may end it early. */
void clock_pause(double seconds);
/* "3 h 12 min", "4.2 s"; "12.3 MB", "1.4 GB"; "1,234,567"; "1 file", "1,234 files" into `out`, which is
 * returned. */
#define FORMAT_BYTES 32
const char *format_duration(char out[FORMAT_BYTES], double seconds);
const char *format_size(char out[FORMAT_BYTES], double bytes);
const char *format_count(char out[FORMAT_BYTES], int64_t count);
const char *format_counted(char out[FORMAT_BYTES], int64_t count, const char *one, const char *many);

#endif
