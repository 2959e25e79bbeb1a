/* Fetching from a server that disconnects, stalls, redirects, lies about lengths and refuses. */
#include "test.h"

#include <sys/stat.h>
#include "formats/checksum.h"
#include "formats/fetch.h"
#include "formats/unpack.h"
#include "http_server.h"

#define BODY_BYTES 300000
static char body[BODY_BYTES];
static char body_sum[CHECKSUM_BYTES];
static const struct fetch_settings settings = {.stall_seconds = 0.5, .pause_seconds = 0.02, .retries = 2};

static int setup(void **state)
{
	if (test_folder_make(state) != 0)
		return -1;
	for (size_t i = 0; i < sizeof body; i++)
		body[i] = (char)(i * i >> 7);
	if (file_write(test_path("body"), body, sizeof body) != OK || checksum_file(test_path("body"), "sha256:", body_sum) != OK)
		return -1;
	return http_server_start(body, sizeof body);
}

static int teardown(void **state)
{
	http_server_stop();
	return test_folder_drop(state);
}

/* Fetches /NAME to the file NAME. */
static enum status get(const char *name, const char *checksum, struct fetch_result *result)
{
	static char url[256];
	snprintf(url, sizeof url, "http://127.0.0.1:%d/%s", http_server.port, name);
	return fetch(&settings, &(struct fetch_request){.url = url, .path = test_path(name), .checksum = checksum}, result);
}

static void assert_whole(const char *name)
{
	struct buffer text = {0};
	char part[64];
	assert_ok(file_read(test_path(name), 1 << 20, &text));
	assert_int_equal(text.size, BODY_BYTES);
	assert_memory_equal(text.data, body, BODY_BYTES);
	buffer_release(&text);
	snprintf(part, sizeof part, "%s.part", name);
	assert_false(file_exists(test_path(part)));
	snprintf(part, sizeof part, "%s.part.json", name);
	assert_false(file_exists(test_path(part)));
}

static void assert_none(const char *name)
{
	assert_false(file_exists(test_path(name)));
}

static void test_plain(void **state)
{
	struct fetch_result result;
	http_server_reset();
	assert_ok(get("plain", body_sum, &result));
	assert_int_equal(result.outcome, FETCH_DONE);
	assert_int_equal(result.attempts, 1);
	assert_whole("plain");
	assert_ok(get("plain", body_sum, &result)); /* there already */
	assert_int_equal(result.outcome, FETCH_PRESENT);
	assert_int_equal(http_server.requests, 1);
	/* The same length, but another byte: the downloaded file, damaged or outdated. */
	body[0]++;
	assert_ok(file_write(test_path("plain"), body, sizeof body));
	body[0]--;
	assert_ok(get("plain", body_sum, &result));
	assert_int_equal(result.outcome, FETCH_DONE);
	assert_whole("plain");
}

static void assert_refused(const char *part, const char *name, const char *checksum)
{
	struct fetch_result result;
	struct buffer text = {0};
	assert_error(ERR_STATE, part, get(name, checksum, &result));
	assert_ok(file_read(test_path(name), 1 << 20, &text));
	assert_string_equal(buffer_string(&text), "mine");
	buffer_release(&text);
}

/* An existing file is the requested one only if its checksum or the record beside it says so. */
static void test_what_is_there(void **state)
{
	struct fetch_result result;
	char url[256];
	assert_ok(get("plain-known", NULL, &result));
	assert_ok(get("plain-known", NULL, &result));
	assert_int_equal(result.outcome, FETCH_PRESENT);
	snprintf(url, sizeof url, "http://127.0.0.1:%d/plain-other", http_server.port);
	struct fetch_request other = {.url = url, .path = test_path("plain-known")};
	assert_error(ERR_STATE, "was downloaded from", fetch(&settings, &other, &result));
	assert_error(ERR_STATE, "plain-known, not from ", fetch_check(&other));
	other.checksum = body_sum; /* then the address does not matter */
	assert_ok(fetch(&settings, &other, &result));
	assert_int_equal(result.outcome, FETCH_PRESENT);

	assert_ok(file_write(test_path("plain-mine"), "mine", 4));
	assert_refused("nothing shows", "plain-mine", NULL);
	assert_refused("is not the file at", "plain-mine", body_sum);
	assert_ok(get("plain-edited", NULL, &result));
	assert_ok(file_write(test_path("plain-edited"), "mine", 4));
	assert_refused("has changed since", "plain-edited", NULL);
	assert_refused("has changed since", "plain-edited", body_sum);
}

/* If only the end of the connection marks the end of a file, half a file looks like a whole one. */
static void test_length_unknown(void **state)
{
	struct fetch_result result;
	assert_ok(get("unsaid", NULL, &result));
	assert_int_equal(result.outcome, FETCH_FAILED);
	assert_non_null(strstr(result.reason, "does not say how long"));
	assert_none("unsaid");
	assert_none("unsaid.part");
	assert_ok(get("unsaid", body_sum, &result));
	assert_int_equal(result.outcome, FETCH_FAILED);
	assert_non_null(strstr(result.reason, "checksum"));
	assert_ok(get("chunks", NULL, &result));
	assert_int_equal(result.outcome, FETCH_DONE);
	assert_whole("chunks");
}

static void test_broken_lines(void **state)
{
	struct fetch_result result;
	static const char *const names[] = {"cut", "stall", "bare"};
	for (int i = 0; i < 3; i++) {
		http_server_reset();
		assert_ok(get(names[i], body_sum, &result));
		assert_int_equal(result.outcome, FETCH_DONE);
		assert_in_range(http_server.ranges, 5, 30); /* each request brought half of the remainder */
		assert_whole(names[i]);
	}
	http_server_reset();
	assert_ok(get("deaf", NULL, &result)); /* receiving the same half again and again is no progress */
	assert_int_equal(result.outcome, FETCH_FAILED);
	assert_int_equal(result.attempts, 1 + 1 + settings.retries);
	assert_none("deaf");
}

static void test_goes_on_after_a_kill(void **state)
{
	struct fetch_result result;
	char note[512];
	http_server_reset();
	snprintf(note, sizeof note, "{\"url\":\"http://127.0.0.1:%d/plain-half\",\"validator\":\"\\\"one\\\"\",\"total\":%d}",
		 http_server.port, BODY_BYTES);
	assert_ok(file_write(test_path("plain-half.part"), body, 100000));
	assert_ok(file_write(test_path("plain-half.part.json"), note, strlen(note)));
	assert_ok(get("plain-half", body_sum, &result));
	assert_int_equal(result.outcome, FETCH_DONE);
	assert_int_equal(result.resumed_from, 100000);
	assert_int_equal(http_server.ranges, 1);
	assert_whole("plain-half");

	/* A part that is complete, a part without any record, and a part of another version. */
	snprintf(note, sizeof note, "{\"url\":\"http://127.0.0.1:%d/plain-all\",\"validator\":\"\\\"one\\\"\",\"total\":%d}",
		 http_server.port, BODY_BYTES);
	assert_ok(file_write(test_path("plain-all.part"), body, BODY_BYTES));
	assert_ok(file_write(test_path("plain-all.part.json"), note, strlen(note)));
	assert_ok(get("plain-all", NULL, &result));
	assert_int_equal(result.outcome, FETCH_DONE);
	assert_whole("plain-all");
	assert_ok(file_write(test_path("plain-odd.part"), "who knows", 9));
	assert_ok(get("plain-odd", NULL, &result));
	assert_whole("plain-odd");
	http_server_reset();
	assert_ok(get("changed", NULL, &result));
	assert_int_equal(result.outcome, FETCH_DONE);
	assert_int_equal(http_server.ranges, 0); /* because of If-Range the server sent the whole new version */
	assert_whole("changed");
	static const char *const careless[] = {"careless", "careless_date"};
	for (int i = 0; i < 2; i++) {
		http_server_reset();
		assert_ok(get(careless[i], NULL, &result));
		assert_int_equal(result.outcome, FETCH_DONE);
		assert_int_equal(http_server.ranges, 1); /* it sent the rest of the new version, which is not the rest of ours */
		assert_whole(careless[i]);
	}
}

static void test_refusals(void **state)
{
	struct fetch_result result;
	static const char *const gone[] = {"403", "404", "410"};
	for (int i = 0; i < 3; i++) {
		assert_ok(get(gone[i], NULL, &result));
		assert_int_equal(result.outcome, FETCH_GONE);
		assert_int_equal(result.attempts, 1);
		assert_non_null(strstr(result.reason, gone[i]));
		assert_none(gone[i]);
	}
	assert_ok(get("503", NULL, &result));
	assert_int_equal(result.outcome, FETCH_FAILED);
	assert_int_equal(result.attempts, 1 + settings.retries);
	http_server_reset();
	assert_ok(get("once503", NULL, &result));
	assert_int_equal(result.outcome, FETCH_DONE);
	assert_int_equal(result.attempts, 2);
	http_server_reset();
	assert_ok(get("429", NULL, &result)); /* the server asked for a delay, and got it */
	assert_int_equal(result.outcome, FETCH_DONE);
}

static void test_redirects(void **state)
{
	struct fetch_result result;
	assert_ok(get("away", body_sum, &result));
	assert_int_equal(result.outcome, FETCH_DONE);
	assert_whole("away");
	assert_ok(get("loop", NULL, &result));
	assert_int_equal(result.outcome, FETCH_FAILED);
	assert_int_equal(result.attempts, 1);
	assert_ok(fetch(&settings, &(struct fetch_request){.url = "file:///etc/hostname", .path = test_path("local")}, &result));
	assert_int_equal(result.outcome, FETCH_FAILED);
	assert_none("local");
	assert_ok(fetch(&settings, &(struct fetch_request){.url = "http://127.0.0.1:1/x", .path = test_path("closed")}, &result));
	assert_int_equal(result.outcome, FETCH_FAILED);
}

static void test_lies(void **state)
{
	struct fetch_result result;
	assert_ok(get("short", body_sum, &result));
	assert_int_equal(result.outcome, FETCH_FAILED);
	assert_non_null(strstr(result.reason, "checksum"));
	assert_none("short");
}

static void test_disk(void **state)
{
	struct fetch_result result;
	assert_ok(file_fault_set("write:2+:ENOSPC"));
	assert_error(ERR_RESOURCE, "cannot write", get("plain-disk", NULL, &result));
	assert_true(file_fault_hit());
	assert_ok(file_fault_set(NULL));
	assert_none("plain-disk");
	assert_ok(get("plain-disk", body_sum, &result)); /* there is room again, so the download resumes */
	assert_whole("plain-disk");
	assert_error(ERR_RESOURCE, "cannot write", get("plain/below-a-file", NULL, &result));
}

static void test_checksums(void **state)
{
	char sum[CHECKSUM_BYTES];
	assert_ok(file_write(test_path("abc"), "abc", 3));
	/* RFC 1321, FIPS 180 */
	assert_ok(checksum_file(test_path("abc"), "md5:", sum));
	assert_string_equal(sum, "md5:900150983cd24fb0d6963f7d28e17f72");
	assert_ok(checksum_file(test_path("abc"), "sha1:", sum));
	assert_string_equal(sum, "sha1:a9993e364706816aba3e25717850c26c9cd0d89d");
	assert_ok(checksum_file(test_path("abc"), "sha256:", sum));
	assert_string_equal(sum, "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	assert_ok(checksum_parse("900150983CD24FB0D6963F7D28E17F72", sum));
	assert_string_equal(sum, "md5:900150983cd24fb0d6963f7d28e17f72");
	assert_error(ERR_USAGE, "is not a checksum", checksum_parse("sha1:123", sum));
	const char *list = "a9993e364706816aba3e25717850c26c9cd0d89d  x.bz2\n"
			   "900150983cd24fb0d6963f7d28e17f72 *y.bz2\r\nnonsense\n";
	assert_true(checksum_in_list(list, "x.bz2", sum));
	assert_string_equal(sum, "sha1:a9993e364706816aba3e25717850c26c9cd0d89d");
	assert_true(checksum_in_list(list, "y.bz2", sum));
	assert_false(checksum_in_list(list, "z.bz2", sum));
}

/* A tar archive of one entry, with the caller's name and type. */
static void write_tar(const char *path, const char *name, char type)
{
	char block[2048] = {0};
	snprintf(block, 100, "%s", name);
	snprintf(block + 100, 8, "%07o", 0644);
	snprintf(block + 124, 12, "%011o", 5);
	snprintf(block + 136, 12, "%011o", 0);
	block[156] = type;
	snprintf(block + 157, 100, "target");
	memcpy(block + 257, "ustar\00000", 8);
	memset(block + 148, ' ', 8);
	unsigned sum = 0;
	for (int i = 0; i < 512; i++)
		sum += (unsigned char)block[i];
	snprintf(block + 148, 7, "%06o", sum);
	memcpy(block + 512, "hello", 5);
	assert_ok(file_write(path, block, sizeof block));
}

static const struct unpack_limits limits = {.bytes = 1 << 30, .files = 1000, .ratio = 100};

static void assert_text(const char *path, const char *expected)
{
	struct buffer text = {0};
	assert_ok(file_read(path, 1 << 20, &text));
	assert_string_equal(buffer_string(&text), expected);
	buffer_release(&text);
}

static void test_unpack(void **state)
{
	write_tar(test_path("good.tar"), "inner/file.txt", '0');
	assert_ok(unpack(test_path("good.tar"), test_path("good"), &limits));
	assert_text(test_path("good/file.txt"), "hello"); /* the archive's only folder has become this one */
	write_tar(test_path("flat.tar"), "file.txt", '0');
	assert_ok(unpack(test_path("flat.tar"), test_path("flat"), &limits));
	assert_text(test_path("flat/file.txt"), "hello");

	assert_ok(file_write(test_path("flat/file.txt"), "mine", 4));
	assert_error(ERR_STATE, "exists already", unpack(test_path("flat.tar"), test_path("flat"), &limits));
	assert_text(test_path("flat/file.txt"), "mine");

	static const char *const names[] = {"../out.txt", "/tmp/out.txt", "a/../../out.txt"};
	for (int i = 0; i < 3; i++) {
		write_tar(test_path("bad.tar"), names[i], '0');
		assert_error(ERR_DATA, "not a plain file", unpack(test_path("bad.tar"), test_path("box"), &limits));
	}
	assert_none("out.txt");
	write_tar(test_path("bad.tar"), "link", '2');
	assert_error(ERR_DATA, "not a plain file", unpack(test_path("bad.tar"), test_path("box"), &limits));
	assert_ok(file_write(test_path("bad.zip"), "PK\3\4 torn", 9));
	assert_error(ERR_DATA, "cannot unpack", unpack(test_path("bad.zip"), test_path("box"), &limits));
	assert_none("box");
	assert_none(".unpacking-box");
}

static void test_names_of_archives(void **state)
{
	char folder[PATH_BYTES];
	assert_true(unpack_is_archive("x.tar.gz"));
	assert_false(unpack_is_archive("x.txt.gz"));
	assert_false(unpack_is_archive("a/.zip")); /* there is no name for the folder */
	unpack_folder("a/x.y.tar.gz", folder);
	assert_string_equal(folder, "a/x.y");
}

/* What `tar -S` makes of a file with holes: a sparse map in the header, the file's size at offset 483, and only the data
 * after it. */
static void write_sparse_tar(const char *path, long offset, long data, long size)
{
	static char block[2048];
	memset(block, 0, sizeof block);
	memcpy(block, "holes", 5);
	snprintf(block + 100, 8, "%07o", 0644);
	snprintf(block + 124, 12, "%011lo", data);
	snprintf(block + 136, 12, "%011o", 0);
	block[156] = 'S';
	memcpy(block + 257, "ustar  ", 8); /* GNU's */
	snprintf(block + 386, 12, "%011lo", offset);
	snprintf(block + 398, 12, "%011lo", data);
	snprintf(block + 483, 12, "%011lo", size);
	memset(block + 148, ' ', 8);
	unsigned sum = 0;
	for (int i = 0; i < 512; i++)
		sum += (unsigned char)block[i];
	snprintf(block + 148, 7, "%06o", sum);
	memset(block + 512, 'x', (size_t)data);
	assert_ok(file_write(path, block, sizeof block));
}

static void test_unpack_holes(void **state)
{
	struct buffer text = {0};
	write_sparse_tar(test_path("sparse.tar"), 100000, 512, 300000);
	assert_ok(unpack(test_path("sparse.tar"), test_path("sparse"), &limits));
	assert_ok(file_read(test_path("sparse/holes"), 1 << 20, &text));
	assert_int_equal(text.size, 300000);
	for (size_t i = 0; i < text.size; i++)
		assert_int_equal(text.data[i], i >= 100000 && i < 100512 ? 'x' : 0);
	buffer_release(&text);
}

/* 2 KiB that claim to hold 8 GiB of zeros, and more files than allowed. */
static void test_unpack_limits(void **state)
{
	write_sparse_tar(test_path("bomb.tar"), 0, 512, 077777777777);
	assert_error(ERR_RESOURCE, "more than 1.1 GB", unpack(test_path("bomb.tar"), test_path("box"), &limits));
	struct unpack_limits tight = limits;
	tight.bytes = (int64_t)1 << 40;
	assert_error(ERR_RESOURCE, "100 times", unpack(test_path("bomb.tar"), test_path("box"), &tight));
	tight.files = 0;
	write_tar(test_path("good.tar"), "inner/file.txt", '0');
	assert_error(ERR_RESOURCE, "more than 0 files", unpack(test_path("good.tar"), test_path("box"), &tight));
	assert_non_null(strstr(error_last()->hint, "--max_unpacked_files"));
	assert_none("box");
	assert_none(".unpacking-box");
}

/* libarchive would pass a file that begins like this to the program lrzip. */
static void test_unpack_starts_no_program(void **state)
{
	char script[600], path[600];
	const char *before = getenv("PATH");
	assert_ok(folder_make(test_path("programs")));
	snprintf(script, sizeof script, "#!/bin/sh\necho started >'%s'\n", test_path("started"));
	assert_ok(file_write(test_path("programs/lrzip"), script, strlen(script)));
	assert_int_equal(chmod(test_path("programs/lrzip"), 0755), 0);
	assert_ok(file_write(test_path("bad.tar"), "LRZI\0\6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 24));
	snprintf(path, sizeof path, "%s:%s", test_path("programs"), before);
	char *kept = strdup(before);
	setenv("PATH", path, 1);
	enum status status = unpack(test_path("bad.tar"), test_path("box"), &limits);
	setenv("PATH", kept, 1);
	free(kept);
	assert_int_equal(status, ERR_DATA);
	assert_none("started");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_what_is_there),
		cmocka_unit_test(test_length_unknown),
		cmocka_unit_test(test_broken_lines),
		cmocka_unit_test(test_goes_on_after_a_kill),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_redirects),
		cmocka_unit_test(test_lies),
		cmocka_unit_test(test_disk),
		cmocka_unit_test(test_checksums),
		cmocka_unit_test(test_unpack),
		cmocka_unit_test(test_names_of_archives),
		cmocka_unit_test(test_unpack_holes),
		cmocka_unit_test(test_unpack_limits),
		cmocka_unit_test(test_unpack_starts_no_program),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
