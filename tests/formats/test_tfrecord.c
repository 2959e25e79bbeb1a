/* TFRecord framing and tf.Example messages. */
#include "test.h"
#include <zlib.h>
#include "base/hash.h"
#include "formats/example.h"
#include "formats/tfrecord.h"

/* Without waiting for the disk: thousands of damaged copies are written. */
static void put_bytes(const char *path, const void *bytes, size_t size)
{
	FILE *file = fopen(path, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

static const char *const payloads[] = {"first", "", "a third record, a little longer"};

static void write_file(const char *path, bool gzip)
{
	struct tfrecord_writer *writer;
	assert_ok(tfrecord_writer_open(&writer, path, gzip));
	for (int i = 0; i < 3; i++) {
		unsigned char record[64];
		size_t size = strlen(payloads[i]);
		memcpy(record + TFRECORD_HEAD_BYTES, payloads[i], size);
		tfrecord_frame(record, size);
		assert_ok(tfrecord_writer_framed(writer, record, size + TFRECORD_FRAME_BYTES));
	}
	assert_ok(tfrecord_writer_commit(writer));
}

static void expect_payloads(const char *path)
{
	struct tfrecord_reader *reader;
	const unsigned char *payload;
	size_t size;
	assert_ok(tfrecord_open(&reader, path));
	for (int i = 0; i < 3; i++) {
		assert_ok(tfrecord_next(reader, &payload, &size));
		assert_non_null(payload);
		assert_int_equal(size, strlen(payloads[i]));
		assert_memory_equal(payload, payloads[i], size);
		assert_int_equal(tfrecord_record(reader), i);
	}
	assert_ok(tfrecord_next(reader, &payload, &size));
	assert_null(payload);
	tfrecord_close(reader);
}

/* Plain, gzip and zlib; the plain file has the bytes that the format prescribes. */
static void test_round_trip(void **state)
{
	struct buffer bytes = {0};
	write_file(test_path("plain"), false);
	expect_payloads(test_path("plain"));
	assert_ok(file_read(test_path("plain"), 1 << 20, &bytes));
	uint64_t length = 5;
	uint32_t length_crc = crc32c_masked(crc32c(0, &length, 8)), crc = crc32c_masked(crc32c(0, "first", 5));
	assert_memory_equal(bytes.data, &length, 8);
	assert_memory_equal(bytes.data + 8, &length_crc, 4);
	assert_memory_equal(bytes.data + 17, &crc, 4);
	write_file(test_path("gzip"), true);
	expect_payloads(test_path("gzip"));
	unsigned char packed[512];
	uLongf packed_size = sizeof packed;
	assert_int_equal(compress(packed, &packed_size, (unsigned char *)bytes.data, bytes.size), Z_OK);
	assert_ok(file_write(test_path("zlib"), packed, packed_size));
	expect_payloads(test_path("zlib"));
	/* A truncated compressed stream is an error, not an end. */
	assert_ok(file_write(test_path("zlib"), packed, packed_size - 6));
	struct tfrecord_reader *reader;
	const unsigned char *payload = (const unsigned char *)"";
	size_t size;
	enum status status = tfrecord_open(&reader, test_path("zlib"));
	while (status == OK && payload != NULL)
		status = tfrecord_next(reader, &payload, &size);
	assert_int_equal(status, ERR_DATA);
	tfrecord_close(reader);
	buffer_release(&bytes);
}

/* Every truncation and every changed byte is noticed; after a wrong payload the next record is read. */
static void test_damage(void **state)
{
	struct buffer bytes = {0};
	write_file(test_path("whole"), false);
	assert_ok(file_read(test_path("whole"), 1 << 20, &bytes));
	size_t ends[] = {21, 37};
	for (size_t cut = 1; cut < bytes.size; cut++) {
		struct tfrecord_reader *reader;
		const unsigned char *payload = (const unsigned char *)"";
		size_t size;
		put_bytes(test_path("cut"), bytes.data, cut);
		assert_ok(tfrecord_open(&reader, test_path("cut")));
		enum status status = OK;
		while (status == OK && payload != NULL)
			status = tfrecord_next(reader, &payload, &size);
		bool whole = cut == ends[0] || cut == ends[1];
		assert_int_equal(status, whole ? OK : ERR_DATA);
		if (!whole)
			assert_non_null(strstr(error_last()->message, "cut off"));
		/* The end stays the end. */
		assert_ok(tfrecord_next(reader, &payload, &size));
		assert_null(payload);
		tfrecord_close(reader);
	}
	for (size_t i = 0; i < bytes.size; i++) {
		struct tfrecord_reader *reader;
		const unsigned char *payload = (const unsigned char *)"";
		size_t size;
		int failures = 0, records = 0;
		bytes.data[i] ^= 4;
		put_bytes(test_path("changed"), bytes.data, bytes.size);
		bytes.data[i] ^= 4;
		assert_ok(tfrecord_open(&reader, test_path("changed")));
		while (payload != NULL) {
			if (tfrecord_next(reader, &payload, &size) != OK) {
				failures++;
				payload = (const unsigned char *)"";
			} else
				records += payload != NULL;
		}
		assert_int_equal(failures, 1);
		bool in_frame_head = i < 12 || (i >= 21 && i < 33) || (i >= 37 && i < 49);
		if (!in_frame_head)
			assert_int_equal(records, 2);
		tfrecord_close(reader);
	}
	buffer_release(&bytes);
}

static void test_lying_length(void **state)
{
	unsigned char record[12];
	uint64_t length = (uint64_t)1 << 40;
	struct tfrecord_reader *reader;
	const unsigned char *payload;
	size_t size;
	memcpy(record, &length, 8);
	uint32_t crc = crc32c_masked(crc32c(0, record, 8));
	memcpy(record + 8, &crc, 4);
	assert_ok(file_write(test_path("long"), record, sizeof record));
	assert_ok(tfrecord_open(&reader, test_path("long")));
	assert_error(ERR_DATA, "record 0 at byte 0: longer than 64 MiB", tfrecord_next(reader, &payload, &size));
	tfrecord_close(reader);
}

static void test_example(void **state)
{
	int32_t ids[] = {0, 1, 127, 128, 30521, INT32_MAX}, out[8];
	float weights[] = {1, 0.5f, 0}, floats[8];
	struct example_value values[] = {{"ids", ids, NULL, 6}, {"weights", NULL, weights, 3}, {"none", ids, NULL, 0}};
	unsigned char message[512];
	struct tf_example example;
	int64_t count;
	size_t size = example_encode(values, 3, message);
	assert_ok(example_parse(&example, message, size));
	assert_int_equal(example.count, 3);
	assert_ok(feature_integers(example_find(&example, "ids"), out, 8, &count));
	assert_int_equal(count, 6);
	assert_memory_equal(out, ids, sizeof ids);
	assert_ok(feature_count(example_find(&example, "ids"), &count));
	assert_int_equal(count, 6);
	assert_ok(feature_floats(example_find(&example, "weights"), floats, 8, &count));
	assert_int_equal(count, 3);
	assert_memory_equal(floats, weights, sizeof weights);
	assert_ok(feature_integers(example_find(&example, "none"), out, 8, &count));
	assert_int_equal(count, 0);
	assert_null(example_find(&example, "idss"));
	assert_error(ERR_DATA, "more than 5", feature_integers(example_find(&example, "ids"), out, 5, &count));
	assert_error(ERR_DATA, "holds no floats", feature_floats(example_find(&example, "ids"), floats, 8, &count));
	for (size_t cut = 1; cut < size; cut++) /* each cut lies within the single outer field */
		assert_error(ERR_DATA, "not a well-formed", example_parse(&example, message, cut));
}

/* Unpacked integers, a negative one, and an unknown field. The bytes follow the definition of protocol buffers. */
static void test_foreign_message(void **state)
{
	static const unsigned char message[] = {
		0x0a, 0x1f, 0x78, 0x05,                         /* features; unknown field 15 = 5 */
		0x0a, 0x0b, 0x0a, 0x01, 'a',  0x12, 0x06,       /* entry "a" */
		0x1a, 0x04, 0x08, 0x03, 0x08, 0x07,             /* integers 3, 7, unpacked */
		0x0a, 0x0e, 0x12, 0x09, 0x1a, 0x07, 0x0a, 0x05, /* entry, value first */
		0xff, 0xff, 0xff, 0xff, 0x1f, 0x0a, 0x01, 'b',  /* 2^33 - 1 */
	};
	struct tf_example example;
	int32_t out[4];
	int64_t count;
	assert_ok(example_parse(&example, message, sizeof message));
	assert_ok(feature_integers(example_find(&example, "a"), out, 4, &count));
	assert_int_equal(count, 2);
	assert_int_equal(out[0], 3);
	assert_int_equal(out[1], 7);
	assert_error(ERR_DATA, "beyond 32 bits", feature_integers(example_find(&example, "b"), out, 4, &count));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip), cmocka_unit_test(test_damage),          cmocka_unit_test(test_lying_length),
		cmocka_unit_test(test_example),    cmocka_unit_test(test_foreign_message),
	};
	return cmocka_run_group_tests(tests, test_folder_make, test_folder_drop);
}
