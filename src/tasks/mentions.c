/* Finds the two marked mentions of a text, and marks mentions that are given by positions. */
#include "tasks/mentions.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "text/utf8.h"

/* ---- Forms ---- */

static const struct mention_form forms[] = {
	{{"<<", ">>", "[[", "]]"}},
	{{"[E1]", "[/E1]", "[E2]", "[/E2]"}},
	{{"<e1>", "</e1>", "<e2>", "</e2>"}},
};

const struct mention_form *mention_form_usual(void)
{
	return &forms[1];
}

const struct mention_form *mention_form_detect(const char *text)
{
	for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
		if (strstr(text, forms[i].marks[FIRST_BEGINS]) && strstr(text, forms[i].marks[SECOND_BEGINS]))
			return &forms[i];
	return NULL;
}

enum status mention_form_parse(const char *text, struct mention_form *out)
{
	int count = 0;
	bool fits = true;
	*out = (struct mention_form){0};
	for (const char *at = text; fits; count++) {
		size_t length = strcspn(at, ",");
		fits = count < MENTION_MARKS && length > 0 && length < MARK_BYTES && !memchr(at, ' ', length);
		if (fits)
			memcpy(out->marks[count], at, length);
		if (fits && !at[length]) {
			count++;
			break;
		}
		at += length + 1;
	}
	if (fits && count == MENTION_MARKS && strcmp(out->marks[FIRST_BEGINS], out->marks[SECOND_BEGINS]) != 0)
		return OK;
	return error_hinted(error_set(ERR_USAGE, "--markers %.200s: these are not the markers of two mentions", text),
			    "give what comes before and after the first and the second mention, as --markers '<<,>>,[[,]]'");
}

void mention_form_describe(const struct mention_form *form, struct buffer *out)
{
	for (int i = 0; i < MENTION_MARKS; i++)
		buffer_format(out, "%s%s", i > 0 ? " " : "", form->marks[i]);
}

/* ---- Markers in a text ---- */

static enum status mark_error(const struct example_text *example, const char *what, const char *mark, const char *other)
{
	return error_hinted(
		error_set(ERR_DATA, "%s%s%s %" PRId64 ": %s '%s'%s%s%s", example->file ? "'" : "",
			  example->file ? example->file : "", example->file ? "', line" : "text", example->line, what, mark,
			  other ? " behind '" : "", other ? other : "", other ? "'" : ""),
		"each text of a relation has two mentions with markers around them, such as << >> and [[ ]]; --markers names "
		"others");
}

static bool is_space(char c)
{
	return isspace((unsigned char)c);
}

/* Finds the marker that opens a mention where it also closes it: the first of a pair with white space inside ("@ aspirin @"),
 * else the first ("@aspirin@ inhibits"). White space behind a closing marker does not make it an opening one. */
static enum status find_repeated_opening(const struct example_text *example, const char *mark, const char **out)
{
	const char *first = NULL, *apart = NULL;
	size_t size = strlen(mark);
	for (const char *at = example->text; (at = strstr(at, mark)) != NULL; at += size) {
		bool begins = at == example->text || is_space(at[-1]);
		first = first ? first : at;
		if (apart && begins) {
			*out = apart;
			return OK;
		}
		apart = !apart && begins && is_space(at[size]) ? at : apart;
	}
	*out = first;
	return first ? OK : mark_error(example, "the text has no marker", mark, NULL);
}

/* Finds the marker that opens a mention: the only one followed by white space, else the only one. */
static enum status find_opening(const struct example_text *example, const char *mark, const char **out)
{
	const char *found[2] = {NULL, NULL};
	int counts[2] = {0, 0};
	size_t size = strlen(mark);
	for (const char *at = example->text; (at = strstr(at, mark)) != NULL; at += size) {
		bool apart = is_space(at[size]);
		if (counts[apart]++ == 0)
			found[apart] = at;
	}
	bool apart = counts[1] > 0;
	if (counts[apart] == 0)
		return mark_error(example, "the text has no marker", mark, NULL);
	if (counts[apart] > 1)
		return mark_error(example, "the text has more than one marker", mark, NULL);
	*out = found[apart];
	return OK;
}

/* Where the mention ends: the first closing marker or, if the opening one is followed by white space, the first preceded by white
 * space. */
static const char *find_closing(const char *opening, const char *mark, const char *closing_mark)
{
	const char *inside = opening + strlen(mark), *first = strstr(inside, closing_mark);
	for (const char *at = first; at && is_space(*inside); at = strstr(at + 1, closing_mark))
		if (is_space(at[-1]))
			return at;
	return first;
}

enum status mentions_find(const struct example_text *example, const struct mention_form *form, struct marked_text *out)
{
	for (int mention = 0; mention < 2; mention++) {
		const char *mark = form->marks[2 * mention], *closing_mark = form->marks[2 * mention + 1];
		const char *opening = NULL, *closing;
		TRY(strcmp(mark, closing_mark) == 0 ? find_repeated_opening(example, mark, &opening)
						    : find_opening(example, mark, &opening));
		closing = find_closing(opening, mark, closing_mark);
		if (!closing)
			return mark_error(example, "the text has no marker", closing_mark, mark);
		out->at[2 * mention] = (size_t)(opening - example->text);
		out->at[2 * mention + 1] = (size_t)(closing - example->text);
	}
	buffer_clear(&out->text);
	buffer_text(&out->text, example->text);
	return buffer_status(&out->text);
}

/* ---- Positions in JSON ---- */

/* Names of the first and the second mention. */
static const char *const names[][2] = {{"h", "t"},      {"head", "tail"},      {"e1", "e2"},
				       {"subj", "obj"}, {"subject", "object"}, {"entity1", "entity2"}};
#define NAME_COUNT ((int)(sizeof names / sizeof names[0]))

/* Begin and end as in the file. */
struct place {
	int64_t begin, end;
};

static const char *field_of(const struct example_set *set, int64_t example, const char *name, const char *member)
{
	char column[64];
	snprintf(column, sizeof column, "%s%s", name, member);
	return example_field(set, example, column);
}

/* Reads [begin, end] or {"start", "end"}. */
static bool read_place(const struct json *value, struct place *out)
{
	const struct json *begin = value->first_child, *end = begin ? begin->next : NULL;
	if (value->kind == JSON_OBJECT) {
		begin = json_member(value, "start");
		end = json_member(value, "end");
	} else if (value->kind != JSON_ARRAY || value->child_count != 2) {
		return false;
	}
	if (!begin || !end || !begin->is_integer || !end->is_integer)
		return false;
	*out = (struct place){begin->integer, end->integer};
	return true;
}

/* Parses the positions in `text`: one, or both in a list. */
static bool parse_places(const char *text, int count, struct place *out)
{
	struct json_document document;
	if (json_parse(&document, "", text, strlen(text)) != OK)
		return false;
	const struct json *root = document.root;
	bool fits = count == 1 ? read_place(root, out) : root->kind == JSON_ARRAY && root->child_count == 2;
	const struct json *item = fits && count == 2 ? root->first_child : NULL;
	for (int i = 0; fits && item; i++, item = item->next)
		fits = read_place(item, &out[i]);
	json_release(&document);
	return fits;
}

static bool parse_integer(const char *text, int64_t *out)
{
	char *end;
	*out = text ? strtoll(text, &end, 10) : 0;
	return text && *text && !*end;
}

static const char *list_of_words(const struct example_set *set, int64_t example)
{
	for (int i = 0; generic_words[i]; i++) {
		const char *list = example_field(set, example, generic_words[i]);
		if (list && strcmp(list, set->examples[example].text) == 0)
			return list;
	}
	return NULL;
}

/* Finds the mention of this name. */
static bool find_place(const struct example_set *set, int64_t example, const char *name, bool in_words, struct place *out)
{
	const char *list = field_of(set, example, name, "");
	if (list && parse_places(list, 1, out))
		return true;
	list = field_of(set, example, name, ".pos");
	if (list && parse_places(list, 1, out))
		return true;
	if (parse_integer(field_of(set, example, name, ".start"), &out->begin) &&
	    parse_integer(field_of(set, example, name, ".end"), &out->end))
		return true;
	if (!parse_integer(field_of(set, example, name, "_start"), &out->begin) ||
	    !parse_integer(field_of(set, example, name, "_end"), &out->end))
		return false;
	out->end += in_words; /* TACRED's end is the last word itself */
	return true;
}

static bool find_places(const struct example_set *set, int64_t example, bool in_words, struct place out[2])
{
	const char *both = example_field(set, example, "spans");
	if (both && parse_places(both, 2, out))
		return true;
	for (int i = 0; i < NAME_COUNT; i++)
		if (find_place(set, example, names[i][0], in_words, &out[0]) &&
		    find_place(set, example, names[i][1], in_words, &out[1]))
			return true;
	return false;
}

bool mentions_have_places(const struct example_set *set, int64_t example)
{
	struct place places[2];
	return find_places(set, example, false, places);
}

/* ---- Writing markers ---- */

static enum status place_error(const struct example_text *example, struct place place, int64_t length, const char *unit)
{
	return error_hinted(error_set(ERR_DATA,
				      "'%s', line %" PRId64 ": a mention from %" PRId64 " to %" PRId64
				      " is not part of the text, which has %" PRId64 " %s",
				      example->file, example->line, place.begin, place.end, length, unit),
			    "places count %s from 0, the end exclusive", unit);
}

/* Words with single spaces between them; begins[i] and ends[i] are the bytes of word i. */
struct joined_words {
	struct buffer text;
	size_t *begins, *ends;
	int64_t count;
};

static void joined_words_release(struct joined_words *words)
{
	buffer_release(&words->text);
	free(words->begins);
	free(words->ends);
}

static enum status join_words(const struct example_text *example, const char *list, struct joined_words *out)
{
	struct json_document document;
	enum status status = json_parse(&document, example->file, list, strlen(list));
	if (status != OK)
		return status;
	const struct json *root = document.root;
	TRY_GOTO(memory_new(&out->begins, root->child_count, sizeof *out->begins, "words"), done);
	TRY_GOTO(memory_new(&out->ends, root->child_count, sizeof *out->ends, "words"), done);
	for (const struct json *word = root->first_child; word; word = word->next, out->count++) {
		if (word->kind != JSON_STRING) {
			status = error_set(ERR_DATA,
					   "'%s', line %" PRId64 ": the list of words holds something other than a string",
					   example->file, example->line);
			goto done;
		}
		if (out->count > 0)
			buffer_char(&out->text, ' ');
		out->begins[out->count] = out->text.size;
		buffer_append(&out->text, word->text, word->text_size);
		out->ends[out->count] = out->text.size;
	}
	status = buffer_status(&out->text);
done:
	json_release(&document);
	return status;
}

/* Converts a position from code points or words to bytes. */
static enum status bytes_of_place(const struct example_text *example, const struct joined_words *words, struct place *place)
{
	bool ordered = place->begin >= 0 && place->end > place->begin;
	if (words) {
		if (!ordered || place->end > words->count)
			return place_error(example, *place, words->count, "words");
		*place = (struct place){(int64_t)words->begins[place->begin], (int64_t)words->ends[place->end - 1]};
		return OK;
	}
	size_t size = strlen(example->text);
	int64_t end = ordered ? utf8_offset(example->text, size, place->end) : -1;
	if (end < 0)
		return place_error(example, *place, (int64_t)utf8_length(example->text, size), "characters");
	*place = (struct place){utf8_offset(example->text, size, place->begin), end};
	return OK;
}

/* The order of markers in the text: where one mention ends and another begins, the end comes first; of two that begin together,
 * the longer one; of two that end together, the inner one. */
static bool stands_before(const struct place places[2], int a, int b)
{
	const struct place *of_a = &places[a / 2], *of_b = &places[b / 2];
	bool a_closes = a % 2, b_closes = b % 2;
	int64_t at_a = a_closes ? of_a->end : of_a->begin, at_b = b_closes ? of_b->end : of_b->begin;
	if (at_a != at_b)
		return at_a < at_b;
	if (a_closes != b_closes)
		return a_closes;
	if (a_closes)
		return of_a->begin != of_b->begin ? of_a->begin > of_b->begin : a > b;
	return of_a->end != of_b->end ? of_a->end > of_b->end : a < b;
}

static enum status write_marks(const char *text, size_t size, const struct place places[2], const struct mention_form *form,
			       struct marked_text *out)
{
	int order[MENTION_MARKS] = {0, 1, 2, 3};
	size_t done = 0;
	for (int i = 1; i < MENTION_MARKS; i++)
		for (int k = i; k > 0 && stands_before(places, order[k], order[k - 1]); k--) {
			int swapped = order[k];
			order[k] = order[k - 1];
			order[k - 1] = swapped;
		}
	buffer_clear(&out->text);
	for (int i = 0; i < MENTION_MARKS; i++) {
		const struct place *place = &places[order[i] / 2];
		size_t at = (size_t)(order[i] % 2 ? place->end : place->begin);
		buffer_append(&out->text, text + done, at - done);
		out->at[order[i]] = out->text.size;
		buffer_text(&out->text, form->marks[order[i]]);
		done = at;
	}
	buffer_append(&out->text, text + done, size - done);
	return buffer_status(&out->text);
}

enum status mentions_mark(const struct example_set *set, int64_t example, const struct mention_form *form,
			  struct marked_text *out)
{
	const struct example_text *at = &set->examples[example];
	const char *list = list_of_words(set, example);
	struct joined_words words = {.count = 0};
	struct place places[2];
	enum status status = OK;
	if (!find_places(set, example, list != NULL, places))
		return error_set(ERR_DATA, "'%s', line %" PRId64 ": the row does not say where its two mentions are", at->file,
				 at->line);
	if (list)
		status = join_words(at, list, &words);
	for (int i = 0; i < 2 && status == OK; i++)
		status = bytes_of_place(at, list ? &words : NULL, &places[i]);
	if (status == OK)
		status = write_marks(list ? buffer_string(&words.text) : at->text, list ? words.text.size : strlen(at->text),
				     places, form, out);
	joined_words_release(&words);
	return status;
}

void marked_text_release(struct marked_text *text)
{
	buffer_release(&text->text);
}
