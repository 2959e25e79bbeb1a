/* Reads pairs for learning to rewrite, stores them as a shard, and makes masked instances from them. */
#include "data/pretraining/rewriting.h"
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/rng.h"
#include "base/stop.h"
#include "formats/stream.h"

#define LINE_BYTES_MAX ((size_t)64 << 20)
enum { LABEL, NUMBER, TEXT_A, TEXT_B, FIELDS };

struct rewriting {
	struct rewriting_settings settings;
	struct shard shard; /* A and B of each pair are sentences 2 i and 2 i + 1 */
	bool *labels;       /* [count] */
	int64_t count, capacity;
};

struct field {
	const char *text;
	size_t size;
};

/* Splits at the first three tabs; false if there are fewer. */
static bool split(const char *line, size_t size, struct field fields[FIELDS])
{
	for (int i = 0; i < FIELDS; i++) {
		const char *tab = i + 1 < FIELDS ? memchr(line, '\t', size) : line + size;
		if (tab == NULL)
			return false;
		fields[i] = (struct field){line, (size_t)(tab - line)};
		if (i + 1 == FIELDS)
			break;
		size -= (size_t)(tab - line) + 1;
		line = tab + 1;
	}
	return true;
}

/* Reads a whole number, which may have spaces around it; *out: it is not zero. */
static bool read_label(struct field field, bool *out)
{
	char text[32], *end;
	if (field.size == 0 || field.size >= sizeof text)
		return false;
	memcpy(text, field.text, field.size);
	text[field.size] = 0;
	long number = strtol(text, &end, 10);
	bool any = end != text;
	while (*end == ' ' || *end == '\r')
		end++;
	*out = number != 0;
	return any && *end == 0;
}

/* State while one file is read. */
struct pair_reader {
	bool strict;
	const struct tokenizer *tokenizer;
	int32_t max_seq_length;
	struct tokens tokens;
	enum status (*take)(void *context, const struct rewriting_pair *pair);
	void *context;
	struct rewriting_counts *counts;
};

static enum status take_pair(struct pair_reader *reader, const struct field *fields, bool label)
{
	struct tokens *tokens = &reader->tokens;
	tokens_clear(tokens);
	TRY(tokenizer_encode(reader->tokenizer, fields[TEXT_A].text, fields[TEXT_A].size, tokens));
	int64_t a = tokens->count;
	TRY(tokenizer_encode(reader->tokenizer, fields[TEXT_B].text, fields[TEXT_B].size, tokens));
	int64_t b = tokens->count - a, room = reader->max_seq_length - 3 - a;
	if (b > room)
		b = room;
	if (a < 2 || a >= b) {
		reader->counts->unfit++;
		return OK;
	}
	struct rewriting_pair pair = {
		.a = tokens->ids, .b = tokens->ids + a, .a_count = (int32_t)a, .b_count = (int32_t)b, .label = label};
	reader->counts->pairs++;
	return reader->take(reader->context, &pair);
}

static enum status read_lines(struct pair_reader *own, struct line_reader *reader, const char *path)
{
	for (int64_t number = 1;; number++) {
		const char *line;
		size_t size;
		bool continues, end, label = false;
		struct field fields[FIELDS];
		TRY(line_reader_next(reader, &line, &size, &continues, &end));
		if (end)
			return OK;
		own->counts->lines++;
		if (continues)
			return error_set(ERR_DATA, "'%s': line %lld is longer than 64 MiB", path, (long long)number);
		if (size == 0)
			continue;
		bool is_split = split(line, size, fields);
		if (is_split && number == 1 && fields[LABEL].size == 5 && memcmp(fields[LABEL].text, "label", 5) == 0)
			continue;
		if (!is_split || !read_label(fields[LABEL], &label)) {
			if (own->strict)
				return error_hinted(
					error_set(ERR_DATA,
						  "'%s': line %lld does not have the form label, id, text_a, "
						  "text_b, separated by tabs, with a whole number as label",
						  path, (long long)number),

					"correct the line, or give --on_bad_record skip to leave such lines out and count them");
			if (own->counts->malformed++ == 0)
				log_warning("'%s': line %lld does not have the form label, id, text_a, text_b, separated "
					    "by tabs: left out",
					    path, (long long)number);
			continue;
		}
		TRY(take_pair(own, fields, label));
		if (number % 1024 == 0 && stop_requested())
			return error_set(STOPPED, "stopped by %s; nothing was written", stop_reason());
	}
}

enum status rewriting_read(const char *path, bool strict, const struct tokenizer *tokenizer, int32_t max_seq_length,
			   enum status (*take)(void *context, const struct rewriting_pair *pair), void *context,
			   struct rewriting_counts *counts)
{
	struct pair_reader own = {.strict = strict,
				  .tokenizer = tokenizer,
				  .max_seq_length = max_seq_length,
				  .take = take,
				  .context = context,
				  .counts = counts};
	struct line_reader *reader;
	TRY(line_reader_open(&reader, path, LINE_BYTES_MAX));
	enum status status = read_lines(&own, reader, path);
	line_reader_close(reader);
	tokens_release(&own.tokens);
	return status;
}

/* Binary instance files have NULs, or too few tabs. */
bool rewriting_is_file(const char *path)
{
	struct line_reader *reader;
	const char *line;
	size_t size;
	bool continues, end, found = false;
	struct field fields[FIELDS];
	if (line_reader_open(&reader, path, (size_t)1 << 20) != OK)
		return false;
	if (line_reader_next(reader, &line, &size, &continues, &end) == OK)
		found = !end && !memchr(line, 0, size) && split(line, size, fields);
	line_reader_close(reader);
	return found;
}

void rewriting_join(const struct rewriting_pair *pair, const struct vocab *vocab, int32_t most, struct instance *out)
{
	int32_t n = 0;
	out->ids[n++] = vocab->cls;
	memcpy(out->ids + n, pair->a, (size_t)pair->a_count * sizeof *out->ids);
	n += pair->a_count;
	out->ids[n++] = vocab->sep;
	memcpy(out->ids + n, pair->b, (size_t)pair->b_count * sizeof *out->ids);
	n += pair->b_count;
	out->ids[n++] = vocab->sep;
	for (int32_t i = 0; i < n; i++)
		out->types[i] = i >= pair->a_count + 2;
	out->length = n;
	out->next_label = pair->label;
	out->prediction_count = most > 0 && most < pair->a_count ? most : pair->a_count;
	for (int32_t i = 0; i < out->prediction_count; i++) {
		out->prediction_positions[i] = pair->a_count + 2 + i;
		out->prediction_labels[i] = out->ids[pair->a_count + 2 + i];
	}
}

/* ---- Pairs as a shard ---- */

struct shard_target {
	struct rewriting *rewriting;
	struct shard_writer *writer;
};

static enum status add_pair(void *context, const struct rewriting_pair *pair)
{
	const struct shard_target *target = context;
	struct rewriting *rewriting = target->rewriting;
	TRY(memory_grow(&rewriting->labels, &rewriting->capacity, rewriting->count + 1, sizeof(bool), "pairs"));
	rewriting->labels[rewriting->count++] = pair->label;
	TRY(shard_writer_sentence(target->writer, pair->a, pair->a_count));
	TRY(shard_writer_sentence(target->writer, pair->b, pair->b_count));
	return shard_writer_end_document(target->writer);
}

static enum status read_pairs(struct rewriting *rewriting, struct rewriting_counts *counts)
{
	const struct rewriting_settings *settings = &rewriting->settings;
	const struct vocab *vocab = tokenizer_vocab(settings->tokenizer);
	struct shard_description description = {.vocab_hash = vocab->hash, .text_form = "pairs"};
	struct shard_writer *writer = NULL;
	struct name_list files = {0};
	enum status status;
	TRY_GOTO(path_expand_all(settings->paths, settings->path_count, &files), done);
	TRY_GOTO(shard_writer_open(&writer, settings->prefix, vocab->count), done);
	struct shard_target target = {rewriting, writer};
	for (int64_t i = 0; i < files.count; i++)
		TRY_GOTO(rewriting_read(files.names[i], false, settings->tokenizer, settings->max_seq_length, add_pair, &target,
					counts),
			 done);
	if (rewriting->count == 0) {
		status = error_set(ERR_DATA, "'%s'%s: no usable pair in %lld lines (%lld malformed, %lld unfit)", files.names[0],
				   files.count > 1 ? " and the other files" : "", (long long)counts->lines,
				   (long long)counts->malformed, (long long)counts->unfit);
		error_hint("lines are: label, id, text_a, text_b, separated by tabs; A has at least two tokens and fewer "
			   "than B");
		goto done;
	}
	struct shard_writer *whole = writer;
	writer = NULL;
	TRY_GOTO(shard_writer_commit(whole, &description), done);
	status = shard_open(&rewriting->shard, settings->prefix);
done:
	shard_writer_abandon(writer);
	name_list_release(&files);
	return status;
}

enum status rewriting_open(struct rewriting **out, const struct rewriting_settings *settings, struct rewriting_counts *counts)
{
	struct rewriting *rewriting;
	*out = NULL;
	*counts = (struct rewriting_counts){0};
	if (settings->max_seq_length < 8)
		return error_set(ERR_USAGE, "max_seq_length %d leaves no room for a pair", settings->max_seq_length);
	TRY(memory_new(&rewriting, 1, sizeof *rewriting, "pairs"));
	rewriting->settings = *settings;
	enum status status = read_pairs(rewriting, counts);
	if (status != OK)
		rewriting_close(rewriting);
	else
		*out = rewriting;
	return status;
}

void rewriting_close(struct rewriting *rewriting)
{
	if (rewriting == NULL)
		return;
	shard_close(&rewriting->shard);
	free(rewriting->labels);
	free(rewriting);
}

int64_t rewriting_count(const struct rewriting *rewriting)
{
	return rewriting->count;
}

static int32_t masked_id(struct rng *rng, const struct rewriting_mask *how, int32_t id)
{
	uint32_t tenth = rng_below(rng, 10);
	if (tenth < 8)
		return how->mask;
	return tenth == 8 ? id : (int32_t)rng_below(rng, (uint32_t)how->vocab_size);
}

void rewriting_mask_run(struct instance *instance, const struct rewriting_mask *how)
{
	int32_t b = 0;
	while (instance->types[b] == 0)
		b++;
	struct rng rng = rng_start(how->seed, RNG_SPAN, how->key);
	int32_t start = b + (int32_t)rng_below(&rng, (uint32_t)(instance->length - 1 - b - how->span + 1));
	for (int32_t i = 0; i < instance->prediction_count; i++) {
		instance->prediction_positions[i] = start + i;
		instance->prediction_labels[i] = instance->ids[start + i];
		if (instance->prediction_weights != NULL)
			instance->prediction_weights[i] = 1;
		instance->ids[start + i] = masked_id(&rng, how, instance->ids[start + i]);
	}
	instance->draws_span = false;
}

enum status rewriting_get(const struct rewriting *rewriting, int64_t round, int64_t index, struct instance *out)
{
	const struct rewriting_settings *settings = &rewriting->settings;
	const struct vocab *vocab = tokenizer_vocab(settings->tokenizer);
	const struct shard *shard = &rewriting->shard;
	int64_t pair =
		(int64_t)rng_permute(settings->seed, RNG_SHUFFLE, (uint32_t)round, (uint64_t)rewriting->count, (uint64_t)index);
	int32_t a = shard_length(shard, 2 * pair), b = shard_length(shard, 2 * pair + 1), n = 0;
	out->ids[n++] = vocab->cls;
	TRY(shard_tokens(shard, 2 * pair, 0, a, vocab->count, out->ids + n));
	n += a;
	out->ids[n++] = vocab->sep;
	TRY(shard_tokens(shard, 2 * pair + 1, 0, b, vocab->count, out->ids + n));
	n += b;
	out->ids[n++] = vocab->sep;
	for (int32_t i = 0; i < n; i++)
		out->types[i] = i >= a + 2;
	out->length = n;
	out->prediction_count = a < settings->max_predictions_per_seq ? a : settings->max_predictions_per_seq;
	out->next_label = rewriting->labels[pair];
	rewriting_mask_run(out, &(struct rewriting_mask){.span = a,
							 .seed = settings->seed,
							 .key = (uint64_t)round << 32 | (uint64_t)pair,
							 .mask = vocab->mask,
							 .vocab_size = vocab->count});
	return OK;
}
