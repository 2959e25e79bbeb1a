/* The work of one merge is proportional to the number of words that contain the pair: each pair lists them (a superset: a
 * word stays listed when another merge has removed the pair from it), and counts are corrected for the
 * neighbors of each place that changes. The best pair comes from a heap whose entries may be out of date: usually a
 * count has fallen, which is noticed when the entry reaches the top; if it rises, a new entry is added and
 * the old one is discarded when it reaches the top.
 */
#include "text/vocabulary/pair_merge.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "base/hash.h"
#include "base/memory.h"
#include "text/vocabulary/pair_bounds.h"

#define NONE UINT32_MAX
#define BLOCK_WORDS 7

struct symbol {
	int64_t text; /* offset */
	uint32_t size;
};

struct word {
	int64_t first; /* index of its first symbol */
	int64_t count;
	uint16_t symbol_count;
};

struct pair {
	int32_t left, right;
	int64_t count;
	int64_t queued;    /* count in its valid heap entry; 0: none */
	uint32_t block;    /* its words: the newest block of a chain, or NONE */
	uint32_t in_block; /* words in that block */
	bool touched;      /* listed in `touched` */
};

/* Words of a pair, chained so that lists grow without being moved. 32 bytes. */
struct block {
	uint32_t next;
	uint32_t words[BLOCK_WORDS];
};

struct entry {
	int64_t count;
	uint32_t pair;
};

struct pair_merger {
	enum pair_merging merging;
	struct symbol *symbols;
	int64_t symbol_count, symbol_capacity;
	char *text;
	int64_t text_size, text_capacity;
	uint32_t *symbol_slots; /* hash table of texts: id + 1, 0 = free; at most half full */
	int64_t symbol_slot_count;

	struct word *words;
	int64_t word_count, word_capacity;
	int32_t *word_symbols;
	int64_t word_symbol_count, word_symbol_capacity;

	struct pair *pairs;
	int64_t pair_count, pair_capacity;
	uint32_t *pair_slots; /* hash table of (left, right): index + 1, 0 = free */
	int64_t pair_slot_count;

	struct block *blocks;
	int64_t block_count, block_capacity;
	uint32_t free_block;

	struct entry *heap;
	int64_t heap_count, heap_capacity;

	int64_t min_count; /* pairs below it are not queued */
	uint32_t *touched; /* pairs whose count rose during this merge */
	int64_t touched_count, touched_capacity;

	struct pair_merge *merges; /* of all runs */
	int64_t merge_count, merge_capacity;
	int64_t first_merge; /* of this run */
	int64_t highest;     /* highest count of a pair at the end of the run */
};

enum status pair_merger_create(struct pair_merger **out, enum pair_merging merging)
{
	TRY(memory_new(out, 1, sizeof **out, "pair merging"));
	(*out)->merging = merging;
	(*out)->free_block = NONE;
	return OK;
}

void pair_merger_free(struct pair_merger *merger)
{
	if (!merger)
		return;
	free(merger->symbols);
	free(merger->text);
	free(merger->symbol_slots);
	free(merger->words);
	free(merger->word_symbols);
	free(merger->pairs);
	free(merger->pair_slots);
	free(merger->blocks);
	free(merger->heap);
	free(merger->touched);
	free(merger->merges);
	free(merger);
}

/* Symbols */

int32_t pair_merger_symbols(const struct pair_merger *merger)
{
	return (int32_t)merger->symbol_count;
}

const char *pair_merger_text(const struct pair_merger *merger, int32_t symbol)
{
	return merger->text + merger->symbols[symbol].text;
}

/* The slot of a text, or the free slot where it belongs. */
static uint32_t *symbol_slot(const struct pair_merger *merger, const char *text, size_t size)
{
	uint64_t mask = (uint64_t)merger->symbol_slot_count - 1;
	for (uint64_t i = hash64(text, size) & mask;; i = (i + 1) & mask) {
		uint32_t *slot = &merger->symbol_slots[i];
		if (*slot == 0)
			return slot;
		const struct symbol *symbol = &merger->symbols[*slot - 1];
		if (symbol->size == size && memcmp(merger->text + symbol->text, text, size) == 0)
			return slot;
	}
}

enum status pair_merger_add_symbol(struct pair_merger *merger, const char *text, size_t size)
{
	BUG_IF(merger->symbol_count >= INT32_MAX);
	if (merger->symbol_count * 2 >= merger->symbol_slot_count) {
		int64_t larger = merger->symbol_slot_count ? merger->symbol_slot_count * 2 : 1024;
		free(merger->symbol_slots);
		merger->symbol_slot_count = 0;
		TRY(memory_new(&merger->symbol_slots, larger, sizeof *merger->symbol_slots, "symbols"));
		merger->symbol_slot_count = larger;
		for (int64_t i = 0; i < merger->symbol_count; i++)
			*symbol_slot(merger, merger->text + merger->symbols[i].text, merger->symbols[i].size) = (uint32_t)i + 1;
	}
	TRY(memory_grow(&merger->symbols, &merger->symbol_capacity, merger->symbol_count + 1, sizeof *merger->symbols,
			"symbols"));
	TRY(memory_grow(&merger->text, &merger->text_capacity, merger->text_size + (int64_t)size + 1, 1, "symbols"));
	uint32_t *slot = symbol_slot(merger, text, size);
	BUG_IF(*slot != 0);
	memcpy(merger->text + merger->text_size, text, size);
	merger->text[merger->text_size + (int64_t)size] = '\0';
	merger->symbols[merger->symbol_count] = (struct symbol){merger->text_size, (uint32_t)size};
	merger->text_size += (int64_t)size + 1;
	*slot = (uint32_t)++merger->symbol_count;
	return OK;
}

/* The symbol made from left and right: an existing one if another pair has made the same text ("a" "##bc", "ab"
 * "##c"). */
static enum status merged_symbol(struct pair_merger *merger, const struct pair *pair, int32_t *out)
{
	const struct symbol *left = &merger->symbols[pair->left], *right = &merger->symbols[pair->right];
	size_t prefix = merger->merging == MERGE_BYTES ? 0 : 2, size = left->size + right->size - prefix;
	char *text;

	TRY(memory_new(&text, (int64_t)size, 1, "a symbol"));
	memcpy(text, merger->text + left->text, left->size);
	memcpy(text + left->size, merger->text + right->text + prefix, right->size - prefix);
	uint32_t known = *symbol_slot(merger, text, size);
	enum status status = OK;
	if (known)
		*out = (int32_t)known - 1;
	else
		status = pair_merger_add_symbol(merger, text, size);
	if (status == OK && !known)
		*out = (int32_t)merger->symbol_count - 1;
	free(text);
	return status;
}

/* Words and pairs */

enum status pair_merger_add_word(struct pair_merger *merger, const int32_t *symbols, int32_t symbol_count, int64_t count)
{
	BUG_IF(symbol_count < 1 || symbol_count > UINT16_MAX || merger->word_count >= NONE);
	TRY(memory_grow(&merger->words, &merger->word_capacity, merger->word_count + 1, sizeof *merger->words, "words"));
	TRY(memory_grow(&merger->word_symbols, &merger->word_symbol_capacity, merger->word_symbol_count + symbol_count,
			sizeof *merger->word_symbols, "words"));
	merger->words[merger->word_count++] = (struct word){merger->word_symbol_count, count, (uint16_t)symbol_count};
	memcpy(merger->word_symbols + merger->word_symbol_count, symbols, (size_t)symbol_count * sizeof *symbols);
	merger->word_symbol_count += symbol_count;
	return OK;
}

static uint32_t *pair_slot(const struct pair_merger *merger, int32_t left, int32_t right)
{
	uint64_t mask = (uint64_t)merger->pair_slot_count - 1;
	for (uint64_t i = pair_hash(left, right) & mask;; i = (i + 1) & mask) {
		uint32_t *slot = &merger->pair_slots[i];
		if (*slot == 0 || (merger->pairs[*slot - 1].left == left && merger->pairs[*slot - 1].right == right))
			return slot;
	}
}

static enum status find_pair(struct pair_merger *merger, int32_t left, int32_t right, uint32_t *out)
{
	if (merger->pair_count * 2 >= merger->pair_slot_count) {
		int64_t larger = merger->pair_slot_count ? merger->pair_slot_count * 2 : 1 << 16;
		free(merger->pair_slots);
		merger->pair_slot_count = 0;
		TRY(memory_new(&merger->pair_slots, larger, sizeof *merger->pair_slots, "pairs"));
		merger->pair_slot_count = larger;
		for (int64_t i = 0; i < merger->pair_count; i++)
			*pair_slot(merger, merger->pairs[i].left, merger->pairs[i].right) = (uint32_t)i + 1;
	}
	uint32_t *slot = pair_slot(merger, left, right);
	if (*slot == 0) {
		if (merger->pair_count >= NONE - 1)
			return error_set(ERR_RESOURCE, "more than 4 billion different pairs of characters");
		TRY(memory_grow(&merger->pairs, &merger->pair_capacity, merger->pair_count + 1, sizeof *merger->pairs, "pairs"));
		merger->pairs[merger->pair_count] = (struct pair){.left = left, .right = right, .block = NONE};
		*slot = (uint32_t)++merger->pair_count;
	}
	*out = *slot - 1;
	return OK;
}

/* Adds a word to the words of a pair. All places of a word come in succession, so only the last one can be the same. */
static enum status pair_add_word(struct pair_merger *merger, struct pair *pair, uint32_t word)
{
	if (pair->block != NONE && merger->blocks[pair->block].words[pair->in_block - 1] == word)
		return OK;
	if (pair->block == NONE || pair->in_block == BLOCK_WORDS) {
		uint32_t fresh = merger->free_block;
		if (fresh != NONE) {
			merger->free_block = merger->blocks[fresh].next;
		} else {
			if (merger->block_count >= NONE)
				return error_set(ERR_RESOURCE, "more than 4 billion lists of words");
			TRY(memory_grow(&merger->blocks, &merger->block_capacity, merger->block_count + 1, sizeof *merger->blocks,
					"words of pairs"));
			fresh = (uint32_t)merger->block_count++;
		}
		merger->blocks[fresh].next = pair->block;
		pair->block = fresh;
		pair->in_block = 0;
	}
	merger->blocks[pair->block].words[pair->in_block++] = word;
	return OK;
}

/* Records one more place of the pair, in a word seen `count` times. */
static enum status pair_gain(struct pair_merger *merger, int32_t left, int32_t right, int64_t count, uint32_t word)
{
	uint32_t index = NONE;
	TRY(find_pair(merger, left, right, &index));
	struct pair *pair = &merger->pairs[index];
	pair->count += count;
	if (!pair->touched) {
		TRY(memory_grow(&merger->touched, &merger->touched_capacity, merger->touched_count + 1, sizeof *merger->touched,
				"pairs"));
		merger->touched[merger->touched_count++] = index;
		pair->touched = true;
	}
	return pair_add_word(merger, pair, word);
}

static void pair_lose(struct pair_merger *merger, int32_t left, int32_t right, int64_t count)
{
	uint32_t slot = *pair_slot(merger, left, right);
	BUG_IF(slot == 0);
	merger->pairs[slot - 1].count -= count;
}

/* The heap: highest count first, ties by texts or ids. */

static int compare_text(const struct pair_merger *merger, int32_t a, int32_t b)
{
	return a == b ? 0 : strcmp(pair_merger_text(merger, a), pair_merger_text(merger, b));
}

static bool comes_before(const struct pair_merger *merger, const struct entry *a, const struct entry *b)
{
	if (a->count != b->count)
		return a->count > b->count;
	const struct pair *p = &merger->pairs[a->pair], *q = &merger->pairs[b->pair];
	if (merger->merging == MERGE_BYTES)
		return p->left != q->left ? p->left < q->left : p->right < q->right;
	int order = compare_text(merger, p->left, q->left);
	return order ? order < 0 : compare_text(merger, p->right, q->right) < 0;
}

static enum status heap_push(struct pair_merger *merger, uint32_t pair)
{
	struct entry entry = {merger->pairs[pair].count, pair};

	merger->pairs[pair].queued = entry.count;
	TRY(memory_grow(&merger->heap, &merger->heap_capacity, merger->heap_count + 1, sizeof *merger->heap, "pairs"));
	int64_t at = merger->heap_count++;
	for (int64_t parent; at > 0 && comes_before(merger, &entry, &merger->heap[parent = (at - 1) / 2]); at = parent)
		merger->heap[at] = merger->heap[parent];
	merger->heap[at] = entry;
	return OK;
}

static struct entry heap_pop(struct pair_merger *merger)
{
	struct entry top = merger->heap[0], last = merger->heap[--merger->heap_count];
	int64_t at = 0;

	for (int64_t child; (child = 2 * at + 1) < merger->heap_count; at = child) {
		if (child + 1 < merger->heap_count && comes_before(merger, &merger->heap[child + 1], &merger->heap[child]))
			child++;
		if (!comes_before(merger, &merger->heap[child], &last))
			break;
		merger->heap[at] = merger->heap[child];
	}
	merger->heap[at] = last;
	return top;
}

static enum status queue_touched(struct pair_merger *merger)
{
	for (int64_t i = 0; i < merger->touched_count; i++) {
		struct pair *pair = &merger->pairs[merger->touched[i]];
		pair->touched = false;
		if (pair->count > pair->queued && pair->count >= merger->min_count)
			TRY(heap_push(merger, merger->touched[i]));
	}
	merger->touched_count = 0;
	return OK;
}

/* Takes the best pair from the heap, discarding outdated entries; *out = NONE if all are below min_count. */
static enum status best_pair(struct pair_merger *merger, uint32_t *out)
{
	*out = NONE;
	while (merger->heap_count > 0) {
		struct entry top = heap_pop(merger);
		struct pair *pair = &merger->pairs[top.pair];
		if (top.count != pair->queued)
			continue; /* superseded by a newer entry */
		pair->queued = 0;
		if (pair->count < merger->min_count)
			continue;
		if (pair->count == top.count) {
			*out = top.pair;
			return OK;
		}
		TRY(heap_push(merger, top.pair));
	}
	return OK;
}

/* Replaces the pair by `merged` in one word. */
static enum status merge_in_word(struct pair_merger *merger, uint32_t index, int32_t left, int32_t right, int32_t merged)
{
	struct word *word = &merger->words[index];
	int32_t *symbols = merger->word_symbols + word->first;
	int length = word->symbol_count, written = 0;

	for (int i = 0; i < length; i++) {
		if (symbols[i] != left || i + 1 == length || symbols[i + 1] != right) {
			symbols[written++] = symbols[i];
			continue;
		}
		/* before left right after  ->  before merged after */
		if (written > 0) {
			pair_lose(merger, symbols[written - 1], left, word->count);
			TRY(pair_gain(merger, symbols[written - 1], merged, word->count, index));
		}
		if (i + 2 < length) {
			pair_lose(merger, right, symbols[i + 2], word->count);
			TRY(pair_gain(merger, merged, symbols[i + 2], word->count, index));
		}
		symbols[written++] = merged;
		i++;
	}
	word->symbol_count = (uint16_t)written;
	return OK;
}

static enum status merge_pair(struct pair_merger *merger, uint32_t index)
{
	struct pair pair = merger->pairs[index];
	int32_t merged;

	TRY(merged_symbol(merger, &pair, &merged));
	TRY(memory_grow(&merger->merges, &merger->merge_capacity, merger->merge_count + 1, sizeof *merger->merges, "merges"));
	merger->merges[merger->merge_count++] = (struct pair_merge){pair.left, pair.right, merged};
	merger->pairs[index].block = NONE;
	for (uint32_t at = pair.block, in_block = pair.in_block; at != NONE; in_block = BLOCK_WORDS) {
		struct block block = merger->blocks[at]; /* a copy, since new lists may move the array */
		for (uint32_t i = 0; i < in_block; i++)
			TRY(merge_in_word(merger, block.words[i], pair.left, pair.right, merged));
		merger->blocks[at].next = merger->free_block;
		merger->free_block = at;
		at = block.next;
	}
	/* In "aaa", the pair (a, a) is counted twice but merged once: what remains of the count belongs to no
	 * place. */
	merger->pairs[index].count = 0;
	return queue_touched(merger);
}

static enum status count_pairs(struct pair_merger *merger)
{
	for (int64_t w = 0; w < merger->word_count; w++) {
		const struct word *word = &merger->words[w];
		for (int64_t i = word->first; i + 1 < word->first + word->symbol_count; i++)
			TRY(pair_gain(merger, merger->word_symbols[i], merger->word_symbols[i + 1], word->count, (uint32_t)w));
	}
	return queue_touched(merger);
}

/* Forgets words and pairs but keeps the memory. */
static void forget_words(struct pair_merger *merger)
{
	merger->highest = 0;
	for (int64_t i = 0; i < merger->pair_count; i++)
		if (merger->pairs[i].count > merger->highest)
			merger->highest = merger->pairs[i].count;
	merger->word_count = merger->word_symbol_count = merger->pair_count = merger->block_count = 0;
	merger->heap_count = merger->touched_count = 0;
	merger->free_block = NONE;
	if (merger->pair_slots)
		memset(merger->pair_slots, 0, (size_t)merger->pair_slot_count * sizeof *merger->pair_slots);
}

enum status pair_merger_run(struct pair_merger *merger, const struct pair_merge_limits *limits,
			    void (*progress)(void *context, int32_t symbols), void *context)
{
	BUG_IF(limits->min_count < 1);
	merger->min_count = limits->min_count;
	merger->first_merge = merger->merge_count;
	TRY(count_pairs(merger));
	for (bool stop = false; !stop && merger->symbol_count < limits->size;) {
		int64_t symbols = merger->symbol_count;
		uint32_t best;
		TRY(best_pair(merger, &best));
		if (best == NONE)
			break;
		TRY(merge_pair(merger, best));
		stop = limits->excerpts && merger->symbol_count == symbols;
		if (progress && merger->merge_count % 64 == 0)
			progress(context, (int32_t)merger->symbol_count);
	}
	forget_words(merger);
	return OK;
}

const struct pair_merge *pair_merger_merges(const struct pair_merger *merger, int64_t *out_count)
{
	*out_count = merger->merge_count - merger->first_merge;
	return merger->merges ? merger->merges + merger->first_merge : NULL;
}

const struct pair_merge *pair_merger_all_merges(const struct pair_merger *merger, int64_t *out_count)
{
	*out_count = merger->merge_count;
	return merger->merges;
}

int64_t pair_merger_highest(const struct pair_merger *merger)
{
	return merger->highest;
}
