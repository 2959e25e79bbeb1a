/* Indices of TensorFlow checkpoints, made by hand with one error at a time. An index written by TensorFlow is in
 * tests/weights/test_model_weights.c. */
#include "test.h"
#include "base/buffer.h"
#include "base/hash.h"
#include "formats/weights/sorted_table.h"
#include "formats/tf_bundle.h"
#include "formats/tf_bundle_writer.h"

static void put(struct buffer *out, uint64_t value, int width)
{
	for (int i = 0; i < width; i++)
		buffer_char(out, (char)(value >> (8 * i)));
}

static void put_varint(struct buffer *out, uint64_t value)
{
	for (; value >= 128; value >>= 7)
		buffer_char(out, (char)(value | 128));
	buffer_char(out, (char)value);
}

/* An entry that shares `shared` bytes with the key before it. */
static void put_entry(struct buffer *block, size_t shared, const char *key, size_t key_size, const void *value, size_t size)
{
	put_varint(block, shared);
	put_varint(block, key_size - shared);
	put_varint(block, size);
	buffer_append(block, key + shared, key_size - shared);
	buffer_append(block, value, size);
}

/* Appends a block with one restart point, its type and checksum; writes its handle. */
static void put_block(struct buffer *out, const struct buffer *entries, int type, struct buffer *handle)
{
	struct buffer block = {0};
	buffer_append(&block, entries->data, entries->size);
	if (type == 0)
		put(&block, (uint64_t)1 << 32, 8); /* restart 0, one of them */
	buffer_clear(handle);
	put_varint(handle, out->size);
	put_varint(handle, block.size);
	buffer_char(&block, (char)type);
	buffer_append(out, block.data, block.size);
	put(out, crc32c_masked(crc32c(0, block.data, block.size)), 4);
	buffer_release(&block);
}

/* The table of one data block. */
static void make_table(struct buffer *out, const struct buffer *entries, int type)
{
	struct buffer handle = {0}, index = {0}, meta = {0}, nothing = {0};
	buffer_clear(out);
	put_block(out, entries, type, &handle);
	put_entry(&index, 0, "z", 1, handle.data, handle.size);
	put_block(out, &nothing, 0, &meta);
	put_block(out, &index, 0, &handle);
	size_t footer = out->size;
	buffer_append(out, meta.data, meta.size);
	buffer_append(out, handle.data, handle.size);
	while (out->size < footer + 40)
		buffer_char(out, 0);
	put(out, 0xdb4775248b80fb57u, 8);
	buffer_release(&handle);
	buffer_release(&index);
	buffer_release(&meta);
}

static enum status parse(struct tf_bundle *bundle, const struct buffer *table)
{
	return tf_bundle_parse(bundle, "x.index", (const unsigned char *)table->data, table->size);
}

#define HEADER "\x08\1"                                                    /* one data file */
#define ENTRY "\x08\1\x12\x08\x12\2\x08\2\x12\2\x08\3\x28\x18\x35\1\2\3\4" /* float, (2, 3), 24 bytes */

/* A header and one entry. */
static void make_entries(struct buffer *out, const char *header, size_t header_size, const char *key, size_t key_size,
			 const char *entry, size_t size)
{
	buffer_clear(out);
	if (header)
		put_entry(out, 0, "", 0, header, header_size);
	put_entry(out, 0, key, key_size, entry, size);
}

static void names_share_beginnings(void **state)
{
	struct buffer entries = {0}, table = {0};
	struct tf_bundle bundle;
	make_entries(&entries, HEADER, 2, "bert/a", 6, ENTRY, sizeof(ENTRY) - 1);
	put_entry(&entries, 5, "bert/b", 6, ENTRY, sizeof(ENTRY) - 1);
	put_entry(&entries, 6, "bert/b/adam_m", 13, "\x08\7", 2); /* a tensor of strings */
	make_table(&table, &entries, 0);
	assert_ok(parse(&bundle, &table));
	assert_int_equal(bundle.count, 2);
	assert_string_equal(bundle.tensors[1].name, "bert/b");
	assert_int_equal(bundle.tensors[1].rank, 2);
	assert_int_equal(bundle.tensors[1].shape[1], 3);
	assert_int_equal(bundle.tensors[1].count, 6);
	assert_int_equal(bundle.tensors[1].expected, 0x04030201);
	assert_int_equal(bundle.others.count, 1);
	tf_bundle_close(&bundle);
	for (size_t size = 0; size < table.size; size++) {
		struct buffer cut = {.data = table.data, .size = size};
		assert_int_equal(parse(&bundle, &cut), ERR_DATA);
	}
	int refused = 0;
	for (size_t at = 0; at < table.size; at++) {
		table.data[at] ^= 1;
		enum status status = parse(&bundle, &table);
		refused += status != OK;
		if (status == OK)
			tf_bundle_close(&bundle);
		table.data[at] ^= 1;
	}
	assert_true(refused > (int)table.size - 60); /* all but those in the empty block and the footer's padding */
	buffer_release(&entries);
	buffer_release(&table);
}

static void malice_is_refused(void **state)
{
	static const struct {
		const char *header;
		size_t header_size;
		const char *key;
		size_t key_size;
		const char *entry;
		size_t size;
		const char *part;
	} cases[] = {
		{NULL, 0, "a", 1, ENTRY, sizeof(ENTRY) - 1, "no header"},
		{"\x08\1\x10\1", 4, "a", 1, ENTRY, sizeof(ENTRY) - 1, "big-endian"},
		{"", 0, "a", 1, ENTRY, sizeof(ENTRY) - 1, "0 data files"},
		{"\x08\xff\xff\xff\xff\x0f", 6, "a", 1, ENTRY, sizeof(ENTRY) - 1, "data files"},
		{"\x08", 1, "a", 1, ENTRY, sizeof(ENTRY) - 1, "header is damaged"},
		{HEADER, 2, "a\x1b", 2, ENTRY, sizeof(ENTRY) - 1, "not plain text"},
		{HEADER, 2, "a", 1, "\x08\1\x12\0\x28\4\x3a\0", 8, "slices"},
		{HEADER, 2, "a", 1, "\x08\1\x12\2\x18\1\x28\4", 8, "not known"},
		{HEADER, 2, "a", 1, "\x08\1\x12\0\x18\1\x28\4", 8, "beyond the last"},
		{HEADER, 2, "a", 1, "\x08\1\x12\0\x28\5", 6, "not that of its shape"},
		{HEADER, 2, "a", 1, "\x08\1\x12\x10\x12\6\x08\xff\xff\xff\xff\x7f\x12\6\x08\xff\xff\xff\xff\x7f\x28\4", 22,
		 "not that of its shape"},
		{HEADER, 2, "a", 1, "\x08\1\x12\x0d\x12\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\1\x28\4", 19, "damaged"},
		{HEADER, 2, "a", 1, "\x08\1\x12\x7f", 4, "damaged"},
		{HEADER, 2, "a", 1, "\x08", 1, "damaged"},
		{HEADER, 2, "a", 1, "\x0d\1\0\0\0", 5, "damaged"},
	};
	struct buffer entries = {0}, table = {0};
	struct tf_bundle bundle;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		make_entries(&entries, cases[i].header, cases[i].header_size, cases[i].key, cases[i].key_size, cases[i].entry,
			     cases[i].size);
		make_table(&table, &entries, 0);
		assert_error(ERR_DATA, cases[i].part, parse(&bundle, &table));
	}
	/* A tensor in slices, whose entries come first, is named. */
	make_entries(&entries, HEADER, 2, "\0a\0\1", 4, ENTRY, sizeof(ENTRY) - 1);
	put_entry(&entries, 0, "a", 1, "\x08\1\x12\0\x3a\0", 6);
	make_table(&table, &entries, 0);
	assert_error(ERR_DATA, "tensor 'a': it is cut into slices", parse(&bundle, &table));
	/* Repeated keys, and one that claims to share more than there is. */
	make_entries(&entries, HEADER, 2, "b", 1, ENTRY, sizeof(ENTRY) - 1);
	put_entry(&entries, 0, "a", 1, ENTRY, sizeof(ENTRY) - 1);
	make_table(&table, &entries, 0);
	assert_error(ERR_DATA, "not in order", parse(&bundle, &table));
	make_entries(&entries, HEADER, 2, "b", 1, ENTRY, sizeof(ENTRY) - 1);
	put_varint(&entries, 9);
	make_table(&table, &entries, 0);
	assert_error(ERR_DATA, "damaged", parse(&bundle, &table));
	make_table(&table, &entries, 7);
	assert_error(ERR_DATA, "unknown way", parse(&bundle, &table));
	make_table(&table, &entries, 1);
	assert_error(ERR_DATA, "Snappy", parse(&bundle, &table));
	buffer_release(&entries);
	buffer_release(&table);
}

/* Two entries with the same place in the data file. */
static void overlaps_are_refused(void **state)
{
	struct buffer entries = {0}, table = {0};
	struct tf_bundle bundle;
	make_entries(&entries, HEADER, 2, "a", 1, ENTRY, sizeof(ENTRY) - 1);
	put_entry(&entries, 0, "b", 1, ENTRY, sizeof(ENTRY) - 1);
	make_table(&table, &entries, 0);
	assert_ok(file_write(test_path("x.index"), table.data, table.size));
	static const char data[48];
	assert_ok(file_write(test_path("x.data-00000-of-00001"), data, 20));
	assert_error(ERR_DATA, "truncated", tf_bundle_open(&bundle, test_path("x.index")));
	assert_ok(file_write(test_path("x.data-00000-of-00001"), data, 48));
	assert_error(ERR_DATA, "overlap", tf_bundle_open(&bundle, test_path("x.index")));
	buffer_release(&entries);
	buffer_release(&table);
}

/* ---- Writing ---- */

enum { MANY = 12000 };

static enum status check_key(void *context, const char *key, size_t key_size, struct byte_range value, uint64_t offset)
{
	int *count = context;
	char expected[64];
	snprintf(expected, sizeof expected, "bert/encoder/layer/%05d", *count);
	assert_int_equal(key_size, strlen(expected));
	assert_memory_equal(key, expected, key_size);
	assert_int_equal(range_left(&value), 4 + *count % 50);
	assert_int_equal(value.at[0], *count % 251);
	assert_true(offset < 1 << 20);
	++*count;
	return OK;
}

/* Several blocks, each with many restart points: the entries at these have complete keys. */
static void tables_of_many_blocks(void **state)
{
	struct sorted_table_writer writer = {0};
	int count = 0;
	for (int i = 0; i < MANY; i++) {
		char key[64];
		unsigned char value[64];
		snprintf(key, sizeof key, "bert/encoder/layer/%05d", i);
		memset(value, i % 251, sizeof value);
		sorted_table_add(&writer, key, value, (size_t)(4 + i % 50));
	}
	assert_ok(sorted_table_finish(&writer));
	assert_true(writer.out.size > 300000);
	assert_ok(sorted_table_read("x", (unsigned char *)writer.out.data, writer.out.size, check_key, &count));
	assert_int_equal(count, MANY);
	/* The first block: one restart point per sixteen entries, at which nothing is shared. */
	const unsigned char *bytes = (unsigned char *)writer.out.data;
	struct byte_range footer = {bytes + writer.out.size - 48, bytes + writer.out.size}, index;
	uint64_t number = 0, offset = 0, size = 0;
	for (int i = 0; i < 2; i++)
		assert_true(range_varint(&footer, &number)); /* metaindex */
	assert_true(range_varint(&footer, &offset) && range_varint(&footer, &size));
	index = (struct byte_range){bytes + offset, bytes + offset + size};
	assert_true(range_varint(&index, &number)); /* shared */
	assert_int_equal(number, 0);
	assert_true(range_varint(&index, &number)); /* own */
	index.at += 1 + number;                     /* the size in a handle takes one byte */
	assert_true(range_varint(&index, &offset) && range_varint(&index, &size));
	assert_int_equal(offset, 0);
	const unsigned char *end = bytes + size;
	uint32_t restarts = (uint32_t)end[-4] | (uint32_t)end[-3] << 8;
	assert_true(restarts > 100);
	for (uint32_t i = 0; i < restarts; i++) {
		const unsigned char *at = end - 4 - 4 * (restarts - i);
		uint32_t restart = (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
		char expected[64];
		snprintf(expected, sizeof expected, "bert/encoder/layer/%05d", (int)i * 16);
		assert_int_equal(bytes[restart], 0);
		assert_memory_equal(bytes + restart + 3, expected, strlen(expected));
	}
	buffer_release(&writer.out);
}

static void written_comes_back(void **state)
{
	static const float kernel[6] = {1, 2, 3, 4, 5, 6}, gamma[3] = {7, 8, 9};
	static const int64_t step = 77;
	struct tf_bundle_entry entries[] = {
		{.name = "global_step", .is_int64 = true, .data = &step},
		{.name = "bert/b/kernel", .rank = 2, .shape = {3, 2}, .transposed = true, .data = kernel},
		{.name = "bert/a/gamma", .rank = 1, .shape = {3}, .data = gamma},
	};
	struct tf_bundle bundle;
	float values[6];
	assert_ok(tf_bundle_write(test_path("model.ckpt"), entries, 3));
	assert_ok(tf_bundle_open(&bundle, test_path("model.ckpt.index")));
	assert_int_equal(bundle.count, 3);
	assert_string_equal(bundle.tensors[0].name, "bert/a/gamma");
	assert_string_equal(bundle.tensors[1].name, "bert/b/kernel");
	assert_string_equal(bundle.tensors[2].name, "global_step");
	for (int i = 0; i < 3; i++)
		assert_ok(stored_tensor_verify(&bundle.tensors[i]));
	assert_int_equal(bundle.tensors[1].shape[0], 3);
	assert_int_equal(bundle.tensors[1].shape[1], 2);
	assert_ok(stored_tensor_read(&bundle.tensors[1], 0, 6, values));
	for (int i = 0; i < 6; i++) /* stored as (2, 3), read as (3, 2) */
		assert_true(values[i] == kernel[i % 2 * 3 + i / 2]);
	assert_int_equal(bundle.tensors[2].dtype, ST_I64);
	assert_int_equal(bundle.tensors[2].rank, 0);
	assert_int_equal(bundle.tensors[2].data[0], 77);
	tf_bundle_close(&bundle);

	/* A full disk leaves no index, which could be mistaken for a checkpoint. */
	assert_ok(file_fault_set("write:1:ENOSPC"));
	assert_int_equal(tf_bundle_write(test_path("full.ckpt"), entries, 3), ERR_RESOURCE);
	assert_ok(file_fault_set(NULL));
	assert_false(file_exists(test_path("full.ckpt.index")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_of_many_blocks),  cmocka_unit_test(written_comes_back),
		cmocka_unit_test(names_share_beginnings), cmocka_unit_test(malice_is_refused),
		cmocka_unit_test(overlaps_are_refused),
	};
	return cmocka_run_group_tests(tests, test_folder_make, test_folder_drop);
}
