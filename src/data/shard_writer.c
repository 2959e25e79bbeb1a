/* Writing of token shards: ids go to the disk as they come, the index when all is known. */
#include <stdio.h>
#include <stdlib.h>
#include "base/json.h"
#include "base/memory.h"
#include "data/shard.h"
#include "data/shard_format.h"

struct shard_writer {
	char prefix[PATH_BYTES];
	int32_t vocab_size;
	bool wide;
	struct file_writer *bin, *idx;
	int32_t *lengths;       /* [sentence_count] */
	int64_t *document_ends; /* [document_count], each the number of sentences up to its end */
	int64_t sentence_count, sentence_capacity, document_count, document_capacity, token_count;
};

static enum status make_parent(const char *prefix)
{
	char folder[PATH_BYTES];
	const char *slash = strrchr(prefix, '/');
	if (slash == NULL || slash == prefix)
		return OK;
	snprintf(folder, sizeof(folder), "%.*s", (int)(slash - prefix), prefix);
	return folder_make(folder);
}

enum status shard_writer_open(struct shard_writer **out, const char *prefix, int32_t vocab_size)
{
	enum status status = OK;
	struct shard_writer *writer = NULL;
	char path[PATH_BYTES];
	*out = NULL;
	TRY(shard_path(path, prefix, ".bin"));
	TRY(make_parent(prefix));
	TRY(memory_new(&writer, 1, sizeof(*writer), "shard writer"));
	writer->vocab_size = vocab_size;
	writer->wide = vocab_size >= NARROW_VOCAB_LIMIT;
	TRY_GOTO(shard_path(writer->prefix, prefix, ""), fail);
	TRY_GOTO(file_writer_open(&writer->bin, path), fail);
	*out = writer;
	return OK;
fail:
	shard_writer_abandon(writer);
	return status;
}

enum status shard_writer_sentence(struct shard_writer *writer, const int32_t *ids, int64_t count)
{
	BUG_IF(count < 1);
	if (count > SENTENCE_TOKENS_MAX)
		return error_set(ERR_DATA, "'%s.bin': sentence %lld has %lld tokens, the limit is %d",
		                 writer->prefix, (long long)writer->sentence_count, (long long)count,
		                 SENTENCE_TOKENS_MAX);
	TRY(memory_grow(&writer->lengths, &writer->sentence_capacity, writer->sentence_count + 1,
	                sizeof(*writer->lengths), "index of a shard"));
	for (int64_t i = 0; i < count; i++)
		if (ids[i] < 0 || ids[i] >= writer->vocab_size)
			return error_set(ERR_DATA,
			                 "'%s.bin': sentence %lld: id %d, but the vocabulary has %d entries",
			                 writer->prefix, (long long)writer->sentence_count, ids[i],
			                 writer->vocab_size);
	if (writer->wide) {
		TRY(file_writer_write(writer->bin, ids, (size_t)count * sizeof(*ids)));
	} else {
		uint16_t narrow[1024];
		for (int64_t done = 0; done < count;) {
			int64_t part = count - done < 1024 ? count - done : 1024;
			for (int64_t i = 0; i < part; i++)
				narrow[i] = (uint16_t)ids[done + i];
			TRY(file_writer_write(writer->bin, narrow, (size_t)part * sizeof(*narrow)));
			done += part;
		}
	}
	writer->lengths[writer->sentence_count++] = (int32_t)count;
	writer->token_count += count;
	return OK;
}

enum status shard_writer_end_document(struct shard_writer *writer)
{
	TRY(memory_grow(&writer->document_ends, &writer->document_capacity, writer->document_count + 1,
	                sizeof(*writer->document_ends), "index of a shard"));
	writer->document_ends[writer->document_count++] = writer->sentence_count;
	return OK;
}

static enum status write_index(struct shard_writer *writer)
{
	unsigned char header[INDEX_HEADER_BYTES];
	uint64_t version = INDEX_VERSION, sentences = (uint64_t)writer->sentence_count;
	uint64_t ends = (uint64_t)writer->document_count + 1;
	memcpy(header, INDEX_MAGIC, sizeof(INDEX_MAGIC));
	memcpy(header + 9, &version, 8);
	header[17] = writer->wide ? DTYPE_INT32 : DTYPE_UINT16;
	memcpy(header + 18, &sentences, 8);
	memcpy(header + 26, &ends, 8);
	TRY(file_writer_write(writer->idx, header, sizeof(header)));
	TRY(file_writer_write(writer->idx, writer->lengths, sentences * sizeof(*writer->lengths)));
	int64_t offset = 0, unit = writer->wide ? 4 : 2;
	for (int64_t i = 0; i < writer->sentence_count; i++) {
		TRY(file_writer_write(writer->idx, &offset, sizeof(offset)));
		offset += writer->lengths[i] * unit;
	}
	int64_t zero = 0;
	TRY(file_writer_write(writer->idx, &zero, sizeof(zero)));
	return file_writer_write(writer->idx, writer->document_ends,
	                         (size_t)writer->document_count * sizeof(*writer->document_ends));
}

static void put_hex(struct json_writer *json, const char *key, uint64_t value, int digits)
{
	char text[20];
	snprintf(text, sizeof(text), "%0*llx", digits, (unsigned long long)value);
	json_put_string(json, key, text);
}

static void write_description(const struct shard_writer *writer, const struct shard_description *d,
                              struct buffer *out)
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

static enum status commit_files(struct shard_writer *writer, const char *json_path,
                                const struct buffer *description)
{
	struct file_writer *bin = writer->bin, *idx = writer->idx;
	TRY(remove_file(json_path));
	writer->bin = NULL;
	TRY(file_writer_commit(bin));
	writer->idx = NULL;
	TRY(file_writer_commit(idx));
	return file_write(json_path, description->data, description->size);
}

enum status shard_writer_commit(struct shard_writer *writer, struct shard_description *description)
{
	enum status status;
	struct buffer text = {0};
	char idx_path[PATH_BYTES], json_path[PATH_BYTES];
	if (writer->sentence_count >
	    (writer->document_count > 0 ? writer->document_ends[writer->document_count - 1] : 0))
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
	free(writer->lengths);
	free(writer->document_ends);
	free(writer);
}
