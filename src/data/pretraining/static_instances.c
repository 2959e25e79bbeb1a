/* Writes, checks, and reads files of static instances. */
#include "data/pretraining/static_instances.h"
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/hash.h"
#include "base/memory.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "static instances are mapped as little-endian numbers");

#define MAGIC "bertcins"
#define FORMAT_VERSION 2       /* of files with pairs; all others have version 1, which older versions of bertc can read */
#define SAMPLED_INSTANCES 1000 /* in which [UNK] is counted */
#define HEAD_BYTES 16          /* magic, u32 version, u32 zero */

/* Header of an instance. It is followed by ids [length], positions and labels [predictions], all u16 or, if WIDE, u32; if TYPES,
 * u8 types [length]; zeros up to a multiple of four; if WEIGHTS, f32 weights [predictions]. */
struct record {
	uint32_t length, first_b, predictions; /* first_b: number of tokens in segment 0, unless TYPES */
	int16_t next_label;
	uint16_t flags;
};
enum { WIDE = 1, TYPES = 2, WEIGHTS = 4, SPAN = 8 }; /* SPAN: a pair whose masked run is drawn when it is used */

/* At the end of the file, after u64 places [count + 1]: the offset of each instance, and the end of the last one. */
struct tail {
	int64_t count, token_count, prediction_count, labeled_count;
	int32_t max_length, max_predictions, largest_id, zero;
	uint64_t source_fingerprint;
	uint32_t crc; /* CRC-32C of all bytes before the tail */
	uint32_t version;
	char magic[8];
};
_Static_assert(sizeof(struct record) == 16 && sizeof(struct tail) == 72, "the layout is documented");

struct static_writer {
	struct file_writer *file;
	struct static_summary summary;
	uint64_t *places;
	int64_t capacity;
	struct buffer scratch;
};

enum status static_writer_open(struct static_writer **out, const char *path)
{
	enum status status;
	struct static_writer *writer = NULL;
	uint32_t version[2] = {1, 0}; /* the tail has the actual version */
	*out = NULL;
	TRY(memory_new(&writer, 1, sizeof *writer, "writer of instances"));
	writer->summary.largest_id = -1;
	TRY_GOTO(file_writer_open(&writer->file, path), fail);
	TRY_GOTO(file_writer_write(writer->file, MAGIC, 8), fail);
	TRY_GOTO(file_writer_write(writer->file, version, sizeof version), fail);
	*out = writer;
	return OK;
fail:
	static_writer_abandon(writer);
	return status;
}

static void put_numbers(struct buffer *out, const int32_t *numbers, int64_t count, bool wide)
{
	if (wide) {
		buffer_append(out, numbers, (size_t)count * sizeof *numbers);
		return;
	}
	uint16_t narrow[512];
	for (int64_t done = 0; done < count;) {
		int64_t part = count - done < 512 ? count - done : 512;
		for (int64_t i = 0; i < part; i++)
			narrow[i] = (uint16_t)numbers[done + i];
		buffer_append(out, narrow, (size_t)part * sizeof *narrow);
		done += part;
	}
}

static int32_t largest(const int32_t *ids, int32_t count, int32_t most)
{
	for (int32_t i = 0; i < count; i++)
		most = ids[i] > most ? ids[i] : most;
	return most;
}

/* True if the types are zeros, then ones; *out_first_b: number of zeros. */
static bool two_segments(const struct instance *instance, uint32_t *out_first_b)
{
	int32_t i = 0, first;
	while (i < instance->length && instance->types[i] == 0)
		i++;
	first = i;
	while (i < instance->length && instance->types[i] == 1)
		i++;
	*out_first_b = (uint32_t)first;
	return i == instance->length;
}

static enum status add(struct static_writer *writer, const struct instance *instance, bool pair)
{
	struct static_summary *summary = &writer->summary;
	int32_t length = instance->length, predictions = instance->prediction_count;
	BUG_IF(length < 0 || length > STATIC_LENGTH_MAX || predictions < 0 || predictions > length);
	int32_t most = largest(instance->ids, length, largest(instance->prediction_labels, predictions, 0));
	struct record record = {
		.length = (uint32_t)length, .predictions = (uint32_t)predictions, .next_label = (int16_t)instance->next_label};
	bool wide = most > UINT16_MAX || length > UINT16_MAX, weighted = false;
	for (int32_t i = 0; instance->prediction_weights != NULL && i < predictions; i++)
		weighted |= instance->prediction_weights[i] != 1;
	record.flags = (uint16_t)((wide ? WIDE : 0) | (weighted ? WEIGHTS : 0) | (pair ? SPAN : 0));
	if (!two_segments(instance, &record.first_b)) {
		record.flags |= TYPES;
		record.first_b = 0;
	}
	TRY(memory_grow(&writer->places, &writer->capacity, summary->count + 1, sizeof *writer->places, "places of instances"));
	writer->places[summary->count] = (uint64_t)file_writer_offset(writer->file);

	struct buffer *out = &writer->scratch;
	buffer_clear(out);
	buffer_append(out, &record, sizeof record);
	put_numbers(out, instance->ids, length, wide);
	put_numbers(out, instance->prediction_positions, predictions, wide);
	put_numbers(out, instance->prediction_labels, predictions, wide);
	for (int32_t i = 0; record.flags & TYPES && i < length; i++)
		buffer_char(out, (char)instance->types[i]);
	while (out->size % 4 != 0)
		buffer_char(out, 0);
	if (weighted)
		buffer_append(out, instance->prediction_weights, (size_t)predictions * sizeof(float));
	TRY(buffer_status(out));
	TRY(file_writer_write(writer->file, out->data, out->size));

	summary->count++;
	summary->token_count += length;
	summary->prediction_count += predictions;
	summary->labeled_count += instance->next_label >= 0;
	summary->max_length = length > summary->max_length ? length : summary->max_length;
	summary->max_predictions = predictions > summary->max_predictions ? predictions : summary->max_predictions;
	summary->largest_id = most > summary->largest_id ? most : summary->largest_id;
	return OK;
}

enum status static_writer_add(struct static_writer *writer, const struct instance *instance)
{
	return add(writer, instance, false);
}

enum status static_writer_add_pair(struct static_writer *writer, const struct instance *instance)
{
	writer->summary.has_pairs = true;
	return add(writer, instance, true);
}

int64_t static_writer_bytes(const struct static_writer *writer)
{
	return file_writer_offset(writer->file);
}

const struct static_summary *static_writer_summary(const struct static_writer *writer)
{
	return &writer->summary;
}

enum status static_writer_commit(struct static_writer *writer, uint64_t source_fingerprint)
{
	enum status status;
	struct static_summary *summary = &writer->summary;
	summary->source_fingerprint = source_fingerprint;
	uint64_t end = (uint64_t)file_writer_offset(writer->file);
	TRY_GOTO(file_writer_write(writer->file, writer->places, (size_t)summary->count * sizeof *writer->places), done);
	TRY_GOTO(file_writer_write(writer->file, &end, sizeof end), done);
	struct tail tail = {
		.count = summary->count,
		.token_count = summary->token_count,
		.prediction_count = summary->prediction_count,
		.labeled_count = summary->labeled_count,
		.max_length = summary->max_length,
		.max_predictions = summary->max_predictions,
		.largest_id = summary->largest_id,
		.source_fingerprint = source_fingerprint,
		.crc = file_writer_crc32c(writer->file),
		.version = summary->has_pairs ? FORMAT_VERSION : 1,
	};
	memcpy(tail.magic, MAGIC, 8);
	TRY_GOTO(file_writer_write(writer->file, &tail, sizeof tail), done);
	struct file_writer *file = writer->file;
	writer->file = NULL;
	status = file_writer_commit(file);
done:
	static_writer_abandon(writer);
	return status;
}

void static_writer_abandon(struct static_writer *writer)
{
	if (writer == NULL)
		return;
	file_writer_abandon(writer->file);
	buffer_release(&writer->scratch);
	free(writer->places);
	free(writer);
}

bool static_file_is(const char *path)
{
	char head[8] = "", end[8] = "";
	FILE *file = fopen(path, "rb");
	if (file == NULL)
		return false;
	bool ours = fread(head, 1, 8, file) == 8 && fseek(file, -8, SEEK_END) == 0 && fread(end, 1, 8, file) == 8 &&
		    memcmp(head, MAGIC, 8) == 0 && memcmp(end, MAGIC, 8) == 0;
	fclose(file);
	return ours;
}

static uint64_t place(const struct static_file *file, int64_t index)
{
	uint64_t at;
	memcpy(&at, file->places + index * 8, 8);
	return at;
}

static enum status damaged(const struct static_file *file, const char *reason)
{
	return error_hinted(error_set(ERR_DATA, "'%s': %s", file->path, reason),
			    "the file is truncated or damaged: make it again");
}

static enum status read_tail(struct static_file *file)
{
	const unsigned char *data = file->map.data;
	size_t size = file->map.size;
	struct tail tail;
	if (size < HEAD_BYTES + 8 + sizeof tail || memcmp(data, MAGIC, 8) != 0)
		return damaged(file, "not a file of instances");
	memcpy(&tail, data + size - sizeof tail, sizeof tail);
	if (memcmp(tail.magic, MAGIC, 8) != 0)
		return damaged(file, "it does not end as a file of instances does");
	if (tail.version < 1 || tail.version > FORMAT_VERSION)
		return error_set(ERR_DATA, "'%s': version %u of the format; this program reads up to %d", file->path,
				 tail.version, FORMAT_VERSION);
	uint64_t room = size - HEAD_BYTES - 8 - sizeof tail;
	if (tail.count < 0 || (uint64_t)tail.count > room / (sizeof(struct record) + 8))
		return damaged(file, "its size is not what its end says");
	if (tail.max_length < 0 || tail.max_length > STATIC_LENGTH_MAX || tail.max_predictions < 0 ||
	    tail.max_predictions > tail.max_length)
		return damaged(file, "its end is invalid");
	file->summary = (struct static_summary){
		.count = tail.count,
		.token_count = tail.token_count,
		.prediction_count = tail.prediction_count,
		.labeled_count = tail.labeled_count,
		.max_length = tail.max_length,
		.max_predictions = tail.max_predictions,
		.largest_id = tail.largest_id,
		.has_pairs = tail.version == FORMAT_VERSION,
		.source_fingerprint = tail.source_fingerprint,
	};
	file->dated_hash = hash64(&tail, sizeof tail);
	tail.source_fingerprint = 0;
	file->content_hash = hash64(&tail, sizeof tail);
	file->places = data + size - sizeof tail - (size_t)(tail.count + 1) * 8;
	uint64_t last = HEAD_BYTES, end = (uint64_t)(file->places - data);
	for (int64_t i = 0; i <= tail.count; i++) {
		uint64_t at = place(file, i), least = i > 0 ? sizeof(struct record) : 0;
		if (at < last || at - last < least || at > end || at % 4 != 0 || (i == 0 && at != HEAD_BYTES))
			return damaged(file, "the list of its instances is invalid");
		last = at;
	}
	return last == end ? OK : damaged(file, "the list of its instances is invalid");
}

enum status static_file_open(struct static_file *out, const char *path)
{
	memset(out, 0, sizeof *out);
	snprintf(out->path, sizeof out->path, "%s", path);
	TRY(file_map_open(&out->map, path));
	enum status status = read_tail(out);
	if (status != OK)
		static_file_close(out);
	return status;
}

void static_file_close(struct static_file *file)
{
	file_map_close(&file->map);
	memset(file, 0, sizeof *file);
}

/* The parts of one instance; find_parts() returns false if they do not fill its bytes exactly. */
struct parts {
	struct record record;
	const unsigned char *ids, *positions, *labels, *types, *weights;
};

static bool find_parts(const struct static_file *file, int64_t index, struct parts *out)
{
	uint64_t begin = place(file, index), size = place(file, index + 1) - begin;
	const unsigned char *bytes = file->map.data + begin;
	struct record *record = &out->record;
	memcpy(record, bytes, sizeof *record);
	if (record->length > (uint32_t)file->summary.max_length || record->first_b > record->length ||
	    record->predictions > (uint32_t)file->summary.max_predictions || record->flags >= 16)
		return false;
	/* The run to be drawn must fit into B, before the last [SEP]. */
	if (record->flags & SPAN && (record->flags & TYPES || record->first_b < 3 || record->predictions < 1 ||
				     (uint64_t)record->first_b + record->predictions + 1 > record->length))
		return false;
	uint64_t unit = record->flags & WIDE ? 4 : 2;
	uint64_t at = sizeof *record;
	out->ids = bytes + at;
	out->positions = bytes + (at += unit * record->length);
	out->labels = bytes + (at += unit * record->predictions);
	out->types = bytes + (at += unit * record->predictions);
	at += record->flags & TYPES ? record->length : 0;
	at = (at + 3) / 4 * 4;
	out->weights = bytes + at;
	at += record->flags & WEIGHTS ? 4 * (uint64_t)record->predictions : 0;
	return at == size;
}

void static_file_sizes(const struct static_file *file, int64_t index, int32_t *out_length, int32_t *out_predictions)
{
	struct parts parts;
	bool good = find_parts(file, index, &parts);
	*out_length = good ? (int32_t)parts.record.length : 0;
	*out_predictions = good ? (int32_t)parts.record.predictions : 0;
}

static void get_numbers(const unsigned char *from, int32_t count, bool wide, int32_t *out)
{
	if (wide) {
		memcpy(out, from, (size_t)count * 4);
		return;
	}
	for (int32_t i = 0; i < count; i++) {
		uint16_t number;
		memcpy(&number, from + 2 * i, 2);
		out[i] = number;
	}
}

static bool within(const int32_t *ids, int32_t count, int32_t vocab_size)
{
	uint32_t most = 0;
	for (int32_t i = 0; i < count; i++)
		most = (uint32_t)ids[i] > most ? (uint32_t)ids[i] : most;
	return count == 0 || most < (uint32_t)vocab_size;
}

static enum status refuse(const struct static_file *file, int64_t index, const char *reason)
{
	return error_hinted(error_set(ERR_DATA, "'%s': instance %lld at byte %llu: %s", file->path, (long long)index,
				      (unsigned long long)place(file, index), reason),
			    "the file is damaged, or was made with another vocabulary: make it again");
}

enum status static_file_read(const struct static_file *file, int64_t index, int32_t vocab_size, struct instance *out)
{
	struct parts parts;
	BUG_IF(index < 0 || index >= file->summary.count);
	if (!find_parts(file, index, &parts))
		return refuse(file, index, "its sizes are invalid");
	bool wide = parts.record.flags & WIDE;
	int32_t length = (int32_t)parts.record.length, predictions = (int32_t)parts.record.predictions;
	out->length = length;
	out->prediction_count = predictions;
	out->next_label = parts.record.next_label;
	out->draws_span = parts.record.flags & SPAN;
	get_numbers(parts.ids, length, wide, out->ids);
	get_numbers(parts.positions, predictions, wide, out->prediction_positions);
	get_numbers(parts.labels, predictions, wide, out->prediction_labels);
	if (!within(out->ids, length, vocab_size) || !within(out->prediction_labels, predictions, vocab_size))
		return refuse(file, index, "an id is beyond the vocabulary");
	if (out->next_label < -1 || out->next_label > 1)
		return refuse(file, index, "its next-sentence label is none of -1, 0 and 1");
	for (int32_t i = 0; parts.record.flags & TYPES && i < length; i++)
		if (parts.types[i] > 1)
			return refuse(file, index, "a segment type is neither 0 nor 1");
	int32_t before = -1;
	for (int32_t i = 0; i < predictions; i++) {
		int32_t at = out->prediction_positions[i];
		if (at <= before || at >= length)
			return refuse(file, index, "a masked position is out of place");
		before = at;
	}
	for (int32_t i = 0; i < length; i++)
		out->types[i] = parts.record.flags & TYPES ? parts.types[i] : i >= (int32_t)parts.record.first_b;
	for (int32_t i = 0; out->prediction_weights != NULL && i < predictions; i++) {
		out->prediction_weights[i] = 1;
		if (parts.record.flags & WEIGHTS)
			memcpy(&out->prediction_weights[i], parts.weights + 4 * i, 4);
	}
	return OK;
}

#define PROVED_AT_ONCE ((size_t)16 << 20)

static enum status verify(const void *opened, bool (*cancelled)(const void *context), const void *context)
{
	const struct static_file *file = opened;
	struct tail tail;
	size_t before = file->map.size - sizeof tail;
	uint32_t found = 0;
	memcpy(&tail, file->map.data + before, sizeof tail);
	for (size_t at = 0; at < before && !(cancelled && cancelled(context)); at += PROVED_AT_ONCE)
		found = crc32c(found, file->map.data + at, before - at < PROVED_AT_ONCE ? before - at : PROVED_AT_ONCE);
	return found == tail.crc ? OK : damaged(file, "its checksum is wrong: its instances are not those that were written");
}

struct shard_contents static_contents(const struct static_file *file)
{
	return (struct shard_contents){.verify = verify, .file = file, .bytes = (int64_t)file->map.size};
}

/* Reads `count` evenly spaced instances and passes each to `look` (NULL: they are only read). */
static enum status read_some(const struct static_file *file, int64_t count, int32_t vocab_size,
			     void (*look)(void *context, const struct instance *instance), void *context)
{
	const struct static_summary *summary = &file->summary;
	struct instance instance = {0};
	int64_t length = summary->max_length, predictions = summary->max_predictions;
	enum status status;
	TRY_GOTO(memory_new(&instance.ids, length, 4, "instance"), done);
	TRY_GOTO(memory_new(&instance.types, length, 4, "instance"), done);
	TRY_GOTO(memory_new(&instance.prediction_positions, predictions, 4, "instance"), done);
	TRY_GOTO(memory_new(&instance.prediction_labels, predictions, 4, "instance"), done);
	for (int64_t i = 0; i < count; i++) {
		int64_t index = count == summary->count ? i : (int64_t)((double)i * (double)summary->count / (double)count);
		TRY_GOTO(static_file_read(file, index, vocab_size, &instance), done);
		if (look)
			look(context, &instance);
	}
done:
	free(instance.ids);
	free(instance.types);
	free(instance.prediction_positions);
	free(instance.prediction_labels);
	return status;
}

struct words {
	const struct vocab *vocab;
	int64_t unknown, tokens;
};

static void count_words(void *context, const struct instance *instance)
{
	struct words *words = context;
	const struct vocab *vocab = words->vocab;
	for (int32_t i = 0; i < instance->length; i++) {
		int32_t id = instance->ids[i];
		words->tokens += id != vocab->cls && id != vocab->sep && id != vocab->mask && id != vocab->pad;
		words->unknown += id == vocab->unk;
	}
	for (int32_t i = 0; i < instance->prediction_count; i++) {
		words->tokens += instance->ids[instance->prediction_positions[i]] == vocab->mask;
		words->unknown += instance->ids[instance->prediction_positions[i]] == vocab->mask &&
				  instance->prediction_labels[i] == vocab->unk;
	}
}

enum status static_file_unknown(const struct static_file *file, const struct vocab *vocab, int64_t *out_unknown,
				int64_t *out_tokens)
{
	struct words words = {.vocab = vocab};
	int64_t count = file->summary.count < SAMPLED_INSTANCES ? file->summary.count : SAMPLED_INSTANCES;
	TRY(read_some(file, count, vocab->count, count_words, &words));
	*out_unknown = words.unknown;
	*out_tokens = words.tokens;
	return OK;
}

enum status static_file_verify(const char *path)
{
	struct static_file file;
	TRY(static_file_open(&file, path));
	enum status status = verify(&file, NULL, NULL);
	if (status == OK)
		status = read_some(&file, file.summary.count, file.summary.largest_id + 1, NULL, NULL);
	static_file_close(&file);
	return status;
}
