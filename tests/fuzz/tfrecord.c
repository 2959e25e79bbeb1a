/* TFRecord files of training data: as they come (first byte even), or the bytes that follow, split at each 0xFF into
 * payloads with valid frames, so that the code behind them is reached. With the second bit, bad records are skipped. */
#include "data/pretraining/instance_files.h"
#include "formats/tfrecord.h"
#include "fuzz.h"

static const struct fuzz_seed seeds[] = {
	FUZZ_SEED("\x00\x05\x00\x00\x00\x00\x00\x00\x00\xea\xb2\x04\x3e"
		  "abcde\x00\x00\x00\x00"),
	FUZZ_SEED("\x01\x0a\x14\x0a\x12\x0a\x09input_ids\x12\x05\x1a\x03\x0a\x01\x05\xff\x0a\x02\x0a\x00"),
	FUZZ_SEED("\x00\x78\x9c\x03\x00\x00\x00\x00\x01"),
};

/* Two instances as we write them: a whole file, and their payloads. */
static void add_file(char **arguments, enum instance_format format, bool labeled)
{
	struct instance_writer_settings settings = {format, 8, 2, labeled};
	struct instance_encoder encoder;
	struct instance_writer *writer;
	struct instance instance;
	unsigned char file[2048], payloads[2048];
	size_t used = 1;
	const char *path = fuzz_file("seed", NULL, 0);
	BUG_IF(instance_create(&instance, 8, 2) != OK || instance_encoder_create(&encoder, &settings) != OK ||
	       instance_writer_open(&writer, path, &settings) != OK);
	payloads[0] = 1;
	for (int k = 0; k < 2; k++) {
		instance.length = 6 + k;
		for (int32_t i = 0; i < instance.length; i++) {
			instance.ids[i] = 10 + i;
			instance.types[i] = i > 3;
		}
		instance.prediction_count = 1 + k;
		instance.prediction_positions[0] = 1;
		instance.prediction_positions[1] = 4;
		instance.prediction_labels[0] = 20;
		instance.prediction_weights[0] = instance.prediction_weights[1] = 1;
		instance.next_label = labeled ? k : -1;
		instance_encode(&encoder, &settings, &instance);
		BUG_IF(instance_writer_add(writer, &instance, &encoder) != OK);
		memcpy(payloads + used, encoder.record + TFRECORD_HEAD_BYTES, encoder.size - TFRECORD_FRAME_BYTES);
		used += encoder.size - TFRECORD_FRAME_BYTES;
		payloads[used++] = 0xff;
	}
	BUG_IF(instance_writer_commit(writer) != OK);
	fuzz_add_seed(arguments, payloads, used - 1);
	FILE *written = fopen(path, "rb");
	BUG_IF(!written);
	file[0] = 0;
	size_t size = fread(file + 1, 1, sizeof file - 1, written);
	fclose(written);
	fuzz_add_seed(arguments, file, size + 1);
	instance_encoder_release(&encoder);
	instance_release(&instance);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	fuzz_write_seeds(*argv, seeds, sizeof seeds / sizeof *seeds);
	add_file(*argv, INSTANCE_TFRECORD, true);
	add_file(*argv, INSTANCE_TFRECORD, false);
	add_file(*argv, INSTANCE_TFRECORD_GZIP, true);
	return 0;
}

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
	struct instance_demands demands = {.vocab_size = 100, .skip_bad = bytes[0] & 2};
	if (record_reader_open(&reader, path, &demands) == OK) {
		do {
			if (record_reader_next(reader, &instance) != OK)
				break;
		} while (instance != NULL);
		record_reader_close(reader);
	}
	free(framed);
	return 0;
}
