/* Downloads by libcurl. A transfer is written to PATH.part and renamed when it is complete: when it has the length that the
 * server announced and, if one is published, the right checksum. A partial download is resumed (HTTP Range, guarded by ETag or
 * Last-Modified, so that two versions of a file are never joined); failed attempts are repeated with growing pauses.
 *
 * If a server announces too short a length and sends no more, only a checksum can reveal it. A body delimited only by the end of
 * the connection (HTTP/1.0 without a length) is not accepted without a checksum.
 *
 * Next to each file, ".NAME.source.json" records the URL it came from and its size. An existing file is accepted as the one
 * requested only because of that record or its checksum, and a file without a record is never overwritten. */
#ifndef FORMATS_FETCH_H
#define FORMATS_FETCH_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"

struct fetch_settings {
	double stall_seconds; /* an attempt that receives nothing for this long has failed */
	double pause_seconds; /* before the second attempt; doubles each time, up to 64 times this; a longer Retry-After wins */
	int retries;          /* how many attempts in a row may bring nothing new before giving up, not counting the first */
};

struct fetch_request {
	const char *url;      /* http or https */
	const char *origin;   /* the URL to record (for a mirror, that of the original); NULL: url */
	const char *path;     /* its folder must exist */
	const char *checksum; /* as written by checksum_parse, or NULL */
	const char *header;   /* another header to send, "Name: value"; not sent on to another host by a redirect. May be NULL */
	bool unrecorded;      /* leaves no ".NAME.source.json": the file's own name says what it is */
	/* Called about ten times a second; total is -1 while unknown. May be NULL. */
	void (*progress)(void *context, int64_t done, int64_t total);
	void *context;
};

enum fetch_outcome {
	FETCH_DONE,
	FETCH_PRESENT, /* already present and complete, according to its checksum or, without one, the record of its origin */
	FETCH_GONE,    /* the server does not provide it: 401, 403, 404, 410, ... */
	FETCH_FAILED,  /* retries were used up, or what arrived was wrong */
};

struct fetch_result {
	enum fetch_outcome outcome;
	int64_t bytes;        /* of the file */
	int64_t resumed_from; /* bytes left by an earlier process */
	int attempts;
	long answer;      /* the HTTP status of the last attempt; 0: there was none */
	char reason[320]; /* for FETCH_GONE and FETCH_FAILED: "the server answers 404" */
};

/* Checks, before a list of files is fetched, whether this one may be: ERR_STATE if PATH exists and is not this file, as far as
 * can be told without reading it. */
MUST_USE enum status fetch_check(const struct fetch_request *request);

/* An error returned is a problem of this machine (ERR_RESOURCE: disk full, no permission), ERR_STATE (a different file has that
 * name), or STOPPED; the partial file is kept, and the next call resumes it. Failures of the network or the server are reported
 * in result->outcome. */
MUST_USE enum status fetch(const struct fetch_settings *settings, const struct fetch_request *request,
			   struct fetch_result *result);

#endif
