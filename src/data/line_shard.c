/* Reads lines as Google's data script does, and writes them as a token shard. */
#include "data/line_shard.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/stop.h"
#include "data/shard.h"
#include "formats/stream.h"
#include "text/input_form.h"
#include "text/python_text.h"
#include "text/utf8.h"

#define LINE_BYTES_MAX ((size_t)64 << 20)

struct lines {
	const struct line_shard_settings *settings;
	struct shard_writer *writer;
	struct tokens tokens;
	int32_t vocab_size, unknown;
	bool open; /* the current document has a sentence */
	struct line_shard_counts *counts;
	struct progress progress;
	int64_t bytes_before; /* of files already read */
};

static bool is_blank(const char *line, size_t size)
{
	for (size_t i = 0; i < size;) {
		uint32_t c;
		i += utf8_decode(line + i, size - i, &c);
		if (!python_is_space(c))
			return false;
	}
	return true;
}

/* Marks tokens that are not preceded by white space. */
static void mark_continuations(struct lines *lines, const char *line)
{
	struct tokens *tokens = &lines->tokens;
	for (int64_t i = 1; i < tokens->count; i++) {
		bool apart = false;
		for (size_t at = tokens->end[i - 1]; at < tokens->begin[i] && !apart;) {
			uint32_t c;
			at += utf8_decode(line + at, tokens->begin[i] - at, &c);
			apart = python_is_space(c);
		}
		if (!apart)
			tokens->ids[i] += lines->vocab_size;
	}
}

static enum status add_line(struct lines *lines, const char *line, size_t size)
{
	struct tokens *tokens = &lines->tokens;
	lines->counts->text_bytes += (int64_t)size + 1;
	if (is_blank(line, size)) {
		if (lines->open)
			TRY(shard_writer_end_document(lines->writer));
		lines->counts->documents += lines->open;
		lines->open = false;
		return OK;
	}
	tokens_clear(tokens);
	TRY(tokenizer_encode(lines->settings->tokenizer, line, size, tokens));
	if (tokens->count == 0)
		return OK;
	for (int64_t i = 0; i < tokens->count; i++)
		lines->counts->unknown_tokens += tokens->ids[i] == lines->unknown;
	if (lines->settings->segmented_words)
		mark_continuations(lines, line);
	TRY(shard_writer_sentence(lines->writer, tokens->ids, tokens->count));
	lines->open = true;
	lines->counts->sentences++;
	lines->counts->tokens += tokens->count;
	return OK;
}

static enum status read_file(struct lines *lines, const char *path)
{
	struct line_reader *reader;
	const char *beginning;
	size_t beginning_size;
	enum status status = OK;
	bool end = false;
	TRY(line_reader_open(&reader, path, LINE_BYTES_MAX));
	TRY_GOTO(line_reader_peek(reader, INPUT_BEGINNING_BYTES, &beginning, &beginning_size), done);
	TRY_GOTO(input_check_characters(path, beginning, beginning_size), done); /* Google's code removes NULs */
	for (int64_t number = 1; !end; number++) {
		const char *line;
		size_t size;
		bool continues;
		TRY_GOTO(line_reader_next(reader, &line, &size, &continues, &end), done);
		if (end)
			break;
		if (continues) {
			status = error_set(ERR_DATA, "'%s': line %lld is longer than 64 MiB", path, (long long)number);
			error_hint("a line is a sentence, a blank line separates documents");
			goto done;
		}
		TRY_GOTO(add_line(lines, line, size), done);
		if (number % 1024 != 0)
			continue;
		progress_update(&lines->progress, lines->bytes_before + stream_position(line_reader_stream(reader)),
				"%lld sentences", (long long)lines->counts->sentences);
		if (stop_requested()) {
			status = error_set(STOPPED, "stopped by %s; nothing was written", stop_reason());
			goto done;
		}
	}
	lines->bytes_before += stream_position(line_reader_stream(reader));
done:
	line_reader_close(reader);
	return status;
}

static enum status read_all(struct lines *lines, const struct name_list *files)
{
	int64_t total = 0;
	for (int64_t i = 0; i < files->count; i++) {
		int64_t size = file_size(files->names[i]);
		total += size > 0 ? size : 0;
	}
	progress_start(&lines->progress, "reading", 0, total, "bytes");
	enum status status = OK;
	for (int64_t i = 0; i < files->count && status == OK; i++)
		status = read_file(lines, files->names[i]);
	progress_finish(&lines->progress);
	TRY(status);
	lines->counts->documents += lines->open;
	lines->counts->invalid_bytes = lines->tokens.invalid_bytes;
	if (lines->counts->sentences == 0) {
		status = error_set(ERR_DATA, "'%s'%s: no sentence", files->names[0],
				   files->count > 1 ? " and the other files" : "");
		error_hint("a line is a sentence, a blank line separates documents");
	}
	return status;
}

enum status line_shard_write(const struct line_shard_settings *settings, struct line_shard_counts *out)
{
	enum status status;
	struct name_list files = {0};
	const struct vocab *vocab = tokenizer_vocab(settings->tokenizer);
	struct lines lines = {.settings = settings, .vocab_size = vocab->count, .unknown = vocab->unk, .counts = out};
	int32_t id_limit = vocab->count * (settings->segmented_words ? 2 : 1);
	*out = (struct line_shard_counts){0};
	TRY_GOTO(path_expand_all(settings->paths, settings->path_count, &files), done);
	TRY_GOTO(shard_writer_open(&lines.writer, settings->prefix, id_limit), done);
	TRY_GOTO(read_all(&lines, &files), done);
	struct shard_writer *writer = lines.writer;
	struct shard_description description = {.vocab_hash = vocab->hash, .text_form = "sentences"};
	lines.writer = NULL;
	status = shard_writer_commit(writer, &description);
done:
	shard_writer_abandon(lines.writer);
	tokens_release(&lines.tokens);
	name_list_release(&files);
	return status;
}
