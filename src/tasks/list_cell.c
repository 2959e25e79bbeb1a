/* Reads lists as Python, NumPy, R, and people write them; JSON goes to its own parser. */
#include "tasks/list_cell.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/buffer.h"
#include "base/json.h"
#include "base/memory.h"

/* A cell being read. */
struct reader {
	const char *at, *end;
	struct list_cell *list;
	struct string_store *store;
	struct buffer item;
	bool commas; /* items are separated by commas, not by spaces alone */
	bool plain;  /* an item is neither quoted nor a number nor a truth value */
};

static bool is_space(char c)
{
	return c && strchr(" \t\r\n", c);
}

static void skip_spaces(struct reader *reader)
{
	while (reader->at < reader->end && is_space(*reader->at))
		reader->at++;
}

static void trim(struct reader *reader)
{
	skip_spaces(reader);
	while (reader->end > reader->at && is_space(reader->end[-1]))
		reader->end--;
}

/* The length of a function's name and its bracket, as in "np.str_("; 0: there is none. */
static size_t call_size(const char *at, const char *end)
{
	size_t size = 0;
	while (at + size < end && (isalnum((unsigned char)at[size]) || at[size] == '.' || at[size] == '_'))
		size++;
	return size > 0 && at + size < end && at[size] == '(' && isalpha((unsigned char)*at) ? size + 1 : 0;
}

static enum status add_item(struct reader *reader, const char *text, size_t size)
{
	struct list_cell *list = reader->list;
	TRY(memory_grow(&list->items, &list->capacity, list->count + 1, sizeof *list->items, "labels"));
	return string_store_copy(reader->store, text, size, &list->items[list->count++]);
}

/* 'a', "it's", 'it\'s'. *out false: the quote never ends. */
static enum status take_quoted(struct reader *reader, bool *out)
{
	static const char letters[] = "ntr", meant[] = "\n\t\r";
	char quote = *reader->at++;
	buffer_clear(&reader->item);
	for (; reader->at < reader->end && *reader->at != quote; reader->at++) {
		const char *letter = NULL;
		if (*reader->at == '\\' && reader->at + 1 < reader->end && strchr("\\'\"ntr", reader->at[1]))
			letter = strchr(letters, *++reader->at);
		buffer_char(&reader->item, letter ? meant[letter - letters] : *reader->at);
	}
	*out = reader->at < reader->end;
	reader->at += *out;
	TRY(buffer_status(&reader->item));
	return add_item(reader, buffer_string(&reader->item), reader->item.size);
}

static bool is_plain(const char *text, size_t size)
{
	char copy[64], *end;
	if (size >= sizeof copy)
		return true;
	memcpy(copy, text, size);
	copy[size] = '\0';
	(void)strtod(copy, &end);
	return *end && strcasecmp(copy, "true") != 0 && strcasecmp(copy, "false") != 0;
}

static bool is_missing(const char *text, size_t size)
{
	static const char *const missing[] = {"nan", "NaN", "None", "null", "<NA>"};
	for (size_t i = 0; i < sizeof missing / sizeof *missing; i++)
		if (strlen(missing[i]) == size && memcmp(missing[i], text, size) == 0)
			return true;
	return false;
}

/* A number or a word. *out false: this cannot be an item. */
static enum status take_bare(struct reader *reader, bool *out)
{
	const char *begin = reader->at;
	while (reader->at < reader->end && *reader->at != ',' && (reader->commas || !is_space(*reader->at)) &&
	       !strchr("[](){}'\"", *reader->at))
		reader->at++;
	size_t size = (size_t)(reader->at - begin);
	while (size > 0 && is_space(begin[size - 1]))
		size--;
	*out = size > 0 && !(size == 3 && memcmp(begin, "...", 3) == 0) &&
	       (reader->at == reader->end || *reader->at == ',' || is_space(*reader->at) || *reader->at == ')');
	reader->plain = reader->plain || is_plain(begin, size);
	reader->list->missing = reader->list->missing || is_missing(begin, size);
	return *out ? add_item(reader, begin, size) : OK;
}

static enum status take_item(struct reader *reader, bool *out)
{
	size_t call = call_size(reader->at, reader->end);
	reader->at += call;
	/* u'a' and b'a' are strings of old Python. */
	if (reader->end - reader->at > 1 && strchr("ub", *reader->at) && strchr("'\"", reader->at[1]))
		reader->at++;
	TRY(reader->at < reader->end && strchr("'\"", *reader->at) ? take_quoted(reader, out) : take_bare(reader, out));
	if (call > 0 && *out) {
		*out = reader->at < reader->end && *reader->at == ')';
		reader->at++;
	}
	return OK;
}

/* The items between the brackets. *out false: this is no list. */
static enum status take_items(struct reader *reader, bool *out)
{
	reader->commas = memchr(reader->at, ',', (size_t)(reader->end - reader->at)) != NULL;
	*out = true;
	for (trim(reader); *out && reader->at < reader->end; skip_spaces(reader)) {
		TRY(take_item(reader, out));
		skip_spaces(reader);
		if (!*out || reader->at >= reader->end)
			break;
		if (*reader->at == ',')
			reader->at++;
		else
			*out = !reader->commas;
	}
	return OK;
}

/* Is this the call of a function that makes lists? */
static bool makes_list(const char *name, size_t size)
{
	static const char *const makers[] = {"array(", "np.array(", "list(", "tuple(", "set(", "frozenset(", "c("};
	for (size_t i = 0; i < sizeof makers / sizeof *makers; i++)
		if (strlen(makers[i]) == size && memcmp(makers[i], name, size) == 0)
			return true;
	return false;
}

/* Takes off what surrounds the items: array(, dtype=...), c(), brackets. *out_bracket: the innermost, 'c' for that of a call
 * alone; 0: there is none. */
static void open_list(struct reader *reader, char *out_bracket)
{
	static const char opening[] = "[({", closing[] = "])}";
	trim(reader);
	size_t call = call_size(reader->at, reader->end);
	*out_bracket = 0;
	if (makes_list(reader->at, call) && reader->end[-1] == ')') {
		const char *type = memmem(reader->at, (size_t)(reader->end - reader->at), ", dtype=", 8);
		reader->at += call;
		reader->end = type ? type : reader->end - 1;
		*out_bracket = 'c';
		trim(reader);
	}
	const char *found = reader->end - reader->at > 1 ? strchr(opening, *reader->at) : NULL;
	if (found && *found && reader->end[-1] == closing[found - opening]) {
		*out_bracket = *found;
		reader->at++;
		reader->end--;
	}
}

/* ["a or ('a or [1, perhaps behind a name or another bracket. */
static bool begins_as_list(const char *cell)
{
	cell += strspn(cell, " \t\r\n");
	cell += call_size(cell, cell + strlen(cell));
	size_t number = *cell == '[' ? strspn(cell + 1, "+-.0123456789") : 0;
	return *cell && strchr("[({", *cell) && cell[1] &&
	       (strchr("'\"[({", cell[1]) || (number > 0 && strchr(", ", cell[1 + number])));
}

static enum status read_json(struct list_cell *out, const char *cell, struct string_store *store, bool *out_is_list)
{
	struct json_document document;
	struct reader reader = {.list = out, .store = store};
	enum status status = OK;
	*out_is_list = false;
	if (cell[strspn(cell, " \t\r\n")] != '[' || json_parse(&document, "", cell, strlen(cell)) != OK)
		return OK;
	*out_is_list = document.root->kind == JSON_ARRAY;
	for (const struct json *item = document.root->first_child; item; item = item->next)
		*out_is_list = *out_is_list && item->kind <= JSON_STRING && item->kind != JSON_NULL &&
			       (item->kind == JSON_BOOL || strlen(item->text) == item->text_size);
	for (const struct json *item = document.root->first_child; item && *out_is_list && status == OK; item = item->next) {
		const char *text = item->kind == JSON_BOOL ? item->boolean ? "true" : "false" : item->text;
		status = add_item(&reader, text, strlen(text));
	}
	json_release(&document);
	return status;
}

enum status list_cell_read(struct list_cell *out, const char *cell, struct string_store *store, enum list_cell_kind *out_kind)
{
	bool is_list;
	char bracket;
	*out = (struct list_cell){.count = 0};
	*out_kind = CELL_LIST;
	TRY(read_json(out, cell, store, &is_list));
	if (is_list)
		return OK;
	struct reader reader = {.at = cell, .end = cell + strlen(cell), .list = out, .store = store};
	open_list(&reader, &bracket);
	enum status status = bracket ? take_items(&reader, &is_list) : OK;
	buffer_release(&reader.item);
	/* (1) is a name, (1,) is not. */
	if (bracket == '(' && !reader.commas && out->count > 0 && !begins_as_list(cell))
		is_list = false;
	if (is_list && (!reader.plain || bracket == '[' || bracket == '{'))
		*out_kind = reader.plain ? CELL_PLAIN_LIST : CELL_LIST;
	else
		*out_kind = begins_as_list(cell) ? CELL_BROKEN_LIST : CELL_NO_LIST;
	return status;
}

void list_cell_release(struct list_cell *list)
{
	free(list->items);
	*list = (struct list_cell){.count = 0};
}

enum list_cell_kind list_cell_kind(const char *cell)
{
	struct string_store store = {0};
	struct list_cell list;
	enum list_cell_kind kind;
	if (list_cell_read(&list, cell, &store, &kind) != OK)
		kind = CELL_NO_LIST;
	list_cell_release(&list);
	string_store_release(&store);
	return kind;
}
