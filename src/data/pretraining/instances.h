/* Instances of pre-training: pairs of segments with masked positions, made on the fly from token shards or read from static
 * files. To the reader of steps each is an example of one sequence with two heads. */
#ifndef DATA_PRETRAINING_INSTANCES_H
#define DATA_PRETRAINING_INSTANCES_H

#include "data/shard.h"
#include "data/source.h"

/* Which labels of a batch are whose. */
enum pretraining_head {
	HEAD_MASKED_WORDS,  /* rows: masked positions; classes: original ids */
	HEAD_NEXT_SENTENCE, /* of each sequence: 0 = B follows A, 1 = random; -1 = no label */
};

/* What an instance is made of, and its label: pairs (BERT: does B follow A, or is it random), order (ALBERT's and
 * Megatron's: are two neighbours swapped), none (running text as long as fits), single (a sentence by itself). */
enum next_sentence { NEXT_SENTENCE_PAIRS, NEXT_SENTENCE_ORDER, NEXT_SENTENCE_NONE, NEXT_SENTENCE_SINGLE };
extern const char *const next_sentence_names[];           /* "pairs", "order", ...; ends with NULL */
enum next_sentence next_sentence_named(const char *name); /* the name is one of them */

/* Share of tokens that every evaluation masks, whatever a model was trained with: scores compare only at the same share. */
#define EVALUATION_MASKED 0.15

struct instance_settings {
	uint64_t seed;
	int32_t max_seq_length;
	int32_t min_seq_length;          /* shorter instances are left out; 0 = none */
	double masked_lm_prob;           /* 0.15 */
	int32_t max_predictions_per_seq; /* cap; 0 = none */
	double short_seq_prob;           /* 0.1 */
	bool whole_word_mask;
	int32_t max_ngram; /* up to so many words in a row are masked together, n of them with weight 1/n; 0, 1 = one */
	enum next_sentence next_sentence;
	bool shuffle;
	/* From the vocabulary: */
	int32_t vocab_size, cls, sep, mask;
	const bool *is_continuation; /* [vocab_size], for whole words; borrowed */
	bool segmented_words;        /* shards may hold vocab_size + id: entry `id`, going on with the word before */
};

/* Predictions of an instance of `length` tokens; whole words and texts of a few tokens may have fewer. */
int32_t instance_predictions(const struct instance_settings *settings, int32_t length);
/* What holds for all instances of these settings. */
struct example_bounds instance_bounds(const struct instance_settings *settings);
/* A capacity for instances, by its three sizes; the macro initialises one. */
#define INSTANCE_CAPACITY(t, s, p)                                                                                               \
	{                                                                                                                        \
		.tokens = (t), .sequences = (s), .examples = (s), .labels = {                                                    \
			[HEAD_MASKED_WORDS] = {.count = (p), .width = 1, .row_width = 1},                                        \
			[HEAD_NEXT_SENTENCE] = {.count = (s), .width = 1}                                                        \
		}                                                                                                                \
	}
struct batch_capacity instance_capacity(int32_t tokens, int32_t sequences, int32_t predictions);

/* Instances of a set of shards, masked on the fly. Epoch e walks every document once (BERT's algorithm:
 * docs/math.md, "Instances"), each walk drawn from (seed, epoch, document), and the epoch's instances are permuted
 * by (seed, epoch). An epoch is walked at its beginning, in parallel; what is remembered of it is a place of every
 * 32nd instance: 0.75 bytes an instance (27 MB for four billion tokens in sequences of 128).
 * `shards` are borrowed. A sequence length that leaves no room for text is ERR_USAGE, shards without a token
 * are ERR_DATA. */
MUST_USE enum status instances_open(struct instances **out, const struct shard *shards, int64_t shard_count,
				    const struct instance_settings *settings);
/* Warns where they are to be trained on and next-sentence pairs can be of one document only. */
void instances_warn_of_pairs(const struct shard *shards, int64_t shard_count, const struct instance_settings *settings);
/* Static instances, as they are: each epoch is all instances of all files, in their order or (settings->shuffle)
 * permuted by (seed, epoch). Of `settings` only seed, shuffle and vocab_size count; what instances_bounds() then
 * says of lengths and predictions is what the files hold. `files` are borrowed. No instance at all is ERR_DATA. */
struct static_file;
MUST_USE enum status instances_open_static(struct instances **out, const struct static_file *files, int64_t file_count,
					   const struct instance_settings *settings);
/* Lengths and predictions of the files' instances as settings, before they are opened. */
void instances_static_bounds(const struct static_file *files, int64_t file_count, struct instance_settings *out);

/* One instance spelled out. Buffers have max_seq_length entries. */
struct instance {
	int32_t length;       /* with [CLS] and both [SEP] */
	int32_t *ids, *types; /* masked ids */
	int32_t prediction_count;
	int32_t *prediction_positions, *prediction_labels;
	float *prediction_weights; /* may be NULL when not wanted */
	int32_t next_label;        /* 0 = B follows A, 1 = random; -1 = no label */
	/* Of a pair that was read from a file (static_writer_add_pair): nothing is masked yet, and which run of B is to be is
	 * drawn by whoever trains. */
	bool draws_span;
};
/* A sample of a source of instances, into the buffers of `out`. */
MUST_USE enum status instances_get(struct instances *instances, int64_t sample, struct instance *out);

/* The example's buffers as those of an instance, to be filled; and then the sizes and the second label back. */
static inline struct instance instance_in(const struct example *example)
{
	const struct batch_labels *words = &example->labels[HEAD_MASKED_WORDS];
	return (struct instance){.ids = example->ids,
				 .types = example->types,
				 .prediction_positions = words->rows,
				 .prediction_labels = words->classes,
				 .prediction_weights = words->weights};
}
void instance_to_example(const struct instance *instance, struct example *out);

#endif
