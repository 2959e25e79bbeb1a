/* Reads files of questions, and finds each answer in its paragraph even where the file miscounts. */
#include "tasks/squad/squad_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/string_index.h"
#include "formats/text_file.h"
#include "text/utf8.h"

struct reader {
	struct squad_set *set;
	const struct squad_options *options;
	const char *name;
	int64_t answer_capacity;
	int64_t paragraph_in_article;
	int64_t record; /* in a flat file: number from 1, in JSON lines the line number; 0: articles and paragraphs */
	struct string_index ids;
	/* Messages about the first and the latest answer that is not where the file says. */
	char first_missed[1024], last_missed[1024];
};

/* Puts "'f.json': article 3 ('Normans'), paragraph 2" into `out`. */
static void describe_place(const struct reader *reader, char out[512])
{
	if (reader->record > 0) {
		snprintf(out, 512, "'%.250s': record %lld", reader->name, (long long)reader->record);
		return;
	}
	const struct squad_paragraph *paragraph = &reader->set->paragraphs[reader->set->paragraph_count - 1];
	snprintf(out, 512, "'%.250s': article %lld%s%.120s%s, paragraph %lld", reader->name, (long long)paragraph->article + 1,
		 paragraph->title[0] ? " ('" : "", paragraph->title, paragraph->title[0] ? "')" : "",
		 (long long)reader->paragraph_in_article);
}

static enum status copy_string(struct reader *reader, const struct json *value, const char **out, int64_t *out_size)
{
	*out_size = (int64_t)value->text_size;
	return string_store_copy(&reader->set->strings, value->text, value->text_size, out);
}

/* Finds the words from that of character `first` to that of character `last`, splitting text into words as Google's scripts do. A
 * character between words belongs to the word before it. */
static void find_words(const struct squad_paragraph *paragraph, int64_t first, int64_t last, int64_t *out_begin, int64_t *out_end)
{
	int64_t at = 0, word_begin = 0, word_end = 0; /* of the latest word */
	bool in_word = false;

	*out_begin = 0;
	for (int64_t i = 0; at < paragraph->text_size && (i <= last || in_word); i++) {
		uint32_t character;
		size_t length = utf8_decode(paragraph->text + at, (size_t)(paragraph->text_size - at), &character);
		bool gap = character == ' ' || character == '\t' || character == '\r' || character == '\n' || character == 0x202F;
		if (!gap && !in_word && i <= last)
			word_begin = at;
		in_word = !gap;
		at += (int64_t)length;
		if (in_word)
			word_end = at;
		if (i == first)
			*out_begin = word_begin;
	}
	*out_end = word_end;
}

/* Appends the text with white space collapsed into single spaces, and none at the ends. */
static void append_words(struct buffer *out, const char *text, int64_t size)
{
	bool gap = false;
	for (int64_t at = 0; at < size;) {
		uint32_t character;
		size_t length = utf8_decode(text + at, (size_t)(size - at), &character);
		if (utf8_is_space(character)) {
			gap = out->size > 0;
		} else {
			if (gap)
				buffer_char(out, ' ');
			gap = false;
			buffer_append(out, text + at, length);
		}
		at += (int64_t)length;
	}
}

/* The rule of Google's run_squad.py: do the words from that of the answer's first character to that of its last contain the
 * answer, ignoring white space? A character between words belongs to the word before it. */
static enum status is_near(const struct squad_paragraph *paragraph, const struct squad_answer *answer, bool *out)
{
	int64_t begin, end, length = (int64_t)utf8_length(answer->text, (size_t)answer->text_size);
	struct buffer words = {0}, wanted = {0};

	*out = false;
	if (answer->start < 0 || length == 0 || answer->start > paragraph->length - length)
		return OK;
	find_words(paragraph, answer->start, answer->start + length - 1, &begin, &end);
	append_words(&words, paragraph->text + begin, end - begin);
	append_words(&wanted, answer->text, answer->text_size);
	enum status status = buffer_status(&words) != OK ? buffer_status(&words) : buffer_status(&wanted);
	*out = status == OK && wanted.size > 0 && strstr(buffer_string(&words), buffer_string(&wanted));
	buffer_release(&words);
	buffer_release(&wanted);
	return status;
}

static bool is_at(const struct squad_paragraph *paragraph, const struct squad_answer *answer, int64_t byte)
{
	return byte >= 0 && answer->text_size > 0 && paragraph->text_size - byte >= answer->text_size &&
	       memcmp(paragraph->text + byte, answer->text, (size_t)answer->text_size) == 0;
}

/* Files differ in how they count white space and marks at the beginning, so the text may be up to this many characters off. */
#define SHIFT_MOST 3

static bool find_shifted(const struct squad_paragraph *paragraph, struct squad_answer *answer)
{
	if (answer->start > paragraph->text_size + SHIFT_MOST)
		return false;
	for (int64_t shift = 1; shift <= SHIFT_MOST; shift++)
		for (int side = -1; side <= 1; side += 2) {
			int64_t start = answer->start + side * shift;
			int64_t byte = start < 0 ? -1 : utf8_offset(paragraph->text, (size_t)paragraph->text_size, start);
			if (!is_at(paragraph, answer, byte))
				continue;
			answer->start = start;
			answer->start_byte = byte;
			return true;
		}
	return false;
}

/* The byte at UTF-16 unit `index` of the text; -1: there is none, or it is half a character. */
static int64_t utf16_offset(const struct squad_paragraph *paragraph, int64_t index)
{
	int64_t at = 0;
	while (at < paragraph->text_size && index > 0) {
		uint32_t character;
		at += (int64_t)utf8_decode(paragraph->text + at, (size_t)(paragraph->text_size - at), &character);
		index -= character >= 0x10000 && character != UTF8_INVALID ? 2 : 1;
	}
	return index == 0 ? at : -1;
}

static enum status place_answer(struct squad_set *set, const struct squad_paragraph *paragraph, struct squad_answer *answer)
{
	size_t size = (size_t)answer->text_size;
	int64_t byte = answer->start < 0 ? -1 : utf8_offset(paragraph->text, (size_t)paragraph->text_size, answer->start);
	bool near;

	if (is_at(paragraph, answer, byte)) {
		answer->place = SQUAD_FOUND;
		answer->start_byte = byte;
		return OK;
	}
	TRY(is_near(paragraph, answer, &near));
	if (near) {
		answer->place = SQUAD_NEAR;
		return OK;
	}
	answer->place = size > 0 && memmem(paragraph->text, (size_t)paragraph->text_size, answer->text, size) ? SQUAD_ELSEWHERE
													      : SQUAD_ABSENT;
	if (answer->place == SQUAD_ABSENT || answer->start < 0)
		return OK;
	set->byte_count += is_at(paragraph, answer, answer->start);
	set->utf16_count += is_at(paragraph, answer, utf16_offset(paragraph, answer->start));
	if (find_shifted(paragraph, answer))
		answer->place = SQUAD_SHIFTED;
	return OK;
}

/* What the program that wrote the file may have counted instead of characters; NULL: unknown. */
static const char *unit_of_start(const struct squad_paragraph *paragraph, const struct squad_answer *answer)
{
	if (answer->place != SQUAD_ELSEWHERE || answer->start < 0)
		return NULL;
	if (is_at(paragraph, answer, answer->start))
		return "bytes of UTF-8";
	return is_at(paragraph, answer, utf16_offset(paragraph, answer->start)) ? "units of UTF-16" : NULL;
}

/* Counts an answer that is not where the file says; the first is kept for the log. */
static void note_missed(struct reader *reader, const struct squad_question *question, const struct squad_answer *answer)
{
	static const char *const where[] = {"", ", but for white space", ", but a few characters off", ", but elsewhere in it",
					    ", nor anywhere else in it"};
	char place[512], unit[96] = "";
	const char *counted = unit_of_start(&reader->set->paragraphs[question->paragraph], answer);

	reader->set->near_count += answer->place == SQUAD_NEAR;
	reader->set->shifted_count += answer->place == SQUAD_SHIFTED;
	reader->set->elsewhere_count += answer->place == SQUAD_ELSEWHERE;
	reader->set->absent_count += answer->place == SQUAD_ABSENT;
	describe_place(reader, place);
	if (counted)
		snprintf(unit, sizeof unit, " (where \"answer_start\" says if it counts %s)", counted);
	snprintf(reader->last_missed, sizeof reader->last_missed,
		 "%s: question '%.100s': the answer '%.200s' is not at character %lld of the paragraph%s%s", place, question->id,
		 answer->text, (long long)answer->start, where[answer->place], unit);
	if (!reader->first_missed[0])
		memcpy(reader->first_missed, reader->last_missed, sizeof reader->first_missed);
}

/* Appends the answer to those of the set. */
static enum status add_answer(struct reader *reader, const struct squad_question *question, const struct json *text,
			      const struct json *start)
{
	char place[512];
	struct squad_set *set = reader->set;

	if (!text || text->kind != JSON_STRING || (start && (start->kind != JSON_NUMBER || !start->is_integer))) {
		describe_place(reader, place);
		return error_set(ERR_DATA,
				 "%s: question '%.100s': an answer must be an object with a string \"text\" and an integer "
				 "\"answer_start\"",
				 place, question->id);
	}
	TRY(memory_grow(&set->answers, &reader->answer_capacity, set->answer_count + 1, sizeof *set->answers, "answers"));
	struct squad_answer *answer = &set->answers[set->answer_count];
	*answer = (struct squad_answer){.start = start && start->integer >= 0 ? start->integer : -1};
	TRY(copy_string(reader, text, &answer->text, &answer->text_size));
	TRY(place_answer(set, &set->paragraphs[question->paragraph], answer));
	if (answer->place != SQUAD_FOUND && reader->options->use != SQUAD_PREDICT)
		note_missed(reader, question, answer);
	set->answer_count++;
	return OK;
}

/* Takes {"text": [...], "answer_start": [...]}, as in Hugging Face's data sets. */
static enum status take_answer_columns(struct reader *reader, struct squad_question *question, const struct json *columns)
{
	char place[512];
	const struct json *texts = json_member(columns, "text"), *starts = json_member(columns, "answer_start");
	if (!texts || texts->kind != JSON_ARRAY ||
	    (starts && (starts->kind != JSON_ARRAY || starts->child_count != texts->child_count))) {
		describe_place(reader, place);
		return error_set(
			ERR_DATA,
			"%s: question '%.100s': \"answers\" must have lists \"text\" and \"answer_start\" of the same length",
			place, question->id);
	}
	const struct json *start = starts ? starts->first_child : NULL;
	for (const struct json *text = texts->first_child; text; text = text->next, start = start ? start->next : NULL)
		TRY(add_answer(reader, question, text, start));
	/* Empty lists mean that there is no answer, not that it is unknown. */
	question->is_impossible = texts->child_count == 0;
	return OK;
}

static enum status take_answers(struct reader *reader, struct squad_question *question, const struct json *value)
{
	char place[512];
	const struct json *answers = json_member(value, "answers");

	question->first_answer = reader->set->answer_count;
	if (!answers || answers->kind == JSON_NULL || question->is_impossible)
		return OK;
	if (answers->kind == JSON_OBJECT) {
		TRY(take_answer_columns(reader, question, answers));
		question->answer_count = reader->set->answer_count - question->first_answer;
		return OK;
	}
	if (answers->kind != JSON_ARRAY) {
		describe_place(reader, place);
		return error_set(ERR_DATA, "%s: question '%.100s': \"answers\" must be a list", place, question->id);
	}
	for (const struct json *answer = answers->first_child; answer; answer = answer->next)
		TRY(add_answer(reader, question, json_member(answer, "text"), json_member(answer, "answer_start")));
	question->answer_count = reader->set->answer_count - question->first_answer;
	return OK;
}

/* Training needs the places of answers: drops answers that are not in place; a question with none left is a bad record. */
static enum status keep_found_answers(struct reader *reader, struct squad_question *question)
{
	struct squad_set *set = reader->set;
	int64_t kept = 0;
	for (int64_t i = 0; i < question->answer_count; i++) {
		struct squad_answer *answer = &set->answers[question->first_answer + i];
		if (squad_is_placed(answer))
			set->answers[question->first_answer + kept++] = *answer;
	}
	if (kept == 0)
		return error_set(ERR_DATA, "%s", reader->last_missed);
	question->answer_count = kept;
	set->answer_count = question->first_answer + kept;
	return OK;
}

/* Does the question have what the set's use needs? */
static enum status check_question(struct reader *reader, struct squad_question *question)
{
	char place[512];
	const struct squad_options *options = reader->options;

	describe_place(reader, place);
	if (options->use != SQUAD_PREDICT && question->is_impossible && !options->allow_impossible)
		return error_hinted(
			error_set(ERR_DATA,
				  "%s: question '%.100s' has no answer in its paragraph (\"is_impossible\", or empty lists of "
				  "answers)",
				  place, question->id),
			"such questions belong to SQuAD 2.0: give --version_2_with_negative, or --on_bad_record skip to leave "
			"them out");
	if (options->use != SQUAD_PREDICT && !question->is_impossible && question->answer_count == 0)
		return error_set(ERR_DATA, "%s: question '%.100s' has no answer, and is not said to be impossible", place,
				 question->id);
	if (options->use == SQUAD_TRAIN && question->answer_count > 0)
		return keep_found_answers(reader, question);
	return OK;
}

/* The id, which some files have as a number. */
static enum status take_id(struct reader *reader, const struct json *value, struct squad_question *question)
{
	char place[512], own[24];
	const struct json *id = json_member(value, "id");
	bool number = id && id->kind == JSON_NUMBER && id->is_integer;

	describe_place(reader, place);
	if (!id && reader->record > 0) { /* a flat record need not have one: its number is used, or the next that is free */
		int64_t free_number = reader->set->question_count;
		do
			snprintf(own, sizeof own, "%lld", (long long)free_number++);
		while (string_index_find(&reader->ids, own) >= 0);
		return string_store_copy(&reader->set->strings, own, strlen(own), &question->id);
	}
	if (!number && (!id || id->kind != JSON_STRING || id->text_size == 0 || strlen(id->text) != id->text_size))
		return error_set(ERR_DATA, "%s: a question without \"id\"", place);
	if (string_index_find(&reader->ids, id->text) >= 0)
		return error_hinted(error_set(ERR_DATA, "%s: a second question has the id '%.100s'", place, id->text),
				    "answers and scores are matched by id: give each question a different one");
	return string_store_copy(&reader->set->strings, id->text, id->text_size, &question->id);
}

static enum status parse_question(struct reader *reader, const struct json *value, struct squad_question *question)
{
	char place[512];
	const struct json *text = json_member(value, "question"), *impossible = json_member(value, "is_impossible");

	describe_place(reader, place);
	if (value->kind != JSON_OBJECT)
		return error_set(ERR_DATA, "%s: an entry of \"qas\" is not an object", place);
	TRY(take_id(reader, value, question));
	if (!text || text->kind != JSON_STRING)
		return error_set(ERR_DATA, "%s: question '%.100s' has no string \"question\"", place, question->id);
	if (impossible && impossible->kind != JSON_BOOL)
		return error_set(ERR_DATA, "%s: question '%.100s': \"is_impossible\" must be true or false", place, question->id);
	TRY(copy_string(reader, text, &question->text, &question->text_size));
	question->paragraph = reader->set->paragraph_count - 1;
	question->is_impossible = impossible && impossible->boolean;
	TRY(take_answers(reader, question, value));
	return check_question(reader, question);
}

static enum status take_question(struct reader *reader, const struct json *value)
{
	struct squad_set *set = reader->set;
	int64_t answers = set->answer_count, known;

	TRY(memory_grow(&set->questions, &set->question_capacity, set->question_count + 1, sizeof *set->questions, "questions"));
	struct squad_question *question = &set->questions[set->question_count];
	*question = (struct squad_question){0};
	enum status status = parse_question(reader, value, question);
	if (status != OK) {
		set->answer_count = answers;
		return bad_record(reader->options->bad, status);
	}
	TRY(string_index_add(&reader->ids, question->id, set->question_count, &known));
	set->impossible_count += question->is_impossible;
	set->unlabeled_count += !question->is_impossible && question->answer_count == 0;
	set->paragraphs[question->paragraph].question_count++;
	set->question_count++;
	return OK;
}

/* Adds the next paragraph, whose text is `context`. */
static enum status add_paragraph(struct reader *reader, const struct json *context, const char *title)
{
	struct squad_set *set = reader->set;
	TRY(memory_grow(&set->paragraphs, &set->paragraph_capacity, set->paragraph_count + 1, sizeof *set->paragraphs,
			"paragraphs"));
	struct squad_paragraph *paragraph = &set->paragraphs[set->paragraph_count++];
	*paragraph = (struct squad_paragraph){
		.text = "", .article = set->article_count - 1, .title = title, .first_question = set->question_count};
	reader->paragraph_in_article++;
	if (!context || context->kind != JSON_STRING)
		return OK;
	TRY(copy_string(reader, context, &paragraph->text, &paragraph->text_size));
	paragraph->length = (int64_t)utf8_length(paragraph->text, (size_t)paragraph->text_size);
	return OK;
}

static enum status take_paragraph(struct reader *reader, const struct json *value, const char *title)
{
	char place[512];
	const struct json *context = json_member(value, "context"), *questions = json_member(value, "qas");

	TRY(add_paragraph(reader, context, title));
	if (!context || context->kind != JSON_STRING || !questions || questions->kind != JSON_ARRAY) {
		describe_place(reader, place);
		return error_set(ERR_DATA, "%s: must have a string \"context\" and a list \"qas\"", place);
	}
	for (const struct json *question = questions->first_child; question; question = question->next)
		TRY(take_question(reader, question));
	return OK;
}

static enum status take_article(struct reader *reader, const struct json *value)
{
	struct squad_set *set = reader->set;
	const char *title = "", *copy;
	const struct json *paragraphs = json_member(value, "paragraphs");

	set->article_count++;
	reader->paragraph_in_article = 0;
	if (!paragraphs || paragraphs->kind != JSON_ARRAY)
		return error_set(ERR_DATA, "'%s': article %lld has no list \"paragraphs\"", reader->name,
				 (long long)set->article_count);
	TRY(json_get_string(value, reader->name, "title", &title));
	TRY(string_store_copy(&set->strings, title, strlen(title), &copy));
	for (const struct json *paragraph = paragraphs->first_child; paragraph; paragraph = paragraph->next)
		TRY(take_paragraph(reader, paragraph, copy));
	return OK;
}

/* Takes a question and its paragraph in one object, the form of Hugging Face's run_qa.py. Consecutive records about the same
 * paragraph share it. */
static enum status take_record(struct reader *reader, const struct json *value)
{
	struct squad_set *set = reader->set;
	const struct json *context = json_member(value, "context");
	const struct squad_paragraph *last = set->paragraph_count > 0 ? &set->paragraphs[set->paragraph_count - 1] : NULL;

	if (!context || context->kind != JSON_STRING || !json_member(value, "question"))
		return bad_record(reader->options->bad,
				  error_set(ERR_DATA, "'%s': record %lld must have strings \"context\" and \"question\"",
					    reader->name, (long long)reader->record));
	bool same = last && last->text_size == (int64_t)context->text_size &&
		    memcmp(last->text, context->text, context->text_size) == 0;
	if (!same) {
		set->article_count = 1;
		TRY(add_paragraph(reader, context, ""));
	}
	return take_question(reader, value);
}

static enum status no_squad_file(const struct reader *reader, const char *what)
{
	return error_hinted(error_set(ERR_DATA, "'%s': not a SQuAD file: %s", reader->name, what),
			    "the form is {\"data\": [{\"paragraphs\": [{\"context\": ..., \"qas\": [...]}]}]}, or objects with "
			    "\"id\", \"context\", \"question\" and \"answers\", in a list or one per line");
}

static enum status take_root(struct reader *reader, const struct json *root)
{
	const struct json *version = json_member(root, "version"),
			  *data = root->kind == JSON_ARRAY ? root : json_member(root, "data");

	if (!data || data->kind != JSON_ARRAY)
		return no_squad_file(reader, "it is JSON, but not an object with a list \"data\"");
	bool has_version = version && (version->kind == JSON_STRING || version->kind == JSON_NUMBER);
	TRY(string_store_copy(&reader->set->strings, has_version ? version->text : "", has_version ? version->text_size : 0,
			      &reader->set->version));
	bool flat = data->first_child && json_member(data->first_child, "context");
	for (const struct json *item = data->first_child; item; item = item->next) {
		reader->record += flat;
		TRY(flat ? take_record(reader, item) : take_article(reader, item));
	}
	return OK;
}

/* Bytes of the line at `text`, without its end. */
static size_t line_size(const char *text, size_t size)
{
	const char *newline = memchr(text, '\n', size);
	return newline ? (size_t)(newline - text) : size;
}

/* Does the file consist of lines of JSON, one object each? */
static bool has_lines(const char *text, size_t size)
{
	struct json_document document = {0};
	size_t blank = strspn(text, " \t\r\n"), line = line_size(text + blank, size - blank);
	if (json_parse(&document, "", text + blank, line) != OK)
		return false;
	bool flat = document.root->kind == JSON_OBJECT && json_member(document.root, "context");
	json_release(&document);
	return flat;
}

static bool is_blank(const char *text, size_t size)
{
	while (size > 0 && (*text == ' ' || *text == '\t' || *text == '\r')) {
		text++;
		size--;
	}
	return size == 0;
}

static enum status take_lines(struct reader *reader, const char *text, size_t size)
{
	for (size_t at = 0, line; at < size; at += line + 1) {
		struct json_document document = {0};
		char name[512];
		line = line_size(text + at, size - at);
		reader->record++;
		if (is_blank(text + at, line))
			continue;
		snprintf(name, sizeof name, "%.400s, line %lld", reader->name, (long long)reader->record);
		enum status status = json_parse(&document, name, text + at, line);
		status = status == OK ? take_record(reader, document.root) : bad_record(reader->options->bad, status);
		json_release(&document);
		TRY(status);
	}
	return OK;
}

static bool begins_as_json(const char *text)
{
	text += strspn(text, " \t\r\n");
	return *text == '{' || *text == '[' || !*text;
}

/* The error for a table or a text. */
static enum status refuse_file(const struct reader *reader)
{
	return error_hinted(error_set(ERR_DATA, "'%s' holds no questions about paragraphs: these come as JSON", reader->name),
			    "give a file in SQuAD's form, or a JSON object for each question with context and question (and "
			    "answers, to train on it or to score it)");
}

static enum status take_file(struct reader *reader, const struct buffer *text)
{
	struct json_document document = {0};
	enum status status;
	if (has_lines(buffer_string(text), text->size)) {
		status = take_lines(reader, buffer_string(text), text->size);
	} else {
		status = json_parse(&document, reader->name, buffer_string(text), text->size);
		if (status == OK)
			status = take_root(reader, document.root);
		else if (status == ERR_DATA && !begins_as_json(buffer_string(text)))
			status = refuse_file(reader);
		json_release(&document);
	}
	if (status == OK && reader->set->question_count == 0)
		status = error_set(ERR_DATA, "'%s': there is no question in it%s", reader->name,
				   reader->options->bad->count > 0 ? " that can be used" : "");
	return status;
}

/* Warns if the program that wrote the file seems to have counted something other than characters. */
static void log_units(const struct reader *reader)
{
	const struct squad_set *set = reader->set;
	bool bytes = set->byte_count >= set->utf16_count;
	int64_t count = bytes ? set->byte_count : set->utf16_count;
	if (count > 0)
		log_warning("'%s': %lld of these answers would be right if \"answer_start\" counted %s instead of characters "
			    "(code points)",
			    reader->name, (long long)count, bytes ? "bytes of UTF-8" : "units of UTF-16");
}

static void log_set(const struct reader *reader)
{
	char questions[FORMAT_BYTES], paragraphs[FORMAT_BYTES], answers[FORMAT_BYTES], missed[FORMAT_BYTES];
	const struct squad_set *set = reader->set;

	log_note("'%s': SQuAD JSON%s%.40s: %s, %s, %s; %lld impossible", reader->name, set->version[0] ? ", version " : "",
		 set->version, format_counted(paragraphs, set->paragraph_count, "paragraph", "paragraphs"),
		 format_counted(questions, set->question_count, "question", "questions"),
		 format_counted(answers, set->answer_count, "answer", "answers"), (long long)set->impossible_count);
	int64_t missed_count = set->near_count + set->shifted_count + set->elsewhere_count + set->absent_count;
	if (missed_count > 0)
		log_warning("%s not exactly where the file says (%lld but for white space, %lld a few characters off, %lld "
			    "elsewhere in the paragraph, %lld nowhere in it); the first: %s",
			    format_counted(missed, missed_count, "answer is", "answers are"), (long long)set->near_count,
			    (long long)set->shifted_count, (long long)set->elsewhere_count, (long long)set->absent_count,
			    reader->first_missed);
	log_units(reader);
}

enum status squad_read(struct squad_set *out, const char *path, const struct squad_options *options)
{
	struct text_file file;
	*out = (struct squad_set){.version = ""};
	TRY(text_file_read(&file, path, TEXT_FILE_LIMIT));
	struct reader reader = {.set = out, .options = options, .name = file.name};
	enum status status = take_file(&reader, &file.text);
	if (status == OK)
		log_set(&reader);
	string_index_release(&reader.ids);
	text_file_release(&file);
	if (status != OK)
		squad_release(out);
	return status;
}

enum status squad_add(struct squad_set *set, const char *question, const char *paragraph)
{
	TRY(memory_grow(&set->paragraphs, &set->paragraph_capacity, set->paragraph_count + 1, sizeof *set->paragraphs,
			"paragraphs"));
	TRY(memory_grow(&set->questions, &set->question_capacity, set->question_count + 1, sizeof *set->questions, "questions"));
	struct squad_paragraph *place = &set->paragraphs[set->paragraph_count];
	struct squad_question *asked = &set->questions[set->question_count];
	*place = (struct squad_paragraph){
		.text_size = (int64_t)strlen(paragraph), .title = "", .first_question = set->question_count, .question_count = 1};
	*asked = (struct squad_question){.text_size = (int64_t)strlen(question), .paragraph = set->paragraph_count};
	TRY(string_store_copy(&set->strings, paragraph, (size_t)place->text_size, &place->text));
	TRY(string_store_copy(&set->strings, question, (size_t)asked->text_size, &asked->text));
	place->length = (int64_t)utf8_length(place->text, (size_t)place->text_size);
	set->version = "";
	set->article_count = 1;
	set->paragraph_count++;
	set->question_count++;
	return OK;
}

void squad_keep(struct squad_set *set, int64_t most)
{
	if (set->question_count <= most)
		return;
	set->question_count = most;
	set->impossible_count = set->unlabeled_count = set->answer_count = set->paragraph_count = 0;
	for (int64_t q = 0; q < most; q++) {
		const struct squad_question *question = &set->questions[q];
		set->impossible_count += question->is_impossible;
		set->unlabeled_count += !question->is_impossible && question->answer_count == 0;
		if (question->answer_count > 0)
			set->answer_count = question->first_answer + question->answer_count;
		if (question->paragraph >= set->paragraph_count)
			set->paragraph_count = question->paragraph + 1;
	}
}

void squad_release(struct squad_set *set)
{
	free(set->paragraphs);
	free(set->questions);
	free(set->answers);
	string_store_release(&set->strings);
	*set = (struct squad_set){.version = ""};
}
