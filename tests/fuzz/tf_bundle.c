/* Indices of TensorFlow checkpoints, and Snappy blocks (inputs that begin with 'S'). The checksums of blocks
 * are put right first, so that what lies behind them is reached. */
#include "fuzz.h"
#include "base/hash.h"
#include "formats/little_endian.h"
#include "formats/snappy.h"
#include "formats/tf_bundle.h"
#include "formats/varint.h"

#define FOOTER_BYTES 48

/* A table of a header and one tensor: a data block, an index block, a footer. */
static const struct fuzz_seed seeds[] = {
        FUZZ_SEED("\0\0\6\x08\1\x1a\2\x08\1\0\1\x11w\x08\1\x12\4\x12\2\x08\1\x28\4\x35\0\0\0\0\x20\0\0\0\0\0"
                  "\1\0\0\0\0"
                  "\0\0\0\0\0\1\2z\0\x24\0\0\0\0\1\0\0\0\0\0\0\0\0"
                  "\x29\0\x29\x0f\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
                  "\x57\xfb\x80\x8b\x24\x75\x47\xdb"),
        FUZZ_SEED("S\x0c\x2c"
                  "hello world!"),
        FUZZ_SEED("S\x10\x04"
                  "ab\x35\2"),
        FUZZ_SEED("S\x40\0a\xfe\1\0"),
};

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	fuzz_write_seeds(*argv, seeds, sizeof seeds / sizeof *seeds);
	fuzz_seed_file(*argv, "tests/golden/bert_tiny.ckpt.index");
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

/* The index block's checksum, and that of each raw data block that a plain reading of the index finds. */
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
	while (range_varint(&in, &numbers[0]) && range_varint(&in, &numbers[1]) &&
	       range_varint(&in, &numbers[2]) && range_bytes(&in, numbers[1], &part) &&
	       range_bytes(&in, numbers[2], &part))
		if (range_varint(&part, &offset) && range_varint(&part, &length))
			put_crc(bytes, size, offset, length);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	unsigned char *copy = (unsigned char *)fuzz_copy(bytes, count);
	if (count > 0 && bytes[0] == 'S') {
		size_t size;
		if (snappy_size(copy + 1, count - 1, 1 << 16, &size)) {
			unsigned char *out = malloc(size ? size : 1);
			BUG_IF(!out);
			snappy_unpack(copy + 1, count - 1, out, size);
			free(out);
		}
		free(copy);
		return 0;
	}
	put_checksums(copy, count);
	struct tf_bundle bundle;
	static const uint8_t data[64] = {0, 0, 128, 63};
	fuzz_file("fuzz.data-00000-of-00001", data, sizeof data);
	if (tf_bundle_open(&bundle, fuzz_file("fuzz.index", copy, count)) == OK) {
		for (int64_t i = 0; i < bundle.count; i++) {
			const struct stored_tensor *tensor = &bundle.tensors[i];
			float value;
			BUG_IF(tensor->count < 0 || tensor->part >= bundle.shard_count);
			if (stored_tensor_verify(tensor) == OK && dtype_is_floating(tensor->dtype) && tensor->count > 0)
				BUG_IF(stored_tensor_read(tensor, tensor->count - 1, 1, &value) != OK);
		}
		tf_bundle_close(&bundle);
	}
	free(copy);
	return 0;
}
