/* Reading token shards: the index is verified once, then trusted. */
#include "data/shard.h"
#include <stdio.h>
#include <stdlib.h>
#include "base/hash.h"
#include "base/json.h"
#include "base/owned_files.h"
#include "data/shard_format.h"

enum status shard_path(char *out, const char *prefix, const char *suffix)
{
	int length = snprintf(out, PATH_BYTES, "%s%s", prefix, suffix);
	if (length < 0 || length >= PATH_BYTES)
		return error_set(ERR_USAGE, "shard prefix of %zu characters is too long", strlen(prefix));
	return OK;
}

static uint64_t read_u64(const unsigned char *bytes)
{
	uint64_t value;
	memcpy(&value, bytes, 8);
	return value;
}

static int64_t id_bytes(const struct shard *shard)
{
	return shard->wide ? 4 : 2;
}

/* Checks header and sizes, and sets the array pointers and counts. */
static enum status read_header(struct shard *shard)
{
	const unsigned char *idx = shard->idx.data;
	uint64_t size = shard->idx.size;
	if (size < INDEX_HEADER_BYTES || memcmp(idx, INDEX_MAGIC, sizeof(INDEX_MAGIC)) != 0)
		return error_set(ERR_DATA, "'%s.idx': not a Megatron index (its first 9 bytes are not \"MMIDIDX\")",
				 shard->prefix);
	uint64_t version = read_u64(idx + 9), sentences = read_u64(idx + 18), ends = read_u64(idx + 26);
	if (version != INDEX_VERSION)
		return error_set(ERR_DATA, "'%s.idx': index version %llu, only version 1 is known", shard->prefix,
				 (unsigned long long)version);
	int code = idx[17];
	if (code != DTYPE_UINT16 && code != DTYPE_INT32)
		return error_set(ERR_DATA, "'%s.idx': ids of type code %d; 8 (uint16) and 4 (int32) are read", shard->prefix,
				 code);
	/* Bounds first, so that the products below cannot overflow. */
	uint64_t body = size - INDEX_HEADER_BYTES;
	if (sentences > body / 12 || ends > body / 8 || ends < 1 || sentences * 12 + ends * 8 != body)
		return error_set(ERR_DATA,
				 "'%s.idx': %llu bytes do not hold the %llu sentences and %llu document ends "
				 "that its header promises",
				 shard->prefix, (unsigned long long)size, (unsigned long long)sentences,
				 (unsigned long long)ends);
	shard->wide = code == DTYPE_INT32;
	shard->sentence_count = (int64_t)sentences;
	shard->document_count = (int64_t)ends - 1;
	shard->lengths = idx + INDEX_HEADER_BYTES;
	shard->byte_offsets = shard->lengths + sentences * 4;
	shard->documents = shard->byte_offsets + sentences * 8;
	return OK;
}

/* Verifies that every entry of the index lies within the files and that document ends are in order. */
static enum status verify_index(struct shard *shard)
{
	int64_t bin_bytes = (int64_t)shard->bin.size, unit = id_bytes(shard);
	for (int64_t i = 0; i < shard->sentence_count; i++) {
		int64_t length = shard_length(shard, i), offset = shard_byte_offset(shard, i);
		if (length < 1 || length > SENTENCE_TOKENS_MAX)
			return error_set(ERR_DATA, "'%s.idx': sentence %lld has %lld tokens", shard->prefix, (long long)i,
					 (long long)length);
		if (offset < 0 || offset % unit != 0 || offset > bin_bytes || length * unit > bin_bytes - offset)
			return error_set(
				ERR_DATA,
				"'%s.idx': sentence %lld (%lld tokens at byte %lld) is not within '%s.bin' of %lld bytes",
				shard->prefix, (long long)i, (long long)length, (long long)offset, shard->prefix,
				(long long)bin_bytes);
		if (shard->longest_sentence < length)
			shard->longest_sentence = (int32_t)length;
		shard->token_count += length;
	}
	int64_t previous = 0;
	for (int64_t i = 0; i <= shard->document_count; i++) {
		int64_t end = shard_document(shard, i);
		if (end < previous || end > shard->sentence_count || (i == 0 && end != 0))
			return error_set(ERR_DATA, "'%s.idx': document end %lld is sentence %lld, out of order", shard->prefix,
					 (long long)i, (long long)end);
		previous = end;
	}
	if (previous != shard->sentence_count)
		return error_set(ERR_DATA, "'%s.idx': the last document ends at sentence %lld of %lld", shard->prefix,
				 (long long)previous, (long long)shard->sentence_count);
	return OK;
}

static enum status get_hex(const struct json *object, const char *name, const char *key, uint64_t *out)
{
	const char *text = NULL;
	char *end;
	TRY(json_get_string(object, name, key, &text));
	if (text == NULL)
		return OK;
	*out = strtoull(text, &end, 16);
	if (*text == '\0' || *end != '\0' || strlen(text) > 16)
		return error_set(ERR_DATA, "'%s': \"%s\" is not a hexadecimal number", name, key);
	return OK;
}

static enum status check_equal(const struct shard *shard, const struct json *object, const char *name, const char *key,
			       int64_t expected)
{
	int64_t value = -1;
	TRY(json_get_integer(object, name, key, 0, INT64_MAX, &value));
	if (value != expected)
		return error_hinted(error_set(ERR_DATA,
					      "'%s' does not describe the files beside it: \"%s\" is %lld, '%s.idx' "
					      "and '%s.bin' say %lld",
					      name, key, (long long)value, shard->prefix, shard->prefix, (long long)expected),
				    "the three files of a shard must come from one run; make the shard again");
	return OK;
}

static enum status read_splitting(const struct json *root, const char *name, struct shard_description *d)
{
	TRY(get_hex(root, name, "source_fingerprint", &d->source_fingerprint));
	TRY(json_get_bool(root, name, "lowercase", &d->lowercase));
	TRY(json_get_bool(root, name, "strip_accents", &d->strip_accents));
	return json_get_bool(root, name, "split_chinese", &d->split_chinese);
}

static enum status read_description(struct shard *shard, const struct json *root, const char *name)
{
	struct shard_description *d = &shard->description;
	int64_t version = 0, vocab_size = 0;
	uint64_t checksum = 0;
	const char *format = "", *form = "";
	TRY(json_get_string(root, name, "format", &format));
	TRY(json_get_integer(root, name, "version", 0, INT32_MAX, &version));
	if (strcmp(format, DESCRIPTION_FORMAT) != 0 || version != DESCRIPTION_VERSION)
		return error_set(ERR_DATA, "'%s': format \"%s\" version %lld, not \"%s\" version %d", name, format,
				 (long long)version, DESCRIPTION_FORMAT, DESCRIPTION_VERSION);
	TRY(check_equal(shard, root, name, "documents", shard->document_count));
	TRY(check_equal(shard, root, name, "sentences", shard->sentence_count));
	TRY(check_equal(shard, root, name, "tokens", shard->token_count));
	TRY(check_equal(shard, root, name, "bin_bytes", (int64_t)shard->bin.size));
	TRY(check_equal(shard, root, name, "idx_bytes", (int64_t)shard->idx.size));
	TRY(get_hex(root, name, "bin_crc32c", &checksum));
	shard->bin_crc32c = (uint32_t)checksum;
	TRY(get_hex(root, name, "idx_crc32c", &checksum));
	if (checksum != crc32c(0, shard->idx.data, shard->idx.size))
		return error_set(ERR_DATA, "'%s.idx': its checksum is not the one that '%s' records", shard->prefix, name);
	TRY(json_get_integer(root, name, "vocab_size", 1, INT32_MAX, &vocab_size));
	TRY(json_get_integer(root, name, "unknown_tokens", 0, shard->token_count, &d->unknown_tokens));
	TRY(get_hex(root, name, "vocab_hash", &d->vocab_hash));
	TRY(read_splitting(root, name, d));
	TRY(json_get_string(root, name, "text_form", &form));
	snprintf(d->text_form, sizeof d->text_form, "%s", form);
	d->vocab_size = (int32_t)vocab_size;
	d->documents = shard->document_count;
	d->sentences = shard->sentence_count;
	d->tokens = shard->token_count;
	shard->described = true;
	return OK;
}

static enum status open_files(struct shard *shard)
{
	char path[PATH_BYTES];
	TRY(shard_path(path, shard->prefix, ".idx"));
	if (!file_exists(path))
		return error_hinted(
			error_set(ERR_USAGE, "'%s': no such token shard ('%s' is not there)", shard->prefix, path),
			"give the common beginning of PREFIX.bin and PREFIX.idx, as `bertc prepare --out PREFIX` was given "
			"it");
	TRY(file_map_open(&shard->idx, path));
	TRY(shard_path(path, shard->prefix, ".bin"));
	TRY(file_map_open(&shard->bin, path));
	TRY(read_header(shard));
	TRY(verify_index(shard));
	shard->ids = shard->bin.data;

	TRY(shard_path(path, shard->prefix, ".json"));
	if (file_exists(path)) {
		struct json_document document = {0};
		TRY(json_read(&document, path, DESCRIPTION_BYTES_MAX));
		enum status status = read_description(shard, document.root, path);
		json_release(&document);
		TRY(status);
	} else {
		/* No extra cost: its ids will be read anyway, to be checked against the vocabulary. */
		shard->bin_crc32c = crc32c(0, shard->bin.data, shard->bin.size);
	}
	shard->content_hash = hash64_combine(hash64(shard->idx.data, shard->idx.size), shard->bin_crc32c);
	return OK;
}

enum status shard_read_splitting(const char *prefix, struct shard_description *out, bool *out_described)
{
	char path[PATH_BYTES];
	struct json_document document = {0};
	*out = (struct shard_description){0};
	TRY(shard_path(path, prefix, ".json"));
	*out_described = file_exists(path);
	if (!*out_described)
		return OK;
	TRY(json_read(&document, path, DESCRIPTION_BYTES_MAX));
	enum status status = read_splitting(document.root, path, out);
	json_release(&document);
	return status;
}

enum status shard_open(struct shard *out, const char *prefix)
{
	memset(out, 0, sizeof *out);
	TRY(shard_path(out->prefix, prefix, ""));
	enum status status = open_files(out);
	if (status != OK)
		shard_close(out);
	return status;
}

void shard_close(struct shard *shard)
{
	file_map_close(&shard->bin);
	file_map_close(&shard->idx);
	memset(shard, 0, sizeof *shard);
}

enum status shard_check_own(const char *prefix)
{
	static const char *const suffixes[] = {".bin", ".idx"};
	char path[PATH_BYTES], folder[PATH_BYTES];
	struct json_document document;
	const char *format = "";
	TRY(shard_path(path, prefix, ".json"));
	if (file_exists(path)) {
		bool read = json_read(&document, path, DESCRIPTION_BYTES_MAX) == OK;
		bool own = read && json_get_string(document.root, path, "format", &format) == OK &&
			   strcmp(format, DESCRIPTION_FORMAT) == 0;
		if (read)
			json_release(&document);
		if (own)
			return OK;
		return error_hinted(error_set(ERR_USAGE, "'%s' exists and was not made by bertc", path),
				    "choose another --out; the shards' description has that name");
	}
	path_folder(folder, prefix);
	for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
		TRY(shard_path(path, path_name(prefix), suffixes[i]));
		TRY(owned_files_check(folder, path, "bertc's own shards have a description beside them, PREFIX.json"));
	}
	return OK;
}

bool shard_exists(const char *prefix)
{
	static const char *const suffixes[] = {".bin", ".idx", ".json"};
	char path[PATH_BYTES];
	for (int i = 0; i < 3; i++)
		if (shard_path(path, prefix, suffixes[i]) != OK || !file_exists(path))
			return false;
	return true;
}

/* The largest id of a range, taken as unsigned so that a negative one counts as huge. One plain loop per type, so
 * that the compiler vectorizes it. */
static uint32_t largest_narrow(const uint16_t *ids, int64_t count)
{
	uint16_t largest = 0;
	for (int64_t i = 0; i < count; i++)
		largest = ids[i] > largest ? ids[i] : largest;
	return largest;
}

static uint32_t largest_wide(const int32_t *ids, int64_t count)
{
	uint32_t largest = 0;
	for (int64_t i = 0; i < count; i++)
		largest = (uint32_t)ids[i] > largest ? (uint32_t)ids[i] : largest;
	return largest;
}

static enum status refuse_id(const struct shard *shard, int64_t sentence, uint32_t id, int32_t vocab_size)
{
	return error_hinted(error_set(ERR_DATA, "'%s.bin': sentence %lld holds id %u, but the vocabulary has %d entries",
				      shard->prefix, (long long)sentence, id, vocab_size),
			    "the shard was made with another vocabulary, or is damaged");
}

static enum status check_ids(const struct shard *shard, int32_t vocab_size)
{
	for (int64_t i = 0; i < shard->sentence_count; i++) {
		const unsigned char *ids = (const unsigned char *)shard->ids + shard_byte_offset(shard, i);
		int32_t length = shard_length(shard, i);
		uint32_t largest = shard->wide ? largest_wide((const int32_t *)(const void *)ids, length)
					       : largest_narrow((const uint16_t *)(const void *)ids, length);
		if (largest >= (uint32_t)vocab_size)
			return refuse_id(shard, i, largest, vocab_size);
	}
	return OK;
}

enum status shard_check_vocab(const struct shard *shard, uint64_t vocab_hash, int32_t vocab_size)
{
	const struct shard_description *d = &shard->description;
	if (shard->described && (d->vocab_hash != vocab_hash || d->vocab_size != vocab_size))
		return error_hinted(error_set(ERR_STATE,
					      "'%s' was made with another vocabulary: hash %016llx of %d "
					      "entries, not %016llx of %d",
					      shard->prefix, (unsigned long long)d->vocab_hash, d->vocab_size,
					      (unsigned long long)vocab_hash, vocab_size),
				    "give the --vocab_file that the shard was prepared with, or prepare it again");
	return shard->described ? OK : check_ids(shard, vocab_size);
}

enum status shard_check_contents(const struct shard *shard, bool (*cancelled)(const void *context), const void *context)
{
	char path[PATH_BYTES];
	uint32_t found;
	int64_t bytes;
	if (!shard->described)
		return OK;
	TRY(shard_path(path, shard->prefix, ".bin"));
	TRY(file_checksum_until(path, cancelled, context, &bytes, &found));
	if (found == shard->bin_crc32c)
		return OK;
	return error_hinted(error_set(ERR_DATA,
				      "'%s': its checksum is %08x, not the %08x that '%s.json' records: its tokens "
				      "are not those that were written",
				      path, found, shard->bin_crc32c, shard->prefix),
			    "the file is damaged, or was changed: make the shard again");
}

enum status shard_verify(const char *prefix, int64_t *out_bytes, bool *out_described)
{
	struct shard shard;
	enum status status;
	TRY(shard_open(&shard, prefix));
	if (out_bytes)
		*out_bytes = (int64_t)(shard.bin.size + shard.idx.size);
	if (out_described)
		*out_described = shard.described;
	if (shard.described) {
		TRY_GOTO(shard_check_contents(&shard, NULL, NULL), done);
		TRY_GOTO(check_ids(&shard, shard.description.vocab_size), done);
	} else {
		TRY_GOTO(check_ids(&shard, INT32_MAX), done); /* at least not negative */
	}
done:
	shard_close(&shard);
	return status;
}

enum status shard_tokens(const struct shard *shard, int64_t sentence, int64_t begin, int64_t count, int32_t vocab_size,
			 int32_t *out)
{
	int64_t first = shard_byte_offset(shard, sentence) / id_bytes(shard) + begin;
	if (shard->wide) {
		memcpy(out, (const int32_t *)shard->ids + first, (size_t)count * sizeof *out);
	} else {
		const uint16_t *ids = (const uint16_t *)shard->ids + first;
		for (int64_t i = 0; i < count; i++)
			out[i] = ids[i];
	}
	uint32_t largest = largest_wide(out, count);
	if (largest >= (uint32_t)vocab_size)
		return refuse_id(shard, sentence, largest, vocab_size);
	return OK;
}
