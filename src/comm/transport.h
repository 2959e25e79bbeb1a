/* The transports, which are tables of functions, and the thread that carries out large operations in order. */
#ifndef COMM_TRANSPORT_H
#define COMM_TRANSPORT_H

#include <pthread.h>
#include "comm/place.h"
#include "comm/segment.h"

enum { OPERATION_REDUCE_SCATTER = 1, OPERATION_ALL_GATHER, OPERATION_ALL_REDUCE, OPERATION_CALL };

/* An entry of the queue. */
struct operation {
	int32_t kind;
	enum comm_type type, wire;
	void *data;
	int64_t count;
	const struct comm_piece *pieces; /* of a gather on GPUs */
	int64_t piece_count;
	int64_t *flags; /* OPERATION_ALL_REDUCE: the least of every rank's; `count` of them beside a sum at `data` */
	enum status (*call)(struct comm *comm, void *context); /* OPERATION_CALL */
	void *context;
	bool always; /* run even after a failure */
};

struct transport {
	/* Small messages, on the caller's thread: rank r's contribution lies at r * bytes of `out`. At most
	 * SEGMENT_SMALL_BYTES. */
	enum status (*gather)(struct comm *comm, const void *data, size_t bytes, void *out);
	enum status (*broadcast)(struct comm *comm, void *data, size_t bytes, int32_t root);
	enum status (*allocate)(struct comm *comm, void **out, size_t bytes, const char *what);
	void (*release)(struct comm *comm, void *memory);
	/* Carries out an entry of the queue, on the queue's thread. */
	enum status (*perform)(struct comm *comm, const struct operation *operation);
	/* Called on the queue's thread several times a second while it is idle. May be NULL. */
	enum status (*idle)(struct comm *comm);
	/* This rank has failed and cannot continue: tells the others why. */
	void (*fail)(struct comm *comm, const struct error *error);
	void (*section)(struct comm *comm, const char *section, int64_t step);
	void (*alive)(struct comm *comm); /* still in its section, and not hanging */
	void (*leave)(struct comm *comm); /* called before the queue ends; may be NULL */
	void (*close)(struct comm *comm);
};

#define QUEUE_LENGTH 256

struct queue {
	pthread_t thread;
	bool started, quit;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct operation entries[QUEUE_LENGTH]; /* ticket t is at t % QUEUE_LENGTH */
	comm_ticket begun, done;                /* the newest ticket given out; the newest one done */
	struct error error;                     /* the first */
	double busy, exposed;                   /* seconds */
};

struct comm {
	const struct transport *transport;
	struct comm_place place;
	char description[128];
	struct segment *segment; /* the transport's: who is there, and what failed; NULL: a single rank */
	int64_t step;            /* of this rank's current section */
	struct error agreed;     /* the newest error from comm_agree_status, which says whose it is */
	struct queue queue;
	const struct device_transport *device; /* comm/device.h; NULL: large ranges are in host memory */
	void *device_own;
	void *own; /* the transport's own state */
};

MUST_USE enum status queue_open(struct comm *comm);
comm_ticket queue_push(struct comm *comm, const struct operation *operation);
MUST_USE enum status queue_wait(struct comm *comm, comm_ticket ticket);
void queue_seconds(struct comm *comm, double *out_busy, double *out_exposed); /* 0 if the queue was never opened */
/* Returns OK or the first error so far, without waiting. */
MUST_USE enum status queue_check(struct comm *comm);
void queue_close(struct comm *comm); /* completes what was started first */

/* Both set transport and description; shared_open also sets segment and own. */
void alone_open(struct comm *comm);
MUST_USE enum status shared_open(struct comm *comm, const struct place *place, double watchdog_seconds);

/* alone.c: memory for ranges, not mapped by any other process. */
MUST_USE enum status alone_allocate(struct comm *comm, void **out, size_t bytes, const char *what);
void alone_release(struct comm *comm, void *memory);

#endif
