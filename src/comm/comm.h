/* Ranks, and what they do together.
 *
 * A rank is a process with a model of its own. Every function below marked [all] is collective: all ranks call it, in the
 * same order, with the same sizes. Sums are taken in the order of the ranks, so a fixed number of ranks gives the same
 * bits again, and all ranks get the same bits. A run of one rank has a comm, too (all is then a copy or nothing): nothing
 * above this folder asks how many there are before it calls.
 *
 *   alone    one rank
 *   shared   ranks of one machine, through memory they share
 *   tcp      ranks on CPUs of many machines, over connections of their own
 *   mpi      the same through MPI
 *   nccl     large ranges of ranks on GPUs (CUDA=1); small things take one of the other ways
 *
 * A failing peer is ERR_PEER in every other rank, with its number, host, section and reason; nothing here waits longer
 * than the watchdog's limit. Ranks that disagree are ERR_STATE.
 */
#ifndef COMM_COMM_H
#define COMM_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "base/library_list.h"

struct comm;

/* Types of large ranges. */
enum comm_type { COMM_F32, COMM_F64, COMM_BF16, COMM_F16 };

/* Where this process stands among the ranks: from the launcher, MPI or the environment (comm/place.h). */
struct comm_place {
	int32_t rank, size;             /* of all */
	int32_t local_rank, local_size; /* of this machine */
	char host[64];
};

struct place; /* comm/place.h: found by place_find() */

struct comm_settings {
	const struct place *place; /* NULL: alone */
	double watchdog_seconds;   /* the least a section may take before its rank counts as hung; 0: 60 */
};
/* MPI, and NCCL in a build with CUDA; loads them. */
void comm_libraries(struct library_list *list);
/* Takes its place among the ranks; also checks that all run the same program (ERR_STATE). [all] */
MUST_USE enum status comm_open(struct comm **out, const struct comm_settings *settings);

const struct comm_place *comm_place(const struct comm *comm);
/* "shared memory", "MPI (Open MPI 4.1.4)", ... for the settings table. */
const char *comm_description(const struct comm *comm);
void comm_close(struct comm *comm); /* NULL is fine */

/* Memory that the large operations below are fastest on (shared: peers read it where it lies). Zeroed. [all] */
MUST_USE enum status comm_allocate(struct comm *comm, void **out, size_t bytes, const char *what);
void comm_release(struct comm *comm, void *memory);

/* ---- Small things: host memory, returns when done ---- */

MUST_USE enum status comm_barrier(struct comm *comm);                                           /* [all] */
MUST_USE enum status comm_sum(struct comm *comm, double *values, int64_t count);                /* [all] */
MUST_USE enum status comm_max(struct comm *comm, double *values, int64_t count);                /* [all] */
MUST_USE enum status comm_broadcast(struct comm *comm, void *data, size_t bytes, int32_t root); /* [all] */
/* out has size * bytes: what rank r gave lies at r * bytes. [all] */
MUST_USE enum status comm_gather(struct comm *comm, const void *data, size_t bytes, void *out);
/* Every rank must have the same text, else ERR_STATE names the first rank that differs, and both texts. [all] */
MUST_USE enum status comm_agree(struct comm *comm, const char *what, const char *text);
/* One rank's failure becomes everyone's: each gives its own status (its error_last() if it failed); all return the first
 * failing rank's, with its message, or OK. STOPPED counts as failing least. [all] */
MUST_USE enum status comm_agree_status(struct comm *comm, enum status own);

/* This rank cannot continue, for the reason in its error_last(): others that wait for it fail with ERR_PEER and that reason. To
 * be called before comm_close with what the rank ends with; OK, STOPPED, a NULL comm and what all know already do no harm. What a
 * machine lacks (ERR_RESOURCE) has this rank's number and host in front from then on, here too. */
void comm_fail(struct comm *comm, enum status status);

/* ---- Large ranges: begun here, done in order by a thread or a stream of their own ---- */

/* A range of `count` elements lying at `data` in every rank. Rank r's share is the elements [comm_share(count, r),
 * comm_share(count, r + 1)): as many for each, in multiples of 64, and what is left over (less than 64 * size) is the last
 * rank's. */
int64_t comm_share(const struct comm *comm, int64_t count, int32_t rank);

/* A place in the queue; 0 is always done. */
typedef int64_t comm_ticket;

/* The sum over ranks of an F32 or F64 range, carried as `wire` (the range's own type, or BF16 or F16: each rank's share is
 * rounded to it before it is summed in the range's type). Afterwards rank r's share of `data` has the sum; the rest of it
 * has no defined content. [all] */
comm_ticket comm_reduce_scatter(struct comm *comm, void *data, int64_t count, enum comm_type type, enum comm_type wire);
/* Every rank's share goes to all. [all] */
comm_ticket comm_all_gather(struct comm *comm, void *data, int64_t count, enum comm_type type);
/* Everything up to `ticket` is done for what the caller does next: on CPUs when it returns, on GPUs for what the back end is
 * given from then on. The first error of the queue. */
MUST_USE enum status comm_wait(struct comm *comm, comm_ticket ticket);
/* Returns when all that was begun is done, on GPUs too. To be called before the host waits for a back end that waits for
 * other ranks: ERR_PEER if one of them has failed, for which the device itself would wait without end. */
MUST_USE enum status comm_settle(struct comm *comm);

/* For ranks on GPUs: what the back end lends them. */
struct comm_device {
	void *stream; /* of CUDA: its work */
	/* Queues on `stream` (not the one above) that `count` numbers become another type. */
	enum status (*convert)(void *context, void *stream, void *out, enum comm_type out_type, const void *in,
			       enum comm_type in_type, int64_t count);
	void *context;
	/* ERR_RESOURCE for an error of CUDA that `call` returned, in words. */
	enum status (*explain)(int error, const char *call);
};
/* From now on memory of comm_allocate and large ranges are on this rank's GPU (the thread's current one), and NCCL moves
 * them: a large operation begins after what the back end's stream has been given before it, and comm_wait makes that
 * stream wait, not the host. Sums are taken in NCCL's order, which is the same again for the same ranks on the same
 * machines; those of 16-bit numbers are rounded to 16 bits from rank to rank. [all] */
MUST_USE enum status comm_use_device(struct comm *comm, const struct comm_device *device);

/* Bytes that NCCL takes of each GPU for itself: an allowance, since it depends on the machine's links and NCCL's version. */
#define COMM_DEVICE_ALLOWANCE ((size_t)512 << 20)
/* What comm_allocate takes of a GPU's memory for so many bytes: whole pages of it. */
#define COMM_DEVICE_PAGE ((size_t)2 << 20)

/* Room for ranges of up to `count` numbers that travel as `wire`, before the first of them: nothing is allocated while
 * training. [all] */
MUST_USE enum status comm_reserve(struct comm *comm, int64_t count, enum comm_type wire);

/* Seconds spent in the large operations so far, and seconds of them that comm_wait waited: communication, exposed
 * communication. */
void comm_seconds(struct comm *comm, double *out_busy, double *out_exposed);

/* ---- The watchdog ---- */

/* What this rank is doing from now on ("data", "forward", "reduce", "save", ...) and in which step: named when it hangs.
 * Costs nothing to speak of. */
void comm_section(struct comm *comm, const char *section, int64_t step);
/* Still in that section, and not hanging, though no operation of the comm shows it. */
void comm_alive(struct comm *comm);

#endif
