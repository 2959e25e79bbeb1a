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

struct rewriting;
/* No usable pair is ERR_DATA. */
MUST_USE enum status rewriting_open(struct rewriting **out, const struct rewriting_settings *settings,
				    struct rewriting_counts *counts);
int64_t rewriting_count(const struct rewriting *rewriting);
/* Pair number `index` of a pass: each pass (`round`) has all pairs, in its own order, with its own spans. */
MUST_USE enum status rewriting_get(const struct rewriting *rewriting, int64_t round, int64_t index, struct instance *out);
void rewriting_close(struct rewriting *rewriting); /* NULL is fine */

#endif
