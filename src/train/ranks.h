/* What the ranks of a run do together besides computing: one rank's failure ends all, their weights are compared, their times
 * are measured. A NULL `comm` stands for a single rank, for which nothing here does anything. */
#ifndef TRAIN_RANKS_H
#define TRAIN_RANKS_H

#include "backend/backend.h"
#include "comm/comm.h"
#include "model/model.h"

static inline int32_t ranks_count(const struct comm *comm)
{
	return comm ? comm_place(comm)->size : 1;
}

static inline bool is_first_rank(const struct comm *comm)
{
	return !comm || comm_place(comm)->rank == 0;
}

/* One rank's failure becomes everyone's. [all] */
static inline enum status ranks_agree(struct comm *comm, enum status own)
{
	return ranks_count(comm) > 1 ? comm_agree_status(comm, own) : own;
}

/* Calls comm_settle(), before the host waits for a back end that may wait for other ranks. */
static inline enum status ranks_settle(struct comm *comm)
{
	return ranks_count(comm) > 1 ? comm_settle(comm, 0) : OK;
}

/* Tells the watchdog what this rank does from now on. */
static inline void ranks_section(struct comm *comm, const char *section, int64_t step)
{
	if (ranks_count(comm) > 1)
		comm_section(comm, section, step);
}

/* This rank is still in its section, and does not hang. */
static inline void ranks_alive(struct comm *comm)
{
	if (ranks_count(comm) > 1)
		comm_alive(comm);
}

/* From now on, large ranges are in device memory if the operations of `be` are queued: reductions and gathers are queued among
 * them, and the host waits for neither. [all] */
MUST_USE enum status ranks_use_device(struct comm *comm, struct backend *be);

/* Compares masters and copies of all ranks: ERR_PEER names the ranks that differ from the majority. A flipped bit, or a gather
 * that went wrong, would otherwise go unnoticed. Call it when all ranks have made the same updates and before the next one. [all]
 */
MUST_USE enum status ranks_compare_weights(struct comm *comm, const struct model *model, int64_t step);

/* Before the first step: ERR_STATE if the ranks begin with different weights, as when each machine has another model in the
 * folder of this name. [all] */
MUST_USE enum status ranks_agree_on_weights(struct comm *comm, const struct model *model);

/* The time, and the seconds that this rank has waited for communication so far. */
struct moment {
	double seconds, exposed;
};

#endif
