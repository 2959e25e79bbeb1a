/* Reads, writes, and searches vocabularies. */
#include "text/vocab.h"

#include <stdlib.h>
#include <string.h>
#include "base/buffer.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/memory.h"
#include "text/tokenizer/chain.h"
#include "text/tokenizer/decoder.h"
#include "text/tokenizer/post_processor.h"
#include "text/unicode.h"

#define VOCAB_FILE_LIMIT ((size_t)1 << 28) /* the largest published vocabulary takes 5 MB */

/* What vocab->memory points to. `slots` is an open-addressing hash table of ids, with -1 in free slots; its size is a
 * power of two and at least twice the number of entries. */
struct vocab_memory {
	char *bytes; /* all entries, each NUL-terminated */
	int32_t *slots;
	uint64_t slot_mask;
};

/* Lines with the same oddity, for one warning about all of them. */
struct noted_lines {
	int64_t count;
	int64_t first[3];
};

static void note_line(struct noted_lines *lines, int64_t line)
{
	if (lines->count < 3)
		lines->first[lines->count] = line;
	lines->count++;
}

static void warn_lines(const struct noted_lines *lines, const char *path, const char *what)
{
	struct buffer text = {0};

	if (lines->count == 0)
		return;
	for (int64_t i = 0; i < lines->count && i < 3; i++)
		buffer_format(&text, "%s%lld", i ? ", " : "", (long long)lines->first[i]);
	log_warning_once("'%s': %s (line %s%s)", path, what, buffer_string(&text), lines->count > 3 ? ", ..." : "");
	buffer_release(&text);
}

static bool is_white_space(uint32_t code_point)
{
	return code_point == '\v' || code_point == '\f' || code_point == 0x85 ||
	       (code_point != UTF8_INVALID && unicode_flags(UNICODE_GOOGLE, code_point) & UNICODE_SPACE);
}

size_t vocab_trimmed_size(const char *text, size_t size)
{
	while (size > 0) {
		uint32_t code_point;
		size_t length = utf8_decode_last(text, size, &code_point);

		if (!is_white_space(code_point))
			break;
		size -= length;
	}
	return size;
}

/* The slot that holds an entry with these bytes, or the free slot where it belongs. */
static uint64_t find_slot(const struct vocab *vocab, const char *text, size_t size)
{
	const struct vocab_memory *memory = vocab->memory;
	uint64_t slot = hash64(text, size) & memory->slot_mask;

	for (;; slot = (slot + 1) & memory->slot_mask) {
		int32_t id = memory->slots[slot];

		if (id < 0 || (vocab->size[id] == size && memcmp(vocab->text[id], text, size) == 0))
			return slot;
	}
}

/* Allocates room for `count` entries with `bytes` bytes in total, including their NULs. */
static enum status vocab_allocate(struct vocab *vocab, int64_t count, int64_t bytes)
{
	struct vocab_memory *memory;
	int64_t slots = 16;

	*vocab = (struct vocab){.prefix = "##"};
	while (slots < 2 * count)
		slots *= 2;
	TRY(memory_new(&vocab->memory, 1, sizeof *memory, "vocabulary"));
	memory = vocab->memory;
	memory->slot_mask = (uint64_t)slots - 1;
	TRY(memory_new(&memory->bytes, bytes, 1, "vocabulary"));
	TRY(memory_new(&memory->slots, slots, sizeof *memory->slots, "vocabulary"));
	memset(memory->slots, 0xFF, (size_t)slots * sizeof *memory->slots);
	TRY(memory_new(&vocab->text, count, sizeof *vocab->text, "vocabulary"));
	TRY(memory_new(&vocab->size, count, sizeof *vocab->size, "vocabulary"));
	TRY(memory_new(&vocab->is_continuation, count, sizeof *vocab->is_continuation, "vocabulary"));
	return OK;
}

/* Adds the next entry. If it is a duplicate, vocab_find() finds this one from now on. */
static void vocab_add(struct vocab *vocab, char **bytes, const char *text, size_t size)
{
	struct vocab_memory *memory = vocab->memory;
	uint64_t slot = find_slot(vocab, text, size);
	int32_t id = vocab->count++;

	if (size > 0)
		memcpy(*bytes, text, size);
	vocab->text[id] = *bytes;
	vocab->size[id] = (uint32_t)size;
	vocab->is_continuation[id] = size >= 2 && text[0] == '#' && text[1] == '#';
	*bytes += size;
	*(*bytes)++ = '\0';
	memory->slots[slot] = id;
	vocab->wordpiece_count = vocab->count;
}

/* Computes the hash of the entries. */
static enum status vocab_hash(struct vocab *vocab)
{
	struct buffer all = {0};
	enum status status;

	for (int32_t id = 0; id < vocab->count; id++) {
		buffer_append(&all, vocab->text[id], vocab->size[id]);
		buffer_char(&all, '\n');
	}
	TRY_GOTO(buffer_status(&all), out);
	vocab->hash = hash64(all.data, all.size);
out:
	buffer_release(&all);
	return status;
}

static void find_special(struct vocab *vocab, const char *const names[VOCAB_SPECIAL_TOKENS])
{
	int32_t *const ids[VOCAB_SPECIAL_TOKENS] = {&vocab->pad, &vocab->unk, &vocab->cls, &vocab->sep, &vocab->mask};

	for (int i = 0; i < VOCAB_SPECIAL_TOKENS; i++)
		*ids[i] = names[i] ? vocab_find(vocab, names[i], strlen(names[i])) : -1;
}

/* Finds BERT's special tokens and computes the hash. `name` is the file, or NULL. */
static enum status vocab_complete(struct vocab *vocab, const char *name)
{
	static const char *const texts[VOCAB_SPECIAL_TOKENS] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
	int32_t ids[VOCAB_SPECIAL_TOKENS];
	struct buffer missing = {0};
	enum status status = OK;

	find_special(vocab, texts);
	vocab_special_ids(vocab, ids);
	for (int i = 0; i < VOCAB_SPECIAL_TOKENS; i++)
		if (ids[i] < 0)
			buffer_format(&missing, " %s", texts[i]);
	if (missing.size > 0) {
		status = error_set(ERR_DATA, "'%s': no entry%s among its %d entries", name ? name : "vocabulary",
				   buffer_string(&missing), vocab->count);
		error_hint("a BERT vocabulary has one entry per line, among them [PAD] [UNK] [CLS] [SEP] [MASK]; 'bertc "
			   "vocab' makes one from text");
	}
	buffer_release(&missing);
	TRY(status);
	post_processor_usual(vocab);
	return vocab_hash(vocab);
}

void vocab_special_ids(const struct vocab *vocab, int32_t out[VOCAB_SPECIAL_TOKENS])
{
	const int32_t ids[VOCAB_SPECIAL_TOKENS] = {vocab->pad, vocab->unk, vocab->cls, vocab->sep, vocab->mask};

	memcpy(out, ids, sizeof ids);
}

/* Makes a vocabulary from the lines of a file. */
static enum status vocab_parse(struct vocab *out, const char *path, const char *text, size_t size)
{
	struct noted_lines blank = {0}, duplicate = {0}, carriage_return = {0}, space = {0};
	int64_t line_count = 0, line = 0;
	char *bytes;

	if (size >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) {
		log_warning_once("'%s': begins with a byte order mark, which is left out", path);
		text += 3;
		size -= 3;
	}
	for (size_t i = 0; i < size; i++)
		line_count += text[i] == '\n' || i + 1 == size;
	if (line_count == 0)
		return error_set(ERR_DATA, "'%s': the vocabulary is empty", path);
	if (line_count > INT32_MAX / 2)
		return error_set(ERR_DATA, "'%s': %lld lines are too many for a vocabulary", path, (long long)line_count);
	TRY(vocab_allocate(out, line_count, (int64_t)size + line_count));
	bytes = ((struct vocab_memory *)out->memory)->bytes;
	for (size_t i = 0; i < size;) {
		const char *end = memchr(text + i, '\n', size - i);
		size_t length = end ? (size_t)(end - (text + i)) : size - i;
		size_t kept = vocab_trimmed_size(text + i, length);

		line++;
		if (memchr(text + i, '\0', length) || utf8_count_invalid(text + i, length) > 0)
			return error_hinted(error_set(ERR_DATA, "'%s': line %lld is not UTF-8 text", path, (long long)line),
					    "give the vocab.txt of a BERT model, one entry per line");
		if (kept + 1 == length && text[i + kept] == '\r')
			note_line(&carriage_return, line);
		else if (kept < length)
			note_line(&space, line);
		if (kept == 0)
			note_line(&blank, line);
		else if (vocab_find(out, text + i, kept) >= 0)
			note_line(&duplicate, line);
		vocab_add(out, &bytes, text + i, kept);
		i += length + 1;
	}
	warn_lines(&carriage_return, path, "lines end with CR LF; the CR is cut");
	warn_lines(&space, path, "white space at the end of an entry is cut");
	warn_lines(&blank, path, "a blank entry, which no text can match");
	warn_lines(&duplicate, path, "an entry that was there before; the later id is used");
	return vocab_complete(out, path);
}

enum status vocab_read_lines(struct vocab *out, const char *path)
{
	struct buffer text = {0};
	enum status status;

	*out = (struct vocab){.count = 0};
	TRY_GOTO(file_read(path, VOCAB_FILE_LIMIT, &text), out);
	status = vocab_parse(out, path, buffer_string(&text), text.size);
	if (status != OK)
		vocab_release(out);
out:
	buffer_release(&text);
	return status;
}

static enum status add_entries(struct vocab *out, const char *const *entries, int32_t count)
{
	int64_t total = 0;

	for (int32_t i = 0; i < count; i++)
		total += (int64_t)strlen(entries[i]) + 1;
	TRY(vocab_allocate(out, count, total));
	char *bytes = ((struct vocab_memory *)out->memory)->bytes;
	for (int32_t i = 0; i < count; i++)
		vocab_add(out, &bytes, entries[i], strlen(entries[i]));
	return OK;
}

enum status vocab_from_entries(struct vocab *out, const char *const *entries, int32_t count)
{
	enum status status;

	*out = (struct vocab){.count = 0};
	for (int32_t i = 0; i < count; i++) {
		size_t size = strlen(entries[i]);

		/* An entry that does not fit a line of vocab.txt would change the ids when that is read again. */
		if (memchr(entries[i], '\n', size) || vocab_trimmed_size(entries[i], size) != size ||
		    utf8_count_invalid(entries[i], size) > 0)
			return error_set(ERR_DATA, "vocabulary entry %d does not fit a line of vocab.txt: '%s'", i, entries[i]);
	}
	TRY_GOTO(add_entries(out, entries, count), fail);
	TRY_GOTO(vocab_complete(out, NULL), fail);
	return OK;
fail:
	vocab_release(out);
	return status;
}

enum status vocab_from_tokens(struct vocab *out, const char *const *entries, int32_t count,
			      const char *const special[VOCAB_SPECIAL_TOKENS])
{
	enum status status = add_entries(out, entries, count);

	if (status == OK) {
		find_special(out, special);
		post_processor_usual(out);
		status = vocab_hash(out);
	}
	if (status != OK)
		vocab_release(out);
	return status;
}

enum status vocab_write(const struct vocab *vocab, const char *path)
{
	struct buffer text = {0};
	enum status status;

	for (int32_t id = 0; id < vocab->count; id++) {
		buffer_append(&text, vocab->text[id], vocab->size[id]);
		buffer_char(&text, '\n');
	}
	TRY_GOTO(buffer_status(&text), out);
	TRY_GOTO(file_write(path, text.data, text.size), out);
out:
	buffer_release(&text);
	return status;
}

int32_t vocab_find(const struct vocab *vocab, const char *text, size_t size)
{
	const struct vocab_memory *memory = vocab->memory;

	return memory->slots[find_slot(vocab, text, size)];
}

static bool is_added(const struct vocab *vocab, int32_t id)
{
	for (int32_t i = 0; i < vocab->added_count; i++)
		if (vocab->added[i].id == id)
			return true;
	return false;
}

/* The first unused row whose name has at least `size` bytes; -1 if there is none. */
static int32_t find_unused(const struct vocab *vocab, size_t size)
{
	static const char name[] = "[unused";
	for (int32_t id = 0; id < vocab->count; id++)
		if (vocab->size[id] >= size && strncmp(vocab->text[id], name, sizeof name - 1) == 0 && !is_added(vocab, id))
			return id;
	return -1;
}

/* Renames an entry; the new name must not be longer than the old one. */
static enum status rename_entry(struct vocab *vocab, int32_t id, const char *text)
{
	struct vocab_memory *memory = vocab->memory;
	char *own = memory->bytes + (vocab->text[id] - memory->bytes);
	size_t size = strlen(text);
	BUG_IF(size > vocab->size[id]);
	memcpy(own, text, size + 1);
	vocab->size[id] = (uint32_t)size;
	memset(memory->slots, 0xFF, (size_t)(memory->slot_mask + 1) * sizeof *memory->slots);
	for (int32_t i = 0; i < vocab->count; i++)
		memory->slots[find_slot(vocab, vocab->text[i], vocab->size[i])] = i;
	return vocab_hash(vocab);
}

enum status vocab_add_token(struct vocab *vocab, const char *text, int32_t *out)
{
	*out = vocab_find(vocab, text, strlen(text));
	if (*out < 0) {
		*out = find_unused(vocab, strlen(text));
		if (*out < 0)
			return error_set(
				ERR_USAGE,
				"the vocabulary has no entry '%s', and no free row ([unused0], ...) that could become it", text);
		TRY(rename_entry(vocab, *out, text));
	}
	if (is_added(vocab, *out))
		return OK;
	return vocab_list_added(vocab, &(struct added_token){.id = *out, .special = true});
}

enum status vocab_list_added(struct vocab *vocab, const struct added_token *token)
{
	int64_t capacity = vocab->added_count;
	TRY(memory_grow(&vocab->added, &capacity, vocab->added_count + 1, sizeof *vocab->added, "added tokens"));
	vocab->added[vocab->added_count++] = *token;
	return OK;
}

bool vocab_is_special(const struct vocab *vocab, int32_t id)
{
	return id == vocab->pad || id == vocab->unk || id == vocab->cls || id == vocab->sep || id == vocab->mask;
}

bool vocab_looks_cased(const struct vocab *vocab)
{
	int32_t upper_case = 0;

	for (int32_t i = 0; i < vocab->count; i++) {
		if (vocab->text[i][0] == '[' && vocab->size[i] > 1)
			continue;
		bool found = false;
		for (const char *p = vocab->text[i]; *p && !found; p++)
			found = *p >= 'A' && *p <= 'Z';
		upper_case += found;
	}
	return upper_case > vocab->count / 100;
}

void vocab_release(struct vocab *vocab)
{
	struct vocab_memory *memory = vocab->memory;

	if (memory) {
		free(memory->bytes);
		free(memory->slots);
	}
	free(memory);
	free(vocab->text);
	free(vocab->size);
	free(vocab->is_continuation);
	free(vocab->added);
	if (vocab->chain)
		chain_release(vocab->chain);
	free(vocab->chain);
	decoder_free(vocab->decoder);
	*vocab = (struct vocab){.count = 0};
}
