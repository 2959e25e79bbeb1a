/* Connects every rank with every other over TCP: they meet at rank 0 and prove that they know the run's secret. */
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
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "formats/checksum.h"

#define MAGIC 0x73706b6e61726362
#define PATIENCE_SECONDS 600
#define NOTE_SECONDS 10
#define HELLO_SECONDS 10   /* time limit for a peer that has connected to say who it is, in total */
#define CONNECT_SECONDS 10 /* time limit of one attempt to reach an address */
#define STRANGERS 64       /* connections, besides those of ranks, that may not yet have said who they are */
#define NONCE_BYTES 16

/* Sent first, by the side that accepts. */
struct greeting {
	uint64_t magic;
	unsigned char nonce[NONCE_BYTES];
};

/* The answer: who is connecting, and proof that it knows the secret. */
struct hello {
	uint64_t magic;
	int32_t rank, size, kind, port;
	unsigned char nonce[NONCE_BYTES];
	unsigned char proof[CHECKSUM_HMAC_BYTES];
};

/* Proof that the accepting side knows it, too. */
struct welcome {
	unsigned char proof[CHECKSUM_HMAC_BYTES];
};

/* What the proof covers: both nonces, so that nothing overheard can be replayed, and everything the hello says. */
struct proof_text {
	struct greeting greeting;
	struct hello hello; /* with `proof` zeroed */
	char side[8];
};

static void prove(const struct greeting *greeting, const struct hello *hello, const char *side,
		  unsigned char out[CHECKSUM_HMAC_BYTES])
{
	const char *secret = getenv(TCP_SECRET);
	struct proof_text text;
	memset(&text, 0, sizeof text);
	text.greeting = *greeting;
	text.hello = *hello;
	memset(text.hello.proof, 0, sizeof text.hello.proof);
	snprintf(text.side, sizeof text.side, "%s", side);
	checksum_hmac(secret ? secret : "", &text, sizeof text, out);
}

static enum status make_nonce(unsigned char nonce[NONCE_BYTES])
{
	return getrandom(nonce, NONCE_BYTES, 0) == NONCE_BYTES ? OK : error_set_errno(ERR_RESOURCE, "no random numbers");
}

/* Where a rank listens. */
struct address {
	char name[256];
	int32_t port;
};

static enum status send_all(int socket, const void *data, size_t bytes)
{
	for (size_t done = 0; done < bytes;) {
		ssize_t sent = send(socket, (const char *)data + done, bytes - done, MSG_NOSIGNAL);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0 && errno == EAGAIN) { /* the buffer is full; a rank that has gone resets the connection */
			struct pollfd ready = {.fd = socket, .events = POLLOUT};
			if (poll(&ready, 1, (int)(PATIENCE_SECONDS * 1000)) == 0)
				return error_set(ERR_PEER, "another rank does not respond");
			continue;
		}
		if (sent <= 0)
			return error_set_errno(ERR_PEER, "cannot send to another rank");
		done += (size_t)sent;
	}
	return OK;
}

static enum status receive_all(int socket, void *data, size_t bytes, double deadline)
{
	for (size_t done = 0; done < bytes;) {
		struct pollfd ready = {.fd = socket, .events = POLLIN};
		if (clock_seconds() > deadline)
			return error_set(ERR_PEER, "another rank does not respond");
		if (poll(&ready, 1, 200) < 1)
			continue;
		ssize_t got = recv(socket, (char *)data + done, bytes - done, MSG_DONTWAIT);
		if (got < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (got == 0)
			return error_set(ERR_PEER, "another rank has closed its connection");
		if (got < 0)
			return error_set_errno(ERR_PEER, "cannot receive from another rank");
		done += (size_t)got;
	}
	return OK;
}

static bool is_loopback(const struct sockaddr_storage *address)
{
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)address;
	const struct sockaddr_in *four = (const struct sockaddr_in *)(const void *)address;
	if (address->ss_family == AF_INET)
		return ntohl(four->sin_addr.s_addr) >> 24 == 127;
	return IN6_IS_ADDR_LOOPBACK(&six->sin6_addr) ||
	       (IN6_IS_ADDR_V4MAPPED(&six->sin6_addr) && six->sin6_addr.s6_addr[12] == 127);
}

/* Is this a name that every machine uses for itself? */
static bool is_local_name(const char *name)
{
	return strcmp(name, "localhost") == 0 || strncmp(name, "127.", 4) == 0 || strcmp(name, "::1") == 0;
}

static void set_port(struct sockaddr_storage *address, int32_t port)
{
	if (address->ss_family == AF_INET6)
		((struct sockaddr_in6 *)(void *)address)->sin6_port = htons((uint16_t)port);
	else
		((struct sockaddr_in *)(void *)address)->sin_port = htons((uint16_t)port);
}

/* All addresses of this machine, of both families if it has both. */
static struct sockaddr_storage any_address(void)
{
	struct sockaddr_storage address = {.ss_family = AF_INET6};
	int number = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (number < 0)
		address.ss_family = AF_INET;
	else
		close(number);
	return address;
}

/* Does the name have more than one address? */
static bool has_several(const struct addrinfo *found)
{
	for (const struct addrinfo *one = found->ai_next; one; one = one->ai_next)
		if (one->ai_addrlen != found->ai_addrlen || memcmp(one->ai_addr, found->ai_addr, found->ai_addrlen) != 0)
			return true;
	return false;
}

/* Where rank 0 listens: at MASTER_ADDR only. Exceptions are a name that resolves to a loopback address on this machine (as in
 * Debian's /etc/hosts) while other machines find it by that name, and a name with several addresses (IPv4 and IPv6), of which
 * other machines may know or reach only some: then at all addresses. */
static struct sockaddr_storage master_address(const struct place *place)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
	struct sockaddr_storage address = any_address();
	if (getaddrinfo(place->address, NULL, &hints, &found) != 0)
		return address;
	struct sockaddr_storage first = {0};
	memcpy(&first, found->ai_addr, found->ai_addrlen);
	bool is_one = !has_several(found) && !is_loopback(&first);
	freeaddrinfo(found);
	if ((first.ss_family == AF_INET || first.ss_family == AF_INET6) && (is_one || is_local_name(place->address)))
		address = first;
	return address;
}

/* Port 0 means any free port; *port becomes the actual one. If the address does not belong to this machine (it is behind
 * another one), listens at all of its own. */
static enum status listen_at(const struct sockaddr_storage *where, int32_t *port, int *out)
{
	struct sockaddr_storage address = *where;
	int no = 0, yes = 1, number = -1;
	bool listens = false;
	for (int attempt = 0; attempt < 2 && !listens; attempt++) {
		if (attempt == 1 && errno != EADDRNOTAVAIL)
			break;
		if (attempt == 1)
			address = any_address();
		set_port(&address, *port);
		if (number >= 0)
			close(number);
		number = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (number >= 0 && address.ss_family == AF_INET6)
			setsockopt(number, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
		if (number >= 0)
			setsockopt(number, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
		socklen_t length = address.ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
		listens = number >= 0 && bind(number, (struct sockaddr *)&address, length) == 0 && listen(number, 4096) == 0;
	}
	if (!listens) {
		enum status status = error_set_errno(ERR_RESOURCE, "cannot listen on port %d for other ranks", *port);
		error_hint("set MASTER_PORT to a free port, the same for all ranks");
		if (number >= 0)
			close(number);
		return status;
	}
	socklen_t length = sizeof address;
	getsockname(number, (struct sockaddr *)&address, &length);
	*port = ntohs(address.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)(void *)&address)->sin6_port
						    : ((struct sockaddr_in *)(void *)&address)->sin_port);
	*out = number;
	return OK;
}

/* Tells the accepting side who this is, and checks that it is a rank of the same run. */
static enum status introduce(int socket, struct hello *hello, double deadline)
{
	struct greeting greeting;
	struct welcome welcome;
	unsigned char expected[CHECKSUM_HMAC_BYTES];
	TRY(receive_all(socket, &greeting, sizeof greeting, deadline));
	if (greeting.magic != MAGIC)
		return error_set(ERR_PEER, "the program listening there is not a rank of this version of bertc");
	TRY(make_nonce(hello->nonce));
	prove(&greeting, hello, "hello", hello->proof);
	TRY(send_all(socket, hello, sizeof *hello));
	if (receive_all(socket, &welcome, sizeof welcome, deadline) != OK)
		return error_hinted(
			error_set(ERR_PEER, "rank %d of %d was rejected by the rank it connected to", hello->rank, hello->size),
			"all ranks need the same " TCP_SECRET
			", the same number of ranks and each its own number; what the other "
			"rank says is in its log");
	prove(&greeting, hello, "welcome", expected);
	if (!checksum_hmac_equal(expected, welcome.proof))
		return error_set(ERR_PEER, "the program listening there does not know the " TCP_SECRET " of this run");
	return OK;
}

/* While nobody listens at a port of this machine, a connection to it may be given that very port as its own, and then reaches
 * itself. */
static bool is_its_own_peer(int number)
{
	struct sockaddr_storage own = {0}, peer = {0};
	socklen_t own_length = sizeof own, peer_length = sizeof peer;
	return getsockname(number, (struct sockaddr *)&own, &own_length) == 0 &&
	       getpeername(number, (struct sockaddr *)&peer, &peer_length) == 0 && memcmp(&own, &peer, sizeof own) == 0;
}

/* False: errno says why not. */
static bool connect_once(const struct addrinfo *one, int *out)
{
	struct timeval limit = {.tv_sec = CONNECT_SECONDS};
	struct linger none = {.l_onoff = 1};
	int number = socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (number < 0)
		return false;
	setsockopt(number, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit); /* also limits connect() */
	bool connected = connect(number, one->ai_addr, one->ai_addrlen) == 0;
	int why = connected ? ECONNREFUSED : errno;
	if (connected && !is_its_own_peer(number)) {
		*out = number;
		return true;
	}
	if (connected) /* rank 0 needs the port right now */
		setsockopt(number, SOL_SOCKET, SO_LINGER, &none, sizeof none);
	close(number);
	errno = why;
	return false;
}

/* Retries until `deadline`, since the other rank may not be listening yet. */
static enum status connect_to(const struct address *to, int32_t rank, double deadline, int *out)
{
	char service[16];
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
	bool noted = false;
	snprintf(service, sizeof service, "%d", to->port);
	for (;;) {
		int code = getaddrinfo(to->name, service, &hints, &found), why = 0;
		for (struct addrinfo *one = code == 0 ? found : NULL; one; one = one->ai_next) {
			if (connect_once(one, out)) {
				freeaddrinfo(found);
				return OK;
			}
			why = errno;
		}
		if (code == 0)
			freeaddrinfo(found);
		if (clock_seconds() > deadline)
			return error_hinted(error_set(ERR_PEER, "rank %d cannot connect to %s, port %d: %s", rank, to->name,
						      to->port, code ? gai_strerror(code) : strerror(why)),
					    "check that rank 0 is running there and that no firewall blocks the port");
		if (!noted && clock_seconds() > deadline - PATIENCE_SECONDS + NOTE_SECONDS) {
			log_note("rank %d waits for %s, port %d", rank, to->name, to->port);
			noted = true;
		}
		clock_pause(0.05);
	}
}

/* A peer that has connected but not yet completely said who it is. */
struct pending {
	int socket; /* -1: a free slot */
	double since;
	struct greeting greeting;
	struct hello hello;
	size_t done; /* bytes of the hello received so far */
	struct sockaddr_storage address;
};

struct door {
	int listener;
	const struct place *place;
	int *const *sockets;       /* [TCP_KINDS][size] */
	struct address *addresses; /* [size]; NULL: not needed */
	/* [slots], and the listener's after them; all ranks may be connecting at the same time */
	struct pending *pending;
	struct pollfd *polls;
	int slots;
	char refused[160]; /* about the latest rank that knew the secret but did not fit */
};

static void shut_out(struct pending *pending)
{
	close(pending->socket);
	pending->socket = -1;
}

static void let_in(struct door *door)
{
	struct pending *place = &door->pending[0];
	struct sockaddr_storage address;
	socklen_t length = sizeof address;
	int number = accept4(door->listener, (struct sockaddr *)&address, &length, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (number < 0)
		return;
	/* A free slot, otherwise that of the connection that has been pending longest. */
	for (int i = 0; i < door->slots && place->socket >= 0; i++)
		if (door->pending[i].socket < 0 || door->pending[i].since < place->since)
			place = &door->pending[i];
	if (place->socket >= 0)
		shut_out(place);
	*place = (struct pending){.socket = number, .since = clock_seconds(), .greeting = {.magic = MAGIC}, .address = address};
	if (make_nonce(place->greeting.nonce) != OK ||
	    send(number, &place->greeting, sizeof place->greeting, MSG_NOSIGNAL) != sizeof place->greeting)
		shut_out(place);
}

/* Records where other ranks can reach the rank that has connected. */
static void note_address(const struct door *door, const struct pending *pending)
{
	struct address *other = &door->addresses[pending->hello.rank];
	socklen_t length = pending->address.ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
	other->port = pending->hello.port;
	/* It is on this machine: other ranks know it by the name by which they know rank 0. */
	if (is_loopback(&pending->address)) {
		snprintf(other->name, sizeof other->name, "%.255s", door->place->address);
		return;
	}
	if (getnameinfo((const struct sockaddr *)&pending->address, length, other->name, sizeof other->name, NULL, 0,
			NI_NUMERICHOST) != 0)
		other->name[0] = '\0';
	if (strncmp(other->name, "::ffff:", 7) == 0)
		memmove(other->name, other->name + 7, strlen(other->name + 7) + 1);
}

/* Judges a complete hello. A peer that does not know the secret is a stranger, and is disconnected without a message; a rank
 * that knows it but does not fit is reported and disconnected. Neither ends the run. */
static void judge(struct door *door, struct pending *pending)
{
	const struct hello *hello = &pending->hello;
	const struct comm_place *own = &door->place->ranks;
	struct welcome welcome;
	unsigned char expected[CHECKSUM_HMAC_BYTES];
	prove(&pending->greeting, hello, "hello", expected);
	if (hello->magic != MAGIC || !checksum_hmac_equal(expected, hello->proof)) {
		shut_out(pending);
		return;
	}
	bool fits = hello->size == own->size && hello->rank > own->rank && hello->rank < hello->size &&
		    (hello->kind == TCP_DATA || hello->kind == TCP_NEWS) && hello->port >= 0 && hello->port <= 65535;
	bool taken = fits && door->sockets[hello->kind][hello->rank] >= 0;
	if (!fits || taken) {
		snprintf(door->refused, sizeof door->refused, "someone connected as rank %d of %d to rank %d of %d%s",
			 hello->rank, hello->size, own->rank, own->size, taken ? ", which there is already" : "");
		log_warning("%s: rejected", door->refused);
		shut_out(pending);
		return;
	}
	prove(&pending->greeting, hello, "welcome", welcome.proof);
	if (send(pending->socket, &welcome, sizeof welcome, MSG_NOSIGNAL) != sizeof welcome) {
		shut_out(pending);
		return;
	}
	if (door->addresses)
		note_address(door, pending);
	door->sockets[hello->kind][hello->rank] = pending->socket;
	pending->socket = -1;
}

static void hear(struct door *door, struct pending *pending)
{
	ssize_t got = recv(pending->socket, (char *)&pending->hello + pending->done, sizeof pending->hello - pending->done, 0);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0) {
		shut_out(pending);
		return;
	}
	pending->done += (size_t)got;
	if (pending->done == sizeof pending->hello)
		judge(door, pending);
}

/* Waits briefly for peers to connect or to send something. No peer has to wait for another one that is silent. */
static void attend(struct door *door)
{
	struct pollfd *polls = door->polls;
	int slots = door->slots;
	for (int i = 0; i < slots; i++)
		polls[i] = (struct pollfd){.fd = door->pending[i].socket, .events = POLLIN};
	polls[slots] = (struct pollfd){.fd = door->listener, .events = POLLIN};
	if (poll(polls, (nfds_t)slots + 1, 200) > 0) {
		for (int i = 0; i < slots; i++)
			if (polls[i].revents != 0)
				hear(door, &door->pending[i]);
		if (polls[slots].revents != 0)
			let_in(door);
	}
	for (int i = 0; i < slots; i++)
		if (door->pending[i].socket >= 0 && clock_seconds() - door->pending[i].since > HELLO_SECONDS)
			shut_out(&door->pending[i]);
}

static int32_t count_missing(const struct place *place, int *const sockets[TCP_KINDS])
{
	int32_t missing = 0;
	for (int32_t rank = place->ranks.rank + 1; rank < place->ranks.size; rank++)
		for (int kind = 0; kind < TCP_KINDS; kind++)
			missing += sockets[kind][rank] < 0;
	return missing;
}

/* Accepts the connections of all ranks above this one. */
static enum status accept_all(const struct place *place, int *const sockets[TCP_KINDS], struct address *addresses, int listener,
			      double deadline)
{
	struct door own = {.listener = listener, .place = place, .sockets = sockets, .addresses = addresses}, *door = &own;
	enum status status;
	door->slots = STRANGERS + count_missing(place, sockets);
	TRY(memory_new(&door->pending, door->slots, sizeof *door->pending, "connections of ranks"));
	status = memory_new(&door->polls, door->slots + 1, sizeof *door->polls, "connections of ranks");
	for (int i = 0; i < door->slots; i++)
		door->pending[i].socket = -1;
	while (status == OK && count_missing(place, sockets) > 0) {
		attend(door);
		if (clock_seconds() <= deadline)
			continue;
		int32_t missing = place->ranks.rank + 1;
		while (missing < place->ranks.size - 1 && sockets[TCP_DATA][missing] >= 0 && sockets[TCP_NEWS][missing] >= 0)
			missing++;
		status = error_set(ERR_PEER, "rank %d did not connect within %d s", missing, PATIENCE_SECONDS);
		if (door->refused[0])
			error_hint("%s", door->refused);
		else
			error_hint("is it running, with the same MASTER_ADDR, MASTER_PORT and " TCP_SECRET "?");
	}
	for (int i = 0; i < door->slots; i++)
		if (door->pending[i].socket >= 0)
			shut_out(&door->pending[i]);
	free(door->pending);
	free(door->polls);
	return status;
}

/* Where a rank other than 0 listens: at the address from which it reaches rank 0, at which the other ranks can reach it, too. */
static struct sockaddr_storage own_address(const struct place *place, int to_first)
{
	struct sockaddr_storage address = {0};
	socklen_t length = sizeof address;
	if (getsockname(to_first, (struct sockaddr *)&address, &length) != 0 ||
	    (is_loopback(&address) && !is_local_name(place->address)))
		address = any_address();
	return address;
}

static enum status connect_all(const struct place *place, int *const sockets[TCP_KINDS], struct address *addresses, int *listener)
{
	double deadline = clock_seconds() + PATIENCE_SECONDS;
	int32_t rank = place->ranks.rank, size = place->ranks.size;
	struct hello hello = {.magic = MAGIC, .rank = rank, .size = size, .port = rank == 0 ? place->port : 0};
	struct address *first = &addresses[0];
	struct sockaddr_storage where;
	snprintf(first->name, sizeof first->name, "%.255s", place->address);
	first->port = place->port;
	if (rank == 0) {
		where = master_address(place);
		TRY(listen_at(&where, &hello.port, listener));
		if (!getenv(TCP_SECRET) && !is_local_name(place->address))
			log_note("ranks: " TCP_SECRET
				 " is not set, so anyone who can reach %s, port %d could pose as a rank; set it to the "
				 "same text for all ranks",
				 place->address, place->port);
	}
	for (int32_t other = 0; other < rank; other++) {
		for (hello.kind = 0; hello.kind < TCP_KINDS; hello.kind++) {
			int *socket = &sockets[hello.kind][other];
			TRY(connect_to(&addresses[other], rank, deadline, socket));
			if (*listener < 0) {
				where = own_address(place, *socket);
				TRY(listen_at(&where, &hello.port, listener));
			}
			TRY(introduce(*socket, &hello, deadline));
		}
		/* Rank 0 says where the other ranks listen, once all have connected. */
		if (other == 0)
			TRY(receive_all(sockets[TCP_DATA][0], addresses, (size_t)size * sizeof *addresses, deadline));
		for (int32_t i = 0; other == 0 && i < size; i++)
			addresses[i].name[sizeof addresses[i].name - 1] = '\0';
	}
	TRY(accept_all(place, sockets, rank == 0 ? addresses : NULL, *listener, deadline));
	for (int32_t other = 1; rank == 0 && other < size; other++)
		TRY(send_all(sockets[TCP_DATA][other], addresses, (size_t)size * sizeof *addresses));
	return OK;
}

enum status tcp_connect(const struct place *place, int *const sockets[TCP_KINDS])
{
	struct address *addresses;
	int listener = -1, yes = 1;
	TRY(memory_new(&addresses, place->ranks.size, sizeof *addresses, "addresses of ranks"));
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
			setsockopt(sockets[kind][rank], IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
			fcntl(sockets[kind][rank], F_SETFL, O_NONBLOCK);
		}
	return status;
}
