/* tensorflow/core/protobuf/tensor_bundle.proto over a sorted table. */
#include "formats/tf_bundle_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "formats/protobuf.h"
#include "formats/weights/sorted_table.h"

enum { HEADER_SHARDS = 1, HEADER_VERSION = 3, VERSION_PRODUCER = 1, BUNDLE_VERSION = 1 };
enum { ENTRY_TYPE = 1, ENTRY_SHAPE = 2, ENTRY_OFFSET = 4, ENTRY_SIZE = 5, ENTRY_CRC = 6 };
enum { SHAPE_DIMENSION = 2, DIMENSION_SIZE = 1, TYPE_FLOAT = 1, TYPE_INT64 = 9 };

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct tf_bundle_entry *)a)->name, ((const struct tf_bundle_entry *)b)->name);
}

static int64_t entry_count(const struct tf_bundle_entry *entry)
{
	int64_t count = 1;
	for (int i = 0; i < entry->rank; i++)
		count *= entry->shape[i];
	return count;
}

/* The location of an entry's numbers in the data file. */
struct place {
	int64_t offset, size;
	uint32_t crc;
};

static enum status write_numbers(struct file_writer *file, const struct tf_bundle_entry *entry, struct place *out)
{
	int64_t count = entry_count(entry);
	const void *data = entry->data;
	float *turned = NULL;
	*out = (struct place){.offset = file_writer_offset(file), .size = count * (entry->is_int64 ? 8 : 4)};
	if (entry->transposed) {
		const float *stored = entry->data;
		int64_t rows = entry->shape[0], columns = entry->shape[1];
		TRY(memory_new(&turned, count, sizeof *turned, "a transposed weight"));
		for (int64_t i = 0; i < rows; i++)
			for (int64_t j = 0; j < columns; j++)
				turned[i * columns + j] = stored[j * rows + i];
		data = turned;
	}
	out->crc = crc32c_masked(crc32c(0, data, (size_t)out->size));
	enum status status = file_writer_write(file, data, (size_t)out->size);
	free(turned);
	return status;
}

static void add_header(struct sorted_table_writer *table)
{
	struct buffer header = {0}, version = {0};
	protobuf_integer(&header, HEADER_SHARDS, 1);
	protobuf_integer(&version, VERSION_PRODUCER, BUNDLE_VERSION);
	protobuf_message(&header, HEADER_VERSION, &version);
	sorted_table_add(table, "", header.data, header.size);
	table->block.failed |= header.failed;
	buffer_release(&header);
}

static void add_entry(struct sorted_table_writer *table, const struct tf_bundle_entry *entry, const struct place *place)
{
	struct buffer message = {0}, shape = {0};
	for (int i = 0; i < entry->rank; i++) {
		struct buffer dimension = {0};
		protobuf_integer(&dimension, DIMENSION_SIZE, entry->shape[i]);
		protobuf_message(&shape, SHAPE_DIMENSION, &dimension);
	}
	protobuf_integer(&message, ENTRY_TYPE, entry->is_int64 ? TYPE_INT64 : TYPE_FLOAT);
	protobuf_message(&message, ENTRY_SHAPE, &shape);
	if (place->offset > 0)
		protobuf_integer(&message, ENTRY_OFFSET, place->offset);
	protobuf_integer(&message, ENTRY_SIZE, place->size);
	protobuf_fixed32(&message, ENTRY_CRC, place->crc);
	sorted_table_add(table, entry->name, message.data, message.size);
	table->block.failed |= message.failed;
	buffer_release(&message);
}

enum status tf_bundle_write(const char *prefix, struct tf_bundle_entry *entries, int64_t count)
{
	struct sorted_table_writer table = {0};
	struct file_writer *data = NULL;
	char path[PATH_BYTES];
	enum status status;
	qsort(entries, (size_t)count, sizeof *entries, by_name);
	if (snprintf(path, sizeof path, "%s.data-00000-of-00001", prefix) >= (int)sizeof path)
		return error_set(ERR_USAGE, "'%.200s…': path too long", prefix);
	TRY(file_writer_open(&data, path));
	add_header(&table);
	for (int64_t i = 0; i < count; i++) {
		struct place place;
		TRY_GOTO(write_numbers(data, &entries[i], &place), failed);
		add_entry(&table, &entries[i], &place);
	}
	status = file_writer_commit(data);
	data = NULL;
	if (status != OK)
		goto failed;
	TRY_GOTO(sorted_table_finish(&table), failed);
	snprintf(path, sizeof path, "%s.index", prefix);
	status = file_write(path, table.out.data, table.out.size);
	buffer_release(&table.out);
	return status;
failed:
	file_writer_abandon(data);
	struct error before = *error_last();
	if (sorted_table_finish(&table) != OK) /* called to release it */
		(void)0;
	buffer_release(&table.out);
	return error_restore(&before);
}
