/* Starts several ranks on one machine from one command: this process runs its own program once per rank, divides the cores
 * among the ranks, and watches them. Must be called before any thread is started. */
#ifndef COMM_LAUNCHER_H
#define COMM_LAUNCHER_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"

struct place;

struct launcher_settings {
	int32_t ranks;
	const char *folder;      /* the run folder; each rank's log is folder/logs/rank-<n>.log */
	double watchdog_seconds; /* 0: WATCHDOG_SECONDS */
	int64_t max_restarts;    /* how many times all ranks are restarted after one of them died or hung */
};

/* Runs all ranks with this process's own arguments until they end. The first failure is everyone's: the other ranks have 5 s
 * to leave and are then killed. Returns the status of that failure, ERR_PEER if a rank died or hung. Signals that ask to stop
 * are passed on. An empty error message means that rank 0 has already printed everything there is to say. The ranks die with
 * this process. */
MUST_USE enum status launcher_run(const struct launcher_settings *settings);

/* Called in a rank: sets up its log. Rank 0 also writes what it prints to folder/logs/rank-0.log. In other ranks, if mpirun or
 * a similar program started them, standard output and standard error are redirected to their log (our launcher has already seen
 * to that for the ranks it starts). */
MUST_USE enum status launcher_log(const struct place *place, const char *folder);

#endif
