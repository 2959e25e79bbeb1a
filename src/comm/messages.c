/* Builds sums, gathers, signs of life, and failures from messages between ranks. */
#include "comm/messages.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "comm/transport.h"
#include "comm/wire.h"

#define SECOND ((int64_t)1000000000)
#define TICK (SECOND / 20)
#define ROOM_BYTES ((int64_t)4 << 20)    /* buffer for numbers under way, in each direction */
#define GATHER_BYTES ((int64_t)16 << 20) /* part of a share sent to each rank at a time */
#define GONE_SECONDS 2                   /* messages from a rank that has left may still arrive for this long */

static struct segment_rank *entry(struct messages *messages, int32_t rank)
{
	return &messages->table.header->ranks[rank];
}

static void tell_all(struct messages *messages, const struct note *note)
{
	for (int32_t rank = 0; rank < messages->comm->place.size; rank++)
		if (rank != messages->comm->place.rank)
			messages->messenger->tell(messages, rank, note);
}

static void tell_failure(struct messages *messages)
{
	struct segment_header *header = messages->table.header;
	if (messages->failure_told || atomic_load(&header->failed) != 2)
		return;
	messages->failure_told = true;
	struct note note = {.kind = NOTE_FAILURE, .rank = header->failed_rank, .error = header->failure};
	tell_all(messages, &note);
}

/* Sends a sign of life to the rank that watches this one. */
static void tell_beat(struct messages *messages, int64_t now)
{
	const struct segment_rank *own = entry(messages, messages->comm->place.rank);
	struct note note = {.kind = NOTE_BEAT,
			    .pid = atomic_load(&own->pid),
			    .waiting = atomic_load(&own->waiting),
			    .step = atomic_load(&own->step),
			    .age = now - atomic_load(&own->since),
			    .limit = atomic_load(&own->limit)};
	snprintf(note.section, sizeof note.section, "%s", SECTION_OF(own));
	snprintf(note.host, sizeof note.host, "%s", messages->comm->place.host);
	messages->messenger->tell(messages, (messages->comm->place.rank + 1) % messages->comm->place.size, &note);
	messages->reported = now;
}

/* A note comes from a process on another machine, so it is checked: its strings must be terminated, and its times and statuses
 * must be possible values. */
static bool note_is_sound(struct note *note, int32_t size, int64_t now)
{
	const int64_t longest = INT64_MAX / 4;
	note->section[sizeof note->section - 1] = '\0';
	note->host[sizeof note->host - 1] = '\0';
	note->error.message[sizeof note->error.message - 1] = '\0';
	note->error.hint[sizeof note->error.hint - 1] = '\0';
	bool news = note->kind == NOTE_FAILURE;
	if (note->kind < NOTE_BEAT || note->kind > NOTE_LEAVE || note->age < 0 || note->age > longest || note->limit < 0 ||
	    note->limit > longest || note->step < 0 || note->pid < 0 || note->rank < (news ? -1 : 0) || note->rank >= size)
		return false;
	if (news && (note->error.status <= OK || note->error.status > STOPPED))
		return false;
	/* This machine's clock may have started after the section did. */
	note->age = note->age < now ? note->age : now;
	return true;
}

/* Escapes text from another process, which is going to be displayed. */
static void escape(char *text, size_t size)
{
	char copy[sizeof(((struct error *)0)->message)];
	BUG_IF(size > sizeof copy);
	memcpy(copy, text, size);
	text_escape(text, size, copy, false);
}

static void take_note(struct messages *messages, int32_t from, struct note *note, int64_t now)
{
	struct segment_rank *other = entry(messages, from);
	if (!note_is_sound(note, messages->comm->place.size, now)) {
		if (!messages->unsound_said)
			log_warning("rank %d sent a status message that makes no sense; ignored", from);
		messages->unsound_said = true;
		return;
	}
	escape(note->section, sizeof note->section);
	escape(note->host, sizeof note->host);
	escape(note->error.message, sizeof note->error.message);
	escape(note->error.hint, sizeof note->error.hint);
	switch (note->kind) {
	case NOTE_BEAT:
		atomic_store(&other->beat, now);
		atomic_store(&other->since, now - note->age);
		atomic_store(&other->limit, note->limit);
		atomic_store(&other->step, note->step);
		atomic_store(&other->waiting, note->waiting);
		segment_set_section(other, note->section);
		memcpy(other->host, note->host, sizeof other->host);
		atomic_store(&other->pid, note->pid);
		break;
	case NOTE_FAILURE:
		segment_fail(&messages->table, note->rank, &note->error);
		messages->failure_told = true; /* by the rank it comes from */
		break;
	case NOTE_LEAVE: messages->left[from] = now; break;
	}
}

/* At intervals: exchanges signs of life and checks the rank before this one. */
static enum status tick(struct messages *messages)
{
	int64_t now = segment_now();
	int32_t size = messages->comm->place.size, before = (messages->comm->place.rank + size - 1) % size, from;
	struct note note;
	struct error error;
	if (now - messages->ticked < TICK)
		return OK;
	messages->ticked = now;
	while (messages->messenger->hear(messages, &from, &note))
		take_note(messages, from, &note, now);
	if (now - messages->reported > (messages->limit / 8 < SECOND / 2 ? messages->limit / 8 : SECOND / 2))
		tell_beat(messages, now);
	if (messages->left[before] == 0 && watcher_look_at(&messages->watcher, &messages->table, before, &error))
		segment_fail(&messages->table, before, &error);
	tell_failure(messages);
	TRY(segment_check(&messages->table));
	/* Even if this rank waits for nothing: it may compute for a long time. */
	return messages->lost < 0 ? OK : error_set(ERR_PEER, "the connection to rank %d has ended", messages->lost);
}

/* Fails if a rank that is waited for will not send anymore. */
static enum status check_left(struct messages *messages, int64_t started)
{
	int64_t now = segment_now();
	const struct segment_rank *own = entry(messages, messages->comm->place.rank);
	struct error error = {.status = ERR_PEER};
	for (int32_t rank = 0; rank < messages->comm->place.size; rank++) {
		if (messages->left[rank] == 0 || now - messages->left[rank] < GONE_SECONDS * SECOND ||
		    now - started < GONE_SECONDS * SECOND)
			continue;
		snprintf(error.message, sizeof error.message, "rank %d on %s left while rank %d was in '%s' of step %lld", rank,
			 entry(messages, rank)->host, messages->comm->place.rank, SECTION_OF(own),
			 (long long)atomic_load(&own->step));
		segment_fail(&messages->table, rank, &error);
		return segment_check(&messages->table);
	}
	/* Before the first step, other ranks may read texts for hours. */
	if (atomic_load(&own->step) == 0 || now - started < 20 * messages->limit)
		return OK;
	snprintf(error.message, sizeof error.message, "ranks wait for each other: rank %d on %s in '%s' of step %lld",
		 messages->comm->place.rank, messages->comm->place.host, SECTION_OF(own), (long long)atomic_load(&own->step));
	segment_fail(&messages->table, messages->comm->place.rank, &error);
	tell_failure(messages);
	return segment_check(&messages->table);
}

/* A rank that is gone may have said why: its note may arrive a moment after its connection ends. */
static enum status explain_loss(struct messages *messages)
{
	const struct comm_place *place = &messages->comm->place;
	const struct segment_rank *own = entry(messages, place->rank), *other = entry(messages, messages->lost);
	int32_t from;
	struct note note;
	for (int64_t end = segment_now() + SECOND / 5; segment_now() < end; clock_pause(0.01))
		while (messages->messenger->hear(messages, &from, &note))
			take_note(messages, from, &note, segment_now());
	TRY(segment_check(&messages->table));
	return error_hinted(
		error_set(ERR_PEER, "rank %d on %s %s while rank %d was in '%s' of step %lld", messages->lost, other->host,
			  messages->left[messages->lost] ? "left" : "has closed its connection (it died, or its machine did)",
			  place->rank, SECTION_OF(own), (long long)atomic_load(&own->step)),
		"the last checkpoint is intact: run the same command again to resume");
}

/* Sends and receives the messages in the lists. */
static enum status exchange(struct messages *messages)
{
	struct segment_rank *own = entry(messages, messages->comm->place.rank);
	bool done = false;
	int64_t started = segment_now();
	/* Reports where this rank is, in case it hangs in this exchange. */
	if (started - messages->reported > SECOND / 50)
		tell_beat(messages, started);
	TRY(messages->messenger->start(messages, messages->sends, messages->receives));
	atomic_fetch_add(&own->waiting, 1);
	enum status status = OK;
	while (status == OK) {
		status = messages->messenger->progress(messages, &done);
		if (status != OK || done)
			break;
		status = tick(messages);
		if (status == OK)
			status = check_left(messages, started);
	}
	atomic_fetch_sub(&own->waiting, 1);
	if (status == OK)
		return OK;
	if (messages->lost >= 0)
		status = explain_loss(messages);
	struct error error = *error_last();
	segment_fail(&messages->table, -1, &error);
	tell_failure(messages);
	if (messages->messenger->abandon)
		messages->messenger->abandon(messages);
	return error_restore(&error);
}

static void clear_lists(struct messages *messages)
{
	memset(messages->sends, 0, (size_t)messages->comm->place.size * sizeof *messages->sends);
	memset(messages->receives, 0, (size_t)messages->comm->place.size * sizeof *messages->receives);
}

struct call {
	struct messages *messages;
	const void *data;
	void *out;
	size_t bytes;
	int32_t root;
};

static enum status do_gather(struct comm *comm, void *context)
{
	const struct call *call = context;
	struct messages *messages = comm->own;
	unsigned char nothing = 0, *out = call->out;
	clear_lists(messages);
	for (int32_t rank = 0; rank < comm->place.size; rank++) {
		if (rank == comm->place.rank)
			continue;
		/* A meeting without data still needs a byte. */
		messages->sends[rank] =
			(struct message){call->bytes ? (void *)(uintptr_t)call->data : &nothing, call->bytes ? call->bytes : 1};
		messages->receives[rank] =
			(struct message){call->bytes ? out + (size_t)rank * call->bytes : messages->incoming + rank,
					 call->bytes ? call->bytes : 1};
	}
	if (call->bytes > 0)
		memmove(out + (size_t)comm->place.rank * call->bytes, call->data, call->bytes);
	return exchange(messages);
}

static enum status do_broadcast(struct comm *comm, void *context)
{
	const struct call *call = context;
	struct messages *messages = comm->own;
	clear_lists(messages);
	if (comm->place.rank != call->root)
		messages->receives[call->root] = (struct message){call->out, call->bytes};
	for (int32_t rank = 0; comm->place.rank == call->root && rank < comm->place.size; rank++)
		if (rank != call->root)
			messages->sends[rank] = (struct message){call->out, call->bytes};
	return exchange(messages);
}

static enum status call_and_wait(struct comm *comm, enum status (*function)(struct comm *, void *), struct call *call)
{
	return queue_wait(comm, queue_push(comm, &(struct operation){.kind = OPERATION_CALL, .call = function, .context = call}));
}

static enum status messages_gather(struct comm *comm, const void *data, size_t bytes, void *out)
{
	return call_and_wait(comm, do_gather, &(struct call){.data = data, .out = out, .bytes = bytes});
}

static enum status messages_broadcast(struct comm *comm, void *data, size_t bytes, int32_t root)
{
	return call_and_wait(comm, do_broadcast, &(struct call){.out = data, .bytes = bytes, .root = root});
}

/* The last rank's, which has the remainder. */
static int64_t longest_share(const struct comm *comm, int64_t count)
{
	return count - comm_share(comm, count, comm->place.size - 1);
}

/* Every rank sends every other rank its share, and sums its own share in rank order: the bits do not depend on which message
 * arrives first. */
static enum status reduce_scatter(struct comm *comm, const struct operation *operation)
{
	struct messages *messages = comm->own;
	int32_t ranks = comm->place.size, own = comm->place.rank;
	int64_t size = (int64_t)comm_type_bytes(operation->type), wire = (int64_t)comm_type_bytes(operation->wire);
	int64_t piece = ROOM_BYTES / wire / ranks / 64 * 64;
	int64_t longest = longest_share(comm, operation->count);
	unsigned char *data = operation->data;
	double sum[4096];
	for (int64_t done = 0; done < longest; done += piece) {
		int64_t mine = 0;
		clear_lists(messages);
		for (int32_t rank = 0; rank < ranks; rank++) {
			int64_t first = comm_share(comm, operation->count, rank) + done;
			int64_t count = comm_share(comm, operation->count, rank + 1) - first;
			count = count < 0 ? 0 : count > piece ? piece : count;
			/* This rank's own numbers are rounded, too. */
			unsigned char *to = rank == own ? messages->incoming : messages->room;
			wire_pack(to + rank * piece * wire, data + first * size, count, operation->type, operation->wire);
			if (rank == own)
				mine = count;
			else
				messages->sends[rank] =
					(struct message){messages->room + rank * piece * wire, (size_t)(count * wire)};
		}
		for (int32_t rank = 0; rank < ranks; rank++)
			if (rank != own)
				messages->receives[rank] =
					(struct message){messages->incoming + rank * piece * wire, (size_t)(mine * wire)};
		TRY(exchange(messages));
		unsigned char *out = data + (comm_share(comm, operation->count, own) + done) * size;
		for (int64_t at = 0; at < mine; at += 4096) {
			int64_t now = mine - at < 4096 ? mine - at : 4096;
			for (int32_t rank = 0; rank < ranks; rank++)
				wire_add_packed(sum, messages->incoming + (rank * piece + at) * wire, now, operation->type,
						operation->wire, rank == 0);
			memcpy(out + at * size, sum, (size_t)(now * size));
		}
	}
	return OK;
}

static enum status all_gather(struct comm *comm, const struct operation *operation)
{
	struct messages *messages = comm->own;
	int64_t size = (int64_t)comm_type_bytes(operation->type), piece = GATHER_BYTES / size;
	int64_t longest = longest_share(comm, operation->count);
	unsigned char *data = operation->data;
	for (int64_t done = 0; done < longest; done += piece) {
		clear_lists(messages);
		for (int32_t rank = 0; rank < comm->place.size; rank++) {
			int64_t first = comm_share(comm, operation->count, rank) + done;
			int64_t count = comm_share(comm, operation->count, rank + 1) - first;
			count = count < 0 ? 0 : count > piece ? piece : count;
			struct message part = {data + first * size, (size_t)(count * size)};
			if (rank != comm->place.rank)
				messages->receives[rank] = part;
			for (int32_t other = 0; rank == comm->place.rank && other < comm->place.size; other++)
				if (other != rank)
					messages->sends[other] = part;
		}
		TRY(exchange(messages));
	}
	return OK;
}

static enum status messages_run(struct comm *comm, const struct operation *operation)
{
	if (operation->kind == OPERATION_CALL)
		return operation->call(comm, operation->context);
	struct messages *messages = comm->own;
	rank_fault(comm->place.rank, "reduction", atomic_load(&entry(messages, comm->place.rank)->step));
	return operation->kind == OPERATION_REDUCE_SCATTER ? reduce_scatter(comm, operation) : all_gather(comm, operation);
}

static enum status messages_idle(struct comm *comm)
{
	struct messages *messages = comm->own;
	enum status status = tick(messages);
	if (status != OK && messages->lost >= 0) {
		status = explain_loss(messages);
		segment_fail(&messages->table, -1, error_last());
		tell_failure(messages);
	}
	return status;
}

static void messages_section(struct comm *comm, const char *section, int64_t step)
{
	struct messages *messages = comm->own;
	watchdog_section(messages->watchdog, section, step);
}

static void messages_alive(struct comm *comm)
{
	struct messages *messages = comm->own;
	watchdog_alive(messages->watchdog);
}

/* The notes must be sent before this process ends. */
static enum status do_fail(struct comm *comm, void *context)
{
	struct messages *messages = comm->own;
	struct note note;
	int32_t from;
	(void)context;
	tell_failure(messages);
	for (int64_t end = segment_now() + SECOND / 4; segment_now() < end; clock_pause(0.01))
		while (messages->messenger->hear(messages, &from, &note))
			continue;
	return OK;
}

static void messages_fail(struct comm *comm, const struct error *error)
{
	struct messages *messages = comm->own;
	struct error reported = *error;
	snprintf(reported.message, sizeof reported.message, "rank %d on %s: %.1400s", comm->place.rank, comm->place.host,
		 error->message);
	/* First of all, so that an operation under way ends. */
	if (!segment_fail(&messages->table, comm->place.rank, &reported))
		return;
	struct operation operation = {.kind = OPERATION_CALL, .call = do_fail, .always = true};
	enum status status = queue_wait(comm, queue_push(comm, &operation));
	(void)status; /* the failure has been reported as far as possible */
}

static enum status do_close(struct comm *comm, void *context)
{
	struct messages *messages = comm->own;
	bool failed = atomic_load(&messages->table.header->failed) == 2;
	(void)context;
	if (!failed)
		tell_all(messages, &(struct note){.kind = NOTE_LEAVE});
	messages->messenger->close(messages, !failed);
	return OK;
}

static void release(struct messages *messages)
{
	watchdog_close(messages->watchdog);
	segment_leave(&messages->table);
	free(messages->left);
	free(messages->sends);
	free(messages->receives);
	free(messages->room);
	free(messages->incoming);
	free(messages);
}

static void messages_leave(struct comm *comm)
{
	struct operation operation = {.kind = OPERATION_CALL, .call = do_close, .always = true};
	enum status status = queue_wait(comm, queue_push(comm, &operation));
	(void)status;
}

static void messages_close(struct comm *comm)
{
	release(comm->own);
}

static enum status do_open(struct comm *comm, void *context)
{
	struct messages *messages = comm->own;
	char(*hosts)[64];
	(void)context;
	TRY(messages->messenger->open(messages));
	tell_beat(messages, segment_now());
	TRY(memory_new(&hosts, comm->place.size, sizeof *hosts, "hosts of ranks"));
	enum status status =
		do_gather(comm, &(struct call){.data = comm->place.host, .out = hosts, .bytes = sizeof comm->place.host});
	for (int32_t rank = 0; status == OK && rank < comm->place.size; rank++)
		snprintf(entry(messages, rank)->host, sizeof(entry(messages, rank)->host), "%.*s", (int)sizeof hosts[rank] - 1,
			 hosts[rank]);
	free(hosts);
	return status;
}

static enum status allocate(struct messages *messages)
{
	int32_t size = messages->comm->place.size;
	TRY(memory_new(&messages->left, size, sizeof *messages->left, "messages between ranks"));
	TRY(memory_new(&messages->sends, size, sizeof *messages->sends, "messages between ranks"));
	TRY(memory_new(&messages->receives, size, sizeof *messages->receives, "messages between ranks"));
	TRY(memory_new(&messages->room, ROOM_BYTES, 1, "messages between ranks"));
	return memory_new(&messages->incoming, ROOM_BYTES, 1, "messages between ranks");
}

/* The table is a segment that no other process maps. */
static enum status make_table(struct messages *messages)
{
	struct segment maker;
	const struct comm_place *place = &messages->comm->place;
	TRY(segment_create(&maker, place->size, true));
	int file = fcntl(maker.file, F_DUPFD_CLOEXEC, 0);
	segment_leave(&maker);
	if (file < 0)
		return error_set_errno(ERR_RESOURCE, "no file descriptor for the state that ranks share");
	return segment_join(&messages->table, file, place->rank, place->size);
}

enum status messages_open(struct comm *comm, const struct place *place, double watchdog_seconds,
			  const struct messenger *messenger)
{
	static const struct transport transport = {
		.gather = messages_gather,
		.broadcast = messages_broadcast,
		.allocate = alone_allocate,
		.release = alone_release,
		.perform = messages_run,
		.idle = messages_idle,
		.fail = messages_fail,
		.section = messages_section,
		.alive = messages_alive,
		.leave = messages_leave,
		.close = messages_close,
	};
	struct messages *messages;
	TRY(memory_new(&messages, 1, sizeof *messages, "messages between ranks"));
	*messages = (struct messages){.comm = comm,
				      .messenger = messenger,
				      .place = place,
				      .table = {.file = -1},
				      .lost = -1,
				      .limit = watchdog_nanoseconds(watchdog_seconds),
				      .watcher = {.limit = watchdog_nanoseconds(watchdog_seconds)}};
	enum status status = allocate(messages);
	if (status == OK)
		status = make_table(messages);
	if (status == OK)
		status = watchdog_open(&messages->watchdog, &messages->table, watchdog_seconds);
	if (status != OK) {
		release(messages);
		return status;
	}
	comm->own = messages;
	comm->transport = &transport;
	comm->segment = &messages->table;
	TRY(queue_open(comm));
	return call_and_wait(comm, do_open, NULL);
}
