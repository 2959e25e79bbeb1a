/* Ranks that send each other messages: what MPI and TCP have in common. A messenger moves bytes; sums, gathers, signs of
 * life and failures are made of that in messages.c. Everything here runs in the thread of the queue. */
#ifndef COMM_MESSAGES_H
#define COMM_MESSAGES_H

#include "comm/mpi_module.h"
#include "comm/transport.h"
#include "comm/watchdog.h"

enum note_kind { NOTE_BEAT = 1, NOTE_FAILURE, NOTE_LEAVE };

/* Short notes in addition to the messages. */
struct note {
	int32_t kind, pid, rank; /* the rank that a failure is about */
	uint32_t waiting;
	int64_t step, age, limit; /* of the section: since when, and how long it may take (ns) */
	char section[SECTION_BYTES], host[64];
	struct error error;
};

struct messages {
	struct comm *comm;
	const struct messenger *messenger;
	void *own;                 /* of the messenger */
	const struct place *place; /* while it opens */
	/* What this rank knows of all: a segment of its own, which it keeps up to date from the notes. */
	struct segment table;
	struct watchdog *watchdog;
	struct watcher watcher;
	int64_t ticked, reported, limit; /* ns */
	bool failure_told, unsound_said;
	int32_t lost;                     /* a messenger has lost its connection to this rank; -1: to none */
	int64_t *left;                    /* when a rank said that it leaves; 0: not */
	struct message *sends, *receives; /* [size] */
	unsigned char *room, *incoming;   /* for numbers on their way out, and in */
};

struct messenger {
	enum status (*open)(struct messages *messages);
	/* Begins to send and receive; progress() moves on, waiting a little, and says when all is done. What lies in
	 * `sends` and `receives` stays until then. */
	enum status (*start)(struct messages *messages, const struct message *sends, const struct message *receives);
	enum status (*progress)(struct messages *messages, bool *done);
	/* After a failure: what is on its way is given up. May be NULL. */
	void (*abandon)(struct messages *messages);
	/* Neither waits. A note that cannot be sent is lost. */
	void (*tell)(struct messages *messages, int32_t rank, const struct note *note);
	bool (*hear)(struct messages *messages, int32_t *from, struct note *note);
	/* Orderly: all ranks do so. */
	void (*close)(struct messages *messages, bool orderly);
};

MUST_USE enum status messages_open(struct comm *comm, const struct place *place, double watchdog_seconds,
				   const struct messenger *messenger);

MUST_USE enum status mpi_open(struct comm *comm, const struct place *place, double watchdog_seconds);
MUST_USE enum status tcp_open(struct comm *comm, const struct place *place, double watchdog_seconds);
/* "Open MPI v4.1.4": the library that ranks would meet through. ERR_RESOURCE: there is none on this machine, or no module for
 * it. */
MUST_USE enum status mpi_describe(char *out, size_t size);

#endif
