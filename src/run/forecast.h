/* What a step of data-parallel training will take, computed: work of every layer over the rates of the device, sums of
 * gradients and gathers of weights over the links, and how the two overlap. The formulas stand in docs/parallel.md. */
#ifndef RUN_FORECAST_H
#define RUN_FORECAST_H

#include <stdbool.h>
#include "base/error.h"
#include "model/flops.h"
#include "run/device_kinds.h"

/* How gradients become updated weights in every rank. */
enum forecast_scheme {
	SCHEME_SHARDED,      /* bertc's: reduce-scatter, each rank updates its share, all-gather */
	SCHEME_ALL_REDUCE,   /* every rank updates everything */
	SCHEME_HIERARCHICAL, /* in hosts, between hosts, in hosts; each rank updates its share of a host's; all-gather */
};

struct forecast_setup {
	const struct model *model;
	struct device_rates rates;
	struct topology topology;
	enum forecast_scheme scheme;
	int64_t batch_size;      /* sequences of a step, over all ranks */
	int64_t micro_sequences; /* at most so many in a micro-batch */
	double mean_length;      /* tokens of a sequence */
	double square_length;    /* mean of the squares of lengths */
	double predictions;      /* of a sequence */
	double bucket_bytes;   /* gradients are reduced in pieces of whole layers of at least so many bytes; 0: layer by layer */
	double gradient_bytes; /* of an element of a gradient as it travels */
	double weight_bytes;   /* of an element of a weight as it travels */
	double update_bytes;   /* read and written by the update, an element */
	int64_t replicas;      /* parts that each rank computes one after the other */
	bool reduce_every_batch; /* gradients are reduced after every micro-batch, not once at the last */
};

/* One piece of the gradients. Times in seconds from the beginning of the last backward pass. */
struct forecast_bucket {
	int32_t first_layer, last_layer; /* in the order of backward: the heads are layer num_hidden_layers, embeddings -1 */
	double bytes;                    /* of gradients as they travel */
	double reduce, gather;           /* seconds */
	double ready, begin, end;        /* of the reduction */
};
#define FORECAST_BUCKETS 512

struct forecast {
	int64_t accumulation;   /* micro-batches of a rank */
	struct model_work work; /* of one */
	/* Of one micro-batch on one device: */
	double forward, heads, backward;
	double parts[5];    /* where forward, heads and backward spend it: enum forecast_part */
	double other_batch; /* all of a micro-batch before the last */
	double update;      /* of the rank's share, with the gradient norm */
	/* Of a step: */
	double computing;     /* were there no communication: all micro-batches and the update */
	double communication; /* of all collectives together */
	double exposed;       /* what is left of them beside the computing: step - computing - uneven */
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

/* ERR_RESOURCE without memory. */
MUST_USE enum status forecast_compute(const struct forecast_setup *setup, struct forecast *out);
/* Seconds of one micro-batch, forward and backward. */
double forecast_micro_batch(const struct forecast_setup *setup, const struct model_work *work);
/* Seconds of a step of the whole batch on one device, in micro-batches of at most so many sequences. */
double forecast_alone(const struct forecast_setup *setup, double micro_sequences);
/* Bytes of reading and writing an update takes, an element of the weights: AdamW, and LAMB with its norms. */
#define UPDATE_BYTES_ADAMW 34
#define UPDATE_BYTES_LAMB 48

#endif
