/* Ranks that send each other messages: what MPI and TCP have in common. A messenger moves bytes; messages.c builds sums,
 * gathers, signs of life, and failures on that. Everything here runs on the queue's thread. */
#ifndef COMM_MESSAGES_H
#define COMM_MESSAGES_H

#include "comm/mpi_module.h"
#include "comm/transport.h"
#include "comm/watchdog.h"

enum note_kind { NOTE_BEAT = 1, NOTE_FAILURE, NOTE_LEAVE };

/* Short notes in addition to the messages. */
struct note {
	int32_t kind, pid, rank; /* `rank`: the one that a failure is about */
	uint32_t waiting;
	int64_t step, age, limit; /* of the section; age and limit in ns */
	char section[SECTION_BYTES], host[64];
	struct error error;
};

struct messages {
	struct comm *comm;
	const struct messenger *messenger;
	void *own;                 /* the messenger's own state */
	const struct place *place; /* valid only while the messenger opens */
	/* What this rank knows about all ranks: a segment of its own, kept up to date from their notes. */
	struct segment table;
	struct watchdog *watchdog;
	struct watcher watcher;
	int64_t ticked, reported, limit; /* ns */
	bool failure_told, unsound_said;
	int32_t lost;                     /* the messenger has lost its connection to this rank; -1: to none */
	int64_t *left;                    /* [size] when each rank announced that it leaves; 0: it has not */
	struct message *sends, *receives; /* [size] */
	unsigned char *room, *incoming;   /* buffers for outgoing and incoming numbers */
};

struct messenger {
	enum status (*open)(struct messages *messages);
	/* start() begins to send and receive; progress() continues, waiting briefly if it must, and reports when everything is
	 * done. The memory that `sends` and `receives` point to must stay unchanged until then. */
	enum status (*start)(struct messages *messages, const struct message *sends, const struct message *receives);
	enum status (*progress)(struct messages *messages, bool *done);
	/* After a failure: gives up what is under way. May be NULL. */
	void (*abandon)(struct messages *messages);
	/* Neither of these two waits. A note that cannot be sent is lost. */
	void (*tell)(struct messages *messages, int32_t rank, const struct note *note);
	bool (*hear)(struct messages *messages, int32_t *from, struct note *note);
	/* `orderly`: all ranks close, none because of a failure. */
	void (*close)(struct messages *messages, bool orderly);
};

MUST_USE enum status messages_open(struct comm *comm, const struct place *place, double watchdog_seconds,
				   const struct messenger *messenger);

MUST_USE enum status mpi_open(struct comm *comm, const struct place *place, double watchdog_seconds);
MUST_USE enum status tcp_open(struct comm *comm, const struct place *place, double watchdog_seconds);
/* Describes the library that ranks would meet through ("Open MPI v4.1.4"). ERR_RESOURCE: this machine has no MPI, or there is
 * no module for it. */
MUST_USE enum status mpi_describe(char *out, size_t size);

#endif
