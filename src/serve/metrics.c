/* Counts requests and observes times, and writes both in Prometheus' format. */
#include "serve/metrics.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/memory.h"

#define BUCKETS 35

/* Rows with the same name must be adjacent: the format allows only one group per name. */
static const struct {
	const char *name, *labels, *help; /* help NULL: same name as the row above */
} counters[METRIC_COUNTERS] = {
	[COUNT_SINGLE] = {"te_request_count", "method=\"single\"", "Requests to compute."},
	[COUNT_BATCH] = {"te_request_count", "method=\"batch\"", NULL},
	[COUNT_EMBED] = {"te_embed_count", "", "Requests for embeddings."},
	[COUNT_PREDICT] = {"te_predict_count", "", "Requests for predictions."},
	[COUNT_RERANK] = {"te_rerank_count", "", "Requests to rank texts."},
	[COUNT_FILL] = {"te_fill_count", "", "Requests to fill in blanks."},
	[COUNT_ANSWER] = {"te_answer_count", "", "Requests to answer questions."},
	[SUCCESS_SINGLE] = {"te_request_success", "method=\"single\"", "Requests that were answered."},
	[SUCCESS_BATCH] = {"te_request_success", "method=\"batch\"", NULL},
	[SUCCESS_EMBED] = {"te_embed_success", "", "Requests for embeddings that were answered."},
	[SUCCESS_PREDICT] = {"te_predict_success", "", "Requests for predictions that were answered."},
	[SUCCESS_RERANK] = {"te_rerank_success", "", "Requests to rank texts that were answered."},
	[SUCCESS_FILL] = {"te_fill_success", "", "Requests to fill in blanks that were answered."},
	[SUCCESS_ANSWER] = {"te_answer_success", "", "Requests to answer questions that were answered."},
	[FAILURE_VALIDATION] = {"te_request_failure", "err=\"validation\"", "Requests that were refused or failed."},
	[FAILURE_OVERLOADED] = {"te_request_failure", "err=\"overloaded\"", NULL},
	[FAILURE_BACKEND] = {"te_request_failure", "err=\"backend\"", NULL},
	[FAILURE_UNHEALTHY] = {"te_request_failure", "err=\"unhealthy\"", NULL},
	[FAILURE_KEY] = {"te_request_failure", "err=\"unauthorized\"", NULL},
};

/* The buckets' upper bounds are first * factor^k, with k from 1. */
static const struct {
	const char *name, *help;
	double first, factor;
	int buckets;
} histograms[METRIC_HISTOGRAMS] = {
	[SECONDS_REQUEST] = {"te_request_duration", "Seconds from a request's arrival to its answer.", 1e-5, 1.5, BUCKETS},
	[SECONDS_TOKENIZATION] = {"te_request_tokenization_duration", "Seconds to read and tokenize a request.", 1e-5, 1.5,
				  BUCKETS},
	[SECONDS_QUEUE] = {"te_request_queue_duration", "Seconds that a request waited.", 1e-5, 1.5, BUCKETS},
	[SECONDS_INFERENCE] = {"te_request_inference_duration", "Seconds from a request's first batch to the end of its last.",
			       1e-5, 1.5, BUCKETS},
	[INPUT_LENGTH] = {"te_request_input_length", "Tokens of a text.", 4, 2, 13},
	[BATCH_SIZE] = {"te_batch_next_size", "Texts computed at a time.", 0.5, 2, 14},
	[BATCH_TOKENS] = {"te_batch_next_tokens", "Tokens computed at a time.", 8, 2, 16},
};

struct histogram {
	int64_t in[BUCKETS + 1], count;
	double sum;
};

struct metrics {
	pthread_mutex_t lock;
	int64_t counters[METRIC_COUNTERS];
	struct histogram histograms[METRIC_HISTOGRAMS];
};

enum status metrics_open(struct metrics **out)
{
	TRY(memory_new(out, 1, sizeof **out, "metrics"));
	BUG_IF(pthread_mutex_init(&(*out)->lock, NULL) != 0);
	return OK;
}

void metrics_close(struct metrics *metrics)
{
	if (metrics)
		pthread_mutex_destroy(&metrics->lock);
	free(metrics);
}

void metrics_count(struct metrics *metrics, enum metric_counter counter)
{
	pthread_mutex_lock(&metrics->lock);
	metrics->counters[counter]++;
	pthread_mutex_unlock(&metrics->lock);
}

static double bound_of(enum metric_histogram histogram, int bucket)
{
	return histograms[histogram].first * pow(histograms[histogram].factor, bucket + 1);
}

void metrics_observe(struct metrics *metrics, enum metric_histogram histogram, double value)
{
	struct histogram *own = &metrics->histograms[histogram];
	int bucket = 0;
	while (bucket < histograms[histogram].buckets && value > bound_of(histogram, bucket))
		bucket++;
	pthread_mutex_lock(&metrics->lock);
	own->in[bucket]++;
	own->count++;
	own->sum += value;
	pthread_mutex_unlock(&metrics->lock);
}

static void write_head(struct buffer *out, const char *name, const char *help, const char *type)
{
	buffer_format(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void write_histogram(const struct histogram *own, enum metric_histogram histogram, struct buffer *out)
{
	const char *name = histograms[histogram].name;
	int64_t below = 0;
	write_head(out, name, histograms[histogram].help, "histogram");
	for (int i = 0; i < histograms[histogram].buckets; i++) {
		below += own->in[i];
		buffer_format(out, "%s_bucket{le=\"%.9g\"} %lld\n", name, bound_of(histogram, i), (long long)below);
	}
	buffer_format(out, "%s_bucket{le=\"+Inf\"} %lld\n", name, (long long)own->count);
	buffer_format(out, "%s_sum %.9g\n%s_count %lld\n", name, own->sum, name, (long long)own->count);
}

void metrics_write(struct metrics *metrics, int64_t queue_size, struct buffer *out)
{
	pthread_mutex_lock(&metrics->lock);
	for (int i = 0; i < METRIC_COUNTERS; i++) {
		if (counters[i].help)
			write_head(out, counters[i].name, counters[i].help, "counter");
		buffer_format(out, *counters[i].labels ? "%s{%s} %lld\n" : "%s%s %lld\n", counters[i].name, counters[i].labels,
			      (long long)metrics->counters[i]);
	}
	for (int i = 0; i < METRIC_HISTOGRAMS; i++)
		write_histogram(&metrics->histograms[i], i, out);
	pthread_mutex_unlock(&metrics->lock);
	write_head(out, "te_queue_size", "Tokens that wait.", "gauge");
	buffer_format(out, "te_queue_size %lld\n", (long long)queue_size);
}
