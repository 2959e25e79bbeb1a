/* Byte-pair encoding (Sennrich et al. 2016), the model of RoBERTa, ModernBERT and their like: a word begins as its characters or
 * bytes, and the pair of neighbors that was merged first when the vocabulary was learned is merged again, until no pair is left.
 */
#include "text/tokenizer/tokenizer_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "text/tokenizer/byte_level.h"
#include "text/utf8.h"

#define BYTES 256
/* Words of more symbols are merged with a heap instead of a search for the best pair in each step. */
#define SEARCHED_SYMBOLS 64
#define NO_RANK UINT32_MAX

/* What a pair of neighbors becomes. `pair` is the left id in the high half and the right one in the low half; NO_PAIR: unused. */
#define NO_PAIR UINT64_MAX
struct merge {
	uint64_t pair;
	uint32_t rank;
	int32_t id;
};

struct bpe {
	struct vocab vocab;   /* the entries; the vocabulary itself may move */
	struct merge *merges; /* open addressing, at most half full */
	int shift;            /* 64 minus the bits of a place in it */
	uint8_t *filter;      /* bits, four for a place, set where a pair belongs: most pairs are no merge and end here */
	bool bytes;           /* words are bytes, and entries stand for bytes */
	bool byte_fallback, fuse_unknown, ignore_merges;
	int32_t unknown;         /* -1: characters that are not entries are left out */
	int32_t byte_ids[BYTES]; /* of the entry for each byte, -1 = none: with `bytes`, that of its character, else "<0x0A>" */
	char spelling[BYTES][4]; /* with `bytes`: the character of each byte, of one byte or two, then zeros */
};

static inline const struct merge *find_merge(const struct bpe *bpe, int32_t left, int32_t right)
{
	uint64_t pair = (uint64_t)(uint32_t)left << 32 | (uint32_t)right, mask = ((uint64_t)1 << (64 - bpe->shift)) - 1;
	uint64_t hash = pair * 0x9E3779B97F4A7C15u, bit = hash >> (bpe->shift - 2);
	if (!(bpe->filter[bit / 8] >> bit % 8 & 1))
		return NULL;
	for (uint64_t place = hash >> bpe->shift;; place = (place + 1) & mask) {
		const struct merge *merge = &bpe->merges[place];
		if (merge->pair == pair)
			return merge;
		if (merge->pair == NO_PAIR)
			return NULL;
	}
}

/* The id of an entry of the model, or -1 (also for added tokens). */
static inline int32_t find_entry(const struct bpe *bpe, const char *text, size_t size)
{
	int32_t id = vocab_find(&bpe->vocab, text, size);
	return id < bpe->vocab.wordpiece_count ? id : -1;
}

/* ---- Merging ---- */

/* A part of the word: the entry it is, and where it ends. In the heap's way, `end` 0 means that its left neighbor has taken it,
 * and the symbols form a list. */
struct symbol {
	int32_t id;
	uint32_t begin, end;
	uint32_t rank;         /* of the merge with the next symbol, NO_RANK if there is none; */
	int32_t merged;        /* what becomes of them */
	int32_t before, after; /* neighbors in the list, -1 at its ends */
};

static inline void rate(const struct bpe *bpe, struct symbol *left, const struct symbol *right)
{
	const struct merge *merge = right ? find_merge(bpe, left->id, right->id) : NULL;
	left->rank = merge ? merge->rank : NO_RANK;
	left->merged = merge ? merge->id : -1;
}

/* Merges few symbols; returns their number. */
static int64_t merge_few(const struct bpe *bpe, struct symbol *symbols, int64_t count)
{
	for (int64_t i = 0; i < count; i++)
		rate(bpe, &symbols[i], i + 1 < count ? &symbols[i + 1] : NULL);
	while (count > 1) {
		uint64_t first = (uint64_t)NO_RANK << 32; /* rank in the high half, index in the low one: no branches */
		for (int64_t i = 0; i + 1 < count; i++) {
			uint64_t key = (uint64_t)symbols[i].rank << 32 | (uint64_t)i;
			first = key < first ? key : first;
		}
		int64_t best = (int64_t)(uint32_t)first;
		if (first >> 32 == NO_RANK)
			break;
		symbols[best].id = symbols[best].merged;
		symbols[best].end = symbols[best + 1].end;
		count--;
		memmove(&symbols[best + 1], &symbols[best + 2], (size_t)(count - best - 1) * sizeof *symbols);
		rate(bpe, &symbols[best], best + 1 < count ? &symbols[best + 1] : NULL);
		if (best > 0)
			rate(bpe, &symbols[best - 1], &symbols[best]);
	}
	return count;
}

/* A heap of pairs, by rank, then by place: rank in the high half, index of the left symbol in the low half. */
static void heap_push(uint64_t *heap, int64_t *count, uint64_t item)
{
	int64_t at = (*count)++;
	for (; at > 0 && heap[(at - 1) / 2] > item; at = (at - 1) / 2)
		heap[at] = heap[(at - 1) / 2];
	heap[at] = item;
}

static uint64_t heap_pop(uint64_t *heap, int64_t *count)
{
	uint64_t top = heap[0], item = heap[--*count];
	int64_t at = 0;
	for (int64_t child; (child = 2 * at + 1) < *count; at = child) {
		if (child + 1 < *count && heap[child + 1] < heap[child])
			child++;
		if (heap[child] >= item)
			break;
		heap[at] = heap[child];
	}
	heap[at] = item;
	return top;
}

static void rate_and_push(const struct bpe *bpe, struct symbol *symbols, int32_t index, uint64_t *heap, int64_t *heap_count)
{
	struct symbol *symbol = &symbols[index];
	rate(bpe, symbol, symbol->after >= 0 ? &symbols[symbol->after] : NULL);
	if (symbol->rank != NO_RANK)
		heap_push(heap, heap_count, (uint64_t)symbol->rank << 32 | (uint32_t)index);
}

/* Merges many symbols. The heap needs room for three times as many pairs: each merge takes a symbol and adds two pairs. */
static int64_t merge_many(const struct bpe *bpe, struct symbol *symbols, int64_t count, uint64_t *heap)
{
	int64_t heap_count = 0, kept = 0;
	for (int64_t i = 0; i < count; i++) {
		symbols[i].before = (int32_t)i - 1;
		symbols[i].after = i + 1 < count ? (int32_t)i + 1 : -1;
	}
	for (int64_t i = 0; i < count; i++)
		rate_and_push(bpe, symbols, (int32_t)i, heap, &heap_count);
	while (heap_count > 0) {
		uint64_t top = heap_pop(heap, &heap_count);
		int32_t index = (int32_t)(uint32_t)top;
		struct symbol *left = &symbols[index];
		/* Pairs of which a symbol has changed since are still in the heap. */
		if (left->end == 0 || left->rank != (uint32_t)(top >> 32))
			continue;
		struct symbol *right = &symbols[left->after];
		left->id = left->merged;
		left->end = right->end;
		left->after = right->after;
		right->end = 0;
		if (left->after >= 0)
			symbols[left->after].before = index;
		rate_and_push(bpe, symbols, index, heap, &heap_count);
		if (left->before >= 0)
			rate_and_push(bpe, symbols, left->before, heap, &heap_count);
	}
	for (int64_t i = 0; i < count; i++)
		if (symbols[i].end > 0)
			symbols[kept++] = symbols[i];
	return kept;
}

/* ---- Words ---- */

static inline void add_symbol(struct symbol *symbols, int64_t *count, int32_t id, size_t begin, size_t end)
{
	symbols[(*count)++] = (struct symbol){.id = id, .begin = (uint32_t)begin, .end = (uint32_t)end};
}

/* A character that is not an entry: its bytes, or an unknown token, which can stand for several. */
static void add_unknown(const struct bpe *bpe, const char *text, size_t begin, size_t end, struct symbol *symbols, int64_t *count)
{
	bool has_bytes = bpe->byte_fallback;
	for (size_t i = begin; i < end && has_bytes; i++)
		has_bytes = bpe->byte_ids[(uint8_t)text[i]] >= 0;
	if (has_bytes) {
		for (size_t i = begin; i < end; i++)
			add_symbol(symbols, count, bpe->byte_ids[(uint8_t)text[i]], i, i + 1);
	} else if (bpe->unknown >= 0) {
		struct symbol *last = *count > 0 ? &symbols[*count - 1] : NULL;
		if (bpe->fuse_unknown && last && last->id == bpe->unknown)
			last->end = (uint32_t)end;
		else
			add_symbol(symbols, count, bpe->unknown, begin, end);
	}
}

/* What a word is before anything is merged. */
static int64_t begin_word(const struct bpe *bpe, const char *text, size_t size, struct symbol *symbols)
{
	int64_t count = 0;
	for (size_t at = 0, length = 1; at < size; at += length) {
		uint32_t c;
		int32_t id;
		if (bpe->bytes) {
			id = bpe->byte_ids[(uint8_t)text[at]];
		} else {
			length = utf8_decode(text + at, size - at, &c);
			id = find_entry(bpe, text + at, length);
		}
		if (id >= 0)
			add_symbol(symbols, &count, id, at, at + length);
		else if (!bpe->bytes || bpe->unknown >= 0)
			add_unknown(bpe, text, at, at + length, symbols, &count);
	}
	return count;
}

/* The entry that a whole word is, or -1. */
static int32_t find_whole(const struct bpe *bpe, const char *text, size_t size, char *spelled)
{
	size_t length = 0;
	if (!bpe->bytes)
		return find_entry(bpe, text, size);
	for (size_t i = 0; i < size; i++) {
		const char *character = bpe->spelling[(uint8_t)text[i]];
		memcpy(spelled + length, character, 2);
		length += character[1] ? 2 : 1;
	}
	return find_entry(bpe, spelled, length);
}

static enum status cut(const void *model, const char *text, size_t size, struct pieces *out)
{
	const struct bpe *bpe = model;
	/* Room for the heap of many symbols, then for the symbols. */
	uint64_t *heap;
	size_t pairs = size > SEARCHED_SYMBOLS ? 3 * size : 0;
	TRY(pieces_work(out, (int64_t)(pairs * sizeof *heap + size * sizeof(struct symbol)), &heap));
	struct symbol *symbols = (struct symbol *)(heap + pairs);
	if (bpe->ignore_merges) {
		int32_t id = find_whole(bpe, text, size, (char *)symbols);
		if (id >= 0)
			return pieces_put(out, id, 0, size);
	}
	int64_t count = begin_word(bpe, text, size, symbols);
	if (count > SEARCHED_SYMBOLS)
		count = merge_many(bpe, symbols, count, heap);
	else
		count = merge_few(bpe, symbols, count);
	for (int64_t i = 0; i < count; i++)
		TRY(pieces_put(out, symbols[i].id, symbols[i].begin, symbols[i].end));
	return OK;
}

/* ---- Opening ---- */

static void close_model(void *model)
{
	struct bpe *bpe = model;
	if (bpe) {
		free(bpe->merges);
		free(bpe->filter);
	}
	free(bpe);
}

/* The two parts of a merge: "a b" or ["a", "b"]. */
static bool read_pair(const struct json *merge, const char **left, size_t *left_size, const char **right, size_t *right_size)
{
	if (merge->kind == JSON_STRING) {
		const char *space = strchr(merge->text, ' ');
		if (!space || strchr(space + 1, ' ') || strlen(merge->text) != merge->text_size)
			return false;
		*left = merge->text;
		*left_size = (size_t)(space - merge->text);
		*right = space + 1;
		*right_size = strlen(space + 1);
		return true;
	}
	const struct json *first = merge->first_child, *second = first ? first->next : NULL;
	if (merge->kind != JSON_ARRAY || merge->child_count != 2 || first->kind != JSON_STRING || second->kind != JSON_STRING)
		return false;
	*left = first->text;
	*left_size = first->text_size;
	*right = second->text;
	*right_size = second->text_size;
	return true;
}

static enum status add_merge(struct bpe *bpe, const struct part *part, const struct json *json, uint32_t rank,
			     struct buffer *joined)
{
	const char *left, *right;
	size_t left_size, right_size;
	if (!read_pair(json, &left, &left_size, &right, &right_size))
		return error_set(ERR_DATA, "'%s': merge %u is not a pair of entries", part->path, rank + 1);
	buffer_clear(joined);
	buffer_append(joined, left, left_size);
	buffer_append(joined, right, right_size);
	TRY(buffer_status(joined));
	int32_t a = find_entry(bpe, left, left_size), b = find_entry(bpe, right, right_size);
	int32_t both = find_entry(bpe, buffer_string(joined), joined->size);
	if (a < 0 || b < 0 || both < 0)
		return error_set(ERR_DATA, "'%s': merge %u, '%.*s' and '%.*s': %s is not an entry of the vocabulary", part->path,
				 rank + 1, (int)left_size, left, (int)right_size, right,
				 a < 0   ? "the first"
				 : b < 0 ? "the second"
					 : "their union");
	uint64_t pair = (uint64_t)(uint32_t)a << 32 | (uint32_t)b, mask = ((uint64_t)1 << (64 - bpe->shift)) - 1;
	uint64_t hash = pair * 0x9E3779B97F4A7C15u, place = hash >> bpe->shift, bit = hash >> (bpe->shift - 2);
	bpe->filter[bit / 8] |= (uint8_t)(1 << bit % 8);
	while (bpe->merges[place].pair != NO_PAIR && bpe->merges[place].pair != pair)
		place = (place + 1) & mask;
	bpe->merges[place] = (struct merge){pair, rank, both}; /* of equal pairs, the last one counts */
	return OK;
}

static enum status read_merges(struct bpe *bpe, const struct part *part)
{
	const struct json *merges = json_member(part->object, "merges");
	struct buffer joined = {0};
	enum status status = OK;
	uint32_t rank = 0;
	int bits = 4;
	if (!merges || merges->kind != JSON_ARRAY || merges->child_count > INT32_MAX)
		return error_set(ERR_DATA, "'%s': a BPE model without \"merges\"", part->path);
	while ((int64_t)1 << bits < 2 * merges->child_count)
		bits++;
	bpe->shift = 64 - bits;
	TRY(memory_new(&bpe->merges, (int64_t)1 << bits, sizeof *bpe->merges, "merges"));
	TRY(memory_new(&bpe->filter, (int64_t)1 << (bits - 1), 1, "merges"));
	memset(bpe->merges, 0xFF, ((size_t)1 << bits) * sizeof *bpe->merges);
	for (const struct json *merge = merges->first_child; merge && status == OK; merge = merge->next)
		status = add_merge(bpe, part, merge, rank++, &joined);
	buffer_release(&joined);
	return status;
}

/* Refuses what no published tokenizer of an encoder has. */
static enum status check_members(const struct part *part)
{
	static const char *const affixes[] = {"continuing_subword_prefix", "end_of_word_suffix"};
	double dropout = 0;
	const struct json *member = json_member(part->object, "dropout");
	if (member && member->kind != JSON_NULL)
		TRY(json_get_number(part->object, part->path, "dropout", &dropout));
	if (dropout != 0)
		return part_refuse(part, "dropout");
	for (size_t i = 0; i < sizeof affixes / sizeof *affixes; i++) {
		member = json_member(part->object, affixes[i]);
		if (member && member->kind != JSON_NULL && (member->kind != JSON_STRING || member->text_size > 0))
			return part_refuse(part, affixes[i]);
	}
	return OK;
}

static void find_bytes(struct bpe *bpe)
{
	for (int byte = 0; byte < BYTES; byte++) {
		char text[8];
		size_t size = 6;
		if (bpe->bytes) {
			size = byte_level_character((uint8_t)byte, text);
			memcpy(bpe->spelling[byte], text, size);
		} else {
			snprintf(text, sizeof text, "<0x%02X>", byte);
		}
		bpe->byte_ids[byte] = find_entry(bpe, text, size);
	}
}

static enum status fill_model(struct bpe *bpe, const struct part *part)
{
	const struct json *unknown = json_member(part->object, "unk_token");
	TRY(check_members(part));
	TRY(json_get_bool(part->object, part->path, "fuse_unk", &bpe->fuse_unknown));
	TRY(json_get_bool(part->object, part->path, "byte_fallback", &bpe->byte_fallback));
	TRY(json_get_bool(part->object, part->path, "ignore_merges", &bpe->ignore_merges));
	bpe->unknown = -1;
	if (unknown && unknown->kind == JSON_STRING && unknown->text_size > 0) {
		bpe->unknown = find_entry(bpe, unknown->text, unknown->text_size);
		if (bpe->unknown < 0)
			return error_set(ERR_DATA, "'%s': \"unk_token\", '%.100s', is not an entry of the vocabulary", part->path,
					 unknown->text);
	}
	if (bpe->bytes)
		bpe->byte_fallback = false; /* every character is an entry */
	find_bytes(bpe);
	return read_merges(bpe, part);
}

static enum status open_model(void **out, const struct model_source *source)
{
	struct bpe *bpe;
	TRY(memory_new(&bpe, 1, sizeof *bpe, "vocabulary"));
	bpe->vocab = *source->vocab;
	bpe->bytes = source->bytes;
	enum status status = fill_model(bpe, &source->part);
	if (status == OK)
		*out = bpe;
	else
		close_model(bpe);
	return status;
}

static const char *const members[] = {
	"dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", "byte_fallback", "ignore_merges",
	"merges",  NULL};

const struct token_model bpe_model = {
	.type = "BPE",
	.takes_bytes = true,
	.members = members,
	.open = open_model,
	.cut = cut,
	.close = close_model,
};
