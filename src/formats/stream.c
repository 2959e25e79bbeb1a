/* Compressed and plain byte streams behind one read call.
 *
 * A stream holds one block of input as it is in the file. Each decoder is one row of `decoders`: its name, how to recognize its
 * format, and the functions to create, restart, run, and destroy it. `decode` consumes input and produces output until one of
 * them runs out, and reports when a member (a gzip file may consist of several) has ended. Refilling, further members, padding,
 * and truncation are handled for all of them in stream_read().
 */
#include "formats/stream.h"

#include <bzlib.h>
#include <errno.h>
#include <fcntl.h>
#include <lzma.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>
#include "base/file.h"
#include "base/memory.h"
#include "base/missing_path.h"
#include "base/stop.h"
#include "formats/bzip2_blocks.h"

#define MAGIC_BYTES 16                   /* enough to recognize every format below */
#define WINDOW_LIMIT ((uint64_t)2 << 30) /* largest window that a file may request */
#define ZSTD_WINDOW_LOG_LIMIT 31

struct decoder;

struct stream {
	char *path;
	int descriptor;
	const struct decoder *decoder;
	void *state;                 /* the decoder's */
	struct bzip2_blocks *blocks; /* if not NULL, this decodes instead */
	bool waits;                  /* not a regular file: what is read next may not be there yet */
	bool member_open;            /* inside a member: if the file ended now, it would be truncated */
	bool input_ended, ended;
	int64_t input_offset;    /* offset in the file of input[input_begin] */
	struct file_stamp stamp; /* the file when it was opened */
	size_t input_begin, input_end;
	unsigned char input[STREAM_BLOCK_BYTES];
};

/* One call of a decoder: what it may read and write; it advances these by what it used. */
struct exchange {
	const unsigned char *input;
	size_t input_size;
	unsigned char *output;
	size_t output_size;
	bool member_ended;
	const char *problem; /* set if the data is corrupt: the library's message */
	bool out_of_memory;
};

struct decoder {
	const char *name;
	bool (*recognize)(const unsigned char *magic, size_t size);
	void *(*create)(void);
	bool (*restart)(void *state); /* before each member after the first */
	void (*decode)(void *state, struct exchange *exchange);
	void (*destroy)(void *state);
};

static bool begins_with(const unsigned char *magic, size_t size, const char *prefix, size_t prefix_size)
{
	return size >= prefix_size && memcmp(magic, prefix, prefix_size) == 0;
}

/* gzip */

static bool gzip_recognize(const unsigned char *magic, size_t size)
{
	return begins_with(magic, size, "\x1f\x8b\x08", 3);
}

static void *gzip_create(void)
{
	z_stream *z = calloc(1, sizeof *z);
	if (z && inflateInit2(z, 15 + 16) != Z_OK) { /* 15: any window size; 16: gzip header and CRC */
		free(z);
		return NULL;
	}
	return z;
}

static bool gzip_restart(void *state)
{
	return inflateReset(state) == Z_OK;
}

static void gzip_decode(void *state, struct exchange *exchange)
{
	z_stream *z = state;
	/* zlib counts in 32 bits: a block of input fits, and output is limited per call. */
	uInt output = exchange->output_size > 1u << 30 ? 1u << 30 : (uInt)exchange->output_size;
	z->next_in = (unsigned char *)exchange->input;
	z->avail_in = (uInt)exchange->input_size;
	z->next_out = exchange->output;
	z->avail_out = output;
	int result = inflate(z, Z_NO_FLUSH);
	exchange->input += exchange->input_size - z->avail_in;
	exchange->input_size = z->avail_in;
	exchange->output += output - z->avail_out;
	exchange->output_size -= output - z->avail_out;
	exchange->member_ended = result == Z_STREAM_END;
	if (result == Z_MEM_ERROR)
		exchange->out_of_memory = true;
	else if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
		exchange->problem = z->msg ? z->msg : "invalid data";
}

static void gzip_destroy(void *state)
{
	inflateEnd(state);
	free(state);
}

/* bzip2 */

static bool bzip2_recognize(const unsigned char *magic, size_t size)
{
	/* "BZh9" could be text, but not the block or end mark that follows. */
	return begins_with(magic, size, "BZh", 3) && size >= 10 && magic[3] >= '1' && magic[3] <= '9' &&
	       (memcmp(magic + 4, "\x31\x41\x59\x26\x53\x59", 6) == 0 || memcmp(magic + 4, "\x17\x72\x45\x38\x50\x90", 6) == 0);
}

static void *bzip2_create(void)
{
	bz_stream *bz = calloc(1, sizeof *bz);
	if (bz && BZ2_bzDecompressInit(bz, 0, 0) != BZ_OK) {
		free(bz);
		return NULL;
	}
	return bz;
}

static bool bzip2_restart(void *state)
{
	bz_stream *bz = state;
	BZ2_bzDecompressEnd(bz);
	*bz = (bz_stream){0};
	return BZ2_bzDecompressInit(bz, 0, 0) == BZ_OK;
}

static void bzip2_decode(void *state, struct exchange *exchange)
{
	bz_stream *bz = state;
	unsigned int output = exchange->output_size > 1u << 30 ? 1u << 30 : (unsigned int)exchange->output_size;
	bz->next_in = (char *)exchange->input;
	bz->avail_in = (unsigned int)exchange->input_size;
	bz->next_out = (char *)exchange->output;
	bz->avail_out = output;
	int result = BZ2_bzDecompress(bz);
	exchange->input += exchange->input_size - bz->avail_in;
	exchange->input_size = bz->avail_in;
	exchange->output += output - bz->avail_out;
	exchange->output_size -= output - bz->avail_out;
	exchange->member_ended = result == BZ_STREAM_END;
	if (result == BZ_MEM_ERROR)
		exchange->out_of_memory = true;
	else if (result == BZ_DATA_ERROR_MAGIC)
		exchange->problem = "not a bzip2 header";
	else if (result != BZ_OK && result != BZ_STREAM_END)
		exchange->problem = "checksum or structure of a block is wrong";
}

static void bzip2_destroy(void *state)
{
	BZ2_bzDecompressEnd(state);
	free(state);
}

/* zstd */

static bool zstd_recognize(const unsigned char *magic, size_t size)
{
	/* A frame or a skippable frame (0x184D2A50 to 5F), with which pzstd files begin. */
	return begins_with(magic, size, "\x28\xb5\x2f\xfd", 4) ||
	       (size >= 4 && (magic[0] & 0xf0) == 0x50 && memcmp(magic + 1, "\x2a\x4d\x18", 3) == 0);
}

static void *zstd_create(void)
{
	ZSTD_DStream *zstd = ZSTD_createDStream();
	if (zstd && ZSTD_isError(ZSTD_DCtx_setParameter(zstd, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG_LIMIT))) {
		ZSTD_freeDStream(zstd);
		return NULL;
	}
	return zstd;
}

static bool zstd_restart(void *state)
{
	return !ZSTD_isError(ZSTD_DCtx_reset(state, ZSTD_reset_session_only));
}

static void zstd_decode(void *state, struct exchange *exchange)
{
	ZSTD_inBuffer input = {exchange->input, exchange->input_size, 0};
	ZSTD_outBuffer output = {exchange->output, exchange->output_size, 0};
	size_t result = ZSTD_decompressStream(state, &output, &input);
	exchange->input += input.pos;
	exchange->input_size -= input.pos;
	exchange->output += output.pos;
	exchange->output_size -= output.pos;
	exchange->member_ended = result == 0;
	if (ZSTD_isError(result)) {
		ZSTD_ErrorCode code = ZSTD_getErrorCode(result);
		if (code == ZSTD_error_memory_allocation || code == ZSTD_error_frameParameter_windowTooLarge)
			exchange->out_of_memory = true;
		else
			exchange->problem = ZSTD_getErrorName(result);
	}
}

static void zstd_destroy(void *state)
{
	ZSTD_freeDStream(state);
}

/* xz */

static bool xz_recognize(const unsigned char *magic, size_t size)
{
	return begins_with(magic, size,
			   "\xfd"
			   "7zXZ\0",
			   6);
}

static bool xz_start(lzma_stream *xz)
{
	return lzma_stream_decoder(xz, WINDOW_LIMIT + (64 << 20), 0) == LZMA_OK;
}

static void *xz_create(void)
{
	lzma_stream *xz = calloc(1, sizeof *xz); /* all zero is LZMA_STREAM_INIT */
	if (xz && !xz_start(xz)) {
		free(xz);
		return NULL;
	}
	return xz;
}

static bool xz_restart(void *state)
{
	return xz_start(state); /* reuses the memory of the previous stream */
}

static void xz_decode(void *state, struct exchange *exchange)
{
	lzma_stream *xz = state;
	xz->next_in = exchange->input;
	xz->avail_in = exchange->input_size;
	xz->next_out = exchange->output;
	xz->avail_out = exchange->output_size;
	lzma_ret result = lzma_code(xz, LZMA_RUN);
	exchange->input = xz->next_in;
	exchange->input_size = xz->avail_in;
	exchange->output = xz->next_out;
	exchange->output_size = xz->avail_out;
	exchange->member_ended = result == LZMA_STREAM_END;
	switch (result) {
	case LZMA_OK:
	case LZMA_STREAM_END:
	case LZMA_NO_CHECK:
	case LZMA_UNSUPPORTED_CHECK:
	case LZMA_BUF_ERROR: /* no progress possible: the caller refills or finds the file truncated */ break;
	case LZMA_MEM_ERROR:
	case LZMA_MEMLIMIT_ERROR: exchange->out_of_memory = true; break;
	case LZMA_FORMAT_ERROR: exchange->problem = "not an xz header"; break;
	case LZMA_OPTIONS_ERROR: exchange->problem = "unsupported filter"; break;
	default: exchange->problem = "checksum or structure of a block is wrong";
	}
}

static void xz_destroy(void *state)
{
	lzma_end(state);
	free(state);
}

static const struct decoder decoders[] = {
	{"gzip", gzip_recognize, gzip_create, gzip_restart, gzip_decode, gzip_destroy},
	{"bzip2", bzip2_recognize, bzip2_create, bzip2_restart, bzip2_decode, bzip2_destroy},
	{"zstd", zstd_recognize, zstd_create, zstd_restart, zstd_decode, zstd_destroy},
	{"xz", xz_recognize, xz_create, xz_restart, xz_decode, xz_destroy},
};

#define UNPACK "unpack it to text first; plain, gzip, bzip2, zstd and xz files are read"

/* Files that users give by mistake: it is better to name the format than to read noise. */
static const struct {
	const char *magic;
	size_t size;
	const char *name, *hint;
} archives[] = {
	{"PK\3\4", 4, "a zip archive", UNPACK},
	{"7z\xbc\xaf\x27\x1c", 6, "a 7z archive", UNPACK},
	{"Rar!\x1a\7", 6, "a rar archive", UNPACK},
	{"\x04\x22\x4d\x18", 4, "an lz4 file", UNPACK},
	{"PAR1", 4, "a Parquet file",
	 "`python3 -c 'import sys, pandas; pandas.read_parquet(sys.argv[1]).to_json(sys.argv[2], orient=\"records\", "
	 "lines=True)' FILE.parquet FILE.jsonl` writes it as JSON lines, which bertc reads (pandas needs pyarrow for it)"},
	{"%PDF-", 5, "a PDF file", "pdftotext FILE.pdf FILE.txt writes its text"},
};

/* At the end, the file must be unchanged since it was opened: if it was cut or kept growing, what was read is undefined. */
static enum status check_unchanged(const struct stream *stream)
{
	struct file_stamp now = file_stamp_of(stream->descriptor);
	return file_stamp_check(stream->path, &stream->stamp, &now, "while it was read");
}

/* Reads into the rest of the input. Sets input_ended at the end of the file. Whoever writes to a pipe may send nothing for a
 * long time, or not have opened it yet: a request to stop ends the wait. */
static enum status fill_input(struct stream *stream)
{
	struct pollfd from = {.fd = stream->descriptor, .events = POLLIN};
	ssize_t count;
	if (stream->input_begin == stream->input_end)
		stream->input_begin = stream->input_end = 0;
	while (stream->waits && poll(&from, 1, 200) <= 0)
		TRY(stop_check());
	do
		count = read(stream->descriptor, stream->input + stream->input_end, sizeof stream->input - stream->input_end);
	while (count < 0 && errno == EINTR);
	if (count < 0)
		return error_set_errno(ERR_RESOURCE, "cannot read '%s' at byte %lld", stream->path,
				       (long long)stream->input_offset);
	stream->input_end += (size_t)count;
	stream->input_ended = count == 0;
	return stream->input_ended ? check_unchanged(stream) : OK;
}

/* Whether it is a short line of text, whose sender may be waiting for an answer: no compressed file begins like that. */
static bool is_line(const unsigned char *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (bytes[i] < ' ' && bytes[i] != '\t' && bytes[i] != '\r' && bytes[i] != '\n')
			return false;
	return memchr(bytes, '\n', size) != NULL;
}

/* From a pipe, the beginning of the file may come in small pieces; recognition needs all of it. */
static enum status read_magic(struct stream *stream)
{
	while (stream->input_end < MAGIC_BYTES && !stream->input_ended && !is_line(stream->input, stream->input_end))
		TRY(fill_input(stream));
	return OK;
}

bool stream_is_compressed(const unsigned char *bytes, size_t size)
{
	bool compressed = false;
	for (size_t i = 0; i < sizeof decoders / sizeof *decoders; i++)
		compressed = compressed || decoders[i].recognize(bytes, size);
	return compressed;
}

static enum status choose_decoder(struct stream *stream)
{
	TRY(read_magic(stream));
	for (size_t i = 0; i < sizeof archives / sizeof *archives; i++) {
		if (begins_with(stream->input, stream->input_end, archives[i].magic, archives[i].size))
			return error_hinted(error_set(ERR_DATA, "'%s' is %s, not text", stream->path, archives[i].name), "%s",
					    archives[i].hint);
	}
	for (size_t i = 0; i < sizeof decoders / sizeof *decoders; i++) {
		if (decoders[i].recognize(stream->input, stream->input_end)) {
			stream->decoder = &decoders[i];
			stream->state = decoders[i].create();
			if (!stream->state)
				return error_set(ERR_RESOURCE, "'%s': not enough memory for its %s decoder", stream->path,
						 decoders[i].name);
			stream->member_open = true;
			break;
		}
	}
	return OK;
}

static enum status cannot_open(const char *path)
{
	bool wrong_path = errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG;
	enum status status = error_set_errno(wrong_path ? ERR_USAGE : ERR_RESOURCE, "cannot open '%s'", path);
	if (wrong_path)
		hint_at_missing(path);
	return status;
}

static enum status is_folder(const char *path)
{
	return error_set(ERR_USAGE, "'%s' is a folder where a file is needed", path);
}

enum status stream_check_paths(const char *const *paths, int64_t count)
{
	struct stat info;
	for (int64_t i = 0; i < count; i++) {
		if (strcmp(paths[i], "-") == 0)
			continue;
		if (access(paths[i], R_OK) != 0)
			return cannot_open(paths[i]);
		if (stat(paths[i], &info) == 0 && S_ISDIR(info.st_mode))
			return is_folder(paths[i]);
	}
	return OK;
}

enum status stream_open(struct stream **out, const char *path)
{
	struct stream *stream;
	struct stat info;
	bool standard_input = strcmp(path, "-") == 0;
	enum status status = OK;

	*out = NULL;
	TRY(memory_new(&stream, 1, sizeof *stream, "stream"));
	stream->descriptor = -1;
	stream->path = strdup(standard_input ? "standard input" : path);
	if (!stream->path) {
		status = error_set(ERR_RESOURCE, "not enough memory to open '%s'", path);
		goto failed;
	}
	/* To open a pipe may take as long as to read from it. */
	stream->descriptor = standard_input ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (stream->descriptor < 0) {
		status = cannot_open(path);
		goto failed;
	}
	if (fstat(stream->descriptor, &info) == 0) {
		if (S_ISDIR(info.st_mode)) {
			status = is_folder(stream->path);
			goto failed;
		}
		stream->waits = !S_ISREG(info.st_mode);
		if (stream->waits && !standard_input)
			fcntl(stream->descriptor, F_SETFL, O_RDONLY);
	}
	stream->stamp = file_stamp_of(stream->descriptor);
	TRY_GOTO(choose_decoder(stream), failed);
	*out = stream;
	return OK;
failed:
	stream_close(stream);
	return status;
}

/* Marks input bytes as used. */
static void consume(struct stream *stream, size_t count)
{
	stream->input_begin += count;
	stream->input_offset += (int64_t)count;
}

/* Between members: the file may end, continue with another member, or be padded with zeros to its end. */
static enum status next_member(struct stream *stream)
{
	const struct decoder *decoder = stream->decoder;
	size_t left;

	for (;;) {
		if (stream->input_begin == stream->input_end) {
			TRY(fill_input(stream));
			if (stream->input_ended) {
				stream->ended = true;
				return OK;
			}
		}
		if (stream->input[stream->input_begin] != 0)
			break;
		consume(stream, 1);
	}
	/* The magic may straddle two blocks of input: move what is left to the front and read more. */
	left = stream->input_end - stream->input_begin;
	if (left < MAGIC_BYTES) {
		memmove(stream->input, stream->input + stream->input_begin, left);
		stream->input_begin = 0;
		stream->input_end = left;
		TRY(read_magic(stream));
		left = stream->input_end;
	}
	if (!decoder->recognize(stream->input + stream->input_begin, left))
		return error_hinted(error_set(ERR_DATA, "'%s': data at byte %lld, after the end of the %s stream", stream->path,
					      (long long)stream->input_offset, decoder->name),
				    "the file may be damaged, or two files of different kinds may have been joined");
	if (!decoder->restart(stream->state))
		return error_set(ERR_RESOURCE, "'%s': not enough memory for its %s decoder", stream->path, decoder->name);
	stream->member_open = true;
	return OK;
}

static enum status read_plain(struct stream *stream, void *bytes, size_t capacity, size_t *out_count)
{
	if (stream->input_begin == stream->input_end)
		TRY(fill_input(stream));
	size_t count = stream->input_end - stream->input_begin;
	count = count < capacity ? count : capacity;
	memcpy(bytes, stream->input + stream->input_begin, count);
	consume(stream, count);
	*out_count = count;
	return OK;
}

static enum status read_packed(void *context, void *bytes, size_t capacity, size_t *out_count)
{
	return read_plain(context, bytes, capacity, out_count);
}

enum status stream_read_ahead(struct stream *stream, int threads)
{
	if (!stream->decoder || stream->decoder->decode != bzip2_decode)
		return OK;
	return bzip2_blocks_open(&stream->blocks, stream->path, threads, stream, read_packed);
}

enum status stream_read(struct stream *stream, void *bytes, size_t capacity, size_t *out_count)
{
	const struct decoder *decoder = stream->decoder;

	BUG_IF(capacity == 0);
	*out_count = 0;
	if (!decoder)
		return read_plain(stream, bytes, capacity, out_count);
	if (stream->blocks)
		return bzip2_blocks_read(stream->blocks, bytes, capacity, out_count);
	while (*out_count == 0 && !stream->ended) {
		if (!stream->member_open) {
			TRY(next_member(stream));
			continue;
		}
		if (stream->input_begin == stream->input_end && !stream->input_ended)
			TRY(fill_input(stream));
		struct exchange exchange = {.input = stream->input + stream->input_begin,
					    .input_size = stream->input_end - stream->input_begin,
					    .output = bytes,
					    .output_size = capacity};
		size_t input_before = exchange.input_size;
		decoder->decode(stream->state, &exchange);
		consume(stream, input_before - exchange.input_size);
		*out_count = capacity - exchange.output_size;
		if (exchange.out_of_memory)
			return error_hinted(
				error_set(ERR_RESOURCE, "'%s': not enough memory to decode its %s data at byte %lld",
					  stream->path, decoder->name, (long long)stream->input_offset),
				"it was packed with a history of hundreds of megabytes or more; pack it again without --long "
				"or extreme settings");
		if (exchange.problem)
			return error_hinted(error_set(ERR_DATA, "'%s': corrupt %s data at byte %lld: %s", stream->path,
						      decoder->name, (long long)stream->input_offset, exchange.problem),
					    "fetch or make the file again, or leave it out");
		if (exchange.member_ended) {
			stream->member_open = false;
		} else if (stream->input_ended && *out_count == 0) {
			return error_hinted(error_set(ERR_DATA, "'%s': truncated %s data: the file ends at byte %lld",
						      stream->path, decoder->name, (long long)stream->input_offset),
					    "fetch or make the file again, or leave it out");
		}
	}
	return OK;
}

const char *stream_path(const struct stream *stream)
{
	return stream->path;
}

int64_t stream_position(const struct stream *stream)
{
	return stream->blocks ? bzip2_blocks_position(stream->blocks) : stream->input_offset;
}

void stream_close(struct stream *stream)
{
	if (!stream)
		return;
	bzip2_blocks_close(stream->blocks);
	if (stream->state)
		stream->decoder->destroy(stream->state);
	if (stream->descriptor > STDERR_FILENO)
		close(stream->descriptor);
	free(stream->path);
	free(stream);
}
