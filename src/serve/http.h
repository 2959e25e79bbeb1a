/* An HTTP/1.1 server on libmicrohttpd: it collects each request within limits, hands it to the one who answers, now or later,
 * and keeps slow and idle clients from holding connections. Knows no JSON and no model. */
#ifndef SERVE_HTTP_H
#define SERVE_HTTP_H

#include <stdbool.h>
#include <stdint.h>
#include "base/buffer.h"
#include "base/error.h"
#include "base/library_list.h"

struct http_server;

/* What goes back. */
struct http_answer {
	int status;               /* 200, 404, ... */
	const char *content_type; /* a literal; NULL: there is no body */
	struct buffer body;       /* taken by the server */
	const char *allow;        /* 405: the methods there are, "GET, HEAD"; else NULL */
	int retry_after;          /* seconds; 0: none said */
};

/* One request. Strings live as long as it does. */
struct http_exchange {
	const char *method, *path;                         /* "POST", "/embed": decoded, without the query */
	const char *authorization, *content_type, *origin; /* "": the client sent none */
	struct buffer body;
	bool body_too_large; /* `body` is empty then */
	bool body_unwanted;  /* nor is it kept */
	struct http_answer answer;
	void *own; /* whatever who answers keeps with it */
	struct http_internal *internal;
};

struct http_settings {
	const char *listen; /* "127.0.0.1:8080", "[::1]:8080", "localhost:0"; port 0: any that is free */
	int64_t max_body_bytes, max_connections;
	/* A request must have arrived whole so long after the connection was opened or the answer before it was taken, and an
	 * answer must be taken in that time: afterwards the connection is closed. */
	double timeout_seconds;
	/* Of a request whose headers are here: false where `begin` will refuse it whatever its body holds, which is then not
	 * kept. */
	bool (*wants_body)(void *context, const struct http_exchange *exchange);
	/* A request is here whole. Fills exchange->answer and returns true, or returns false: the answer comes later, and
	 * http_resume() is called once it can be written. In one of the server's threads, as the next two. */
	bool (*begin)(void *context, struct http_exchange *exchange);
	/* After http_resume(): fills exchange->answer. */
	void (*finish)(void *context, struct http_exchange *exchange);
	/* The exchange is over: frees `own`. `delivered` is false where the client was gone before it had the answer. */
	void (*end)(void *context, struct http_exchange *exchange, bool delivered);
	void *context;
};

/* libmicrohttpd. */
void http_libraries(struct library_list *list);
/* Starts to listen. ERR_USAGE: no such address; ERR_RESOURCE: the port is taken or not allowed. `settings` is copied. */
MUST_USE enum status http_open(struct http_server **out, const struct http_settings *settings);
/* The address it listens on, "127.0.0.1:8080". */
const char *http_address(const struct http_server *server);
/* From any thread: `finish` will be called for this exchange. Once for each that `begin` left open. */
void http_resume(struct http_exchange *exchange);
/* No new connections from now on; those that are there are closed after their next answer. */
void http_quiesce(struct http_server *server);
/* Requests that are here whole and whose answers have not all been sent. */
int64_t http_open_requests(struct http_server *server);
/* Closes all connections. Nothing may be waiting for http_resume(). NULL is fine. */
void http_close(struct http_server *server);

#endif
