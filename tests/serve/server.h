/* The program as a server, and its well-behaved and badly behaved clients. */
#ifndef TESTS_SERVE_SERVER_H
#define TESTS_SERVE_SERVER_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/buffer.h"
#include "base/log.h"
#include "test.h"

struct server {
	pid_t process;
	int port;
	char log[100]; /* its standard error */
};

/* Everything that the server has written to its log so far. */
static inline const char *server_said(const struct server *server)
{
	static struct buffer text;
	assert_ok(file_read(server->log, 1 << 24, &text));
	return buffer_string(&text);
}

/* Starts "bertc serve ARGUMENTS" (words separated by spaces) on a free port, and waits until it serves. */
static inline void server_start(struct server *server, const char *arguments)
{
	static int number;
	char command[8192];
	const char *bertc = getenv("BERTC"), *mark = "serving at http://127.0.0.1:";
	*server = (struct server){0};
	snprintf(server->log, sizeof server->log, "%s/server-%d.log", test_folder, number++);
	snprintf(command, sizeof command, "exec %s serve --listen 127.0.0.1:0 %s </dev/null 2>%s", bertc ? bertc : "build/bertc",
		 arguments, server->log);
	server->process = fork();
	assert_true(server->process >= 0);
	if (server->process == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails does not stop its server */
		execl("/bin/sh", "sh", "-c", command, NULL);
		_exit(127);
	}
	for (int i = 0; i < 3000; i++) {
		clock_pause(0.02);
		const char *said = file_exists(server->log) ? strstr(server_said(server), mark) : NULL;
		if (said && strchr(said, '\n')) {
			server->port = (int)strtol(said + strlen(mark), NULL, 10);
			return;
		}
		if (waitpid(server->process, NULL, WNOHANG) != 0)
			break;
	}
	fail_msg("the server did not start: %s", server_said(server));
}

/* Waits for its end; returns the exit code. */
static inline int server_wait(struct server *server)
{
	int status;
	assert_int_equal(waitpid(server->process, &status, 0), server->process);
	server->process = 0;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Checks that it ends normally when told to. */
static inline void server_stop(struct server *server)
{
	assert_int_equal(kill(server->process, SIGTERM), 0);
	int status = server_wait(server);
	if (status != 0)
		fail_msg("exit status %d: %s", status, server_said(server));
}

static inline int client_open(const struct server *server)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)server->port)};
	int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_true(client >= 0);
	struct timeval patience = {.tv_sec = 30};
	setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	assert_int_equal(connect(client, (struct sockaddr *)&address, sizeof address), 0);
	return client;
}

/* False if the server has hung up. */
static inline bool client_send(int client, const void *bytes, size_t size)
{
	const char *from = bytes;
	while (size > 0) {
		ssize_t sent = send(client, from, size, MSG_NOSIGNAL);
		if (sent <= 0)
			return false;
		from += sent;
		size -= (size_t)sent;
	}
	return true;
}

struct answer {
	int status; /* 0: the server hung up without an answer */
	struct buffer head, body;
};

static inline void answer_release(struct answer *answer)
{
	buffer_release(&answer->head);
	buffer_release(&answer->body);
}

/* Reads one answer, by its Content-Length. */
static inline void client_read(int client, struct answer *out)
{
	struct buffer all = {0};
	char piece[4096];
	const char *end = NULL;
	size_t size = 0;
	answer_release(out);
	*out = (struct answer){0};
	for (;;) {
		if (!end && (end = strstr(buffer_string(&all), "\r\n\r\n"))) {
			const char *length = strcasestr(buffer_string(&all), "\r\nContent-Length:");
			size = (size_t)(end + 4 - all.data);
			if (length && length < end)
				size += strtoul(length + 17, NULL, 10);
			out->status = (int)strtol(all.data + strlen("HTTP/1.1 "), NULL, 10);
			if (out->status == 100) { /* Continue */
				end = NULL;
				memmove(all.data, all.data + size, all.size - size + 1);
				all.size -= size;
				continue;
			}
			buffer_append(&out->head, all.data, (size_t)(end + 4 - all.data));
			end = out->head.data;
		}
		if (end && all.size >= size)
			break;
		ssize_t got = recv(client, piece, sizeof piece, 0);
		if (got <= 0)
			break;
		buffer_append(&all, piece, (size_t)got);
	}
	if (end)
		buffer_append(&out->body, all.data + out->head.size, all.size - out->head.size);
	else
		out->status = 0;
	buffer_release(&all);
}

/* Sends "POST path" with a JSON body, or "GET path" without one, on an existing connection. `headers` are lines that end
 * in "\r\n". */
static inline bool client_ask(int client, const char *path, const char *headers, const char *body)
{
	struct buffer text = {0};
	if (body)
		buffer_format(&text,
			      "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
			      "%zu\r\n%s\r\n%s",
			      path, strlen(body), headers, body);
	else
		buffer_format(&text, "GET %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n", path, headers);
	bool sent = client_send(client, text.data, text.size);
	buffer_release(&text);
	return sent;
}

/* The same on a connection of its own; returns the answer's body. */
static inline const char *ask_with(const struct server *server, const char *path, const char *headers, const char *body,
				   int *out_status)
{
	static struct answer answer;
	int client = client_open(server);
	client_ask(client, path, headers, body);
	client_read(client, &answer);
	close(client);
	*out_status = answer.status;
	return buffer_string(&answer.body);
}

/* The same with an expected status. */
static inline const char *ask(const struct server *server, int expected, const char *path, const char *body)
{
	int status;
	const char *answer = ask_with(server, path, "", body, &status);
	if (status != expected)
		fail_msg("%s %s: %d %s; expected %d", path, body ? body : "", status, answer, expected);
	return answer;
}

/* The same with an expected part of the answer. */
static inline void assert_answer(const struct server *server, int expected, const char *path, const char *body, const char *part)
{
	const char *answer = ask(server, expected, path, body);
	if (!strstr(answer, part))
		fail_msg("%s %s: '%s' is not in: %s", path, body ? body : "", part, answer);
}

#endif
