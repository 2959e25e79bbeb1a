/* Who hangs? Each rank says in the segment what it is doing since when, and a thread of its own shows life there. Whoever
 * watches (the launcher, or every rank) finds the one that does neither. */
#ifndef COMM_WATCHDOG_H
#define COMM_WATCHDOG_H

#include <stdbool.h>
#include "comm/segment.h"

/* ---- What a rank says of itself ---- */

struct watchdog;

#define WATCHDOG_SECONDS 60 /* where nothing else is said */
/* Nanoseconds of --watchdog_seconds: WATCHDOG_SECONDS where none are given, and at most a year, so that multiples of it are
 * still numbers. */
static inline int64_t watchdog_nanoseconds(double seconds)
{
	const double year = 365.0 * 86400;
	return (int64_t)(1e9 * (!(seconds > 0) ? WATCHDOG_SECONDS : seconds < year ? seconds : year));
}

/* Starts the thread. `seconds`: the least limit of a section; the limit is the larger of it and five times the longest
 * that the section took so far, ten times it the first time, and none before the first step (texts may be long). Where no
 * launcher does so, the thread also watches the other ranks of the machine, and ends the process (with the failure on
 * standard error) when it does not end by itself within 5 s of a failure. */
MUST_USE enum status watchdog_open(struct watchdog **out, struct segment *segment, double seconds);
void watchdog_section(struct watchdog *watchdog, const char *section, int64_t step);
/* The section continues: its limit counts from now. */
void watchdog_alive(struct watchdog *watchdog);
void watchdog_close(struct watchdog *watchdog);

/* ---- What a watcher sees ---- */

struct watcher {
	int64_t limit;    /* ns without a sign of life */
	int64_t looked;   /* when it last looked */
	int64_t forgiven; /* nothing before this time counts: the watcher itself did not run then (a suspended machine) */
};

/* Looks at all ranks; true if one hangs: which (-1: they wait for each other) and what to say. Call it every second or
 * more often. */
bool watcher_look(struct watcher *watcher, const struct segment *segment, int32_t *out_rank, struct error *out);

/* The same of one rank only. */
bool watcher_look_at(struct watcher *watcher, const struct segment *segment, int32_t rank, struct error *out);

#define LEAVE_SECONDS 5 /* what a rank has to leave after another's failure */

/* From now on SIGUSR2 makes this process write the stack of its main thread to standard error. */
void rank_stack_install(void);

/* ---- Faults for tests ---- */

/* BERTC_RANK_FAULT=rank:section:step:what (SIGKILL, SIGSTOP, SIGSEGV, SIGABRT, exit, hang) happens to that rank where it
 * enters the section in that step ("*": any); never in a restarted run. The section "reduction" is any large operation, in
 * the middle of it. */
void rank_fault(int32_t rank, const char *section, int64_t step);

#endif
