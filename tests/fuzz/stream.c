/* Compressed streams, and their lines. The first byte chooses the size of the reads and, if it is odd, reading ahead. */
#include <zlib.h>
#include "base/buffer.h"
#include "base/path.h"
#include "formats/line_ends.h"
#include "formats/stream.h"
#define POOL_BZIP2
#define POOL_ZSTD
#define POOL_XZ
#include "pool.h"

#define MOST ((size_t)1 << 15) /* limit on the text: a compressed kilobyte can hold a gigabyte */

static const char text[] =
	"One line.\nAnother, another, another, another line\n\n\xe4\xbb\x96\xe6\x9d\xa5\xe4\xba\x86.\nThe last";

/* A seed of `copies` members, followed by zeros. */
static void add(char **arguments, unsigned char mode, const unsigned char *packed, size_t size, int copies)
{
	unsigned char seed[2048];
	size_t used = 0;
	seed[used++] = mode;
	for (int i = 0; i < copies; i++, used += size)
		memcpy(seed + used, packed, size);
	memset(seed + used, 0, 20);
	fuzz_add_seed(arguments, seed, used + (copies > 1 ? 20 : 0));
}

static size_t pack_gzip(unsigned char *out, size_t room)
{
	z_stream z = {0};
	BUG_IF(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK);
	z.next_in = (unsigned char *)(uintptr_t)text;
	z.avail_in = sizeof text - 1;
	z.next_out = out;
	z.avail_out = (uInt)room;
	BUG_IF(deflate(&z, Z_FINISH) != Z_STREAM_END);
	size_t size = room - z.avail_out;
	deflateEnd(&z);
	return size;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	unsigned char packed[1024];
	unsigned size = sizeof packed;
	size_t used = 0;
	(void)argc;
	add(*argv, 20, (const unsigned char *)text, sizeof text - 1, 1);
	for (int copies = 1; copies <= 2; copies++)
		add(*argv, 40, packed, pack_gzip(packed, sizeof packed), copies);
	BUG_IF(BZ2_bzBuffToBuffCompress((char *)packed, &size, (char *)(uintptr_t)text, sizeof text - 1, 1, 0, 0) != BZ_OK);
	for (int copies = 1; copies <= 2; copies++)
		add(*argv, (unsigned char)(60 + copies), packed, size, copies);
	for (int copies = 1; copies <= 2; copies++)
		add(*argv, 80, packed, ZSTD_compress(packed, sizeof packed, text, sizeof text - 1, 3), copies);
	add(*argv, 2, (const unsigned char *)"\x50\x2a\x4d\x18\3\0\0\0abc", 11, 2);
	for (int check = 0; check <= LZMA_CHECK_CRC64; check += LZMA_CHECK_CRC64, used = 0) {
		BUG_IF(lzma_easy_buffer_encode(0, (lzma_check)check, NULL, (const uint8_t *)text, sizeof text - 1, packed, &used,
					       sizeof packed) != LZMA_OK);
		add(*argv, 90, packed, used, 1 + check / LZMA_CHECK_CRC64);
	}
	return 0;
}

static enum status read_all(const char *path, bool ahead, size_t piece, struct buffer *out)
{
	struct stream *stream;
	char bytes[256];
	size_t count = 1;
	buffer_clear(out);
	TRY(stream_open(&stream, path));
	enum status status = ahead ? stream_read_ahead(stream, 1) : OK;
	while (status == OK && count > 0 && out->size < MOST) {
		status = stream_read(stream, bytes, piece, &count);
		if (status == OK)
			buffer_append(out, bytes, count);
	}
	BUG_IF(stream_position(stream) < 0 || stream_position(stream) > file_size(path));
	stream_close(stream);
	return status;
}

/* Reassembles the same text from its lines, which end in LF whatever they ended in. */
static enum status read_lines(const char *path, size_t limit, struct buffer *out)
{
	struct line_reader *reader;
	enum status status;
	buffer_clear(out);
	TRY(line_reader_open(&reader, path, limit));
	for (;;) {
		const char *line;
		size_t size;
		bool continues, end;
		status = line_reader_next(reader, &line, &size, &continues, &end);
		if (status != OK || end || out->size >= MOST)
			break;
		BUG_IF(size > limit || (continues && size == 0) || memchr(line, '\n', size));
		buffer_append(out, line, size);
		if (!continues)
			buffer_char(out, '\n');
	}
	line_reader_close(reader);
	return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	static struct buffer whole, pieces, lines;
	if (count == 0)
		return 0;
	const char *path = fuzz_file("stream", bytes + 1, count - 1);
	enum status status = read_all(path, bytes[0] & 1, 256, &whole);
	BUG_IF(status != OK && status != ERR_DATA && status != ERR_RESOURCE);
	enum status again = read_all(path, bytes[0] & 1, 1 + bytes[0] / 2, &pieces);
	BUG_IF(status == OK && whole.size < MOST && (again != OK || pieces.size != whole.size));
	enum status third = read_lines(path, 16 + bytes[0], &lines);
	if (status != OK || whole.size >= MOST || (bytes[0] & 1))
		return 0;
	BUG_IF(third != OK || memcmp(buffer_string(&whole), buffer_string(&pieces), whole.size) != 0);
	if (line_ends_are_cr(buffer_string(&whole), whole.size, true))
		line_ends_mend(whole.data, whole.size);
	bool ended = whole.size == 0 || whole.data[whole.size - 1] == '\n';
	BUG_IF(lines.size != whole.size + !ended || memcmp(buffer_string(&whole), buffer_string(&lines), whole.size) != 0);
	return 0;
}
