/* Finds the blocks of a bzip2 stream, has helper threads decode them, and checks the whole. */
#include "formats/bzip2_blocks.h"

#include <bzlib.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "base/buffer.h"
#include "base/memory.h"
#include "base/work_line.h"
#include "formats/stream.h"
#include "formats/stream.h"

#define BLOCK_MARK 0x314159265359u /* 48 bits: pi */
#define END_MARK 0x177245385090u   /* the square root of pi */
#define MARK_BITS 48
#define BLOCK_LIMIT ((size_t)4 << 20)   /* compressed; 900 kB of incompressible data take little more than that */
#define OUTPUT_LIMIT ((size_t)64 << 20) /* decompressed: 900 kB of run lengths expand to 46 MB */

/* One block: first compressed, made into a stream of its own; then decompressed. */
struct block {
	struct buffer packed;
	int64_t offset, end; /* byte offsets in the file, for messages and progress */
	size_t bits;         /* of the block itself */
	char level;
	char *output;
	int64_t capacity;
	size_t size, given;
	int result; /* of libbz2 */
};

struct bzip2_blocks {
	const char *name;
	void *context;
	enum status (*read)(void *context, void *bytes, size_t capacity, size_t *out_count);
	struct work_line *line;
	struct block *slots;
	int slot_count;
	struct block *current; /* the block whose output is being returned */
	int64_t position;

	/* Compressed bytes not yet cut into blocks: `input` begins at byte `base` of the file. */
	struct buffer input;
	int64_t base;
	bool input_ended;
	size_t bit;         /* where the next block or end mark begins, in bits of `input` */
	bool within_stream; /* `bit` is at a mark; otherwise it is between streams, at a byte boundary */
	bool first_stream;
	char level;
	uint32_t stream_check; /* of the blocks so far */
	bool finished;
	enum status pending; /* an error found while cutting, returned when its turn comes */
	struct error pending_error;
};

static uint64_t bits_at(const struct bzip2_blocks *b, size_t bit, int count)
{
	uint64_t value = 0;
	for (int i = 0; i < count; i += 8) {
		size_t byte = (bit + (size_t)i) / 8, shift = bit % 8;
		const unsigned char *p = (const unsigned char *)b->input.data + byte;
		unsigned two = (unsigned)p[0] << 8 | (byte + 1 < b->input.size ? p[1] : 0);
		value = value << 8 | (two >> (8 - shift) & 0xFF);
	}
	return value;
}

static enum status read_input(struct bzip2_blocks *b)
{
	size_t count;
	char *bytes = malloc(STREAM_BLOCK_BYTES);

	if (!bytes)
		return error_set(ERR_RESOURCE, "'%s': not enough memory to read it", b->name);
	enum status status = b->read(b->context, bytes, STREAM_BLOCK_BYTES, &count);
	if (status == OK) {
		buffer_append(&b->input, bytes, count);
		b->input_ended = count == 0;
		status = buffer_status(&b->input);
	}
	free(bytes);
	return status;
}

/* Ensures that `bytes` bytes are present from the byte that contains `bit` on, if the file has that many. */
static enum status need(struct bzip2_blocks *b, size_t bit, size_t bytes)
{
	while (b->input.size < bit / 8 + bytes && !b->input_ended)
		TRY(read_input(b));
	return OK;
}

static void drop_input(struct bzip2_blocks *b)
{
	size_t bytes = b->bit / 8;
	if (bytes < STREAM_BLOCK_BYTES)
		return;
	memmove(b->input.data, b->input.data + bytes, b->input.size - bytes);
	b->input.size -= bytes;
	b->base += (int64_t)bytes;
	b->bit -= bytes * 8;
}

static enum status truncated(const struct bzip2_blocks *b)
{
	return error_hinted(error_set(ERR_DATA, "'%s': truncated bzip2 data: the file ends at byte %lld", b->name,
				      (long long)(b->base + (int64_t)b->input.size)),
			    "fetch or make the file again, or leave it out");
}

static enum status corrupt(const struct bzip2_blocks *b, int64_t offset, const char *reason)
{
	return error_hinted(error_set(ERR_DATA, "'%s': corrupt bzip2 data at byte %lld: %s", b->name, (long long)offset, reason),
			    "fetch or make the file again, or leave it out");
}

/* For each pair of bytes: at which of the 8 bit alignments they may be the second and third bytes of a mark. */
static unsigned char mark_table[65536];

static void make_mark_table(void)
{
	static const uint64_t marks[] = {BLOCK_MARK, END_MARK};
	for (int m = 0; m < 2; m++)
		for (int shift = 0; shift < 8; shift++) /* the mark begins at bit `shift` of its first byte */
			mark_table[marks[m] >> (MARK_BITS - 24 + shift) & 0xFFFF] |= (unsigned char)(1u << shift);
}

/* Whether there is a mark at this bit. An unaligned mark spans 7 bytes. */
static bool is_mark(const struct bzip2_blocks *b, size_t bit)
{
	if (bit / 8 + 7 > b->input.size)
		return false;
	uint64_t value = bits_at(b, bit, MARK_BITS);
	return value == BLOCK_MARK || value == END_MARK;
}

/* An end mark is genuine if its stream checksum is right, or if what follows can only follow the end of a stream. */
static enum status is_end(struct bzip2_blocks *b, size_t bit, uint32_t check, bool *out)
{
	TRY(need(b, bit, 7 + 4 + 16));
	size_t byte = (bit + MARK_BITS + 32 + 7) / 8;
	*out = byte > b->input.size || bits_at(b, bit + MARK_BITS, 32) == check || byte == b->input.size ||
	       (b->input.size - byte >= 4 && memcmp(b->input.data + byte, "BZh", 3) == 0);
	return OK;
}

/* Finds the first mark from `bit` on; *out_bit is SIZE_MAX if the file ends before one. */
static enum status find_mark(struct bzip2_blocks *b, size_t bit, size_t *out_bit)
{
	size_t byte = bit / 8;

	*out_bit = SIZE_MAX;
	for (;;) {
		const unsigned char *bytes = (const unsigned char *)b->input.data;
		for (; byte + 7 <= b->input.size; byte++) {
			unsigned shifts = mark_table[(unsigned)bytes[byte + 1] << 8 | bytes[byte + 2]];
			for (size_t shift = 0; shifts; shift++, shifts >>= 1) {
				size_t at = byte * 8 + shift;
				if ((shifts & 1) && at >= bit && is_mark(b, at)) {
					*out_bit = at;
					return OK;
				}
			}
		}
		if (b->input_ended)
			return OK;
		if (byte - bit / 8 > BLOCK_LIMIT)
			return corrupt(b, b->base + (int64_t)(bit / 8), "a block that does not end");
		TRY(read_input(b));
	}
}

/* Appends `count` bits to `out`, `*used` bits of whose last byte are in use (0: all). */
static void append_bits(struct buffer *out, unsigned *used, uint64_t value, int count)
{
	while (count-- > 0) {
		if (*used == 0)
			buffer_char(out, 0);
		if (value >> count & 1 && out->size)
			out->data[out->size - 1] |= (char)(0x80u >> *used);
		*used = (*used + 1) % 8;
	}
}

/* Makes a stream of one block, whose `bits` bits begin at bit `shift` of `from`. */
static void make_stream(struct buffer *out, char level, const unsigned char *from, size_t shift, size_t bits)
{
	unsigned used = 0;
	uint32_t check = 0;

	buffer_clear(out);
	buffer_text(out, "BZh");
	buffer_char(out, level);
	for (size_t done = 0; done < bits; done += 8, from++) {
		unsigned char byte = (unsigned char)(shift ? from[0] << shift | from[1] >> (8 - shift) : from[0]);
		size_t left = bits - done;
		if (left >= 8)
			buffer_char(out, (char)byte);
		else
			append_bits(out, &used, byte >> (8 - left), (int)left);
	}
	for (int i = 0; i < 4; i++)
		check = check << 8 | (unsigned char)(out->size > 14 ? out->data[10 + i] : 0);
	append_bits(out, &used, END_MARK, MARK_BITS);
	append_bits(out, &used, check, 32);
}

static void decode(struct block *block)
{
	bz_stream bz = {0};

	block->size = block->given = 0;
	if (block->packed.failed || BZ2_bzDecompressInit(&bz, 0, 0) != BZ_OK) {
		block->result = BZ_MEM_ERROR;
		return;
	}
	bz.next_in = block->packed.data;
	bz.avail_in = (unsigned)block->packed.size;
	do {
		if (block->size >= OUTPUT_LIMIT ||
		    memory_grow(&block->output, &block->capacity, (int64_t)(block->size + 4 * STREAM_BLOCK_BYTES), 1,
				"a block of bzip2") != OK) {
			block->result = BZ_MEM_ERROR;
			break;
		}
		bz.next_out = block->output + block->size;
		bz.avail_out = (unsigned)((size_t)block->capacity - block->size);
		block->result = BZ2_bzDecompress(&bz);
		block->size = (size_t)block->capacity - bz.avail_out;
	} while (block->result == BZ_OK && (bz.avail_in > 0 || bz.avail_out == 0));
	BZ2_bzDecompressEnd(&bz);
}

static void work(void *slot)
{
	decode(slot);
}

enum status bzip2_blocks_open(struct bzip2_blocks **out, const char *name, int threads, void *context,
			      enum status (*read)(void *context, void *bytes, size_t capacity, size_t *out_count))
{
	struct bzip2_blocks *b;

	*out = NULL;
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, make_mark_table);
	TRY(memory_new(&b, 1, sizeof *b, "bzip2 decoder"));
	b->name = name;
	b->context = context;
	b->read = read;
	b->first_stream = true;
	b->slot_count = 2 * threads + 1;
	enum status status = memory_new(&b->slots, b->slot_count, sizeof *b->slots, "bzip2 decoder");
	if (status == OK)
		status = work_line_open(&b->line, threads - 1, b->slots, b->slot_count, sizeof *b->slots, work);
	if (status != OK)
		bzip2_blocks_close(b);
	else
		*out = b;
	return status;
}

void bzip2_blocks_close(struct bzip2_blocks *b)
{
	if (!b)
		return;
	work_line_close(b->line);
	for (int i = 0; i < b->slot_count && b->slots; i++) {
		buffer_release(&b->slots[i].packed);
		free(b->slots[i].output);
	}
	free(b->slots);
	buffer_release(&b->input);
	free(b);
}

int64_t bzip2_blocks_position(const struct bzip2_blocks *b)
{
	return b->position;
}

/* Between streams: what follows is another stream, zeros up to the end of the file, or the end. */
static enum status begin_stream(struct bzip2_blocks *b)
{
	b->bit = (b->bit + 7) / 8 * 8;
	for (;;) {
		TRY(need(b, b->bit, 16));
		if (b->bit / 8 >= b->input.size) {
			b->finished = true;
			return OK;
		}
		if (b->input.data[b->bit / 8] != 0 || b->first_stream)
			break;
		b->bit += 8;
		drop_input(b);
	}
	const char *bytes = b->input.data + b->bit / 8;
	size_t left = b->input.size - b->bit / 8;
	if (left < 4 || memcmp(bytes, "BZh", 3) != 0 || bytes[3] < '1' || bytes[3] > '9')
		return error_hinted(error_set(ERR_DATA, "'%s': data at byte %lld, after the end of the bzip2 stream", b->name,
					      (long long)(b->base + (int64_t)(b->bit / 8))),
				    "the file may be damaged, or two files of different kinds may have been joined");
	if (left < 14)
		return truncated(b);
	b->level = bytes[3];
	b->bit += 32;
	b->first_stream = false;
	b->within_stream = true;
	b->stream_check = 0;
	return is_mark(b, b->bit) ? OK : corrupt(b, b->base + (int64_t)(b->bit / 8), "no block where one should begin");
}

static enum status end_stream(struct bzip2_blocks *b)
{
	TRY(need(b, b->bit, 12));
	if ((b->bit + MARK_BITS + 32 + 7) / 8 > b->input.size)
		return truncated(b);
	if (bits_at(b, b->bit + MARK_BITS, 32) != b->stream_check)
		return corrupt(b, b->base + (int64_t)(b->bit / 8), "the checksum of the stream is wrong");
	b->bit += MARK_BITS + 32;
	b->within_stream = false;
	return OK;
}

/* Cuts the block that begins at b->bit into a slot. */
static enum status cut_block(struct bzip2_blocks *b, struct block *block)
{
	size_t end, from = b->bit + MARK_BITS;
	bool real = false;
	uint32_t check = 0;

	do {
		TRY(find_mark(b, from, &end));
		if (end == SIZE_MAX)
			return truncated(b);
		check = (b->stream_check << 1 | b->stream_check >> 31) ^ (uint32_t)bits_at(b, b->bit + MARK_BITS, 32);
		real = bits_at(b, end, MARK_BITS) == BLOCK_MARK;
		if (!real)
			TRY(is_end(b, end, check, &real));
		from = end + 1;
	} while (!real);
	b->stream_check = check;
	block->offset = b->base + (int64_t)(b->bit / 8);
	block->end = b->base + (int64_t)(end / 8);
	block->level = b->level;
	block->bits = end - b->bit;
	make_stream(&block->packed, b->level, (const unsigned char *)b->input.data + b->bit / 8, b->bit % 8, block->bits);
	b->bit = end;
	drop_input(b);
	return buffer_status(&block->packed);
}

/* Cuts blocks as long as there are free slots. */
static enum status cut_ahead(struct bzip2_blocks *b)
{
	struct block *block;

	while (!b->finished && (block = work_line_free(b->line))) {
		if (!b->within_stream) {
			TRY(begin_stream(b));
		} else if (bits_at(b, b->bit, MARK_BITS) == END_MARK) {
			TRY(end_stream(b));
		} else {
			TRY(cut_block(b, block));
			work_line_submit(b->line);
		}
	}
	return OK;
}

enum status bzip2_blocks_read(struct bzip2_blocks *b, void *bytes, size_t capacity, size_t *out_count)
{
	*out_count = 0;
	for (;;) {
		if (b->current && b->current->given < b->current->size) {
			size_t left = b->current->size - b->current->given;
			*out_count = left < capacity ? left : capacity;
			memcpy(bytes, b->current->output + b->current->given, *out_count);
			b->current->given += *out_count;
			return OK;
		}
		if (b->current) {
			b->position = b->current->end;
			b->current = NULL;
			work_line_release(b->line);
		}
		if (b->pending == OK) {
			b->pending = cut_ahead(b);
			if (b->pending != OK)
				b->pending_error = *error_last();
		}
		b->current = work_line_take(b->line);
		if (!b->current) {
			b->position = b->base + (int64_t)b->input.size;
			return b->pending == OK ? OK : error_restore(&b->pending_error);
		}
		if (b->current->result == BZ_MEM_ERROR)
			return error_set(ERR_RESOURCE, "'%s': not enough memory to decode its bzip2 data", b->name);
		if (b->current->result != BZ_STREAM_END)
			return corrupt(b, b->current->offset, "checksum or structure of a block is wrong");
	}
}
