/* Records against bytes that TensorBoard's own protobuf classes wrote identically; files against a reader of the framing. */
#include "base/hash.h"
#include "formats/event_file.h"
#include "test.h"

#define WALL_TIME 1700000000.5

static void assert_hex(const char *expected, struct buffer *bytes)
{
	struct buffer hex = {0};
	for (size_t i = 0; i < bytes->size; i++)
		buffer_format(&hex, "%02x", (unsigned char)bytes->data[i]);
	assert_string_equal(buffer_string(&hex), expected);
	buffer_release(&hex);
	buffer_release(bytes);
}

static void test_records(void **state)
{
	struct buffer out = {0};
	event_encode_version(&out, WALL_TIME);
	assert_hex("1800000000000000a37f4b220900002040fc54d9411a0d627261696e2e4576656e743a322b353110", &out);
	event_encode_scalar(&out, WALL_TIME, 7, "loss", 1.5f);
	assert_hex("1a00000000000000129bd82d0900002040fc54d94110072a0d0a0b0a046c6f7373150000c03fed7b4304", &out);
	event_encode_text(&out, WALL_TIME, 0, "config", "seq_len 128");
	assert_hex("34000000000000005e33175c0900002040fc54d9412a290a270a06636f6e666967421108071200420b7365715f6c656e20"
		   "3132384a0a0a060a047465787420029e27d79b",
		   &out);
	event_encode_start(&out, WALL_TIME, 7);
	assert_hex("0f000000000000006d532b090900002040fc54d94110073a0208019beb06a7", &out);
}

/* Checks the sizes and checksums of all records up to the end; returns their number. */
static int count_records(const char *path)
{
	struct buffer bytes = {0};
	int count = 0;
	assert_ok(file_read(path, 1 << 20, &bytes));
	for (size_t at = 0; at < bytes.size; count++) {
		uint64_t size;
		uint32_t crc;
		memcpy(&size, bytes.data + at, 8);
		memcpy(&crc, bytes.data + at + 8, 4);
		assert_int_equal(crc, crc32c_masked(crc32c(0, &size, 8)));
		assert_true(at + 16 + size <= bytes.size);
		memcpy(&crc, bytes.data + at + 12 + size, 4);
		assert_int_equal(crc, crc32c_masked(crc32c(0, bytes.data + at + 12, size)));
		at += 16 + size;
	}
	buffer_release(&bytes);
	return count;
}

static void test_files_follow_each_other(void **state)
{
	struct name_list names = {0};
	/* A file written with a clock that was ahead. */
	assert_ok(file_write(test_path("events.out.tfevents.5000000000.host.1.0"), "", 0));
	for (int i = 0; i < 3; i++) {
		struct event_file *file;
		assert_ok(event_file_open(&file, test_folder, 10 * i));
		for (int k = 0; k <= i; k++)
			event_file_scalar(file, k, "loss", 0.5);
		assert_ok(event_file_flush(file));
		event_file_text(file, i, "note", "*closing* writes what is left");
		event_file_close(file);
	}
	assert_ok(folder_list(test_folder, &names));
	assert_int_equal(names.count, 5); /* and the list of own files, the first */
	for (int i = 0; i < 3; i++)
		assert_int_equal(count_records(test_path(names.names[i + 2])), 2 + i + 1 + 1);
	name_list_release(&names);
}

static void test_nothing_behind_a_torn_record(void **state)
{
	struct event_file *file;
	char folder[PATH_BYTES];
	struct name_list names = {0};
	snprintf(folder, sizeof folder, "%s/torn", test_folder);
	assert_ok(folder_make(folder));
	assert_ok(event_file_open(&file, folder, 1));
	assert_ok(file_fault_set("write:1:ENOSPC"));
	event_file_scalar(file, 1, "loss", 0.5);
	assert_error(ERR_RESOURCE, "cannot write", event_file_flush(file));
	assert_ok(file_fault_set(NULL));
	event_file_scalar(file, 2, "loss", 0.5);
	assert_ok(event_file_flush(file));
	event_file_close(file);
	assert_ok(folder_list(folder, &names));
	char path[PATH_BYTES];
	assert_ok(path_join(path, folder, names.names[1]));
	assert_int_equal(count_records(path), 2);
	name_list_release(&names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_records),
		cmocka_unit_test(test_files_follow_each_other),
		cmocka_unit_test(test_nothing_behind_a_torn_record),
	};
	return cmocka_run_group_tests(tests, test_folder_make, test_folder_drop);
}
