/* Reads files of tagged words, detecting how their columns are separated. */
#include "formats/conll.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/log.h"
#include "base/memory.h"
#include "formats/line_ends.h"
#include "formats/text_file.h"

#define DOCSTART "-DOCSTART-"
/* When the usual number of columns is determined, lines with more columns than this count as having this many. */
#define COLUMNS_MAX 256
/* Of CoNLL-U. */
#define TREEBANK_COLUMNS 10
#define TREEBANK_FORM 2
#define TREEBANK_UPOS 4
#define SAMPLE_BYTES ((size_t)1 << 20)

/* The lines of a text, without their ends. */
struct lines {
	const char *text;
	size_t size, at;
	int64_t number; /* of the line returned last, from 1 */
};

static bool lines_next(struct lines *lines, size_t *out_begin, size_t *out_end)
{
	if (lines->at >= lines->size)
		return false;
	const char *newline = memchr(lines->text + lines->at, '\n', lines->size - lines->at);
	*out_begin = lines->at;
	*out_end = newline ? (size_t)(newline - lines->text) : lines->size;
	lines->at = *out_end + 1;
	lines->number++;
	*out_end = *out_begin + line_ends_trim(lines->text + *out_begin, *out_end - *out_begin);
	return true;
}

static bool is_blank(const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (text[i] != ' ' && text[i] != '\t')
			return false;
	return true;
}

static bool is_docstart(const char *text, size_t size)
{
	return size >= strlen(DOCSTART) && memcmp(text, DOCSTART, strlen(DOCSTART)) == 0;
}

/* Moves *at to the beginning of the next column and sets its end; false if there is none. *at starts at 0; the caller sets it to
 * the end + 1, so with tabs it is size + 1 after the last column. */
static bool next_column(const char *text, size_t size, char separator, size_t *at, size_t *out_end)
{
	if (separator == '\t') {
		if (*at > size)
			return false;
		const char *tab = memchr(text + *at, '\t', size - *at);
		*out_end = tab ? (size_t)(tab - text) : size;
		return true;
	}
	while (*at < size && (text[*at] == ' ' || text[*at] == '\t'))
		++*at;
	if (*at >= size)
		return false;
	for (*out_end = *at; *out_end < size && text[*out_end] != ' ' && text[*out_end] != '\t';)
		++*out_end;
	return true;
}

/* Number of columns of a line; *out_last: where the last one begins. */
static int64_t count_columns(const char *text, size_t size, char separator, size_t *out_last)
{
	int64_t count = 0;
	size_t end;
	*out_last = 0;
	for (size_t at = 0; next_column(text, size, separator, &at, &end); at = end + 1, count++)
		*out_last = at;
	return count;
}

bool conll_is_tag(const char *text, size_t size)
{
	if (size == 1)
		return strchr("OBIESLUM", *text) != NULL && *text;
	return size > 2 && strchr("BIESLUM", *text) && *text && (text[1] == '-' || text[1] == '_');
}

/* Finds how the columns of lines that are neither blank nor -DOCSTART- are separated, and how many most of these lines have.
 * Lines that begin with '#' only matter if there are no others. */
static void find_form(const char *text, size_t size, char *out_separator, int64_t *out_columns)
{
	int64_t counts[COLUMNS_MAX + 1] = {0};
	size_t begin, end, last;
	bool tabs = true;

	struct lines lines = {.text = text, .size = size};
	while (lines_next(&lines, &begin, &end))
		if (!is_blank(text + begin, end - begin) && !is_docstart(text + begin, end - begin) && text[begin] != '#')
			tabs &= memchr(text + begin, '\t', end - begin) != NULL;
	*out_separator = tabs ? '\t' : ' ';
	lines = (struct lines){.text = text, .size = size};
	while (lines_next(&lines, &begin, &end)) {
		if (is_blank(text + begin, end - begin) || is_docstart(text + begin, end - begin))
			continue;
		int64_t count = count_columns(text + begin, end - begin, *out_separator, &last);
		counts[count < COLUMNS_MAX ? count : COLUMNS_MAX] += text[begin] == '#' ? 1 : 1000;
	}
	*out_columns = 0;
	for (int64_t i = 1; i <= COLUMNS_MAX; i++)
		if (counts[i] > counts[*out_columns])
			*out_columns = i;
}

/* The number of a word; more: or of the words "1-2" that are written as one, or of one "1.1" that is not written. */
static bool is_word_number(const char *text, size_t size, bool more)
{
	size_t at = 0, digits = 0;
	for (; at < size; at++) {
		if (text[at] >= '0' && text[at] <= '9')
			digits++;
		else if (more && digits > 0 && at + 1 < size && (text[at] == '-' || text[at] == '.'))
			more = false;
		else
			return false;
	}
	return size > 0;
}

bool conll_is_treebank(const char *text, size_t size)
{
	struct lines lines = {.text = text, .size = size};
	size_t begin, end, last;
	int64_t words = 0;
	while (lines_next(&lines, &begin, &end)) {
		const char *line = text + begin, *tab = memchr(line, '\t', end - begin);
		if (is_blank(line, end - begin) || *line == '#')
			continue;
		if (!tab || !is_word_number(line, (size_t)(tab - line), true) ||
		    count_columns(line, end - begin, '\t', &last) != TREEBANK_COLUMNS)
			return false;
		words++;
	}
	return words > 0;
}

/* Where a column, counted from 1, of a line begins and ends; false: there is none. */
static bool find_column(const char *text, size_t size, char separator, int64_t number, size_t *out_begin, size_t *out_end)
{
	*out_begin = 0;
	while (next_column(text, size, separator, out_begin, out_end)) {
		if (--number == 0)
			return true;
		*out_begin = *out_end + 1;
	}
	return false;
}

static bool is_usual_tag(void *context, const char *text, size_t size)
{
	(void)context;
	return conll_is_tag(text, size);
}

bool conll_recognize(const char *text, size_t size)
{
	return conll_recognize_tags(text, size, 0, is_usual_tag, NULL);
}

bool conll_recognize_tags(const char *text, size_t size, int tag_column,
			  bool (*is_tag)(void *context, const char *text, size_t size), void *context)
{
	int64_t columns, count = 0, fitting = 0;
	char separator;
	size_t begin, end, last, tag, tag_end;

	if (size > SAMPLE_BYTES) {
		const char *newline = memrchr(text, '\n', SAMPLE_BYTES);
		size = newline ? (size_t)(newline - text) : SAMPLE_BYTES;
	}
	find_form(text, size, &separator, &columns);
	int64_t number = tag_column > 0 ? tag_column : columns + (tag_column < 0 ? tag_column + 1 : 0);
	struct lines lines = {.text = text, .size = size};
	while (columns >= 2 && lines_next(&lines, &begin, &end)) {
		const char *line = text + begin;
		if (is_blank(line, end - begin) || is_docstart(line, end - begin))
			continue;
		count++;
		fitting += count_columns(line, end - begin, separator, &last) == columns &&
			   find_column(line, end - begin, separator, number, &tag, &tag_end) &&
			   is_tag(context, line + tag, tag_end - tag);
	}
	return count > 0 && fitting * 10 >= count * 9;
}

struct reader {
	struct conll *conll;
	const struct conll_options *options;
	struct bad_records *bad;
	struct lines lines;
	int64_t first_token;  /* of the current sentence */
	bool sentence_is_bad; /* the rest of the current sentence is skipped */
};

static enum status begin_sentence(struct reader *reader)
{
	struct conll *conll = reader->conll;
	TRY(memory_grow(&conll->sentence_starts, &conll->start_capacity, conll->sentence_count + 2,
			sizeof *conll->sentence_starts, "sentences"));
	conll->sentence_starts[conll->sentence_count] = reader->first_token = conll->token_count;
	return OK;
}

static enum status end_sentence(struct reader *reader)
{
	struct conll *conll = reader->conll;
	reader->sentence_is_bad = false;
	if (conll->token_count == reader->first_token)
		return OK;
	conll->sentence_count++;
	return begin_sentence(reader);
}

/* Terminates the columns of a line with NULs and records them as a token. */
static enum status add_token(struct reader *reader, size_t begin, size_t size)
{
	struct conll *conll = reader->conll;
	char *line = conll->text.data + begin;
	int64_t field = conll->token_count * conll->column_count;
	size_t at = 0, end;

	TRY(memory_grow(&conll->lines, &conll->line_capacity, conll->token_count + 1, sizeof *conll->lines, "words"));
	TRY(memory_grow(&conll->fields, &conll->field_capacity, field + conll->column_count, sizeof *conll->fields,
			"columns of words"));
	conll->lines[conll->token_count] = reader->lines.number;
	while (next_column(line, size, conll->separator, &at, &end)) {
		conll->fields[field++] = line + at;
		line[end] = '\0';
		at = end + 1;
	}
	conll->token_count++;
	return OK;
}

static enum status refuse_column_count(const struct conll *conll, int64_t line, int64_t count)
{
	return error_hinted(
		error_set(ERR_DATA, "'%s', line %lld: %lld column%s where most lines have %d", conll->name, (long long)line,
			  (long long)count, count == 1 ? "" : "s", (int)conll->column_count),
		"columns are separated by %s here; correct the line, or give --on_bad_record skip to leave such sentences out "
		"and count them",
		conll->separator == '\t' ? "tabs" : "spaces");
}

/* Checks that word and tag are not empty. */
static enum status check_fields(const struct conll *conll, const char *text, size_t size, int64_t line)
{
	size_t at = 0, end;
	for (int32_t i = 0; next_column(text, size, conll->separator, &at, &end); i++, at = end + 1)
		if (at == end && (i == conll->word_column || i == conll->tag_column))
			return error_set(ERR_DATA, "'%s', line %lld: the %s is empty", conll->name, (long long)line,
					 i == conll->word_column ? "word" : "tag");
	return OK;
}

/* A comment is a line before a sentence that begins with '#' and cannot be a word: "# text = ...". */
static bool is_comment(const struct reader *reader, const char *text, size_t size)
{
	const struct conll *conll = reader->conll;
	size_t last;
	if (*text != '#' || conll->token_count > reader->first_token)
		return false;
	if (count_columns(text, size, conll->separator, &last) != conll->column_count)
		return true;
	/* With as many columns as words have, it is a word, unless columns are separated by spaces and the last one does not look
	 * like a tag. */
	return conll->tag_column == conll->column_count - 1 && conll->separator == ' ' && !conll_is_tag(text + last, size - last);
}

static enum status take_docstart(struct reader *reader, const char *text, size_t size)
{
	struct conll *conll = reader->conll;
	TRY(end_sentence(reader));
	TRY(memory_grow(&conll->documents, &conll->document_capacity, conll->document_count + 1, sizeof *conll->documents,
			"documents"));
	struct conll_document *document = &conll->documents[conll->document_count];
	document->first_sentence = conll->sentence_count;
	TRY(string_store_copy(&conll->strings, text, size, &document->line));
	conll->document_count++;
	return OK;
}

static enum status check_line(struct reader *reader, const char *text, size_t size)
{
	const struct conll *conll = reader->conll;
	size_t last;
	TRY(text_check(conll->name, reader->lines.number, text, size));
	int64_t count = count_columns(text, size, conll->separator, &last);
	if (count != conll->column_count)
		return refuse_column_count(conll, reader->lines.number, count);
	return check_fields(conll, text, size, reader->lines.number);
}

static enum status take_line(struct reader *reader, size_t begin, size_t size)
{
	struct conll *conll = reader->conll;
	const char *text = conll->text.data + begin;

	if (is_blank(text, size))
		return end_sentence(reader);
	if (is_docstart(text, size))
		return take_docstart(reader, text, size);
	if (reader->sentence_is_bad)
		return OK;
	if (is_comment(reader, text, size)) {
		conll->comment_count++;
		return OK;
	}
	enum status status = check_line(reader, text, size);
	if (status == OK && conll->treebank && !is_word_number(text, (size_t)((char *)memchr(text, '\t', size) - text), false))
		return OK; /* not a word */
	if (status == OK)
		return add_token(reader, begin, size);
	reader->sentence_is_bad = true;
	conll->token_count = reader->first_token;
	return bad_record(reader->bad, status);
}

/* Whether a column has one of these names. */
static bool is_named(const char *text, size_t size, const char *const *names)
{
	for (; *names; names++)
		if (strlen(*names) == size && strncasecmp(*names, text, size) == 0)
			return true;
	return false;
}

/* The first line that is not blank, if it is a header: *word and *tag are the columns of words and tags, from 1. */
static bool find_header(struct conll *conll, int *word, int *tag)
{
	static const char *const words[] = {"word", "words", "token", "tokens", "form", NULL};
	static const char *const tags[] = {"tag",      "tags",    "label", "labels",  "ner",  "ner_tag",
					   "ner_tags", "ner-tag", "pos",   "pos_tag", "upos", "xpos",
					   "chunk",    "entity",  "bio",   "iob",     NULL};
	static const char *const sentences[] = {"sentence_id", "sentence", "sentence #", "sent_id", "sentence_idx", NULL};
	struct lines lines = {.text = buffer_string(&conll->text), .size = conll->text.size};
	size_t begin = 0, end = 0, column_end;
	bool blank = true, numbered = false;
	*word = *tag = 0;
	while (blank && lines_next(&lines, &begin, &end))
		blank = is_blank(lines.text + begin, end - begin);
	const char *line = lines.text + begin;
	int number = 1;
	for (size_t at = 0; next_column(line, end - begin, conll->separator, &at, &column_end); at = column_end + 1, number++) {
		const char *name = line + at;
		size_t size = column_end - at;
		if (*word == 0 && is_named(name, size, words))
			*word = number;
		else if (is_named(name, size, tags))
			*tag = number;
		else if (is_named(name, size, sentences))
			numbered = true;
	}
	conll->counts_sentences = numbered && *word > 0; /* "sentence" alone may be a word */
	conll->has_header = number - 1 == conll->column_count && *word > 0 && *tag > 0;
	return conll->has_header;
}

/* Converts a column as given in the options to an index. */
static enum status choose_column(const struct conll *conll, int column, int otherwise, const char *what, int32_t *out)
{
	int wanted = column ? column : otherwise, count = conll->column_count;
	*out = wanted > 0 ? wanted - 1 : count + wanted;
	if (*out >= 0 && *out < count)
		return OK;
	return error_set(ERR_USAGE, "'%s' has %d column%s: there is no column %d for the %s", conll->name, count,
			 count == 1 ? "" : "s", column, what);
}

static enum status choose_columns(struct conll *conll, const struct conll_options *options)
{
	conll->tag_column = -1;
	int word = conll->treebank ? TREEBANK_FORM : 1, tag = conll->treebank ? TREEBANK_UPOS : -1, word_named, tag_named;
	if (find_header(conll, &word_named, &tag_named)) {
		word = word_named;
		tag = tag_named;
	}
	TRY(choose_column(conll, options->word_column, word, "word", &conll->word_column));
	if (conll->column_count == 1 && options->needs_tags)
		return error_hinted(error_set(ERR_DATA, "'%s' has one column, so there are words but no tags in it", conll->name),
				    "each line must have a word and its tag, separated by a tab or spaces");
	if (!options->needs_tags && (conll->column_count == 1 || options->tag_column > conll->column_count))
		return OK;
	return choose_column(conll, options->tag_column, tag, "tag", &conll->tag_column);
}

bool conll_has_header(const char *text, size_t size)
{
	struct conll conll = {.text = {.data = (char *)text, .size = size}};
	int64_t columns;
	int word, tag;
	find_form(text, size, &conll.separator, &columns);
	conll.column_count = (int32_t)columns;
	return columns > 1 && find_header(&conll, &word, &tag);
}

enum status conll_parse(struct conll *out, struct text_file *file, const struct conll_options *options)
{
	int64_t columns;
	size_t begin, end;

	*out = (struct conll){.text = file->text, .word_lines = true};
	file->text = (struct buffer){0};
	struct reader reader = {.conll = out, .options = options, .bad = options->bad};
	enum status status;
	TRY_GOTO(string_store_copy(&out->strings, file->name, strlen(file->name), &out->name), done);
	reader.lines = (struct lines){.text = buffer_string(&out->text), .size = out->text.size};
	find_form(reader.lines.text, reader.lines.size, &out->separator, &columns);
	out->column_count = (int32_t)columns;
	out->treebank = conll_is_treebank(reader.lines.text, reader.lines.size);
	TRY_GOTO(begin_sentence(&reader), done);
	if (columns > 0)
		TRY_GOTO(choose_columns(out, options), done);
	for (bool header = out->has_header; status == OK && lines_next(&reader.lines, &begin, &end);) {
		if (header && !is_blank(out->text.data + begin, end - begin))
			header = false;
		else
			status = take_line(&reader, begin, end - begin);
	}
	if (status == OK)
		status = end_sentence(&reader);
	if (status == OK && out->sentence_count == 0)
		status = error_set(ERR_DATA, "'%s': there is no sentence in it%s", out->name,
				   options->bad->count > 0 ? " that can be used" : "");
done:
	if (status != OK)
		conll_release(out);
	return status;
}

void conll_release(struct conll *conll)
{
	free(conll->sentence_starts);
	free(conll->lines);
	free(conll->fields);
	free(conll->documents);
	buffer_release(&conll->text);
	string_store_release(&conll->strings);
	*conll = (struct conll){0};
}

void conll_describe(const struct conll *conll, struct buffer *out)
{
	char count[FORMAT_BYTES];
	buffer_format(out, "%s%s between %s (word %d", conll->treebank ? "a treebank in CoNLL-U, " : "",
		      format_counted(count, conll->column_count, "column", "columns"),
		      conll->separator == '\t' ? "tabs" : "spaces", (int)conll->word_column + 1);
	if (conll->tag_column >= 0)
		buffer_format(out, ", tag %d%s)", (int)conll->tag_column + 1,
			      conll->treebank && conll->tag_column == TREEBANK_UPOS - 1 ? ", UPOS" : "");
	else
		buffer_text(out, ", no tags)");
	if (conll->has_header)
		buffer_text(out, ", with a header");
	buffer_format(out, ", %s", format_counted(count, conll->sentence_count, "sentence", "sentences"));
	buffer_format(out, ", %s", format_counted(count, conll->token_count, "word", "words"));
	if (conll->document_count > 0)
		buffer_format(out, ", %s", format_counted(count, conll->document_count, "document", "documents"));
	if (conll->comment_count > 0)
		buffer_format(out, ", %s skipped", format_counted(count, conll->comment_count, "comment", "comments"));
}
