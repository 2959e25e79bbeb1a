/* Whitespace, Punctuation, Digits, and Split of a tokenizer.json. */
#include "text/tokenizer/tokenizer_parts.h"

#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "text/tokenizer/character_classes.h"
#include "text/tokenizer/patterns.h"

/* What becomes of a match. */
enum behavior { REMOVED, ISOLATED, CONTIGUOUS, MERGED_WITH_PREVIOUS, MERGED_WITH_NEXT };

/* Where a stage divides text. */
struct splitter {
	enum behavior behavior;
	bool invert;                           /* what lies between matches is a match, and the reverse */
	bool (*is_match)(uint32_t code_point); /* of single characters; NULL: */
	pattern_match *pattern;                /* of a pattern; NULL: */
	char *literal;                         /* of this text */
	size_t literal_size;
};

/* ---- Dividing ---- */

/* The end of the match that begins at `at`; `at` if none does. */
static size_t match_at(const struct splitter *s, const struct word *word, size_t at)
{
	if (s->is_match) {
		uint32_t c;
		size_t length = utf8_decode(word->text + at, word->size - at, &c);
		return s->is_match(c) ? at + length : at;
	}
	if (s->pattern)
		return s->pattern(word->text, word->size, at);
	bool found = word->size - at >= s->literal_size && memcmp(word->text + at, s->literal, s->literal_size) == 0;
	return found ? at + s->literal_size : at;
}

/* A part of the text, either a match or what lies between two. */
struct segment {
	size_t begin, end;
	bool is_match;
};

static enum status emit(const struct stage *stage, struct chain_run *run, const struct word *word, struct segment segment)
{
	struct word part = word_part(word, segment.begin, segment.end);
	return chain_next(run, stage, &part);
}

/* Joins the next segment to the one before, or passes that one on and keeps the next. */
static enum status add_segment(const struct stage *stage, struct chain_run *run, const struct word *word, struct segment *kept,
			       struct segment next)
{
	const struct splitter *s = stage->own;
	bool joins = false;
	if (s->behavior == ISOLATED)
		return emit(stage, run, word, next);
	if (s->behavior == REMOVED && next.is_match)
		return OK;
	if (kept->end > kept->begin) {
		if (s->behavior == CONTIGUOUS)
			joins = kept->is_match == next.is_match;
		else if (s->behavior == MERGED_WITH_PREVIOUS)
			joins = next.is_match && !kept->is_match;
		else if (s->behavior == MERGED_WITH_NEXT)
			joins = kept->is_match && !next.is_match;
	}
	if (joins) {
		kept->end = next.end;
		kept->is_match = next.is_match;
		return OK;
	}
	TRY(emit(stage, run, word, *kept));
	*kept = next;
	return OK;
}

static enum status run_split(const struct stage *stage, struct chain_run *run, const struct word *word)
{
	const struct splitter *s = stage->own;
	struct segment kept = {0};
	size_t between = 0; /* where the text after the last match begins */
	for (size_t at = 0; at < word->size;) {
		size_t end = match_at(s, word, at);
		if (end == at) {
			for (at++; at < word->size && ((unsigned char)word->text[at] & 0xC0) == 0x80; at++)
				;
			continue;
		}
		if (at > between)
			TRY(add_segment(stage, run, word, &kept, (struct segment){between, at, s->invert}));
		TRY(add_segment(stage, run, word, &kept, (struct segment){at, end, !s->invert}));
		at = between = end;
	}
	if (word->size > between)
		TRY(add_segment(stage, run, word, &kept, (struct segment){between, word->size, s->invert}));
	return emit(stage, run, word, kept);
}

/* ---- Kinds ---- */

static bool is_punctuation(uint32_t c)
{
	return unicode_flags(UNICODE_HUGGINGFACE, c) & UNICODE_PUNCTUATION;
}

static bool is_numeric(uint32_t c)
{
	return character_classes[c] & CLASS_NUMERIC;
}

/* \w+|[^\w\s]+ */
static size_t match_word_or_marks(const char *text, size_t size, size_t at)
{
	const uint8_t kinds = CLASS_WORD | CLASS_SPACE;
	uint8_t kind = CLASS_SPACE;
	for (size_t begin = at, length; at < size; at += length) {
		uint32_t c;
		length = utf8_decode(text + at, size - at, &c);
		if (at == begin)
			kind = character_classes[c] & kinds;
		if (kind == CLASS_SPACE || (character_classes[c] & kinds) != kind)
			break;
	}
	return at;
}

static enum status new_splitter(struct stage *stage, struct splitter splitter)
{
	struct splitter *own;
	character_classes_prepare();
	TRY(memory_new(&own, 1, sizeof *own, "tokenizer"));
	*own = splitter;
	stage->own = own;
	return OK;
}

static enum status read_behavior(const struct part *part, enum behavior *out)
{
	static const char *const names[] = {"Removed", "Isolated", "Contiguous", "MergedWithPrevious", "MergedWithNext"};
	const char *name = "";
	if (!json_member(part->object, "behavior"))
		return OK;
	TRY(json_get_string(part->object, part->path, "behavior", &name));
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		if (strcmp(names[i], name) == 0) {
			*out = (enum behavior)i;
			return OK;
		}
	}
	return part_refuse(part, "behavior");
}

static enum status open_whitespace(struct stage *stage, const struct part *part)
{
	(void)part;
	return new_splitter(stage, (struct splitter){.behavior = REMOVED, .invert = true, .pattern = match_word_or_marks});
}

static enum status open_punctuation(struct stage *stage, const struct part *part)
{
	enum behavior behavior = ISOLATED;
	TRY(read_behavior(part, &behavior));
	return new_splitter(stage, (struct splitter){.behavior = behavior, .is_match = is_punctuation});
}

static enum status open_digits(struct stage *stage, const struct part *part)
{
	bool individual = false;
	TRY(json_get_bool(part->object, part->path, "individual_digits", &individual));
	return new_splitter(stage, (struct splitter){.behavior = individual ? ISOLATED : CONTIGUOUS, .is_match = is_numeric});
}

static enum status open_split(struct stage *stage, const struct part *part)
{
	const struct json *pattern = json_member(part->object, "pattern");
	const struct json *literal = json_member(pattern, "String"), *expression = json_member(pattern, "Regex");
	struct splitter splitter = {.behavior = REMOVED};
	TRY(read_behavior(part, &splitter.behavior));
	TRY(json_get_bool(part->object, part->path, "invert", &splitter.invert));
	if (expression && expression->kind == JSON_STRING)
		splitter.pattern = pattern_find(expression->text);
	else if (literal && literal->kind == JSON_STRING)
		splitter.literal_size = literal->text_size;
	if (!splitter.pattern && splitter.literal_size == 0)
		return part_refuse_value(part, "pattern", expression);
	TRY(new_splitter(stage, splitter));
	if (splitter.literal_size > 0) {
		struct splitter *own = stage->own;
		TRY(memory_new(&own->literal, (int64_t)splitter.literal_size, 1, "tokenizer"));
		memcpy(own->literal, literal->text, splitter.literal_size);
	}
	return OK;
}

static void close_split(struct stage *stage)
{
	struct splitter *own = stage->own;
	if (own)
		free(own->literal);
	free(own);
}

static const char *const behavior_members[] = {"behavior", NULL};
static const char *const digits_members[] = {"individual_digits", NULL};
static const char *const split_members[] = {"pattern", "behavior", "invert", NULL};

const struct stage_kind stage_whitespace = {.type = "Whitespace", .open = open_whitespace, .run = run_split};
const struct stage_kind stage_punctuation = {
	.type = "Punctuation", .members = behavior_members, .open = open_punctuation, .run = run_split};
const struct stage_kind stage_digits = {.type = "Digits", .members = digits_members, .open = open_digits, .run = run_split};
const struct stage_kind stage_split = {
	.type = "Split", .members = split_members, .open = open_split, .run = run_split, .close = close_split};
