/* What training reads: whole steps, cut into micro-batches.
 *
 * A step is an ordered list of examples that is a pure function of (data, settings, seed, step number); its cut into ranks
 * and micro-batches is a pure function of the examples' lengths and the capacities. Data knows no tensor.
 */
#ifndef DATA_STEP_READER_H
#define DATA_STEP_READER_H

#include "data/source.h"

/* One optimiser update: the micro-batches that are this rank's, and the counts that the loss is divided by. */
struct step {
	int64_t number;                     /* from 1 */
	int64_t first_sample;               /* global number of its first example; examples are consecutive */
	int64_t epoch;                      /* of the first example */
	int64_t epoch_first;                /* that epoch's first sample: instances_hint() resumes from these two */
	int64_t example_count, token_count; /* of all ranks */
	/* Of the micro-batches below, since only who makes an example knows them: ranks add theirs up. */
	double weights[BATCH_HEADS];   /* sum of the weights of each head's labels */
	int64_t labelled[BATCH_HEADS]; /* items of each head with a weight */
	int32_t *lengths;              /* [example_count] tokens of each, of all ranks */
	int32_t batch_count;
	int32_t most_batches, fewest_batches; /* of any rank */
	struct batch *batches;                /* [batch_count], or NULL for a large step: step_batch() gives them either way */
	const struct outline *outline;        /* of such a step; the reader's own */
};
/* Micro-batch `number` of a step, in any order and as often as one likes; of a large step it is made now, and valid
 * until the call after the next. */
MUST_USE enum status step_batch(const struct step *step, int32_t number, const struct batch **out);

/* Reads steps ahead in a thread of its own: while step s trains, s+1 and s+2 are made. */
struct step_reader;
struct step_settings {
	int64_t batch_size; /* examples per step (global) */
	/* Each of `ranks` (0 = one) makes its own share of a step, cut again into `replicas` (0 = one), which it computes
	 * one after the other. All shares have the same work or nearly so, and none more than its even number of examples,
	 * rounded up; some may be empty. A sequence of l tokens is l * (linear_work + l) work. */
	int32_t rank, ranks, replicas;
	int64_t linear_work;
	int32_t accumulation_steps;           /* micro-batches a replica, of equal example counts (+-1), the larger first;
						 0 = as few as the capacity allows */
	struct batch_capacity capacity;       /* of one micro-batch */
	int64_t first_step;                   /* the first to be delivered, from 1 */
	int64_t steps_before, samples_before; /* of another batch size: step steps_before + 1 begins with sample
						 samples_before */
	int64_t last_step;                    /* 0 = endless */
	int64_t sample_count;                 /* 0 = endless epochs; else the set ends after this many samples (evaluation):
						 the last step may be short */
};
/* `instances` is borrowed until the reader is closed. A capacity below one full example, or below what
 * accumulation_steps may need, is ERR_USAGE. All memory is taken here. */
MUST_USE enum status step_reader_open(struct step_reader **out, struct instances *instances,
				      const struct step_settings *settings);
/* The next step, valid until the call after the next; *out = NULL after the last. An error in the making of a
 * step is returned here, after the good steps before it. */
MUST_USE enum status step_reader_next(struct step_reader *reader, const struct step **out);
/* Seconds the caller spent waiting in step_reader_next so far. */
double step_reader_waited(const struct step_reader *reader);
void step_reader_close(struct step_reader *reader);

/* Host memory that a reader with these settings takes. */
size_t step_reader_bytes(const struct example_bounds *bounds, const struct step_settings *settings);

/* Examples of a replica's share at most. */
int64_t step_part_examples(const struct step_settings *settings);

/* Capacity that fits any `batch_size` / `accumulation_steps` examples of these bounds, not above
 * `token_limit` tokens (0 = no limit) but always one full example. */
struct batch_capacity batch_capacity_for(const struct example_bounds *bounds, int64_t batch_size, int32_t accumulation_steps,
					 int64_t token_limit);

#endif
