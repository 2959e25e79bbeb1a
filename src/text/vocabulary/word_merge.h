/* Pair merging over any number of words. If they fit in memory, they are merged there (pair_merge.h); otherwise they are in a
 * file, which is read and written sequentially, a few dozen times. The merges are the same. */
#ifndef TEXT_VOCABULARY_WORD_MERGE_H
#define TEXT_VOCABULARY_WORD_MERGE_H

#include <stdint.h>
#include "base/error.h"
#include "base/spill.h"
#include "text/vocabulary/pair_merge.h"

struct word_merger;
/* `pairs` holds the symbols of the words and receives the merged ones. It is borrowed, and so is `spill`. */
MUST_USE enum status word_merger_create(struct word_merger **out, struct pair_merger *pairs, const struct spill_settings *spill);
void word_merger_free(struct word_merger *merger); /* NULL is fine */

#define WORD_MERGER_LONGEST 4096
/* Adds a word (seen `count` times) as the ids of its symbols, 1 to WORD_MERGER_LONGEST. */
MUST_USE enum status word_merger_add(struct word_merger *merger, const int32_t *symbols, int32_t symbol_count, int64_t count);
/* As pair_merger_run, but may be called only once. */
MUST_USE enum status word_merger_run(struct word_merger *merger, int32_t size, int64_t min_count,
				     void (*progress)(void *context, int32_t symbols), void *context);
/* Number of rounds over the file; 0: everything was in memory. */
int64_t word_merger_rounds(const struct word_merger *merger);

#endif
