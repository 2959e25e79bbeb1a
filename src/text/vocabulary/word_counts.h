/* Counts how often each word occurs, using many threads.
 *
 * A thread counts into a small table of its own that fits its cache; when that is full, it is added to the shared table,
 * which is divided into parts with a lock each. Sums do not depend on the order, so neither does the result. Each distinct
 * word is stored once in the shared table, whatever the number of threads. A part that outgrows its share of the memory limit is
 * written to a temporary file, sorted, and starts empty again; what a part has in the file is merged by levels, and into a single
 * run when it is first read. Nothing is pruned. */
#ifndef TEXT_VOCABULARY_WORD_COUNTS_H
#define TEXT_VOCABULARY_WORD_COUNTS_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "base/spill.h"

struct word_counts;
/* `spill` is borrowed; its memory_limit is for the whole shared table. NULL: everything stays in memory. */
MUST_USE enum status word_counts_create(struct word_counts **out, const struct spill_settings *spill);
void word_counts_free(struct word_counts *counts); /* NULL is fine */

/* The table of one thread. */
struct word_counter;
MUST_USE enum status word_counter_create(struct word_counter **out, struct word_counts *counts);
/* Words have at most WORD_COUNTS_LONGEST bytes. */
#define WORD_COUNTS_LONGEST 4096
MUST_USE enum status word_counter_add(struct word_counter *counter, const char *word, size_t size);
/* Adds the contents of the thread's table to the shared one. */
MUST_USE enum status word_counter_flush(struct word_counter *counter);
void word_counter_free(struct word_counter *counter); /* does not flush; NULL is fine */

/* Reading, while no thread is counting: visits each distinct word, in no particular order. */
typedef enum status word_counts_visitor(void *context, const char *word, size_t size, int64_t count);
MUST_USE enum status word_counts_visit(struct word_counts *counts, word_counts_visitor *visit, void *context);
/* The number of distinct words; reads everything that was written to the file. */
MUST_USE enum status word_counts_distinct(struct word_counts *counts, int64_t *out);
/* Bytes written to the file; 0: all words are in memory. */
int64_t word_counts_spilled(const struct word_counts *counts);

#endif
