/* Pre-training instances: pairs of segments with masked positions, made on the fly from token shards or read from static
 * files. To the step reader, each is an example of one sequence with labels for two heads. */
#ifndef DATA_PRETRAINING_INSTANCES_H
#define DATA_PRETRAINING_INSTANCES_H

#include "data/shard.h"
#include "data/source.h"
#include "text/token_template.h"

/* Indices of the two heads' labels in a batch. */
enum pretraining_head {
	HEAD_MASKED_WORDS,  /* rows: masked positions; classes: original ids */
	HEAD_NEXT_SENTENCE, /* one label per sequence: 0 = B follows A, or shares its words; 1 = not; -1 = no label */
};

/* What an instance consists of, and its label: pairs (BERT: does B follow A, or is it random?), order (ALBERT and
 * Megatron: are two neighboring segments swapped?), none (as much running text as fits), single (a sentence by itself),
 * overlap (how many of their words do a sentence and a mixture of it with another one share?). */
enum next_sentence { NEXT_SENTENCE_PAIRS, NEXT_SENTENCE_ORDER, NEXT_SENTENCE_NONE, NEXT_SENTENCE_SINGLE, NEXT_SENTENCE_OVERLAP };
extern const char *const next_sentence_names[]; /* "pairs", "order", ...; ends with NULL */

/* Share of tokens masked in every evaluation, whatever a model was trained with: only scores at the same share are comparable. */
#define EVALUATION_MASKED 0.15

struct instance_settings {
	uint64_t seed;
	int32_t max_seq_length;
	int32_t min_seq_length;          /* shorter instances are left out; 0 = none */
	double masked_lm_prob;           /* 0.15 */
	int32_t max_predictions_per_seq; /* 0 = no limit */
	double short_seq_prob;           /* 0.1 */
	bool whole_word_mask;
	int32_t max_ngram; /* most consecutive words masked together, n of them drawn with weight 1/n; 0, 1 = single words */
	enum next_sentence next_sentence;
	double running_text_share; /* NEXT_SENTENCE_OVERLAP: share of documents that give running text, not pairs */
	bool shuffle;
	bool one_segment; /* the model takes single texts: instances of two segments are ERR_USAGE */
	/* From the vocabulary: */
	int32_t vocab_size, mask;
	struct token_template single, pair; /* for running text, and for two segments; both have a first token */
	const bool *is_continuation;        /* [vocab_size], for whole words; borrowed */
	bool segmented_words;               /* shards may hold vocab_size + id: entry `id`, which continues the previous word */
};

/* Do instances of this kind consist of two segments? */
static inline bool next_sentence_is_pair(enum next_sentence kind)
{
	return kind != NEXT_SENTENCE_NONE && kind != NEXT_SENTENCE_SINGLE;
}
static inline bool instance_is_pair(const struct instance_settings *settings)
{
	return next_sentence_is_pair(settings->next_sentence);
}
/* Special tokens of an instance of this kind. */
static inline const struct token_template *template_of(const struct instance_settings *settings, enum next_sentence kind)
{
	return next_sentence_is_pair(kind) ? &settings->pair : &settings->single;
}
static inline const struct token_template *instance_template(const struct instance_settings *settings)
{
	return template_of(settings, settings->next_sentence);
}
/* The error of an instance of two segments for such a model; `what` it is from. */
MUST_USE enum status instances_one_segment(const char *what);
/* Predictions in an instance of `length` tokens; there may be fewer with whole-word masking or in very short texts. */
int32_t instance_predictions(const struct instance_settings *settings, int32_t length);
/* Bounds of all instances made with these settings. */
struct example_bounds instance_bounds(const struct instance_settings *settings);
/* A capacity for instances from three sizes; the macro is an initializer. */
#define INSTANCE_CAPACITY(t, s, p)                                                                                               \
	{                                                                                                                        \
		.tokens = (t), .sequences = (s), .examples = (s), .labels = {                                                    \
			[HEAD_MASKED_WORDS] = {.count = (p), .width = 1, .row_width = 1},                                        \
			[HEAD_NEXT_SENTENCE] = {.count = (s), .width = 1}                                                        \
		}                                                                                                                \
	}
struct batch_capacity instance_capacity(int32_t tokens, int32_t sequences, int32_t predictions);

/* Instances of a set of shards, masked on the fly. Epoch e walks every document once (BERT's algorithm:
 * docs/developers/math.md, "Instances"), each walk drawn from (seed, epoch, document), and the epoch's instances are permuted
 * by (seed, epoch). An epoch is walked when it begins, in parallel; only the place of every 32nd instance is kept:
 * 0.75 bytes per instance (27 MB for four billion tokens in sequences of 128).
 * `shards` are borrowed. A sequence length that leaves no room for text is ERR_USAGE, shards without any tokens
 * are ERR_DATA. */
MUST_USE enum status instances_open(struct instances **out, const struct shard *shards, int64_t shard_count,
				    const struct instance_settings *settings);
/* Warns if the shards hold only one document but next-sentence pairs are wanted; call it for training data. */
void instances_warn_of_pairs(const struct shard *shards, int64_t shard_count, const struct instance_settings *settings);
/* Static instances as they are: each epoch consists of all instances of all files, in file order or, if settings->shuffle,
 * permuted by (seed, epoch). Of `settings`, only seed, shuffle, vocab_size and mask matter (the seed and [MASK] also for pairs,
 * whose masks are drawn here); lengths and predictions in instances_bounds() are those of the files. `files` are borrowed. No
 * instances at all is ERR_DATA. */
struct static_file;
MUST_USE enum status instances_open_static(struct instances **out, const struct static_file *files, int64_t file_count,
					   const struct instance_settings *settings);
/* Sets those settings that follow from the files' instances, for use before instances_open_static(). */
void instances_static_bounds(const struct static_file *files, int64_t file_count, struct instance_settings *out);

/* One complete instance. Buffers have max_seq_length entries. */
struct instance {
	int32_t length;       /* with [CLS] and both [SEP] */
	int32_t *ids, *types; /* ids after masking */
	int32_t prediction_count;
	int32_t *prediction_positions, *prediction_labels;
	float *prediction_weights; /* may be NULL if not wanted */
	int32_t next_label;        /* as HEAD_NEXT_SENTENCE says */
	/* For a pair read from a file (static_writer_add_pair): nothing is masked yet; the run of B to mask is drawn each time
	 * the pair is used. */
	bool draws_span;
};
/* Makes a sample of a source of instances in the buffers of `out`. */
MUST_USE enum status instances_get(struct instances *instances, int64_t sample, struct instance *out);

/* instance_in() gives an instance that uses the example's buffers; once it is filled in, instance_to_example() copies its sizes
 * and the next-sentence label to the example. */
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
