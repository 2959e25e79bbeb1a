/* Pair merging: words as rows of symbols, in which the most frequent pair of neighbours becomes one new
 * symbol, again and again (Sennrich, Haddow, Birch 2016: byte-pair encoding). The heart of learning a
 * vocabulary. */
#ifndef TEXT_PAIR_MERGE_H
#define TEXT_PAIR_MERGE_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "base/spill.h"

struct pair_merger;
/* Words and their lists, some 100 bytes a word, go to temporary files as `spill` says (borrowed; NULL: memory). */
MUST_USE enum status pair_merger_create(struct pair_merger **out, const struct spill_settings *spill);
void pair_merger_free(struct pair_merger *merger); /* NULL is fine */

/* Adds a symbol with its text: an entry of the vocabulary, "##" included. Texts differ. Ids count from 0. */
MUST_USE enum status pair_merger_add_symbol(struct pair_merger *merger, const char *text, size_t size);
/* Adds a word (seen `count` times) as the ids of its symbols; at least one, at most 65,535. */
MUST_USE enum status pair_merger_add_word(struct pair_merger *merger, const int32_t *symbols,
                                          int32_t symbol_count, int64_t count);
/* Merges until there are `size` symbols or no pair is seen min_count (>= 1) times. The pair with the highest
 * count goes first; among equals the one whose left text, then right text, comes first by bytes.
 * `progress(context, symbols)` is called now and then (may be NULL). */
MUST_USE enum status pair_merger_run(struct pair_merger *merger, int32_t size, int64_t min_count,
                                     void (*progress)(void *context, int32_t symbols), void *context);

int32_t pair_merger_symbols(const struct pair_merger *merger);
/* Text of a symbol, NUL-terminated; valid until the next symbol is added. */
const char *pair_merger_text(const struct pair_merger *merger, int32_t symbol);

#endif
