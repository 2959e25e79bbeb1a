/* Lowercase, StripAccents, Strip, Prepend, and Replace of a tokenizer.json. */
#include "text/tokenizer/tokenizer_parts.h"

#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "text/tokenizer/plain_characters.h"
#include "text/unicode.h"
#include "text/utf8.h"

static enum status pass_rewritten(const struct stage *stage, struct chain_run *run, const struct rewriting *rewriting)
{
	struct word result = word_of_buffer(rewriting->out);
	return chain_next(run, stage, &result);
}

/* ---- Lowercase ---- */

#define CAPITAL_I_WITH_DOT 0x130 /* the only code point whose lower case is two code points */
#define COMBINING_DOT 0x307

static enum status open_lowercase(struct stage *stage, const struct part *part)
{
	struct plain_characters *plain;
	(void)part;
	TRY(memory_new(&plain, 1, sizeof *plain, "tokenizer"));
	stage->own = plain;
	for (uint32_t c = 0; c < PLAIN_LIMIT; c++)
		if (unicode_lowercase(UNICODE_HUGGINGFACE, c) == c && c != CAPITAL_I_WITH_DOT)
			plain_add(plain, c);
	return OK;
}

static enum status run_lowercase(const struct stage *stage, struct chain_run *run, const struct word *word)
{
	const struct plain_characters *plain = stage->own;
	size_t end = plain_run_end(plain, word->text, word->size, 0);
	if (end == word->size)
		return chain_next(run, stage, word);
	struct rewriting rewriting = rewriting_begin(run, stage, word);
	for (;; end = plain_run_end(plain, word->text, word->size, rewriting.at)) {
		uint32_t code_point;
		TRY(rewriting_copy(&rewriting, end - rewriting.at));
		if (end == word->size)
			return pass_rewritten(stage, run, &rewriting);
		utf8_decode(word->text + end, word->size - end, &code_point);
		if (code_point == CAPITAL_I_WITH_DOT) {
			TRY(rewriting_put(&rewriting, 'i', 0));
			TRY(rewriting_put(&rewriting, COMBINING_DOT, 1));
		} else {
			TRY(rewriting_put(&rewriting, unicode_lowercase(UNICODE_HUGGINGFACE, code_point), 0));
		}
	}
}

const struct stage_kind stage_lowercase = {.type = "Lowercase", .open = open_lowercase, .run = run_lowercase};

/* ---- StripAccents ---- */

static enum status run_strip_accents(const struct stage *stage, struct chain_run *run, const struct word *word)
{
	struct rewriting rewriting = rewriting_begin(run, stage, word);
	for (size_t length; rewriting.at < word->size;) {
		uint32_t code_point;
		length = utf8_decode(word->text + rewriting.at, word->size - rewriting.at, &code_point);
		if (code_point >= 0x300 && unicode_flags(UNICODE_HUGGINGFACE, code_point) & UNICODE_ACCENT)
			rewriting_skip(&rewriting, 1);
		else
			TRY(rewriting_copy(&rewriting, length));
	}
	return pass_rewritten(stage, run, &rewriting);
}

const struct stage_kind stage_strip_accents = {.type = "StripAccents", .run = run_strip_accents};

/* ---- Strip ---- */

struct strip {
	bool left, right;
};

static enum status open_strip(struct stage *stage, const struct part *part)
{
	struct strip *own;
	TRY(memory_new(&own, 1, sizeof *own, "tokenizer"));
	stage->own = own;
	TRY(json_get_bool(part->object, part->path, "strip_left", &own->left));
	return json_get_bool(part->object, part->path, "strip_right", &own->right);
}

static enum status run_strip(const struct stage *stage, struct chain_run *run, const struct word *word)
{
	const struct strip *own = stage->own;
	size_t begin = 0, end = word->size, length;
	uint32_t code_point;
	for (; own->left && begin < end; begin += length) {
		length = utf8_decode(word->text + begin, end - begin, &code_point);
		if (!unicode_is_space(code_point))
			break;
	}
	for (; own->right && begin < end; end -= length) {
		length = utf8_decode_last(word->text + begin, end - begin, &code_point);
		if (!unicode_is_space(code_point))
			break;
	}
	struct word rest = word_part(word, begin, end);
	return chain_next(run, stage, &rest);
}

static const char *const strip_members[] = {"strip_left", "strip_right", NULL};
const struct stage_kind stage_strip = {.type = "Strip", .members = strip_members, .open = open_strip, .run = run_strip};

/* A copy of the string that a member holds. */
static enum status copy_text(const struct part *part, const struct json *text, const char *member, char **out)
{
	if (!text || text->kind != JSON_STRING || strlen(text->text) != text->text_size)
		return part_refuse(part, member);
	TRY(memory_new(out, (int64_t)text->text_size + 1, 1, "tokenizer"));
	memcpy(*out, text->text, text->text_size);
	return OK;
}

/* ---- Prepend ---- */

static enum status open_prepend(struct stage *stage, const struct part *part)
{
	return copy_text(part, json_member(part->object, "prepend"), "prepend", (char **)&stage->own);
}

/* The first character of the text takes the place of the word's, which is inserted behind it again, as there. */
static enum status run_prepend(const struct stage *stage, struct chain_run *run, const struct word *word)
{
	const char *text = stage->own;
	struct normalized_text *out = chain_buffer(run, stage);
	struct rewriting rewriting = {.from = word, .out = out};
	uint32_t begin, end;
	word_place(word, 0, &begin, &end);
	TRY(normalized_text_append(out, text, strlen(text), begin, end));
	TRY(rewriting_copy(&rewriting, word->size));
	return pass_rewritten(stage, run, &rewriting);
}

static const char *const prepend_members[] = {"prepend", NULL};
const struct stage_kind stage_prepend = {.type = "Prepend", .members = prepend_members, .open = open_prepend, .run = run_prepend};

/* ---- Replace ---- */

/* What is replaced: a text, or one of the regular expressions that published tokenizers have. */
struct replace {
	char *content;
	char *text; /* or, if NULL, two spaces or more */
};

static enum status open_replace(struct stage *stage, const struct part *part)
{
	const struct json *pattern = json_member(part->object, "pattern"), *expression = json_member(pattern, "Regex");
	struct replace *own;
	TRY(memory_new(&own, 1, sizeof *own, "tokenizer"));
	stage->own = own;
	TRY(copy_text(part, json_member(part->object, "content"), "content", &own->content));
	if (expression && expression->kind == JSON_STRING) {
		struct part inside = {.object = pattern, .path = part->path, .role = part->role};
		return strcmp(expression->text, " {2,}") == 0 ? OK : part_refuse(&inside, "Regex");
	}
	TRY(copy_text(part, json_member(pattern, "String"), "pattern", &own->text));
	return own->text[0] ? OK : part_refuse(part, "pattern");
}

static void close_replace(struct stage *stage)
{
	struct replace *own = stage->own;
	if (own) {
		free(own->content);
		free(own->text);
	}
	free(own);
}

/* The place and size of the next match; false if there is none. */
static bool find_match(const struct replace *own, const struct word *word, size_t from, size_t *out_at, size_t *out_size)
{
	const char *text = own->text ? own->text : "  ";
	const char *found = memmem(word->text + from, word->size - from, text, strlen(text));
	if (!found)
		return false;
	*out_at = (size_t)(found - word->text);
	*out_size = strlen(text);
	while (!own->text && *out_at + *out_size < word->size && found[*out_size] == ' ')
		++*out_size;
	return true;
}

static enum status run_replace(const struct stage *stage, struct chain_run *run, const struct word *word)
{
	const struct replace *own = stage->own;
	struct rewriting rewriting;
	size_t at, size;
	if (!find_match(own, word, 0, &at, &size))
		return chain_next(run, stage, word);
	rewriting = rewriting_begin(run, stage, word);
	do {
		uint32_t begin, end;
		TRY(rewriting_copy(&rewriting, at - rewriting.at));
		rewriting.at += size;
		word_place(word, rewriting.at - 1, &begin, &end);
		TRY(normalized_text_append(rewriting.out, own->content, strlen(own->content), begin, end));
	} while (find_match(own, word, rewriting.at, &at, &size));
	TRY(rewriting_copy(&rewriting, word->size - rewriting.at));
	return pass_rewritten(stage, run, &rewriting);
}

static const char *const replace_members[] = {"pattern", "content", NULL};
const struct stage_kind stage_replace = {
	.type = "Replace", .members = replace_members, .open = open_replace, .run = run_replace, .close = close_replace};
