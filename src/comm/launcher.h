/* Several ranks of one machine from one command: this process starts itself anew as many times, divides the cores among
 * the ranks and watches them. To be called before any thread is started. */
#ifndef COMM_LAUNCHER_H
#define COMM_LAUNCHER_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"

struct place;

struct launcher_settings {
	int32_t ranks;
	const char *folder;      /* run folder: each rank's log is kept in folder/logs/rank-<n>.log */
	double watchdog_seconds; /* 0: WATCHDOG_SECONDS */
	int64_t max_restarts;    /* how often all ranks are started again when one died or hung */
};

/* Runs all ranks with this process's own arguments, to their end. The first failure is everyone's: the others have 5 s to
 * leave, then they are killed. Its status is returned, ERR_PEER if a rank died or hung. Signals that ask to stop are passed
 * on. With an empty message rank 0 has said all there is to say. The ranks die with this process. */
MUST_USE enum status launcher_run(const struct launcher_settings *settings);

/* A rank's side: its log. Rank 0 also writes to folder/logs/rank-0.log what it prints; of others started by mpirun and the
 * like, standard error goes to their log (launched ranks have it so from the beginning). */
MUST_USE enum status launcher_log(const struct place *place, const char *folder);

#endif
