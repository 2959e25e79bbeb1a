#include "comm/tcp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"

#define MAGIC 0x73706b6e61726362
#define PATIENCE_SECONDS 600
#define NOTE_SECONDS 10
#define HELLO_SECONDS 10 /* for someone who has connected to say who it is */

struct hello {
	uint64_t magic;
	int32_t rank, size, kind, port;
};

/* Where a rank listens. */
struct address {
	char name[64];
	int32_t port;
};

static enum status send_all(int socket, const void *data, size_t bytes)
{
	for (size_t done = 0; done < bytes;) {
		ssize_t sent = send(socket, (const char *)data + done, bytes - done, MSG_NOSIGNAL);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent <= 0)
			return error_set_errno(ERR_PEER, "cannot send to another rank");
		done += (size_t)sent;
	}
	return OK;
}

static enum status receive_all(int socket, void *data, size_t bytes)
{
	for (size_t done = 0; done < bytes;) {
		ssize_t got = recv(socket, (char *)data + done, bytes - done, 0);
		if (got < 0 && errno == EINTR)
			continue;
		if (got == 0)
			return error_set(ERR_PEER, "another rank has closed its connection");
		if (got < 0)
			return error_set_errno(ERR_PEER, "cannot receive from another rank");
		done += (size_t)got;
	}
	return OK;
}

/* For both families of addresses where the machine has both. Port 0: any; *port is the one it got. */
static enum status listen_at(int32_t *port, int *out)
{
	struct sockaddr_storage address = {0};
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)(void *)&address;
	struct sockaddr_in *four = (struct sockaddr_in *)(void *)&address;
	int no = 0, yes = 1, number = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t length = sizeof(*six);
	if (number >= 0) {
		six->sin6_family = AF_INET6;
		six->sin6_port = htons((uint16_t)*port);
		setsockopt(number, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
	} else {
		number = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		four->sin_family = AF_INET;
		four->sin_port = htons((uint16_t)*port);
		length = sizeof(*four);
	}
	if (number >= 0)
		setsockopt(number, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (number < 0 || bind(number, (struct sockaddr *)&address, length) != 0 || listen(number, 4096) != 0) {
		enum status status = error_set_errno(ERR_RESOURCE, "cannot listen at port %d for other ranks", *port);
		error_hint("set MASTER_PORT to a free port, the same for all ranks");
		if (number >= 0)
			close(number);
		return status;
	}
	length = sizeof(address);
	getsockname(number, (struct sockaddr *)&address, &length);
	*port = ntohs(address.ss_family == AF_INET6 ? six->sin6_port : four->sin_port);
	*out = number;
	return OK;
}

static void set_timeout(int socket, int seconds)
{
	struct timeval time = {.tv_sec = seconds};
	setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time));
}

/* Until `deadline`, since the other may not listen yet. */
static enum status connect_to(const struct address *to, const struct hello *hello, double deadline, int *out)
{
	char service[16];
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
	bool noted = false;
	int code = 0;
	snprintf(service, sizeof(service), "%d", to->port);
	for (;;) {
		code = getaddrinfo(to->name, service, &hints, &found);
		for (struct addrinfo *one = code == 0 ? found : NULL; one; one = one->ai_next) {
			int number = socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
			if (number >= 0 && connect(number, one->ai_addr, one->ai_addrlen) == 0) {
				freeaddrinfo(found);
				*out = number;
				return send_all(number, hello, sizeof(*hello));
			}
			if (number >= 0)
				close(number);
		}
		int why = errno;
		if (code == 0)
			freeaddrinfo(found);
		if (clock_seconds() > deadline) {
			enum status status = error_set(ERR_PEER, "rank %d cannot connect to %s, port %d: %s", hello->rank,
						       to->name, to->port, code ? gai_strerror(code) : strerror(why));
			error_hint("is rank 0 running there, and does no firewall stand between?");
			return status;
		}
		if (!noted && clock_seconds() > deadline - PATIENCE_SECONDS + NOTE_SECONDS) {
			log_note("rank %d waits for %s, port %d", hello->rank, to->name, to->port);
			noted = true;
		}
		clock_pause(0.05);
	}
}

/* One connection of another rank. Who does not say a proper hello is not one of ours. */
static enum status accept_one(int listener, const struct place *place, int *const sockets[TCP_KINDS], struct address *addresses,
			      double deadline)
{
	struct pollfd ready = {.fd = listener, .events = POLLIN};
	struct sockaddr_storage address;
	socklen_t length = sizeof(address);
	struct hello hello;
	if (poll(&ready, 1, 1000) != 1) {
		if (clock_seconds() < deadline)
			return OK;
		int32_t missing = 1;
		while (missing < place->ranks.size - 1 && (missing == place->ranks.rank || sockets[TCP_NEWS][missing] >= 0))
			missing++;
		return error_set(ERR_PEER, "rank %d has not connected within %d s", missing, PATIENCE_SECONDS);
	}
	int number = accept4(listener, (struct sockaddr *)&address, &length, SOCK_CLOEXEC);
	if (number < 0)
		return OK;
	set_timeout(number, HELLO_SECONDS);
	if (receive_all(number, &hello, sizeof(hello)) != OK || hello.magic != MAGIC) {
		close(number);
		return OK;
	}
	bool fits = hello.size == place->ranks.size && hello.rank > place->ranks.rank && hello.rank < hello.size &&
		    (hello.kind == TCP_DATA || hello.kind == TCP_NEWS);
	if (!fits || sockets[hello.kind][hello.rank] >= 0) {
		close(number);
		return error_set(ERR_STATE, "someone connected as rank %d of %d to rank %d of %d%s", hello.rank, hello.size,
				 place->ranks.rank, place->ranks.size, fits ? ": there is one already" : "");
	}
	sockets[hello.kind][hello.rank] = number;
	if (addresses) {
		struct address *other = &addresses[hello.rank];
		other->port = hello.port;
		if (getnameinfo((struct sockaddr *)&address, length, other->name, sizeof(other->name), NULL, 0, NI_NUMERICHOST) !=
		    0)
			other->name[0] = '\0';
		const char *four = strncmp(other->name, "::ffff:", 7) == 0 ? other->name + 7 : other->name;
		/* From this very machine: others know it by the name they know rank 0 by. */
		if (strncmp(four, "127.", 4) == 0 || strcmp(four, "::1") == 0)
			snprintf(other->name, sizeof(other->name), "%.63s", place->address);
		else
			memmove(other->name, four, strlen(four) + 1);
	}
	return OK;
}

static int32_t count_missing(const struct place *place, int *const sockets[TCP_KINDS])
{
	int32_t missing = 0;
	for (int32_t rank = place->ranks.rank + 1; rank < place->ranks.size; rank++)
		for (int kind = 0; kind < TCP_KINDS; kind++)
			missing += sockets[kind][rank] < 0;
	return missing;
}

static enum status connect_all(const struct place *place, int *const sockets[TCP_KINDS], struct address *addresses, int *listener)
{
	double deadline = clock_seconds() + PATIENCE_SECONDS;
	int32_t rank = place->ranks.rank, size = place->ranks.size;
	struct hello hello = {.magic = MAGIC, .rank = rank, .size = size, .port = rank == 0 ? place->port : 0};
	struct address *first = &addresses[0];
	snprintf(first->name, sizeof(first->name), "%.63s", place->address);
	first->port = place->port;
	TRY(listen_at(&hello.port, listener));
	for (int32_t other = 0; other < rank; other++) {
		for (hello.kind = 0; hello.kind < TCP_KINDS; hello.kind++)
			TRY(connect_to(&addresses[other], &hello, deadline, &sockets[hello.kind][other]));
		/* Rank 0 says where the rest listen, once all have come. */
		if (other == 0) {
			set_timeout(sockets[TCP_DATA][0], PATIENCE_SECONDS);
			TRY(receive_all(sockets[TCP_DATA][0], addresses, (size_t)size * sizeof(*addresses)));
		}
	}
	while (count_missing(place, sockets) > 0)
		TRY(accept_one(*listener, place, sockets, rank == 0 ? addresses : NULL, deadline));
	for (int32_t other = 1; rank == 0 && other < size; other++)
		TRY(send_all(sockets[TCP_DATA][other], addresses, (size_t)size * sizeof(*addresses)));
	return OK;
}

enum status tcp_connect(const struct place *place, int *const sockets[TCP_KINDS])
{
	struct address *addresses;
	int listener = -1, yes = 1;
	TRY(memory_new(&addresses, place->ranks.size, sizeof(*addresses), "addresses of ranks"));
	for (int kind = 0; kind < TCP_KINDS; kind++)
		for (int32_t rank = 0; rank < place->ranks.size; rank++)
			sockets[kind][rank] = -1;
	enum status status = connect_all(place, sockets, addresses, &listener);
	if (listener >= 0)
		close(listener);
	free(addresses);
	for (int kind = 0; kind < TCP_KINDS; kind++)
		for (int32_t rank = 0; rank < place->ranks.size; rank++) {
			if (sockets[kind][rank] < 0)
				continue;
			setsockopt(sockets[kind][rank], IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
			fcntl(sockets[kind][rank], F_SETFL, O_NONBLOCK);
		}
	return status;
}
