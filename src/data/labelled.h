/* Labelled examples as rows of token ids: what every task gives to the reader of steps. Names no task. */
#ifndef DATA_LABELLED_H
#define DATA_LABELLED_H

#include "data/source.h"
#include "text/vocab.h"

/* The labels of one head: items of example e are starts[e] to starts[e + 1]. */
struct labelled_items {
	int32_t width, row_width; /* as in struct batch_labels; width 0: there is no such head */
	bool values;              /* labels are values instead of classes */
	int64_t *starts;          /* [examples + 1] */
	int32_t *rows;            /* [count * row_width] from the example's first token; NULL without row_width */
	int32_t *classes;         /* [count * width], or NULL */
	float *numbers;           /* [count * width], or NULL */
	float *weights;           /* [count] */
	int64_t count;
	int32_t most;        /* items of an example */
	int64_t capacity[4]; /* private */
};

/* Zero-initialise, labelled_form() for each head, then example by example. */
struct labelled_set {
	int64_t example_count, sequence_count, token_count;
	int64_t *examples;  /* [examples + 1] first sequence of each example */
	int64_t *sequences; /* [sequences + 1] first token of each sequence */
	int32_t *seconds;   /* [sequences] tokens of its first segment */
	int32_t *ids;       /* [tokens] */
	struct labelled_items items[BATCH_HEADS];
	int32_t longest, most_sequences;                                        /* of a sequence; of an example */
	int64_t example_capacity, sequence_capacity, second_capacity, capacity; /* private */
};

/* What the labels of a head look like. */
void labelled_form(struct labelled_set *set, int head, int32_t width, int32_t row_width, bool values);
/* The next example begins. */
MUST_USE enum status labelled_begin(struct labelled_set *set);
/* A sequence of the example: `count` ids, the first `second` of them of segment 0. */
MUST_USE enum status labelled_sequence(struct labelled_set *set, const int32_t *ids, int32_t count, int32_t second);
/* What a head is to say of the example, or of a part of it. `rows` [row_width], `classes` or `values` [width]. A weight of 0: the
 * label is not known, or does not count. */
MUST_USE enum status labelled_item(struct labelled_set *set, int head, const int32_t *rows, const int32_t *classes,
				   const float *values, float weight);
void labelled_release(struct labelled_set *set);
/* Tokens of an example. */
int64_t labelled_tokens(const struct labelled_set *set, int64_t example);
/* Adds up tokens but [CLS] and [SEP], of which there are two or three a sequence, and how many of them are [UNK]. */
void labelled_count_unknown(const struct labelled_set *set, const struct vocab *vocab, int64_t *unknown, int64_t *tokens);
/* Hash of everything that is trained on. */
uint64_t labelled_hash(const struct labelled_set *set);

struct labelled_source {
	uint64_t seed;
	bool shuffle; /* each epoch in an order of its own, drawn from (seed, epoch); else as they come */
	int32_t vocab_size;
};
/* `set` is borrowed. Without examples: ERR_DATA. */
MUST_USE enum status instances_open_labelled(struct instances **out, const struct labelled_set *set,
					     const struct labelled_source *source);

#endif
