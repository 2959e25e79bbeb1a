/* Text is read in pieces of whole lines, or of parts of a line if it is long. Helper threads tokenize them while later pieces are
 * read and earlier ones are printed (base/work_line.h). */
#include "cmd/tokenize_text.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/buffer.h"
#include "base/memory.h"
#include "base/pool.h"
#include "base/work_line.h"
#include "cmd/command.h"
#include "formats/stream.h"
#include "text/input_form.h"
#include "text/utf8.h"

#define PIECE_BYTES ((size_t)256 << 10)
#define PIECES_A_THREAD 4
#define LONGEST_WORD ((size_t)16 << 20) /* longest stretch that cannot be cut; real text has none this long */

struct piece {
	struct run *run;
	struct buffer text;
	uint64_t offset_in_line; /* of the beginning of the piece */
	struct buffer out;
	bool first_has_tokens; /* its first line, which may have started in an earlier piece */
	bool last_has_tokens;  /* its last line, which may continue in a later one */
	bool has_line_end;
	bool closes_line; /* the file ends with this piece, in the middle of a line */
	enum status status;
	struct error error;
};

struct run {
	const struct tokenizer *tokenizer;
	enum output_format format;
	struct piece *pieces;
	int piece_count;
	struct work_line *line;

	/* Scratch memory of the threads, including the words that each remembers; a thread takes the scratch used last. */
	pthread_mutex_t lock;
	struct tokens *tokens;
	struct tokens **idle;
	int token_count, idle_count;

	/* Reading. */
	struct buffer rest;      /* of the file, after the last piece */
	uint64_t offset_in_line; /* of the beginning of `rest` */
	bool line_has_tokens;    /* tokens have been printed of the line in which the next piece begins */
	int64_t lines, bytes;
};

#define NUMBER_DIGITS 20 /* of the largest uint64_t */

/* Writes a number; returns the end of it. */
static char *put_number(char *at, uint64_t value)
{
	int digits = 1;

	for (uint64_t limit = 10; value >= limit && digits < NUMBER_DIGITS; limit *= 10)
		digits++;
	for (char *digit = at + digits; digit > at; value /= 10)
		*--digit = (char)('0' + value % 10);
	return at + digits;
}

/* Writes ids with spaces between them. */
static void write_ids(const struct tokens *tokens, struct buffer *out)
{
	char *begin = buffer_room(out, (size_t)tokens->count * (NUMBER_DIGITS + 1)), *at = begin;

	if (!begin)
		return;
	for (int64_t i = 0; i < tokens->count; i++) {
		if (i > 0)
			*at++ = ' ';
		at = put_number(at, (uint64_t)tokens->ids[i]);
	}
	buffer_advance(out, (size_t)(at - begin));
}

static void write_offsets(const struct tokens *tokens, uint64_t offset, struct buffer *out)
{
	char *begin = buffer_room(out, (size_t)tokens->count * 2 * (NUMBER_DIGITS + 1)), *at = begin;

	if (!begin)
		return;
	for (int64_t i = 0; i < tokens->count; i++) {
		if (i > 0)
			*at++ = ' ';
		at = put_number(at, offset + tokens->begin[i]);
		*at++ = ':';
		at = put_number(at, offset + tokens->end[i]);
	}
	buffer_advance(out, (size_t)(at - begin));
}

static void write_texts(const struct tokens *tokens, const struct vocab *vocab, struct buffer *out)
{
	for (int64_t i = 0; i < tokens->count; i++) {
		if (i > 0)
			buffer_char(out, ' ');
		buffer_append(out, vocab->text[tokens->ids[i]], vocab->size[tokens->ids[i]]);
	}
}

/* Encodes text[0, size), a line or part of one. */
static enum status write_tokens(const struct run *run, struct tokens *tokens, const char *text, size_t size, uint64_t offset,
				struct buffer *out, bool *out_has_tokens)
{
	tokens_clear(tokens);
	TRY(tokenizer_encode(run->tokenizer, text, size, tokens));
	switch (run->format) {
	case FORMAT_IDS: write_ids(tokens, out); break;
	case FORMAT_TOKENS: write_texts(tokens, tokenizer_vocab(run->tokenizer), out); break;
	case FORMAT_OFFSETS: write_offsets(tokens, offset, out); break;
	}
	*out_has_tokens = tokens->count > 0;
	return OK;
}

/* `out` is not the piece's own buffer struct, which shares cache lines with those of other threads. */
static enum status write_lines(struct piece *piece, struct tokens *tokens, struct buffer *out)
{
	uint64_t offset = piece->offset_in_line;

	buffer_clear(out);
	piece->has_line_end = piece->first_has_tokens = piece->last_has_tokens = false;
	for (size_t at = 0; at < piece->text.size;) {
		const char *text = piece->text.data + at;
		const char *line_end = memchr(text, '\n', piece->text.size - at);
		size_t size = line_end ? (size_t)(line_end - text) : piece->text.size - at;

		TRY(write_tokens(piece->run, tokens, text, size, offset, out, &piece->last_has_tokens));
		if (!piece->has_line_end)
			piece->first_has_tokens = piece->last_has_tokens;
		if (line_end) {
			buffer_char(out, '\n');
			piece->last_has_tokens = false;
			piece->has_line_end = true;
			size++;
		}
		offset = 0;
		at += size;
	}
	return buffer_status(out);
}

static void work_on_piece(void *context)
{
	struct piece *piece = context;
	struct run *run = piece->run;

	pthread_mutex_lock(&run->lock);
	BUG_IF(run->idle_count == 0);
	struct tokens *tokens = run->idle[--run->idle_count];
	pthread_mutex_unlock(&run->lock);
	struct buffer out = piece->out;
	piece->status = write_lines(piece, tokens, &out);
	piece->out = out;
	if (piece->status != OK)
		piece->error = *error_last();
	pthread_mutex_lock(&run->lock);
	run->idle[run->idle_count++] = tokens;
	pthread_mutex_unlock(&run->lock);
}

/* Prints the oldest piece, if there is one. */
static enum status print_piece(struct run *run, bool *out_any)
{
	struct piece *piece = work_line_take(run->line);

	*out_any = piece != NULL;
	if (!piece)
		return OK;
	if (piece->status != OK)
		return error_restore(&piece->error);
	if (run->line_has_tokens && piece->first_has_tokens)
		fputc(' ', stdout);
	if (piece->out.size > 0)
		fwrite(piece->out.data, 1, piece->out.size, stdout);
	run->line_has_tokens = (run->line_has_tokens && !piece->has_line_end) || piece->last_has_tokens;
	if (piece->closes_line) {
		fputc('\n', stdout);
		run->line_has_tokens = false;
	}
	for (const char *at = piece->text.data, *end = at + piece->text.size; at && (at = memchr(at, '\n', (size_t)(end - at)));
	     at++)
		run->lines++;
	run->lines += piece->closes_line;
	work_line_release(run->line);
	if (ferror(stdout))
		return command_output_failed();
	return OK;
}

static enum status print_all(struct run *run)
{
	for (bool any = true; any;)
		TRY(print_piece(run, &any));
	if (fflush(stdout) != 0)
		return command_output_failed();
	return OK;
}

/* A person or program that waits for an answer has written a complete line and nothing after it. */
static bool writer_waits(const struct buffer *text, const char *path)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};

	return strcmp(path, "-") == 0 && text->size > 0 && text->data[text->size - 1] == '\n' && poll(&input, 1, 0) == 0;
}

/* An ideograph from U+5000 to U+9FFF. */
static bool is_ideograph(const unsigned char *at)
{
	return at[0] >= 0xE5 && at[0] <= 0xE9 && (at[1] & 0xC0) == 0x80 && (at[2] & 0xC0) == 0x80;
}

static bool is_letter_or_digit(unsigned char c)
{
	return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
}

/* Can text be cut before text[at], which has at least 4 bytes before it and 3 from it on? True if no token, special ones
 * included, can cross that point: after a blank, between two ideographs if each is a word of its own, and after a comma or full
 * stop before a letter or digit. */
static bool can_be_cut(const unsigned char *text, size_t at, bool splits_ideographs)
{
	unsigned char before = text[at - 1];
	if (before == ' ' || before == '\t')
		return true;
	if (before == ',' || before == '.')
		return is_letter_or_digit(text[at]);
	return splits_ideographs && is_ideograph(text + at - 3) && is_ideograph(text + at);
}

/* Where a line can be cut without cutting a token. */
enum cut_places {
	CUT_WORDS,  /* can_be_cut() */
	CUT_BLANKS, /* after blanks only: there are added tokens, which may contain commas and several ideographs */
	CUT_NOWHERE /* there are added tokens of several words, or that take white space */
};

static enum cut_places cut_places_of(const struct vocab *vocab)
{
	for (int32_t i = 0; i < vocab->added_count; i++) {
		const struct added_token *token = &vocab->added[i];
		const char *text = vocab->text[token->id];
		for (size_t at = 0; at < vocab->size[token->id];) {
			uint32_t c;
			at += utf8_decode(text + at, vocab->size[token->id] - at, &c);
			if (utf8_is_space(c))
				return CUT_NOWHERE;
		}
		if (token->lstrip || token->rstrip)
			return CUT_NOWHERE;
	}
	return vocab->added_count > 0 ? CUT_BLANKS : CUT_WORDS;
}

/* After the last line end, else at the last place where a line can be cut; 0 if there is neither. */
static size_t find_cut(const struct buffer *text, const struct tokenizer *tokenizer, enum cut_places places)
{
	const char *line_end = text->size > 0 ? memrchr(text->data, '\n', text->size) : NULL;
	if (line_end)
		return (size_t)(line_end - text->data) + 1;
	bool splits_ideographs = tokenizer_settings_of(tokenizer)->split_chinese;
	for (size_t at = places == CUT_NOWHERE ? 0 : text->size; at-- > 4;) {
		char before = text->data[at - 1];
		bool can = places == CUT_BLANKS
				   ? before == ' ' || before == '\t'
				   : at + 3 <= text->size && can_be_cut((const unsigned char *)text->data, at, splits_ideographs);
		if (can)
			return at;
	}
	return 0;
}

/* No place was found where the text can be cut. */
static enum status line_too_long(const char *path, size_t size, enum cut_places places)
{
	if (places == CUT_NOWHERE)
		return error_set(ERR_DATA,
				 "'%s': a line of more than %zu bytes, in which added tokens of several words may occur", path,
				 size);
	return error_set(ERR_DATA, "'%s': %zu bytes without a space, a comma or a line end: is this text?", path, size);
}

/* Fills a piece with the text that follows, up to a place where it can be cut. */
static enum status fill_piece(struct run *run, struct stream *stream, const char *path, struct piece *piece, bool *out_end,
			      bool *out_waits)
{
	struct buffer *text = &piece->text;
	enum cut_places places = cut_places_of(tokenizer_vocab(run->tokenizer));
	size_t cut = 0;

	buffer_clear(text);
	buffer_append(text, run->rest.data, run->rest.size);
	buffer_clear(&run->rest);
	for (size_t wanted = PIECE_BYTES; cut == 0 && !*out_end && !*out_waits; wanted *= 2) {
		if (text->size > LONGEST_WORD)
			return line_too_long(path, text->size, places);
		while (text->size < wanted && !*out_end && !*out_waits) {
			char bytes[64 << 10];
			size_t count;
			TRY(stream_read(stream, bytes, sizeof bytes, &count));
			if (text->size == 0)
				TRY(input_refuse_utf16(path, bytes, count));
			buffer_append(text, bytes, count);
			TRY(buffer_status(text));
			*out_end = count == 0;
			*out_waits = writer_waits(text, path);
		}
		cut = *out_end || *out_waits ? text->size : find_cut(text, run->tokenizer, places);
	}
	buffer_append(&run->rest, text->data + cut, text->size - cut);
	text->size = cut;
	run->bytes += (int64_t)cut;
	piece->offset_in_line = run->offset_in_line;
	const char *line_end = cut > 0 ? memrchr(text->data, '\n', cut) : NULL;
	run->offset_in_line = line_end ? cut - (size_t)(line_end - text->data) - 1 : run->offset_in_line + cut;
	piece->closes_line = *out_end && run->offset_in_line > 0;
	return buffer_status(&run->rest);
}

static enum status tokenize_stream(struct run *run, struct stream *stream, const char *path)
{
	run->offset_in_line = 0;
	run->line_has_tokens = false;
	buffer_clear(&run->rest);
	for (bool end = false; !end;) {
		struct piece *piece;
		bool waits = false, any;
		while (!end && !waits && (piece = work_line_free(run->line)) != NULL) {
			TRY(fill_piece(run, stream, path, piece, &end, &waits));
			work_line_submit(run->line);
		}
		if (waits)
			TRY(print_all(run));
		else
			TRY(print_piece(run, &any));
	}
	return print_all(run);
}

static enum status open_run(struct run *run, int threads)
{
	pthread_mutex_init(&run->lock, NULL);
	TRY(memory_new(&run->tokens, threads, sizeof *run->tokens, "tokenizer"));
	TRY(memory_new(&run->idle, threads, sizeof(struct tokens *), "tokenizer"));
	run->token_count = threads;
	for (int i = 0; i < threads; i++)
		run->idle[run->idle_count++] = &run->tokens[i];
	TRY(memory_new(&run->pieces, PIECES_A_THREAD * threads, sizeof *run->pieces, "text"));
	run->piece_count = PIECES_A_THREAD * threads;
	for (int i = 0; i < run->piece_count; i++)
		run->pieces[i].run = run;
	return work_line_open(&run->line, threads - 1, run->pieces, run->piece_count, sizeof *run->pieces, work_on_piece);
}

static void close_run(struct run *run)
{
	work_line_close(run->line);
	for (int i = 0; i < run->piece_count; i++) {
		buffer_release(&run->pieces[i].text);
		buffer_release(&run->pieces[i].out);
	}
	for (int i = 0; i < run->token_count; i++)
		tokens_release(&run->tokens[i]);
	free(run->pieces);
	free(run->tokens);
	free(run->idle);
	buffer_release(&run->rest);
	pthread_mutex_destroy(&run->lock);
}

enum status tokenize_text(const struct tokenizer *tokenizer, enum output_format format, int threads,
			  const struct option_list *paths, struct tokenize_counts *out)
{
	static const char *const standard_input[] = {"-"};
	const char *const *values = paths->count ? paths->values : standard_input;
	struct run run = {.tokenizer = tokenizer, .format = format};
	enum status status = open_run(&run, threads > 0 ? threads : pool_available_cores());

	for (int64_t i = 0; status == OK && i < (paths->count ? paths->count : 1); i++) {
		struct stream *stream;
		status = stream_open(&stream, values[i]);
		if (status != OK)
			break;
		status = tokenize_stream(&run, stream, values[i]);
		stream_close(stream);
	}
	*out = (struct tokenize_counts){.lines = run.lines, .bytes = run.bytes};
	for (int i = 0; i < run.token_count; i++) {
		out->unknown_words += run.tokens[i].unknown;
		out->invalid_bytes += run.tokens[i].invalid_bytes;
	}
	close_run(&run);
	return status;
}
