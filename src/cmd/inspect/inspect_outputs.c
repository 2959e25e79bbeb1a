/* Output of the commands for streams of texts (vectors and answers, including unfinished ones), TensorBoard events, and texts. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cmd/inspect/inspect.h"
#include "cmd/inspect/output_files.h"
#include "formats/tfrecord.h"
#include "formats/stream.h"
#include "text/corpus.h"
#include "text/text_batch.h"
#include "text/text_notice.h"

#define SENTENCE_SHOWN 200
#define NOTICE_BYTES ((size_t)1 << 20)

enum status inspect_vectors(const struct inspect_settings *settings, const char *path, struct json_writer *writer)
{
	struct vector_facts facts;
	(void)settings;
	TRY(vector_file_read(path, &facts));
	json_put_string(writer, "form", facts.form);
	json_put_integer(writer, "vectors", facts.rows);
	json_put_integer(writer, facts.is_sparse ? "most_words" : "numbers_each", facts.columns);
	json_put_integer(writer, "bytes", facts.bytes);
	return OK;
}

/* Writes the requested answers as they are, and the number of all. */
enum status inspect_answers(const struct inspect_settings *settings, const char *path, struct json_writer *writer)
{
	struct file_map map;
	int64_t lines = 0;
	enum status status = OK;
	TRY(file_map_open(&map, path));
	const char *line = (const char *)map.data, *end = line + map.size;
	json_open(writer, "first", '[');
	while (line < end && status == OK) {
		const char *newline = memchr(line, '\n', (size_t)(end - line));
		size_t size = (size_t)((newline ? newline : end) - line);
		struct json_document document;
		if (lines >= settings->first && lines - settings->first < settings->records) {
			status = json_parse(&document, path, line, size);
			if (status == OK) {
				inspect_put_json(writer, NULL, document.root);
				json_release(&document);
			}
		}
		line += size + (newline != NULL);
		lines++;
	}
	json_close(writer);
	json_put_integer(writer, "answers", lines);
	file_map_close(&map);
	return status;
}

enum status inspect_part(const struct inspect_settings *settings, const char *path, struct json_writer *writer)
{
	struct part_facts facts;
	(void)settings;
	TRY(part_file_read(path, &facts));
	json_put_integer(writer, "bytes", facts.bytes);
	if (!facts.has_note) {
		json_put_string(writer, "state", "no record of its progress beside it: it cannot be resumed");
		return OK;
	}
	json_put_string(writer, "state", "run the same command again to resume");
	json_put_integer(writer, "texts", facts.texts);
	json_put_integer(writer, "saved_bytes", facts.saved);
	json_open(writer, "made_from", '[');
	for (const char *line = facts.made_from, *next; *line; line = next) {
		next = line + strcspn(line, "\n");
		json_put_text(writer, NULL, line, (size_t)(next - line));
		next += *next == '\n';
	}
	json_close(writer);
	free(facts.made_from);
	return OK;
}

/* ---- Texts ---- */

/* Writes the beginning of a document's first sentence. */
static void put_document(const struct document *document, struct json_writer *writer)
{
	char text[SENTENCE_SHOWN + 8];
	json_open(writer, NULL, '{');
	json_put_integer(writer, "sentences", document->sentence_count);
	json_put_integer(writer, "bytes", (int64_t)document->text_size);
	const struct sentence_bounds *sentence = &document->sentences[0];
	size_t size = sentence->end - sentence->begin, shown = size < SENTENCE_SHOWN ? size : SENTENCE_SHOWN;
	while (shown > 0 && shown < size && ((unsigned char)document->text[sentence->begin + shown] & 0xC0) == 0x80)
		shown--;
	snprintf(text, sizeof text, "%.*s%s", (int)shown, document->text + sentence->begin, shown < size ? "..." : "");
	json_put_string(writer, "begins", text);
	json_close(writer);
}

/* Writes what else the text seems to be, such as a table or WikiText. */
static enum status put_notice(const char *path, struct json_writer *writer)
{
	struct line_reader *reader;
	const char *beginning;
	char notice[TEXT_NOTICE_BYTES] = "";
	size_t size;
	TRY(line_reader_open(&reader, path, TEXT_LINE_LIMIT));
	enum status status = line_reader_peek(reader, NOTICE_BYTES, &beginning, &size);
	if (status == OK)
		status = text_notice(path, beginning, size, notice);
	line_reader_close(reader);
	if (notice[0])
		json_put_string(writer, "notice", notice);
	return status;
}

enum status inspect_text(const struct inspect_settings *settings, const char *path, struct json_writer *writer)
{
	struct corpus *corpus;
	const struct document *document;
	const char *reason;
	const char *paths[] = {path};
	enum status status;
	TRY(corpus_open(&corpus, paths, 1, &(struct corpus_settings){.threads = 1, .quiet = true}));
	status = corpus_next(corpus, &document);
	if (status == ERR_DATA) {
		struct error before = *error_last();
		const char *name = strrchr(path, '.');
		bool page = name && strcmp(name, ".html") == 0;
		status = error_set(ERR_DATA, "bertc does not recognize '%s', and it is not text: %s", path, before.message);
		error_hint(page ? "open a report in a browser; metrics.jsonl beside it has its figures"
				: "`bertc help inspect` lists what can be shown");
	}
	if (status != OK)
		goto done;
	if (!document) {
		status = error_set(ERR_DATA, "'%s': there is no text in it", path);
		goto done;
	}
	json_put_string(writer, "kind", "text");
	json_put_integer(writer, "bytes", file_size(path));
	json_put_string(writer, "read_as", text_form_names[corpus_form(corpus, &reason)]);
	json_put_string(writer, "because", reason);
	TRY_GOTO(put_notice(path, writer), done);
	json_open(writer, "documents", '[');
	for (int64_t i = 0; document && i < settings->first + settings->records; i++) {
		if (i >= settings->first)
			put_document(document, writer);
		TRY_GOTO(corpus_next(corpus, &document), done);
	}
	json_close(writer);
done:
	corpus_close(corpus);
	return status;
}
