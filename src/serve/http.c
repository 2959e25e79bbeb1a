/* Wraps libmicrohttpd: connections with deadlines, requests within limits, and answers that may come later. */
#include "serve/http.h"

#include <ctype.h>
#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/condition.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"

/* Server threads, which parse requests and write answers; models compute in other threads. Two, so that one large request does
 * not hold up all others. */
#define THREADS 2
/* How much of a body that is too large is read and discarded, as a multiple of the limit. Clients see the answer only after they
 * have sent the whole body. */
#define SWALLOWED 8
#define ADDRESS_BYTES 80

struct http_connection {
	int descriptor;
	double deadline;   /* when it will be closed; 0: never, as its request is being answered */
	atomic_bool begun; /* the headers of a request have arrived, and its answer has not been sent */
	char client[INET6_ADDRSTRLEN];
	const char *target_end; /* of the request being read, in the library's buffer */
	struct http_connection *previous, *next;
};

struct http_server {
	struct http_settings settings;
	struct MHD_Daemon *daemon;
	int listener;
	char address[ADDRESS_BYTES];
	atomic_bool quiet; /* http_quiesce() was called */
	atomic_llong open_requests;
	/* Guards the list, deadlines, and `closing`. */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct http_connection *connections;
	bool closing;
	pthread_t watchdog;
	bool has_watchdog;
};

/* Settles the race between the server thread that suspends a connection and the thread that resumes it. */
enum rest { RUNNING, RESTING, WOKEN };

struct http_internal {
	struct http_server *server;
	struct MHD_Connection *connection;
	struct http_connection *place;
	double started;
	int64_t swallowed, answer_bytes;
	bool is_whole, is_open;
	char authority[256]; /* of a target that is a whole URL */
	atomic_int rest;
};

/* ---- Connections ---- */

static void set_deadline(struct http_server *server, struct http_connection *connection, bool waiting)
{
	pthread_mutex_lock(&server->lock);
	connection->deadline = waiting ? clock_seconds() + server->settings.timeout_seconds : 0;
	pthread_mutex_unlock(&server->lock);
}

void http_libraries(struct library_list *list)
{
	library_list_add(list, "libmicrohttpd", MHD_get_version());
}

static struct http_connection *place_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	return info ? info->socket_context : NULL;
}

static void name_client(struct MHD_Connection *connection, char *out, size_t size)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	const struct sockaddr *address = info ? info->client_addr : NULL;
	socklen_t length = address && address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
	if (!address || getnameinfo(address, length, out, (socklen_t)size, NULL, 0, NI_NUMERICHOST) != 0)
		snprintf(out, size, "?");
}

static void open_connection(struct http_server *server, struct MHD_Connection *connection, void **place)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct http_connection *added;
	if (!info || memory_new(&added, 1, sizeof *added, "a connection") != OK)
		return; /* its first request will be refused */
	added->descriptor = info->connect_fd;
	name_client(connection, added->client, sizeof added->client);
	set_deadline(server, added, true);
	pthread_mutex_lock(&server->lock);
	added->next = server->connections;
	if (added->next)
		added->next->previous = added;
	server->connections = added;
	pthread_mutex_unlock(&server->lock);
	*place = added;
}

static void drop_connection(struct http_server *server, struct http_connection *connection)
{
	pthread_mutex_lock(&server->lock);
	if (connection->next)
		connection->next->previous = connection->previous;
	if (connection->previous)
		connection->previous->next = connection->next;
	else
		server->connections = connection->next;
	pthread_mutex_unlock(&server->lock);
	free(connection);
}

/* The library calls this before it closes the connection's descriptor. */
static void on_connection(void *context, struct MHD_Connection *connection, void **place,
			  enum MHD_ConnectionNotificationCode code)
{
	struct http_server *server = context;
	if (code == MHD_CONNECTION_NOTIFY_STARTED)
		open_connection(server, connection, place);
	else if (*place)
		drop_connection(server, *place);
}

/* Shuts down connections that are past their deadline; to the library, it looks as if the client hung up. */
static void *watch(void *context)
{
	struct http_server *server = context;
	pthread_mutex_lock(&server->lock);
	while (!server->closing) {
		double now = clock_seconds();
		for (struct http_connection *c = server->connections; c; c = c->next) {
			if (c->deadline == 0 || now < c->deadline)
				continue;
			log_detail("%s: nothing more within %.0f s: connection closed", c->client,
				   server->settings.timeout_seconds);
			shutdown(c->descriptor, SHUT_RDWR);
			c->deadline = 0;
		}
		struct timespec until;
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += 250000000;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		pthread_cond_timedwait(&server->changed, &server->lock, &until);
	}
	pthread_mutex_unlock(&server->lock);
	return NULL;
}

/* ---- Requests ---- */

static const char *header(struct MHD_Connection *connection, const char *name)
{
	const char *value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
	return value ? value : "";
}

/* A token of RFC 9110, as names of headers are. */
static bool is_token(const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (!(isalnum((unsigned char)text[i]) || (text[i] && strchr("!#$%&'*+-.^_`|~", text[i]))))
			return false;
	return size > 0;
}

/* Headers that may stand in a request once: which of two counts, programs do not agree on. */
enum { LENGTH, CODING, SINGLES = 6 };
static const struct {
	const char *name, *twice;
} singles[SINGLES] = {
	[LENGTH] = {MHD_HTTP_HEADER_CONTENT_LENGTH, "several Content-Length headers"},
	[CODING] = {MHD_HTTP_HEADER_TRANSFER_ENCODING, "several Transfer-Encoding headers"},
	{MHD_HTTP_HEADER_HOST, "several Host headers"},
	{MHD_HTTP_HEADER_CONTENT_TYPE, "several Content-Type headers"},
	{MHD_HTTP_HEADER_AUTHORIZATION, "several Authorization headers"},
	{MHD_HTTP_HEADER_ORIGIN, "several Origin headers"},
};

struct framing {
	int seen[SINGLES];
	bool chunked;
	const char *wrong;
	const char *begin, *limit; /* the request's lines in the library's buffer; NULL: it does not keep them there */
	const char *end;           /* of the last value seen there */
};

/* libmicrohttpd before 1.0 parses lines where they lie, and ends a value at a NUL. What followed still lies between the value and
 * the next name, where otherwise there are only `line_ends` bytes. */
static void check_rest(struct framing *framing, const char *next, int line_ends)
{
	bool inside = framing->limit && framing->end >= framing->begin && next >= framing->end && next <= framing->limit;
	if (inside && next - framing->end > line_ends)
		framing->wrong = "a NUL or a folded line in a header";
}

static bool is_named(const char *name, size_t size, const char *wanted)
{
	return size == strlen(wanted) && strncasecmp(name, wanted, size) == 0;
}

static enum MHD_Result check_header(void *context, enum MHD_ValueKind kind, const char *name, size_t name_size, const char *value,
				    size_t size)
{
	struct framing *framing = context;
	(void)kind;
	check_rest(framing, name, 2);
	framing->end = value + size;
	if (!is_token(name, name_size))
		framing->wrong = "a header whose name is not one";
	for (size_t i = 0; i < size; i++)
		if (value[i] == '\0' || value[i] == '\r' || value[i] == '\n')
			framing->wrong = "a header with a NUL or a line end in its value";
	for (int i = 0; i < SINGLES; i++)
		if (is_named(name, name_size, singles[i].name) && framing->seen[i]++ > 0)
			framing->wrong = singles[i].twice;
	if (is_named(name, name_size, MHD_HTTP_HEADER_TRANSFER_ENCODING))
		framing->chunked = is_named(value, size, "chunked");
	return MHD_YES;
}

/* Proxies and servers that disagree about where a request ends can be made to take part of one for another (request smuggling),
 * so whatever could be read in two ways is refused (RFC 9112, 6.3 and 11.2). NULL: nothing. */
static const char *find_malformed(struct MHD_Connection *connection, const char *method, const char *version)
{
	const char *target_end = place_of(connection)->target_end;
	struct framing framing = {.begin = method, .end = version + strlen(version)};
	const union MHD_ConnectionInfo *size = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
	if (size && strncmp(MHD_get_version(), "0.", 2) == 0)
		framing.limit = method + size->header_size;
	MHD_get_connection_values_n(connection, MHD_HEADER_KIND, check_header, &framing);
	check_rest(&framing, framing.limit, 4);
	if (framing.limit && target_end > method && target_end < version && version - target_end != 1)
		return "a NUL in the target";
	if (framing.wrong)
		return framing.wrong;
	if (framing.seen[CODING] > 0 && framing.seen[LENGTH] > 0)
		return "both Transfer-Encoding and Content-Length";
	if (framing.seen[CODING] > 0 && !framing.chunked)
		return "a Transfer-Encoding other than chunked";
	if (framing.seen[CODING] > 0 && strcmp(version, MHD_HTTP_VERSION_1_1) != 0)
		return "a Transfer-Encoding in HTTP/1.0";
	return NULL;
}

static bool announces_too_much(const struct http_server *server, struct MHD_Connection *connection, bool *out_at_once)
{
	const char *text = header(connection, MHD_HTTP_HEADER_CONTENT_LENGTH);
	char *end;
	errno = 0;
	long long size = strtoll(text, &end, 10);
	if (!*text || end == text || (errno == 0 && size <= server->settings.max_body_bytes))
		return false;
	*out_at_once =
		errno != 0 || size / SWALLOWED > server->settings.max_body_bytes || *header(connection, MHD_HTTP_HEADER_EXPECT);
	return true;
}

static bool add_headers(struct MHD_Response *response, const char *const (*headers)[2], size_t count)
{
	bool ok = true;
	for (size_t i = 0; i < count && ok; i++)
		ok = MHD_add_response_header(response, headers[i][0], headers[i][1]) == MHD_YES;
	return ok;
}

/* What browsers ask before they let pages of other origins send requests and read answers. */
static bool share_answer(struct MHD_Response *response, const struct http_answer *answer)
{
	const char *const reading[][2] = {{"Access-Control-Allow-Origin", answer->shared_with}, {"Vary", "Origin"}};
	static const char *const asking[][2] = {{"Access-Control-Allow-Methods", "GET, HEAD, POST"},
						/* "*" does not include Authorization */
						{"Access-Control-Allow-Headers", "*, Authorization, Content-Type"},
						{"Access-Control-Max-Age", "3600"}};
	return add_headers(response, reading, 2) && (!answer->is_preflight || add_headers(response, asking, 3));
}

static enum MHD_Result queue_answer(struct http_exchange *exchange)
{
	struct http_answer *answer = &exchange->answer;
	struct MHD_Connection *connection = exchange->internal->connection;
	struct http_server *server = exchange->internal->server;
	char seconds[16];
	if (answer->body.failed) {
		buffer_release(&answer->body);
		*answer = (struct http_answer){.status = MHD_HTTP_SERVICE_UNAVAILABLE};
	}
	exchange->internal->answer_bytes = (int64_t)answer->body.size;
	struct MHD_Response *response =
		MHD_create_response_from_buffer(answer->body.size, answer->body.data, MHD_RESPMEM_MUST_FREE);
	if (!response)
		return MHD_NO;
	answer->body = (struct buffer){0};
	bool ok = true;
	if (answer->content_type)
		ok = MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, answer->content_type) == MHD_YES;
	if (ok && answer->allow)
		ok = MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, answer->allow) == MHD_YES;
	if (ok && answer->retry_after > 0) {
		snprintf(seconds, sizeof seconds, "%d", answer->retry_after);
		ok = MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, seconds) == MHD_YES;
	}
	if (ok && answer->status == MHD_HTTP_UNAUTHORIZED)
		ok = MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer") == MHD_YES;
	if (ok && (atomic_load(&server->quiet) || exchange->malformed))
		ok = MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close") == MHD_YES;
	if (ok && answer->shared_with)
		ok = share_answer(response, answer);
	/* Browsers must not guess another content type. */
	if (ok && answer->content_type)
		ok = MHD_add_response_header(response, "X-Content-Type-Options", "nosniff") == MHD_YES;
	set_deadline(server, exchange->internal->place, true);
	enum MHD_Result result = ok ? MHD_queue_response(connection, (unsigned)answer->status, response) : MHD_NO;
	MHD_destroy_response(response);
	return result;
}

/* A target may be a whole URL, as proxies are sent it, whose host then counts instead of Host (RFC 9112, 3.2.2). */
static void split_target(struct http_exchange *exchange)
{
	static const char scheme[] = "http://";
	struct http_internal *internal = exchange->internal;
	if (strncasecmp(exchange->path, scheme, strlen(scheme)) != 0)
		return;
	const char *host = exchange->path + strlen(scheme), *path = host + strcspn(host, "/");
	if ((size_t)(path - host) >= sizeof internal->authority)
		return;
	memcpy(internal->authority, host, (size_t)(path - host));
	exchange->host = internal->authority;
	exchange->path = *path ? path : "/";
}

/* A NUL would end the target for some programs, and not for others: another control character, which no name has, replaces it. */
static size_t unescape(void *context, struct MHD_Connection *connection, char *text)
{
	(void)context;
	(void)connection;
	for (char *at = text; (at = strstr(at, "%00"));)
		at[2] = '1';
	return MHD_http_unescape(text);
}

/* Called before the target is split and unescaped. A NUL before the space that follows ends it for the library. */
static void *note_target(void *context, const char *target, struct MHD_Connection *connection)
{
	struct http_connection *place = place_of(connection);
	(void)context;
	if (place)
		place->target_end = target + strlen(target);
	return NULL;
}

static enum MHD_Result begin_exchange(struct http_server *server, struct MHD_Connection *connection, const char *path,
				      const char *method, const char *version, void **own)
{
	struct {
		struct http_exchange exchange;
		struct http_internal internal;
	} * made;
	struct http_connection *place = place_of(connection);
	bool at_once = false;
	if (!place || memory_new(&made, 1, sizeof *made, "a request") != OK)
		return MHD_NO;
	made->internal =
		(struct http_internal){.server = server, .connection = connection, .place = place, .started = clock_seconds()};
	made->exchange = (struct http_exchange){
		.method = method,
		.path = path,
		.authorization = header(connection, MHD_HTTP_HEADER_AUTHORIZATION),
		.content_type = header(connection, MHD_HTTP_HEADER_CONTENT_TYPE),
		.origin = header(connection, MHD_HTTP_HEADER_ORIGIN),
		.host = header(connection, MHD_HTTP_HEADER_HOST),
		.malformed = find_malformed(connection, method, version),
		.internal = &made->internal,
	};
	split_target(&made->exchange);
	*own = &made->exchange;
	atomic_store(&place->begun, true);
	made->exchange.body_too_large = announces_too_much(server, connection, &at_once);
	made->exchange.body_unwanted =
		made->exchange.malformed || !server->settings.wants_body(server->settings.context, &made->exchange);
	if (!at_once && !made->exchange.malformed)
		return MHD_YES;
	made->internal.is_whole = true;
	atomic_fetch_add(&server->open_requests, 1);
	bool answered = server->settings.begin(server->settings.context, &made->exchange);
	BUG_IF(!answered);
	return queue_answer(&made->exchange);
}

/* Takes more of the body. MHD_NO closes the connection. */
static enum MHD_Result take_body(struct http_exchange *exchange, const char *bytes, size_t size)
{
	int64_t limit = exchange->internal->server->settings.max_body_bytes;
	if (!exchange->body_unwanted && !exchange->body_too_large && (int64_t)(exchange->body.size + size) > limit) {
		exchange->body_too_large = true;
		exchange->internal->swallowed = (int64_t)exchange->body.size;
		buffer_release(&exchange->body);
	}
	if (!exchange->body_unwanted && !exchange->body_too_large) {
		buffer_append(&exchange->body, bytes, size);
		return exchange->body.failed ? MHD_NO : MHD_YES;
	}
	exchange->internal->swallowed += (int64_t)size;
	return exchange->internal->swallowed / SWALLOWED > limit ? MHD_NO : MHD_YES;
}

/* The request has arrived completely: it is answered now, or its connection is suspended until http_resume(). */
static enum MHD_Result begin_answer(struct http_exchange *exchange)
{
	struct http_internal *internal = exchange->internal;
	struct http_server *server = internal->server;
	internal->is_whole = true;
	set_deadline(server, internal->place, false);
	atomic_fetch_add(&server->open_requests, 1);
	if (server->settings.begin(server->settings.context, exchange))
		return queue_answer(exchange);
	internal->is_open = true;
	MHD_suspend_connection(internal->connection);
	if (atomic_exchange(&internal->rest, RESTING) == WOKEN)
		MHD_resume_connection(internal->connection);
	return MHD_YES;
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *path, const char *method,
				  const char *version, const char *bytes, size_t *size, void **own)
{
	struct http_server *server = context;
	struct http_exchange *exchange = *own;
	if (!exchange)
		return begin_exchange(server, connection, path, method, version, own);
	if (*size > 0) {
		size_t count = *size;
		*size = 0;
		return take_body(exchange, bytes, count);
	}
	if (!exchange->internal->is_whole)
		return begin_answer(exchange);
	if (!exchange->internal->is_open)
		return MHD_YES;
	exchange->internal->is_open = false;
	server->settings.finish(server->settings.context, exchange);
	return queue_answer(exchange);
}

static void log_access(const struct http_exchange *exchange, bool delivered)
{
	const struct http_internal *internal = exchange->internal;
	char path[200], method[40];
	if (log_level < LOG_VERBOSE)
		return;
	log_detail("%s %s %s %d %lld bytes %.1f ms%s", internal->place->client,
		   text_escape(method, sizeof method, exchange->method, false),
		   text_escape(path, sizeof path, exchange->path, false), exchange->answer.status,
		   (long long)internal->answer_bytes, 1e3 * (clock_seconds() - internal->started),
		   delivered ? "" : ", the client was gone");
}

static void on_completed(void *context, struct MHD_Connection *connection, void **own, enum MHD_RequestTerminationCode code)
{
	struct http_server *server = context;
	struct http_exchange *exchange = *own;
	bool delivered = code == MHD_REQUEST_TERMINATED_COMPLETED_OK;
	(void)connection;
	if (!exchange)
		return;
	log_access(exchange, delivered);
	server->settings.end(server->settings.context, exchange, delivered);
	set_deadline(server, exchange->internal->place, true);
	atomic_store(&exchange->internal->place->begun, false);
	if (exchange->internal->is_whole)
		atomic_fetch_sub(&server->open_requests, 1);
	buffer_release(&exchange->body);
	buffer_release(&exchange->answer.body);
	free(exchange);
	*own = NULL;
}

void http_resume(struct http_exchange *exchange)
{
	/* Read this first: once the connection runs again, the exchange may end at any time. */
	struct MHD_Connection *connection = exchange->internal->connection;
	if (atomic_exchange(&exchange->internal->rest, WOKEN) == RESTING)
		MHD_resume_connection(connection);
}

/* Messages of the library, mostly about clients that disconnect. */
static void on_message(void *context, const char *format, va_list list) __attribute__((format(printf, 2, 0)));
static void on_message(void *context, const char *format, va_list list)
{
	char text[512], shown[1024];
	(void)context;
	if (log_level < LOG_VERBOSE)
		return;
	vsnprintf(text, sizeof text, format, list);
	text[strcspn(text, "\n")] = '\0';
	log_detail("%s", text_escape(shown, sizeof shown, text, false));
}

/* ---- Listening ---- */

static enum status bad_address(const char *listen)
{
	return error_hinted(
		error_set(ERR_USAGE, "--listen %.200s: not an address and a port", listen),
		"127.0.0.1:8080, 0.0.0.0:8080 for all of IPv4, [::]:8080 for all of IPv6 and, on most systems, of IPv4; port 0 "
		"takes any that is free");
}

static enum status find_address(const char *listen, struct addrinfo **out)
{
	char host[256];
	const char *colon = strrchr(listen, ':');
	size_t size = colon ? (size_t)(colon - listen) : 0;
	const struct addrinfo wanted = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
	if (!colon || size == 0 || size >= sizeof host || !colon[1])
		return bad_address(listen);
	if (listen[0] == '[' && listen[size - 1] == ']')
		snprintf(host, sizeof host, "%.*s", (int)size - 2, listen + 1);
	else if (memchr(listen, ':', size))
		return bad_address(listen);
	else
		snprintf(host, sizeof host, "%.*s", (int)size, listen);
	unsigned long port = strtoul(colon + 1, NULL, 10);
	if (strspn(colon + 1, "0123456789") != strlen(colon + 1) || strlen(colon + 1) > 5 || port > 65535)
		return bad_address(listen);
	int code = getaddrinfo(host, colon + 1, &wanted, out);
	if (code != 0)
		return error_set(ERR_USAGE, "--listen %.200s: %s", listen, gai_strerror(code));
	return OK;
}

static enum status cannot_listen(const char *listen)
{
	enum status status = error_set_errno(ERR_RESOURCE, "cannot listen on %.200s", listen);
	if (errno == EADDRINUSE)
		error_hint("another program uses this port: stop it, or choose another with --listen");
	else if (errno == EACCES)
		error_hint("ports below 1024 are reserved for the system: choose a higher one with --listen");
	else
		error_hint("--listen takes an address of this machine");
	return status;
}

static enum status listen_on(struct http_server *server, const struct addrinfo *address)
{
	const char *listening = server->settings.listen;
	int yes = 1;
	server->listener = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (server->listener < 0)
		return cannot_listen(listening);
	/* Allows reusing a port at once while its last connections are still closing. */
	setsockopt(server->listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
	if (bind(server->listener, address->ai_addr, address->ai_addrlen) != 0 || listen(server->listener, SOMAXCONN) != 0)
		return cannot_listen(listening);
	return OK;
}

static enum status read_address(struct http_server *server)
{
	struct sockaddr_storage own = {0};
	socklen_t size = sizeof own;
	char host[INET6_ADDRSTRLEN], port[8];
	if (getsockname(server->listener, (struct sockaddr *)&own, &size) != 0 ||
	    getnameinfo((struct sockaddr *)&own, size, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) !=
		    0)
		return error_set_errno(ERR_RESOURCE, "cannot determine the server's address");
	snprintf(server->address, sizeof server->address, own.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
	return OK;
}

/* Each connection needs a file descriptor; limits their number to what the system allows this process. */
static void allow_descriptors(int64_t *connections)
{
	const int64_t others = 64;
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	if (limit.rlim_cur < limit.rlim_max && (int64_t)limit.rlim_cur < *connections + others) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
		getrlimit(RLIMIT_NOFILE, &limit);
	}
	if ((int64_t)limit.rlim_cur >= *connections + others)
		return;
	*connections = (int64_t)limit.rlim_cur > 2 * others ? (int64_t)limit.rlim_cur - others : others;
	log_warning("the system allows %lld open files: at most %lld connections (ulimit -n raises it)",
		    (long long)limit.rlim_cur, (long long)*connections);
}

enum status http_start(struct http_server *server)
{
	const struct http_settings *settings = &server->settings;
	if (pthread_create(&server->watchdog, NULL, watch, server) != 0)
		return error_set(ERR_RESOURCE, "cannot start a thread");
	server->has_watchdog = true;
	/* poll, not epoll: with epoll, libmicrohttpd 0.9.75 does not notice that a client is gone if its last bytes arrive
	 * together with its end of stream, and the connection stays occupied until the deadline. */
	server->daemon = MHD_start_daemon(
		MHD_USE_POLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL, NULL, on_request, server,
		MHD_OPTION_EXTERNAL_LOGGER, on_message, NULL, MHD_OPTION_LISTEN_SOCKET, server->listener,
		MHD_OPTION_THREAD_POOL_SIZE, (unsigned)THREADS, MHD_OPTION_CONNECTION_LIMIT, (unsigned)settings->max_connections,
		MHD_OPTION_NOTIFY_COMPLETED, on_completed, server, MHD_OPTION_NOTIFY_CONNECTION, on_connection, server,
		MHD_OPTION_URI_LOG_CALLBACK, note_target, NULL, MHD_OPTION_UNESCAPE_CALLBACK, unescape, NULL,
		MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_END);
	return server->daemon ? OK : error_set(ERR_RESOURCE, "libmicrohttpd cannot start the server on %s", server->address);
}

enum status http_open(struct http_server **out, const struct http_settings *settings)
{
	struct addrinfo *address = NULL;
	struct http_server *server;
	enum status status;
	*out = NULL;
	TRY(memory_new(&server, 1, sizeof *server, "the server"));
	server->settings = *settings;
	server->listener = -1;
	BUG_IF(pthread_mutex_init(&server->lock, NULL) != 0);
	condition_init(&server->changed);
	allow_descriptors(&server->settings.max_connections);
	TRY_GOTO(find_address(settings->listen, &address), done);
	TRY_GOTO(listen_on(server, address), done);
	status = read_address(server);
done:
	if (address)
		freeaddrinfo(address);
	if (status == OK)
		*out = server;
	else
		http_close(server);
	return status;
}

const char *http_address(const struct http_server *server)
{
	return server->address;
}

void http_close_after_answers(struct http_server *server)
{
	atomic_store(&server->quiet, true);
}

/* Connections that the system has accepted, but the server has not, would be reset when the listener is closed. */
static void refuse_waiting(const struct http_server *server)
{
	static const char text[] = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
	const struct timeval patience = {.tv_usec = 100000};
	char unread[4096];
	int connection;
	while ((connection = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
		/* What has been sent is read first: closing with unread bytes resets the connection. */
		ssize_t got = recv(connection, unread, sizeof unread, 0);
		if (got > 0 && send(connection, text, sizeof text - 1, MSG_NOSIGNAL) > 0)
			shutdown(connection, SHUT_WR);
		for (int i = 0; got > 0 && i < 64; i++)
			got = recv(connection, unread, sizeof unread, 0);
		close(connection);
	}
}

void http_quiesce(struct http_server *server)
{
	http_close_after_answers(server);
	MHD_quiesce_daemon(server->daemon);
	refuse_waiting(server);
}

bool http_is_idle(struct http_server *server)
{
	bool idle = atomic_load(&server->open_requests) == 0;
	pthread_mutex_lock(&server->lock);
	for (const struct http_connection *c = server->connections; c && idle; c = c->next) {
		int waiting = 0;
		idle = !c->begun && !(ioctl(c->descriptor, FIONREAD, &waiting) == 0 && waiting > 0);
	}
	pthread_mutex_unlock(&server->lock);
	return idle;
}

int64_t http_open_requests(struct http_server *server)
{
	return atomic_load(&server->open_requests);
}

void http_close(struct http_server *server)
{
	if (!server)
		return;
	if (server->daemon)
		MHD_stop_daemon(server->daemon);
	if (server->has_watchdog) {
		pthread_mutex_lock(&server->lock);
		server->closing = true;
		pthread_cond_signal(&server->changed);
		pthread_mutex_unlock(&server->lock);
		pthread_join(server->watchdog, NULL);
	}
	if (server->listener >= 0 && (!server->daemon || atomic_load(&server->quiet)))
		close(server->listener);
	pthread_mutex_destroy(&server->lock);
	pthread_cond_destroy(&server->changed);
	free(server);
}
