/* Pairs for learning to rewrite, as bert-ad's create_pretraining_data_mass.py makes them: lines "label TAB id TAB text_a
 * TAB text_b" become [CLS] A [SEP] B [SEP] with one contiguous span of B, as long as A, masked 80/10/10; the label (zero
 * or nonzero) takes the place of the next-sentence label. */
#ifndef DATA_PRETRAINING_REWRITING_H
#define DATA_PRETRAINING_REWRITING_H

#include "data/pretraining/instances.h"
#include "text/tokenizer.h"

struct rewriting_settings {
	const char *const *paths;
	int64_t path_count;
	const struct tokenizer *tokenizer;
	const char *prefix; /* of a token shard that holds the texts temporarily */
	uint64_t seed;
	int32_t max_seq_length, max_predictions_per_seq;
};

struct rewriting_counts {
	int64_t lines, pairs;
	int64_t malformed; /* left out: not four fields, or the label is not a number */
	int64_t unfit; /* left out, as in that script: A has fewer than two tokens, or is not shorter than B cut to the room */
};

/* A pair from a file; B is cut to the available room. */
struct rewriting_pair {
	const int32_t *a, *b;
	int32_t a_count, b_count; /* a_count < b_count */
	bool label;
};
/* Reads the pairs of one file and passes each to `take`. A first line whose first field is "label" is a header. Lines in another
 * form are ERR_DATA if `strict`, otherwise skipped and counted; pairs that cannot be masked are always skipped and counted. */
MUST_USE enum status rewriting_read(const char *path, bool strict, const struct tokenizer *tokenizer, int32_t max_seq_length,
				    enum status (*take)(void *context, const struct rewriting_pair *pair), void *context,
				    struct rewriting_counts *counts);
/* True if the file looks like a file of pairs: text with three or more tabs in its first line. */
bool rewriting_is_file(const char *path);
/* Makes [CLS] A [SEP] B [SEP], with nothing masked yet, in buffers with room for it. `most`: most predictions; 0: no limit. The
 * run to mask is as long as A, but not longer than `most`. */
void rewriting_join(const struct rewriting_pair *pair, const struct vocab *vocab, int32_t most, struct instance *out);

/* Draws a run of B of `span` tokens in an unmasked instance [CLS] A [SEP] B [SEP]; its first prediction_count tokens are masked
 * (80/10/10) and predicted. `key` identifies the pair and this use of it. */
struct rewriting_mask {
	int32_t span;
	uint64_t seed, key;
	int32_t mask, vocab_size;
};
void rewriting_mask_run(struct instance *instance, const struct rewriting_mask *how);

struct rewriting;
/* No usable pairs is ERR_DATA. */
MUST_USE enum status rewriting_open(struct rewriting **out, const struct rewriting_settings *settings,
				    struct rewriting_counts *counts);
int64_t rewriting_count(const struct rewriting *rewriting);
/* Pair number `index` of a pass: each pass (`round`) contains all pairs, in its own order and with its own spans. */
MUST_USE enum status rewriting_get(const struct rewriting *rewriting, int64_t round, int64_t index, struct instance *out);
void rewriting_close(struct rewriting *rewriting); /* NULL is fine */

#endif
