/* Reads files of tagged words in any format into one text with places, and settles their scheme. */
#include "tasks/tagging/tag_text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/string_index.h"
#include "formats/line_ends.h"
#include "formats/text_file.h"
#include "tasks/tagging/tag_json.h"
#include "text/utf8.h"

void tag_text_free(struct tag_text *text)
{
	if (!text)
		return;
	for (int64_t i = 0; i < text->file_count; i++)
		conll_release(&text->files[i]);
	void *const blocks[] = {
		text->files,  text->first_words, text->first_sentences, text->starts, text->texts, text->running, text->words,
		text->begins, text->tags,        text->items,           text->gold,   text->names, text->ids};
	for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
		free(blocks[i]);
	string_store_release(&text->strings);
	free(text);
}

void tag_text_keep(struct tag_text *text, int64_t most)
{
	if (text->sentence_count <= most)
		return;
	text->sentence_count = most;
	text->word_count = text->starts[most];
	for (int64_t i = 0; i < text->file_count; i++) {
		int64_t left = most - text->first_sentences[i];
		struct conll *file = &text->files[i];
		if (left >= file->sentence_count)
			continue;
		file->sentence_count = left > 0 ? left : 0;
		file->token_count = left > 0 ? file->sentence_starts[left] : 0;
	}
}

void tag_text_place(const struct tag_text *text, int64_t word, const char **out_file, int64_t *out_line)
{
	int64_t file = 0;
	while (word >= text->first_words[file + 1])
		file++;
	*out_file = text->files[file].name;
	*out_line = text->files[file].lines[word - text->first_words[file]];
}

/* A training set with a single sentence of this many words is probably a mistake. */
#define MANY_WORDS 30

/* ---- Schemes ---- */

enum status tags_of_labels(const struct task_state *state, struct tag_form *out)
{
	struct tag_form recorded = tagging_settings(state)->tags;
	const char **names;
	int64_t starts[2] = {0, state->labels.count}, bad;
	struct tag_facts facts;
	if (recorded.separator) {
		*out = (struct tag_form){recorded.scheme == TAGS_PLAIN ? TAGS_PLAIN : TAGS_IOB2, recorded.separator};
		return OK;
	}
	TRY(memory_new(&names, state->labels.count, sizeof *names, "labels"));
	for (int64_t i = 0; i < state->labels.count; i++)
		names[i] = state->labels.labels[i].name;
	enum status status = tags_detect(names, starts, 1, &facts, &bad);
	free(names);
	if (status == OK)
		*out = facts.form;
	return status;
}

enum status tags_of_files(const struct task_state *state, struct tag_form *out)
{
	if (!tagging_settings(state)->tags.separator)
		return tags_of_labels(state, out);
	*out = tagging_settings(state)->tags;
	return OK;
}

/* ---- Reading ---- */

struct tag_cutter tagging_cutter(const struct task_state *state)
{
	return (struct tag_cutter){.kind = tagging_settings(state)->words, .tokenizer = state->settings.tokenizer};
}

static enum status add_text(struct tag_text *text, int64_t sentence, const char *bytes, size_t size, bool running)
{
	TRY(memory_grow(&text->texts, &text->text_capacity, sentence + 1, sizeof *text->texts, "sentences"));
	TRY(memory_grow(&text->running, &text->running_capacity, sentence + 1, sizeof *text->running, "sentences"));
	text->running[sentence] = running;
	return string_store_copy(&text->strings, bytes, size, &text->texts[sentence]);
}

/* State for cutting texts, a sentence each, into words as if each had its own line. A text without words is a sentence, too, so
 * that results correspond to texts. */
struct split {
	struct tag_text *text;
	struct conll *out;
	struct tag_cutter cutter;
	int64_t fields, lines, starts; /* capacities */
};

static void split_begin(struct split *split, const struct task_state *state, struct tag_text *text, struct conll *out)
{
	*split = (struct split){.text = text, .cutter = tagging_cutter(state), .out = out};
	*out = (struct conll){.separator = '\t', .column_count = 1, .tag_column = -1};
	text->file_count++;
}

static enum status split_sentence(struct split *split, const char *line, size_t size, int64_t number)
{
	struct tag_text *text = split->text;
	struct conll *out = split->out;
	int64_t sentence = out->sentence_count++, words;
	TRY(tag_words_cut(&split->cutter, line, size));
	words = out->token_count + split->cutter.count;
	TRY(memory_grow(&out->sentence_starts, &split->starts, sentence + 2, sizeof *out->sentence_starts, "sentences"));
	TRY(memory_grow(&out->fields, &split->fields, words, sizeof *out->fields, "words"));
	TRY(memory_grow(&out->lines, &split->lines, words, sizeof *out->lines, "words"));
	TRY(memory_grow(&text->begins, &text->begin_capacity, text->word_count + words, sizeof *text->begins, "words"));
	out->sentence_starts[sentence] = out->token_count;
	for (int64_t i = 0; i < split->cutter.count; i++) {
		const struct tag_word *word = &split->cutter.words[i];
		TRY(string_store_copy(&text->strings, line + word->begin, word->end - word->begin,
				      &out->fields[out->token_count]));
		text->begins[text->word_count + out->token_count] = (int64_t)word->begin;
		out->lines[out->token_count++] = number;
	}
	out->sentence_starts[sentence + 1] = out->token_count;
	return add_text(text, text->sentence_count + sentence, line, size, true);
}

static const char *const word_kinds[] = {"words", "characters, each a word"};

/* Reads a file with one sentence per line. */
static enum status split_lines(const struct task_state *state, struct tag_text *text, struct conll *out, const char *name,
			       const struct buffer *file)
{
	int64_t number = 0;
	const char *line = buffer_string(file), *limit = line + file->size;
	struct split split;
	enum status status;
	split_begin(&split, state, text, out);
	TRY_GOTO(string_store_copy(&out->strings, name, strlen(name), &out->name), done);
	for (; line < limit; number++) {
		const char *newline = memchr(line, '\n', (size_t)(limit - line)), *end = newline ? newline : limit;
		size_t size = line_ends_trim(line, (size_t)(end - line));
		status = text_check(out->name, number + 1, line, size);
		if (status == OK)
			TRY_GOTO(split_sentence(&split, line, size, number + 1), done);
		else
			TRY_GOTO(bad_record(state->settings.bad, status), done);
		line = newline ? newline + 1 : limit;
	}
	char count[FORMAT_BYTES];
	log_note("'%s': text, one sentence per line: %s, %lld %s", out->name,
		 format_counted(count, out->sentence_count, "sentence", "sentences"), (long long)out->token_count,
		 word_kinds[split.cutter.kind]);
	status = out->sentence_count > 0 ? OK : error_set(ERR_DATA, "'%s': there is no sentence in it", out->name);
done:
	tag_cutter_release(&split.cutter);
	return status;
}

/* Places the words of a sentence in its text, from which they were cut. */
static void find_words_in(struct tag_text *text, const struct conll *file, int64_t sentence, const char *bytes)
{
	const char *at = bytes;
	for (int64_t w = file->sentence_starts[sentence]; w < file->sentence_starts[sentence + 1]; w++) {
		at = strstr(at, conll_word(file, w));
		BUG_IF(!at);
		text->begins[text->word_count + w] = at - bytes;
		at += strlen(conll_word(file, w));
	}
}

/* Makes the text of each sentence: as in the file if `texts` has them, else its words separated by spaces. */
static enum status place_words(struct tag_text *text, const struct conll *file, const char *const *texts)
{
	struct buffer joined = {0};
	enum status status = memory_grow(&text->begins, &text->begin_capacity, text->word_count + file->token_count,
					 sizeof *text->begins, "words");
	for (int64_t s = 0; s < file->sentence_count && status == OK; s++) {
		buffer_clear(&joined);
		if (texts) {
			buffer_text(&joined, texts[s]);
			find_words_in(text, file, s, texts[s]);
		}
		for (int64_t w = file->sentence_starts[s]; w < file->sentence_starts[s + 1] && !texts; w++) {
			if (joined.size > 0)
				buffer_char(&joined, ' ');
			text->begins[text->word_count + w] = (int64_t)joined.size;
			buffer_text(&joined, conll_word(file, w));
		}
		status = buffer_status(&joined);
		if (status == OK)
			status = add_text(text, text->sentence_count + s, buffer_string(&joined), joined.size, texts);
	}
	buffer_release(&joined);
	return status;
}

/* Does each nonblank line have just one word, with blank lines in between? */
static bool has_word_lines(const char *text, size_t size)
{
	bool gap = false, blank_before = true, begun = false;
	for (size_t at = 0; at < size;) {
		const char *newline = memchr(text + at, '\n', size - at);
		size_t begin = at, end = newline ? (size_t)(newline - text) : size;
		at = end + 1;
		utf8_trim(text, &begin, &end);
		for (size_t i = begin; i < end; i++)
			if (text[i] == ' ' || text[i] == '\t')
				return false;
		gap = gap || (begun && begin < end && blank_before);
		blank_before = begin == end;
		begun = begun || begin < end;
	}
	return gap;
}

/* Parses the number of a column from an option; 0: not given. */
static enum status column_number(const char *given, const char *option, int *out)
{
	char *end;
	*out = 0;
	if (!given)
		return OK;
	long number = strtol(given, &end, 10);
	if (*given && *end == '\0' && number != 0 && number > -1000 && number < 1000) {
		*out = (int)number;
		return OK;
	}
	return error_hinted(error_set(ERR_USAGE, "--%s '%s': files of tagged words have no names of columns", option, given),
			    "give the column's number, from 1, or from the end: -1 is the last");
}

/* The columns of a file with one word per line: as given, else as in training, if the file has tags like those of training. */
static enum status choose_columns(const struct task_settings *settings, bool has_tags, struct conll_options *options)
{
	const struct column_choice none = {.text = NULL}, *given = &settings->columns;
	const struct column_choice *trained = has_tags ? &settings->trained : &none;
	TRY(column_number(given->text ? given->text : trained->text, "text_column", &options->word_column));
	return column_number(given->label ? given->label : trained->label, "label_column", &options->tag_column);
}

/* The model's tags, and how many lines of a file have one. */
struct known_tags {
	const struct label_set *labels;
	int64_t found, lettered; /* all; those with a letter in them */
};

static bool is_known_tag(void *context, const char *text, size_t size)
{
	struct known_tags *known = context;
	char name[256];
	bool lettered = false;
	snprintf(name, sizeof name, "%.*s", (int)(size < sizeof name ? size : 0), text);
	if (strcmp(name, "O") != 0 && label_set_find(known->labels, name) < 0)
		return false;
	for (const char *at = name; *at && !lettered; at++)
		lettered = isalpha((unsigned char)*at);
	known->found++;
	known->lettered += lettered;
	return true;
}

/* Does a file to be predicted have words and tags in columns, as those of training? A sentence may end in a tag, too, if it is a
 * full stop, so most tags must have a letter. */
static enum status has_tag_column(const struct task_state *state, const char *bytes, size_t size, bool *out)
{
	struct conll_options options = {.needs_tags = false};
	struct known_tags known = {.labels = &state->labels};
	TRY(choose_columns(&state->settings, true, &options));
	*out = conll_recognize(bytes, size) || conll_is_treebank(bytes, size) || conll_has_header(bytes, size) ||
	       (conll_recognize_tags(bytes, size, options.tag_column, is_known_tag, &known) && known.lettered * 2 > known.found);
	return OK;
}

/* Appends the ids of a file's sentences; those of earlier files without ids have none. */
static enum status take_ids(struct tag_text *text, const char *const *ids, int64_t count)
{
	TRY(memory_grow(&text->ids, &text->id_capacity, text->sentence_count + count, sizeof *text->ids, "sentences"));
	for (; text->id_count < text->sentence_count; text->id_count++)
		text->ids[text->id_count] = NULL;
	for (int64_t s = 0; s < count; s++)
		text->ids[text->id_count++] = ids[s];
	return OK;
}

static enum status read_json(const struct task_state *state, enum task_use use, struct tag_text *text,
			     const struct text_file *content)
{
	const struct task_settings *settings = &state->settings;
	struct conll *file = &text->files[text->file_count++];
	struct tag_form form = {TAGS_IOB2, '-'};
	struct tag_json_facts facts;
	struct tag_cutter cutter = tagging_cutter(state);
	char count[FORMAT_BYTES], all[FORMAT_BYTES];
	if (use == TASK_SCORE)
		TRY(tags_of_files(state, &form));
	if (form.scheme == TAGS_PLAIN) /* spans will not fit the labels, whatever the scheme */
		form.scheme = TAGS_IOB2;
	enum status status = tag_json_read(file, content,
					   &(struct tag_json_settings){.needs_tags = use != TASK_PREDICT,
								       .labels = &settings->given,
								       .labels_of_model = settings->given_by_model,
								       .cutter = &cutter,
								       .form = form,
								       .bad = settings->bad},
					   &facts);
	tag_cutter_release(&cutter);
	TRY(status);
	log_note("'%s': JSON, %s, %lld %s", file->name, format_counted(count, file->sentence_count, "sentence", "sentences"),
		 (long long)file->token_count, facts.texts ? word_kinds[cutter.kind] : "words");
	if (facts.widened > 0)
		log_note("'%s': %s of %s widened to whole words", file->name, format_count(count, facts.widened),
			 format_counted(all, facts.spans, "entity", "entities"));
	if (facts.shared > 0)
		log_warning("'%s': %s whose first word belongs to the entity before as well, which keeps it", file->name,
			    format_counted(count, facts.shared, "entity", "entities"));
	bad_records_log(settings->bad, file->name);
	status = place_words(text, file, facts.texts);
	if (status == OK)
		status = take_ids(text, facts.ids, file->sentence_count);
	free(facts.texts);
	free(facts.ids);
	return status;
}

/* Counts the fields of a column that contain a space; *first is the first of them. */
static int64_t count_phrases(const struct conll *file, int32_t column, const char **first)
{
	int64_t count = 0;
	for (int64_t i = 0; i < file->token_count; i++) {
		const char *field = file->fields[i * file->column_count + column];
		if (strchr(field, ' ') && count++ == 0)
			*first = field;
	}
	return count;
}

/* Does a word consist of digits, with marks between them? */
static bool is_number(const char *word)
{
	size_t size = strspn(word, "0123456789.-:");
	return isdigit((unsigned char)*word) && word[size] == '\0';
}

static enum status count_different(const struct conll *file, int32_t column, int64_t *out)
{
	struct string_index index = {0};
	enum status status = OK;
	for (int64_t i = 0; i < file->token_count && status == OK; i++) {
		int64_t first;
		status = string_index_add(&index, file->fields[i * file->column_count + column], i, &first);
	}
	*out = index.count;
	string_index_release(&index);
	return status;
}

/* A language has more words than a scheme has tags. */
static enum status compare_columns(const struct conll *file)
{
	int64_t words, tags;
	if (file->tag_column < 0)
		return OK;
	TRY(count_different(file, file->word_column, &words));
	TRY(count_different(file, file->tag_column, &tags));
	if (words * 2 < tags)
		log_warning("'%s': its first column, which is taken for the words, has %lld different ones, and that of the tags "
			    "%lld: if they are the other way round, give --text_column %d --label_column 1",
			    file->name, (long long)words, (long long)tags, (int)file->tag_column + 1);
	return OK;
}

/* The first column was taken for that of the words, unless others were named. It is another one if it only has numbers, which
 * count words or sentences, or the same in all lines of each sentence, such as the name of a document; or if it has the tags. */
static enum status check_word_column(const struct conll *file, const struct task_settings *settings)
{
	int64_t numbers = 0, repeated = 0, followers = 0, tags = 0, words_as_tags = 0, types = 0;
	const char *what = NULL;
	if (file->counts_sentences && file->sentence_count == 1)
		return error_hinted(error_set(ERR_DATA, "'%s': its sentences are numbered in a column", file->name),
				    "write a blank line between sentences instead");
	if (file->column_count < 2 || settings->columns.text || settings->trained.text || file->treebank || file->has_header)
		return OK;
	for (int64_t s = 0; s < file->sentence_count; s++) {
		for (int64_t w = file->sentence_starts[s]; w < file->sentence_starts[s + 1]; w++) {
			const char *word = conll_word(file, w);
			bool first = w == file->sentence_starts[s];
			numbers += is_number(word);
			followers += !first;
			repeated += !first && strcmp(word, conll_word(file, w - 1)) == 0;
			words_as_tags += conll_is_tag(word, strlen(word));
			types += conll_is_tag(word, strlen(word)) && strlen(word) > 1;
			tags += file->tag_column >= 0 && conll_is_tag(conll_tag(file, w), strlen(conll_tag(file, w)));
		}
	}
	if (file->token_count > 1 && numbers == file->token_count)
		what = "has numbers alone";
	else if (file->column_count > 2 && followers > 1 && repeated == followers)
		what = "has the same in all lines of a sentence";
	else if ((types * 2 > file->token_count || (types > 0 && words_as_tags == file->token_count)) &&
		 tags * 2 < file->token_count)
		what = "looks like that of the tags";
	if (!what)
		return compare_columns(file);
	return error_hinted(
		error_set(ERR_DATA, "'%s': its first column, which would be taken for the words, %s ('%.60s')", file->name, what,
			  conll_word(file, 0)),
		"say which of its %d columns have the words and the tags, counted from 1: --text_column 2 --label_column %d",
		(int)file->column_count, strstr(what, "tags") ? 1 : (int)file->column_count);
}

/* Are many tags their words, as many lemmas are? Punctuation marks often are their own tags, words never. */
static bool repeats_words(const struct conll *file)
{
	int64_t words = 0, same = 0;
	for (int64_t w = 0; w < file->token_count; w++) {
		const char *word = conll_word(file, w), *tag = conll_tag(file, w);
		bool lower = !tag[strcspn(tag, "ABCDEFGHIJKLMNOPQRSTUVWXYZ")];
		if (!isalpha((unsigned char)*word) && !((unsigned char)*word & 0x80))
			continue;
		words++;
		same += strcmp(word, tag) == 0 || (lower && strcasecmp(word, tag) == 0);
	}
	return words > 1 && same * 4 > words;
}

/* Do the last two columns have tags of one set, most of them equal, as those of a file with predictions have? */
static bool has_two_tags(const struct conll *file)
{
	int32_t before = file->tag_column - 1;
	int64_t same = 0;
	bool differ = false;
	if (before < 1 || before == file->word_column)
		return false;
	for (int64_t w = 0; w < file->token_count; w++) {
		const char *tag = conll_tag(file, w), *other = file->fields[w * file->column_count + before];
		bool found = strcmp(tag, other) == 0;
		same += found;
		differ = differ || strcmp(tag, conll_tag(file, 0)) != 0;
		for (int64_t v = 0; v < file->token_count && !found; v++)
			found = strcmp(tag, file->fields[v * file->column_count + before]) == 0;
		if (!found)
			return false;
	}
	return differ && same * 2 > file->token_count;
}

static enum status refuse_tag_column(const struct conll *file, const char *what)
{
	return error_hinted(error_set(ERR_DATA, "'%s': its last column, which would be taken for the tags, %s ('%.60s')",
				      file->name, what, conll_tag(file, 0)),
			    "say which of its %d columns has the tags, counted from 1, with --label_column",
			    (int)file->column_count);
}

/* The last column was taken for that of the tags, unless another was named. It is another one if it has lemmas, if its numbers
 * rise in every sentence, as those that count words or characters do, or if each sentence has one of its own. Other numbers may
 * be ids. */
static enum status check_tag_column(const struct conll *file, const struct task_settings *settings)
{
	int64_t followers = 0, rising = 0, repeated = 0;
	bool changes = false;
	if (file->tag_column < 0 || settings->columns.label || file->treebank || file->has_header || !file->word_lines)
		return OK;
	if (repeats_words(file))
		return refuse_tag_column(file, "repeats the words, as lemmas do");
	if (has_two_tags(file))
		return refuse_tag_column(file, "has the same tags as the one before it, as predictions beside right tags do");
	for (int64_t s = 0; s < file->sentence_count; s++) {
		for (int64_t w = file->sentence_starts[s]; w < file->sentence_starts[s + 1]; w++) {
			const char *tag = conll_tag(file, w), *before = w > 0 ? conll_tag(file, w - 1) : tag;
			if (!is_number(tag))
				return OK;
			changes = changes || strcmp(tag, before) != 0;
			if (w == file->sentence_starts[s])
				continue;
			followers++;
			rising += strtod(tag, NULL) > strtod(before, NULL);
			repeated += strcmp(tag, before) == 0;
		}
	}
	if (followers < 2 || !changes || (rising < followers && repeated < followers)) {
		log_warning(
			"'%s': each tag is a number, such as '%.60s', and the name of a class: if they are meant, say so with "
			"--label_column %d",
			file->name, conll_tag(file, 0), (int)file->tag_column + 1);
		return OK;
	}
	return refuse_tag_column(file, rising == followers ? "counts" : "has one number for all lines of a sentence");
}

/* Refuses a table of texts with one label each, which also has lines and columns and would pass for one long sentence. */
static enum status check_words(const struct conll *file, enum task_use use, const struct task_settings *settings)
{
	const char *text = NULL;
	bool texts = count_phrases(file, file->word_column, &text) > file->token_count / 2;
	if (!texts && file->tag_column >= 0)
		texts = count_phrases(file, file->tag_column, &text) > file->token_count / 2;
	if (texts)
		return error_hinted(error_set(ERR_DATA, "'%s' has texts where a word or its tag is expected, such as '%.60s'",
					      file->name, text),
				    "files of tagged words have one word per line, and a blank line between sentences; one label "
				    "for a whole text is learned by --task classification");
	TRY(check_word_column(file, settings));
	if (use == TASK_TRAIN)
		TRY(check_tag_column(file, settings));
	if (use == TASK_TRAIN && file->sentence_count == 1 && file->token_count >= MANY_WORDS)
		log_warning("'%s' is a single sentence of %lld words: are the blank lines between sentences missing?", file->name,
			    (long long)file->token_count);
	return OK;
}

static enum status read_file(const struct task_state *state, enum task_use use, struct tag_text *text, const char *path)
{
	const struct task_settings *settings = &state->settings;
	struct conll_options options = {.needs_tags = use != TASK_PREDICT, .bad = settings->bad};
	struct conll *file = &text->files[text->file_count];
	struct text_file content;
	TRY(text_file_read(&content, path, TEXT_FILE_LIMIT));
	const char *bytes = buffer_string(&content.text);
	if (tag_json_recognize(bytes, content.text.size)) {
		enum status status = read_json(state, use, text, &content);
		text_file_release(&content);
		return status;
	}
	bool has_tags = options.needs_tags;
	enum status status = has_tags ? OK : has_tag_column(state, bytes, content.text.size, &has_tags);
	if (status == OK && !has_tags && !settings->columns.text && !has_word_lines(bytes, content.text.size)) {
		status = split_lines(state, text, file, content.name, &content.text);
		text_file_release(&content);
		return status;
	}
	if (status == OK)
		status = choose_columns(settings, has_tags, &options);
	if (status == OK)
		status = conll_parse(file, &content, &options);
	else
		text_file_release(&content);
	TRY(status);
	text->file_count++;
	struct buffer description = {0};
	conll_describe(file, &description);
	log_note("'%s': %s", file->name, buffer_string(&description));
	buffer_release(&description);
	bad_records_log(settings->bad, file->name);
	TRY(check_words(file, use, settings));
	return place_words(text, file, NULL);
}

/* Appends the words of the last file to those of the others. */
static enum status take_words(struct tag_text *text, bool tagged)
{
	const struct conll *file = &text->files[text->file_count - 1];
	int64_t words = text->word_count + file->token_count, sentences = text->sentence_count + file->sentence_count;
	TRY(memory_grow(&text->words, &text->word_capacity, words, sizeof *text->words, "words"));
	TRY(memory_grow(&text->starts, &text->start_capacity, sentences + 1, sizeof *text->starts, "sentences"));
	if (tagged) {
		int64_t capacity = text->word_count;
		TRY(memory_grow(&text->tags, &capacity, words, sizeof *text->tags, "tags"));
	}
	for (int64_t w = 0; w < file->token_count; w++) {
		text->words[text->word_count + w] = conll_word(file, w);
		if (tagged)
			text->tags[text->word_count + w] = conll_tag(file, w);
	}
	for (int64_t s = 0; s <= file->sentence_count; s++)
		text->starts[text->sentence_count + s] = text->word_count + file->sentence_starts[s];
	text->first_words[text->file_count] = text->word_count = words;
	text->first_sentences[text->file_count] = text->sentence_count = sentences;
	return OK;
}

/* Determines the words of running text: characters, if those of training were, unless some came from texts as well. */
static enum tag_words find_words(const struct tag_text *text)
{
	int64_t single = 0, ideographs = 0;
	for (int64_t w = 0; w < text->word_count; w++) {
		uint32_t c;
		const char *word = text->words[w];
		size_t size = strlen(word), first = utf8_decode(word, size, &c);
		single += first == size;
		ideographs += utf8_is_ideograph(c);
	}
	bool characters = ideographs * 10 >= text->word_count && single * 1000 >= text->word_count * 999;
	return characters && !memchr(text->running, true, (size_t)text->sentence_count) ? WORDS_CHARACTERS : WORDS_TOKENS;
}

/* One tag for all words shows that another column was meant, if nobody named it and there is a choice. */
static enum status check_tags_differ(const struct task_state *state, const struct tag_text *text)
{
	bool guessed = !state->settings.columns.label;
	for (int64_t w = 1; w < text->word_count; w++)
		if (strcmp(text->tags[w], text->tags[0]) != 0)
			return OK;
	for (int64_t i = 0; i < text->file_count; i++)
		guessed = guessed && text->files[i].column_count > 2;
	if (!guessed) {
		log_warning("every word of training has the tag '%s'", text->tags[0]);
		return OK;
	}
	return error_hinted(error_set(ERR_DATA, "every word has the tag '%s', from column %d of '%s'", text->tags[0],
				      (int)text->files[0].tag_column + 1, text->files[0].name),
			    "there is nothing to tell apart: say which column has the tags, counted from 1, with --label_column");
}

/* PER-B, b-PER, and B:PER: a scheme's letters, but not as any scheme that is known writes them; or as one writes them, beside
 * words outside of entities that are not O. */
static bool has_scheme_letter(const char *tag)
{
	size_t size = strlen(tag);
	bool behind = size > 2 && strchr("-_", tag[size - 2]) && strchr("BIESLUMW", tag[size - 1]);
	return behind || (size > 2 && strchr("BIESLUMWbieslumw", tag[0]) && !isalnum((unsigned char)tag[1]));
}

/* IPER where there is BPER as well. */
static bool is_joined(const struct tag_text *text, const char *tag)
{
	for (int64_t w = 0; tag[0] == 'I' && strlen(tag) > 2 && w < text->word_count; w++)
		if (text->tags[w][0] == 'B' && strcmp(text->tags[w] + 1, tag + 1) == 0)
			return true;
	return false;
}

/* A scheme is suspected if all tags but one, that of the words outside of entities, have its letters. */
static void note_plain_tags(const struct tag_text *text)
{
	const char *odd = NULL, *inside = NULL, *outside = NULL;
	bool others = false, joined = true;
	for (int64_t w = 0; w < text->word_count; w++) {
		const char *tag = text->tags[w];
		bool is_odd = has_scheme_letter(tag);
		odd = is_odd ? tag : odd;
		inside = tag[0] == 'I' ? tag : inside;
		if (is_odd || strcmp(tag, "O") == 0 || strcmp(tag, "o") == 0)
			continue;
		joined = joined && strchr("BI", tag[0]);
		others = others || (outside && strcmp(tag, outside) != 0);
		outside = outside ? outside : tag;
	}
	if (!odd && joined && inside && is_joined(text, inside))
		odd = inside;
	else if (others)
		odd = NULL;
	if (odd)
		log_warning("tags such as '%.60s' may belong to a scheme that is not known: each word is tagged separately, and "
			    "there are no entities. If they mark entities, write B-TYPE where one begins, I-TYPE where it "
			    "continues, and O for words outside of entities",
			    odd);
	else
		log_note("the tags have no prefixes: each word is tagged separately, and there are no entities");
}

/* Finds the scheme of the training tags. */
static enum status find_scheme(struct task_state *state, const struct tag_text *text)
{
	struct tag_facts facts;
	int64_t bad, line;
	const char *file;
	char number[FORMAT_BYTES];
	enum status status = tags_detect(text->tags, text->starts, text->sentence_count, &facts, &bad);
	if (status != OK) {
		char message[sizeof(error_last()->message)];
		snprintf(message, sizeof message, "%s", error_last()->message);
		if (bad < 0)
			return error_set(status, "'%s': %s", text->files[0].name, message);
		tag_text_place(text, bad, &file, &line);
		status = error_set(status, "'%s', line %lld: %s", file, (long long)line, message);
		if (line == 1)
			error_hint("if the line is a header, delete it");
		return status;
	}
	tagging_settings(state)->tags = facts.form;
	state->decides = facts.form.scheme == TAGS_PLAIN ? "accuracy" : NULL; /* of plain tags, as there are no entities */
	if (facts.form.scheme == TAGS_PLAIN)
		note_plain_tags(text);
	else
		log_note("the tags mark entities in the scheme %s: %s", tag_scheme_name(facts.form.scheme),
			 format_counted(number, facts.entities, "entity", "entities"));
	if (facts.irregular > 0) {
		tag_text_place(text, facts.first_irregular, &file, &line);
		log_warning("%s not allowed by the rules of %s, the first in '%s', line %lld; each is taken as part of an "
			    "entity",
			    format_counted(number, facts.irregular, "tag is", "tags are"), tag_scheme_name(facts.form.scheme),
			    file, (long long)line);
	}
	return OK;
}

/* Rewrites the tags of the files in the form of the labels. */
static enum status rewrite_tags(const struct task_state *state, struct tag_text *text, enum task_use use)
{
	struct tag_form from, to;
	int64_t repaired = 0;
	char number[FORMAT_BYTES];
	struct tag *tags;
	struct buffer name = {0};
	enum status status = OK;
	TRY(tags_of_files(state, &from));
	TRY(tags_of_labels(state, &to));
	if (from.scheme == TAGS_PLAIN)
		return OK;
	TRY(memory_new(&tags, text->word_count, sizeof *tags, "tags"));
	for (int64_t w = 0; w < text->word_count; w++) {
		const char *file;
		int64_t line;
		if (tag_parse(text->tags[w], from, &tags[w]))
			continue;
		tag_text_place(text, w, &file, &line);
		status = error_set(ERR_DATA, "'%s', line %lld: the tag '%.100s' has no prefix of %s, which training has", file,
				   (long long)line, text->tags[w], tag_scheme_name(from.scheme));
		goto done;
	}
	for (int64_t s = 0; s < text->sentence_count; s++)
		tags_convert(tags + text->starts[s], text->starts[s + 1] - text->starts[s], to.scheme, tags + text->starts[s]);
	/* In the scheme of the labels, accuracy counts a file's tags as they are; entities begin with any of them. */
	bool stay = use == TASK_SCORE && from.scheme == to.scheme && from.separator == to.separator;
	for (int64_t w = 0; w < text->word_count; w++) {
		buffer_clear(&name);
		tag_write(&name, tags[w], to);
		TRY_GOTO(buffer_status(&name), done);
		repaired += strcmp(buffer_string(&name), text->tags[w]) != 0;
		if (stay)
			continue;
		TRY_GOTO(string_store_copy(&text->strings, buffer_string(&name), name.size, &text->tags[w]), done);
	}
	if (repaired > 0 && stay)
		log_warning("'%s': %s not allowed by the rules of %s; accuracy counts %s, and predict would print another tag",
			    text->files[0].name, format_counted(number, repaired, "tag is", "tags are"),
			    tag_scheme_name(to.scheme), repaired == 1 ? "it as it is" : "them as they are");
done:
	free(tags);
	buffer_release(&name);
	return status;
}

/* Allocates a text with room for `files` files. */
static enum status tag_text_new(struct tag_text **out, int64_t files)
{
	struct tag_text *text;
	enum status status;
	*out = NULL;
	TRY(memory_new(&text, 1, sizeof *text, "words"));
	TRY_GOTO(memory_new(&text->files, files, sizeof *text->files, "files of words"), failed);
	TRY_GOTO(memory_new(&text->first_words, files + 1, sizeof *text->first_words, "files of words"), failed);
	TRY_GOTO(memory_new(&text->first_sentences, files + 1, sizeof *text->first_sentences, "files of words"), failed);
	*out = text;
	return OK;
failed:
	tag_text_free(text);
	return status;
}

enum status tag_text_read(struct tag_text **out, struct task_state *state, enum task_use use, const char *const *paths,
			  int64_t count)
{
	struct tag_text *text;
	bool tagged = use != TASK_PREDICT;
	enum status status;
	*out = NULL;
	if (count < 1)
		return error_set(ERR_USAGE, "no file of words is given");
	if (use == TASK_TRAIN)
		tagging_settings(state)->words = WORDS_TOKENS; /* as long as nothing else is known */
	TRY(tag_text_new(&text, count));
	for (int64_t i = 0; i < count; i++) {
		TRY_GOTO(read_file(state, use, text, paths[i]), failed);
		TRY_GOTO(take_words(text, tagged), failed);
	}
	if (use == TASK_TRAIN) {
		TRY_GOTO(check_tags_differ(state, text), failed);
		TRY_GOTO(find_scheme(state, text), failed);
		tagging_settings(state)->words = find_words(text);
	}
	if (tagged)
		TRY_GOTO(rewrite_tags(state, text, use), failed);
	*out = text;
	return OK;
failed:
	tag_text_free(text);
	return status;
}

enum status tag_text_take(struct tag_text **out, const struct task_state *state, const struct task_text *texts, int64_t count)
{
	struct tag_text *text;
	struct split split;
	enum status status;
	*out = NULL;
	TRY(tag_text_new(&text, 1));
	split_begin(&split, state, text, &text->files[0]);
	for (int64_t i = 0; i < count; i++)
		TRY_GOTO(split_sentence(&split, texts[i].text, strlen(texts[i].text), i + 1), failed);
	TRY_GOTO(take_words(text, false), failed);
	tag_cutter_release(&split.cutter);
	*out = text;
	return OK;
failed:
	tag_cutter_release(&split.cutter);
	tag_text_free(text);
	return status;
}
