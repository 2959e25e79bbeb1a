/* A trie over the vocabulary that finds the longest piece at a place in a word. */
#include "text/tokenizer_wordpiece.h"

#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "text/tokenizer/chain.h"
#include "text/utf8.h"

/* Used to build the trie: entries with a common beginning, sorted[first, last). */
struct node_range {
	int32_t first, last;
	uint32_t depth;
};

struct sorted_entry {
	const char *text;
	uint32_t size;
	int32_t id;
};

static int compare_entries(const void *left, const void *right)
{
	const struct sorted_entry *a = left, *b = right;
	int order = memcmp(a->text, b->text, a->size < b->size ? a->size : b->size);

	if (order != 0)
		return order;
	if (a->size != b->size)
		return a->size < b->size ? -1 : 1;
	return (a->id > b->id) - (a->id < b->id);
}

/* Numbers the nodes breadth first. */
static void build_nodes(struct wordpiece *w, struct node_range *ranges, const struct sorted_entry *sorted)
{
	w->node_count = 1;
	for (uint32_t node = 0; node < w->node_count; node++) {
		struct node_range range = ranges[node];
		int32_t i = range.first;

		w->id[node] = -1;
		while (i < range.last && sorted[i].size == range.depth)
			w->id[node] = sorted[i++].id; /* of duplicates, the last one is used */
		w->first_child[node] = w->node_count;
		while (i < range.last) {
			uint8_t byte = (uint8_t)sorted[i].text[range.depth];
			int32_t first = i;

			while (i < range.last && (uint8_t)sorted[i].text[range.depth] == byte)
				i++;
			w->byte[w->node_count] = byte;
			ranges[w->node_count++] = (struct node_range){first, i, range.depth + 1};
		}
	}
	w->first_child[w->node_count] = w->node_count;
}

/* The child of a node for a byte; 0 (the root, which is never a child) if there is none. */
static uint32_t find_child(const struct wordpiece *w, uint32_t node, uint8_t byte)
{
	uint32_t low = w->first_child[node], end = w->first_child[node + 1], high = end;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (w->byte[middle] < byte)
			low = middle + 1;
		else
			high = middle;
	}
	return low < end && w->byte[low] == byte ? low : 0;
}

enum status wordpiece_init(struct wordpiece *wordpiece, const struct vocab *vocab)
{
	struct wordpiece *w = wordpiece;
	struct sorted_entry *sorted = NULL;
	struct node_range *ranges = NULL;
	enum status status;
	uint32_t continuation = 0;
	int64_t nodes = 2; /* upper bound: the root, the end of first_child, and one for each byte */

	*w = (struct wordpiece){.node_count = 0};
	for (int32_t i = 0; i < vocab->wordpiece_count; i++)
		nodes += vocab->size[i];
	if (nodes > UINT32_MAX)
		return error_set(ERR_RESOURCE, "a vocabulary of %lld bytes is too large", (long long)nodes);
	TRY_GOTO(memory_new(&sorted, vocab->wordpiece_count, sizeof *sorted, "vocabulary"), out);
	TRY_GOTO(memory_new(&ranges, nodes, sizeof *ranges, "vocabulary"), out);
	TRY_GOTO(memory_new(&w->first_child, nodes, sizeof *w->first_child, "vocabulary"), out);
	TRY_GOTO(memory_new(&w->byte, nodes, sizeof *w->byte, "vocabulary"), out);
	TRY_GOTO(memory_new(&w->id, nodes, sizeof *w->id, "vocabulary"), out);
	for (int32_t i = 0; i < vocab->wordpiece_count; i++)
		sorted[i] = (struct sorted_entry){vocab->text[i], vocab->size[i], i};
	qsort(sorted, (size_t)vocab->wordpiece_count, sizeof *sorted, compare_entries);
	ranges[0] = (struct node_range){0, vocab->wordpiece_count, 0};
	build_nodes(w, ranges, sorted);
	for (size_t i = 0; vocab->prefix[i] && (i == 0 || continuation); i++)
		continuation = find_child(w, continuation, (uint8_t)vocab->prefix[i]);
	for (int byte = 0; byte < 256; byte++) {
		w->branches[0][byte] = find_child(w, 0, (uint8_t)byte);
		w->branches[1][byte] = continuation || !vocab->prefix[0] ? find_child(w, continuation, (uint8_t)byte) : 0;
	}
out:
	free(sorted);
	free(ranges);
	if (status != OK)
		wordpiece_release(w);
	return status;
}

void wordpiece_release(struct wordpiece *wordpiece)
{
	free(wordpiece->first_child);
	free(wordpiece->byte);
	free(wordpiece->id);
	*wordpiece = (struct wordpiece){.node_count = 0};
}

/* The longest entry that `text` (size > 0) begins with: its id, and its size (without the prefix) in *out_size; -1 if there is
 * none. `is_continuation` is 0 at the beginning of a word and 1 within it. */
static int32_t wordpiece_match(const struct wordpiece *wordpiece, int is_continuation, const char *text, size_t size,
			       size_t *out_size)
{
	uint32_t node = wordpiece->branches[is_continuation][(uint8_t)text[0]];
	int32_t id = -1;

	*out_size = 0;
	for (size_t i = 1; node != 0; i++) {
		if (wordpiece->id[node] >= 0) {
			id = wordpiece->id[node];
			*out_size = i;
		}
		if (i == size)
			break;
		node = find_child(wordpiece, node, (uint8_t)text[i]);
	}
	return id;
}

int32_t wordpiece_cut(const struct wordpiece *wordpiece, const char *text, size_t size, int32_t *ids, int32_t capacity)
{
	bool inner = size > 2 && memcmp(text, "##", 2) == 0;
	int32_t count = 0;
	for (size_t at = inner ? 2 : 0, length; at < size; at += length) {
		int32_t id = wordpiece_match(wordpiece, inner || at > 0, text + at, size - at, &length);
		if (id < 0 || count == capacity)
			return 0;
		ids[count++] = id;
	}
	return count;
}

/* ---- As the model of a chain ---- */

struct wordpiece_model {
	struct wordpiece trie;
	int32_t unknown;
	size_t max_characters;
};

enum status wordpiece_model_new(struct wordpiece_model **out, const struct vocab *vocab, int32_t unknown, int64_t max_characters)
{
	TRY(memory_new(out, 1, sizeof **out, "vocabulary"));
	(*out)->unknown = unknown;
	(*out)->max_characters = (size_t)max_characters;
	enum status status = wordpiece_init(&(*out)->trie, vocab);
	if (status != OK) {
		free(*out);
		*out = NULL;
	}
	return status;
}

/* Greedy longest match; the whole word becomes unknown if some part matches nothing, or if it is too long. */
static enum status cut(const void *model, const char *text, size_t size, struct pieces *out)
{
	const struct wordpiece_model *m = model;
	int64_t first = out->count;
	size_t done = 0;

	if (size <= m->max_characters || utf8_length(text, size) <= m->max_characters) {
		while (done < size) {
			size_t length;
			int32_t id = wordpiece_match(&m->trie, done > 0, text + done, size - done, &length);

			if (id < 0)
				break;
			TRY(pieces_put(out, id, done, done + length));
			done += length;
		}
	}
	if (done == size)
		return OK;
	out->count = first;
	return pieces_put(out, m->unknown, 0, size);
}

static void close_model(void *model)
{
	struct wordpiece_model *m = model;

	if (m)
		wordpiece_release(&m->trie);
	free(m);
}

static enum status open_model(void **out, const struct model_source *source)
{
	const struct vocab *vocab = source->vocab;
	const char *unknown = "[UNK]";
	int64_t max_characters = 100;

	TRY(json_get_string(source->part.object, source->part.path, "unk_token", &unknown));
	TRY(json_get_integer(source->part.object, source->part.path, "max_input_chars_per_word", 0, INT32_MAX, &max_characters));
	int32_t id = vocab_find(vocab, unknown, strlen(unknown));
	if (id < 0)
		return error_set(ERR_DATA, "'%s': \"unk_token\", '%.100s', is not an entry of the vocabulary", source->part.path,
				 unknown);
	return wordpiece_model_new((struct wordpiece_model **)out, vocab, id, max_characters);
}

static const char *const members[] = {"unk_token", "continuing_subword_prefix", "max_input_chars_per_word", NULL};

const struct token_model wordpiece_model = {
	.type = "WordPiece",
	.members = members,
	.open = open_model,
	.cut = cut,
	.close = close_model,
};
