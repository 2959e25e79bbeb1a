/* The words are in a file. A round finds the next merges in two passes over it:
 *
 *   cut      takes from each word the stretches in which every pair of neighbors is open, that is, may be seen `least` times or
 *            more. These excerpts go into a table, where equal ones become one with the sum of their counts: there
 *            are far fewer of them than words. When the table is full, `least` is raised and its contents are cut again.
 *            Then pairs in the excerpts are merged in memory as long as one is seen `least` times.
 *   rewrite  applies these merges to the words, and to the bounds of pairs.
 *
 * The merges are the same as with all words in memory. A pair that is not open is seen less than `least` times. All places of an
 * open pair are in excerpts. A pair (x, y) that a merge makes across the edge of an excerpt, with x outside, was (x, y') before,
 * where y' is the first symbol of what became y, always the same one as long as no text is made in two ways; (x, y') was not
 * open, so (x, y) is seen less than `least` times, too. No text is made in two ways within a run: merging would stop after it. */
#include "text/vocabulary/word_merge.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/buffer.h"
#include "base/hash.h"
#include "base/memory.h"
#include "formats/varint.h"
#include "text/vocabulary/count_table.h"
#include "text/vocabulary/pair_bounds.h"

#define WORD_BYTES 256 /* memory for merging per word or excerpt, about */
#define WRITE_BYTES ((size_t)1 << 20)
#define ROW_LONGEST (5 * WORD_MERGER_LONGEST) /* bytes of an encoded row of symbols */
_Static_assert(ROW_LONGEST <= COUNT_TABLE_LONGEST, "an excerpt fits a table");
_Static_assert(2 * VARINT_BYTES + ROW_LONGEST <= SPILL_BUFFER, "a word fits a buffer");

/* Words one after the other, each as count, bytes of the row, row. */
struct words {
	struct buffer held; /* the last of them, in memory */
	int descriptor;     /* -1: all are in memory */
	int64_t size;       /* bytes in the file, which precede those in memory */
	int64_t count;
};

/* A row of symbols. */
struct row {
	int32_t symbols[WORD_MERGER_LONGEST];
	int32_t size;
	int64_t count; /* how often its word was seen */
};

/* The merges of the last round: a hash table from pairs to merges. */
struct replacements {
	const struct pair_merge *merges;
	uint32_t *slots; /* index + 1; at most half full */
	int64_t slot_count;
};

struct word_merger {
	struct pair_merger *pairs;
	const struct spill_settings *spill;
	int64_t memory_limit; /* 0: no limit */
	int64_t rounds;
	struct words words, rewritten;
	struct pair_bounds bounds;
	int64_t least; /* pairs with a bound of at least this are open */
	bool fixed;    /* `least` is not raised any more, whatever memory that takes */
	struct replacements replacements;
	struct count_table excerpts;
	struct buffer open_bounds; /* int64 bounds of the pairs in the excerpts */
	struct row row;
	char encoded[ROW_LONGEST];
};

enum status word_merger_create(struct word_merger **out, struct pair_merger *pairs, const struct spill_settings *spill)
{
	TRY(memory_new(out, 1, sizeof **out, "pair merging"));
	(*out)->pairs = pairs;
	(*out)->spill = spill;
	(*out)->memory_limit = spill ? spill->memory_limit : 0;
	(*out)->words.descriptor = (*out)->rewritten.descriptor = -1;
	return OK;
}

static void replacements_release(struct replacements *replacements)
{
	free(replacements->slots);
	*replacements = (struct replacements){0};
}

static void words_release(struct words *words)
{
	if (words->descriptor >= 0)
		close(words->descriptor);
	buffer_release(&words->held);
}

void word_merger_free(struct word_merger *merger)
{
	if (!merger)
		return;
	words_release(&merger->words);
	words_release(&merger->rewritten);
	replacements_release(&merger->replacements);
	pair_bounds_release(&merger->bounds);
	count_table_release(&merger->excerpts);
	buffer_release(&merger->open_bounds);
	free(merger);
}

int64_t word_merger_rounds(const struct word_merger *merger)
{
	return merger->rounds;
}

/* Encoding: numbers with seven bits per byte, lowest first. */

static size_t get_varint(const char *at, uint64_t *out)
{
	size_t size = 0;
	*out = 0;
	do
		*out |= (uint64_t)(at[size] & 127) << 7 * size;
	while (at[size++] & 128);
	return size;
}

static size_t put_row(char *out, const int32_t *symbols, int32_t symbol_count)
{
	size_t size = 0;
	for (int32_t i = 0; i < symbol_count; i++)
		size += varint_put(out + size, (uint64_t)symbols[i]);
	return size;
}

static void decode_row(struct row *row, const char *at, size_t size)
{
	row->size = 0;
	for (const char *end = at + size; at < end;) {
		uint64_t value;
		at += get_varint(at, &value);
		row->symbols[row->size++] = (int32_t)value;
	}
}

/* Words in order */

static enum status words_to_file(struct words *words, const struct spill_settings *spill)
{
	TRY(buffer_status(&words->held));
	if (words->descriptor < 0)
		TRY(spill_file(spill, &words->descriptor));
	TRY(spill_write(words->descriptor, words->held.data, words->held.size, words->size));
	words->size += (int64_t)words->held.size;
	buffer_clear(&words->held);
	return OK;
}

static enum status words_add(struct word_merger *merger, struct words *words, size_t held, const int32_t *symbols,
			     int32_t symbol_count, int64_t count)
{
	char head[2 * VARINT_BYTES];
	size_t size = put_row(merger->encoded, symbols, symbol_count);
	size_t head_size = varint_put(head, (uint64_t)count);
	head_size += varint_put(head + head_size, size);
	buffer_append(&words->held, head, head_size);
	buffer_append(&words->held, merger->encoded, size);
	words->count++;
	return words->held.size > held ? words_to_file(words, merger->spill) : OK;
}

enum status word_merger_add(struct word_merger *merger, const int32_t *symbols, int32_t symbol_count, int64_t count)
{
	size_t held = merger->memory_limit ? (size_t)merger->memory_limit / 8 : SIZE_MAX;
	BUG_IF(symbol_count < 1 || symbol_count > WORD_MERGER_LONGEST || merger->rounds > 0);
	return words_add(merger, &merger->words, held, symbols, symbol_count, count);
}

/* Calls `take` for each word, with the word in merger->row. */
static enum status for_each_word(struct word_merger *merger, enum status (*take)(struct word_merger *merger))
{
	struct words *words = &merger->words;
	struct spill_reader reader = {0};
	const char *at = words->held.data;
	size_t size = words->held.size;
	enum status status = OK;

	if (words->descriptor >= 0) {
		TRY(words_to_file(words, merger->spill));
		TRY(spill_reader_open(&reader, words->descriptor, 0, words->size));
	}
	for (;;) {
		if (words->descriptor >= 0)
			TRY_GOTO(spill_reader_see(&reader, 2 * VARINT_BYTES + ROW_LONGEST, &at, &size), done);
		if (size == 0)
			break;
		uint64_t count, row_size;
		size_t head = get_varint(at, &count);
		head += get_varint(at + head, &row_size);
		BUG_IF(head + row_size > size);
		merger->row.count = (int64_t)count;
		decode_row(&merger->row, at + head, row_size);
		TRY_GOTO(take(merger), done);
		at += head + row_size;
		size -= head + row_size;
		if (words->descriptor >= 0)
			spill_reader_skip(&reader, head + row_size);
	}
done:
	spill_reader_close(&reader);
	return status;
}

/* Excerpts */

/* Adds the stretches of a row in which every pair is open. */
static enum status cut(struct word_merger *merger, const struct row *row)
{
	for (int32_t begin = 0, end; begin + 1 < row->size; begin = end) {
		for (end = begin + 1; end < row->size; end++)
			if (pair_bounds_get(&merger->bounds, row->symbols[end - 1], row->symbols[end]) < merger->least)
				break;
		if (end == begin + 1)
			continue;
		size_t size = put_row(merger->encoded, row->symbols + begin, end - begin);
		if (count_table_is_full(&merger->excerpts))
			TRY(count_table_double(&merger->excerpts));
		TRY(count_table_add(&merger->excerpts, hash64(merger->encoded, size), merger->encoded, size, row->count));
	}
	return OK;
}

/* Calls `take` for each excerpt of a table, with the excerpt in merger->row. */
static enum status for_each_excerpt(struct word_merger *merger, const struct count_table *table,
				    enum status (*take)(struct word_merger *merger))
{
	for (int64_t i = 0; i < table->slot_count; i++) {
		const struct count_slot *slot = &table->slots[i];
		if (slot->count == 0)
			continue;
		decode_row(&merger->row, count_table_string(table, slot), count_slot_size(slot));
		merger->row.count = slot->count;
		TRY(take(merger));
	}
	return OK;
}

static enum status note_bounds(struct word_merger *merger)
{
	const struct row *row = &merger->row;
	for (int32_t i = 0; i + 1 < row->size; i++) {
		int64_t bound = pair_bounds_get(&merger->bounds, row->symbols[i], row->symbols[i + 1]);
		buffer_append(&merger->open_bounds, &bound, sizeof bound);
	}
	return OK;
}

static int compare_bounds(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

/* Raises `least` above the lower half of the bounds of the excerpts' pairs; if none of the upper half is higher, fixes it. */
static enum status raise_least(struct word_merger *merger)
{
	buffer_clear(&merger->open_bounds);
	TRY(for_each_excerpt(merger, &merger->excerpts, note_bounds));
	TRY(buffer_status(&merger->open_bounds));
	int64_t *bounds = (int64_t *)(void *)merger->open_bounds.data;
	int64_t count = (int64_t)(merger->open_bounds.size / sizeof *bounds), i = count / 2;
	qsort(bounds, (size_t)count, sizeof *bounds, compare_bounds);
	while (i < count && bounds[i] <= merger->least)
		i++;
	if (i < count)
		merger->least = bounds[i];
	else
		merger->fixed = true;
	return OK;
}

static enum status cut_row(struct word_merger *merger)
{
	return cut(merger, &merger->row);
}

static enum status cut_word(struct word_merger *merger)
{
	TRY(cut(merger, &merger->row));
	while (!merger->fixed && merger->excerpts.used >= merger->memory_limit / 2 / WORD_BYTES) {
		TRY(raise_least(merger));
		struct count_table old = merger->excerpts;
		enum status status = count_table_create(&merger->excerpts, old.slot_count);
		if (status == OK)
			status = for_each_excerpt(merger, &old, cut_row);
		count_table_release(&old);
		TRY(status);
	}
	return OK;
}

static enum status add_to_pairs(struct word_merger *merger)
{
	return pair_merger_add_word(merger->pairs, merger->row.symbols, merger->row.size, merger->row.count);
}

static enum status cut_words(struct word_merger *merger)
{
	TRY(count_table_create(&merger->excerpts, 1024));
	TRY(for_each_word(merger, cut_word));
	TRY(for_each_excerpt(merger, &merger->excerpts, add_to_pairs));
	count_table_release(&merger->excerpts);
	return OK;
}

/* Rewriting */

static uint32_t *replacement_slot(const struct replacements *replacements, int32_t left, int32_t right)
{
	uint64_t mask = (uint64_t)replacements->slot_count - 1;
	for (uint64_t i = pair_hash(left, right) & mask;; i = (i + 1) & mask) {
		uint32_t *slot = &replacements->slots[i];
		if (*slot == 0)
			return slot;
		const struct pair_merge *merge = &replacements->merges[*slot - 1];
		if (merge->left == left && merge->right == right)
			return slot;
	}
}

static enum status replacements_set(struct replacements *replacements, const struct pair_merge *merges, int64_t count)
{
	replacements_release(replacements);
	*replacements = (struct replacements){.merges = merges, .slot_count = 16};
	while (replacements->slot_count < 2 * count)
		replacements->slot_count *= 2;
	TRY(memory_new(&replacements->slots, replacements->slot_count, sizeof *replacements->slots, "merges"));
	for (int64_t i = 0; i < count; i++)
		*replacement_slot(replacements, merges[i].left, merges[i].right) = (uint32_t)i + 1;
	return OK;
}

/* Adds the pairs of a row to the bounds or, if `sign` is -1, subtracts them. */
static void bound_pairs(struct word_merger *merger, const struct row *row, int sign)
{
	for (int32_t i = 0; i + 1 < row->size; i++)
		pair_bounds_add(&merger->bounds, row->symbols[i], row->symbols[i + 1], sign * row->count);
}

/* The first merge, from number `from` on, that applies to a row; NULL if there is none. */
static const struct pair_merge *first_merge(const struct replacements *replacements, const struct row *row, int64_t from)
{
	int64_t first = INT64_MAX;
	for (int32_t i = 0; i + 1 < row->size; i++) {
		int64_t merge = (int64_t)*replacement_slot(replacements, row->symbols[i], row->symbols[i + 1]) - 1;
		if (merge >= from && merge < first)
			first = merge;
	}
	return first == INT64_MAX ? NULL : &replacements->merges[first];
}

static void replace(struct row *row, const struct pair_merge *merge)
{
	int32_t written = 0;
	for (int32_t i = 0; i < row->size; i++) {
		bool here = row->symbols[i] == merge->left && i + 1 < row->size && row->symbols[i + 1] == merge->right;
		row->symbols[written++] = here ? merge->merged : row->symbols[i];
		i += here;
	}
	row->size = written;
}

static enum status rewrite_word(struct word_merger *merger)
{
	const struct replacements *replacements = &merger->replacements;
	struct row *row = &merger->row;
	const struct pair_merge *merge = first_merge(replacements, row, 0);

	if (merge) {
		bound_pairs(merger, row, -1);
		for (; merge; merge = first_merge(replacements, row, merge - replacements->merges + 1))
			replace(row, merge);
		bound_pairs(merger, row, 1);
	}
	if (row->size < 2)
		return OK; /* nothing left to merge */
	return words_add(merger, &merger->rewritten, WRITE_BYTES, row->symbols, row->size, row->count);
}

static enum status rewrite_words(struct word_merger *merger)
{
	struct words old;
	int64_t count;
	const struct pair_merge *merges = pair_merger_merges(merger->pairs, &count);

	TRY(replacements_set(&merger->replacements, merges, count));
	TRY(for_each_word(merger, rewrite_word));
	old = merger->words;
	merger->words = merger->rewritten;
	buffer_clear(&old.held);
	old.size = old.count = 0;
	merger->rewritten = old;
	return OK;
}

/* Running */

static enum status bound_word(struct word_merger *merger)
{
	bound_pairs(merger, &merger->row, 1);
	return OK;
}

/* A round begins at half the count at which the last one ended, since counts keep falling. If the bounds are too
 * coarse to separate the top pair from more pairs than fit in memory, all of those are opened anyway. */
static enum status run_in_rounds(struct word_merger *merger, int32_t size, int64_t min_count,
				 void (*progress)(void *context, int32_t symbols), void *context)
{
	struct pair_merge_limits limits = {.size = size, .excerpts = true};
	int64_t merges, begin;

	TRY(pair_bounds_create(&merger->bounds, merger->memory_limit / 2));
	TRY(for_each_word(merger, bound_word));
	merger->least = pair_bounds_highest(&merger->bounds) / 2;
	for (;;) {
		merger->rounds++;
		begin = merger->least = merger->least > min_count ? merger->least : min_count;
		TRY(cut_words(merger));
		limits.min_count = merger->least;
		TRY(pair_merger_run(merger->pairs, &limits, progress, context));
		(void)pair_merger_merges(merger->pairs, &merges);
		if (pair_merger_symbols(merger->pairs) >= size || (merges == 0 && merger->least == min_count))
			return OK;
		merger->fixed = merges == 0 && merger->least > begin;
		merger->least = merger->fixed ? pair_merger_highest(merger->pairs) : merger->least / 2;
		if (merges > 0)
			TRY(rewrite_words(merger));
	}
}

enum status word_merger_run(struct word_merger *merger, int32_t size, int64_t min_count,
			    void (*progress)(void *context, int32_t symbols), void *context)
{
	if (merger->memory_limit > 0 && merger->words.count > merger->memory_limit / WORD_BYTES)
		return run_in_rounds(merger, size, min_count, progress, context);
	TRY(for_each_word(merger, add_to_pairs));
	words_release(&merger->words);
	merger->words = (struct words){.descriptor = -1};
	return pair_merger_run(merger->pairs, &(struct pair_merge_limits){.size = size, .min_count = min_count}, progress,
			       context);
}
