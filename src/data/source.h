/* A numbered, endless sequence of examples, and the interface that every source of examples presents to the step reader. Sample
 * numbers continue across epochs. */
#ifndef DATA_SOURCE_H
#define DATA_SOURCE_H

#include "data/batch.h"

/* Limits that hold for every example of a source. */
struct label_bounds {
	int32_t most;     /* most items per example; 0: there is no such head */
	double per_token; /* an example of n tokens has at most n * per_token + 1 items; 0: no such limit */
	int32_t width;
	int32_t row_width;
	bool values;
};
struct example_bounds {
	int32_t max_seq_length; /* most tokens per sequence */
	int32_t sequences;      /* most sequences per example */
	int32_t vocab_size;     /* all ids are below this */
	struct label_bounds labels[BATCH_HEADS];
};
/* Most tokens per example. */
static inline int64_t example_tokens(const struct example_bounds *bounds)
{
	return (int64_t)bounds->max_seq_length * bounds->sequences;
}

/* One example, built in buffers that are large enough for the bounds of its source. */
struct example {
	int32_t token_count, sequence_count;
	int32_t *lengths;                        /* [sequence_count] tokens of each sequence */
	int32_t *ids, *types;                    /* [token_count] end to end */
	struct batch_labels labels[BATCH_HEADS]; /* rows are relative to the example's first token */
};

/* Where an example comes from and how large it will be, before it is built. `member` and `sample` are for the source's own use.
 */
struct example_plan {
	union {
		/* Shards: sentences, numbered across all shards, and tokens before truncation. Without a segment B, b_first is
		 * the number of tokens of sentence a_first that belong to the previous instance. */
		struct {
			int64_t a_first, b_first;
			int64_t a_tokens, b_tokens;
			bool pair;   /* there is a segment B */
			bool random; /* B does not follow A */
		};
		int64_t index; /* other sources: the index of the example in its set */
	};
	int32_t tokens, sequences, longest; /* of the example; of its longest sequence */
	int64_t squares;                    /* sum of the squares of its sequences' lengths */
	int32_t labels[BATCH_HEADS];        /* most items of each head */
	int32_t member;                     /* mixtures: index of the source */
	int64_t sample;                     /* sample number within its own source */
};

/* Sets the sizes of an example of one sequence. */
static inline void plan_single(struct example_plan *plan, int32_t length)
{
	plan->tokens = plan->longest = length;
	plan->sequences = 1;
	plan->squares = (int64_t)length * length;
}

struct instances;

struct source_functions {
	void (*close)(struct instances *instances); /* and frees */
	int64_t (*per_epoch)(const struct instances *instances);
	/* Samples of the epoch that contains `sample`; NULL: every epoch has as many as the first. */
	enum status (*epoch_count)(struct instances *instances, int64_t sample, int64_t *out);
	enum status (*locate)(struct instances *instances, int64_t sample, int64_t *epoch, int64_t *first);
	enum status (*hint)(struct instances *instances, int64_t epoch, int64_t first);
	/* Gives every epoch as many samples as the first has instances, so that any sample is found without walking the
	 * epochs before it; called right after opening. A larger epoch leaves out a few instances (different ones each time),
	 * a smaller one repeats a few. NULL: all epochs have the same size anyway. */
	void (*even_epochs)(struct instances *instances);
	enum status (*plan)(struct instances *instances, int64_t sample, struct example_plan *out, int64_t *epoch,
			    int64_t *first);
	enum status (*make)(struct instances *instances, const struct example_plan *plan, struct example *out);
};

/* The first member of the struct of each source. The functions may be called from any thread. */
struct instances {
	const struct source_functions *functions;
	struct example_bounds bounds;
};

void instances_close(struct instances *instances); /* NULL is fine */
const struct example_bounds *instances_bounds(const struct instances *instances);
/* Examples in epoch 0: approximately the size of a training set, exactly that of an evaluation set. */
int64_t instances_per_epoch(struct instances *instances);
/* Mean number of tokens per example, over the first `limit` samples of epoch 0. */
MUST_USE enum status instances_mean_length(struct instances *instances, int64_t limit, double *out);
/* Examples in the epoch that begins with sample `first`. */
MUST_USE enum status instances_epoch_count(struct instances *instances, int64_t first, int64_t *out);
/* Epoch of a sample, and the number of the epoch's first sample. Finding where an epoch begins may require walking all
 * epochs before it; when resuming, instances_hint() avoids that (call it right after opening, with the values from struct
 * step). A hint that contradicts what is known is ERR_STATE. */
MUST_USE enum status instances_locate(struct instances *instances, int64_t sample, int64_t *out_epoch, int64_t *out_first);
MUST_USE enum status instances_hint(struct instances *instances, int64_t epoch, int64_t first_sample);

/* The plan of a sample; *epoch and *first (may be NULL) as in instances_locate(). */
MUST_USE enum status instances_plan(struct instances *instances, int64_t sample, struct example_plan *out, int64_t *epoch,
				    int64_t *first);
/* Builds the example: plan->tokens ids and types, and at most plan->labels[h] items for head h. */
MUST_USE enum status instances_make(struct instances *instances, const struct example_plan *plan, struct example *out);

/* The first sample of some epoch, for sources whose epochs all have the same number of samples: all that they need for `locate`
 * and `hint`, since every other epoch follows from it. */
struct epoch_start {
	int64_t epoch, first;
};
/* The epoch of a sample, and that epoch's first sample. For a sample before the known epoch, counting starts over at epoch 0. */
void epoch_start_locate(struct epoch_start *known, int64_t per_epoch, int64_t sample, int64_t *out_epoch, int64_t *out_first);
/* ERR_STATE if no epoch can begin there. */
MUST_USE enum status epoch_start_set(struct epoch_start *known, int64_t epoch, int64_t first);

/* Several sources mixed: each provides its share by weight of every 4096 consecutive samples, at least one (a share below half a
 * sample is ERR_USAGE), in an order drawn from (seed, block of samples). Takes ownership of `sources` if it succeeds; weights are
 * positive. Each source has its own epochs, all with as many samples as its first, so any sample is found at once.
 * instances_per_epoch() is the sum over the sources; instances_locate() gives the last sample where all began an epoch. */
MUST_USE enum status instances_open_mixture(struct instances **out, struct instances *const *sources, const double *weights,
					    int64_t count, uint64_t seed);
/* The same by batches: `batch_size` consecutive samples come from one source, and each provides its share of every `block`
 * consecutive batches. */
MUST_USE enum status instances_open_batch_mixture(struct instances **out, struct instances *const *sources, const double *weights,
						  int64_t count, uint64_t seed, int64_t batch_size, int64_t block);

#endif
