/* What training reads: whole steps, cut into micro-batches of packed rows without padding. Data knows no
 * tensor.
 *
 * A step is an ordered list of instances that is a pure function of (data, settings, seed, step number); its
 * cut into ranks and micro-batches is a pure function of the instances' lengths and the capacities.
 */
#ifndef DATA_BATCH_H
#define DATA_BATCH_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "data/shard.h"

/* One micro-batch. T tokens in B sequences laid end to end, P predictions. Arrays have the capacities' sizes,
 * rounded up to a multiple of 128; what lies beyond T, B, P is zero and inert. On a GPU a twin of this struct
 * holds device pointers. */
struct batch {
	int32_t token_count, sequence_count, prediction_count; /* T, B, P */
	int32_t longest;                                       /* tokens of the longest sequence */
	int32_t *ids, *types;                                  /* [T] token ids; segment 0 or 1 */
	int32_t *positions;                                    /* [T] position within the sequence, from 0 */
	uint32_t *token_samples;    /* [T] sample number of the token's sequence, modulo 2^32: dropout's key */
	int32_t *starts;            /* [B+1] first token of each sequence, and T */
	uint32_t *samples;          /* [B] global sample number */
	int32_t *next_labels;       /* [B] 0 = B follows A, 1 = random; -1 = no label */
	int32_t *prediction_rows;   /* [P] token index of each masked position, ascending; distinct */
	int32_t *prediction_labels; /* [P] original ids */
	float *prediction_weights;  /* [P] 1, or what a static instance file says */
	const int32_t *host_starts; /* of a batch on a GPU: `starts` where the host can read it; else NULL */
	int32_t *id_order;          /* [T] token indices sorted by (id, index): embed_bwd adds each row once */
	int32_t *length_order;      /* [B] sequences from the longest to the shortest: made on the way to a GPU, else NULL */
};

struct batch_capacity {
	int32_t tokens, sequences, predictions; /* T_cap, B_cap, P_cap */
};

/* One optimiser update: the micro-batches that are this rank's, and the counts that the loss is divided by. */
struct step {
	int64_t number;                      /* from 1 */
	int64_t first_sample;                /* global number of its first instance; instances are consecutive */
	int64_t epoch;                       /* of the first instance */
	int64_t epoch_first;                 /* that epoch's first sample: instances_hint() resumes from these two */
	int64_t instance_count, token_count; /* of all ranks */
	/* Of the micro-batches below, since only who makes an instance knows them: ranks add theirs up. */
	double prediction_weight;                 /* sum of prediction weights */
	int64_t prediction_count, labelled_count; /* labelled: instances with a next-sentence label */
	int32_t *lengths;                         /* [instance_count] tokens of each, of all ranks */
	int32_t batch_count;
	int32_t most_batches, fewest_batches; /* of any rank */
	struct batch *batches;                /* [batch_count], or NULL for a large step: step_batch() gives them either way */
	const struct outline *outline;        /* of such a step; the reader's own */
};
/* Micro-batch `number` of a step, in any order and as often as one likes; of a large step it is made now, and valid
 * until the call after the next. */
MUST_USE enum status step_batch(const struct step *step, int32_t number, const struct batch **out);

/* What an instance is made of, and its label: pairs (BERT: does B follow A, or is it random), order (ALBERT's and
 * Megatron's: are two neighbours swapped), none (running text as long as fits), single (a sentence by itself). */
enum next_sentence { NEXT_SENTENCE_PAIRS, NEXT_SENTENCE_ORDER, NEXT_SENTENCE_NONE, NEXT_SENTENCE_SINGLE };
extern const char *const next_sentence_names[];           /* "pairs", "order", ...; ends with NULL */
enum next_sentence next_sentence_named(const char *name); /* the name is one of them */

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

/* A numbered, endless sequence of instances: one of the sources below. Sample numbers run on through the epochs.
 * Functions may be called from any thread. */
struct instances;

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
 * permuted by (seed, epoch). Of `settings` only seed, shuffle and vocab_size count; what instances_settings() then
 * says of lengths and predictions is what the files hold. `files` are borrowed. No instance at all is ERR_DATA. */
struct static_file;
MUST_USE enum status instances_open_static(struct instances **out, const struct static_file *files, int64_t file_count,
					   const struct instance_settings *settings);
/* The bounds that instances_settings() then says, before they are opened. */
void instances_static_bounds(const struct static_file *files, int64_t file_count, struct instance_settings *out);
/* Several sources mixed: of every 4096 consecutive samples each gives its share by weight (at least one), in an order
 * drawn from (seed, place). `sources` become owned when this succeeds; weights are positive. The sources' epochs go on
 * by themselves, each with as many samples as its first: any sample is found at once. instances_per_epoch() is the sum of
 * the sources', instances_locate() tells where all last began an epoch together. */
MUST_USE enum status instances_open_mixture(struct instances **out, struct instances *const *sources, const double *weights,
					    int64_t count, uint64_t seed);
void instances_close(struct instances *instances); /* NULL is fine */
/* What the instances were opened with; for other sources than shards, bounds that hold for all of them. */
const struct instance_settings *instances_settings(const struct instances *instances);
/* Instances of epoch 0: the set's size to a first approximation, the exact size of an evaluation set. */
int64_t instances_per_epoch(struct instances *instances);
/* Mean tokens of an instance, of the first `limit` samples of epoch 0. */
MUST_USE enum status instances_mean_length(struct instances *instances, int64_t limit, double *out);
/* Instances of the epoch that begins with sample `first`. */
MUST_USE enum status instances_epoch_count(struct instances *instances, int64_t first, int64_t *out);
/* Epoch of a sample, and the number of the epoch's first sample. Where an epoch begins is known from walking
 * those before it; instances_hint() (right after opening, with what struct step said) saves that after a
 * resume. A hint that contradicts what is known is ERR_STATE. */
MUST_USE enum status instances_locate(struct instances *instances, int64_t sample, int64_t *out_epoch, int64_t *out_first);
MUST_USE enum status instances_hint(struct instances *instances, int64_t epoch, int64_t first_sample);

/* One instance spelled out. Buffers have max_seq_length entries. */
struct instance {
	int32_t length;       /* with [CLS] and both [SEP] */
	int32_t *ids, *types; /* masked ids */
	int32_t prediction_count;
	int32_t *prediction_positions, *prediction_labels;
	float *prediction_weights; /* may be NULL when not wanted */
	int32_t next_label;        /* 0 = B follows A, 1 = random; -1 = no label */
};
MUST_USE enum status instances_get(struct instances *instances, int64_t sample, struct instance *out);
/* Predictions of an instance of `length` tokens; whole words and texts of a few tokens may have fewer. */
int32_t instance_predictions(const struct instance_settings *settings, int32_t length);

/* Reads steps ahead in a thread of its own: while step s trains, s+1 and s+2 are made. */
struct step_reader;
struct step_settings {
	int64_t batch_size; /* instances a step (global) */
	/* Each of `ranks` (0 = one) makes its own share of a step, cut again into `replicas` (0 = one), which it computes
	 * one after the other. All shares have the same work or nearly so, and none more than its even number of instances,
	 * rounded up; some may be empty. An instance of l tokens is l * (linear_work + l) work. */
	int32_t rank, ranks, replicas;
	int64_t linear_work;
	int32_t accumulation_steps;           /* micro-batches a replica, of equal instance counts (+-1), the larger first;
						 0 = as few as the capacity allows */
	struct batch_capacity capacity;       /* of one micro-batch */
	int64_t first_step;                   /* the first to be delivered, from 1 */
	int64_t steps_before, samples_before; /* of another batch size: step steps_before + 1 begins with sample
						 samples_before */
	int64_t last_step;                    /* 0 = endless */
	int64_t sample_count;                 /* 0 = endless epochs; else the set ends after this many samples (evaluation):
						 the last step may be short */
};
/* `instances` is borrowed until the reader is closed. A capacity below one full sequence, or below what
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
size_t step_reader_bytes(const struct instance_settings *instances, const struct step_settings *settings);

/* Instances of a replica's share at most. */
int64_t step_part_instances(const struct step_settings *settings);

/* Capacity that fits any `batch_size` / `accumulation_steps` instances of these settings, not above
 * `token_limit` tokens (0 = no limit) but always one full sequence. */
struct batch_capacity batch_capacity_for(const struct instance_settings *settings, int64_t batch_size, int32_t accumulation_steps,
					 int64_t token_limit);
/* Allocates the arrays of a batch for a capacity, zeroed, in one block that begins at `ids`; batch_release
 * frees it. */
size_t batch_bytes(struct batch_capacity capacity);
MUST_USE enum status batch_create(struct batch *out, struct batch_capacity capacity);
void batch_release(struct batch *batch);

#endif
