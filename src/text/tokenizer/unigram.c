/* The double-array trie of a Unigram model, the search for the best cut, and the model of a tokenizer.json. */
#include "text/tokenizer/unigram.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "text/tokenizer/chain.h"
#include "text/utf8.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))
#define BYTES_LIMIT ((int64_t)1 << 26)
#define SCORE_LIMIT 1e9        /* keeps sums finite, in single precision too */
#define EXPONENT_LIMIT 1000000 /* beyond it, all exponents mean the same */
#define UNKNOWN_PENALTY 10     /* below the lowest score */
#define USER_DEFINED_MARGIN 0.1
#define BLOCK 256                  /* units are allocated in blocks, since the children of a node are in one */
#define ATTEMPTS 64                /* free units that are tried as the place of a node's first child */
#define FREE_UNIT (UINT32_MAX - 1) /* as the parent: not used */
#define NO_PARENT UINT32_MAX       /* the root's */

/* ---- The trie ---- */

struct sorted_piece {
	const char *text;
	size_t size;
	double score;
	int32_t id;
};

static int compare_pieces(const void *left, const void *right)
{
	const struct sorted_piece *a = left, *b = right;
	int order = memcmp(a->text, b->text, a->size < b->size ? a->size : b->size);

	if (order == 0)
		order = (a->size > b->size) - (a->size < b->size);
	return order != 0 ? order : (a->id > b->id) - (a->id < b->id);
}

/* A node whose children are to be placed: the pieces sorted[first, last), which have `depth` bytes in common. */
struct node {
	int32_t first, last;
	uint32_t depth, unit;
};

/* The free units are a ring, linked through `base` (next) and `ids` (previous), which begins at `free_unit`. */
struct builder {
	struct unigram *unigram;
	const struct sorted_piece *sorted;
	struct node *nodes; /* a queue */
	int64_t node_count;
	uint32_t free_unit; /* 0: none is free */
};

static void take_unit(struct builder *b, uint32_t unit)
{
	struct unigram *u = b->unigram;
	uint32_t next = u->units[unit].base, previous = (uint32_t)u->ids[unit];

	u->units[previous].base = next;
	u->ids[next] = (int32_t)previous;
	if (b->free_unit == unit)
		b->free_unit = next == unit ? 0 : next;
	u->units[unit] = (struct unigram_unit){.base = 0, .parent = NO_PARENT, .score = -INFINITY};
	u->ids[unit] = -1;
}

static enum status add_block(struct builder *b)
{
	struct unigram *u = b->unigram;
	int64_t begin = u->unit_count, end = begin + BLOCK;

	TRY(memory_grow(&u->units, &u->units_capacity, end, sizeof *u->units, "vocabulary"));
	TRY(memory_grow(&u->ids, &u->ids_capacity, end, sizeof *u->ids, "vocabulary"));
	for (int64_t i = begin; i < end; i++) {
		u->units[i] = (struct unigram_unit){.base = (uint32_t)i + 1, .parent = FREE_UNIT, .score = -INFINITY};
		u->ids[i] = (int32_t)i - 1;
	}
	u->unit_count = end;
	/* Into the ring before its first unit, so that they are tried last. */
	uint32_t first = b->free_unit ? b->free_unit : (uint32_t)begin;
	uint32_t last = b->free_unit ? (uint32_t)u->ids[first] : (uint32_t)end - 1;
	u->units[end - 1].base = first;
	u->ids[begin] = (int32_t)last;
	u->units[last].base = (uint32_t)begin;
	u->ids[first] = (int32_t)end - 1;
	b->free_unit = first;
	return OK;
}

static bool all_free(const struct unigram *u, uint32_t base, const uint8_t *bytes, int count)
{
	for (int i = 1; i < count; i++)
		if (u->units[base ^ bytes[i]].parent != FREE_UNIT)
			return false;
	return true;
}

/* A base with which the units of all these children are free. */
static enum status find_base(struct builder *b, const uint8_t *bytes, int count, uint32_t *out)
{
	const struct unigram *u = b->unigram;
	uint32_t unit = b->free_unit;

	for (int i = 0; i < ATTEMPTS && unit != 0; i++) {
		*out = unit ^ bytes[0];
		if (all_free(u, *out, bytes, count))
			return OK;
		unit = u->units[unit].base;
		if (unit == b->free_unit)
			break;
	}
	*out = (uint32_t)u->unit_count;
	return add_block(b);
}

/* Places the children of one node and puts them into the queue. */
static enum status place_children(struct builder *b, struct node node)
{
	struct unigram *u = b->unigram;
	const struct sorted_piece *sorted = b->sorted;
	int32_t i = node.first, firsts[BLOCK + 1];
	uint8_t bytes[BLOCK];
	uint32_t base;
	int count = 0;

	for (; i < node.last && sorted[i].size == node.depth; i++) {
		u->units[node.unit].score = sorted[i].score; /* of pieces with the same text, the last one counts */
		u->ids[node.unit] = sorted[i].id;
	}
	for (; i < node.last; i++) {
		uint8_t byte = (uint8_t)sorted[i].text[node.depth];

		if (count == 0 || byte != bytes[count - 1]) {
			bytes[count] = byte;
			firsts[count++] = i;
		}
	}
	if (count == 0)
		return OK;
	firsts[count] = node.last;
	TRY(find_base(b, bytes, count, &base));
	u->units[node.unit].base = base;
	for (int c = 0; c < count; c++) {
		take_unit(b, base ^ bytes[c]);
		u->units[base ^ bytes[c]].parent = node.unit;
		b->nodes[b->node_count++] = (struct node){firsts[c], firsts[c + 1], node.depth + 1, base ^ bytes[c]};
	}
	return OK;
}

/* Breadth first, which puts the nodes that every text passes through next to each other. */
static enum status build_trie(struct unigram *u, const struct sorted_piece *sorted, int32_t count, int64_t bytes)
{
	struct builder b = {.unigram = u, .sorted = sorted};
	enum status status;

	TRY(memory_new(&b.nodes, bytes + 1, sizeof *b.nodes, "vocabulary")); /* at most one for each byte, and the root */
	TRY_GOTO(add_block(&b), out);
	take_unit(&b, 0);
	b.nodes[b.node_count++] = (struct node){0, count, 0, 0};
	for (int64_t i = 0; i < b.node_count; i++)
		TRY_GOTO(place_children(&b, b.nodes[i]), out);
	for (int64_t i = 0; i < u->unit_count; i++)
		if (u->units[i].parent == FREE_UNIT) {
			u->units[i].base = 0;
			u->ids[i] = -1;
		}
	u->units[0].score = -INFINITY; /* an empty piece matches nothing */
out:
	free(b.nodes);
	return status;
}

/* ---- Opening ---- */

static enum status check_pieces(const char *name, const struct unigram_piece *pieces, int32_t count, int32_t unk,
				int64_t *out_bytes)
{
	*out_bytes = 0;
	if (count == 0)
		return error_set(ERR_DATA, "'%s': the vocabulary is empty", name);
	if (unk < 0 || unk >= count)
		return error_set(ERR_DATA, "'%s': no unknown token: its id must be that of one of the %d pieces", name, count);
	for (int32_t i = 0; i < count; i++) {
		if (!(fabs(pieces[i].score) <= SCORE_LIMIT))
			return error_set(ERR_DATA, "'%s': the score of piece %d is not a number between -1e9 and 1e9", name, i);
		if (utf8_count_invalid(pieces[i].text, pieces[i].size) > 0)
			return error_set(ERR_DATA, "'%s': piece %d is not UTF-8 text", name, i);
		*out_bytes += (int64_t)pieces[i].size;
	}
	if (*out_bytes > BYTES_LIMIT)
		return error_set(ERR_DATA, "'%s': %lld bytes of pieces are too many", name, (long long)*out_bytes);
	return OK;
}

/* The pieces <0x00> to <0xFF>, as far as there are any. */
static void find_bytes(struct unigram *u, const struct unigram_piece *pieces, int32_t count)
{
	static const char digits[] = "0123456789ABCDEF";

	for (int32_t i = 0; i < count; i++) {
		const char *text = pieces[i].text, *high, *low;

		if (pieces[i].size != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>')
			continue;
		high = memchr(digits, text[3], 16);
		low = memchr(digits, text[4], 16);
		if (high && low)
			u->bytes[(high - digits) * 16 + (low - digits)] = i;
	}
}

static enum status init(struct unigram *u, const char *name, const struct unigram_piece *pieces, int32_t count)
{
	struct sorted_piece *sorted = NULL;
	double lowest = FLT_MAX, highest = FLT_MIN; /* as sentencepiece begins */
	enum status status;
	int32_t matched = 0;
	int64_t bytes;

	TRY(check_pieces(name, pieces, count, u->settings.unk, &bytes));
	TRY_GOTO(memory_new(&sorted, count, sizeof *sorted, "vocabulary"), out);
	for (int32_t i = 0; i < count; i++) {
		if (pieces[i].kind == UNIGRAM_NORMAL && pieces[i].score < lowest)
			lowest = pieces[i].score;
		if (pieces[i].kind == UNIGRAM_NORMAL && pieces[i].score > highest)
			highest = pieces[i].score;
	}
	u->unknown_score = u->settings.single ? (float)lowest - (float)UNKNOWN_PENALTY : lowest - UNKNOWN_PENALTY;
	for (int32_t i = 0; i < count; i++) {
		double score = pieces[i].score;

		if (pieces[i].kind == UNIGRAM_UNMATCHED)
			continue;
		if (pieces[i].kind == UNIGRAM_USER_DEFINED) {
			score = (double)((float)pieces[i].size * (float)highest) - USER_DEFINED_MARGIN;
			if (!u->user_defined)
				TRY_GOTO(memory_new(&u->user_defined, count, 1, "vocabulary"), out);
			u->user_defined[i] = true;
		}
		sorted[matched++] = (struct sorted_piece){pieces[i].text, pieces[i].size, score, i};
	}
	qsort(sorted, (size_t)matched, sizeof *sorted, compare_pieces);
	TRY_GOTO(build_trie(u, sorted, matched, bytes), out);
	memset(u->bytes, 0xFF, sizeof u->bytes);
	if (u->settings.byte_fallback)
		find_bytes(u, pieces, count);
out:
	free(sorted);
	return status;
}

static void close_model(void *model)
{
	struct unigram *u = model;

	if (!u)
		return;
	free(u->units);
	free(u->ids);
	free(u->user_defined);
	free(u);
}

enum status unigram_new(struct unigram **out, const char *name, const struct unigram_piece *pieces, int32_t count,
			const struct unigram_settings *settings)
{
	TRY(memory_new(out, 1, sizeof **out, "vocabulary"));
	(*out)->settings = *settings;
	enum status status = init(*out, name, pieces, count);
	if (status != OK) {
		close_model(*out);
		*out = NULL;
	}
	return status;
}

/* The id of the piece that is exactly this text, or -1. */
static int32_t unigram_find(const struct unigram *unigram, const char *text, size_t size)
{
	uint32_t unit = 0;

	for (size_t i = 0; i < size; i++) {
		uint32_t child = unigram->units[unit].base ^ (uint8_t)text[i];

		if (unigram->units[child].parent != unit)
			return -1;
		unit = child;
	}
	return unigram->ids[unit];
}

size_t unigram_user_defined(const struct unigram *unigram, const char *text, size_t size)
{
	size_t found = 0;
	uint32_t unit = 0;

	for (size_t i = 0; unigram->user_defined && i < size; i++) {
		uint32_t child = unigram->units[unit].base ^ (uint8_t)text[i];

		if (unigram->units[child].parent != unit)
			break;
		unit = child;
		if (unigram->ids[unit] >= 0 && unigram->user_defined[unigram->ids[unit]])
			found = i + 1;
	}
	return found;
}

/* ---- Encoding ---- */

/* The best way to reach a place in the text. */
struct unigram_step {
	double score;
	uint32_t from, unit; /* where the last piece begins, and its unit; unit 0: unknown */
};

static inline size_t character_size(char first)
{
	uint8_t byte = (uint8_t)first;

	return 1 + (byte >= 0xC0) + (byte >= 0xE0) + (byte >= 0xF0);
}

static inline void offer(struct unigram_step *step, double score, uint32_t from, uint32_t unit, bool single)
{
	if (single)
		score = (float)score;
	if (score > step->score)
		*step = (struct unigram_step){score, from, unit};
}

/* Fills in the best way to every place that a piece can end at. Of equal sums, the one found first stays. */
static ALWAYS_INLINE void find_path(const struct unigram *unigram, const char *text, size_t size, struct unigram_step *steps,
				    bool single)
{
	const struct unigram_unit *units = unigram->units;
	size_t length;

	for (size_t at = 0; at < size; at += length) {
		const double score = steps[at].score;
		uint32_t unit = 0;
		bool is_piece = false; /* the character is one by itself */

		length = character_size(text[at]);
		for (size_t i = at; i < size;) {
			uint32_t child = units[unit].base ^ (uint8_t)text[i++];

			if (units[child].parent != unit)
				break;
			unit = child;
			offer(&steps[i], units[unit].score + score, (uint32_t)at, unit, single);
			is_piece |= i - at == length && units[unit].score > -INFINITY;
		}
		if (!is_piece)
			offer(&steps[at + length], unigram->unknown_score + score, (uint32_t)at, 0, single);
	}
}

/* A run of unknown characters. */
static enum status put_unknown(const struct unigram *u, const char *text, size_t begin, size_t end, struct pieces *out)
{
	int32_t id = u->settings.single ? -1 : unigram_find(u, text + begin, end - begin);
	bool has_bytes = id < 0;

	for (size_t i = begin; i < end && has_bytes; i++)
		has_bytes = u->bytes[(uint8_t)text[i]] >= 0;
	if (!has_bytes)
		return pieces_put(out, id < 0 ? u->settings.unk : id, begin, end);
	for (size_t i = end; i > begin; i--) /* the path is followed from its end */
		TRY(pieces_put(out, u->bytes[(uint8_t)text[i - 1]], begin, end));
	return OK;
}

static bool is_unknown(const struct unigram *u, const struct unigram_step *step)
{
	return step->unit == 0 || u->ids[step->unit] == u->settings.unk;
}

static enum status cut(const void *model, const char *text, size_t size, struct pieces *out)
{
	const struct unigram *u = model;
	int64_t first = out->count;
	struct unigram_step *steps;

	TRY(pieces_work(out, ((int64_t)size + 1) * (int64_t)sizeof *steps, &steps));
	steps[0] = (struct unigram_step){0};
	for (size_t i = 1; i <= size; i++)
		steps[i].score = -INFINITY;
	if (u->settings.single)
		find_path(u, text, size, steps, true);
	else
		find_path(u, text, size, steps, false);
	for (size_t end = size, begin; end > 0; end = begin) {
		begin = steps[end].from;
		if (!is_unknown(u, &steps[end])) {
			TRY(pieces_put(out, u->ids[steps[end].unit], begin, end));
			continue;
		}
		while (begin > 0 && is_unknown(u, &steps[begin]))
			begin = steps[begin].from;
		TRY(put_unknown(u, text, begin, end, out));
	}
	for (int64_t i = first, j = out->count - 1; i < j; i++, j--) {
		struct piece piece = out->items[i];

		out->items[i] = out->items[j];
		out->items[j] = piece;
	}
	return OK;
}

/* ---- In a tokenizer.json ---- */

static double power_of_ten(int64_t exponent)
{
	char text[24];

	snprintf(text, sizeof text, "1e%d", (int)exponent);
	return strtod(text, NULL);
}

/* A score as tokenizers reads it: its digits as a whole number, times or divided by a power of ten, which is not always the
 * nearest number. Cuts with equal sums differ in their last bit, and that bit decides. */
static double read_score(const char *text)
{
	const char *at = text + (*text == '-');
	uint64_t digits = 0;
	int64_t exponent = 0;
	bool behind_point = false, full = false;

	for (; (*at >= '0' && *at <= '9') || *at == '.'; at++) {
		if (*at == '.') {
			behind_point = true;
			continue;
		}
		uint64_t digit = (uint64_t)(*at - '0');
		full = full || digits > (UINT64_MAX - digit) / 10;
		if (!full)
			digits = digits * 10 + digit;
		exponent += full ? !behind_point : -behind_point;
	}
	if (*at == 'e' || *at == 'E') {
		int64_t written = strtoll(at + 1, NULL, 10);
		exponent += written < -EXPONENT_LIMIT ? -EXPONENT_LIMIT : written > EXPONENT_LIMIT ? EXPONENT_LIMIT : written;
	}
	double value = (double)digits;
	for (; exponent < -308 && value != 0; exponent += 308)
		value /= 1e308;
	if (exponent > 308)
		return value == 0 ? 0 : INFINITY;
	value = exponent >= 0 ? value * power_of_ten(exponent) : value / power_of_ten(-exponent);
	return *text == '-' ? -value : value;
}

/* Takes [["piece", score], ...]; the texts stay those of the document. */
static enum status read_pieces(const struct part *part, struct unigram_piece **out, int64_t *out_count)
{
	const struct json *vocab = json_member(part->object, "vocab");
	struct unigram_piece *piece;

	if (!vocab || vocab->kind != JSON_ARRAY)
		return error_set(ERR_DATA, "'%s': \"model\" of the type \"Unigram\" without an array \"vocab\"", part->path);
	*out_count = vocab->child_count;
	TRY(memory_new(out, vocab->child_count, sizeof **out, "vocabulary"));
	piece = *out;
	for (const struct json *pair = vocab->first_child; pair; pair = pair->next, piece++) {
		const struct json *text = pair->first_child, *score = text ? text->next : NULL;

		if (pair->kind != JSON_ARRAY || pair->child_count != 2 || text->kind != JSON_STRING || score->kind != JSON_NUMBER)
			return error_set(ERR_DATA, "'%s': entry %lld of \"vocab\" is not a piece and its score", part->path,
					 (long long)(piece - *out));
		*piece = (struct unigram_piece){text->text, text->text_size, read_score(score->text), UNIGRAM_NORMAL};
	}
	return OK;
}

static enum status open_model(void **out, const struct model_source *source)
{
	const struct part *part = &source->part;
	struct unigram_settings settings = {0};
	struct unigram_piece *pieces = NULL;
	int64_t count = 0, unk = -1;
	enum status status;

	TRY(json_get_bool(part->object, part->path, "byte_fallback", &settings.byte_fallback));
	const struct json *member = json_member(part->object, "unk_id");
	if (member && member->kind != JSON_NULL)
		TRY(json_get_integer(part->object, part->path, "unk_id", 0, INT32_MAX, &unk));
	settings.unk = (int32_t)unk;
	TRY_GOTO(read_pieces(part, &pieces, &count), out);
	status = count > INT32_MAX ? error_set(ERR_DATA, "'%s': %lld pieces are too many", part->path, (long long)count)
				   : unigram_new((struct unigram **)out, part->path, pieces, (int32_t)count, &settings);
out:
	free(pieces);
	return status;
}

static const char *const members[] = {"unk_id", "byte_fallback", NULL};

const struct token_model unigram_model = {
	.type = "Unigram",
	.members = members,
	.open = open_model,
	.cut = cut,
	.close = close_model,
};
