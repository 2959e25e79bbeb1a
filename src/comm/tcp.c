/* Messages over TCP, between ranks of several machines without MPI. */
#include "comm/tcp.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "comm/messages.h"

#define WAIT_MILLISECONDS 20

/* A message under way: eight bytes with its length, then the message itself. */
struct transfer {
	uint64_t length;
	size_t done, bytes; /* of length and message together */
	unsigned char *data;
};

/* Notes under way to and from a rank. */
struct news {
	struct note out, in;
	size_t out_done, in_done; /* out_done == sizeof(struct note): nothing to send */
};

struct tcp {
	int *sockets[TCP_KINDS];
	struct transfer *sends, *receives;
	struct news *news;
	struct pollfd *polls;
	bool *gone; /* [size] its connection for notes has ended */
};

static enum status tcp_begin(struct messages *messages)
{
	struct tcp *tcp;
	int32_t size = messages->comm->place.size;
	TRY(memory_new(&tcp, 1, sizeof *tcp, "connections"));
	messages->own = tcp;
	for (int kind = 0; kind < TCP_KINDS; kind++)
		TRY(memory_new(&tcp->sockets[kind], size, sizeof(int), "connections"));
	TRY(memory_new(&tcp->sends, size, sizeof *tcp->sends, "connections"));
	TRY(memory_new(&tcp->receives, size, sizeof *tcp->receives, "connections"));
	TRY(memory_new(&tcp->news, size, sizeof *tcp->news, "connections"));
	TRY(memory_new(&tcp->polls, size, sizeof *tcp->polls, "connections"));
	TRY(memory_new(&tcp->gone, size, sizeof *tcp->gone, "connections"));
	for (int32_t rank = 0; rank < size; rank++)
		tcp->news[rank].out_done = sizeof(struct note);
	snprintf(messages->comm->description, sizeof messages->comm->description, "TCP, rank 0 at %.40s port %d",
		 messages->place->address, messages->place->port);
	return tcp_connect(messages->place, tcp->sockets);
}

static struct transfer transfer_of(const struct message *message)
{
	return (struct transfer){
		.length = message->bytes, .bytes = message->bytes ? message->bytes + sizeof(uint64_t) : 0, .data = message->data};
}

static enum status tcp_start(struct messages *messages, const struct message *sends, const struct message *receives)
{
	struct tcp *tcp = messages->own;
	for (int32_t rank = 0; rank < messages->comm->place.size; rank++) {
		tcp->sends[rank] = transfer_of(&sends[rank]);
		tcp->receives[rank] = transfer_of(&receives[rank]);
	}
	return OK;
}

static enum status lost(struct messages *messages, int32_t rank)
{
	messages->lost = rank;
	return error_set(ERR_PEER, "the connection to rank %d on %s has ended", rank, messages->table.header->ranks[rank].host);
}

/* Sends as much as possible without waiting. */
static enum status send_some(struct messages *messages, int32_t rank)
{
	struct tcp *tcp = messages->own;
	struct transfer *transfer = &tcp->sends[rank];
	while (transfer->done < transfer->bytes) {
		bool is_head = transfer->done < sizeof(uint64_t);
		const unsigned char *from = is_head ? (const unsigned char *)&transfer->length + transfer->done
						    : transfer->data + transfer->done - sizeof(uint64_t);
		size_t left = (is_head ? sizeof(uint64_t) : transfer->bytes) - transfer->done;
		ssize_t sent = send(tcp->sockets[TCP_DATA][rank], from, left, MSG_NOSIGNAL | (is_head ? MSG_MORE : 0));
		if (sent < 0 && (errno == EAGAIN || errno == EINTR))
			return OK;
		if (sent <= 0)
			return lost(messages, rank);
		transfer->done += (size_t)sent;
	}
	return OK;
}

static enum status receive_some(struct messages *messages, int32_t rank)
{
	struct tcp *tcp = messages->own;
	struct transfer *transfer = &tcp->receives[rank];
	uint64_t expected = transfer->bytes - sizeof(uint64_t);
	while (transfer->done < transfer->bytes) {
		bool is_head = transfer->done < sizeof(uint64_t);
		unsigned char *to = is_head ? (unsigned char *)&transfer->length + transfer->done
					    : transfer->data + transfer->done - sizeof(uint64_t);
		size_t left = (is_head ? sizeof(uint64_t) : transfer->bytes) - transfer->done;
		ssize_t got = recv(tcp->sockets[TCP_DATA][rank], to, left, 0);
		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			return OK;
		if (got <= 0)
			return lost(messages, rank);
		transfer->done += (size_t)got;
		if (transfer->done == sizeof(uint64_t) && transfer->length != expected)
			return error_set(ERR_STATE, "ranks are not at the same operation: rank %d sent %llu bytes, not %llu",
					 rank, (unsigned long long)transfer->length, (unsigned long long)expected);
	}
	return OK;
}

static enum status tcp_progress(struct messages *messages, bool *done)
{
	struct tcp *tcp = messages->own;
	int32_t size = messages->comm->place.size, open = 0;
	for (int pass = 0; pass < 2; pass++) {
		open = 0;
		for (int32_t rank = 0; rank < size; rank++) {
			struct transfer *out = &tcp->sends[rank], *in = &tcp->receives[rank];
			if (out->done < out->bytes)
				TRY(send_some(messages, rank));
			if (in->done < in->bytes)
				TRY(receive_some(messages, rank));
			short events = (short)((out->done < out->bytes ? POLLOUT : 0) | (in->done < in->bytes ? POLLIN : 0));
			tcp->polls[rank] = (struct pollfd){.fd = events ? tcp->sockets[TCP_DATA][rank] : -1, .events = events};
			open += events != 0;
		}
		*done = open == 0;
		if (*done || pass == 1)
			return OK;
		poll(tcp->polls, (nfds_t)size, WAIT_MILLISECONDS);
	}
	return OK;
}

static void push_news(struct tcp *tcp, int32_t rank)
{
	struct news *news = &tcp->news[rank];
	while (news->out_done < sizeof news->out) {
		ssize_t sent = send(tcp->sockets[TCP_NEWS][rank], (const char *)&news->out + news->out_done,
				    sizeof news->out - news->out_done, MSG_NOSIGNAL);
		if (sent <= 0)
			return; /* retried later; if the connection has ended, tcp_hear() notices */
		news->out_done += (size_t)sent;
	}
}

static void tcp_tell(struct messages *messages, int32_t rank, const struct note *note)
{
	struct tcp *tcp = messages->own;
	struct news *news = &tcp->news[rank];
	push_news(tcp, rank);
	/* A note that has not begun to leave is replaced: the new one says what is true now. One that has left in part keeps
	 * its place, and the new one is lost. */
	if (news->out_done > 0 && news->out_done < sizeof *note)
		return;
	news->out = *note;
	news->out_done = 0;
	push_news(tcp, rank);
}

static bool tcp_hear(struct messages *messages, int32_t *from, struct note *note)
{
	struct tcp *tcp = messages->own;
	for (int32_t rank = 0; rank < messages->comm->place.size; rank++) {
		struct news *news = &tcp->news[rank];
		if (rank == messages->comm->place.rank || tcp->gone[rank])
			continue;
		push_news(tcp, rank);
		ssize_t got =
			recv(tcp->sockets[TCP_NEWS][rank], (char *)&news->in + news->in_done, sizeof news->in - news->in_done, 0);
		*from = rank;
		if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
			tcp->gone[rank] = true;
			if (!messages->left[rank])
				messages->lost = rank;
			continue;
		}
		news->in_done += got > 0 ? (size_t)got : 0;
		if (news->in_done == sizeof news->in) {
			*note = news->in;
			news->in_done = 0;
			return true;
		}
	}
	return false;
}

static void tcp_end(struct messages *messages, bool orderly)
{
	struct tcp *tcp = messages->own;
	(void)orderly;
	for (int kind = 0; tcp && kind < TCP_KINDS; kind++) {
		for (int32_t rank = 0; tcp->sockets[kind] && rank < messages->comm->place.size; rank++)
			if (rank != messages->comm->place.rank && tcp->sockets[kind][rank] >= 0)
				close(tcp->sockets[kind][rank]);
		free(tcp->sockets[kind]);
	}
	if (tcp) {
		free(tcp->sends);
		free(tcp->receives);
		free(tcp->news);
		free(tcp->polls);
		free(tcp->gone);
	}
	free(tcp);
	messages->own = NULL;
}

enum status tcp_open(struct comm *comm, const struct place *place, double watchdog_seconds)
{
	static const struct messenger messenger = {
		.open = tcp_begin,
		.start = tcp_start,
		.progress = tcp_progress,
		.tell = tcp_tell,
		.hear = tcp_hear,
		.close = tcp_end,
	};
	return messages_open(comm, place, watchdog_seconds, &messenger);
}
