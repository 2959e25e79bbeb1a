/* Growing byte strings: contents, room, formats, and lack of memory. */
#include "test.h"
#include "base/buffer.h"

static void empty_is_a_string(void **state)
{
	struct buffer buffer = {0};
	assert_string_equal(buffer_string(&buffer), "");
	assert_ok(buffer_status(&buffer));
	buffer_append(&buffer, NULL, 0);
	assert_int_equal(buffer.size, 0);
	buffer_clear(&buffer);
	buffer_release(&buffer);
	buffer_release(&buffer);
}

static void appends_grow(void **state)
{
	struct buffer buffer = {0};
	for (int i = 0; i < 10000; i++) {
		buffer_char(&buffer, (char)('a' + i % 26));
		assert_int_equal(buffer.data[buffer.size], '\0');
	}
	assert_int_equal(buffer.size, 10000);
	for (int i = 0; i < 10000; i++)
		assert_int_equal(buffer.data[i], 'a' + i % 26);
	size_t capacity = buffer.capacity;
	buffer_clear(&buffer);
	assert_int_equal(buffer.capacity, capacity);
	buffer_append(&buffer, "a\0b", 3);
	buffer_text(&buffer, "c");
	assert_memory_equal(buffer.data, "a\0bc", 5);
	buffer_release(&buffer);
}

/* Room that has not been written to yet, in memory that held something else before. */
static void test_unused_room(void **state)
{
	for (size_t size = 128; size < 4000; size *= 2) {
		volatile char *before = malloc(size); /* without volatile, the compiler would drop these stores */
		assert_non_null(before);
		for (size_t i = 0; i < size; i++)
			before[i] = 'x';
		free((void *)before);
		struct buffer buffer = {0};
		assert_non_null(buffer_room(&buffer, size - 1));
		assert_string_equal(buffer_string(&buffer), "");
		buffer_release(&buffer);
	}
}

static void room_is_written_in_place(void **state)
{
	struct buffer buffer = {0};
	buffer_text(&buffer, "ab");
	memcpy(buffer_room(&buffer, 300), "cde", 3);
	buffer_advance(&buffer, 3);
	assert_string_equal(buffer_string(&buffer), "abcde");
	memset(buffer_room(&buffer, 300), 'x', 300);
	buffer_advance(&buffer, 300);
	assert_int_equal(buffer.size, 305);
	assert_int_equal(buffer.data[305], '\0');
	assert_null(buffer_room(&buffer, SIZE_MAX - 10));
	assert_error(ERR_RESOURCE, "memory", buffer_status(&buffer));
	buffer_release(&buffer);
}

static void formats_of_any_length(void **state)
{
	struct buffer buffer = {0};
	buffer_format(&buffer, "%d-%s", 5, "x");
	assert_string_equal(buffer_string(&buffer), "5-x");
	buffer_format(&buffer, "%*d", 1000, 7);
	assert_int_equal(buffer.size, 1003);
	assert_int_equal(buffer.data[1002], '7');
	buffer_format(&buffer, "%s", "");
	assert_int_equal(buffer.size, 1003);
	buffer_release(&buffer);
}

/* Like repr() of CPython 3.11. */
static void numbers_as_python_writes_them(void **state)
{
	static const struct {
		double value;
		const char *text;
	} rows[] = {
		{0, "0.0"},
		{-0.0, "-0.0"},
		{1e16, "1e+16"},
		{-123456789012345680, "-1.2345678901234568e+17"},
		{9999999999999998, "9999999999999998.0"},
		{1000000, "1000000.0"},
		{0.0001, "0.0001"},
		{0.00001234, "1.234e-05"},
		{5e-324, "5e-324"},
		{-8.361099999999999, "-8.361099999999999"},
		{100.5, "100.5"},
	};
	struct buffer buffer = {0};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		buffer_clear(&buffer);
		buffer_double(&buffer, rows[i].value);
		assert_string_equal(buffer_string(&buffer), rows[i].text);
	}
	buffer_release(&buffer);
}

static void lack_of_memory_is_remembered(void **state)
{
	struct buffer buffer = {0};
	buffer_text(&buffer, "kept");
	buffer_append(&buffer, "x", SIZE_MAX - 10);
	assert_true(buffer.failed);
	buffer_text(&buffer, "more");
	assert_string_equal(buffer_string(&buffer), "kept");
	assert_error(ERR_RESOURCE, "memory", buffer_status(&buffer));
	buffer_clear(&buffer);
	assert_ok(buffer_status(&buffer));
	buffer_release(&buffer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unused_room),
		cmocka_unit_test(empty_is_a_string),
		cmocka_unit_test(appends_grow),
		cmocka_unit_test(room_is_written_in_place),
		cmocka_unit_test(formats_of_any_length),
		cmocka_unit_test(numbers_as_python_writes_them),
		cmocka_unit_test(lack_of_memory_is_remembered),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
