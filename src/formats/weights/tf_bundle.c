/* tensorflow/core/protobuf/tensor_bundle.proto over a sorted table. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "formats/protobuf.h"
#include "formats/weights/sorted_table.h"
#include "formats/tf_bundle.h"

#define TENSOR_LIMIT 100000
#define NAME_LIMIT 4096
#define SHARD_LIMIT 100000
#define SUFFIX ".index"

/* One data file. */
struct tf_shard {
	struct file_map map;
	char *path;
	bool wanted;
};

struct reader {
	struct tf_bundle *bundle;
	const char *path;
	bool has_header;
};

/* BundleEntryProto. */
struct entry {
	uint64_t dtype, shard, offset, size;
	uint32_t crc;
	bool has_slices, unknown_rank;
	int rank;
	int64_t shape[STORED_RANK_LIMIT];
};

/* TensorFlow's DataType numbers. */
static const struct {
	uint64_t number;
	enum safetensors_dtype dtype;
} dtypes[] = {
	{1, ST_F32},   {2, ST_F64},   {3, ST_I32},  {4, ST_U8},   {5, ST_I16},  {6, ST_I8},   {9, ST_I64},
	{10, ST_BOOL}, {14, ST_BF16}, {17, ST_U16}, {19, ST_F16}, {22, ST_U32}, {23, ST_U64},
};
#define DTYPES (sizeof dtypes / sizeof dtypes[0])

/* ---- Protocol buffers ---- */

/* TensorShapeProto: dimensions {size 1} in field 2, unknown_rank in field 3. */
static bool read_shape(struct byte_range message, struct entry *out)
{
	struct protobuf_field dimension, part;
	while (message.at < message.end) {
		if (!protobuf_next(&message, &dimension))
			return false;
		if (dimension.number == 3)
			out->unknown_rank = dimension.value != 0;
		if (dimension.number != 2)
			continue;
		uint64_t size = 0;
		if (dimension.kind != PROTOBUF_BYTES || out->rank == STORED_RANK_LIMIT)
			return false;
		while (dimension.content.at < dimension.content.end) {
			if (!protobuf_next(&dimension.content, &part))
				return false;
			if (part.number == 1 && part.kind == PROTOBUF_VARINT)
				size = part.value;
		}
		if (size > INT64_MAX)
			return false;
		out->shape[out->rank++] = (int64_t)size;
	}
	return true;
}

static bool read_entry(struct byte_range message, struct entry *out)
{
	struct protobuf_field field;
	*out = (struct entry){0};
	while (message.at < message.end) {
		if (!protobuf_next(&message, &field))
			return false;
		static const unsigned kinds[] = {
			0,           PROTOBUF_VARINT, PROTOBUF_BYTES, PROTOBUF_VARINT, PROTOBUF_VARINT, PROTOBUF_VARINT,
			PROTOBUF_32, PROTOBUF_BYTES};
		if (field.number == 0 || field.number >= sizeof kinds / sizeof *kinds)
			continue;
		if (field.kind != kinds[field.number])
			return false;
		if (field.number == 1)
			out->dtype = field.value;
		else if (field.number == 2 && !read_shape(field.content, out))
			return false;
		else if (field.number == 3)
			out->shard = field.value;
		else if (field.number == 4)
			out->offset = field.value;
		else if (field.number == 5)
			out->size = field.value;
		else if (field.number == 6)
			out->crc = (uint32_t)field.value;
		else if (field.number == 7)
			out->has_slices = true;
	}
	return true;
}

/* ---- The index ---- */

static enum status bad_entry(const struct reader *reader, uint64_t offset, const char *name, const char *what)
{
	return error_set(ERR_DATA, "'%s': block at byte %" PRIu64 ": tensor '%.200s': %s", reader->path, offset, name, what);
}

/* BundleHeaderProto: num_shards 1, endianness 2. */
static enum status read_header(struct reader *reader, struct byte_range message, uint64_t offset)
{
	struct protobuf_field field;
	uint64_t shards = 0, endianness = 0;
	while (message.at < message.end) {
		if (!protobuf_next(&message, &field))
			return error_set(ERR_DATA, "'%s': block at byte %" PRIu64 ": the header is damaged", reader->path,
					 offset);
		if (field.number == 1 && field.kind == PROTOBUF_VARINT)
			shards = field.value;
		if (field.number == 2 && field.kind == PROTOBUF_VARINT)
			endianness = field.value;
	}
	if (endianness != 0)
		return error_set(ERR_DATA, "'%s': its numbers are big-endian", reader->path);
	if (shards < 1 || shards > SHARD_LIMIT)
		return error_set(ERR_DATA, "'%s': block at byte %" PRIu64 ": the header names %" PRIu64 " data files",
				 reader->path, offset, shards);
	reader->has_header = true;
	reader->bundle->shard_count = (int64_t)shards;
	return memory_new(&reader->bundle->shards, (int64_t)shards, sizeof *reader->bundle->shards, "data files of a checkpoint");
}

static enum status add_tensor(struct reader *reader, const char *name, const struct entry *entry, size_t type, uint64_t offset)
{
	struct tf_bundle *bundle = reader->bundle;
	if (bundle->count == TENSOR_LIMIT)
		return error_set(ERR_DATA, "'%s': more than %d tensors", reader->path, TENSOR_LIMIT);
	if (entry->unknown_rank)
		return bad_entry(reader, offset, name, "its shape is not known");
	if (entry->has_slices)
		return error_hinted(bad_entry(reader, offset, name, "it is cut into slices, which bertc does not put together"),
				    "save the checkpoint again without a partitioner");
	if (entry->shard >= (uint64_t)bundle->shard_count)
		return bad_entry(reader, offset, name, "it is in a data file beyond the last");
	struct stored_tensor tensor = {
		.dtype = dtypes[type].dtype,
		.rank = entry->rank,
		.path = "", /* until the data files are open */
		.offset = entry->offset,
		.checksum = CHECKSUM_MASKED_CRC32C,
		.checked_bytes = entry->size,
		.expected = entry->crc,
	};
	memcpy(tensor.shape, entry->shape, sizeof tensor.shape);
	uint64_t bytes;
	if (!stored_tensor_pack(&tensor) ||
	    __builtin_mul_overflow((uint64_t)tensor.count, (uint64_t)dtype_element_bytes(tensor.dtype), &bytes) ||
	    bytes != entry->size)
		return bad_entry(reader, offset, name, "its size is not that of its shape and type");
	TRY(memory_grow(&bundle->tensors, &bundle->capacity, bundle->count + 1, sizeof *bundle->tensors,
			"tensors of a checkpoint"));
	char *copy = strdup(name);
	if (!copy)
		return error_set(ERR_RESOURCE, "not enough memory for the names of a checkpoint");
	tensor.name = copy;
	bundle->shards[entry->shard].wanted = true;
	tensor.part = (int64_t)entry->shard;
	bundle->tensors[bundle->count++] = tensor;
	return OK;
}

static enum status visit_entry(void *context, const char *key, size_t key_size, struct byte_range value, uint64_t offset)
{
	struct reader *reader = context;
	char name[NAME_LIMIT + 1];
	struct entry entry;
	if (key_size == 0)
		return read_header(reader, value, offset);
	if (!reader->has_header)
		return error_set(ERR_DATA, "'%s': block at byte %" PRIu64 ": the index has no header", reader->path, offset);
	if (key[0] == 0) /* a slice; its tensor's own entry, which has the name, is refused */
		return OK;
	bool plain = key_size <= NAME_LIMIT;
	for (size_t i = 0; i < key_size; i++)
		plain &= key[i] >= 0x20 && key[i] < 0x7f;
	if (!plain)
		return error_set(ERR_DATA, "'%s': block at byte %" PRIu64 ": a name longer than %d bytes or not plain text",
				 reader->path, offset, NAME_LIMIT);
	memcpy(name, key, key_size);
	name[key_size] = 0;
	if (!read_entry(value, &entry))
		return bad_entry(reader, offset, name, "its entry is damaged");
	for (size_t type = 0; type < DTYPES; type++)
		if (dtypes[type].number == entry.dtype)
			return add_tensor(reader, name, &entry, type, offset);
	return name_list_add(&reader->bundle->others, name);
}

enum status tf_bundle_parse(struct tf_bundle *out, const char *index_path, const unsigned char *bytes, size_t size)
{
	struct reader reader = {.bundle = out, .path = index_path};
	*out = (struct tf_bundle){0};
	enum status status = sorted_table_read(index_path, bytes, size, visit_entry, &reader);
	if (status == OK && !reader.has_header)
		status = error_set(ERR_DATA, "'%s': an index without a header", index_path);
	if (status != OK)
		tf_bundle_close(out);
	return status;
}

/* ---- Data files ---- */

static enum status open_shard(struct tf_bundle *bundle, int64_t number, const char *index_path)
{
	struct tf_shard *shard = &bundle->shards[number];
	char path[PATH_BYTES];
	int stem = (int)(strlen(index_path) - strlen(SUFFIX));
	int length = snprintf(path, sizeof path, "%.*s.data-%05" PRId64 "-of-%05" PRId64, stem, index_path, number,
			      bundle->shard_count);
	if (length >= (int)sizeof path)
		return error_set(ERR_USAGE, "'%.200s…': path too long", index_path);
	if (!file_exists(path))
		return error_hinted(error_set(ERR_USAGE, "'%s': this data file of the checkpoint is missing", path),
				    "the index '%s' names it; copy all files of the checkpoint", index_path);
	shard->path = strdup(path);
	if (!shard->path)
		return error_set(ERR_RESOURCE, "not enough memory for the names of a checkpoint");
	return file_map_open(&shard->map, path);
}

static enum status find_data(struct tf_bundle *bundle)
{
	for (int64_t i = 0; i < bundle->count; i++) {
		struct stored_tensor *tensor = &bundle->tensors[i];
		const struct tf_shard *shard = &bundle->shards[tensor->part];
		tensor->path = shard->path;
		if (tensor->offset > shard->map.size || tensor->checked_bytes > shard->map.size - tensor->offset)
			return error_set(ERR_DATA,
					 "'%s': tensor '%.200s' (%" PRIu64 " bytes at %" PRIu64
					 ") reaches beyond the file of %zu bytes: truncated?",
					 shard->path, tensor->name, tensor->checked_bytes, tensor->offset, shard->map.size);
		static const unsigned char nothing[1];
		tensor->data = shard->map.data ? shard->map.data + tensor->offset : nothing;
		tensor->checked = tensor->data;
	}
	return OK;
}

static int compare_places(const void *a, const void *b)
{
	const struct stored_tensor *p = *(const struct stored_tensor *const *)a;
	const struct stored_tensor *q = *(const struct stored_tensor *const *)b;
	return (p->data > q->data) - (p->data < q->data);
}

/* No two tensors may share bytes, so that a small file cannot represent a large checkpoint. */
static enum status check_overlaps(const struct tf_bundle *bundle)
{
	const struct stored_tensor **sorted;
	TRY(memory_new(&sorted, bundle->count, sizeof *sorted, "tensors of a checkpoint"));
	for (int64_t i = 0; i < bundle->count; i++)
		sorted[i] = &bundle->tensors[i];
	qsort(sorted, (size_t)bundle->count, sizeof *sorted, compare_places);
	enum status status = OK;
	const struct stored_tensor *before = NULL;
	for (int64_t i = 0; i < bundle->count && status == OK; i++) {
		const struct stored_tensor *tensor = sorted[i];
		if (tensor->checked_bytes == 0)
			continue;
		if (before && before->path == tensor->path && before->offset + before->checked_bytes > tensor->offset)
			status = error_set(ERR_DATA, "'%s': byte %" PRIu64 ": tensors '%.200s' and '%.200s' overlap",
					   tensor->path, tensor->offset, before->name, tensor->name);
		before = tensor;
	}
	free(sorted);
	return status;
}

enum status tf_bundle_open(struct tf_bundle *out, const char *index_path)
{
	struct file_map index;
	size_t size = strlen(index_path);
	*out = (struct tf_bundle){0};
	BUG_IF(size < strlen(SUFFIX) || strcmp(index_path + size - strlen(SUFFIX), SUFFIX) != 0);
	TRY(file_map_open(&index, index_path));
	enum status status = tf_bundle_parse(out, index_path, index.data, index.size);
	file_map_close(&index);
	TRY(status);
	for (int64_t i = 0; i < out->shard_count; i++)
		if (out->shards[i].wanted)
			TRY_GOTO(open_shard(out, i, index_path), fail);
	TRY_GOTO(find_data(out), fail);
	TRY_GOTO(check_overlaps(out), fail);
	return OK;
fail:
	tf_bundle_close(out);
	return status;
}

void tf_bundle_close(struct tf_bundle *bundle)
{
	for (int64_t i = 0; i < bundle->count; i++)
		free((char *)(uintptr_t)bundle->tensors[i].name);
	for (int64_t i = 0; bundle->shards && i < bundle->shard_count; i++) {
		file_map_close(&bundle->shards[i].map);
		free(bundle->shards[i].path);
	}
	free(bundle->tensors);
	free(bundle->shards);
	name_list_release(&bundle->others);
	*bundle = (struct tf_bundle){0};
}
