/* Pair merging: words as rows of symbols, in which the most frequent pair of neighbours becomes one new
 * symbol, again and again (Sennrich, Haddow, Birch 2016: byte-pair encoding). The heart of learning a
 * vocabulary. All words lie in memory here, some 150 bytes each; word_merge.h is for any number of them. */
#ifndef TEXT_PAIR_MERGE_H
#define TEXT_PAIR_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

struct pair_merger;
MUST_USE enum status pair_merger_create(struct pair_merger **out);
void pair_merger_free(struct pair_merger *merger); /* NULL is fine */

/* Adds a symbol with its text: an entry of the vocabulary, "##" included. Texts differ. Ids count from 0. */
MUST_USE enum status pair_merger_add_symbol(struct pair_merger *merger, const char *text, size_t size);
/* Adds a word (seen `count` times) as the ids of its symbols; at least one, at most 65,535. */
MUST_USE enum status pair_merger_add_word(struct pair_merger *merger, const int32_t *symbols, int32_t symbol_count,
					  int64_t count);
struct pair_merge_limits {
	int32_t size;      /* merge until there are so many symbols */
	int64_t min_count; /* merging ends when no pair is seen that often; >= 1 */
	/* The words are excerpts of a text, in which each place of a pair that the whole text has min_count times is.
	 * Ends behind a merge that makes a text which is a symbol already: from then on, what stands beside it
	 * elsewhere could be more. */
	bool excerpts;
};
/* Merges, then forgets the words. The pair with the highest count goes first; among equals the one whose left text, then
 * right text, comes first by bytes. `progress(context, symbols)` is called now and then (may be NULL). */
MUST_USE enum status pair_merger_run(struct pair_merger *merger, const struct pair_merge_limits *limits,
				     void (*progress)(void *context, int32_t symbols), void *context);

/* One merge of the last run. No pair of excerpts is merged twice in a run. */
struct pair_merge {
	int32_t left, right, merged;
};
/* Them in order; valid until the next run. */
const struct pair_merge *pair_merger_merges(const struct pair_merger *merger, int64_t *out_count);
/* How often the most frequent pair was seen that the last run left. */
int64_t pair_merger_highest(const struct pair_merger *merger);

int32_t pair_merger_symbols(const struct pair_merger *merger);
/* Text of a symbol, NUL-terminated; valid until the next symbol is added. */
const char *pair_merger_text(const struct pair_merger *merger, int32_t symbol);

#endif
