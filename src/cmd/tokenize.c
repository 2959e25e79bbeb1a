/* bertc tokenize: text to ids, entries, or byte offsets, line by line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/buffer.h"
#include "base/log.h"
#include "base/memory.h"
#include "cmd/command.h"
#include "cmd/tokenize_text.h"
#include "cmd/vocab_tokenizer.h"
#include "infer/device_options.h"
#include "formats/stream.h"
#include "text/decode.h"
#include "text/input_form.h"
#include "text/tokenizer.h"
#include "weights/tokenizer_file.h"

#define LONGEST_LINE ((size_t)64 << 20) /* of ids to decode */

struct tokenize_settings {
	struct vocab_choice vocab;
	enum { COMPAT_TRANSFORMERS, COMPAT_GOOGLES } compat;
	enum output_format format;
	bool decode;
	struct device_options device; /* of which only the threads are an option */
};

#define FIELD(name) offsetof(struct tokenize_settings, name)
#define ROW(member, role, value) OPTION_ROW(struct tokenize_settings, member, role, value)

/* clang-format off */
static const struct option tokenize_options[] = {
	{.group = vocab_choice_rows, .field = FIELD(vocab)},
	{ROW(compat, ROLE_RESULT, "NAME"), .range = "huggingface|google", .fallback = "huggingface",
	 .help = "whose ids to match where they differ: Hugging Face's fast tokenizer or google-research/bert"},
	{ROW(format, ROLE_RESULT, "NAME"), .range = "ids|tokens|offsets", .fallback = "ids",
	 .help = "what to print: ids, vocabulary entries, or BEGIN:END in bytes of the line"},
	{ROW(decode, ROLE_RUN, NULL), .fallback = "false", .help = "the reverse: read lines of ids, print lines of text"},
	{.group = device_rows, .only = "threads", .field = FIELD(device)},
	{.name = NULL},
};
/* clang-format on */

static const struct command_text help_text = {
	.name = "tokenize",
	.synopsis = "--vocab_file FILE [options] [PATH...|-]",
	.summary = "turn text into ids of tokens",
	.description = "Prints one line for each line of the text (a line ends at \\n alone), with single spaces between the "
		       "entries and without special tokens such as [CLS]. Without PATH, or with -, reads standard input; "
		       "gzip, bzip2, zstd, and xz files are recognized by their content.\n\nSpecial tokens written in the "
		       "text, such as [MASK], are recognized as by Hugging Face; with --compat google they are words like "
		       "any other. Bytes that are not UTF-8 are left out and counted on standard error.",
	.examples = "bertc tokenize --vocab_file vocab.txt book.txt\tprint the ids of a book\n"
		    "echo 'Hello world!' | bertc tokenize --vocab_file vocab.txt --format tokens\tsee the pieces\n"
		    "bertc tokenize --vocab_file vocab.txt book.txt | bertc tokenize --vocab_file vocab.txt --decode\tand back",
};

static void report_counts(const struct tokenize_counts *counts)
{
	char text[FORMAT_BYTES];

	if (counts->invalid_bytes > 0)
		log_warning("bytes that are not UTF-8 were left out: %s", format_count(text, counts->invalid_bytes));
	input_warn_invalid(counts->invalid_bytes, counts->bytes);
	log_detail("%lld lines, %lld unknown words", (long long)counts->lines, (long long)counts->unknown_words);
}

static enum status choose_settings(const struct options *options, const struct vocab *vocab, struct tokenizer_settings *out)
{
	const struct tokenize_settings *given = options->settings;

	TRY(vocab_tokenizer_settings(options, vocab, &given->vocab, out));
	out->special_tokens = true;
	if (given->compat == COMPAT_GOOGLES) {
		out->compat = COMPAT_GOOGLE;
		out->max_word_characters = 200;
		out->special_tokens = false;
	}
	return OK;
}

/* Reads one line of ids. */
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
		if (at == begin || !ends || id >= vocab->count)
			return error_hinted(error_set(ERR_DATA, "'%s', line %lld: '%.*s' is not an id below %d", path,
						      (long long)number, (int)(size - begin < 20 ? size - begin : 20),
						      line + begin, vocab->count),
					    "--decode reads what `bertc tokenize --format ids` prints with the same vocabulary");
		TRY(memory_grow(ids, capacity, *out_count + 1, sizeof **ids, "ids"));
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
					   LONGEST_LINE),
				 done);
		TRY_GOTO(read_ids(vocab, path, number, line, size, &ids, &capacity, &count), done);
		buffer_clear(&text);
		vocab_decode(vocab, ids, count, false, &text);
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

static enum status check_tokenize(struct options *options)
{
	const struct tokenize_settings *given = options->settings;
	if (given->decode && options_given(options, "format"))
		return error_hinted(error_set(ERR_USAGE, "--format has no effect with --decode, which prints texts"),
				    "leave it out");
	return options_require(options, "vocab_file", "`bertc vocab` makes a vocabulary from text");
}

static enum status run_tokenize(struct options *options)
{
	const struct tokenize_settings *given = options->settings;
	struct tokenizer_settings settings;
	struct tokenizer *tokenizer = NULL;
	struct vocab vocab = {0};
	struct tokenize_counts counts;
	enum status status;

	TRY(vocab_file_read(&vocab, given->vocab.vocab_file));
	TRY_GOTO(stream_check_paths(options->positional.values, options->positional.count), out);
	if (given->decode) {
		status = decode_paths(&vocab, &options->positional);
		goto out;
	}
	TRY_GOTO(choose_settings(options, &vocab, &settings), out);
	TRY_GOTO(tokenizer_open(&tokenizer, &vocab, &settings), out);
	TRY_GOTO(tokenize_text(tokenizer, given->format, (int)given->device.threads, &options->positional, &counts), out);
	report_counts(&counts);
out:
	tokenizer_close(tokenizer);
	vocab_release(&vocab);
	return status;
}

const struct command command_tokenize = {
	.text = &help_text,
	.options = tokenize_options,
	.settings_bytes = sizeof(struct tokenize_settings),
	.check = check_tokenize,
	.run = run_tokenize,
	.takes_arguments = true,
};
