/* Block-wise bzip2 decoding against libbz2 itself: packed files as they come (first byte even), or the bytes that follow,
 * first packed by the target: a block ends at each 0xFF and a stream at each 0xFE, with zeros between streams. */
#include <bzlib.h>
#include "base/buffer.h"
#include "formats/bzip2_blocks.h"
#define POOL_BZIP2
#include "pool.h"

#define MOST ((size_t)1 << 20)

FUZZ_SEEDS(FUZZ_SEED("\0BZh9\x17\x72\x45\x38\x50\x90\0\0\0\0"),
	   FUZZ_SEED("\0BZh91AY&SY\x94$|\x0e\0\0\0\x81\0 \0 \0!\0\x82\xb1w$S\x85\x09\x09"
		     "B@"),
	   FUZZ_SEED("\1one block"), FUZZ_SEED("\3one\xfftwo\xffthree\xff"),
	   FUZZ_SEED("\5one\xff\xfe\xfetwo\xfe\xffthree\xff\xff"))

struct source {
	const char *bytes;
	size_t size, at, piece;
};

static enum status read_source(void *context, void *bytes, size_t capacity, size_t *out_count)
{
	struct source *source = context;
	size_t count = source->size - source->at;
	count = count < capacity ? count : capacity;
	count = count < source->piece ? count : source->piece;
	memcpy(bytes, source->bytes + source->at, count);
	source->at += count;
	*out_count = count;
	return OK;
}

static enum status unpack_by_blocks(const char *bytes, size_t size, size_t piece, struct buffer *out)
{
	struct source source = {bytes, size, 0, piece};
	struct bzip2_blocks *blocks;
	char text[1024];
	size_t count = 1;
	buffer_clear(out);
	TRY(bzip2_blocks_open(&blocks, "fuzz", 1, &source, read_source));
	enum status status = OK;
	while (status == OK && count > 0 && out->size < MOST) {
		status = bzip2_blocks_read(blocks, text, sizeof text, &count);
		if (status == OK)
			buffer_append(out, text, count);
	}
	BUG_IF(bzip2_blocks_position(blocks) < 0 || bzip2_blocks_position(blocks) > (int64_t)size);
	bzip2_blocks_close(blocks);
	return status;
}

/* Unpacks concatenated streams with libbz2; there may be zeros between them. */
static bool unpack_by_library(const char *bytes, size_t size, struct buffer *out)
{
	size_t at = 0;
	buffer_clear(out);
	do {
		bz_stream bz = {0};
		char text[1024];
		int result = BZ_OK;
		BUG_IF(BZ2_bzDecompressInit(&bz, 0, 0) != BZ_OK);
		bz.next_in = (char *)(uintptr_t)bytes + at;
		bz.avail_in = (unsigned)(size - at);
		do {
			bz.next_out = text;
			bz.avail_out = sizeof text;
			result = BZ2_bzDecompress(&bz);
			buffer_append(out, text, sizeof text - bz.avail_out);
		} while (result == BZ_OK && out->size < MOST && (bz.avail_in > 0 || bz.avail_out == 0));
		at = size - bz.avail_in;
		BZ2_bzDecompressEnd(&bz);
		if (result != BZ_STREAM_END)
			return false;
		while (at < size && bytes[at] == 0)
			at++;
	} while (at < size);
	return true;
}

static void flush(bz_stream *bz, int action, struct buffer *out)
{
	char packed[1024];
	int result;
	do {
		bz->next_out = packed;
		bz->avail_out = sizeof packed;
		result = BZ2_bzCompress(bz, action);
		BUG_IF(result < 0);
		buffer_append(out, packed, sizeof packed - bz->avail_out);
	} while (result == BZ_FLUSH_OK || result == BZ_FINISH_OK);
}

static void pack(const char *bytes, size_t size, struct buffer *out, struct buffer *text)
{
	bz_stream bz = {0};
	buffer_clear(out);
	buffer_clear(text);
	BUG_IF(BZ2_bzCompressInit(&bz, 1, 0, 0) != BZ_OK);
	for (size_t at = 0; at < size;) {
		size_t end = at;
		while (end < size && (unsigned char)bytes[end] < 0xfe)
			end++;
		buffer_append(text, bytes + at, end - at);
		bz.next_in = (char *)(uintptr_t)bytes + at;
		bz.avail_in = (unsigned)(end - at);
		if (end < size && (unsigned char)bytes[end] == 0xfe) {
			flush(&bz, BZ_FINISH, out);
			BZ2_bzCompressEnd(&bz);
			bz = (bz_stream){0};
			BUG_IF(BZ2_bzCompressInit(&bz, 1, 0, 0) != BZ_OK);
			buffer_append(out, "\0\0\0", end % 4);
		} else if (end < size || bz.avail_in > 0) {
			flush(&bz, BZ_FLUSH, out);
		}
		at = end + 1;
	}
	flush(&bz, BZ_FINISH, out);
	BZ2_bzCompressEnd(&bz);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	static struct buffer packed, text, expected, found;
	if (count < 2)
		return 0;
	size_t piece = 1 + bytes[0] / 2;
	char *copy = fuzz_copy(bytes + 1, --count);
	if (bytes[0] & 1) {
		pack(copy, count, &packed, &text);
		BUG_IF(unpack_by_blocks(buffer_string(&packed), packed.size, piece, &found) != OK);
		BUG_IF(found.size != text.size || memcmp(buffer_string(&found), buffer_string(&text), text.size) != 0);
	} else {
		bool right = unpack_by_library(copy, count, &expected);
		enum status status = unpack_by_blocks(copy, count, piece, &found);
		if (expected.size < MOST)
			BUG_IF(right != (status == OK) || found.size > expected.size || (right && found.size != expected.size));
		size_t common = found.size < expected.size ? found.size : expected.size;
		BUG_IF(memcmp(buffer_string(&found), buffer_string(&expected), common) != 0);
	}
	free(copy);
	return 0;
}
