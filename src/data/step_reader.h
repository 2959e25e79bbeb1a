/* The input of training: whole steps, cut into micro-batches.
 *
 * A step is an ordered list of examples that is a pure function of (data, settings, seed, step number); how it is cut into ranks
 * and micro-batches is a pure function of the examples' lengths and the capacities. Nothing in src/data knows about tensors.
 */
#ifndef DATA_STEP_READER_H
#define DATA_STEP_READER_H

#include "data/source.h"

/* One optimizer update: this rank's micro-batches, and the counts that the loss is divided by. */
struct step {
	int64_t number;                     /* from 1 */
	int64_t first_sample;               /* global sample number of its first example; the examples are consecutive */
	int64_t epoch;                      /* epoch of the first example */
	int32_t member;                     /* mixtures: index of its source */
	int64_t epoch_first;                /* that epoch's first sample; for resuming, pass both to instances_hint() */
	int64_t example_count, token_count; /* of all ranks */
	/* Of the micro-batches below only, since they are known only once an example is made: ranks must add theirs up. */
	double weights[BATCH_HEADS];  /* sum of the weights of each head's labels */
	int64_t labeled[BATCH_HEADS]; /* items of each head with nonzero weight */
	int32_t *lengths;             /* [example_count] tokens of each, of all ranks */
	int32_t batch_count;
	int32_t most_batches, fewest_batches; /* over all ranks */
	struct batch *batches;                /* [batch_count], or NULL for a large step; step_batch() works either way */
	const struct outline *outline;        /* of a large step; private to the reader */
};
/* Micro-batch `number` of a step, in any order and as often as needed. For a large step it is made by this call and stays valid
 * until the call after the next. */
MUST_USE enum status step_batch(const struct step *step, int32_t number, const struct batch **out);

/* Reads ahead in a thread of its own: while step s is trained on, steps s+1 and s+2 are made. */
struct step_reader;
struct step_settings {
	int64_t batch_size; /* examples per step (global) */
	/* Each of `ranks` (0 = one) makes only its own share of a step; the share is divided again among `replicas` (0 = one),
	 * which it computes one after the other. All of these have about the same work, and none has more examples than an
	 * even division, rounded up, would give it; some may be empty. A sequence of l tokens costs l * (linear_work + l). */
	int32_t rank, ranks, replicas;
	int64_t linear_work;
	int32_t accumulation_steps;           /* micro-batches per replica, with equal example counts (+-1), larger first;
						 0 = as few as the capacity allows */
	struct batch_capacity capacity;       /* of one micro-batch */
	int64_t first_step;                   /* first step to deliver, from 1 */
	int64_t steps_before, samples_before; /* steps done with another batch size, and their samples: step
						 steps_before + 1 begins with sample samples_before */
	int64_t last_step;                    /* 0 = endless */
	int64_t sample_count;                 /* 0 = endless epochs; else the data ends after this many samples
						 (evaluation), and the last step may be short */
};
/* `instances` is borrowed until the reader is closed. A capacity that is too small for one full example, or for the micro-batches
 * that accumulation_steps implies, is ERR_USAGE. All memory is allocated here. */
MUST_USE enum status step_reader_open(struct step_reader **out, struct instances *instances,
				      const struct step_settings *settings);
/* The next step, valid until the call after the next; *out = NULL after the last. If making a step fails, the error is
 * returned here, once the steps before it have been delivered. */
MUST_USE enum status step_reader_next(struct step_reader *reader, const struct step **out);
/* Seconds that callers have spent waiting in step_reader_next so far. */
double step_reader_waited(const struct step_reader *reader);
void step_reader_close(struct step_reader *reader);

/* Bytes of host memory that a reader with these settings takes; 0 if step_reader_open would refuse them. */
size_t step_reader_bytes(const struct example_bounds *bounds, const struct step_settings *settings);

/* Most examples in a replica's share. */
int64_t step_part_examples(const struct step_settings *settings);

/* Capacity for any `batch_size` / `accumulation_steps` examples of these bounds, limited to `token_limit` tokens (0 = no
 * limit) but always enough for one full example. */
struct batch_capacity batch_capacity_for(const struct example_bounds *bounds, int64_t batch_size, int32_t accumulation_steps,
					 int64_t token_limit);

#endif
