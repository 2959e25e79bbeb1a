/* An HTTP/1.1 server based on libmicrohttpd. It receives each request within limits, hands it to the application, which answers
 * at once or later, and keeps slow and idle clients from occupying connections. It knows nothing of JSON or models. */
#ifndef SERVE_HTTP_H
#define SERVE_HTTP_H

#include <stdbool.h>
#include <stdint.h>
#include "base/buffer.h"
#include "base/error.h"
#include "base/library_list.h"

struct http_server;

/* The response. */
struct http_answer {
	int status;               /* 200, 404, ... */
	const char *content_type; /* a string literal; NULL: no body */
	struct buffer body;       /* the server takes ownership */
	const char *allow;        /* for 405: the methods allowed, "GET, HEAD"; otherwise NULL */
	int retry_after;          /* seconds; 0: not sent */
	const char *shared_with;  /* the origin whose pages may read the answer, or "*"; NULL: no other origin's (CORS) */
	bool is_preflight;        /* tells `shared_with` which requests it may send */
};

/* One request and its answer. The strings live as long as it does. */
struct http_exchange {
	const char *method, *path;                                /* "POST", "/embed"; the path is decoded and has no query */
	const char *authorization, *content_type, *origin, *host; /* "": the client sent none */
	/* What is wrong with the headers; NULL: nothing. Where this request ends is then in doubt: it must be refused, its body
	 * is not read, and the connection is closed, so that nothing in it passes for another request. */
	const char *malformed;
	struct buffer body;
	bool body_too_large; /* `body` is empty then */
	bool body_unwanted;  /* `body` was not kept */
	struct http_answer answer;
	void *own; /* data of the application */
	struct http_internal *internal;
};

struct http_settings {
	const char *listen; /* "127.0.0.1:8080", "[::1]:8080", "localhost:0"; port 0: any free port */
	int64_t max_body_bytes, max_connections;
	/* A request must arrive completely within this time after the connection was opened or the previous answer was received;
	 * the client must receive its answer within the same time. Otherwise the connection is closed. */
	double timeout_seconds;
	/* Called when a request's headers have arrived. False: `begin` will refuse the request whatever its body is, so the body
	 * need not be kept. */
	bool (*wants_body)(void *context, const struct http_exchange *exchange);
	/* A request has arrived completely. Either fills exchange->answer and returns true, or returns false if the answer comes
	 * later; then http_resume() must be called once it can be written. Runs in one of the server's threads, like the next
	 * two. */
	bool (*begin)(void *context, struct http_exchange *exchange);
	/* After http_resume(): fills exchange->answer. */
	void (*finish)(void *context, struct http_exchange *exchange);
	/* The exchange is over: frees `own`. `delivered` is false if the client left before receiving the answer. */
	void (*end)(void *context, struct http_exchange *exchange, bool delivered);
	void *context;
};

/* Adds libmicrohttpd and its version. */
void http_libraries(struct library_list *list);
/* Listens; requests wait until http_start(). ERR_USAGE: invalid or unknown address; ERR_RESOURCE: cannot listen there, for
 * instance because the port is taken or not permitted. `settings` is copied. */
MUST_USE enum status http_open(struct http_server **out, const struct http_settings *settings);
/* Begins to answer: what the callbacks of `settings` read must be complete. */
MUST_USE enum status http_start(struct http_server *server);
/* The address it listens on, "127.0.0.1:8080". */
const char *http_address(const struct http_server *server);
/* Has `finish` called for this exchange. Call it exactly once for each exchange that `begin` left open, from any thread. */
void http_resume(struct http_exchange *exchange);
/* From now on, every connection is closed after its next answer. */
void http_close_after_answers(struct http_server *server);
/* Accepts no more connections either; those that wait to be accepted are answered with 503. */
void http_quiesce(struct http_server *server);
/* Whether every request of which anything has arrived has been answered. */
bool http_is_idle(struct http_server *server);
/* The number of requests that have arrived completely but whose answers have not been fully sent. */
int64_t http_open_requests(struct http_server *server);
/* Closes all connections. No exchange may be waiting for http_resume(). NULL is fine. */
void http_close(struct http_server *server);

#endif
