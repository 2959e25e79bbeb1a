/* Finds ranks that hang. Each rank records in the segment what it is doing and since when, and a thread of its own gives signs
 * of life there. A watcher (the launcher, or every rank) finds the rank that exceeds its time limit or falls silent. */
#ifndef COMM_WATCHDOG_H
#define COMM_WATCHDOG_H

#include <stdbool.h>
#include "comm/segment.h"

/* ---- What a rank reports about itself ---- */

struct watchdog;

#define WATCHDOG_SECONDS 60 /* the default */
/* --watchdog_seconds in nanoseconds: WATCHDOG_SECONDS if not given, and at most a year, so that multiples do not overflow. */
static inline int64_t watchdog_nanoseconds(double seconds)
{
	const double year = 365.0 * 86400;
	return (int64_t)(1e9 * (!(seconds > 0) ? WATCHDOG_SECONDS : seconds < year ? seconds : year));
}

/* Starts the thread. `seconds` is the minimum limit of a section. A section's limit is the larger of this and five times its
 * longest duration so far; it is ten times the minimum the first time, and there is none before the first step (reading texts
 * may take long). If no launcher watches the ranks, the thread also watches the other ranks of the machine. It ends the
 * process (printing the failure on standard error) if the process does not end by itself within 5 s of a failure. */
MUST_USE enum status watchdog_open(struct watchdog **out, struct segment *segment, double seconds);
void watchdog_section(struct watchdog *watchdog, const char *section, int64_t step);
/* The section makes progress: its limit counts from now. */
void watchdog_alive(struct watchdog *watchdog);
void watchdog_close(struct watchdog *watchdog);

/* ---- What a watcher sees ---- */

struct watcher {
	int64_t limit;    /* longest time without a sign of life, ns */
	int64_t looked;   /* time of its last look */
	int64_t forgiven; /* nothing before this time counts: the watcher itself was not running (a suspended machine) */
};

/* Checks all ranks. True if one hangs: sets which one (-1: they all wait for each other) and the error to report. Call it at
 * least once a second. */
bool watcher_look(struct watcher *watcher, const struct segment *segment, int32_t *out_rank, struct error *out);

/* The same for a single rank. */
bool watcher_look_at(struct watcher *watcher, const struct segment *segment, int32_t rank, struct error *out);

#define LEAVE_SECONDS 5 /* time a rank has to leave after another one's failure */

/* From now on, SIGUSR2 makes this process write its main thread's stack to standard error. */
void rank_stack_install(void);

/* ---- Faults for tests ---- */

/* BERTC_RANK_FAULT=rank:section:step:what (SIGKILL, SIGSTOP, SIGSEGV, SIGABRT, exit, hang) makes that happen to the rank when
 * it enters the section in that step ("*": any), except in a restarted run. The section "reduction" is the middle of any large
 * operation. */
void rank_fault(int32_t rank, const char *section, int64_t step);

#endif
