/* Every format read in pieces of every size; members concatenated, padded, truncated at each byte and damaged at each
 * byte; lines around the limit. */
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <bzlib.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>
#include "base/buffer.h"
#include "formats/stream.h"
#include "formats/text_file.h"
#include "test.h"

static char path[128];

static int set_up(void **state)
{
	int failed = test_folder_make(state);
	snprintf(path, sizeof path, "%s/x", test_folder);
	return failed;
}

static void put(const struct buffer *bytes)
{
	FILE *file = fopen(path, "wb");
	assert_non_null(file);
	if (bytes->size)
		assert_int_equal(fwrite(bytes->data, 1, bytes->size, file), bytes->size);
	assert_int_equal(fclose(file), 0);
}

/* Each appends one compressed member. */

static void pack_plain(struct buffer *out, const char *text, size_t size)
{
	buffer_append(out, text, size);
}

static void pack_gzip(struct buffer *out, const char *text, size_t size)
{
	z_stream z = {0};
	char *packed = malloc(size + 1000);
	assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
	z.next_in = (unsigned char *)text;
	z.avail_in = (uInt)size;
	z.next_out = (unsigned char *)packed;
	z.avail_out = (uInt)size + 1000;
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	buffer_append(out, packed, z.total_out);
	deflateEnd(&z);
	free(packed);
}

static void pack_bzip2(struct buffer *out, const char *text, size_t size)
{
	unsigned int packed_size = (unsigned int)size * 2 + 1000;
	char *packed = malloc(packed_size);
	assert_int_equal(BZ2_bzBuffToBuffCompress(packed, &packed_size, (char *)text, (unsigned int)size, 1, 0, 0), BZ_OK);
	buffer_append(out, packed, packed_size);
	free(packed);
}

static void pack_zstd(struct buffer *out, const char *text, size_t size)
{
	size_t bound = ZSTD_compressBound(size);
	char *packed = malloc(bound);
	ZSTD_CCtx *context = ZSTD_createCCtx();
	ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
	size_t packed_size = ZSTD_compress2(context, packed, bound, text, size);
	assert_false(ZSTD_isError(packed_size));
	buffer_append(out, packed, packed_size);
	ZSTD_freeCCtx(context);
	free(packed);
}

static void pack_xz(struct buffer *out, const char *text, size_t size)
{
	size_t bound = lzma_stream_buffer_bound(size), packed_size = 0;
	uint8_t *packed = malloc(bound);
	assert_int_equal(
		lzma_easy_buffer_encode(1, LZMA_CHECK_CRC32, NULL, (const uint8_t *)text, size, packed, &packed_size, bound),
		LZMA_OK);
	buffer_append(out, packed, packed_size);
	free(packed);
}

static const struct format {
	const char *name;
	void (*pack)(struct buffer *out, const char *text, size_t size);
	int threads; /* for decoding ahead; 0: not requested */
} formats[] = {
	{"plain", pack_plain, 0}, {"gzip", pack_gzip, 0}, {"bzip2", pack_bzip2, 0}, {"bzip2", pack_bzip2, 1},
	{"bzip2", pack_bzip2, 3}, {"zstd", pack_zstd, 0}, {"xz", pack_xz, 0},
};
static int threads; /* of the format being tested */
#define FORMATS (sizeof formats / sizeof *formats)

/* Reads the file in pieces of `piece` bytes. */
static enum status read_all(struct buffer *out, size_t piece)
{
	struct stream *stream;
	char bytes[4096];
	size_t count = 0;
	enum status status = stream_open(&stream, path);

	buffer_clear(out);
	if (status != OK)
		return status;
	if (threads > 0)
		assert_ok(stream_read_ahead(stream, threads));
	assert_string_equal(stream_path(stream), path);
	while ((status = stream_read(stream, bytes, piece, &count)) == OK && count > 0) {
		assert_true(count <= piece);
		buffer_append(out, bytes, count);
	}
	if (status == OK) {
		assert_int_equal(stream_position(stream), file_size(path));
		assert_int_equal(stream_read(stream, bytes, piece, &count), OK);
		assert_int_equal(count, 0);
	}
	stream_close(stream);
	return status;
}

static void assert_same(const struct buffer *got, const struct buffer *expected)
{
	assert_int_equal(got->size, expected->size);
	if (got->size)
		assert_memory_equal(got->data, expected->data, got->size);
}

/* Text that compresses, but not to nothing. */
static void make_text(struct buffer *out, size_t words)
{
	uint32_t random = 12345;
	for (size_t i = 0; i < words; i++) {
		random = random * 1664525 + 1013904223;
		buffer_format(out, "w%u%c", random >> 20, i % 11 ? ' ' : '\n');
	}
}

static void test_formats_in_pieces(void **state)
{
	struct buffer text = {0}, packed = {0}, got = {0};
	static const size_t pieces[] = {1, 7, 4096};

	make_text(&text, 100000); /* beyond one block of input in every format */
	for (size_t f = 0; f < FORMATS; f++) {
		threads = formats[f].threads;
		buffer_clear(&packed);
		formats[f].pack(&packed, text.data, text.size);
		put(&packed);
		for (size_t p = 0; p < 3; p++) {
			assert_int_equal(read_all(&got, pieces[p]), OK);
			assert_same(&got, &text);
		}
	}
	buffer_release(&text);
	buffer_release(&packed);
	buffer_release(&got);
}

static void test_members_and_padding(void **state)
{
	struct buffer packed = {0}, got = {0}, expected = {0};

	for (size_t f = 1; f < FORMATS; f++) {
		threads = formats[f].threads;
		buffer_clear(&packed);
		buffer_clear(&expected);
		for (int i = 0; i < 2000; i++) { /* so many that headers straddle blocks of input */
			char text[256];
			int size = snprintf(text, sizeof text, "member %d, no %x, %s\n", i, i * 2654435761u,
					    i % 3 ? "" : "with some more text in it to vary its length");
			formats[f].pack(&packed, text, i % 10 == 9 ? 0 : (size_t)size); /* some are empty */
			if (i % 10 != 9)
				buffer_append(&expected, text, (size_t)size);
		}
		put(&packed);
		assert_int_equal(read_all(&got, 4096), OK);
		assert_same(&got, &expected);
		for (int i = 0; i < 512; i++)
			buffer_char(&packed, '\0');
		put(&packed);
		assert_int_equal(read_all(&got, 4096), OK);
		assert_same(&got, &expected);

		size_t end = packed.size;
		buffer_text(&packed, "odds and ends");
		put(&packed);
		assert_int_equal(read_all(&got, 4096), ERR_DATA);
		char where[64];
		snprintf(where, sizeof where, "byte %zu, after the end of the %s", end, formats[f].name);
		assert_non_null(strstr(error_last()->message, where));
		assert_non_null(strstr(error_last()->message, path));
	}
	buffer_release(&packed);
	buffer_release(&got);
	buffer_release(&expected);
}

static void test_truncated_anywhere(void **state)
{
	struct buffer text = {0}, packed = {0}, got = {0};

	make_text(&text, 60);
	for (size_t f = 1; f < FORMATS; f++) {
		threads = formats[f].threads;
		buffer_clear(&packed);
		formats[f].pack(&packed, text.data, text.size);
		for (size_t size = 10; size < packed.size; size++) {
			struct buffer part = packed;
			part.size = size;
			put(&part);
			assert_int_equal(read_all(&got, 4096), ERR_DATA);
			char where[64];
			snprintf(where, sizeof where, "truncated %s data: the file ends at byte %zu", formats[f].name, size);
			if (!strstr(error_last()->message, where))
				fail_msg("\"%s\" instead of \"%s\"", error_last()->message, where);
			assert_true(got.size <= text.size);
		}
	}
	buffer_release(&text);
	buffer_release(&packed);
	buffer_release(&got);
}

static void test_damaged_anywhere(void **state)
{
	struct buffer text = {0}, packed = {0}, got = {0};

	make_text(&text, 60);
	for (size_t f = 1; f < FORMATS; f++) {
		threads = formats[f].threads;
		buffer_clear(&packed);
		formats[f].pack(&packed, text.data, text.size);
		size_t refused = 0, tried = 0;
		for (size_t at = 10; at < packed.size; at++, tried++) {
			packed.data[at] ^= 0x10;
			put(&packed);
			enum status status = read_all(&got, 4096);
			packed.data[at] ^= 0x10;
			/* A few bits carry no information (padding); if they are accepted, the text must be right. */
			if (status == OK)
				assert_same(&got, &text);
			else
				assert_true(status == ERR_DATA || status == ERR_RESOURCE);
			refused += status != OK;
		}
		assert_true(refused * 100 >= tried * 95);
	}
	buffer_release(&text);
	buffer_release(&packed);
	buffer_release(&got);
}

static void test_plain_look_alikes(void **state)
{
	static const char *const texts[] = {"", "B", "BZh", "BZh9 is how bzip2 files begin", "\x1f\x8b", "PK", "(\xb5/"};
	struct buffer got = {0};

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct buffer bytes = {.data = (char *)texts[i], .size = strlen(texts[i])};
		put(&bytes);
		assert_int_equal(read_all(&got, 4096), OK);
		assert_same(&got, &bytes);
	}
	struct buffer zip = {.data = (char *)"PK\3\4 and so on", .size = 14};
	put(&zip);
	assert_int_equal(read_all(&got, 4096), ERR_DATA);
	assert_non_null(strstr(error_last()->message, "zip archive"));
	buffer_release(&got);
}

static void test_cannot_open(void **state)
{
	struct stream *stream;
	char missing[160];

	snprintf(missing, sizeof missing, "%s/none", test_folder);
	assert_int_equal(stream_open(&stream, missing), ERR_USAGE);
	assert_non_null(strstr(error_last()->message, missing));
	assert_null(stream);
	assert_int_equal(stream_open(&stream, test_folder), ERR_USAGE);
	assert_non_null(strstr(error_last()->message, "folder"));
	stream_close(NULL);
}

/* A file that changes while it is being read is an error at its end, in every format. An open file stays the same when
 * another one takes its name. */
static void test_changed_while_read(void **state)
{
	static const struct {
		const char *change; /* a command, in the folder */
		const char *words;
	} cases[] = {
		{"true", NULL},
		{"truncate -s 300000 x", "x' was cut short while it was read"},
		{": >x", "x' was cut short while it was read"},
		{"head -c 8 /dev/zero >>x", "x' grew while it was read"}, /* not data of any format */
		{"touch -d 2001-02-03 x", "x' was written to while it was read"},
		{"cp x y && mv y x", NULL},
	};
	struct buffer text = {0}, packed = {0};
	make_text(&text, 300000);
	for (size_t f = 0; f < FORMATS; f++) {
		buffer_clear(&packed);
		formats[f].pack(&packed, text.data, text.size);
		assert_true(packed.size > 400000); /* more than is read at a time */
		for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
			struct stream *stream;
			char bytes[4096], command[256];
			size_t count;
			put(&packed);
			assert_ok(stream_open(&stream, path));
			if (formats[f].threads > 0)
				assert_ok(stream_read_ahead(stream, formats[f].threads));
			assert_ok(stream_read(stream, bytes, sizeof bytes, &count));
			snprintf(command, sizeof command, "cd %s && %s", test_folder, cases[i].change);
			assert_int_equal(system(command), 0);
			enum status status;
			while ((status = stream_read(stream, bytes, sizeof bytes, &count)) == OK && count > 0)
				;
			if (cases[i].words)
				assert_error(ERR_STATE, cases[i].words, status);
			else
				assert_ok(status);
			stream_close(stream);
		}
	}
	buffer_release(&text);
	buffer_release(&packed);
}

/* A pipe delivers its bytes in small pieces and has no size. */
static void test_standard_input(void **state)
{
	struct buffer packed = {0}, got = {0};
	int ends[2], saved = dup(STDIN_FILENO);

	pack_gzip(&packed, "through a pipe\n", 15);
	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();
	if (child == 0) {
		for (size_t i = 0; i < packed.size; i++)
			if (write(ends[1], packed.data + i, 1) != 1 || usleep(100) != 0)
				_exit(1);
		_exit(0);
	}
	close(ends[1]);
	dup2(ends[0], STDIN_FILENO);
	close(ends[0]);
	struct stream *stream;
	char bytes[64];
	size_t count;
	assert_int_equal(stream_open(&stream, "-"), OK);
	assert_string_equal(stream_path(stream), "standard input");
	while (stream_read(stream, bytes, sizeof bytes, &count) == OK && count > 0)
		buffer_append(&got, bytes, count);
	stream_close(stream);
	dup2(saved, STDIN_FILENO);
	close(saved);
	waitpid(child, NULL, 0);
	assert_string_equal(buffer_string(&got), "through a pipe\n");
	buffer_release(&packed);
	buffer_release(&got);
}

/* Joins the lines again, with '|' after each line and '~' after a piece that is continued. */
static void read_lines(struct buffer *out, size_t limit)
{
	struct line_reader *reader;
	int64_t offset = 0;

	buffer_clear(out);
	assert_int_equal(line_reader_open(&reader, path, limit), OK);
	for (;;) {
		const char *line;
		size_t size;
		bool continues, end;
		assert_int_equal(line_reader_next(reader, &line, &size, &continues, &end), OK);
		if (end)
			break;
		assert_true(size <= limit);
		buffer_append(out, line, size);
		buffer_char(out, continues ? '~' : '|');
		assert_true(line_reader_offset(reader) >= offset + (int64_t)size);
		offset = line_reader_offset(reader);
	}
	assert_int_equal(offset, file_size(path));
	line_reader_close(reader);
}

static void test_lines(void **state)
{
	static const struct {
		const char *text, *lines;
	} cases[] = {
		{"", ""},
		{"\n", "|"},
		{"a\nb", "a|b|"},
		{"a\n\nb\r\n", "a||b\r|"},
		{"a\r\rb\r", "a||b|"},
		{"a\rb\rc\n", "a|b|c|"},
		{"a\rb\rc\r\nd\r", "a|b|c|d|"}, /* one CRLF among CRs ends one line */
		{"a\rb\r\nc\r", "a\rb\r|c\r|"},
		{"\xef\xbb\xbf\n\xef\xbb\xbf\n", "|\xef\xbb\xbf|"}, /* a byte order mark */
		{"\xef\xbb\xbf"
		 "0123456789abcdef\rx\r",
		 "0123456789abcdef|x|"},
		{"0123456789abcdef\nx", "0123456789abcdef|x|"},
		{"0123456789abcdef", "0123456789abcdef|"},
		{"0123456789abcdefg\nx", "0123456789abcdef~g|x|"},
		{"0123456789abcdef0123456789abcdefg", "0123456789abcdef~0123456789abcdef~g|"},
		/* no character is split */
		{"0123456789abcde\xc3\xa9\n", "0123456789abcde~\xc3\xa9|"},
		{"0123456789abcd\xe4\xb8\xad\n", "0123456789abcd~\xe4\xb8\xad|"},
		{"0123456789abc\xf0\x9f\x98\x80\n", "0123456789abc~\xf0\x9f\x98\x80|"},
		/* invalid UTF-8 is cut at the limit */
		{"0123456789ab\x80\x80\x80\x80\x80\n", "0123456789ab\x80\x80\x80\x80~\x80|"},
	};
	struct buffer got = {0};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct buffer text = {.data = (char *)cases[i].text, .size = strlen(cases[i].text)};
		put(&text);
		read_lines(&got, 16);
		assert_string_equal(buffer_string(&got), cases[i].lines);
	}
	buffer_release(&got);
}

/* An LF belongs to the CR before it even if it comes later, and by itself; the next one ends an empty line. */
static void test_returns_in_pieces(void **state)
{
	static const char *const pieces[] = {"a\rb\rc\n", "d\r", "\n", "\n", "e\n"};
	struct buffer got = {0};
	struct line_reader *reader;
	const char *line;
	size_t size;
	bool continues, end;
	int ends[2], saved = dup(STDIN_FILENO);
	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();
	if (child == 0) {
		for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++)
			if (write(ends[1], pieces[i], strlen(pieces[i])) < 1 || usleep(20000) != 0)
				_exit(1);
		_exit(0);
	}
	close(ends[1]);
	dup2(ends[0], STDIN_FILENO);
	close(ends[0]);
	assert_int_equal(line_reader_open(&reader, "-", 100), OK);
	while (line_reader_next(reader, &line, &size, &continues, &end) == OK && !end) {
		buffer_append(&got, line, size);
		buffer_char(&got, '|');
	}
	line_reader_close(reader);
	dup2(saved, STDIN_FILENO);
	close(saved);
	waitpid(child, NULL, 0);
	assert_string_equal(buffer_string(&got), "a|b|c|d||e|");
	buffer_release(&got);
}

static void test_peek_consumes_nothing(void **state)
{
	struct buffer text = {0};
	struct line_reader *reader;
	const char *bytes;
	size_t size;
	bool continues, end;

	make_text(&text, 200000);
	put(&text);
	assert_int_equal(line_reader_open(&reader, path, 1000), OK);
	assert_int_equal(line_reader_peek(reader, 1 << 20, &bytes, &size), OK);
	assert_int_equal(size, 1 << 20);
	assert_memory_equal(bytes, text.data, size);
	size_t at = 0;
	while (line_reader_next(reader, &bytes, &size, &continues, &end) == OK && !end) {
		assert_memory_equal(bytes, text.data + at, size);
		at += size + 1;
	}
	assert_in_range(at, text.size, text.size + 1);
	assert_int_equal(line_reader_peek(reader, 10, &bytes, &size), OK);
	assert_int_equal(size, 0);
	line_reader_close(reader);
	line_reader_close(NULL);
	buffer_release(&text);
}

/* 256 MB of one letter without a newline, compressed to a fraction of that: memory must not grow with it. */
static void test_huge_line_in_little_memory(void **state)
{
	struct buffer packed = {0};
	struct line_reader *reader;
	const char *line;
	size_t size, total = 0, block = 1 << 20;
	bool continues, end;
	struct rusage before, after;

	char *letters = malloc(block);
	memset(letters, 'a', block);
	for (int i = 0; i < 256; i++)
		pack_zstd(&packed, letters, block);
	put(&packed);
	getrusage(RUSAGE_SELF, &before);
	assert_int_equal(line_reader_open(&reader, path, block), OK);
	while (line_reader_next(reader, &line, &size, &continues, &end) == OK && !end)
		total += size;
	getrusage(RUSAGE_SELF, &after);
	assert_int_equal(total, 256 * block);
	assert_true(after.ru_maxrss - before.ru_maxrss < 32 * 1024); /* KiB */
	line_reader_close(reader);
	free(letters);
	buffer_release(&packed);
}

/* What people give in place of a text, and what they are told to do. */
static void test_hints(void **state)
{
	struct text_file file;
	assert_ok(file_write(test_path("rows.parquet"), "PAR1....PAR1", 12));
	assert_error(ERR_DATA, "is a Parquet file", text_file_read(&file, test_path("rows.parquet"), 100));
	assert_non_null(strstr(error_last()->hint, "pandas.read_parquet(sys.argv[1]).to_json("));
	assert_error(ERR_USAGE, "cannot open 'https://", text_file_read(&file, "https://example.org/a.csv", 100));
	assert_non_null(strstr(error_last()->hint, "bertc download"));
	assert_error(ERR_USAGE, "cannot open 's3://", text_file_read(&file, "s3://bucket/a.csv", 100));
	assert_non_null(strstr(error_last()->hint, "copy it here"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_formats_in_pieces),
		cmocka_unit_test(test_members_and_padding),
		cmocka_unit_test(test_truncated_anywhere),
		cmocka_unit_test(test_damaged_anywhere),
		cmocka_unit_test(test_plain_look_alikes),
		cmocka_unit_test(test_cannot_open),
		cmocka_unit_test(test_changed_while_read),
		cmocka_unit_test(test_standard_input),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_returns_in_pieces),
		cmocka_unit_test(test_hints),
		cmocka_unit_test(test_peek_consumes_nothing),
		cmocka_unit_test(test_huge_line_in_little_memory),
	};
	return cmocka_run_group_tests(tests, set_up, test_folder_drop);
}
