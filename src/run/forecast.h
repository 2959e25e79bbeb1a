/* Computes how long a step of data-parallel training will take: the work of every layer at the rates of the device, reductions of
 * gradients and gathers of weights over the links, and how the two overlap. docs/parallel.md has the formulas. */
#ifndef RUN_FORECAST_H
#define RUN_FORECAST_H

#include <stdbool.h>
#include "base/error.h"
#include "model/flops.h"
#include "run/device_kinds.h"

struct forecast_setup {
	const struct model *model;
	struct device_rates rates;
	struct topology topology;
	int64_t batch_size;      /* sequences per step, over all ranks */
	int64_t micro_sequences; /* most sequences in a micro-batch */
	double mean_length;      /* tokens per sequence */
	double square_length;    /* mean of the squared lengths */
	double predictions;      /* per sequence */
	double bucket_bytes;     /* gradients are reduced in pieces of whole layers of at least this size; 0: layer by layer */
	double gradient_bytes;   /* per gradient element, as communicated */
	double weight_bytes;     /* per element of a layer's weights, as communicated; of embeddings and heads 4 */
	double update_bytes;     /* read and written by the update, per element */
	int64_t replicas;        /* parts of the batch that each rank computes one after the other */
	bool reduce_every_batch; /* gradients are reduced after every micro-batch instead of once per step */
};

/* One piece of the gradients. Times are in seconds from the start of the last backward pass. */
struct forecast_bucket {
	int32_t first_layer, last_layer; /* in backward order: the heads are layer num_hidden_layers, the embeddings -1 */
	double bytes;                    /* of gradients, as communicated */
	double reduce, gather;           /* seconds */
	double ready, begin, end;        /* of the reduction */
};
#define FORECAST_BUCKETS 512

struct forecast {
	int64_t accumulation;   /* micro-batches per rank */
	struct model_work work; /* of one micro-batch */
	/* Of one micro-batch on one device: */
	double forward, heads, backward;
	double parts[5];    /* forward, heads and backward broken down by enum forecast_part */
	double other_batch; /* the whole time of a micro-batch that is not the last */
	double update;      /* of the rank's share, including the gradient norm */
	/* Of a step: */
	double computing;     /* without any communication: all micro-batches and the update */
	double communication; /* all collectives together */
	double exposed;       /* the part of it that does not overlap with computing: step - computing - uneven */
	double uneven;        /* waiting for the slowest host */
	double step;
	double alone;      /* a step of the same batch on one device */
	double efficiency; /* alone / (ranks x step) */
	double sequences_per_second, tokens_per_second;
	double model_flops;             /* of a step */
	struct collective_time largest; /* of the largest bucket's reduction */
	int bucket_count;
	struct forecast_bucket buckets[FORECAST_BUCKETS];
};
enum forecast_part { PART_PRODUCTS, PART_ATTENTION, PART_ELEMENTS, PART_HEADS, PART_EMBEDDINGS };
extern const char *const forecast_part_names[5];

/* ERR_RESOURCE: out of memory. */
MUST_USE enum status forecast_compute(const struct forecast_setup *setup, struct forecast *out);
/* Seconds for one micro-batch, forward and backward. */
double forecast_micro_batch(const struct forecast_setup *setup, const struct model_work *work);
/* Seconds for a step of the whole batch on one device, in micro-batches of at most `micro_sequences`. */
double forecast_alone(const struct forecast_setup *setup, double micro_sequences);
/* Bytes that an update reads and writes per weight element: AdamW, and LAMB including its norms. */
#define UPDATE_BYTES_ADAMW 34
#define UPDATE_BYTES_LAMB 48

#endif
