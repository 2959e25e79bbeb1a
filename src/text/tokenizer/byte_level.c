/* The ByteLevel pre-tokenizer, and the characters that stand for bytes. */
#include "text/tokenizer/byte_level.h"

#include <string.h>
#include "base/memory.h"
#include "text/tokenizer/character_classes.h"
#include "text/tokenizer/patterns.h"

/* Printable characters of Latin-1 stand for themselves, the other bytes, in order, for U+0100 and what follows. */
enum { FIRST_OTHER = 0x100, CONTROLS = 33, MORE = 0x7F, SOFT_HYPHEN = 0xAD, OTHERS = 68 };

static uint32_t character_of(uint32_t byte)
{
	if (byte < CONTROLS)
		return FIRST_OTHER + byte;
	if (byte >= MORE && byte <= 0xA0)
		return FIRST_OTHER + CONTROLS + byte - MORE;
	return byte == SOFT_HYPHEN ? FIRST_OTHER + OTHERS - 1 : byte;
}

size_t byte_level_character(uint8_t byte, char out[4])
{
	return utf8_encode(character_of(byte), out);
}

int64_t byte_level_bytes(const char *text, size_t size, char *out)
{
	int64_t count = 0;
	for (size_t at = 0; at < size;) {
		uint32_t c, other;
		at += utf8_decode(text + at, size - at, &c);
		other = c - FIRST_OTHER;
		if (c >= FIRST_OTHER && other < OTHERS)
			c = other < CONTROLS ? other : other == OTHERS - 1 ? SOFT_HYPHEN : MORE + other - CONTROLS;
		else if (c >= FIRST_OTHER || character_of(c) != c)
			return -1;
		out[count++] = (char)c;
	}
	return count;
}

struct byte_level {
	bool add_prefix_space, use_regex;
};

static enum status open_byte_level(struct stage *stage, const struct part *part)
{
	struct byte_level *own;
	TRY(memory_new(&own, 1, sizeof *own, "tokenizer"));
	stage->own = own;
	own->add_prefix_space = own->use_regex = true;
	character_classes_prepare();
	TRY(json_get_bool(part->object, part->path, "add_prefix_space", &own->add_prefix_space));
	return json_get_bool(part->object, part->path, "use_regex", &own->use_regex);
}

bool byte_level_is_idle(const struct stage *stage)
{
	const struct byte_level *own = stage->own;
	return !own->add_prefix_space && !own->use_regex;
}

/* Passes on the words of a piece from `at` on. */
static enum status pass_words(const struct stage *stage, struct chain_run *run, const struct word *word, size_t at)
{
	while (at < word->size) {
		size_t end = match_gpt2(word->text, word->size, at);
		struct word part = word_part(word, at, end);
		TRY(chain_next(run, stage, &part));
		at = end;
	}
	return OK;
}

/* The first `size` bytes of a piece with a space before them. */
static enum status put_space_before(const struct stage *stage, struct chain_run *run, const struct word *word, size_t size,
				    struct word *out)
{
	struct rewriting rewriting = rewriting_begin(run, stage, word);
	uint32_t first;
	utf8_decode(word->text, word->size, &first);
	TRY(rewriting_put(&rewriting, ' ', 0));
	TRY(rewriting_put(&rewriting, first, 1));
	TRY(rewriting_copy(&rewriting, size - rewriting.at));
	*out = word_of_buffer(rewriting.out);
	return OK;
}

static enum status run_byte_level(const struct stage *stage, struct chain_run *run, const struct word *word)
{
	const struct byte_level *own = stage->own;
	struct word prefixed;
	size_t first = word->size; /* the end of the word that the space belongs to */
	if (!own->add_prefix_space || word->text[0] == ' ')
		return own->use_regex ? pass_words(stage, run, word, 0) : chain_next(run, stage, word);
	uint32_t c;
	utf8_decode(word->text, word->size, &c);
	bool is_space = character_classes[c] & CLASS_SPACE;
	if (own->use_regex && !is_space)
		first = end_of_kind(word->text, word->size, 0);
	TRY(put_space_before(stage, run, word, first, &prefixed));
	if (own->use_regex && is_space)
		return pass_words(stage, run, &prefixed, 0);
	TRY(chain_next(run, stage, &prefixed));
	return own->use_regex ? pass_words(stage, run, word, first) : OK;
}

static const char *const members[] = {"add_prefix_space", "use_regex", "trim_offsets", NULL};

const struct stage_kind stage_byte_level = {
	.type = "ByteLevel", .members = members, .open = open_byte_level, .run = run_byte_level};
