/* Files from the web, by libcurl. A transfer lands in PATH.part and is renamed when it is whole: of the length the
 * server announced and, where one is published, of the right checksum. A partial download is resumed (HTTP
 * Range, guarded by ETag or Last-Modified, so that two versions of a file are never joined); attempts that fail are
 * repeated with growing pauses.
 *
 * A server that announces too short a length and sends no more looks like an honest one; only a checksum shows it. A body
 * that nothing delimits but the end of the connection (HTTP/1.0 without a length) is not taken without a checksum.
 *
 * Beside each file, ".NAME.source.json" says which address it came from and how large it was: a file that is there is taken for
 * the one that is wanted only by that record or by its checksum, and a file without a record is never overwritten. */
#ifndef FORMATS_FETCH_H
#define FORMATS_FETCH_H

#include <stdint.h>
#include "base/error.h"

struct fetch_settings {
	double stall_seconds; /* an attempt without a byte for so long has failed */
	double pause_seconds; /* before the second attempt; doubles with each, up to 64 times; Retry-After counts */
	int retries;          /* attempts after one that brought nothing new */
};

struct fetch_request {
	const char *url;      /* http or https */
	const char *origin;   /* the address that the record names (a mirror's file is that of its origin); NULL: url */
	const char *path;     /* its folder exists */
	const char *checksum; /* as checksum_parse writes it, or NULL */
	/* Called about ten times a second; total -1 while unknown. May be NULL. */
	void (*progress)(void *context, int64_t done, int64_t total);
	void *context;
};

enum fetch_outcome {
	FETCH_DONE,
	FETCH_PRESENT, /* was there already, whole: by its checksum, or without one by the record of where it came from */
	FETCH_GONE,    /* the server will not give it: 401, 403, 404, 410, ... */
	FETCH_FAILED,  /* retries were used up, or what came was wrong */
};

struct fetch_result {
	enum fetch_outcome outcome;
	int64_t bytes;        /* of the file */
	int64_t resumed_from; /* bytes an earlier process had left */
	int attempts;
	char reason[320]; /* of FETCH_GONE and FETCH_FAILED: "the server answers 404" */
};

/* Before a list of files is fetched: may this one be? ERR_STATE if PATH is there and is not this file, as far as can be seen
 * without reading it. */
MUST_USE enum status fetch_check(const struct fetch_request *request);

/* A returned error is of this machine (ERR_RESOURCE: disk full, no permission), ERR_STATE (another file
 * of that name is there) or STOPPED; the partial file stays and
 * the next call resumes it. What the network or the server did wrong is the result's outcome. */
MUST_USE enum status fetch(const struct fetch_settings *settings, const struct fetch_request *request,
			   struct fetch_result *result);

#endif
