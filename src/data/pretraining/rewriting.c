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

/* The first three tabs separate; false if there are fewer. */
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

/* A whole number, with spaces around it. */
static bool read_label(struct field field, bool *out)
{
	char text[32], *end;
	if (field.size == 0 || field.size >= sizeof(text))
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

static enum status add_pair(struct rewriting *rewriting, struct shard_writer *writer, struct tokens *tokens,
			    const struct field *fields, bool label, struct rewriting_counts *counts)
{
	tokens_clear(tokens);
	TRY(tokenizer_encode(rewriting->settings.tokenizer, fields[TEXT_A].text, fields[TEXT_A].size, tokens));
	int64_t a = tokens->count;
	TRY(tokenizer_encode(rewriting->settings.tokenizer, fields[TEXT_B].text, fields[TEXT_B].size, tokens));
	int64_t b = tokens->count - a, room = rewriting->settings.max_seq_length - 3 - a;
	if (b > room)
		b = room;
	if (a < 2 || a >= b) {
		counts->unfit++;
		return OK;
	}
	TRY(memory_grow(&rewriting->labels, &rewriting->capacity, rewriting->count + 1, sizeof(bool), "pairs"));
	rewriting->labels[rewriting->count++] = label;
	TRY(shard_writer_sentence(writer, tokens->ids, a));
	TRY(shard_writer_sentence(writer, tokens->ids + a, b));
	return shard_writer_end_document(writer);
}

static enum status read_file(struct rewriting *rewriting, struct shard_writer *writer, struct tokens *tokens, const char *path,
			     struct rewriting_counts *counts)
{
	struct line_reader *reader;
	enum status status = OK;
	TRY(line_reader_open(&reader, path, LINE_BYTES_MAX));
	for (;;) {
		const char *line;
		size_t size;
		bool continues, end, label = false;
		struct field fields[FIELDS];
		TRY_GOTO(line_reader_next(reader, &line, &size, &continues, &end), done);
		if (end)
			break;
		counts->lines++;
		if (continues) {
			status = error_set(ERR_DATA, "'%s': line %lld is longer than 64 MiB", path, (long long)counts->lines);
			goto done;
		}
		if (size == 0)
			continue;
		if (!split(line, size, fields) || !read_label(fields[LABEL], &label)) {
			if (counts->malformed++ == 0)
				log_warning("'%s': line %lld has not the form label, id, text_a, text_b, separated by "
					    "tabs: left out",
					    path, (long long)counts->lines);
			continue;
		}
		TRY_GOTO(add_pair(rewriting, writer, tokens, fields, label, counts), done);
		if (counts->lines % 1024 == 0 && stop_requested()) {
			status = error_set(STOPPED, "stopped by %s; nothing was written", stop_reason());
			goto done;
		}
	}
done:
	line_reader_close(reader);
	return status;
}

static enum status read_pairs(struct rewriting *rewriting, struct rewriting_counts *counts)
{
	const struct rewriting_settings *settings = &rewriting->settings;
	const struct vocab *vocab = tokenizer_vocab(settings->tokenizer);
	struct shard_description description = {.vocab_hash = vocab->hash, .text_form = "pairs"};
	struct shard_writer *writer = NULL;
	struct name_list files = {0};
	struct tokens tokens = {0};
	enum status status;
	for (int64_t i = 0; i < settings->path_count; i++)
		TRY_GOTO(path_expand(settings->paths[i], &files), done);
	TRY_GOTO(shard_writer_open(&writer, settings->prefix, vocab->count), done);
	for (int64_t i = 0; i < files.count; i++)
		TRY_GOTO(read_file(rewriting, writer, &tokens, files.names[i], counts), done);
	counts->pairs = rewriting->count;
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
	tokens_release(&tokens);
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
	TRY(memory_new(&rewriting, 1, sizeof(*rewriting), "pairs"));
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

static int32_t masked_id(struct rng *rng, const struct vocab *vocab, int32_t id)
{
	uint32_t tenth = rng_below(rng, 10);
	if (tenth < 8)
		return vocab->mask;
	return tenth == 8 ? id : (int32_t)rng_below(rng, (uint32_t)vocab->count);
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
	struct rng rng = rng_start(settings->seed, RNG_SPAN, (uint64_t)round << 32 | (uint64_t)pair);
	int32_t start = a + 2 + (int32_t)rng_below(&rng, (uint32_t)(b - a + 1));
	int32_t count = a < settings->max_predictions_per_seq ? a : settings->max_predictions_per_seq;
	for (int32_t i = 0; i < count; i++) {
		out->prediction_positions[i] = start + i;
		out->prediction_labels[i] = out->ids[start + i];
		if (out->prediction_weights != NULL)
			out->prediction_weights[i] = 1;
		out->ids[start + i] = masked_id(&rng, vocab, out->ids[start + i]);
	}
	out->length = n;
	out->prediction_count = count;
	out->next_label = rewriting->labels[pair];
	return OK;
}
