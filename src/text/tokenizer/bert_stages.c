/* BERT's normalizer and pre-tokenizer as stages, for tokenizers that have only some of BERT's parts; with all of them, texts take
 * the shorter way of tokenizer_walk.h. */
#include "text/tokenizer/tokenizer_parts.h"

#include <stdlib.h>
#include "base/memory.h"

/* Reads the members of a BertNormalizer into `settings`. */
static enum status bert_normalizer_read(const struct part *part, struct tokenizer_settings *settings)
{
	bool clean = true;
	const struct json *strip_accents = json_member(part->object, "strip_accents");
	TRY(json_get_bool(part->object, part->path, "clean_text", &clean));
	if (!clean)
		return part_refuse(part, "clean_text");
	TRY(json_get_bool(part->object, part->path, "handle_chinese_chars", &settings->split_chinese));
	TRY(json_get_bool(part->object, part->path, "lowercase", &settings->lowercase));
	/* null, or no such member, means "same as lower-casing". */
	settings->strip_accents = settings->lowercase;
	if (strip_accents && strip_accents->kind != JSON_NULL)
		TRY(json_get_bool(part->object, part->path, "strip_accents", &settings->strip_accents));
	return OK;
}

static enum status open_normalizer(struct stage *stage, const struct part *part)
{
	struct tokenizer_settings settings = tokenizer_defaults(false);
	struct normalizer *normalizer;
	TRY(bert_normalizer_read(part, &settings));
	TRY(memory_new(&normalizer, 1, sizeof *normalizer, "tokenizer"));
	stage->own = normalizer;
	return normalizer_init(normalizer, &settings);
}

static void close_normalizer(struct stage *stage)
{
	normalizer_release(stage->own);
	free(stage->own);
}

/* Normalizes the piece as if it were the source, then finds the places of its bytes there. */
static enum status run_normalizer(const struct stage *stage, struct chain_run *run, const struct word *word)
{
	struct normalized_text *out = chain_buffer(run, stage);
	TRY(normalized_text_make(out, stage->own, word->text, 0, word->size));
	bool is_before = false; /* the last of the spaces that were put on both sides of an ideograph, and have its place */
	for (int64_t i = 0; i < out->size; i++) {
		bool is_inserted = out->begins[i] == out->ends[i];
		is_before = is_inserted ? !is_before : is_before;
		if (is_inserted && !is_before) {
			out->begins[i] = out->begins[i - 1];
			out->ends[i] = out->ends[i - 1];
			continue;
		}
		uint32_t begin = out->begins[i + is_inserted], end = out->ends[i + is_inserted];
		out->begins[i] = word->begins ? word->begins[begin] : word->begin + begin;
		out->ends[i] = word->begins ? word->ends[end - 1] : word->begin + end;
	}
	struct word result = word_of_buffer(out);
	return chain_next(run, stage, &result);
}

static const char *const normalizer_members[] = {"clean_text", "handle_chinese_chars", "strip_accents", "lowercase", NULL};

const struct stage_kind stage_bert_normalizer = {
	.type = "BertNormalizer",
	.members = normalizer_members,
	.open = open_normalizer,
	.run = run_normalizer,
	.close = close_normalizer,
};

static enum status run_pre_tokenizer(const struct stage *stage, struct chain_run *run, const struct word *word)
{
	size_t begin = 0, at = 0;
	while (at < word->size) {
		uint32_t c;
		size_t length = utf8_decode(word->text + at, word->size - at, &c);
		uint8_t flags = unicode_flags(UNICODE_HUGGINGFACE, c);
		bool is_word = flags & UNICODE_PUNCTUATION, is_space = unicode_is_space(c);
		if (is_word || is_space) {
			struct word before = word_part(word, begin, at), here = word_part(word, at, at + length);
			TRY(chain_next(run, stage, &before));
			if (is_word)
				TRY(chain_next(run, stage, &here));
			begin = at + length;
		}
		at += length;
	}
	struct word rest = word_part(word, begin, word->size);
	return chain_next(run, stage, &rest);
}

const struct stage_kind stage_bert_pre_tokenizer = {.type = "BertPreTokenizer", .run = run_pre_tokenizer};
