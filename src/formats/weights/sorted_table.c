/* LevelDB's doc/table_format.md. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "base/hash.h"
#include "base/memory.h"
#include "formats/little_endian.h"
#include "formats/weights/sorted_table.h"

#define FOOTER_BYTES 48
#define MAGIC 0xdb4775248b80fb57u
#define TRAILER_BYTES 5 /* type, checksum */
/* TensorFlow aims at blocks of 256 KiB; a single entry may be longer. */
#define BLOCK_LIMIT ((size_t)64 << 20)
#define KEY_LIMIT ((size_t)1 << 16)

struct table {
	const char *path;
	const unsigned char *bytes;
	size_t size;
	table_visit *visit;
	void *context;
	struct buffer last; /* the previous key, across all data blocks */
	bool has_last;
};

/* The location of a block, without its trailer. */
struct handle {
	uint64_t offset, size;
};

static enum status damaged(const struct table *table, uint64_t offset, const char *what)
{
	return error_hinted(error_set(ERR_DATA, "'%s': byte %" PRIu64 ": %s", table->path, offset, what),
			    "copy or download the file again");
}

static bool read_handle(struct byte_range *in, struct handle *out)
{
	return range_varint(in, &out->offset) && range_varint(in, &out->size);
}

/* Gets the bytes of a block after verifying its checksum. */
static enum status read_block(const struct table *table, struct handle handle, struct byte_range *out)
{
	uint64_t limit = table->size - FOOTER_BYTES;
	if (handle.offset > limit || handle.size > limit - handle.offset || limit - handle.offset - handle.size < TRAILER_BYTES ||
	    handle.size > BLOCK_LIMIT)
		return damaged(table, handle.offset, "a block of the table is outside the file");
	const unsigned char *block = table->bytes + handle.offset, *type = block + handle.size;
	if (crc32c_masked(crc32c(0, block, handle.size + 1)) != read_le32(type + 1))
		return damaged(table, handle.offset, "a block of the table is damaged: its checksum is wrong");
	*out = (struct byte_range){block, type};
	if (*type == 0)
		return OK;
	return damaged(table, handle.offset,
		       *type == 1 ? "a block of the table is packed with Snappy, which TensorFlow's checkpoints never are"
				  : "a block of the table is packed in an unknown way");
}

/* Removes the list of restart points from the end; only seeking needs it. */
static bool cut_restarts(struct byte_range *block)
{
	if (range_left(block) < 4)
		return false;
	uint64_t count = read_le32(block->end - 4), bytes = 4 * count + 4;
	if (count == 0 || bytes > range_left(block))
		return false;
	block->end -= bytes;
	return true;
}

/* Takes the next entry; `key` must hold the previous key, and then holds this one's. */
static bool next_entry(struct byte_range *block, struct buffer *key, struct byte_range *value)
{
	uint64_t shared, own, value_size;
	struct byte_range rest;
	if (!range_varint(block, &shared) || !range_varint(block, &own) || !range_varint(block, &value_size))
		return false;
	if (shared > key->size || own > KEY_LIMIT || shared + own > KEY_LIMIT || !range_bytes(block, own, &rest) ||
	    !range_bytes(block, value_size, value))
		return false;
	key->size = shared;
	buffer_append(key, rest.at, own);
	return true;
}

static enum status check_order(struct table *table, const struct buffer *key, uint64_t offset)
{
	size_t common = key->size < table->last.size ? key->size : table->last.size;
	int order = common ? memcmp(table->last.data, key->data, common) : 0;
	if (table->has_last && (order > 0 || (order == 0 && table->last.size >= key->size)))
		return damaged(table, offset, "keys of the table are not in order");
	buffer_clear(&table->last);
	buffer_append(&table->last, buffer_string(key), key->size);
	table->has_last = true;
	return buffer_status(&table->last);
}

static enum status read_data_block(struct table *table, struct handle handle)
{
	struct byte_range block, value;
	struct buffer key = {0};
	enum status status = read_block(table, handle, &block);
	if (status == OK && !cut_restarts(&block))
		status = damaged(table, handle.offset, "a block of the table has no end");
	while (status == OK && block.at < block.end) {
		if (!next_entry(&block, &key, &value)) {
			status = damaged(table, handle.offset, "an entry of this block of the table is damaged");
			break;
		}
		status = buffer_status(&key);
		if (status == OK)
			status = check_order(table, &key, handle.offset);
		if (status == OK)
			status = table->visit(table->context, buffer_string(&key), key.size, value, handle.offset);
	}
	buffer_release(&key);
	return status;
}

static enum status read_index(struct table *table, struct handle index)
{
	struct byte_range block, value;
	struct buffer key = {0};
	struct handle handle;
	uint64_t end = 0; /* blocks must be in order, so none is read twice */
	enum status status = read_block(table, index, &block);
	if (status == OK && !cut_restarts(&block))
		status = damaged(table, index.offset, "the table's index has no end");
	while (status == OK && block.at < block.end) {
		if (!next_entry(&block, &key, &value) || !read_handle(&value, &handle) || handle.offset < end) {
			status = damaged(table, index.offset, "an entry of the table's index is damaged");
			break;
		}
		status = buffer_status(&key);
		if (status == OK)
			status = read_data_block(table, handle);
		end = handle.offset + handle.size;
	}
	buffer_release(&key);
	return status;
}

enum status sorted_table_read(const char *path, const unsigned char *bytes, size_t size, table_visit *visit, void *context)
{
	struct table table = {.path = path, .bytes = bytes, .size = size, .visit = visit, .context = context};
	struct handle metaindex, index;
	if (size < FOOTER_BYTES)
		return error_set(ERR_DATA, "'%s': %zu bytes are not the index of a TensorFlow checkpoint", path, size);
	const unsigned char *footer = bytes + size - FOOTER_BYTES;
	if (read_le64(footer + FOOTER_BYTES - 8) != MAGIC)
		return damaged(&table, size - 8, "not an index of a TensorFlow checkpoint, or truncated");
	struct byte_range in = {footer, footer + FOOTER_BYTES - 8};
	if (!read_handle(&in, &metaindex) || !read_handle(&in, &index))
		return damaged(&table, size - FOOTER_BYTES, "the table's footer is damaged");
	enum status status = read_index(&table, index);
	buffer_release(&table.last);
	return status;
}

/* ---- Writing ---- */

#define BLOCK_TARGET ((size_t)256 << 10)
#define RESTART_INTERVAL 16

static void put_varint(struct buffer *out, uint64_t value)
{
	unsigned char bytes[VARINT_BYTES];
	buffer_append(out, bytes, varint_put(bytes, value));
}

static void put_le32(struct buffer *out, uint32_t value)
{
	unsigned char bytes[4] = {(unsigned char)value, (unsigned char)(value >> 8), (unsigned char)(value >> 16),
				  (unsigned char)(value >> 24)};
	buffer_append(out, bytes, sizeof bytes);
}

/* Writes an entry whose key shares its beginning with the previous one, unless `restart`. */
static void put_entry(struct buffer *block, struct buffer *before, bool restart, const char *key, size_t key_size,
		      const void *value, size_t size)
{
	size_t shared = 0;
	while (!restart && shared < before->size && shared < key_size && before->data[shared] == key[shared])
		shared++;
	put_varint(block, shared);
	put_varint(block, key_size - shared);
	put_varint(block, size);
	buffer_append(block, key + shared, key_size - shared);
	buffer_append(block, value, size);
	buffer_clear(before);
	buffer_append(before, key, key_size);
	block->failed |= before->failed;
}

/* Appends a block with its restart points and trailer; returns its location. */
static struct handle put_block(struct buffer *out, const struct buffer *entries, const struct buffer *restarts)
{
	struct handle handle = {.offset = out->size};
	uint32_t count = (uint32_t)(restarts->size / 4);
	buffer_append(out, entries->data, entries->size);
	buffer_append(out, restarts->data, restarts->size);
	if (count == 0)
		put_le32(out, 0); /* even an empty block has one */
	put_le32(out, count ? count : 1);
	handle.size = out->size - handle.offset;
	buffer_char(out, 0);
	out->failed |= entries->failed | restarts->failed;
	put_le32(out, out->failed ? 0 : crc32c_masked(crc32c(0, out->data + handle.offset, handle.size + 1)));
	return handle;
}

static void put_handle(struct buffer *out, struct handle handle)
{
	put_varint(out, handle.offset);
	put_varint(out, handle.size);
}

static void flush_block(struct sorted_table_writer *writer)
{
	struct buffer handle = {0};
	if (writer->in_block == 0)
		return;
	put_handle(&handle, put_block(&writer->out, &writer->block, &writer->restarts));
	/* The index stores every key in full. */
	put_entry(&writer->index, &writer->index_last, true, buffer_string(&writer->last), writer->last.size, handle.data,
		  handle.size);
	writer->index.failed |= handle.failed;
	buffer_release(&handle);
	buffer_clear(&writer->block);
	buffer_clear(&writer->restarts);
	writer->in_block = 0;
}

void sorted_table_add(struct sorted_table_writer *writer, const char *key, const void *value, size_t size)
{
	bool restart = writer->in_block % RESTART_INTERVAL == 0;
	if (restart)
		put_le32(&writer->restarts, (uint32_t)writer->block.size);
	put_entry(&writer->block, &writer->last, restart, key, strlen(key), value, size);
	writer->in_block++;
	if (writer->block.size >= BLOCK_TARGET)
		flush_block(writer);
}

enum status sorted_table_finish(struct sorted_table_writer *writer)
{
	struct buffer nothing = {0}, footer = {0};
	flush_block(writer);
	put_handle(&footer, put_block(&writer->out, &nothing, &nothing)); /* the empty metaindex */
	/* One restart point is enough for the index, whether it is read sequentially or searched. */
	buffer_clear(&writer->restarts);
	put_le32(&writer->restarts, 0);
	put_handle(&footer, put_block(&writer->out, &writer->index, &writer->restarts));
	while (!footer.failed && footer.size < FOOTER_BYTES - 8)
		buffer_char(&footer, 0);
	put_le32(&footer, (uint32_t)MAGIC);
	put_le32(&footer, (uint32_t)(MAGIC >> 32));
	buffer_append(&writer->out, footer.data, footer.size);
	writer->out.failed |= footer.failed | writer->block.failed | writer->index.failed | writer->restarts.failed;
	buffer_release(&footer);
	buffer_release(&writer->block);
	buffer_release(&writer->restarts);
	buffer_release(&writer->index);
	buffer_release(&writer->last);
	buffer_release(&writer->index_last);
	return buffer_status(&writer->out);
}
