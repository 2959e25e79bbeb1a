/* What the ranks of a run do together besides computing: one's failure ends all, their weights are compared, their times
 * are measured. `comm` NULL stands for one rank alone, for which nothing here does anything. */
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

/* comm_settle(), before the host waits for a back end that may wait for other ranks. */
static inline enum status ranks_settle(struct comm *comm)
{
	return ranks_count(comm) > 1 ? comm_settle(comm) : OK;
}

/* What this rank is doing from now on, for the watchdog. */
static inline void ranks_section(struct comm *comm, const char *section, int64_t step)
{
	if (ranks_count(comm) > 1)
		comm_section(comm, section, step);
}

/* Still in that section, and not hanging. */
static inline void ranks_alive(struct comm *comm)
{
	if (ranks_count(comm) > 1)
		comm_alive(comm);
}

/* From now on large ranges are in the device's memory, if operations of `be` are queued: reductions and gathers take their
 * turn among them, and the host waits for neither. [all] */
MUST_USE enum status ranks_use_device(struct comm *comm, struct backend *be);

/* Compares the masters of all ranks: ERR_PEER names those that differ from the most. A flipped bit, or a gather that went
 * wrong, would otherwise go unnoticed. Call it where all have had the same update, before the next. [all] */
MUST_USE enum status ranks_compare_weights(struct comm *comm, const struct model *model, int64_t step);

/* The clock, and the seconds that this rank has waited for communication so far. */
struct moment {
	double seconds, exposed;
};

#endif
