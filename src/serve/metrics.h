/* The service's metrics, in Prometheus' text format, under the names of text-embeddings-inference where it has them. Safe to use
 * from any thread. */
#ifndef SERVE_METRICS_H
#define SERVE_METRICS_H

#include <stdint.h>
#include "base/buffer.h"
#include "base/error.h"

enum metric_counter {
	COUNT_SINGLE, /* requests with one input */
	COUNT_BATCH,  /* requests with several inputs */
	COUNT_EMBED,
	COUNT_PREDICT,
	COUNT_RERANK,
	COUNT_FILL,
	COUNT_ANSWER,
	SUCCESS_SINGLE,
	SUCCESS_BATCH,
	SUCCESS_EMBED,
	SUCCESS_PREDICT,
	SUCCESS_RERANK,
	SUCCESS_FILL,
	SUCCESS_ANSWER,
	FAILURE_VALIDATION,
	FAILURE_OVERLOADED,
	FAILURE_BACKEND,
	FAILURE_UNHEALTHY,
	FAILURE_KEY,
	METRIC_COUNTERS
};

enum metric_histogram {
	SECONDS_REQUEST, /* the whole request; its parts follow */
	SECONDS_TOKENIZATION,
	SECONDS_QUEUE,
	SECONDS_INFERENCE,
	INPUT_LENGTH, /* tokens of each text */
	BATCH_SIZE,   /* texts in each batch */
	BATCH_TOKENS, /* tokens in each batch */
	METRIC_HISTOGRAMS
};

struct metrics;
MUST_USE enum status metrics_open(struct metrics **out);
void metrics_close(struct metrics *metrics);
void metrics_count(struct metrics *metrics, enum metric_counter counter);
void metrics_observe(struct metrics *metrics, enum metric_histogram histogram, double value);
/* Appends all metrics. `queue_size`: the number of waiting tokens. */
void metrics_write(struct metrics *metrics, int64_t queue_size, struct buffer *out);

#endif
