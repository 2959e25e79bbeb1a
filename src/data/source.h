/* A numbered, endless sequence of examples, and what every source of them is to the reader of steps. Sample numbers run on
 * through the epochs. */
#ifndef DATA_SOURCE_H
#define DATA_SOURCE_H

#include "data/batch.h"

/* What holds for every example of a source. */
struct label_bounds {
	int32_t most;     /* items of an example, at most; 0: there is no such head */
	double per_token; /* ... and for each token so many at most, and one more; 0: no other limit */
	int32_t width;
	int32_t row_width;
	bool values;
};
struct example_bounds {
	int32_t max_seq_length; /* tokens of a sequence, at most */
	int32_t sequences;      /* of an example, at most */
	int32_t vocab_size;     /* ids are below it */
	struct label_bounds labels[BATCH_HEADS];
};
/* Tokens of an example, at most. */
static inline int64_t example_tokens(const struct example_bounds *bounds)
{
	return (int64_t)bounds->max_seq_length * bounds->sequences;
}

/* One example, built in buffers that are large enough for its bounds. */
struct example {
	int32_t token_count, sequence_count;
	int32_t *lengths;                        /* [sequence_count] tokens of each sequence */
	int32_t *ids, *types;                    /* [token_count] end to end */
	struct batch_labels labels[BATCH_HEADS]; /* rows count from the example's first token */
};

/* Where an example comes from and how large it will be, before it is built. `member` and `sample` are for the source's own use.
 */
struct example_plan {
	union {
		/* Of shards: sentences numbered through all of them, and tokens before truncation (without a segment B, b_first
		 * counts the tokens of sentence a_first that belong to the instance before). */
		struct {
			int64_t a_first, b_first;
			int64_t a_tokens, b_tokens;
			bool random; /* B is not what follows A */
		};
		int64_t index; /* of other sources: the example's place in its set */
	};
	int32_t tokens, sequences, longest; /* of the example; of its longest sequence */
	int64_t squares;                    /* sum of the squares of its sequences' lengths */
	int32_t labels[BATCH_HEADS];        /* items, at most */
	int32_t member;                     /* of a mixture */
	int64_t sample;                     /* its number within its own source */
};

/* The size of an example of one sequence. */
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
	/* Of the epoch of this sample; NULL: all have as many as the first. */
	enum status (*epoch_count)(struct instances *instances, int64_t sample, int64_t *out);
	enum status (*locate)(struct instances *instances, int64_t sample, int64_t *epoch, int64_t *first);
	enum status (*hint)(struct instances *instances, int64_t epoch, int64_t first);
	/* From here on every epoch has as many samples as the first has instances, so that any sample is found without
	 * walking the epochs before it; called right after opening. Of a larger epoch a few instances are left out (others
	 * each time), of a smaller one a few come twice. NULL: it is so already. */
	void (*even_epochs)(struct instances *instances);
	enum status (*plan)(struct instances *instances, int64_t sample, struct example_plan *out, int64_t *epoch,
			    int64_t *first);
	enum status (*make)(struct instances *instances, const struct example_plan *plan, struct example *out);
};

/* The first member of each source. Functions may be called from any thread. */
struct instances {
	const struct source_functions *functions;
	struct example_bounds bounds;
};

void instances_close(struct instances *instances); /* NULL is fine */
const struct example_bounds *instances_bounds(const struct instances *instances);
/* Examples of epoch 0: the set's size to a first approximation, the exact size of an evaluation set. */
int64_t instances_per_epoch(struct instances *instances);
/* Mean tokens of an example, of the first `limit` samples of epoch 0. */
MUST_USE enum status instances_mean_length(struct instances *instances, int64_t limit, double *out);
/* Examples of the epoch that begins with sample `first`. */
MUST_USE enum status instances_epoch_count(struct instances *instances, int64_t first, int64_t *out);
/* Epoch of a sample, and the number of the epoch's first sample. Where an epoch begins may be known only from walking
 * those before it; instances_hint() (right after opening, with what struct step said) saves that after a
 * resume. A hint that contradicts what is known is ERR_STATE. */
MUST_USE enum status instances_locate(struct instances *instances, int64_t sample, int64_t *out_epoch, int64_t *out_first);
MUST_USE enum status instances_hint(struct instances *instances, int64_t epoch, int64_t first_sample);

/* The plan of a sample; *epoch and *first (may be NULL) as in instances_locate(). */
MUST_USE enum status instances_plan(struct instances *instances, int64_t sample, struct example_plan *out, int64_t *epoch,
				    int64_t *first);
/* Builds the example: plan->tokens ids and types, at most plan->labels items for each head. */
MUST_USE enum status instances_make(struct instances *instances, const struct example_plan *plan, struct example *out);

/* The first sample of an epoch, from which a source whose epochs all have the same number of samples finds every other epoch:
 * what such a source needs for `locate` and `hint`. */
struct epoch_start {
	int64_t epoch, first;
};
/* The epoch of a sample, and that epoch's first sample. A sample before the known epoch is counted from the first epoch. */
void epoch_start_locate(struct epoch_start *known, int64_t per_epoch, int64_t sample, int64_t *out_epoch, int64_t *out_first);
/* ERR_STATE: no epoch can begin there. */
MUST_USE enum status epoch_start_set(struct epoch_start *known, int64_t epoch, int64_t first);

/* Several sources mixed: of every 4096 consecutive samples each gives its share by weight (at least one; half of one is refused:
 * ERR_USAGE), in an order drawn from (seed, place). `sources` become owned when this succeeds; weights are positive. Each
 * source has its own epochs, each with as many samples as its first: any sample is found at once. instances_per_epoch() is the
 * sum of the sources', instances_locate() gives the place where all last began an epoch together. */
MUST_USE enum status instances_open_mixture(struct instances **out, struct instances *const *sources, const double *weights,
					    int64_t count, uint64_t seed);

#endif
