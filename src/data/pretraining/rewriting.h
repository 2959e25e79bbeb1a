/* Pairs for learning to rewrite, as bert-ad's create_pretraining_data_mass.py makes them: lines "label TAB id TAB text_a
 * TAB text_b" become [CLS] A [SEP] B [SEP] with one contiguous span of B, as long as A, masked 80/10/10; the label (zero
 * or not) stands in place of the next-sentence label. */
#ifndef DATA_PRETRAINING_REWRITING_H
#define DATA_PRETRAINING_REWRITING_H

#include "data/pretraining/instances.h"
#include "text/tokenizer.h"

struct rewriting_settings {
	const char *const *paths;
	int64_t path_count;
	const struct tokenizer *tokenizer;
	const char *prefix; /* of a token shard that holds the texts meanwhile */
	uint64_t seed;
	int32_t max_seq_length, max_predictions_per_seq;
};

struct rewriting_counts {
	int64_t lines, pairs;
	int64_t malformed; /* not four fields, or a label that is no number: left out */
	int64_t unfit;     /* A shorter than two tokens, or not shorter than what of B has room: left out, as there */
};

/* A pair of a file: B is cut to the room there is. */
struct rewriting_pair {
	const int32_t *a, *b;
	int32_t a_count, b_count; /* a_count < b_count */
	bool label;
};
/* Reads the pairs of one file, each of which `take` gets. A first line that begins with the word "label" holds names. Lines of
 * another form are ERR_DATA if `strict`, else passed over and counted; so are always pairs that cannot be masked. */
MUST_USE enum status rewriting_read(const char *path, bool strict, const struct tokenizer *tokenizer, int32_t max_seq_length,
				    enum status (*take)(void *context, const struct rewriting_pair *pair), void *context,
				    struct rewriting_counts *counts);
/* Does the file look like one of pairs: text with three tabs and more in its first line? */
bool rewriting_is_file(const char *path);
/* [CLS] A [SEP] B [SEP], nothing masked: into buffers with room for it. `most`: predictions at most; 0: all. The masked run is
 * as long as A, or as `most`. */
void rewriting_join(const struct rewriting_pair *pair, const struct vocab *vocab, int32_t most, struct instance *out);

/* Masks a run of B, `span` tokens long, of which the first prediction_count are predicted, in an instance [CLS] A [SEP] B [SEP]
 * that has not been masked: 80/10/10. `key`: of the pair and of its use. */
struct rewriting_mask {
	int32_t span;
	uint64_t seed, key;
	int32_t mask, vocab_size;
};
void rewriting_mask_run(struct instance *instance, const struct rewriting_mask *how);

struct rewriting;
/* No usable pair is ERR_DATA. */
MUST_USE enum status rewriting_open(struct rewriting **out, const struct rewriting_settings *settings,
				    struct rewriting_counts *counts);
int64_t rewriting_count(const struct rewriting *rewriting);
/* Pair number `index` of a pass: each pass (`round`) has all pairs, in its own order, with its own spans. */
MUST_USE enum status rewriting_get(const struct rewriting *rewriting, int64_t round, int64_t index, struct instance *out);
void rewriting_close(struct rewriting *rewriting); /* NULL is fine */

#endif
