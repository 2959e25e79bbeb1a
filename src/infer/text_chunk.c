/* Finds the texts in a chunk of lines, and tokenizes them into sequences or windows. */
#include "infer/text_chunk.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "data/unknown.h"
#include "infer/text_table.h"
#include "tasks/task.h"
#include "text/input_form.h"

/* The text of a line, and the second text of a pair. */
struct line_text {
	const char *text, *pair; /* pair NULL: none */
	size_t size, pair_size;
};

static enum status line_error(const struct line_chunk *chunk, int64_t line, const char *what)
{
	return error_set(ERR_DATA, "'%s', line %lld: %s", chunk->path, (long long)line, what);
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f' || c == '\v';
}

static void strip(const char **text, size_t *size)
{
	while (*size > 0 && is_space(**text)) {
		(*text)++;
		(*size)--;
	}
	while (*size > 0 && is_space((*text)[*size - 1]))
		(*size)--;
}

/* The last occurrence of the separator, or NULL. */
static const char *find_separator(const char *text, size_t size, const char *separator)
{
	size_t length = strlen(separator);
	for (size_t at = size >= length ? size - length + 1 : 0; at > 0; at--)
		if (memcmp(text + at - 1, separator, length) == 0)
			return text + at - 1;
	return NULL;
}

static struct line_text plain_text(const struct text_settings *settings, const char *text, size_t size)
{
	struct line_text out = {.text = text, .size = size};
	if (settings->strip)
		strip(&out.text, &out.size);
	const char *separator = settings->pair_separator ? find_separator(out.text, out.size, settings->pair_separator) : NULL;
	if (!separator)
		return out;
	out.pair = separator + strlen(settings->pair_separator);
	out.pair_size = out.size - (size_t)(out.pair - out.text);
	out.size = (size_t)(separator - out.text);
	if (settings->strip) {
		strip(&out.text, &out.size);
		strip(&out.pair, &out.pair_size);
	}
	return out;
}

/* Gets a member that must be a string; *out = NULL if it is absent or null. */
static enum status take_text(const struct line_chunk *chunk, int64_t line, const struct json *object, const char *key,
			     const char **out, size_t *out_size)
{
	const struct json *member = json_member(object, key);
	*out = NULL;
	if (!member || member->kind == JSON_NULL)
		return OK;
	if (member->kind != JSON_STRING)
		return error_set(ERR_DATA, "'%s', line %lld: \"%s\" is not a text", chunk->path, (long long)line, key);
	*out = member->text;
	*out_size = member->text_size;
	return OK;
}

static enum status no_text(const struct line_chunk *chunk, int64_t line, const struct json *object, const char *key)
{
	struct buffer keys = {0};
	for (const struct json *member = object->first_child; member; member = member->next)
		buffer_format(&keys, "%s%.40s", keys.size > 0 ? ", " : "", member->key);
	enum status status = error_set(ERR_DATA, "'%s', line %lld: the object has no \"%s\", but: %.200s", chunk->path,
				       (long long)line, key, buffer_string(&keys));
	error_hint("name the member with the text: --text_column NAME; or --input text, if lines are texts as they stand");
	buffer_release(&keys);
	return status;
}

static enum status json_text(const struct text_settings *settings, const struct line_chunk *chunk, int64_t line,
			     const struct json *object, struct line_text *out)
{
	const char *key = settings->text_key ? settings->text_key : "text";
	if (object->kind != JSON_OBJECT)
		return line_error(chunk, line, "not a JSON object, as the lines before it");
	TRY(take_text(chunk, line, object, key, &out->text, &out->size));
	if (!out->text)
		return no_text(chunk, line, object, key);
	if (settings->pair_key)
		return take_text(chunk, line, object, settings->pair_key, &out->pair, &out->pair_size);
	TRY(take_text(chunk, line, object, "text_pair", &out->pair, &out->pair_size));
	return out->pair ? OK : take_text(chunk, line, object, "pair", &out->pair, &out->pair_size);
}

/* Keeps the object's id as JSON, to be repeated in the output. */
static void keep_id(struct text_chunk *texts, const struct json *object, struct ready_text *ready)
{
	struct json_writer writer = {.out = &texts->ids_text};
	ready->id = texts->ids_text.size;
	json_put_again(&writer, NULL, json_member(object, "id"));
	ready->id_size = texts->ids_text.size - ready->id;
}

/* Room for a sequence of up to `most` ids. */
static enum status add_sequence(struct text_chunk *texts, int64_t most)
{
	TRY(memory_grow(&texts->ids, &texts->ids_capacity, texts->id_count + most, sizeof *texts->ids, "tokens"));
	TRY(memory_grow(&texts->sequences, &texts->sequence_capacity, texts->sequence_count + 1, sizeof *texts->sequences,
			"texts"));
	TRY(memory_grow(&texts->window_starts, &texts->window_capacity, texts->sequence_count + 1, sizeof *texts->window_starts,
			"texts"));
	return memory_grow(&texts->id_starts, &texts->id_starts_capacity, texts->sequence_count + 1, sizeof *texts->id_starts,
			   "texts");
}

static void finish_sequence(struct text_chunk *texts, struct encoder_text sequence, int64_t window_start)
{
	texts->id_starts[texts->sequence_count] = texts->id_count;
	texts->window_starts[texts->sequence_count] = (int32_t)window_start;
	texts->sequences[texts->sequence_count++] = sequence;
	texts->id_count += sequence.count;
	texts->counts.tokens += sequence.count;
}

/* How many leading tokens of a sequence are not pooled, when `prompt` tokens of the prompt remain at its beginning: those and
 * the special tokens before them. If the prompt fills the sequence, only its last token is pooled. */
static int32_t left_out_of(int64_t prompt, int32_t before, int32_t count)
{
	if (prompt <= 0)
		return 0;
	return prompt + before < count ? (int32_t)prompt + before : count - 1;
}

/* Adds a sequence for each window. `left_out`: tokens of the prompt if they are not pooled, otherwise 0. */
static enum status add_windows(struct text_chunk *texts, const struct text_settings *settings, int32_t left_out,
			       struct ready_text *ready)
{
	const struct vocab *vocab = tokenizer_vocab(settings->tokenizer);
	const struct tokens *tokens = &texts->tokens[0];
	int32_t special = template_size(&vocab->single);
	int64_t room = settings->max_seq_length - special, begin = 0;
	BUG_IF(room < 1 || settings->stride < 1);
	for (bool last = false; !last; begin += settings->stride) {
		int64_t count = tokens->count - begin < room ? tokens->count - begin : room;
		last = begin + count == tokens->count;
		TRY(add_sequence(texts, count + special + 1));
		int32_t size = template_join(&vocab->single, tokens->ids + begin, count, NULL, 0, texts->ids + texts->id_count);
		finish_sequence(texts,
				(struct encoder_text){.count = size,
						      .left_out = left_out_of(left_out - begin, vocab->single.before, size)},
				begin);
		ready->count++;
	}
	return OK;
}

static enum status too_long(const struct line_chunk *chunk, const struct ready_text *ready, int64_t tokens, bool pair,
			    int32_t most)
{
	return error_hinted(error_set(ERR_DATA, "'%s', line %lld: %s of %lld tokens, but a sequence can have at most %d",
				      chunk->path, (long long)ready->line, pair ? "a pair" : "a text", (long long)tokens, most),
			    pair ? "shorten it, or let long ones be cut: --long_texts cut"
				 : "shorten it, or choose what to do: --long_texts cut or --long_texts windows");
}

static enum status encode(struct text_chunk *texts, const struct line_chunk *chunk, const struct text_settings *settings,
			  const struct line_text *text, int32_t prompt_tokens, struct ready_text *ready)
{
	struct tokens *tokens = texts->tokens;
	const char *begin = text->text;
	size_t size = text->size;
	if (settings->prompt) {
		buffer_clear(&texts->joined);
		buffer_text(&texts->joined, settings->prompt);
		buffer_append(&texts->joined, begin, size);
		TRY(buffer_status(&texts->joined));
		begin = buffer_string(&texts->joined);
		size = texts->joined.size;
	}
	tokens_clear(&tokens[0]);
	tokens_clear(&tokens[1]);
	TRY(tokenizer_encode(settings->tokenizer, begin, size, &tokens[0]));
	if (text->pair)
		TRY(tokenizer_encode(settings->tokenizer, text->pair, text->pair_size, &tokens[1]));
	const struct vocab *vocab = tokenizer_vocab(settings->tokenizer);
	int64_t all = tokens[0].count + tokens[1].count + template_size(text->pair ? &vocab->pair : &vocab->single);
	texts->counts.bytes += (int64_t)(text->size + text->pair_size);
	texts->counts.words += tokens[0].count + tokens[1].count;
	texts->counts.empty += tokens[0].count + tokens[1].count == (settings->prompt ? prompt_tokens : 0);
	int32_t left_out = settings->leaves_out_prompt && settings->prompt ? prompt_tokens : 0;
	bool too_many = all > settings->max_seq_length;
	if (too_many && (settings->long_texts == LONG_STOP || (settings->long_texts == LONG_WINDOWS && text->pair)))
		return too_long(chunk, ready, all, text->pair != NULL, settings->max_seq_length);
	if (too_many && settings->long_texts == LONG_WINDOWS) {
		texts->counts.windowed++;
		return add_windows(texts, settings, left_out, ready);
	}
	struct encoded_text encoded;
	TRY(add_sequence(texts, settings->max_seq_length));
	task_join_tokens(vocab, &tokens[0], text->pair ? &tokens[1] : NULL, settings->max_seq_length,
			 texts->ids + texts->id_count, &encoded);
	finish_sequence(texts,
			(struct encoder_text){.count = encoded.count,
					      .second = encoded.second < encoded.count ? encoded.second : 0,
					      .left_out = left_out_of(left_out, vocab->single.before, encoded.count)},
			0);
	ready->count = 1;
	ready->cut = encoded.cut;
	texts->counts.cut += encoded.cut > 0;
	texts->counts.cut_tokens += encoded.cut;
	return OK;
}

static enum status add_text(struct text_chunk *texts, const struct line_chunk *chunk, const struct text_settings *settings,
			    const struct line_text *text, int32_t prompt_tokens, struct ready_text *ready)
{
	TRY(memory_grow(&texts->texts, &texts->text_capacity, texts->text_count + 1, sizeof *texts->texts, "texts"));
	TRY(encode(texts, chunk, settings, text, prompt_tokens, ready));
	texts->texts[texts->text_count++] = *ready;
	texts->counts.texts++;
	return OK;
}

static enum status add_line(struct text_chunk *texts, const struct line_chunk *chunk, const struct text_settings *settings,
			    int64_t number, int32_t prompt_tokens)
{
	const struct line *line = &chunk->lines[number];
	const char *bytes = chunk->text.data + line->begin;
	struct line_text text = {0};
	struct json_document document = {0};
	struct ready_text ready = {.first = texts->sequence_count, .line = chunk->first_line + number};
	enum status status = OK;
	if (chunk->json_lines && !settings->plain) {
		const char *rest = bytes;
		size_t size = line->size;
		strip(&rest, &size);
		if (size == 0)
			return OK;
		if (line->cut)
			return line_error(chunk, ready.line, "the line is too long for a JSON object");
		if (json_parse(&document, chunk->path, bytes, line->size) != OK)
			return line_error(chunk, ready.line, error_last()->message);
		TRY_GOTO(json_text(settings, chunk, ready.line, document.root, &text), done);
		keep_id(texts, document.root, &ready);
	} else {
		text = plain_text(settings, bytes, line->size);
	}
	status = add_text(texts, chunk, settings, &text, prompt_tokens, &ready);
	texts->counts.cut_lines += line->cut;
done:
	json_release(&document);
	return status;
}

static enum status add_lines(struct text_chunk *texts, const struct line_chunk *chunk, const struct text_settings *settings,
			     int32_t prompt_tokens)
{
	for (int64_t i = 0; i < chunk->count; i++)
		TRY(add_line(texts, chunk, settings, i, prompt_tokens));
	return OK;
}

/* Adds the texts of a table. */
static enum status add_rows(struct text_chunk *texts, const struct line_chunk *chunk, const struct text_settings *settings,
			    int32_t prompt_tokens)
{
	const struct text_table *columns = chunk->form;
	struct table table;
	enum status status = OK;
	TRY(text_table_read(&table, chunk, settings));
	for (int64_t i = 0; i < table.row_count && status == OK; i++) {
		struct line_text text = {.text = table_field(&table, i, columns->text)};
		struct ready_text ready = {
			.first = texts->sequence_count, .line = table.rows[i].line, .id = texts->ids_text.size};
		struct json_writer writer = {.out = &texts->ids_text};
		text.size = strlen(text.text);
		if (columns->pair >= 0) {
			text.pair = table_field(&table, i, columns->pair);
			text.pair_size = strlen(text.pair);
		}
		if (columns->id >= 0)
			json_put_string(&writer, NULL, table_field(&table, i, columns->id));
		ready.id_size = texts->ids_text.size - ready.id;
		status = add_text(texts, chunk, settings, &text, prompt_tokens, &ready);
	}
	table_release(&table);
	return status;
}

enum status text_chunk_make(struct text_chunk *texts, const struct line_chunk *chunk, const struct text_settings *settings)
{
	int32_t prompt_tokens = 0;
	texts->text_count = texts->sequence_count = texts->id_count = 0;
	texts->counts = (struct text_counts){0};
	buffer_clear(&texts->ids_text);
	if (chunk->done)
		return OK;
	if (settings->prompt) {
		tokens_clear(&texts->tokens[0]);
		TRY(tokenizer_encode(settings->tokenizer, settings->prompt, strlen(settings->prompt), &texts->tokens[0]));
		prompt_tokens = (int32_t)texts->tokens[0].count;
	}
	int64_t invalid = texts->tokens[0].invalid_bytes + texts->tokens[1].invalid_bytes;
	int64_t unknown = texts->tokens[0].unknown + texts->tokens[1].unknown;
	TRY((chunk->form ? add_rows : add_lines)(texts, chunk, settings, prompt_tokens));
	for (int64_t i = 0; i < texts->sequence_count; i++)
		texts->sequences[i].ids = texts->ids + texts->id_starts[i];
	texts->counts.invalid_bytes = texts->tokens[0].invalid_bytes + texts->tokens[1].invalid_bytes - invalid;
	texts->counts.unknown = texts->tokens[0].unknown + texts->tokens[1].unknown - unknown;
	return buffer_status(&texts->ids_text);
}

void text_chunk_release(struct text_chunk *texts)
{
	free(texts->texts);
	free(texts->sequences);
	free(texts->window_starts);
	free(texts->ids);
	free(texts->id_starts);
	tokens_release(&texts->tokens[0]);
	tokens_release(&texts->tokens[1]);
	buffer_release(&texts->ids_text);
	buffer_release(&texts->joined);
	*texts = (struct text_chunk){0};
}

void text_counts_add(struct text_counts *sum, const struct text_counts *part)
{
	sum->texts += part->texts;
	sum->tokens += part->tokens;
	sum->empty += part->empty;
	sum->cut += part->cut;
	sum->cut_tokens += part->cut_tokens;
	sum->cut_lines += part->cut_lines;
	sum->windowed += part->windowed;
	sum->bytes += part->bytes;
	sum->invalid_bytes += part->invalid_bytes;
	sum->words += part->words;
	sum->unknown += part->unknown;
}

void text_counts_log(const struct text_counts *counts, const struct text_settings *settings)
{
	char texts[FORMAT_BYTES], number[FORMAT_BYTES];
	if (counts->cut > 0)
		log_warning("%s longer than %d tokens and cut: %s tokens were left out",
			    format_counted(texts, counts->cut, "text was", "texts were"), settings->max_seq_length,
			    format_count(number, counts->cut_tokens));
	if (counts->windowed > 0)
		log_note("%s longer than %d tokens and taken in windows",
			 format_counted(texts, counts->windowed, "text was", "texts were"), settings->max_seq_length);
	if (counts->cut_lines > 0)
		log_warning("%s too long: only its beginning was read",
			    format_counted(texts, counts->cut_lines, "line was", "lines were"));
	if (counts->empty > 0)
		log_warning("%s empty", format_counted(texts, counts->empty, "text was", "texts were"));
	if (counts->invalid_bytes > 0)
		log_warning("%s not UTF-8 and left out", format_counted(number, counts->invalid_bytes, "byte was", "bytes were"));
	input_warn_invalid(counts->invalid_bytes, counts->bytes);
	unknown_warn("the texts", counts->unknown, counts->words);
}
