/* Writing token shards: everything goes to disk as it comes; the index is built at the end. */
#include <stdio.h>
#include <stdlib.h>
#include "base/json.h"
#include "base/memory.h"
#include "base/owned_files.h"
#include "data/shard.h"
#include "data/shard_format.h"

#define LENGTHS_SUFFIX ".lengths"
#define ENDS_SUFFIX ".ends"
#define COPY_COUNT 16384

struct shard_writer {
	char prefix[PATH_BYTES];
	int32_t vocab_size;
	bool wide;
	struct file_writer *bin, *idx;
	/* Parts that are never committed: int32 per sentence, its tokens; int64 per document, the sentences up to its end. */
	struct file_writer *lengths, *ends;
	int64_t sentence_count, document_count, token_count;
	int64_t last_end;
};

static enum status make_parent(const char *prefix)
{
	char folder[PATH_BYTES];
	const char *slash = strrchr(prefix, '/');
	if (slash == NULL || slash == prefix)
		return OK;
	snprintf(folder, sizeof folder, "%.*s", (int)(slash - prefix), prefix);
	return folder_make(folder);
}

enum status shard_writer_resume(struct shard_writer **out, const char *prefix, int32_t vocab_size,
				const struct shard_writer_state *state)
{
	enum status status = OK;
	struct shard_writer *writer = NULL;
	char path[PATH_BYTES];
	*out = NULL;
	TRY(shard_path(path, prefix, ".bin"));
	TRY(make_parent(prefix));
	TRY(memory_new(&writer, 1, sizeof *writer, "shard writer"));
	writer->vocab_size = vocab_size;
	writer->wide = vocab_size >= SHARD_NARROW_VOCAB;
	writer->sentence_count = state->sentences;
	writer->document_count = state->documents;
	writer->token_count = state->tokens;
	writer->last_end = state->sentences;
	TRY_GOTO(shard_path(writer->prefix, prefix, ""), fail);
	TRY_GOTO(file_writer_resume(&writer->bin, path, state->bin), fail);
	TRY_GOTO(shard_path(path, prefix, LENGTHS_SUFFIX), fail);
	TRY_GOTO(file_writer_resume(&writer->lengths, path, state->lengths), fail);
	TRY_GOTO(shard_path(path, prefix, ENDS_SUFFIX), fail);
	TRY_GOTO(file_writer_resume(&writer->ends, path, state->ends), fail);
	*out = writer;
	return OK;
fail:
	if (state->bin.offset > 0)
		shard_writer_suspend(writer);
	else
		shard_writer_abandon(writer);
	return status;
}

enum status shard_writer_open(struct shard_writer **out, const char *prefix, int32_t vocab_size)
{
	return shard_writer_resume(out, prefix, vocab_size, &(struct shard_writer_state){0});
}

enum status shard_writer_save(struct shard_writer *writer, struct shard_writer_state *out)
{
	BUG_IF(writer->last_end != writer->sentence_count); /* only between documents */
	*out = (struct shard_writer_state){
		.sentences = writer->sentence_count, .documents = writer->document_count, .tokens = writer->token_count};
	TRY(file_writer_save(writer->bin, &out->bin));
	TRY(file_writer_save(writer->lengths, &out->lengths));
	return file_writer_save(writer->ends, &out->ends);
}

void shard_writer_suspend(struct shard_writer *writer)
{
	if (writer == NULL)
		return;
	file_writer_suspend(writer->bin);
	file_writer_suspend(writer->lengths);
	file_writer_suspend(writer->ends);
	file_writer_abandon(writer->idx);
	free(writer);
}

enum status shard_writer_sentence(struct shard_writer *writer, const int32_t *ids, int64_t count)
{
	BUG_IF(count < 1);
	if (count > SENTENCE_TOKENS_MAX)
		return error_set(ERR_DATA, "'%s.bin': sentence %lld has %lld tokens, the limit is %d", writer->prefix,
				 (long long)writer->sentence_count, (long long)count, SENTENCE_TOKENS_MAX);
	for (int64_t i = 0; i < count; i++)
		if (ids[i] < 0 || ids[i] >= writer->vocab_size)
			return error_set(ERR_DATA, "'%s.bin': sentence %lld: id %d, but the vocabulary has %d entries",
					 writer->prefix, (long long)writer->sentence_count, ids[i], writer->vocab_size);
	if (writer->wide) {
		TRY(file_writer_write(writer->bin, ids, (size_t)count * sizeof *ids));
	} else {
		uint16_t narrow[1024];
		for (int64_t done = 0; done < count;) {
			int64_t part = count - done < 1024 ? count - done : 1024;
			for (int64_t i = 0; i < part; i++)
				narrow[i] = (uint16_t)ids[done + i];
			TRY(file_writer_write(writer->bin, narrow, (size_t)part * sizeof *narrow));
			done += part;
		}
	}
	int32_t length = (int32_t)count;
	TRY(file_writer_write(writer->lengths, &length, sizeof length));
	writer->sentence_count++;
	writer->token_count += count;
	return OK;
}

enum status shard_writer_end_document(struct shard_writer *writer)
{
	writer->document_count++;
	writer->last_end = writer->sentence_count;
	return file_writer_write(writer->ends, &writer->last_end, sizeof writer->last_end);
}

/* Opens what a part holds so far, for reading from its beginning. */
static enum status open_part(struct file_writer *part, FILE **out)
{
	struct file_writer_state state;
	TRY(file_writer_save(part, &state));
	*out = fopen(file_writer_part(part), "rb");
	if (*out == NULL)
		return error_set_errno(ERR_RESOURCE, "'%s': cannot read", file_writer_part(part));
	return OK;
}

static enum status read_part(FILE *file, const struct file_writer *part, void *out, size_t size)
{
	if (fread(out, 1, size, file) != size)
		return error_set(ERR_RESOURCE, "'%s': cannot read it back", file_writer_part(part));
	return OK;
}

/* Appends a part to the index: lengths or ends as they are (`unit` 0), or the byte offsets computed from lengths (`unit`: bytes
 * per id). */
static enum status append_part(struct shard_writer *writer, struct file_writer *part, int64_t count, size_t size, int64_t unit)
{
	union {
		int32_t lengths[COPY_COUNT];
		int64_t ends[COPY_COUNT];
	} values;
	int64_t offsets[COPY_COUNT], offset = 0;
	FILE *file;
	enum status status = OK;
	TRY(open_part(part, &file));
	for (int64_t done = 0; status == OK && done < count;) {
		int64_t take = count - done < COPY_COUNT ? count - done : COPY_COUNT;
		status = read_part(file, part, &values, (size_t)take * size);
		for (int64_t i = 0; status == OK && unit > 0 && i < take; i++) {
			offsets[i] = offset;
			offset += values.lengths[i] * unit;
		}
		if (status == OK)
			status = unit > 0 ? file_writer_write(writer->idx, offsets, (size_t)take * sizeof *offsets)
					  : file_writer_write(writer->idx, &values, (size_t)take * size);
		done += take;
	}
	(void)fclose(file);
	return status;
}

static enum status write_index(struct shard_writer *writer)
{
	unsigned char header[INDEX_HEADER_BYTES];
	uint64_t version = INDEX_VERSION, sentences = (uint64_t)writer->sentence_count;
	uint64_t ends = (uint64_t)writer->document_count + 1;
	int64_t zero = 0;
	memcpy(header, INDEX_MAGIC, sizeof(INDEX_MAGIC));
	memcpy(header + 9, &version, 8);
	header[17] = writer->wide ? DTYPE_INT32 : DTYPE_UINT16;
	memcpy(header + 18, &sentences, 8);
	memcpy(header + 26, &ends, 8);
	TRY(file_writer_write(writer->idx, header, sizeof header));
	TRY(append_part(writer, writer->lengths, writer->sentence_count, sizeof(int32_t), 0));
	TRY(append_part(writer, writer->lengths, writer->sentence_count, sizeof(int32_t), writer->wide ? 4 : 2));
	TRY(file_writer_write(writer->idx, &zero, sizeof zero));
	return append_part(writer, writer->ends, writer->document_count, sizeof(int64_t), 0);
}

/* Reads the three parts side by side, for a second pass. */
struct part_reader {
	FILE *bin, *lengths, *ends;
	int32_t *ids;
	int64_t capacity;
};

static void part_reader_close(struct part_reader *reader)
{
	FILE *files[] = {reader->bin, reader->lengths, reader->ends};
	for (int i = 0; i < 3; i++)
		if (files[i] != NULL)
			(void)fclose(files[i]);
	free(reader->ids);
}

static enum status part_reader_open(struct part_reader *reader, struct shard_writer *writer)
{
	*reader = (struct part_reader){0};
	TRY(open_part(writer->bin, &reader->bin));
	TRY(open_part(writer->lengths, &reader->lengths));
	return open_part(writer->ends, &reader->ends);
}

static enum status next_sentence(struct part_reader *reader, struct shard_writer *writer, int32_t *length)
{
	TRY(read_part(reader->lengths, writer->lengths, length, sizeof *length));
	TRY(memory_grow(&reader->ids, &reader->capacity, *length, sizeof *reader->ids, "sentence"));
	if (writer->wide)
		return read_part(reader->bin, writer->bin, reader->ids, (size_t)*length * 4);
	uint16_t narrow[1024];
	for (int32_t done = 0; done < *length;) {
		int32_t take = *length - done < 1024 ? *length - done : 1024;
		TRY(read_part(reader->bin, writer->bin, narrow, (size_t)take * sizeof *narrow));
		for (int32_t i = 0; i < take; i++)
			reader->ids[done + i] = narrow[i];
		done += take;
	}
	return OK;
}

static enum status visit_sentences(struct part_reader *reader, struct shard_writer *writer,
				   enum status (*visit)(void *context, int64_t document, int64_t sentence, const int32_t *ids,
							int32_t count),
				   void *context)
{
	int64_t sentence = 0;
	for (int64_t document = 0; document < writer->document_count; document++) {
		int64_t end;
		TRY(read_part(reader->ends, writer->ends, &end, sizeof end));
		for (; sentence < end; sentence++) {
			int32_t length;
			TRY(next_sentence(reader, writer, &length));
			TRY(visit(context, document, sentence, reader->ids, length));
		}
	}
	return OK;
}

enum status shard_writer_visit(struct shard_writer *writer,
			       enum status (*visit)(void *context, int64_t document, int64_t sentence, const int32_t *ids,
						    int32_t count),
			       void *context)
{
	struct part_reader reader;
	enum status status = part_reader_open(&reader, writer);
	if (status == OK)
		status = visit_sentences(&reader, writer, visit, context);
	part_reader_close(&reader);
	return status;
}

struct drop {
	struct shard_writer *kept;
	const uint8_t *sentences, *documents;
	int32_t unknown_id;
	int64_t unknown, document; /* `document`: the one being visited */
};

static bool marked(const uint8_t *map, int64_t index)
{
	return map != NULL && (map[index / 8] >> (index % 8) & 1);
}

static enum status end_kept_document(struct drop *drop)
{
	return drop->kept->sentence_count > drop->kept->last_end ? shard_writer_end_document(drop->kept) : OK;
}

static enum status keep_sentence(void *context, int64_t document, int64_t sentence, const int32_t *ids, int32_t count)
{
	struct drop *drop = context;
	if (document != drop->document) {
		TRY(end_kept_document(drop));
		drop->document = document;
	}
	if (marked(drop->documents, document) || marked(drop->sentences, sentence))
		return OK;
	for (int32_t i = 0; i < count; i++)
		drop->unknown += ids[i] == drop->unknown_id;
	return shard_writer_sentence(drop->kept, ids, count);
}

enum status shard_writer_drop(struct shard_writer **writer, const uint8_t *sentences, const uint8_t *documents,
			      int32_t unknown_id, int64_t *out_unknown)
{
	char prefix[PATH_BYTES], path[PATH_BYTES];
	struct drop drop = {.sentences = sentences, .documents = documents, .unknown_id = unknown_id};
	TRY(shard_path(prefix, (*writer)->prefix, ".kept"));
	TRY(shard_path(path, (*writer)->prefix, ".bin"));
	TRY(shard_writer_open(&drop.kept, prefix, (*writer)->vocab_size));
	enum status status = shard_writer_visit(*writer, keep_sentence, &drop);
	if (status == OK)
		status = end_kept_document(&drop);
	if (status != OK) {
		shard_writer_abandon(drop.kept);
		return status;
	}
	memcpy(drop.kept->prefix, (*writer)->prefix, sizeof drop.kept->prefix);
	file_writer_retarget(drop.kept->bin, path);
	shard_writer_abandon(*writer);
	*writer = drop.kept;
	*out_unknown = drop.unknown;
	return OK;
}

static void put_hex(struct json_writer *json, const char *key, uint64_t value, int digits)
{
	char text[20];
	snprintf(text, sizeof text, "%0*llx", digits, (unsigned long long)value);
	json_put_string(json, key, text);
}

static void write_description(const struct shard_writer *writer, const struct shard_description *d, struct buffer *out)
{
	struct json_writer json = {.out = out, .indent = 2};
	json_open(&json, NULL, '{');
	json_put_string(&json, "format", DESCRIPTION_FORMAT);
	json_put_integer(&json, "version", DESCRIPTION_VERSION);
	json_put_integer(&json, "documents", d->documents);
	json_put_integer(&json, "sentences", d->sentences);
	json_put_integer(&json, "tokens", d->tokens);
	json_put_integer(&json, "unknown_tokens", d->unknown_tokens);
	json_put_integer(&json, "vocab_size", d->vocab_size);
	put_hex(&json, "vocab_hash", d->vocab_hash, 16);
	json_put_bool(&json, "lowercase", d->lowercase);
	json_put_bool(&json, "strip_accents", d->strip_accents);
	json_put_bool(&json, "split_chinese", d->split_chinese);
	json_put_string(&json, "text_form", d->text_form);
	put_hex(&json, "source_fingerprint", d->source_fingerprint, 16);
	json_put_integer(&json, "bin_bytes", file_writer_offset(writer->bin));
	put_hex(&json, "bin_crc32c", file_writer_crc32c(writer->bin), 8);
	json_put_integer(&json, "idx_bytes", file_writer_offset(writer->idx));
	put_hex(&json, "idx_crc32c", file_writer_crc32c(writer->idx), 8);
	json_close(&json);
	buffer_char(out, '\n');
}

static enum status remove_file(const char *path)
{
	if (file_exists(path) && file_operations.unlink(path) != 0)
		return error_set_errno(ERR_RESOURCE, "'%s': cannot remove the older file", path);
	return OK;
}

enum status shard_remove(const char *prefix)
{
	static const char *const suffixes[] = {".json", ".idx", ".bin"};
	char path[PATH_BYTES];
	for (int i = 0; i < 3; i++) {
		TRY(shard_path(path, prefix, suffixes[i]));
		TRY(remove_file(path));
	}
	return OK;
}

static enum status commit_files(struct shard_writer *writer, const char *json_path, const struct buffer *description)
{
	struct file_writer *bin = writer->bin, *idx = writer->idx;
	char paths[2][PATH_BYTES];
	/* A kill from here on leaves files without a description; the list says that they are ours. */
	TRY(shard_path(paths[0], writer->prefix, ".bin"));
	TRY(shard_path(paths[1], writer->prefix, ".idx"));
	for (int i = 0; i < 2; i++)
		TRY(owned_file_claim(paths[i]));
	TRY(remove_file(json_path));
	writer->bin = NULL;
	TRY(file_writer_commit(bin));
	writer->idx = NULL;
	TRY(file_writer_commit(idx));
	TRY(file_write(json_path, description->data, description->size));
	for (int i = 0; i < 2; i++)
		TRY(owned_file_forget(paths[i]));
	return OK;
}

enum status shard_writer_commit(struct shard_writer *writer, struct shard_description *description)
{
	enum status status;
	struct buffer text = {0};
	char idx_path[PATH_BYTES], json_path[PATH_BYTES];
	if (writer->sentence_count > writer->last_end)
		TRY_GOTO(shard_writer_end_document(writer), done);
	description->documents = writer->document_count;
	description->sentences = writer->sentence_count;
	description->tokens = writer->token_count;
	description->vocab_size = writer->vocab_size;
	TRY_GOTO(shard_path(idx_path, writer->prefix, ".idx"), done);
	TRY_GOTO(shard_path(json_path, writer->prefix, ".json"), done);
	TRY_GOTO(file_writer_open(&writer->idx, idx_path), done);
	TRY_GOTO(write_index(writer), done);
	write_description(writer, description, &text);
	TRY_GOTO(buffer_status(&text), done);
	TRY_GOTO(commit_files(writer, json_path, &text), done);
done:
	buffer_release(&text);
	shard_writer_abandon(writer);
	return status;
}

void shard_writer_abandon(struct shard_writer *writer)
{
	if (writer == NULL)
		return;
	file_writer_abandon(writer->bin);
	file_writer_abandon(writer->idx);
	file_writer_abandon(writer->lengths);
	file_writer_abandon(writer->ends);
	free(writer);
}
