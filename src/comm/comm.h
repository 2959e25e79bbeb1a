/* Ranks, and the operations they carry out together.
 *
 * A rank is a process with a model of its own. Every function below marked [all] is collective: all ranks call it, in the same
 * order and with the same sizes. Sums are taken in rank order, so a given number of ranks always produces the same bits, and
 * all ranks get the same bits. A run with a single rank has a comm, too (its operations copy or do nothing), so nothing above
 * this folder has to ask how many ranks there are before it calls.
 *
 *   alone    one rank
 *   shared   ranks of one machine, through shared memory
 *   tcp      CPU ranks on several machines, over connections of their own
 *   mpi      the same, over MPI
 *   nccl     large ranges of GPU ranks (CUDA=1); small messages use one of the other transports
 *
 * If a rank fails, all others get ERR_PEER with its number, host, section, and reason; nothing here waits longer than the
 * watchdog's limit. Ranks that disagree get ERR_STATE. */
#ifndef COMM_COMM_H
#define COMM_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "base/library_list.h"

struct comm;

/* Element types of large ranges. */
enum comm_type { COMM_F32, COMM_F64, COMM_BF16, COMM_F16 };

/* This process's place among the ranks, as given by the launcher, MPI, or the environment (comm/place.h). */
struct comm_place {
	int32_t rank, size;             /* among all ranks */
	int32_t local_rank, local_size; /* among the ranks of this machine */
	char host[64];
};

struct place; /* comm/place.h; filled in by place_find() */

struct comm_settings {
	const struct place *place; /* NULL: a single rank */
	double watchdog_seconds;   /* minimum time limit of a section, after which its rank counts as hung; 0: 60 */
};
/* Lists MPI and, in a build with CUDA, NCCL; loads them. */
void comm_libraries(struct library_list *list);
/* Joins the ranks, and checks that they all run the same program (ERR_STATE). [all] */
MUST_USE enum status comm_open(struct comm **out, const struct comm_settings *settings);

const struct comm_place *comm_place(const struct comm *comm);
/* "shared memory", "MPI (Open MPI 4.1.4)", ... for the settings table. */
const char *comm_description(const struct comm *comm);
void comm_close(struct comm *comm); /* NULL is fine */

/* Memory on which the large operations below are fastest (shared: peers read it in place). Zeroed. [all] */
MUST_USE enum status comm_allocate(struct comm *comm, void **out, size_t bytes, const char *what);
void comm_release(struct comm *comm, void *memory);

/* ---- Small messages: host memory; each call returns when it is done ---- */

MUST_USE enum status comm_sum(struct comm *comm, double *values, int64_t count);                /* [all] */
MUST_USE enum status comm_max(struct comm *comm, double *values, int64_t count);                /* [all] */
MUST_USE enum status comm_broadcast(struct comm *comm, void *data, size_t bytes, int32_t root); /* [all] */
/* `out` has size * bytes; rank r's contribution lies at r * bytes. With 0 bytes, a barrier. [all] */
MUST_USE enum status comm_gather(struct comm *comm, const void *data, size_t bytes, void *out);
/* All ranks must have the same text; otherwise ERR_STATE names the first rank that differs from the majority and shows where
 * the texts differ. [all] */
MUST_USE enum status comm_agree(struct comm *comm, const char *what, const char *text);
/* One rank's failure becomes everyone's: each rank passes its own status (with its error_last() if it failed), and all return
 * the status and message of the first failing rank, or OK. A failure takes precedence over STOPPED. [all] */
MUST_USE enum status comm_agree_status(struct comm *comm, enum status own);

/* This rank cannot continue, for the reason in its error_last(): other ranks that wait for it fail with ERR_PEER and that
 * reason. Call it before comm_close with the status this rank ends with; OK, STOPPED, a NULL comm, and a failure that all
 * ranks already know of are harmless. If this machine lacks a resource (ERR_RESOURCE), the message begins with the rank's
 * number and host from then on, in this rank, too. */
void comm_fail(struct comm *comm, enum status status);

/* ---- Large ranges: started here, carried out in order by a separate thread or stream ---- */

/* A range has `count` elements at `data` in every rank. Rank r's share is the elements [comm_share(count, r),
 * comm_share(count, r + 1)). Shares are equal and multiples of 64; the remainder (less than 64 * size) goes to the last rank. */
int64_t comm_share(const struct comm *comm, int64_t count, int32_t rank);

/* A position in the queue; 0 is always done. */
typedef int64_t comm_ticket;

/* Sums an F32 or F64 range over the ranks. It is sent as `wire` (the range's own type, or BF16 or F16): each rank's numbers
 * are rounded to that type and then summed in the range's type. Afterwards rank r's share of `data` holds the sum; the rest of
 * it is undefined. [all] */
comm_ticket comm_reduce_scatter(struct comm *comm, void *data, int64_t count, enum comm_type type, enum comm_type wire);
/* Copies every rank's share to all ranks. [all] */
comm_ticket comm_all_gather(struct comm *comm, void *data, int64_t count, enum comm_type type);
/* Numbers of one rank. */
struct comm_piece {
	float *data;
	int64_t count;
	int32_t rank;
};
/* The same for GPU ranks, which also copies each piece from its rank to all others. `pieces` must live until comm_wait. [all] */
comm_ticket comm_all_gather_with(struct comm *comm, void *data, int64_t count, enum comm_type type,
				 const struct comm_piece *pieces, int64_t piece_count);
/* For GPU ranks (comm_on_device): sums *sum over the ranks, in the same way in all of them, and takes the least of each of
 * `count` flags; both in GPU memory. [all] */
comm_ticket comm_all_reduce(struct comm *comm, double *sum, int64_t *flags, int64_t count);
bool comm_on_device(const struct comm *comm); /* NULL: false */
/* Makes everything up to `ticket` complete for what the caller does next: on CPUs by the time it returns, on GPUs for all work
 * given to the back end from then on. Returns the queue's first error. */
MUST_USE enum status comm_wait(struct comm *comm, comm_ticket ticket);
/* Returns when everything up to `ticket`, or so far (0), is complete, on GPUs, too. Call it before the host waits for a back end
 * that itself waits for other ranks: if one of them has failed, this returns ERR_PEER, whereas the device would wait forever. */
MUST_USE enum status comm_settle(struct comm *comm, comm_ticket ticket);

/* For GPU ranks: what the back end provides. */
struct comm_device {
	void *stream; /* the CUDA stream of the back end's work */
	/* Queues on `stream` (not the one above) the conversion of `count` numbers to another type. */
	enum status (*convert)(void *context, void *stream, void *out, enum comm_type out_type, const void *in,
			       enum comm_type in_type, int64_t count);
	void *context;
	/* ERR_RESOURCE with a description of the CUDA error that `call` returned. */
	enum status (*explain)(int error, const char *call);
};
/* From now on, comm_allocate's memory and large ranges are on this rank's GPU (the calling thread's current device), and NCCL
 * moves them: a large operation starts after the work that the back end's stream was given before it, and comm_wait makes that
 * stream wait, not the host. Sums are taken in NCCL's order, which is the same every time for the same ranks on the same
 * machines; sums of 16-bit numbers are rounded to 16 bits at each rank they pass through. [all] */
MUST_USE enum status comm_use_device(struct comm *comm, const struct comm_device *device);

/* Bytes of each GPU that NCCL uses for itself: an allowance, since the amount depends on the machine's links and NCCL's
 * version. */
#define COMM_DEVICE_ALLOWANCE ((size_t)512 << 20)
/* comm_allocate takes GPU memory in whole pages of this size. */
#define COMM_DEVICE_PAGE ((size_t)2 << 20)

/* Reserves room for ranges of up to `count` numbers sent as `wire`. Call it before the first of them, so that nothing is
 * allocated during training. [all] */
MUST_USE enum status comm_reserve(struct comm *comm, int64_t count, enum comm_type wire);

/* Seconds spent in large operations so far (communication), and the part of them that comm_wait spent waiting (exposed
 * communication). */
void comm_seconds(struct comm *comm, double *out_busy, double *out_exposed);

/* ---- The watchdog ---- */

/* What this rank does from now on ("data", "forward", "reduce", "save", ...) and in which step: reported if it hangs. Costs
 * next to nothing. */
void comm_section(struct comm *comm, const char *section, int64_t step);
/* This rank is still in its section and does not hang, even if it calls no operation of the comm. */
void comm_alive(struct comm *comm);

#endif
