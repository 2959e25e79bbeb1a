/* Text files that are read whole. */
#include "formats/text_file.h"
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include "memory_limit.h"

static void expect(const char *bytes, size_t size, const char *expected)
{
	struct text_file file;
	assert_ok(file_write(test_path("a.txt"), bytes, size));
	assert_ok(text_file_read(&file, test_path("a.txt"), TEXT_FILE_LIMIT));
	assert_string_equal(buffer_string(&file.text), expected);
	assert_int_equal(file.text.size, strlen(expected));
	text_file_release(&file);
}
#define EXPECT(bytes, expected) expect(bytes, sizeof bytes - 1, expected)

static void marks_and_line_ends_are_mended(void **state)
{
	EXPECT("", "");
	EXPECT("\xEF\xBB\xBF", "");
	EXPECT("\xEF\xBB\xBF"
	       "a\n\xEF\xBB\xBF",
	       "a\n\xEF\xBB\xBF");
	EXPECT("a\rb\r", "a\nb\n");
	EXPECT("a\rb\r\nc", "a\rb\r\nc");
}

static void packed_files_are_unpacked(void **state)
{
	struct text_file file;
	gzFile packed = gzopen(test_path("a.tsv.gz"), "wb");
	assert_non_null(packed);
	assert_int_equal(gzwrite(packed, "\xEF\xBB\xBFone\n", 7), 7);
	assert_int_equal(gzclose(packed), Z_OK);
	assert_ok(text_file_read(&file, test_path("a.tsv.gz"), 7));
	assert_string_equal(buffer_string(&file.text), "one\n");
	text_file_release(&file);
	assert_error(ERR_DATA, "larger than", text_file_read(&file, test_path("a.tsv.gz"), 6));
}

static void other_encodings_are_refused(void **state)
{
	static const struct {
		const char *bytes;
		size_t size;
		const char *encoding;
	} cases[] = {{"\xFF\xFE"
		      "a\0",
		      4, "UTF-16"},
		     {"\xFE\xFF\0a", 4, "UTF-16"},
		     {"\xFF\xFE\0\0", 4, "UTF-32"},
		     {"\0\0\xFE\xFF", 4, "UTF-32"}};
	struct text_file file;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_ok(file_write(test_path("a.txt"), cases[i].bytes, cases[i].size));
		assert_error(ERR_DATA, cases[i].encoding, text_file_read(&file, test_path("a.txt"), TEXT_FILE_LIMIT));
		assert_non_null(strstr(error_last()->hint, "iconv"));
	}
	assert_error(ERR_USAGE, "none.txt", text_file_read(&file, test_path("none.txt"), TEXT_FILE_LIMIT));
}

static atomic_bool stop, begun;

/* Keeps changing the file's modification time. */
static void *touch(void *path)
{
	for (long i = 1; !atomic_load(&stop); i++) {
		const struct timespec times[2] = {{1000000 + i / 1000, i % 1000}, {1000000 + i / 1000, i % 1000}};
		if (utimensat(AT_FDCWD, path, times, 0) != 0)
			return path;
		atomic_store(&begun, true);
	}
	return NULL;
}

static void a_file_that_changes_is_refused(void **state)
{
	enum { BYTES = 32 << 20 };
	char *bytes = calloc(BYTES, 1), path[PATH_BYTES];
	struct text_file file;
	pthread_t thread;
	void *failed;
	assert_non_null(bytes);
	memset(bytes, 'a', BYTES);
	snprintf(path, sizeof path, "%s", test_path("busy.txt"));
	assert_ok(file_write(path, bytes, BYTES));
	free(bytes);
	assert_ok(text_file_read(&file, path, TEXT_FILE_LIMIT));
	text_file_release(&file);
	assert_int_equal(pthread_create(&thread, NULL, touch, path), 0);
	while (!atomic_load(&begun))
		sched_yield();
	assert_error(ERR_STATE, "was written to while it was read", text_file_read(&file, path, TEXT_FILE_LIMIT));
	atomic_store(&stop, true);
	pthread_join(thread, &failed);
	assert_null(failed);
}

#ifndef __SANITIZE_ADDRESS__ /* which reserves terabytes of address space */
/* A device without an end, and a small archive of much more than the memory: the limit of address space stands for memory. */
static void what_memory_cannot_hold_is_refused_in_time(void **state)
{
	struct rlimit before;
	struct text_file file;
	struct buffer zeros = {0};
	gzFile packed = gzopen(test_path("bomb.gz"), "wb1");
	assert_non_null(packed);
	char *block = buffer_room(&zeros, 8 << 20);
	assert_non_null(block);
	memset(block, 0, 8 << 20);
	for (int i = 0; i < 64; i++)
		assert_int_equal(gzwrite(packed, block, 8 << 20), 8 << 20);
	assert_int_equal(gzclose(packed), Z_OK);
	buffer_release(&zeros);
	limit_memory(&before, 200 << 20);
	enum status device = text_file_read(&file, "/dev/zero", TEXT_FILE_LIMIT);
	enum status bomb = text_file_read(&file, test_path("bomb.gz"), TEXT_FILE_LIMIT);
	assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
	assert_int_equal(device, ERR_RESOURCE);
	assert_error(ERR_RESOURCE, "bomb.gz': not enough memory to read it whole: ", bomb);
	assert_non_null(strstr(error_last()->message, " so far, "));
}
#endif

static void bytes_are_checked(void **state)
{
	assert_ok(text_check("f", 1, "a\xC3\xA9\n\xF0\x9F\x98\x80", 8));
	assert_error(ERR_DATA, "'f', line 8: invalid UTF-8 at byte 2 of the line", text_check("f", 7, "ab\nc\xC3", 5));
	assert_non_null(strstr(error_last()->hint, "iconv -f CP1252"));
	assert_error(ERR_DATA, "'f', line 7: a NUL byte at byte 1 of the line", text_check("f", 7, "\0", 1));
	assert_error(ERR_DATA, "invalid UTF-8", text_check("f", 7, "\xED\xA0\x80", 3));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(marks_and_line_ends_are_mended),
		cmocka_unit_test(packed_files_are_unpacked),
		cmocka_unit_test(other_encodings_are_refused),
		cmocka_unit_test(a_file_that_changes_is_refused),
#ifndef __SANITIZE_ADDRESS__
		cmocka_unit_test(what_memory_cannot_hold_is_refused_in_time),
#endif
		cmocka_unit_test(bytes_are_checked),
	};
	return cmocka_run_group_tests(tests, test_folder_make, test_folder_drop);
}
