/* Labeled examples as rows of token ids: the form in which every task passes its data to the step reader. Independent of any
 * task. */
#ifndef DATA_LABELED_H
#define DATA_LABELED_H

#include "data/source.h"
#include "text/vocab.h"

/* The labels of one head: example e has the items [starts[e], starts[e + 1]). */
struct labeled_items {
	int32_t width, row_width; /* as in struct batch_labels; width 0: there is no such head */
	bool values;              /* labels are values instead of classes */
	int64_t *starts;          /* [examples + 1] */
	int32_t *rows;            /* [count * row_width] relative to the example's first token; NULL if row_width is 0 */
	int32_t *classes;         /* [count * width], or NULL */
	float *numbers;           /* [count * width], or NULL */
	float *weights;           /* [count] */
	int64_t count;
	int32_t most;        /* largest number of items of an example */
	int64_t capacity[4]; /* private */
};

/* Examples [first, first of the next part), which are trained on in batches of their own. */
struct labeled_part {
	int64_t first;
	double weight; /* of its share of the batches; 0: as many as it fills */
};

/* Zero-initialize, call labeled_form() for each head, then add example by example. */
struct labeled_set {
	int64_t example_count, sequence_count, token_count;
	int64_t *examples;  /* [examples + 1] first sequence of each example */
	int64_t *sequences; /* [sequences + 1] first token of each sequence */
	int32_t *seconds;   /* [sequences] number of tokens in the sequence's first segment */
	int32_t *ids;       /* [tokens] */
	struct labeled_items items[BATCH_HEADS];
	int32_t longest, most_sequences; /* tokens of a sequence; sequences of an example */
	struct labeled_part *parts;      /* [part_count] none of them empty; 0: the set is one part */
	const char **part_names;         /* [part_count] not copied; NULL: it has none */
	int64_t part_count;
	uint64_t beside_hash; /* of what a loss knows about the examples beside all this; 0: nothing */
	int64_t example_capacity, sequence_capacity, second_capacity, capacity, part_capacity, name_capacity; /* private */
};

/* Sets the form of a head's labels. */
void labeled_form(struct labeled_set *set, int head, int32_t width, int32_t row_width, bool values);
/* Starts a part with the example that comes next. If one part has a weight, all must. */
MUST_USE enum status labeled_part(struct labeled_set *set, const char *name, double weight);
/* Starts the next example. */
MUST_USE enum status labeled_begin(struct labeled_set *set);
/* Adds a sequence to the example: `count` ids, the first `second` of which belong to segment 0. */
MUST_USE enum status labeled_sequence(struct labeled_set *set, const int32_t *ids, int32_t count, int32_t second);
/* Adds a head's label for the example or for a part of it. `rows` [row_width], `classes` or `values` [width]. A weight of 0
 * means that the label is unknown or does not count. */
MUST_USE enum status labeled_item(struct labeled_set *set, int head, const int32_t *rows, const int32_t *classes,
				  const float *values, float weight);
void labeled_release(struct labeled_set *set);
/* Number of tokens in an example. */
int64_t labeled_tokens(const struct labeled_set *set, int64_t example);
/* Adds to *tokens the number of tokens other than [CLS] and [SEP], and to *unknown how many are [UNK]. */
void labeled_count_unknown(const struct labeled_set *set, const struct vocab *vocab, int64_t *unknown, int64_t *tokens);
/* Number of batches in an epoch: each part's last one is filled up from the part's next epoch. */
int64_t labeled_batches(const struct labeled_set *set, int64_t batch_size);
/* Whether any sequence has two segments. */
bool labeled_has_pairs(const struct labeled_set *set);
/* Hash of all data that training uses. */
uint64_t labeled_hash(const struct labeled_set *set);

struct labeled_source {
	uint64_t seed;
	bool shuffle; /* each epoch in its own order, drawn from (seed, epoch); otherwise in the set's order */
	int32_t vocab_size;
	int64_t batch_size; /* each so many samples are of one part of the set (struct step's member); 0: parts do not matter */
};
/* `set` is borrowed. An empty set is ERR_DATA. */
MUST_USE enum status instances_open_labeled(struct instances **out, const struct labeled_set *set,
					    const struct labeled_source *source);

#endif
