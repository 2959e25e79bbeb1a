/* Pair merging: words are rows of symbols, in which the most frequent pair of neighbors is replaced by a new
 * symbol, again and again (Sennrich, Haddow, Birch 2016: byte-pair encoding). This is the core of learning a
 * vocabulary. Here, all words are in memory, some 150 bytes each; word_merge.h handles any number of words. */
#ifndef TEXT_VOCABULARY_PAIR_MERGE_H
#define TEXT_VOCABULARY_PAIR_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

/* The pair with the highest count goes first. Ties, and texts: */
enum pair_merging {
	/* The pair whose left text, then right text, comes first in byte order; "##" at the beginning of the right text is left
	   out. */
	MERGE_WORDPIECES,
	/* The pair with the lower left id, then right id. */
	MERGE_BYTES,
};

struct pair_merger;
MUST_USE enum status pair_merger_create(struct pair_merger **out, enum pair_merging merging);
void pair_merger_free(struct pair_merger *merger); /* NULL is fine */

/* Adds a symbol with its text: an entry of the vocabulary, "##" included. No two may have the same text. Ids count from 0. */
MUST_USE enum status pair_merger_add_symbol(struct pair_merger *merger, const char *text, size_t size);
/* Adds a word (seen `count` times) as the ids of its symbols, 1 to 65,535 of them. */
MUST_USE enum status pair_merger_add_word(struct pair_merger *merger, const int32_t *symbols, int32_t symbol_count,
					  int64_t count);
struct pair_merge_limits {
	int32_t size;      /* merge until there are this many symbols */
	int64_t min_count; /* stop when no pair is seen this often; >= 1 */
	/* The words are excerpts of a text that contain every occurrence of any pair that the text has at least min_count
	 * times. Stop after a merge whose text is already a symbol: from then on, that symbol's pairs may also occur
	 * outside the excerpts. */
	bool excerpts;
};
/* Merges, then forgets the words. `progress(context, symbols)` is called from time to time (may be NULL). */
MUST_USE enum status pair_merger_run(struct pair_merger *merger, const struct pair_merge_limits *limits,
				     void (*progress)(void *context, int32_t symbols), void *context);

/* One merge of the last run. In a run over excerpts, no pair is merged twice. */
struct pair_merge {
	int32_t left, right, merged;
};
/* The merges of the last run in order; valid until the next run. */
const struct pair_merge *pair_merger_merges(const struct pair_merger *merger, int64_t *out_count);
/* Those of all runs. */
const struct pair_merge *pair_merger_all_merges(const struct pair_merger *merger, int64_t *out_count);
/* Count of the most frequent pair that the last run left unmerged. */
int64_t pair_merger_highest(const struct pair_merger *merger);

int32_t pair_merger_symbols(const struct pair_merger *merger);
/* Text of a symbol, NUL-terminated; valid until the next symbol is added. */
const char *pair_merger_text(const struct pair_merger *merger, int32_t symbol);

#endif
