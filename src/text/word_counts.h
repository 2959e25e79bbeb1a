/* How often each word occurs, counted by many threads into one place.
 *
 * A thread counts into a small table of its own that fits its cache, where the frequent words stay; when that
 * is full it is added to the shared table, which lies in parts with a lock each. Sums do not depend on the
 * order, so neither does the result; memory is that of the distinct words once, whatever the number of
 * threads. A part that outgrows its share of the memory limit goes to a temporary file, sorted, and begins anew;
 * what a part has there is merged by levels, and when it is read first, to one. Nothing is pruned. */
#ifndef TEXT_WORD_COUNTS_H
#define TEXT_WORD_COUNTS_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "base/spill.h"

struct word_counts;
/* `spill` is borrowed; its memory_limit is of the whole table. NULL: all in memory. */
MUST_USE enum status word_counts_create(struct word_counts **out, const struct spill_settings *spill);
void word_counts_free(struct word_counts *counts); /* NULL is fine */

/* One thread's table. */
struct word_counter;
MUST_USE enum status word_counter_create(struct word_counter **out, struct word_counts *counts);
/* Words have at most WORD_COUNTS_LONGEST bytes. */
#define WORD_COUNTS_LONGEST 4096
MUST_USE enum status word_counter_add(struct word_counter *counter, const char *word, size_t size);
/* Adds what the table holds to the shared one. */
MUST_USE enum status word_counter_flush(struct word_counter *counter);
void word_counter_free(struct word_counter *counter); /* does not flush; NULL is fine */

/* Reading, when no thread counts: visits each distinct word, in no order that means anything. */
typedef enum status word_counts_visitor(void *context, const char *word, size_t size, int64_t count);
MUST_USE enum status word_counts_visit(struct word_counts *counts, word_counts_visitor *visit, void *context);
/* Their number; what went to the file is read for it. */
MUST_USE enum status word_counts_distinct(struct word_counts *counts, int64_t *out);
/* Bytes that went to the file; 0: all words are in memory. */
int64_t word_counts_spilled(const struct word_counts *counts);

#endif
