/* Pair merging over any number of words. What fits into memory is merged there (pair_merge.h); more lie in a file, which is
 * read and written in order, some dozens of times: a place of a word is never looked for. The merges are the same. */
#ifndef TEXT_WORD_MERGE_H
#define TEXT_WORD_MERGE_H

#include <stdint.h>
#include "base/error.h"
#include "base/spill.h"
#include "text/pair_merge.h"

struct word_merger;
/* `pairs` has the words' symbols and gets those that are merged; it and `spill` are borrowed. */
MUST_USE enum status word_merger_create(struct word_merger **out, struct pair_merger *pairs, const struct spill_settings *spill);
void word_merger_free(struct word_merger *merger); /* NULL is fine */

#define WORD_MERGER_LONGEST 4096
/* Adds a word (seen `count` times) as the ids of its symbols, 1 to WORD_MERGER_LONGEST. */
MUST_USE enum status word_merger_add(struct word_merger *merger, const int32_t *symbols, int32_t symbol_count, int64_t count);
/* As pair_merger_run. May be called once. */
MUST_USE enum status word_merger_run(struct word_merger *merger, int32_t size, int64_t min_count,
				     void (*progress)(void *context, int32_t symbols), void *context);
/* How often the file was gone through; 0: all was in memory. */
int64_t word_merger_rounds(const struct word_merger *merger);

#endif
