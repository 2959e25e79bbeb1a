/* Indices of TensorFlow checkpoints beside a data file. The checksums of blocks are corrected first, so that the code
 * behind them is reached. */
#include "fuzz.h"
#include "base/hash.h"
#include "formats/little_endian.h"
#include "formats/tf_bundle.h"
#include "formats/varint.h"

#define FOOTER_BYTES 48

/* The content of all data files: 1.0 and zeros. */
static const uint8_t data[64] = {0, 0, 128, 63};

/* Entries of a block: the number of key bytes shared with the previous entry, of the other key bytes, of the value's
 * bytes, and then those bytes. */
static size_t put_entry(unsigned char *out, const char *key, size_t shared, const void *value, size_t size)
{
	size_t own = strlen(key) - shared;
	out[0] = (unsigned char)shared;
	out[1] = (unsigned char)own;
	out[2] = (unsigned char)size;
	memcpy(out + 3, key + shared, own);
	memcpy(out + 3 + own, value, size);
	return 3 + own + size;
}

/* The end of a block: one restart point, at 0; then the type and a checksum, which is corrected for every input. */
static size_t put_end(unsigned char *out)
{
	memcpy(out, "\0\0\0\0\1\0\0\0\0\0\0\0", 13);
	return 13;
}

/* A table of a header and two tensors: a data block, an empty block, an index block, a footer. */
static void add_table(char **arguments)
{
	unsigned char table[512] = {0}, tensor[] = "\x08\1\x12\4\x12\2\x08\1\x20\0\x28\4\x35\0\0\0\0", handle[2];
	uint32_t crc = crc32c_masked(crc32c(0, data, 4));
	for (int i = 0; i < 4; i++)
		tensor[13 + i] = (unsigned char)(crc >> 8 * i);
	size_t used = put_entry(table, "", 0, "\x08\1\x1a\2\x08\1", 6);
	used += put_entry(table + used, "w", 0, tensor, 17);
	tensor[1] = 19; /* two halves, unchecked */
	tensor[7] = 2;
	tensor[9] = 4;
	used += put_entry(table + used, "w2", 1, tensor, 17);
	used += put_end(table + used);
	handle[0] = 0;
	handle[1] = (unsigned char)(used - 5);
	size_t empty = used;
	used += put_end(table + used);
	size_t index = used;
	used += put_entry(table + used, "x", 0, handle, 2);
	used += put_end(table + used);
	unsigned char *footer = table + used;
	footer[0] = (unsigned char)empty;
	footer[1] = 8;
	footer[2] = (unsigned char)index;
	footer[3] = (unsigned char)(used - index - 5);
	memcpy(footer + 40, "\x57\xfb\x80\x8b\x24\x75\x47\xdb", 8);
	fuzz_add_seed(arguments, table, used + FOOTER_BYTES);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	add_table(*argv);
	return 0;
}

static void put_crc(unsigned char *bytes, size_t size, uint64_t offset, uint64_t length)
{
	if (offset > size || length > size - offset || size - offset - length < 5)
		return;
	uint32_t crc = crc32c_masked(crc32c(0, bytes + offset, length + 1));
	for (int i = 0; i < 4; i++)
		bytes[offset + length + 1 + (size_t)i] = (unsigned char)(crc >> (8 * i));
}

/* Corrects the checksum of the index block, and of each uncompressed data block that a simple reading of the index finds. */
static void put_checksums(unsigned char *bytes, size_t size)
{
	if (size < FOOTER_BYTES)
		return;
	uint64_t numbers[4];
	struct byte_range in = {bytes + size - FOOTER_BYTES, bytes + size - 8};
	for (int i = 0; i < 4; i++)
		if (!range_varint(&in, &numbers[i]))
			return;
	put_crc(bytes, size, numbers[2], numbers[3]);
	if (numbers[2] > size || numbers[3] > size - numbers[2])
		return;
	in = (struct byte_range){bytes + numbers[2], bytes + numbers[2] + numbers[3]};
	struct byte_range part;
	uint64_t offset, length;
	while (range_varint(&in, &numbers[0]) && range_varint(&in, &numbers[1]) && range_varint(&in, &numbers[2]) &&
	       range_bytes(&in, numbers[1], &part) && range_bytes(&in, numbers[2], &part))
		if (range_varint(&part, &offset) && range_varint(&part, &length))
			put_crc(bytes, size, offset, length);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	unsigned char *copy = (unsigned char *)fuzz_copy(bytes, count);
	put_checksums(copy, count);
	struct tf_bundle bundle;
	fuzz_file("fuzz.data-00000-of-00001", data, sizeof data);
	if (tf_bundle_open(&bundle, fuzz_file("fuzz.index", copy, count)) == OK) {
		for (int64_t i = 0; i < bundle.count; i++) {
			const struct stored_tensor *tensor = &bundle.tensors[i];
			float value;
			BUG_IF(tensor->count < 0 || tensor->part >= bundle.shard_count);
			if (stored_tensor_verify(tensor) == OK && tensor->count > 0)
				BUG_IF(stored_tensor_read(tensor, tensor->count - 1, 1, &value) != OK);
		}
		tf_bundle_close(&bundle);
	}
	free(copy);
	return 0;
}
