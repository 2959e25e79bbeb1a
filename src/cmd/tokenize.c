/* bertc tokenize: text to ids, entries or byte offsets, a line for a line. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/buffer.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/pool.h"
#include "cmd/command.h"
#include "cmd/text_options.h"
#include "formats/stream.h"
#include "text/decode.h"
#include "text/tokenizer.h"

#define BLOCK_BYTES ((size_t)4 << 20)  /* text in memory at a time */
#define PART_BYTES ((size_t)64 << 10)  /* text of one task */
#define LONGEST_WORD ((size_t)1 << 30) /* bytes without any white space: no text looks so */

#define LONGEST_LINE ((size_t)64 << 20) /* of ids, to decode */

enum output_format { FORMAT_IDS, FORMAT_TOKENS, FORMAT_OFFSETS };

struct tokenize_settings {
	const char *vocab_file;
	bool cased;
	const char *compat;
	const char *format;
	bool decode;
	int64_t threads;
};

#define FIELD(name) offsetof(struct tokenize_settings, name)

static const struct option tokenize_options[] = {
        {.name = "vocab_file",
         .type = OPTION_TEXT,
         .field = FIELD(vocab_file),
         .role = ROLE_PLACE,
         .help = "vocab.txt of a model, an entry a line; a tokenizer_config.json beside it is obeyed",
         .value_name = "FILE"},
        {.name = "cased",
         .type = OPTION_FLAG,
         .field = FIELD(cased),
         .fallback = "false",
         .role = ROLE_RESULT,
         .help = "keep case and accents",
         .fallback_text = "from tokenizer_config.json, else false"},
        {.name = "compat",
         .type = OPTION_CHOICE,
         .field = FIELD(compat),
         .fallback = "huggingface",
         .range = "huggingface|google",
         .role = ROLE_RESULT,
         .help = "whose ids to equal where they differ: Hugging Face's fast tokenizer or "
                 "google-research/bert",
         .value_name = "NAME"},
        {.name = "format",
         .type = OPTION_CHOICE,
         .field = FIELD(format),
         .fallback = "ids",
         .range = "ids|tokens|offsets",
         .role = ROLE_RESULT,
         .help = "what to print: ids, vocabulary entries, or BEGIN:END in bytes of the line",
         .value_name = "NAME"},
	{.name = "decode", .type = OPTION_FLAG, .field = FIELD(decode), .fallback = "false", .role = ROLE_RUN,
	 .help = "the other way: lines of ids in, lines of text out"},
	THREADS_OPTION(FIELD(threads)),
        {.name = NULL},
};

static const struct command_text tokenize_text = {
        .name = "tokenize",
        .synopsis = "--vocab_file FILE [options] [PATH...|-]",
        .summary = "turn text into WordPiece ids",
        .description =
                "Prints one line for each line of the text (a line ends at \\n alone), its entries separated "
                "by "
                "one space, without [CLS] and [SEP]. Without PATH, or with -, reads standard input; gzip, "
                "bzip2, "
                "zstd and xz are told by their content.\n\n"
                "Special tokens written in the text, such as [MASK], are recognised as Hugging Face does; "
                "with "
                "--compat google they are words like any other. Bytes that are not UTF-8 are left out and "
                "counted on standard error.",
        .examples =
                "bertc tokenize --vocab_file vocab.txt book.txt\tprint the ids of a book\n"
                "echo 'Hello world!' | bertc tokenize --vocab_file vocab.txt --format tokens\tsee the pieces\n"
                "bertc tokenize --vocab_file vocab.txt book.txt | bertc tokenize --vocab_file vocab.txt --decode\tand back",
};

/* A run of text that begins and ends at a line end or at white space, where words end anyway: so parts of
 * even one huge line can be worked on apart. */
struct part {
	size_t begin, end;       /* in the block */
	uint64_t offset_in_line; /* of its beginning */
	struct buffer out;
	bool first_has_tokens; /* its first line, which may have begun in an earlier part */
	bool last_has_tokens;  /* its last line, which may go on in a later one */
	enum status status;
	struct error error;
};

struct run {
	const struct tokenizer *tokenizer;
	enum output_format format;
	struct pool *pool;
	struct tokens *tokens; /* [threads] */
	char *block;
	int64_t block_capacity;
	size_t block_size;
	struct part *parts;
	int64_t part_count, part_capacity;
	uint64_t offset_in_line; /* of the block's beginning */
	bool line_has_tokens;    /* printed so far of the line at the block's beginning */
	int64_t lines;
};

static void append_number(struct buffer *out, uint64_t value)
{
	char digits[20];
	size_t first = sizeof(digits);

	do {
		digits[--first] = (char)('0' + value % 10);
		value /= 10;
	} while (value > 0);
	buffer_append(out, digits + first, sizeof(digits) - first);
}

/* Encodes text[0, size), a line or a part of one, and prints it. */
static enum status print_tokens(const struct run *run, struct tokens *tokens, const char *text, size_t size,
                                uint64_t offset, struct buffer *out, bool *out_has_tokens)
{
	const struct vocab *vocab = tokenizer_vocab(run->tokenizer);

	tokens_clear(tokens);
	TRY(tokenizer_encode(run->tokenizer, text, size, tokens));
	for (int64_t i = 0; i < tokens->count; i++) {
		int32_t id = tokens->ids[i];

		if (i > 0)
			buffer_char(out, ' ');
		switch (run->format) {
		case FORMAT_IDS:
			append_number(out, (uint64_t)id);
			break;
		case FORMAT_TOKENS:
			buffer_append(out, vocab->text[id], vocab->size[id]);
			break;
		case FORMAT_OFFSETS:
			append_number(out, offset + tokens->begin[i]);
			buffer_char(out, ':');
			append_number(out, offset + tokens->end[i]);
			break;
		}
	}
	*out_has_tokens = tokens->count > 0;
	return OK;
}

static enum status work_on_part(const struct run *run, struct part *part, struct tokens *tokens)
{
	uint64_t offset = part->offset_in_line;
	bool is_first = true;

	for (size_t at = part->begin; at < part->end;) {
		const char *text = run->block + at;
		const char *line_end = memchr(text, '\n', part->end - at);
		size_t size = line_end ? (size_t)(line_end - text) : part->end - at;

		TRY(print_tokens(run, tokens, text, size, offset, &part->out, &part->last_has_tokens));
		if (is_first)
			part->first_has_tokens = part->last_has_tokens;
		if (line_end) {
			buffer_char(&part->out, '\n');
			part->last_has_tokens = false;
			size++;
		}
		is_first = false;
		offset = 0;
		at += size;
	}
	return buffer_status(&part->out);
}

static void part_task(void *context, int64_t index, int worker)
{
	struct run *run = context;
	struct part *part = &run->parts[index];

	part->status = work_on_part(run, part, &run->tokens[worker]);
	if (part->status != OK)
		part->error = *error_last();
}

/* Where text[begin, size) can be cut at or before `limit`: behind the last line end, else behind the last
 * space; else behind the first of either; `size` if there is none. */
static size_t find_cut(const char *text, size_t begin, size_t limit, size_t size)
{
	const char *found;

	if (limit >= size)
		return size;
	BUG_IF(text == NULL);
	found = memrchr(text + begin, '\n', limit - begin);
	if (!found)
		found = memrchr(text + begin, ' ', limit - begin);
	for (size_t i = limit; !found && i < size; i++)
		if (text[i] == '\n' || text[i] == ' ')
			found = text + i;
	return found ? (size_t)(found - text) + 1 : size;
}

static enum status add_part(struct run *run, size_t begin, size_t end)
{
	struct part *part;
	const char *line_end;

	if (run->part_count == run->part_capacity) {
		int64_t old = run->part_capacity;

		TRY(memory_grow(&run->parts, &run->part_capacity, run->part_count + 1, sizeof(*run->parts),
		                "parts of the text"));
		memset(run->parts + old, 0, (size_t)(run->part_capacity - old) * sizeof(*run->parts));
	}
	part = &run->parts[run->part_count++];
	buffer_clear(&part->out);
	part->begin = begin;
	part->end = end;
	part->offset_in_line = run->offset_in_line;
	line_end = memrchr(run->block + begin, '\n', end - begin);
	if (line_end)
		run->offset_in_line = end - (size_t)(line_end - run->block) - 1;
	else
		run->offset_in_line += end - begin;
	return OK;
}

/* Tokenises the first `size` bytes of the block and prints them in order. */
static enum status work_on_block(struct run *run, size_t size)
{
	run->part_count = 0;
	for (size_t begin = 0; begin < size;) {
		size_t end = find_cut(run->block, begin, begin + PART_BYTES, size);

		TRY(add_part(run, begin, end));
		begin = end;
	}
	pool_run(run->pool, run->part_count, part_task, run);
	for (int64_t i = 0; i < run->part_count; i++) {
		const struct part *part = &run->parts[i];

		if (part->status != OK)
			return error_restore(&part->error);
		if (run->line_has_tokens && part->first_has_tokens)
			fputc(' ', stdout);
		fwrite(part->out.data, 1, part->out.size, stdout);
		if (memchr(run->block + part->begin, '\n', part->end - part->begin))
			run->line_has_tokens = part->last_has_tokens;
		else
			run->line_has_tokens |= part->last_has_tokens;
	}
	run->block_size -= size;
	memmove(run->block, run->block + size, run->block_size);
	if (fflush(stdout) != 0)
		return error_set_errno(ERR_RESOURCE, "cannot write to standard output");
	return OK;
}

/* A person or a program that waits for its answer has written a line and no more. */
static bool writer_waits(const struct run *run, const char *path)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};

	return strcmp(path, "-") == 0 && run->block_size > 0 && run->block[run->block_size - 1] == '\n' &&
	       poll(&input, 1, 0) == 0;
}

/* Reads on until the block is full, the input ends or its writer waits. */
static enum status fill_block(struct run *run, struct stream *stream, const char *path, bool *out_end)
{
	size_t count = 1;

	while (count > 0 && run->block_size < (size_t)run->block_capacity) {
		TRY(stream_read(stream, run->block + run->block_size,
		                (size_t)run->block_capacity - run->block_size, &count));
		run->block_size += count;
		if (writer_waits(run, path))
			break;
	}
	*out_end = count == 0;
	return OK;
}

static enum status tokenize_stream(struct run *run, struct stream *stream, const char *path)
{
	bool end = false;
	bool line_open; /* the last line has no line end */

	run->block_size = 0;
	run->offset_in_line = 0;
	run->line_has_tokens = false;
	while (!end) {
		size_t cut;

		TRY(fill_block(run, stream, path, &end));
		cut = run->block_size;
		if (!end) {
			const char *last = memrchr(run->block, '\n', run->block_size);

			if (!last)
				last = memrchr(run->block, ' ', run->block_size);
			if (!last) {
				if (run->block_size > LONGEST_WORD)
					return error_set(ERR_DATA,
					                 "'%s': %zu bytes without a space or a line end: "
					                 "is this text?",
					                 path, run->block_size);
				TRY(memory_grow(&run->block, &run->block_capacity, run->block_capacity + 1, 1,
				                "text"));
				continue;
			}
			cut = (size_t)(last - run->block) + 1;
		}
		for (size_t i = 0; i < cut; i++)
			run->lines += run->block[i] == '\n';
		line_open = cut > 0 ? run->block[cut - 1] != '\n' : run->offset_in_line > 0;
		TRY(work_on_block(run, cut));
		if (end && line_open) {
			fputc('\n', stdout);
			run->lines++;
		}
	}
	return OK;
}

static enum status tokenize_paths(struct run *run, const struct option_list *paths)
{
	static const char *const standard_input[] = {"-"};
	const char *const *values = paths->count ? paths->values : standard_input;

	for (int64_t i = 0; i < (paths->count ? paths->count : 1); i++) {
		struct stream *stream;
		enum status status;

		TRY(stream_open(&stream, values[i]));
		status = tokenize_stream(run, stream, values[i]);
		stream_close(stream);
		TRY(status);
	}
	return OK;
}

static void report_counts(const struct run *run, int threads)
{
	int64_t invalid = 0, unknown = 0;
	char text[FORMAT_BYTES];

	for (int i = 0; i < threads; i++) {
		invalid += run->tokens[i].invalid_bytes;
		unknown += run->tokens[i].unknown;
	}
	if (invalid > 0)
		log_warning("bytes that are not UTF-8 were left out: %s", format_count(text, invalid));
	log_detail("%lld lines, %lld unknown words", (long long)run->lines, (long long)unknown);
}

/* A tokenizer_config.json beside the vocabulary decides; --cased must not contradict it. */
static enum status choose_settings(const struct options *options, struct tokenizer_settings *out)
{
	const struct tokenize_settings *given = options->settings;
	bool found;

	*out = tokenizer_defaults(given->cased);
	TRY(tokenizer_settings_read(given->vocab_file, out, &found));
	if (found && options_given(options, "cased") && given->cased == out->lowercase) {
		enum status status =
		        error_set(ERR_STATE, "--cased %s contradicts the tokenizer_config.json beside '%s'",
		                  given->cased ? "true" : "false", given->vocab_file);

		error_hint("leave the option out, or copy the vocabulary to a folder of its own");
		return status;
	}
	out->special_tokens = true;
	if (strcmp(given->compat, "google") == 0) {
		out->compat = COMPAT_GOOGLE;
		out->max_word_characters = 200;
		out->special_tokens = false;
	}
	return OK;
}

/* One line of ids. */
static enum status read_ids(const struct vocab *vocab, const char *path, int64_t number, const char *line, size_t size,
                            int32_t **ids, int64_t *capacity, int64_t *out_count)
{
	*out_count = 0;
	for (size_t at = 0; at < size;) {
		if (line[at] == ' ' || line[at] == '\t' || line[at] == '\r') {
			at++;
			continue;
		}
		int64_t id = 0;
		size_t begin = at;
		while (at < size && line[at] >= '0' && line[at] <= '9' && id < vocab->count)
			id = 10 * id + (line[at++] - '0');
		bool ends = at == size || line[at] == ' ' || line[at] == '\t' || line[at] == '\r';
		if (at == begin || !ends || id >= vocab->count) {
			enum status status = error_set(ERR_DATA, "'%s', line %lld: '%.*s' is no id below %d", path,
			                               (long long)number, (int)(size - begin < 20 ? size - begin : 20),
			                               line + begin, vocab->count);
			error_hint("--decode reads what `bertc tokenize --format ids` prints with the same vocabulary");
			return status;
		}
		TRY(memory_grow(ids, capacity, *out_count + 1, sizeof(**ids), "ids"));
		(*ids)[(*out_count)++] = (int32_t)id;
	}
	return OK;
}

static enum status decode_file(const struct vocab *vocab, const char *path)
{
	struct line_reader *reader;
	struct buffer text = {0};
	int32_t *ids = NULL;
	int64_t capacity = 0, count;
	enum status status = OK;
	TRY(line_reader_open(&reader, path, LONGEST_LINE));
	for (int64_t number = 1;; number++) {
		const char *line;
		size_t size;
		bool continues, end;
		TRY_GOTO(line_reader_next(reader, &line, &size, &continues, &end), done);
		if (end)
			break;
		if (continues)
			TRY_GOTO(error_set(ERR_DATA, "'%s', line %lld is longer than %zu bytes", path, (long long)number,
			                   LONGEST_LINE), done);
		TRY_GOTO(read_ids(vocab, path, number, line, size, &ids, &capacity, &count), done);
		buffer_clear(&text);
		vocab_decode(vocab, ids, count, &text);
		buffer_char(&text, '\n');
		TRY_GOTO(buffer_status(&text), done);
		fwrite(text.data, 1, text.size, stdout);
	}
done:
	free(ids);
	buffer_release(&text);
	line_reader_close(reader);
	return status;
}

static enum status decode_paths(const struct vocab *vocab, const struct option_list *paths)
{
	if (paths->count == 0)
		return decode_file(vocab, "-");
	for (int64_t i = 0; i < paths->count; i++)
		TRY(decode_file(vocab, paths->values[i]));
	return OK;
}

static enum output_format format_of(const char *name)
{
	return strcmp(name, "tokens") == 0    ? FORMAT_TOKENS
	       : strcmp(name, "offsets") == 0 ? FORMAT_OFFSETS
	                                      : FORMAT_IDS;
}

static enum status run_tokenize(struct options *options)
{
	const struct tokenize_settings *given = options->settings;
	struct tokenizer_settings settings;
	struct run run = {.format = format_of(given->format), .block_capacity = (int64_t)BLOCK_BYTES};
	struct tokenizer *tokenizer = NULL;
	struct vocab vocab = {0};
	enum status status;
	int threads = 0;

	if (!given->vocab_file) {
		status = error_set(ERR_USAGE, "no vocabulary given");
		error_hint("add --vocab_file vocab.txt; 'bertc vocab' makes one from text");
		return status;
	}
	TRY(choose_settings(options, &settings));
	TRY(vocab_read(&vocab, given->vocab_file));
	if (given->decode) {
		status = decode_paths(&vocab, &options->positional);
		goto out;
	}
	TRY_GOTO(tokenizer_open(&tokenizer, &vocab, &settings), out);
	run.tokenizer = tokenizer;
	TRY_GOTO(pool_create(&run.pool, (int)given->threads), out);
	threads = pool_threads(run.pool);
	TRY_GOTO(memory_new(&run.tokens, threads, sizeof(*run.tokens), "tokenizer"), out);
	TRY_GOTO(memory_new(&run.block, run.block_capacity, 1, "text"), out);
	TRY_GOTO(tokenize_paths(&run, &options->positional), out);
	report_counts(&run, threads);
out:
	for (int i = 0; run.tokens && i < threads; i++)
		tokens_release(&run.tokens[i]);
	free(run.tokens);
	free(run.block);
	for (int64_t i = 0; i < run.part_capacity; i++)
		buffer_release(&run.parts[i].out);
	free(run.parts);
	pool_free(run.pool);
	tokenizer_close(tokenizer);
	vocab_release(&vocab);
	return status;
}

const struct command command_tokenize = {
        .text = &tokenize_text,
        .options = tokenize_options,
        .settings_bytes = sizeof(struct tokenize_settings),
        .run = run_tokenize,
        .takes_arguments = true,
};
