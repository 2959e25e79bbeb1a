/* Files of instances: our own form, TFRecord and NVIDIA's HDF5, whole and damaged. */
#include "data/pretraining/instances.h"
#include "test.h"
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/log.h"
#include "base/rng.h"
#include "data/pretraining/instance_files.h"
#include "formats/example.h"
#include "formats/hdf5_rows.h"
#include "formats/tfrecord.h"

enum { LENGTH = 12, PREDICTIONS = 3, VOCAB = 1000, COUNT = 40 };

/* Without waiting for the disk: thousands of damaged copies are written. */
static void put_bytes(const char *path, const void *bytes, size_t size)
{
	FILE *file = fopen(path, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

/* The instance for `number`; every third one has a weight other than 1 if weights are wanted. */
static void fill(int64_t number, bool weighted, struct instance *out)
{
	struct rng rng = rng_start(3, RNG_TEST, (uint64_t)number);
	out->length = 4 + (int32_t)rng_below(&rng, LENGTH - 3);
	int32_t first_b = 1 + (int32_t)rng_below(&rng, (uint32_t)out->length);
	for (int32_t i = 0; i < out->length; i++) {
		out->ids[i] = (int32_t)rng_below(&rng, VOCAB);
		out->types[i] = i >= first_b;
	}
	out->prediction_count = (int32_t)rng_below(&rng, PREDICTIONS + 1);
	for (int32_t i = 0; i < out->prediction_count; i++) {
		out->prediction_positions[i] = i + 1;
		out->prediction_labels[i] = (int32_t)rng_below(&rng, VOCAB);
		out->prediction_weights[i] = weighted && number % 3 == 0 ? 0.25f : 1;
	}
	out->next_label = (int32_t)rng_below(&rng, 2);
}

static void expect_equal(const struct instance *a, const struct instance *b)
{
	assert_int_equal(a->length, b->length);
	assert_int_equal(a->prediction_count, b->prediction_count);
	assert_int_equal(a->next_label, b->next_label);
	assert_memory_equal(a->ids, b->ids, (size_t)a->length * 4);
	assert_memory_equal(a->types, b->types, (size_t)a->length * 4);
	assert_memory_equal(a->prediction_positions, b->prediction_positions, (size_t)a->prediction_count * 4);
	assert_memory_equal(a->prediction_labels, b->prediction_labels, (size_t)a->prediction_count * 4);
	assert_memory_equal(a->prediction_weights, b->prediction_weights, (size_t)a->prediction_count * 4);
}

static void write_file(const char *path, enum instance_format format, bool weighted)
{
	struct instance_writer_settings settings = {
		.format = format, .max_seq_length = LENGTH, .max_predictions = PREDICTIONS, .labeled = true};
	struct instance_writer *writer;
	struct instance_encoder encoder;
	struct instance instance;
	assert_ok(instance_create(&instance, LENGTH, PREDICTIONS));
	assert_ok(instance_encoder_create(&encoder, &settings));
	assert_ok(instance_writer_open(&writer, path, &settings));
	for (int64_t i = 0; i < COUNT; i++) {
		fill(i, weighted, &instance);
		instance_encode(&encoder, &settings, &instance);
		assert_ok(instance_writer_add(writer, &instance, &encoder));
	}
	assert_ok(instance_writer_commit(writer));
	instance_encoder_release(&encoder);
	instance_release(&instance);
}

static void expect_static(const char *path, bool weighted)
{
	struct static_file file;
	struct instance expected, found;
	assert_ok(static_file_open(&file, path));
	assert_int_equal(file.summary.count, COUNT);
	assert_ok(instance_create(&expected, LENGTH, PREDICTIONS));
	assert_ok(instance_create(&found, LENGTH, PREDICTIONS));
	for (int64_t i = 0; i < COUNT; i++) {
		int32_t length, predictions;
		fill(i, weighted, &expected);
		assert_ok(static_file_read(&file, i, VOCAB, &found));
		expect_equal(&found, &expected);
		static_file_sizes(&file, i, &length, &predictions);
		assert_int_equal(length, expected.length);
		assert_int_equal(predictions, expected.prediction_count);
	}
	instance_release(&expected);
	instance_release(&found);
	static_file_close(&file);
	assert_ok(static_file_verify(path));
}

static void test_formats(void **state)
{
	static const enum instance_format formats[] = {INSTANCE_TFRECORD, INSTANCE_TFRECORD_GZIP, INSTANCE_STATIC, INSTANCE_HDF5};
	for (int i = 0; i < (hdf5_require() == OK ? 4 : 3); i++) {
		const char *path = test_path("file"), *own = test_path("own");
		bool weighted = formats[i] != INSTANCE_HDF5; /* the format has no weights */
		enum instance_format found;
		struct instance_counts counts;
		write_file(path, formats[i], weighted);
		assert_ok(instance_file_format(path, &found));
		assert_int_equal(found, formats[i] == INSTANCE_TFRECORD_GZIP ? INSTANCE_TFRECORD : formats[i]);
		if (formats[i] == INSTANCE_STATIC) {
			expect_static(path, weighted);
			continue;
		}
		assert_ok(instance_file_convert(path, &(struct instance_demands){.vocab_size = VOCAB}, own, &counts));
		assert_int_equal(counts.instances, COUNT);
		assert_int_equal(counts.bad, 0);
		expect_static(own, weighted);
	}
}

/* Long instances, large ids and segments in any order. */
static void test_wide(void **state)
{
	static const int32_t lengths[] = {70000, 5, 1};
	struct static_writer *writer;
	struct static_file file;
	struct instance instance, found;
	assert_ok(instance_create(&instance, 70000, 2));
	assert_ok(instance_create(&found, 70000, 2));
	assert_ok(static_writer_open(&writer, test_path("wide")));
	for (int k = 0; k < 3; k++) {
		instance.length = lengths[k];
		for (int32_t i = 0; i < instance.length; i++) {
			instance.ids[i] = k == 1 ? 100000 + i : i % 30000;
			instance.types[i] = i % 2;
		}
		instance.prediction_count = k == 2 ? 0 : 2;
		for (int32_t i = 0; i < 2; i++) {
			instance.prediction_positions[i] = instance.length - 2 + i;
			instance.prediction_labels[i] = 7 + i;
			instance.prediction_weights[i] = 0.5f;
		}
		instance.next_label = k - 1;
		assert_ok(static_writer_add(writer, &instance));
	}
	assert_ok(static_writer_commit(writer, 77));
	assert_ok(static_file_open(&file, test_path("wide")));
	assert_int_equal(file.summary.source_fingerprint, 77);
	assert_int_equal(file.summary.labeled_count, 2);
	for (int k = 0; k < 3; k++) {
		assert_ok(static_file_read(&file, k, INT32_MAX, &found));
		assert_int_equal(found.length, lengths[k]);
		assert_int_equal(found.next_label, k - 1);
		for (int32_t i = 0; i < found.length; i++) {
			assert_int_equal(found.ids[i], k == 1 ? 100000 + i : i % 30000);
			assert_int_equal(found.types[i], i % 2);
		}
	}
	assert_error(ERR_DATA, "instance 1", static_file_read(&file, 1, 100004, &found));
	static_file_close(&file);
	instance_release(&instance);
	instance_release(&found);
}

/* Whichever byte of our own format is changed, or wherever it is cut: verify reports it, and reading does no harm. */
static void test_damaged_static(void **state)
{
	struct buffer bytes = {0};
	struct instance instance;
	write_file(test_path("good"), INSTANCE_STATIC, true);
	assert_ok(file_read(test_path("good"), 1 << 20, &bytes));
	assert_ok(instance_create(&instance, STATIC_LENGTH_MAX, STATIC_LENGTH_MAX));
	for (size_t i = 0; i < bytes.size; i++) {
		struct static_file file;
		bytes.data[i] ^= (char)(1 << i % 8);
		put_bytes(test_path("bad"), bytes.data, bytes.size);
		bytes.data[i] ^= (char)(1 << i % 8);
		if (static_file_open(&file, test_path("bad")) == OK) {
			for (int64_t k = 0; k < file.summary.count; k++)
				(void)!static_file_read(&file, k, VOCAB, &instance);
			static_file_close(&file);
		}
		/* The last bytes carry no additional information: source, version and magic are either checked or free. */
		if (i < bytes.size - 72)
			assert_int_equal(static_file_verify(test_path("bad")), ERR_DATA);
	}
	for (size_t cut = 0; cut < bytes.size; cut += 7) {
		put_bytes(test_path("bad"), bytes.data, cut);
		assert_int_equal(static_file_verify(test_path("bad")), ERR_DATA);
		assert_false(static_file_is(test_path("bad")));
	}
	instance_release(&instance);
	buffer_release(&bytes);
}

/* ---- Impossible rows ---- */

struct row {
	int32_t ids[LENGTH], mask[LENGTH], segments[LENGTH], positions[PREDICTIONS], labels[PREDICTIONS], next;
	float weights[PREDICTIONS];
};

static struct row good_row(void)
{
	return (struct row){.ids = {1, 5, 6, 7, 2},
			    .mask = {1, 1, 1, 1, 1},
			    .segments = {0, 0, 0, 1, 1},
			    .positions = {1, 3, 0},
			    .labels = {8, 9, 0},
			    .weights = {1, 0.5f, 0},
			    .next = 1};
}

static enum status take(const struct row *row, bool weights, struct instance *out)
{
	struct padded_row padded = {.length = LENGTH,
				    .predictions = PREDICTIONS,
				    .ids = row->ids,
				    .mask = row->mask,
				    .segments = row->segments,
				    .positions = row->positions,
				    .labels = row->labels,
				    .weights = weights ? row->weights : NULL,
				    .next_label = row->next};
	return instance_from_row(&padded, &(struct instance_demands){.vocab_size = VOCAB, .max_length = 6}, out);
}

static void test_rows(void **state)
{
	struct instance out;
	struct row row = good_row();
	assert_ok(instance_create(&out, LENGTH, PREDICTIONS));
	for (int weights = 0; weights < 2; weights++) {
		assert_ok(take(&row, weights, &out));
		assert_int_equal(out.length, 5);
		assert_int_equal(out.prediction_count, 2);
		assert_int_equal(out.prediction_positions[1], 3);
		assert_true(out.prediction_weights[1] == (weights ? 0.5f : 1.0f));
	}
	/* Out of order, with padding in between: sorted. */
	row = good_row();
	row.positions[0] = 3;
	row.positions[1] = 0;
	row.weights[1] = 0;
	row.positions[2] = 1;
	row.weights[2] = 1;
	row.labels[2] = 4;
	assert_ok(take(&row, true, &out));
	assert_int_equal(out.prediction_count, 2);
	assert_int_equal(out.prediction_positions[0], 1);
	assert_int_equal(out.prediction_labels[0], 4);
	assert_int_equal(out.prediction_labels[1], 8);
#define REFUSED(part, change)                                                                                                    \
	do {                                                                                                                     \
		row = good_row();                                                                                                \
		change;                                                                                                          \
		assert_error(ERR_DATA, part, take(&row, true, &out));                                                            \
	} while (0)
	REFUSED("input_ids[2] is 1000", row.ids[2] = VOCAB);
	REFUSED("input_ids[2] is -1", row.ids[2] = -1);
	REFUSED("ones followed by zeros", row.mask[8] = 1);
	REFUSED("nothing but padding", memset(row.mask, 0, sizeof row.mask));
	REFUSED("segment_ids[1] is 2", row.segments[1] = 2);
	REFUSED("masked_lm_positions[1] is 5", row.positions[1] = 5);
	REFUSED("masked twice", row.positions[1] = 1);
	REFUSED("masked_lm_ids[0] is 1000", row.labels[0] = VOCAB);
	REFUSED("masked_lm_weights[0]", row.weights[0] = -1);
	REFUSED("next_sentence_labels is 2", row.next = 2);
	REFUSED("the model has 6 positions", for (int i = 0; i < 7; i++) row.mask[i] = 1);
	instance_release(&out);
}

/* ---- Impossible records ---- */

static void add_payload(struct tfrecord_writer *writer, const void *payload, size_t size)
{
	unsigned char record[1024 + TFRECORD_FRAME_BYTES];
	memcpy(record + TFRECORD_HEAD_BYTES, payload, size);
	tfrecord_frame(record, size);
	assert_ok(tfrecord_writer_framed(writer, record, size + TFRECORD_FRAME_BYTES));
}

static void add_record(struct tfrecord_writer *writer, const struct row *row, int64_t length, const char *renamed, bool labeled)
{
	struct example_value values[] = {{renamed, row->ids, NULL, length},
					 {"input_mask", row->mask, NULL, LENGTH},
					 {"segment_ids", row->segments, NULL, LENGTH},
					 {"masked_lm_positions", row->positions, NULL, PREDICTIONS},
					 {"masked_lm_ids", row->labels, NULL, PREDICTIONS},
					 {"masked_lm_weights", NULL, row->weights, PREDICTIONS},
					 {"next_sentence_labels", &row->next, NULL, 1}};
	unsigned char message[1024];
	add_payload(writer, message, example_encode(values, labeled ? 7 : 6, message));
}

static void test_records(void **state)
{
	struct tfrecord_writer *writer;
	struct instance_counts counts;
	struct static_file file;
	struct row row = good_row(), bad = good_row();
	struct instance_demands demands = {.vocab_size = VOCAB};
	bad.ids[3] = 5000;
	assert_ok(tfrecord_writer_open(&writer, test_path("records"), false));
	add_record(writer, &row, LENGTH, "input_ids", true);
	add_record(writer, &row, LENGTH, "input_ids", false);
	add_record(writer, &bad, LENGTH, "input_ids", true);
	add_record(writer, &row, LENGTH - 1, "input_ids", true);
	add_record(writer, &row, LENGTH, "ids", true);
	add_payload(writer, "rubbish", 7);
	add_record(writer, &row, LENGTH, "input_ids", true);
	assert_ok(tfrecord_writer_commit(writer));
	assert_error(ERR_DATA, "record 2 at byte",
		     instance_file_convert(test_path("records"), &demands, test_path("none"), &counts));
	assert_non_null(strstr(error_last()->message, "input_ids[3] is 5000, but the vocabulary has 1000 entries"));
	assert_non_null(strstr(error_last()->hint, "on_bad_record"));
	assert_false(file_exists(test_path("none")));
	demands.skip_bad = true;
	assert_ok(instance_file_convert(test_path("records"), &demands, test_path("own"), &counts));
	assert_int_equal(counts.instances, 3);
	assert_int_equal(counts.bad, 4);
	assert_ok(static_file_open(&file, test_path("own")));
	assert_int_equal(file.summary.labeled_count, 2); /* one record has no label */
	static_file_close(&file);
	/* For a file that is not training data, the message says what it is. */
	assert_ok(tfrecord_writer_open(&writer, test_path("other"), false));
	int32_t label = 1;
	struct example_value values[] = {{"label_ids", &label, NULL, 1}};
	unsigned char message[64];
	add_payload(writer, message, example_encode(values, 1, message));
	assert_ok(tfrecord_writer_commit(writer));
	demands.skip_bad = false;
	assert_error(ERR_DATA, "no feature 'input_ids'; it has: label_ids",
		     instance_file_convert(test_path("other"), &demands, test_path("own"), &counts));
}

/* A damaged HDF5 file either is an error or gives some data; it does no harm. */
static void test_damaged_hdf5(void **state)
{
	struct buffer bytes = {0};
	struct instance_counts counts;
	if (hdf5_require() != OK)
		skip();
	write_file(test_path("good.hdf5"), INSTANCE_HDF5, false);
	assert_ok(file_read(test_path("good.hdf5"), 1 << 20, &bytes));
	int refused = 0;
	for (int i = 0; i < 60; i++) {
		struct rng rng = rng_start(9, RNG_TEST, (uint64_t)i);
		size_t size = i % 3 == 0 ? rng_below(&rng, (uint32_t)bytes.size) : bytes.size;
		char *copy = malloc(bytes.size);
		assert_non_null(copy);
		memcpy(copy, bytes.data, bytes.size);
		for (int k = 0; k < 8 && i % 3 != 0; k++)
			copy[8 + rng_below(&rng, (uint32_t)(i % 3 == 1 ? bytes.size - 8 : 2000))] ^=
				(char)(1 + rng_below(&rng, 255));
		put_bytes(test_path("bad.hdf5"), copy, size);
		free(copy);
		enum status status = instance_file_convert(test_path("bad.hdf5"), &(struct instance_demands){.vocab_size = VOCAB},
							   test_path("own"), &counts);
		assert_true(status == OK || status == ERR_DATA);
		refused += status == ERR_DATA;
	}
	assert_true(refused > 20);
	struct name_list names = {0};
	assert_ok(folder_list(test_folder, &names));
	for (int64_t i = 0; i < names.count; i++)
		assert_null(strstr(names.names[i], ".tmp-"));
	name_list_release(&names);
	buffer_release(&bytes);
	write_file(test_path("good.hdf5"), INSTANCE_HDF5, false);
	assert_error(ERR_DATA, "row 0: input_ids[",
		     instance_file_convert(test_path("good.hdf5"), &(struct instance_demands){.vocab_size = 2}, test_path("own"),
					   &counts));
	assert_ok(instance_file_convert(test_path("good.hdf5"), &(struct instance_demands){.vocab_size = 900, .skip_bad = true},
					test_path("own"), &counts));
	assert_int_equal(counts.instances + counts.bad, COUNT);
	assert_true(counts.bad > 0);
}

/* A header that claims more rows than were ever written: the library would invent them until the disk is full. */
static void test_hdf5_of_nothing(void **state)
{
	struct buffer bytes = {0};
	struct instance_counts counts;
	if (hdf5_require() != OK)
		skip();
	write_file(test_path("good.hdf5"), INSTANCE_HDF5, false);
	assert_ok(file_read(test_path("good.hdf5"), 1 << 20, &bytes));
	/* The sizes of a dataset, as 64-bit numbers: first its rows, then its maximum, which is unlimited. */
	const int64_t rows = COUNT, more = (int64_t)1 << 36;
	int patched = 0;
	for (size_t at = 0; at + 24 <= bytes.size; at++) {
		int64_t numbers[3];
		memcpy(numbers, bytes.data + at, sizeof numbers);
		if (numbers[0] == rows && (numbers[1] == -1 || numbers[2] == -1)) {
			memcpy(bytes.data + at, &more, sizeof more);
			patched++;
		}
	}
	assert_int_equal(patched, 6);
	put_bytes(test_path("bad.hdf5"), bytes.data, bytes.size);
	buffer_release(&bytes);
	assert_error(ERR_DATA, "most were never written",
		     instance_file_convert(test_path("bad.hdf5"), &(struct instance_demands){.vocab_size = VOCAB},
					   test_path("own"), &counts));
}

static const char *busy; /* gets another time stamp whenever a file is opened for writing */
static int (*open_file)(const char *path, int flags, mode_t mode);

static int open_and_touch(const char *path, int flags, mode_t mode)
{
	static long second;
	const struct timespec times[2] = {{++second, 0}, {second, 0}};
	assert_int_equal(utimensat(AT_FDCWD, busy, times, 0), 0);
	return open_file(path, flags, mode);
}

/* Nothing is left of a file that is written to while it is being converted: after the input, the output is opened. */
static void test_changed_while_read(void **state)
{
	open_file = file_operations.open;
	for (int i = 0; i < (hdf5_require() == OK ? 2 : 1); i++) {
		struct instance_counts counts;
		char path[PATH_BYTES];
		snprintf(path, sizeof path, "%s", test_path(i == 0 ? "busy.tfrecord" : "busy.hdf5"));
		write_file(path, i == 0 ? INSTANCE_TFRECORD : INSTANCE_HDF5, false);
		struct instance_demands demands = {.vocab_size = VOCAB};
		assert_ok(instance_file_convert(path, &demands, test_path("quiet"), &counts));
		busy = path;
		file_operations.open = open_and_touch;
		enum status status = instance_file_convert(path, &demands, test_path("busy"), &counts);
		file_operations.open = open_file;
		assert_error(ERR_STATE, "while it was read", status);
		assert_false(file_exists(test_path("busy")));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_formats),         cmocka_unit_test(test_wide),
		cmocka_unit_test(test_damaged_static),  cmocka_unit_test(test_rows),
		cmocka_unit_test(test_records),         cmocka_unit_test(test_damaged_hdf5),
		cmocka_unit_test(test_hdf5_of_nothing), cmocka_unit_test(test_changed_while_read),
	};
	log_level = LOG_QUIET;
	return cmocka_run_group_tests(tests, test_folder_make, test_folder_drop);
}
