/* Zip archives, made by hand with one error at a time. The archives of torch.save itself are in
 * tests/weights/test_model_weights.c. */
#include <sys/mman.h>
#include "test.h"
#include "base/buffer.h"
#include "formats/weights/torch_file.h"
#include "formats/zip.h"

struct entry {
	const char *name, *data;
	uint32_t crc, size, stored; /* as in the directory; `stored` is the compressed size */
	int method, flags;
	int64_t offset; /* of the local header; -1: the actual one */
};

static void put(struct buffer *out, uint64_t value, int width)
{
	for (int i = 0; i < width; i++) /* the value has eight bytes, the rest is zeros */
		buffer_char(out, i < 8 ? (char)(value >> (8 * i)) : 0);
}

static void put_local(struct buffer *out, const struct entry *entry)
{
	put(out, 0x04034b50, 4);
	put(out, 0, 22);
	put(out, strlen(entry->name), 2);
	put(out, 0, 2);
	buffer_text(out, entry->name);
	buffer_text(out, entry->data);
}

static void put_central(struct buffer *out, const struct entry *entry, uint64_t offset)
{
	put(out, 0x02014b50, 4);
	put(out, 0, 4);
	put(out, (uint64_t)entry->flags, 2);
	put(out, (uint64_t)entry->method, 2);
	put(out, 0, 4);
	put(out, entry->crc, 4);
	put(out, entry->stored, 4);
	put(out, entry->size, 4);
	put(out, strlen(entry->name), 2);
	put(out, 0, 12);
	put(out, entry->offset >= 0 ? (uint64_t)entry->offset : offset, 4);
	buffer_text(out, entry->name);
}

/* The record at the end of an archive: the number of entries, and the size and position of the directory. */
static void put_end(struct buffer *out, uint64_t count, uint64_t size, uint64_t directory)
{
	put(out, 0x06054b50, 4);
	put(out, 0, 4);
	put(out, count, 2);
	put(out, count, 2);
	put(out, size, 4);
	put(out, directory, 4);
	put(out, 0, 2);
}

static void make(struct buffer *out, const struct entry *entries, int count)
{
	uint64_t offsets[8];
	buffer_clear(out);
	for (int i = 0; i < count; i++) {
		offsets[i] = out->size;
		put_local(out, &entries[i]);
	}
	uint64_t begin = out->size;
	for (int i = 0; i < count; i++)
		put_central(out, &entries[i], offsets[i]);
	uint64_t size = out->size - begin;
	put_end(out, (uint64_t)count, size, begin);
}

static enum status open_bytes(struct zip *zip, const struct buffer *bytes)
{
	return zip_open(zip, "x.zip", (const unsigned char *)bytes->data, bytes->size);
}

/* CRC-32 of "hello" and of "abc". */
static const struct entry good[] = {
	{"a/hello", "hello", 0x3610a686, 5, 5, 0, 0, -1},
	{"a/", "", 0, 0, 0, 0, 0, -1},
	{"a/abc", "abc", 0x352441c2, 3, 3, 0, 0, -1},
};

static void entries_are_found(void **state)
{
	struct buffer bytes = {0};
	struct zip zip;
	make(&bytes, good, 3);
	assert_ok(open_bytes(&zip, &bytes));
	assert_int_equal(zip.count, 2);
	const struct zip_entry *entry = zip_find(&zip, "a/abc");
	assert_non_null(entry);
	assert_int_equal(entry->size, 3);
	assert_memory_equal(entry->data, "abc", 3);
	assert_ok(zip_entry_check(entry, "x.zip"));
	assert_null(zip_find(&zip, "abc"));
	bytes.data[entry->offset] = 'x';
	assert_error(ERR_DATA, "a/abc", zip_entry_check(entry, "x.zip"));
	zip_close(&zip);
	for (size_t size = 0; size < bytes.size; size++) {
		struct buffer cut = {.data = bytes.data, .size = size};
		assert_int_equal(open_bytes(&zip, &cut), ERR_DATA);
	}
	buffer_release(&bytes);
}

static void put_central64(struct buffer *out, const char *name, uint32_t crc, uint64_t size, uint64_t offset)
{
	put(out, 0x02014b50, 4);
	put(out, 0, 12);
	put(out, crc, 4);
	put(out, 0xffffffff, 4);
	put(out, 0xffffffff, 4);
	put(out, strlen(name), 2);
	put(out, 28, 2); /* of the extra field */
	put(out, 0, 10);
	put(out, 0xffffffff, 4);
	buffer_text(out, name);
	put(out, 1, 2);
	put(out, 24, 2);
	put(out, size, 8);
	put(out, size, 8);
	put(out, offset, 8);
}

/* An archive of more than 4 GiB, as torch.save writes for large models: 64-bit sizes and positions. Most of it is a hole. */
static void large_archives(void **state)
{
	const uint64_t hole = ((uint64_t)4 << 30) + 3, total = hole + 4096;
	struct buffer part = {0};
	struct zip zip;
	unsigned char *bytes = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (bytes == MAP_FAILED)
		skip();
	struct entry large = {.name = "large", .data = ""}, small = good[2];
	put_local(&part, &large);
	memcpy(bytes, part.data, part.size);
	uint64_t second = part.size + hole, at = second;
	buffer_clear(&part);
	put_local(&part, &small);
	uint64_t directory = second + part.size, begin = part.size;
	put_central64(&part, "large", 0, hole, 0);
	put_central64(&part, small.name, small.crc, 3, second);
	uint64_t size = part.size - begin, end64 = second + part.size;
	put(&part, 0x06064b50, 4);
	put(&part, 44, 8);
	put(&part, 0, 12);
	put(&part, 2, 8);
	put(&part, 2, 8);
	put(&part, size, 8);
	put(&part, directory, 8);
	put(&part, 0x07064b50, 4);
	put(&part, 0, 4);
	put(&part, end64, 8);
	put(&part, 1, 4);
	put_end(&part, 0xffff, 0xffffffff, 0xffffffff);
	memcpy(bytes + at, part.data, part.size);
	assert_ok(zip_open(&zip, "x.zip", bytes, at + part.size));
	const struct zip_entry *entry = zip_find(&zip, "large");
	assert_non_null(entry);
	assert_true(entry->size == hole && entry->data == bytes + 35);
	entry = zip_find(&zip, "a/abc");
	assert_non_null(entry);
	assert_true(entry->size == 3 && memcmp(entry->data, "abc", 3) == 0);
	assert_ok(zip_entry_check(entry, "x.zip"));
	zip_close(&zip);
	/* Without the locator, the plain end record is impossible. */
	memset(bytes + end64 + 56, 0, 4);
	assert_error(ERR_DATA, "is outside the file", zip_open(&zip, "x.zip", bytes, at + part.size));
	assert_int_equal(munmap(bytes, total), 0);
	buffer_release(&part);
}

/* 64-bit positions and sizes that no file can have: nothing may access them, not even to check. */
static void forged_places_are_refused(void **state)
{
	static const struct {
		uint64_t size, offset;
		const char *part;
	} cases[] = {{3, UINT64_MAX - 8, "no header of entry"}, {UINT64_MAX, 0, "reaches beyond"}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct buffer bytes = {0};
		struct entry small = good[2];
		struct zip zip;
		put_local(&bytes, &small);
		uint64_t directory = bytes.size;
		put_central64(&bytes, small.name, small.crc, cases[i].size, cases[i].offset);
		uint64_t size = bytes.size - directory;
		put_end(&bytes, 1, size, directory);
		assert_error(ERR_DATA, cases[i].part, zip_open(&zip, "x.zip", (const unsigned char *)bytes.data, bytes.size));
		buffer_release(&bytes);
	}
}

static void malice_is_refused(void **state)
{
	static const struct {
		struct entry second;
		const char *part;
	} cases[] = {
		{{"b", "abc", 0, 1000000, 3, 8, 0, -1}, "compressed (method 8)"},
		{{"b", "abc", 0, 3, 3, 0, 1, -1}, "encrypted"},
		{{"b", "abc", 0, 1000, 3, 0, 0, -1}, "1000 bytes stored as 3"},
		{{"b", "abc", 0, 1000, 1000, 0, 0, -1}, "beyond the data"},
		{{"a/hello", "hello", 0, 5, 5, 0, 0, -1}, "two entries are called"},
		{{"b", "abc", 0, 3, 3, 0, 0, 0}, "not that of entry 'b'"},
		{{"b", "abc", 0, 3, 3, 0, 0, 5}, "no header of entry 'b'"},
		{{"b", "abc", 0, 3, 3, 0, 0, 0xfffffff0}, "no header of entry 'b'"},
		{{"b", "abc", 0, 0xffffffff, 0xffffffff, 0, 0, -1}, "beyond the data"},
	};
	struct buffer bytes = {0};
	struct zip zip;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct entry entries[2] = {good[0], cases[i].second};
		make(&bytes, entries, 2);
		assert_error(ERR_DATA, cases[i].part, open_bytes(&zip, &bytes));
	}
	/* An entry within another entry's data: a header hidden there. */
	struct buffer inner = {0};
	struct entry nested = {"n", "xx", 0, 2, 2, 0, 0, -1};
	put_local(&inner, &nested);
	make(&bytes, good, 1);
	struct buffer outer = {0};
	put(&outer, 0x04034b50, 4);
	put(&outer, 0, 22);
	put(&outer, 1, 2);
	put(&outer, 0, 2);
	buffer_text(&outer, "o");
	uint64_t within = outer.size;
	buffer_append(&outer, inner.data, inner.size);
	uint64_t begin = outer.size;
	struct entry whole = {"o", "", 0, (uint32_t)inner.size, (uint32_t)inner.size, 0, 0, 0};
	nested.offset = (int64_t)within;
	put_central(&outer, &whole, 0);
	put_central(&outer, &nested, within);
	uint64_t size = outer.size - begin;
	put_end(&outer, 2, size, begin);
	assert_error(ERR_DATA, "overlap", open_bytes(&zip, &outer));
	buffer_release(&inner);
	buffer_release(&outer);
	/* More entries than the directory has room for. */
	make(&bytes, good, 1);
	bytes.data[bytes.size - 12] = (char)0xff;
	bytes.data[bytes.size - 11] = (char)0xff;
	assert_error(ERR_DATA, "65535 entries", open_bytes(&zip, &bytes));
	buffer_release(&bytes);
}

/* torch.save writes one, and PyTorch refuses such an archive. */
static void two_dictionaries_are_refused(void **state)
{
	static const struct entry entries[] = {
		{"b/data.pkl", "\x80\2}.", 0x89deb73d, 4, 4, 0, 0, -1},
		{"a/data.pkl", "\x80\2}.", 0x89deb73d, 4, 4, 0, 0, -1},
	};
	static const char *const parts[] = {"neither a dictionary of tensors", "data.pkl in two folders"};
	struct buffer bytes = {0};
	struct torch_file file;
	for (int count = 1; count <= 2; count++) {
		make(&bytes, entries, count);
		assert_ok(file_write(test_path("x.pt"), bytes.data, bytes.size));
		assert_error(ERR_DATA, parts[count - 1], torch_file_open(&file, test_path("x.pt")));
	}
	buffer_release(&bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_are_found),
		cmocka_unit_test(large_archives),
		cmocka_unit_test(forged_places_are_refused),
		cmocka_unit_test(malice_is_refused),
		cmocka_unit_test(two_dictionaries_are_refused),
	};
	return cmocka_run_group_tests(tests, test_folder_make, test_folder_drop);
}
