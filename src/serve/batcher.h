/* The queue in front of the models. Requests of all clients bring items (texts, pairs, windows); one thread puts them together
 * into batches by tokens and has these computed, one batch at a time. Every waiting request has an equal share of each batch,
 * and what is left of it goes to the oldest: a large request holds nobody up. Models take turns. Knows neither. */
#ifndef SERVE_BATCHER_H
#define SERVE_BATCHER_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"

/* What one request wants computed. The caller's, from batcher_add() until `done`. */
struct batch_job {
	int model;             /* index */
	int64_t count;         /* items, at least one */
	const int32_t *tokens; /* [count] of each item */
	/* All items are computed, or one could not be: then `error` says why, and its status is not OK. In the batcher's thread:
	 * it only passes the result on. */
	void (*done)(struct batch_job *job);
	struct error error;
	double added, begun, ended; /* clock_seconds() */
	/* Private from here. */
	struct batch_job *next;
	int64_t taken, taken_now, tokens_left;
};

/* Items [first, first + count) of a job. */
struct batch_part {
	struct batch_job *job;
	int64_t first, count;
};

struct batcher_settings {
	int models;
	int64_t max_batch_tokens; /* an item that is larger is a batch of its own */
	int64_t max_batch_items;
	int64_t max_queue_tokens; /* a job is refused while so many are waiting */
	double max_wait_seconds;  /* so long a batch that is not full waits for more */
	/* Computes items of jobs of one model. An error is that of all of them; of a single job it is put into job->error. */
	enum status (*compute)(void *context, int model, const struct batch_part *parts, int64_t part_count);
	void *context;
};

struct batcher;
MUST_USE enum status batcher_open(struct batcher **out, const struct batcher_settings *settings);
/* Puts a job into the queue. False: the queue is full, or the batcher is closing. */
bool batcher_add(struct batcher *batcher, struct batch_job *job);
/* Would a job be refused now? For whoever has yet to make it. */
bool batcher_is_full(struct batcher *batcher);
/* Tokens that wait. */
int64_t batcher_waiting(struct batcher *batcher);
/* Seconds until what waits now will have been computed, by the speed so far; 0: not known. */
double batcher_delay(struct batcher *batcher);
/* Computes what waits, then ends. No job may be added any more. NULL is fine. */
void batcher_close(struct batcher *batcher);

#endif
