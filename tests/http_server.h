/* A web server for tests, in a thread of this process, that misbehaves on request. The path decides how:
 *
 *   /plain...     the file, with ETag and Range              /short...  announces half the length and sends that
 *   /cut...       half of what is left, then hangs up        /deaf...   like cut, but ignores Range: never more
 *   /stall...     half of what is left, then silence         /changed.. a new version from the second request on
 *   /careless..   like changed, but the new version continues the old one: If-Range is ignored. /careless_date: the same with
 *                 Last-Modified instead of ETag
 *   /bare...      like cut, with Last-Modified, for which alone it takes If-Range, and an ETag without quotes
 *   /unsaid..     half of it, by HTTP/1.0 without a length   /chunks.. in chunks
 *   /away...      302 to /plain...    /loop  302 to itself   /once503.. 503 at first, then like plain
 *   /403 /404 /410 /503  that status  /429  asks to retry later, once
 *   anything else 404
 */
#ifndef TESTS_HTTP_SERVER_H
#define TESTS_HTTP_SERVER_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

struct http_server {
	int socket, port;
	pthread_t thread;
	const char *body; /* the content of every file */
	size_t size;
	const char *extra_path, *extra_body;                               /* one additional file */
	bool (*answer)(int client, const char *path, const char *request); /* asked first: true if it has answered; may be NULL */
	atomic_int requests, ranges;
	atomic_bool closing;
};

static struct http_server http_server;

static inline void http_send(int client, const char *bytes, size_t size)
{
	while (size > 0) {
		ssize_t sent = send(client, bytes, size, MSG_NOSIGNAL);
		if (sent <= 0)
			return;
		bytes += sent;
		size -= (size_t)sent;
	}
}

/* An answer that consists of a status line alone. */
static inline void http_send_status(int client, const char *status)
{
	char head[128];
	snprintf(head, sizeof head, "HTTP/1.1 %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", status);
	http_send(client, head, strlen(head));
}

static inline bool http_is(const char *path, const char *prefix)
{
	return strncmp(path, prefix, strlen(prefix)) == 0;
}

static inline void http_answer(struct http_server *server, int client)
{
	char request[4096], path[512] = "", head[512], line[128] = "";
	size_t used = 0, first = 0;
	while (used < sizeof request - 1) {
		ssize_t got = recv(client, request + used, sizeof request - 1 - used, 0);
		if (got <= 0)
			return;
		used += (size_t)got;
		request[used] = 0;
		if (strstr(request, "\r\n\r\n"))
			break;
	}
	int number = atomic_fetch_add(&server->requests, 1);
	(void)sscanf(request, "GET %500s", path);
	if (server->answer && server->answer(client, path, request))
		return;
	const char *range = strcasestr(request, "\r\nRange: bytes="), *condition = strcasestr(request, "\r\nIf-Range: ");
	const char *body = server->body, *tag = "\"one\"";
	size_t size = server->size;

	if (server->extra_path && strcmp(path, server->extra_path) == 0) {
		body = server->extra_body;
		size = strlen(body);
		range = NULL;
	} else if (http_is(path, "/4") || http_is(path, "/5")) {
		bool patience = http_is(path, "/429");
		if (!patience || number == 0) {
			snprintf(head, sizeof head, "HTTP/1.1 %.3s Such\r\n%sContent-Length: 5\r\nConnection: close\r\n\r\nsorry",
				 path + 1, patience ? "Retry-After: 1\r\n" : "");
			http_send(client, head, strlen(head));
			return;
		}
	} else if (http_is(path, "/away") || http_is(path, "/loop")) {
		snprintf(head, sizeof head,
			 "HTTP/1.1 302 Found\r\nLocation: %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
			 http_is(path, "/loop") ? "/loop" : "/plain");
		http_send(client, head, strlen(head));
		return;
	} else if (http_is(path, "/once503") && number == 0) {
		http_send_status(client, "503 Busy");
		return;
	} else if (!http_is(path, "/plain") && !http_is(path, "/cut") && !http_is(path, "/stall") && !http_is(path, "/short") &&
		   !http_is(path, "/deaf") && !http_is(path, "/changed") && !http_is(path, "/once503") &&
		   !http_is(path, "/careless") && !http_is(path, "/unsaid") && !http_is(path, "/chunks") &&
		   !http_is(path, "/bare")) {
		http_send_status(client, "404 Gone");
		return;
	}
	bool careless = http_is(path, "/careless"), changes = careless || http_is(path, "/changed");
	if (changes && number > 0)
		tag = "\"two\"";
	bool bare = http_is(path, "/bare"), dated = bare || http_is(path, "/careless_date");
	if (dated)
		tag = number > 0 && !bare ? "Tue, 02 Jan 2024 00:00:00 GMT" : "Mon, 01 Jan 2024 00:00:00 GMT";
	if (http_is(path, "/deaf") || (range && condition && !strstr(condition, tag) && !careless))
		range = NULL;
	if (range) {
		atomic_fetch_add(&server->ranges, 1);
		first = strtoul(range + 15, NULL, 10);
		if (first >= size) {
			snprintf(head, sizeof head,
				 "HTTP/1.1 416 No\r\nContent-Range: bytes */%zu\r\nContent-Length: 0\r\n"
				 "Connection: close\r\n\r\n",
				 size);
			http_send(client, head, strlen(head));
			return;
		}
		snprintf(line, sizeof line, "Content-Range: bytes %zu-%zu/%zu\r\n", first, size - 1, size);
	}
	if (http_is(path, "/unsaid")) {
		http_send(client, "HTTP/1.0 200 OK\r\n\r\n", 19);
		http_send(client, body, size / 2);
		return;
	}
	if (http_is(path, "/chunks")) {
		snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n%zx\r\n",
			 size);
		http_send(client, head, strlen(head));
		http_send(client, body, size);
		http_send(client, "\r\n0\r\n\r\n", 7);
		return;
	}
	size_t announced = size - first, sent = announced;
	if (http_is(path, "/short"))
		announced = sent = announced / 2;
	if (http_is(path, "/cut") || bare || http_is(path, "/stall") || http_is(path, "/deaf") || (changes && number == 0))
		sent = (announced + 1) / 2;
	snprintf(head, sizeof head, "HTTP/1.1 %s\r\nContent-Length: %zu\r\n%s%s: %s\r\n%sConnection: close\r\n\r\n",
		 range ? "206 Partial Content" : "200 OK", announced, bare ? "ETag: one\r\n" : "",
		 dated ? "Last-Modified" : "ETag", tag, line);
	http_send(client, head, strlen(head));
	/* The old version of the file is the new one without its first byte. */
	http_send(client, body + first + (careless && number == 0), sent);
	if (http_is(path, "/stall") && sent < announced)
		for (int i = 0; i < 600 && !atomic_load(&server->closing); i++) {
			char byte;
			if (recv(client, &byte, 1, MSG_DONTWAIT) == 0)
				break;
			usleep(10000);
		}
}

static inline void *http_serve(void *context)
{
	struct http_server *server = context;
	for (;;) {
		int client = accept(server->socket, NULL, NULL);
		if (client < 0 || atomic_load(&server->closing))
			return NULL;
		http_answer(server, client);
		close(client);
	}
}

static inline int http_server_start(const char *body, size_t size)
{
	struct http_server *server = &http_server;
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof address;
	*server = (struct http_server){.body = body, .size = size};
	server->socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (server->socket < 0 || bind(server->socket, (struct sockaddr *)&address, length) != 0 ||
	    listen(server->socket, 16) != 0 || getsockname(server->socket, (struct sockaddr *)&address, &length) != 0)
		return -1;
	server->port = ntohs(address.sin_port);
	return pthread_create(&server->thread, NULL, http_serve, server) == 0 ? 0 : -1;
}

static inline void http_server_stop(void)
{
	atomic_store(&http_server.closing, true);
	shutdown(http_server.socket, SHUT_RDWR);
	pthread_join(http_server.thread, NULL);
	close(http_server.socket);
}

/* Resets the counters: "at first" in the list above means since then. */
static inline void http_server_reset(void)
{
	atomic_store(&http_server.requests, 0);
	atomic_store(&http_server.ranges, 0);
}

#endif
