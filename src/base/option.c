/* Values and their origins. Names, the command line, config files, records, and generated texts are in the other option_*.c
 * files. */
#include "base/option.h"

#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/json_internal.h"
#include "base/memory.h"
#include "base/option_internal.h"

/* Copied texts live as long as the options. */
struct text_block {
	struct text_block *next;
	char text[];
};

void *option_field(const struct options *options, int index)
{
	return (char *)options->settings + options->table[index].field;
}

/* ---- Names ---- */

const struct option *option_aside_find(const struct options *options, const char *word, size_t length)
{
	int index = options->aside ? option_find_row(options->aside, word, length) : -1;
	return index < 0 ? NULL : &options->aside[index];
}

/* ---- Values ---- */

enum status option_copy_text(struct options *options, const char *text, const char **out)
{
	size_t size = strlen(text) + 1;
	struct text_block *block = malloc(sizeof *block + size);
	if (!block)
		return error_set(ERR_RESOURCE, "not enough memory for the options");
	memcpy(block->text, text, size);
	block->next = options->memory;
	options->memory = block;
	*out = block->text;
	return OK;
}

enum status option_list_add(struct option_list *list, const char *value)
{
	TRY(memory_grow(&list->values, &list->capacity, list->count + 1, sizeof *list->values, "the options"));
	list->values[list->count++] = value;
	return OK;
}

bool option_parse_flag(const char *text, bool *out)
{
	static const char *const words[] = {"false", "true", "no", "yes", "off", "on", "0", "1"};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		if (!strcasecmp(text, words[i])) {
			*out = i % 2;
			return true;
		}
	}
	return false;
}

/* The whole text must be a finite decimal number; the locale does not matter. */
bool option_parse_number(const char *text, double *out)
{
	char *end;
	if (!*text || text[strspn(text, "0123456789+-.eE")])
		return false;
	*out = strtod_l(text, &end, json_locale());
	return *end == '\0' && end != text && isfinite(*out);
}

/* Above this, a double may have lost the last digits of what was written. */
#define WHOLE_MOST 9007199254740992.0 /* 2^53 */

/* The factor that a suffix stands for: 10k, 1.5M, 2G. Other letters are ambiguous (K: 1000 or 1024) or have no meaning. */
static double count_unit(char letter)
{
	return letter == 'k' ? 1e3 : letter == 'M' ? 1e6 : letter == 'G' ? 1e9 : 0;
}

/* A whole number written in a short form: 1e9, 1.5e6, 10k. */
static bool parse_short_integer(const char *text, int64_t *out)
{
	char digits[64];
	double number, unit = 1;
	size_t length = strlen(text);
	if (length == 0 || length >= sizeof digits)
		return false;
	if (count_unit(text[length - 1]) > 0)
		unit = count_unit(text[--length]);
	else if (!strpbrk(text, "eE"))
		return false;
	snprintf(digits, sizeof digits, "%.*s", (int)length, text);
	if (!option_parse_number(digits, &number))
		return false;
	number *= unit;
	if (fabs(number) > WHOLE_MOST || number != floor(number))
		return false;
	*out = (int64_t)number;
	return true;
}

bool option_parse_integer(const char *text, int64_t *out)
{
	char *end;
	if (!*text || text[strspn(text, "0123456789+-")])
		return parse_short_integer(text, out);
	errno = 0;
	*out = strtoll(text, &end, 10);
	return *end == '\0' && end != text && errno == 0;
}

/* A number of megabytes already has a unit. */
static bool takes_count_unit(const struct option *row)
{
	return !row->value_name || strcmp(row->value_name, "MB") != 0;
}

static enum status not_whole(const struct option *row, const char *text)
{
	enum status status = error_set(ERR_USAGE, "--%s must be a whole number, not '%s'", row->name, text);
	size_t length = strlen(text);
	double number;
	char digits[64];
	if (length < 2 || length >= sizeof digits)
		return status;
	snprintf(digits, sizeof digits, "%.*s", (int)length - 1, text);
	if (!isalpha((unsigned char)text[length - 1]) || !option_parse_number(digits, &number))
		return status;
	if (!takes_count_unit(row))
		error_hint("it is a number of megabytes already: leave the letter out");
	else if (text[length - 1] == 'K')
		error_hint("K could mean 1000 or 1024: write %sk for thousands, or all digits", digits);
	else if (count_unit(text[length - 1]) == 0)
		error_hint("k, M and G stand for thousand, million and thousand million");
	return status;
}

/* Whether a value is in "min..max". Either side may be empty. */
static bool in_range(const struct option *row, double number, int64_t integer)
{
	if (!row->range)
		return true;
	const char *dots = strstr(row->range, "..");
	BUG_IF(!dots);
	for (int side = 0; side < 2; side++) {
		char bound[64];
		const char *text = side == 0 ? row->range : dots + 2;
		snprintf(bound, sizeof bound, "%.*s", side == 0 ? (int)(dots - text) : (int)sizeof bound - 1, text);
		if (!*bound)
			continue;
		int64_t integer_bound;
		double number_bound;
		int order;
		if (row->type == OPTION_INTEGER) {
			BUG_IF(!option_parse_integer(bound, &integer_bound));
			order = (integer > integer_bound) - (integer < integer_bound);
		} else {
			BUG_IF(!option_parse_number(bound, &number_bound));
			order = (number > number_bound) - (number < number_bound);
		}
		if (side == 0 ? order < 0 : order > 0)
			return false;
	}
	return true;
}

int option_word(const char *words, const char *word)
{
	size_t length = strlen(word);
	int place = 0;
	for (const char *at = words; at && length > 0; place++) {
		size_t here = strcspn(at, "|");
		if (here == length && !memcmp(at, word, length))
			return place;
		at = at[here] ? at + here + 1 : NULL;
	}
	return -1;
}

const char *option_words(const struct option *row)
{
	return row->range + (row->range[0] == '|');
}

/* Describes a range in words that fit in a sentence: "be 1 or more" for "1..". */
static const char *range_words(const char *range, char out[80])
{
	const char *dots = strstr(range, "..");
	if (!dots[2])
		snprintf(out, 80, "be %.*s or more", (int)(dots - range), range);
	else if (dots == range)
		snprintf(out, 80, "be %s or less", dots + 2);
	else
		snprintf(out, 80, "lie in %s", range);
	return out;
}

union option_value {
	bool flag;
	int64_t integer;
	double number;
	unsigned choice;
};

/* Converts text to a value of the row's type and range; texts, choices, and items of lists are used as they are. */
static enum status convert(const struct option *row, const char *text, union option_value *out)
{
	char words[80];
	switch (row->type) {
	case OPTION_FLAG:
		if (!option_parse_flag(text, &out->flag))
			return error_set(ERR_USAGE, "--%s must be true or false, not '%s'", row->name, text);
		break;
	case OPTION_INTEGER:
		if (!option_parse_integer(text, &out->integer) ||
		    (!takes_count_unit(row) && count_unit(text[strlen(text) - 1]) > 0))
			return not_whole(row, text);
		if (!in_range(row, 0, out->integer))
			return error_set(ERR_USAGE, "--%s must %s, not '%s'", row->name, range_words(row->range, words), text);
		break;
	case OPTION_NUMBER:
		if (!option_parse_number(text, &out->number))
			return error_set(ERR_USAGE, "--%s must be a number, not '%s'", row->name, text);
		if (!in_range(row, out->number, 0))
			return error_set(ERR_USAGE, "--%s must %s, not '%s'", row->name, range_words(row->range, words), text);
		break;
	case OPTION_CHOICE:
		if (option_word(row->range, text) < 0)
			return error_set(ERR_USAGE, "--%s must be one of %s, not '%s'", row->name, option_words(row), text);
		out->choice = (unsigned)option_word(row->range, text);
		break;
	case OPTION_TEXT:
	case OPTION_LIST: break;
	}
	return OK;
}

static enum status parse_value(const struct option *row, const char *text, union option_value *out)
{
	enum status status = convert(row, text, out);
	if (status != OK && row->advice && !error_last()->hint[0])
		error_hint("%s", row->advice);
	return status;
}

const char *option_synonym(const struct option *row, const char *text, char out[SYNONYM_BYTES])
{
	size_t size = strlen(text);
	for (const char *entry = row->synonym; entry && *entry;) {
		size_t word = strcspn(entry, "="), value = strcspn(entry + word + 1, " ");
		if (word == size && memcmp(entry, text, size) == 0) {
			snprintf(out, SYNONYM_BYTES, "%.*s", (int)value, entry + word + 1);
			return out;
		}
		entry += word + 1 + value;
		entry += strspn(entry, " ");
	}
	return text;
}

static bool is_automatic(const struct option *row, const char *text)
{
	return row->automatic && strcmp(text, row->automatic) == 0;
}

enum status option_check(const struct option *row, const char *text)
{
	union option_value value;
	char synonym[SYNONYM_BYTES];
	if (is_automatic(row, text))
		return OK;
	return parse_value(row, option_synonym(row, text, synonym), &value);
}

/* Records contain whole numbers as digits, however they were given. */
static enum status store_digits(struct options *options, int index, int64_t value)
{
	char digits[24];
	const char *text = options->text[index];
	if (text[strspn(text, "0123456789+-")] == '\0')
		return OK;
	snprintf(digits, sizeof digits, "%lld", (long long)value);
	return option_copy_text(options, digits, &options->text[index]);
}

/* Stores a value in its field. */
static enum status store(struct options *options, int index, const char *text)
{
	const struct option *row = &options->table[index];
	void *field = option_field(options, index);
	union option_value value = {0};
	TRY(parse_value(row, text, &value));
	options->text[index] = text;
	switch (row->type) {
	case OPTION_FLAG:
		*(bool *)field = value.flag;
		options->text[index] = value.flag ? "true" : "false";
		break;
	case OPTION_INTEGER: *(int64_t *)field = value.integer; return store_digits(options, index, value.integer);
	case OPTION_NUMBER: *(double *)field = value.number; break;
	case OPTION_CHOICE: *(unsigned *)field = value.choice; break;
	case OPTION_TEXT: *(const char **)field = text; break;
	case OPTION_LIST: return option_list_add(field, text);
	}
	return OK;
}

/* Stores a value of a list, which may be several with commas between them. */
static enum status store_values(struct options *options, int index, const char *text)
{
	struct name_list parts = {0};
	if (!options->table[index].commas)
		return store(options, index, text);
	enum status status = name_list_add_parts(&parts, text);
	for (int64_t i = 0; i < parts.count && status == OK; i++) {
		const char *part = NULL;
		status = option_copy_text(options, parts.names[i], &part);
		if (status == OK)
			status = store(options, index, part);
	}
	name_list_release(&parts);
	return status;
}

void option_list_clear(struct options *options, int index)
{
	((struct option_list *)option_field(options, index))->count = 0;
	options->text[index] = NULL;
}

enum status option_set_at(struct options *options, int index, const char *value, enum option_origin origin)
{
	bool is_written = origin == ORIGIN_RECIPE || origin == ORIGIN_FILE; /* and not chosen, or recorded by a run */
	if (options->origin[index] > origin || (is_written && options->unset[index] > origin))
		return OK;
	if (is_automatic(&options->table[index], value)) {
		options_forget(options, options->table[index].name);
		options->unset[index] = origin;
		return OK;
	}
	const char *copy = NULL;
	char synonym[SYNONYM_BYTES];
	value = option_synonym(&options->table[index], value, synonym);
	options->faulty[index] = true; /* until stored */
	TRY(option_copy_text(options, value, &copy));
	if (options->table[index].type == OPTION_LIST && options->origin[index] != origin)
		option_list_clear(options, index);
	TRY(store_values(options, index, copy));
	options->faulty[index] = false;
	options->origin[index] = origin;
	return OK;
}

enum status options_set(struct options *options, const char *name, const char *value, enum option_origin origin)
{
	int index = options_find(options, name);
	if (index < 0) {
		enum status status = error_set(ERR_USAGE, "unknown option '%s'", name);
		option_hint_nearest(options, name, "");
		return status;
	}
	return option_set_at(options, index, value, origin);
}

void options_forget(struct options *options, const char *name)
{
	int index = options_find(options, name);
	BUG_IF(index < 0);
	const struct option *row = &options->table[index];
	void *field = option_field(options, index);
	options->origin[index] = options->unset[index] = ORIGIN_DEFAULT;
	options->text[index] = NULL;
	switch (row->type) {
	case OPTION_FLAG: *(bool *)field = false; break;
	case OPTION_INTEGER: *(int64_t *)field = 0; break;
	case OPTION_NUMBER: *(double *)field = 0; break;
	case OPTION_CHOICE: *(unsigned *)field = 0; break;
	case OPTION_TEXT: *(const char **)field = NULL; break;
	case OPTION_LIST: option_list_clear(options, index); break;
	}
	BUG_IF(row->fallback && option_set_at(options, index, row->fallback, ORIGIN_DEFAULT) == ERR_USAGE);
}

enum option_origin options_origin(const struct options *options, const char *name)
{
	int index = options_find(options, name);
	BUG_IF(index < 0);
	return options->origin[index];
}

bool options_given(const struct options *options, const char *name)
{
	return options_origin(options, name) >= ORIGIN_FILE;
}

const char *option_value_at(const struct options *options, int index, struct buffer *scratch)
{
	if (options->table[index].type != OPTION_LIST)
		return options->text[index] ? options->text[index] : "";
	const struct option_list *list = option_field(options, index);
	buffer_clear(scratch);
	for (int64_t i = 0; i < list->count; i++)
		buffer_format(scratch, "%s%s", i ? " " : "", list->values[i]);
	return buffer_string(scratch);
}

const char *options_value(const struct options *options, const char *name, struct buffer *scratch)
{
	int index = options_find(options, name);
	BUG_IF(index < 0);
	return option_value_at(options, index, scratch);
}

/* The row of the option whose value is at `field`. */
static int find_field(const struct options *options, const void *field)
{
	size_t place = (size_t)((const char *)field - (const char *)options->settings);
	for (int i = 0; i < options->count; i++) {
		if (options->table[i].name && options->table[i].field == place)
			return i;
	}
	BUG_IF(true);
}

bool options_is_open(const struct options *options, const void *field)
{
	int index = find_field(options, field);
	return options->table[index].type == OPTION_LIST ? ((const struct option_list *)field)->count == 0
							 : options->text[index] == NULL;
}

enum option_origin options_origin_of(const struct options *options, const void *field)
{
	return options->origin[find_field(options, field)];
}

const char *options_text_of(const struct options *options, const void *field)
{
	return options->text[find_field(options, field)];
}

void options_copy_given(const struct options *options, const void *from, size_t bytes, void *to)
{
	static const size_t sizes[] = {
		[OPTION_FLAG] = sizeof(bool),         [OPTION_INTEGER] = sizeof(int64_t), [OPTION_NUMBER] = sizeof(double),
		[OPTION_TEXT] = sizeof(const char *), [OPTION_CHOICE] = sizeof(unsigned), [OPTION_LIST] = 0};
	for (int i = 0; i < options->count; i++) {
		size_t place = (size_t)((const char *)option_field(options, i) - (const char *)from);
		if (options->table[i].name && place < bytes && options->text[i])
			memcpy((char *)to + place, (const char *)from + place, sizes[options->table[i].type]);
	}
}

enum status options_choose(struct options *options, const void *field, const char *text)
{
	return option_set_at(options, find_field(options, field), text, ORIGIN_CHOSEN);
}

enum status options_choose_integer(struct options *options, const int64_t *field, int64_t value)
{
	char text[32];
	snprintf(text, sizeof text, "%lld", (long long)value);
	return options_choose(options, field, text);
}

enum status options_choose_number(struct options *options, const double *field, double value, int digits)
{
	char text[64];
	snprintf(text, sizeof text, "%.*g", digits, value);
	return options_choose(options, field, text);
}

/* ---- Tables ---- */

static int count_names(const char *list)
{
	int count = 0;
	for (; *list; list += strspn(list, " ")) {
		list += strcspn(list, " ");
		count++;
	}
	return count;
}

static int count_rows(const struct option *table)
{
	int count = 0;
	for (const struct option *row = table; !option_table_ends(row); row++)
		count += row->only ? count_names(row->only) : row->group ? count_rows(row->group) : !row->reworded;
	return count;
}

static void reword(struct option *row, const struct option *words)
{
	row->fallback_text = words->fallback_text || words->fallback ? words->fallback_text : row->fallback_text;
	row->fallback = words->fallback_text || words->fallback ? words->fallback : row->fallback;
	row->range = words->range ? words->range : row->range;
	row->alias = words->alias ? words->alias : row->alias;
	row->help = words->help ? words->help : row->help;
}

/* Removes the rows that are named, and returns the number of those left. */
static int leave_out(struct option *rows, int count, const char *names)
{
	int kept = 0;
	for (int i = 0; i < count; i++)
		if (!rows[i].name || !option_same_names(names, rows[i].name, strlen(rows[i].name)))
			rows[kept++] = rows[i];
	memset(rows + kept, 0, (size_t)(count - kept) * sizeof *rows);
	return kept;
}

/* Appends the rows of a table whose struct begins at `place`, and returns their number. */
static int append_rows(struct option *out, const struct option *table, size_t place)
{
	int count = 0;
	for (const struct option *row = table; !option_table_ends(row); row++) {
		int first = count;
		if (row->reworded) {
			int index = count - 1;
			while (index >= 0 && (!out[index].name || strcmp(out[index].name, row->name) != 0))
				index--;
			BUG_IF(index < 0);
			reword(&out[index], row);
		} else if (!row->group) {
			out[count] = *row;
			out[count++].field += place;
		} else if (!row->only) {
			int added = append_rows(out + count, row->group, place + row->field);
			count += leave_out(out + count, added, row->except);
		} else {
			for (const char *name = row->only; *name; name += strspn(name, " ")) {
				size_t length = strcspn(name, " ");
				int index = option_find_row(row->group, name, length);
				BUG_IF(index < 0);
				out[count] = row->group[index];
				out[count++].field += place + row->field;
				name += length;
			}
		}
		for (int i = first; i < count && row->group; i++) {
			out[i].section = row->unsectioned ? NULL : out[i].section;
			out[i].rare = (out[i].rare || row->rare) && !row->shown;
			out[i].fallback_text = row->fallback_text ? row->fallback_text : out[i].fallback_text;
		}
	}
	return count;
}

enum status options_flatten(const struct option *table, struct option **out)
{
	TRY(memory_new(out, count_rows(table) + 1, sizeof **out, "the options"));
	append_rows(*out, table, 0);
	return OK;
}

/* Binds a flat table. */
static enum status bind(struct options *options, const struct option *table, void *settings)
{
	options->table = table;
	options->settings = settings;
	while (!option_table_ends(&table[options->count]))
		options->count++;
	enum status status;
	TRY_GOTO(memory_new(&options->origin, options->count, sizeof *options->origin, "the options"), fail);
	TRY_GOTO(memory_new(&options->text, options->count, sizeof *options->text, "the options"), fail);
	TRY_GOTO(memory_new(&options->unset, options->count, sizeof *options->unset, "the options"), fail);
	TRY_GOTO(memory_new(&options->faulty, options->count, sizeof *options->faulty, "the options"), fail);
	for (int i = 0; i < options->count; i++) {
		if (table[i].section)
			options->section_name = table[i].section;
		if (!table[i].name || !table[i].fallback)
			continue;
		/* A default that its own row rejects is our mistake. */
		status = option_set_at(options, i, table[i].fallback, ORIGIN_DEFAULT);
		BUG_IF(status == ERR_USAGE);
		TRY_GOTO(status, fail);
	}
	return OK;
fail:
	options_release(options);
	return status;
}

enum status options_init(struct options *options, const struct option *table, void *settings)
{
	*options = (struct options){0};
	TRY(options_flatten(table, &options->rows));
	return bind(options, options->rows, settings);
}

enum status options_init_as(struct options *options, const struct options *base, void *settings)
{
	bool own = settings == NULL;
	*options = (struct options){0};
	if (own)
		TRY(memory_new(&settings, 1, base->settings_bytes, "the settings"));
	*options = (struct options){.settings_bytes = base->settings_bytes, .owns_settings = own, .removed = base->removed};
	return bind(options, base->table, settings);
}

void options_release(struct options *options)
{
	for (int i = 0; i < options->count; i++) {
		if (options->table[i].name && options->table[i].type == OPTION_LIST) {
			struct option_list *list = option_field(options, i);
			free(list->values);
			*list = (struct option_list){0};
		}
	}
	for (int64_t i = 0; i < options->section_count; i++)
		free(options->sections[i].settings);
	free(options->sections);
	free(options->positional.values);
	free(options->origin);
	free(options->text);
	free(options->faulty);
	free(options->unset);
	free(options->problems);
	free(options->answers);
	free(options->rows);
	if (options->owns_settings)
		free(options->settings);
	for (struct text_block *block = options->memory, *next; block; block = next) {
		next = block->next;
		free(block);
	}
	*options = (struct options){0};
}
