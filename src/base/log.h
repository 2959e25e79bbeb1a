/* Messages for the person at the terminal. Everything here goes to standard error, except the results of a run, which commands
 * send to standard output. Other results are printed only by src/cmd. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "base/error.h"

enum log_level { LOG_QUIET = 0, LOG_NORMAL = 1, LOG_VERBOSE = 2 };
extern enum log_level log_level;
extern bool log_progress; /* false: neither progress bars nor the lines that replace them */

/* Print one line each; `log_note` is silent with --quiet, `log_detail` prints only with --verbose. A progress bar on the terminal
 * is erased first and redrawn afterwards. Thread-safe. */
void log_note(const char *format, ...) PRINTF_LIKE(1, 2);
void log_detail(const char *format, ...) PRINTF_LIKE(1, 2);
void log_warning(const char *format, ...) PRINTF_LIKE(1, 2);
/* A warning that the same command would give each time it reads a file: printed once. */
void log_warning_once(const char *format, ...) PRINTF_LIKE(1, 2);
/* Like log_note(), for a run's results and where they are: written to the file last given to log_results_to() (NULL, the default:
 * standard error). */
void log_result(const char *format, ...) PRINTF_LIKE(1, 2);
void log_results_to(FILE *file);

/* From now on also appends every line (without the color of its prefix) to this file; NULL ends this. */
void log_to_file(const char *path);

/* From now on passes every warning to `take`, in the thread that issues it, instead of writing it to standard error; NULL ends
 * this. For the library, whose caller owns standard error. */
typedef void log_warning_taker(void *context, const char *message);
void log_warnings_to(log_warning_taker *take, void *context);

/* If standard error is a terminal, breaks text that begins at `column` at spaces where it would be wider than the terminal, but
 * not within `backquotes`, so that commands can be copied. Lines of the log are broken already. */
void log_fold(char *text, int column);

/* Properties of the terminal, determined once: color depends on NO_COLOR, TERM=dumb, and whether stderr is a terminal. The width
 * is queried at each call. */
bool log_is_terminal(void);
bool log_has_color(void);

/* Progress: on a terminal, a bar redrawn in place at most 10 times a second, with percentage, rate, ETA, and the
 * caller's text; elsewhere, one line a minute (and one at the end).
 *   struct progress p; progress_start(&p, "training", total, "steps"); progress_update(&p, done, "loss %.3f", l);
 *   progress_finish(&p); */
struct progress {
	const char *title, *unit;
	int64_t total;         /* 0 = unknown */
	int64_t done, first;   /* `first`: where this process began (for a resumed run) */
	double started, drawn; /* seconds, monotonic */
	char text[160];
};
void progress_start(struct progress *progress, const char *title, int64_t first, int64_t total, const char *unit);
void progress_update(struct progress *progress, int64_t done, const char *format, ...) PRINTF_LIKE(3, 4);
void progress_finish(struct progress *progress);
/* To be called before a command that prints results as they come shows progress: if the terminal may show these, too, directly or
 * by a program such as less, there is no bar. */
void progress_beside_results(void);

/* Monotonic seconds. */
double clock_seconds(void);
/* Sleeps; a signal may end the sleep early. */
void clock_pause(double seconds);
/* Write "3 h 12 min", "4.2 s"; "12.3 MB", "1.4 GB"; "1,234,567"; "1 file", "1,234 files" into `out`, which they return. */
#define FORMAT_BYTES 64
const char *format_duration(char out[FORMAT_BYTES], double seconds);
const char *format_size(char out[FORMAT_BYTES], double bytes);
const char *format_count(char out[FORMAT_BYTES], int64_t count);
const char *format_counted(char out[FORMAT_BYTES], int64_t count, const char *one, const char *many);

#endif
