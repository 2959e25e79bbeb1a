/* TFRecord files of training data: as they come (first byte even), or the bytes behind it cut at each 0xFF into payloads
 * with right frames, so that what lies within is reached. */
#include "data/instance_files.h"
#include "formats/tfrecord.h"
#include "fuzz.h"

FUZZ_SEEDS(FUZZ_SEED("\x00\x05\x00\x00\x00\x00\x00\x00\x00\xea\xb2\x04\x3e"
		     "abcde\x00\x00\x00\x00"),
	   FUZZ_SEED("\x01\x0a\x14\x0a\x12\x0a\x09input_ids\x12\x05\x1a\x03\x0a\x01\x05\xff\x0a\x02\x0a\x00"),
	   FUZZ_SEED("\x00\x78\x9c\x03\x00\x00\x00\x00\x01"))

static size_t frame(const uint8_t *bytes, size_t count, unsigned char *out)
{
	size_t size = 0;
	while (count > 0) {
		const uint8_t *end = memchr(bytes, 0xff, count);
		size_t part = end != NULL ? (size_t)(end - bytes) : count;
		memcpy(out + size + TFRECORD_HEAD_BYTES, bytes, part);
		tfrecord_frame(out + size, part);
		size += part + TFRECORD_FRAME_BYTES;
		bytes += part + (end != NULL);
		count -= part + (end != NULL);
	}
	return size;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	struct record_reader *reader;
	const struct instance *instance;
	if (count == 0)
		return 0;
	unsigned char *framed = malloc(17 * count + 64);
	BUG_IF(framed == NULL);
	const char *path = NULL;
	if (bytes[0] % 2 == 0)
		path = fuzz_file("tfrecord", bytes + 1, count - 1);
	else
		path = fuzz_file("tfrecord", framed, frame(bytes + 1, count - 1, framed));
	for (int skip = 0; skip < 2; skip++) {
		struct instance_demands demands = {.vocab_size = 100, .skip_bad = skip};
		if (record_reader_open(&reader, path, &demands) != OK)
			continue;
		do {
			if (record_reader_next(reader, &instance) != OK)
				break;
		} while (instance != NULL);
		record_reader_close(reader);
	}
	free(framed);
	return 0;
}
