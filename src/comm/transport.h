/* How ranks reach each other: a table of functions for each way, and the thread that does large operations in order. */
#ifndef COMM_TRANSPORT_H
#define COMM_TRANSPORT_H

#include <pthread.h>
#include "comm/place.h"
#include "comm/segment.h"

enum { OPERATION_REDUCE_SCATTER = 1, OPERATION_ALL_GATHER, OPERATION_CALL };

/* An entry of the queue. */
struct operation {
	int32_t kind;
	enum comm_type type, wire;
	void *data;
	int64_t count;
	enum status (*call)(struct comm *comm, void *context); /* OPERATION_CALL */
	void *context;
	bool always; /* also after a failure */
};

struct transport {
	/* Small messages, from the thread of the caller: what rank r gave lies at r * bytes of `out`. At most
	 * SEGMENT_SMALL_BYTES. */
	enum status (*gather)(struct comm *comm, const void *data, size_t bytes, void *out);
	enum status (*broadcast)(struct comm *comm, void *data, size_t bytes, int32_t root);
	enum status (*allocate)(struct comm *comm, void **out, size_t bytes, const char *what);
	void (*release)(struct comm *comm, void *memory);
	/* An entry of the queue, from its thread. */
	enum status (*perform)(struct comm *comm, const struct operation *operation);
	/* From the queue's thread, some times a second while there is nothing to do. May be NULL. */
	enum status (*idle)(struct comm *comm);
	/* This rank has failed and cannot continue: tell the others why. */
	void (*fail)(struct comm *comm, const struct error *error);
	void (*section)(struct comm *comm, const char *section, int64_t step);
	void (*alive)(struct comm *comm); /* still in its section, but not hanging */
	void (*leave)(struct comm *comm); /* before the queue ends; may be NULL */
	void (*close)(struct comm *comm);
};

#define QUEUE_LENGTH 256

struct queue {
	pthread_t thread;
	bool started, quit;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct operation entries[QUEUE_LENGTH]; /* ticket t lies at t % QUEUE_LENGTH */
	comm_ticket begun, done;                /* tickets given out; done */
	struct error error;                     /* the first */
	double busy, exposed;                   /* seconds */
};

struct comm {
	const struct transport *transport;
	struct comm_place place;
	char description[128];
	struct segment *segment; /* of the transport: who is there and what failed; NULL: alone */
	int64_t step;            /* of the section this rank is in */
	struct error agreed;     /* the last that all know by comm_agree_status, which has said whose it is */
	struct queue queue;
	const struct device_transport *device; /* comm/device.h; NULL: large ranges are in host memory */
	void *device_own;
	void *own; /* of the transport */
};

MUST_USE enum status queue_open(struct comm *comm);
comm_ticket queue_push(struct comm *comm, const struct operation *operation);
MUST_USE enum status queue_wait(struct comm *comm, comm_ticket ticket);
void queue_seconds(struct comm *comm, double *out_busy, double *out_exposed); /* 0 where it was never opened */
/* OK, or the first error so far, without waiting. */
MUST_USE enum status queue_check(struct comm *comm);
void queue_close(struct comm *comm); /* what was begun is done first */

/* Each sets transport, description, segment and own. */
void alone_open(struct comm *comm);
MUST_USE enum status shared_open(struct comm *comm, const struct place *place, double watchdog_seconds);

#endif
