/* The queue in front of the models. Requests from all clients bring items (texts, pairs, windows); one thread groups them by
 * tokens into batches and has these computed, one batch at a time. Each waiting request gets an equal share of every batch, and
 * what is left goes to the oldest ones, so a large request does not hold up the others. Models take turns. The batcher itself
 * knows nothing of requests or models. */
#ifndef SERVE_BATCHER_H
#define SERVE_BATCHER_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"

/* The work of one request. The caller owns it; it must stay valid, and is the batcher's to change, from batcher_add() until
 * `done`. */
struct batch_job {
	int model;             /* index of the model */
	int64_t count;         /* number of items, at least one */
	const int32_t *tokens; /* [count] tokens of each item */
	/* Called when all items are computed, or when one could not be: then error.status is not OK. Runs in the batcher's
	 * thread, so it should only pass the result on. */
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
	int64_t max_batch_tokens; /* a larger item forms a batch of its own */
	int64_t max_batch_items;
	int64_t max_queue_tokens; /* jobs are refused while this many are waiting */
	double max_wait_seconds;  /* how long a batch that is not full waits for more items */
	/* Computes items of one model's jobs. A returned error applies to all of these jobs; an error of a single job goes into
	 * its job->error. */
	enum status (*compute)(void *context, int model, const struct batch_part *parts, int64_t part_count);
	void *context;
};

struct batcher;
MUST_USE enum status batcher_open(struct batcher **out, const struct batcher_settings *settings);
/* Adds a job to the queue. False: the queue is full, or the batcher is closing. */
bool batcher_add(struct batcher *batcher, struct batch_job *job);
/* Whether a job would be refused now, for callers that have yet to create it. */
bool batcher_is_full(struct batcher *batcher);
/* The number of waiting tokens. */
int64_t batcher_waiting(struct batcher *batcher);
/* Estimated seconds until everything now waiting is computed, from the recent speed; 0: unknown. */
double batcher_delay(struct batcher *batcher);
/* Computes what is waiting, then frees the batcher. No more jobs may be added. NULL is fine. */
void batcher_close(struct batcher *batcher);

#endif
