/* The part of option.h that generates text from a table: help, man page, config file, settings table. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/option_internal.h"

static int text_columns(const char *text, size_t size)
{
	int columns = 0;
	for (size_t i = 0; i < size; i++)
		columns += ((unsigned char)text[i] & 0xC0) != 0x80; /* one column per UTF-8 character */
	return columns;
}

static void pad(struct buffer *out, int count)
{
	for (int i = 0; i < count; i++)
		buffer_char(out, ' ');
}

/* Appends words, wrapped so that lines end before `columns`; `at` is the current column, and further lines start at `indent`. An
 * empty line in the text starts a paragraph. Ends with a line break. */
static void wrap(struct buffer *out, const char *text, int at, int indent, int columns)
{
	bool first = true;
	while (*text) {
		size_t breaks = 0, blank = strspn(text, " \n");
		for (size_t i = 0; i < blank; i++)
			breaks += text[i] == '\n';
		text += blank;
		size_t length = strcspn(text, " \n");
		if (length == 0)
			break;
		int width = text_columns(text, length);
		if (breaks >= 2 || (!first && at + 1 + width > columns)) {
			buffer_text(out, breaks >= 2 ? "\n\n" : "\n");
			pad(out, indent);
			at = indent;
		} else if (!first) {
			buffer_char(out, ' ');
			at++;
		}
		buffer_append(out, text, length);
		at += width;
		text += length;
		first = false;
	}
	buffer_char(out, '\n');
}

/* What follows the help text of an option: choices or range, default, other names. */
static void facts_of(const struct option *row, bool words, struct buffer *out)
{
	const char *separator = " (";
	if (row->range && words) {
		buffer_text(out, separator);
		if (row->type == OPTION_CHOICE)
			buffer_text(out, "one of ");
		for (const char *p = option_words(row); *p; p++) {
			if (*p == '|')
				buffer_text(out, ", ");
			else
				buffer_char(out, *p);
		}
		separator = "; ";
	}
	bool silent = row->type == OPTION_FLAG && row->fallback && !strcmp(row->fallback, "false");
	const char *fallback = row->fallback && !silent ? row->fallback : row->fallback_text;
	if (fallback) {
		buffer_format(out, "%sdefault: %s", separator, *fallback ? fallback : "\"\"");
		separator = "; ";
	}
	if (row->type == OPTION_FLAG && row->fallback && !silent) {
		buffer_format(out, "%s--no_%s turns it off", separator, row->name);
		separator = "; ";
	}
	if (row->section) {
		buffer_format(out, "%sper %s", separator, row->section);
		separator = "; ";
	}
	for (const char *alias = row->alias; alias && *alias;) {
		size_t length = strcspn(alias, " ");
		buffer_format(out, "%s%s--%.*s", separator, alias == row->alias ? "also " : "", (int)length, alias);
		separator = ", ";
		alias += length + strspn(alias + length, " ");
	}
	if (separator[0] != ' ')
		buffer_char(out, ')');
}

/* The meaning of the exit status, for help and man pages. */
static const struct {
	enum status status;
	const char *meaning;
} statuses[] = {
	{OK, "done"},
	{ERR_INTERNAL, "internal error; of `bertc compare`: the two differ"},
	{ERR_USAGE, "wrong option or setting"},
	{ERR_DATA, "bad input file"},
	{ERR_STATE, "inputs that do not fit together, such as a vocabulary and a checkpoint"},
	{ERR_RESOURCE, "disk full, out of memory, no permission, or no device"},
	{ERR_PEER, "another process of the run died or hung"},
	{ERR_NUMERIC, "numbers are not finite: training diverged, or a model's weights are too large"},
	{ERR_LOCKED, "another run uses the output folder"},
	{STOPPED, "stopped on request after saving; run the same command again to resume"},
};

/* ---- Help ---- */

enum { HELP_COLUMN = 32 };

static void help_row(const struct option *row, bool all, int columns, struct buffer *out)
{
	struct buffer text = {0};
	buffer_text(&text, "  ");
	if (row->letter)
		buffer_format(&text, "-%c, ", row->letter);
	buffer_format(&text, "--%s%s%s", row->name, row->value_name ? " " : "", row->value_name ? row->value_name : "");
	buffer_append(out, buffer_string(&text), text.size);
	int used = text_columns(buffer_string(&text), text.size);
	if (used > HELP_COLUMN - 2) {
		buffer_char(out, '\n');
		used = 0;
	}
	pad(out, HELP_COLUMN - used);
	buffer_clear(&text);
	bool brief = row->brief && !all;
	buffer_text(&text, brief ? row->brief : row->help);
	facts_of(row, !brief, &text);
	wrap(out, buffer_string(&text), HELP_COLUMN, HELP_COLUMN, columns);
	buffer_release(&text);
}

/* Prints rows that are not in `common` and, unless `all`, not rare, below their headings; a heading with nothing left below it is
 * omitted. Returns how many rare ones were left out. */
static int help_rows(const struct option *table, const char *common, bool all, int columns, struct buffer *out)
{
	const char *heading = NULL;
	int left_out = 0;
	if (table->name) /* a heading starts with its own empty line */
		buffer_char(out, '\n');
	for (const struct option *row = table; !option_table_ends(row); row++) {
		if (!row->name)
			heading = row->help;
		if (!row->name || option_same_names(common, row->name, strlen(row->name)))
			continue;
		if (row->rare && !all) {
			left_out++;
			continue;
		}
		if (heading)
			buffer_format(out, "\n%s\n", heading);
		heading = NULL;
		help_row(row, all, columns, out);
	}
	return left_out;
}

#define COMMON_HEADING "Options that most people need"

/* Takes the first name of the list, sets *out_row to its row, and returns the rest of the list. */
static const char *next_common(const char *list, const struct option *table, const struct option **out_row)
{
	size_t length = strcspn(list, " ");
	int index = option_find_row(table, list, length);
	BUG_IF(index < 0);
	*out_row = &table[index];
	return list + length + strspn(list + length, " ");
}

/* Takes the first example, splitting it into the command and what it does (may be empty), and returns the rest, or NULL. */
static const char *next_example(const char *examples, struct buffer *command, struct buffer *purpose)
{
	size_t line = strcspn(examples, "\n"), length = strcspn(examples, "\t\n");
	buffer_clear(command);
	buffer_clear(purpose);
	size_t end = length, start = length < line ? length + 1 : line;
	while (end && examples[end - 1] == ' ')
		end--;
	start += strspn(examples + start, " ");
	buffer_append(command, examples, end);
	if (start < line)
		buffer_append(purpose, examples + start, line - start);
	return examples[line] ? examples + line + 1 : NULL;
}

void options_help(const struct option *table, const struct command_text *text, bool all, int columns, struct buffer *out)
{
	struct buffer command = {0}, purpose = {0};
	if (columns > 100) /* longer lines are hard to read */
		columns = 100;
	if (columns < HELP_COLUMN + 20)
		columns = HELP_COLUMN + 20;
	buffer_format(out, "bertc %s: %s\n\n", text->name, text->summary);
	buffer_format(&purpose, "Usage: bertc %s %s", text->name, text->synopsis);
	wrap(out, buffer_string(&purpose), 0, 7, columns);
	const char *description = text->description ? text->description : "", *rest = strstr(description, "\n\n");
	if (text->common) { /* the first paragraph is enough here */
		buffer_clear(&purpose);
		buffer_append(&purpose, description, rest ? (size_t)(rest - description) : strlen(description));
		buffer_char(out, '\n');
		wrap(out, buffer_string(&purpose), 0, 0, columns);
		buffer_text(out, "\n" COMMON_HEADING "\n");
		for (const char *name = text->common; *name;) {
			const struct option *row;
			name = next_common(name, table, &row);
			help_row(row, all, columns, out);
		}
		description = rest ? rest + 2 : "";
	}
	if (*description) {
		buffer_char(out, '\n');
		wrap(out, description, 0, 0, columns);
	}
	int left_out = help_rows(table, text->common, all, columns, out);
	help_rows(option_common, NULL, true, columns, out);
	if (left_out > 0)
		buffer_format(out, "\n%d more option%s that few people need: bertc help %s all\n", left_out,
			      left_out == 1 ? "" : "s", text->name);
	if (text->examples && *text->examples)
		buffer_text(out, "\nExamples\n");
	for (const char *p = text->examples; p && *p;) {
		p = next_example(p, &command, &purpose);
		if (purpose.size)
			wrap(out, buffer_string(&purpose), 0, 2, columns - 2);
		buffer_format(out, "    %s\n", buffer_string(&command));
	}
	buffer_text(out, "\nExit status\n");
	for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
		char number[16];
		int used = snprintf(number, sizeof number, "  %-2d  ", statuses[i].status);
		buffer_text(out, number);
		wrap(out, statuses[i].meaning, used, used, columns);
	}
	buffer_char(out, '\n');
	wrap(out,
	     "Dashes and underscores in option names are interchangeable, as are --name=value and --name value. Whole numbers "
	     "may be shortened: 1e9, 10k (thousand), 2M (million), 3G (thousand million).",
	     0, 0, columns);
	buffer_release(&command);
	buffer_release(&purpose);
}

/* ---- Man page (mdoc) ---- */

/* Writes one character of running text, returning the bytes it took; minus, quotes, and backslash are escaped so that they can be
 * copied. */
static size_t man_character(struct buffer *out, const char *text)
{
	static const struct {
		char character;
		const char *escape;
	} escapes[] = {{'\\', "\\e"},  {'-', "\\-"},   {'\'', "\\(aq"}, {'"', "\\(dq"},
		       {'`', "\\(ga"}, {'^', "\\(ha"}, {'~', "\\(ti"}};
	unsigned char c = (unsigned char)*text;
	if (c >= 0xC0) { /* a multi-byte UTF-8 character: its code point */
		size_t length = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : 2;
		unsigned code = c & (0xFFu >> (length + 1));
		for (size_t i = 1; i < length; i++)
			code = code << 6 | ((unsigned char)text[i] & 0x3F);
		buffer_format(out, "\\[u%04X]", code);
		return length;
	}
	for (size_t i = 0; i < sizeof escapes / sizeof *escapes; i++) {
		if (*text == escapes[i].character) {
			buffer_text(out, escapes[i].escape);
			return 1;
		}
	}
	buffer_char(out, *text);
	return 1;
}

/* Running text: each sentence begins on a new line, as mdoc requires, and lines are kept short; an empty line starts a
 * paragraph. */
static void man_text(struct buffer *out, const char *text)
{
	size_t line = out->size; /* where the line begins */
	bool line_start = true;
	text += strspn(text, " \n");
	while (*text) {
		if (line_start && (*text == '.' || *text == '\''))
			buffer_text(out, "\\&"); /* so that it is not taken for a request */
		while (*text && *text != ' ' && *text != '\n')
			text += man_character(out, text);
		size_t blank = strspn(text, " \n"), breaks = 0;
		for (size_t i = 0; i < blank; i++)
			breaks += text[i] == '\n';
		text += blank;
		bool sentence = buffer_string(out)[out->size - 1] == '.';
		line_start = breaks >= 2 || sentence || out->size - line + strcspn(text, " \n") > 70;
		if (*text)
			buffer_text(out, breaks >= 2 ? "\n.Pp\n" : line_start ? "\n" : " ");
		if (line_start)
			line = out->size;
	}
	buffer_char(out, '\n');
}

/* Writes one macro argument, in quotes. */
static void man_argument(struct buffer *out, const char *text)
{
	buffer_char(out, '"');
	while (*text)
		text += man_character(out, text);
	buffer_char(out, '"');
}

static void man_row(const struct option *row, struct buffer *out)
{
	struct buffer text = {0};
	buffer_text(out, ".It");
	if (row->letter)
		buffer_format(out, " Fl %c ,", row->letter);
	buffer_format(out, " Fl \\-%s", row->name);
	if (row->value_name) {
		buffer_text(out, " Ar ");
		man_argument(out, row->value_name);
	}
	buffer_char(out, '\n');
	buffer_text(&text, row->help);
	facts_of(row, true, &text);
	buffer_char(&text, '.');
	man_text(out, buffer_string(&text));
	buffer_release(&text);
}

static void man_rows(const struct option *table, const char *common, struct buffer *out)
{
	bool open = false;
	const char *heading = NULL;
	for (const struct option *row = table; !option_table_ends(row); row++) {
		if (!row->name)
			heading = row->help;
		if (!row->name || option_same_names(common, row->name, strlen(row->name)))
			continue;
		if (heading && open)
			buffer_text(out, ".El\n");
		if (heading) {
			buffer_text(out, ".Ss ");
			man_text(out, heading);
		}
		if (heading || !open)
			buffer_text(out, ".Bl -tag -width Ds\n");
		heading = NULL;
		open = true;
		man_row(row, out);
	}
	if (open)
		buffer_text(out, ".El\n");
}

/* The first lines of a page: date and NAME(1). */
static void options_man_title(const char *name, struct buffer *out)
{
	static const char *const months[] = {"January", "February", "March",     "April",   "May",      "June",
					     "July",    "August",   "September", "October", "November", "December"};
	char month[4] = "";
	int day = 1, year = 1970, number = 0;
	sscanf(__DATE__, "%3s %d %d", month, &day, &year);
	while (number < 11 && strncmp(months[number], month, 3) != 0)
		number++;
	buffer_format(out, ".Dd %s %d, %d\n.Dt ", months[number], day, year);
	for (const char *p = name; *p; p++)
		buffer_char(out, *p >= 'a' && *p <= 'z' ? (char)(*p - 'a' + 'A') : *p);
	buffer_text(out, " 1\n.Os\n");
}

void options_man(const struct option *table, const struct command_text *text, struct buffer *out)
{
	struct buffer command = {0}, purpose = {0};
	char title[64];
	snprintf(title, sizeof title, "bertc-%s", text->name);
	options_man_title(title, out);
	buffer_format(out, ".Sh NAME\n.Nm bertc\\-%s\n.Nd ", text->name);
	man_text(out, text->summary);
	buffer_format(out, ".Sh SYNOPSIS\n.Nm bertc\n.Cm %s\n", text->name);
	man_text(out, text->synopsis);
	buffer_text(out, ".Sh DESCRIPTION\n");
	man_text(out, text->description && *text->description ? text->description : text->summary);
	buffer_text(out, ".Sh OPTIONS\nDashes and underscores in option names are interchangeable.\n");
	if (text->common) {
		buffer_text(out, ".Ss " COMMON_HEADING "\n.Bl -tag -width Ds\n");
		for (const char *name = text->common; *name;) {
			const struct option *row;
			name = next_common(name, table, &row);
			man_row(row, out);
		}
		buffer_text(out, ".El\n");
	}
	man_rows(table, text->common, out);
	man_rows(option_common, NULL, out);
	buffer_text(out, ".Sh EXIT STATUS\n.Bl -tag -width Ds -compact\n");
	for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
		buffer_format(out, ".It %d\n", statuses[i].status);
		man_text(out, statuses[i].meaning);
	}
	buffer_text(out, ".El\n");
	if (text->examples && *text->examples)
		buffer_text(out, ".Sh EXAMPLES\n");
	for (const char *p = text->examples; p && *p;) {
		const char *start = p;
		p = next_example(p, &command, &purpose);
		if (purpose.size) {
			if (start != text->examples)
				buffer_text(out, ".Pp\n");
			buffer_char(&purpose, ':');
			man_text(out, buffer_string(&purpose));
		}
		buffer_text(out, ".Dl ");
		man_argument(out, buffer_string(&command));
		buffer_char(out, '\n');
	}
	buffer_release(&command);
	buffer_release(&purpose);
}

/* ---- Settings ---- */

const char *const option_origins[] = {
	[ORIGIN_DEFAULT] = "default",     [ORIGIN_CHOSEN] = "chosen",    [ORIGIN_RECIPE] = "recipe",
	[ORIGIN_RESUMED] = "resumed run", [ORIGIN_FILE] = "config file", [ORIGIN_COMMAND] = "command line",
};

/* Writes a value as it appears in a config file: in quotes where it would be misread without them. */
static void option_config_value(struct buffer *out, const char *value)
{
	size_t length = strlen(value);
	bool plain = length > 0 && value[0] != '"' && value[0] != '#' && value[0] != ' ' && value[length - 1] != ' ' &&
		     !strstr(value, " #");
	for (size_t i = 0; i < length; i++)
		plain = plain && (unsigned char)value[i] >= 0x20;
	if (plain) {
		buffer_text(out, value);
		return;
	}
	struct json_writer writer = {.out = out};
	json_put_string(&writer, NULL, value);
}

/* Prints those of a section's own settings that are in effect: the one with the highest precedence and, of equals, the last; for
 * a list, all of them. */
static void print_section(const struct options *options, const struct option_section *section, struct buffer *out)
{
	for (int64_t k = 0; k < section->count; k++) {
		const struct option_setting *setting = &section->settings[k];
		const struct option *row = &options->table[setting->index];
		bool in_force = setting->origin >= options->origin[setting->index];
		for (int64_t other = 0; other < section->count; other++) {
			const struct option_setting *rival = &section->settings[other];
			bool same = rival->index == setting->index;
			in_force = in_force && !(same && rival->origin > setting->origin) &&
				   !(same && rival->origin == setting->origin && other > k && row->type != OPTION_LIST);
		}
		if (!in_force)
			continue;
		buffer_format(out, "%s = ", row->name);
		option_config_value(out, setting->text);
		buffer_format(out, "  # %s\n", option_origins[setting->origin]);
	}
}

void options_print_config(const struct options *options, struct buffer *out)
{
	for (int i = 0; i < options->count; i++) {
		const struct option *row = &options->table[i];
		if (!row->name) {
			buffer_format(out, "%s# %s\n", out->size ? "\n" : "", row->help);
			continue;
		}
		if (!options->text[i]) {
			buffer_format(out, "# %s =  # %s\n", row->name, row->fallback_text ? row->fallback_text : "not set");
			continue;
		}
		const struct option_list one = {.values = &options->text[i], .count = 1};
		const struct option_list *list = row->type == OPTION_LIST ? option_field(options, i) : &one;
		for (int64_t k = 0; k < list->count; k++) {
			buffer_format(out, "%s%s = ", options->origin[i] < ORIGIN_RESUMED ? "# " : "", row->name);
			option_config_value(out, list->values[k]);
			buffer_format(out, "  # %s\n", option_origins[options->origin[i]]);
		}
	}
	for (int64_t i = 0; i < options->section_count; i++) {
		buffer_format(out, "\n[%s %lld]\n", options->section_name, (long long)i + 1);
		print_section(options, &options->sections[i], out);
	}
}

/* How many bytes of a value the table shows. */
#define LONGEST_SHOWN 72

/* Whether the table shows the row. For an option that is not set, the full table says what will be done without it. */
static bool is_shown(const struct options *options, int index, enum option_scope scope, bool all)
{
	const struct option *row = &options->table[index];
	if (!row->name || !option_in_scope(row, scope))
		return false;
	if (!options->text[index])
		return all && row->fallback_text;
	return all || options->origin[index] != ORIGIN_DEFAULT;
}

/* The value, or the text shown in its place. */
static const char *shown_value(const struct options *options, int index, struct buffer *scratch)
{
	if (options->text[index])
		return option_value_at(options, index, scratch);
	buffer_clear(scratch);
	buffer_format(scratch, "(%s)", options->table[index].fallback_text);
	return buffer_string(scratch);
}

static void settings_row(const struct options *options, int index, const int columns[2], bool color, struct buffer *out)
{
	struct buffer scratch = {0};
	const struct option *row = &options->table[index];
	const char *value = shown_value(options, index, &scratch);
	enum option_origin origin = options->origin[index];
	bool dim = color && origin == ORIGIN_DEFAULT;
	int bytes = (int)strlen(value);
	const char *cut = "";
	if (bytes > LONGEST_SHOWN) { /* the beginning of a long list of files is enough */
		for (bytes = LONGEST_SHOWN; ((unsigned char)value[bytes] & 0xC0) == 0x80;)
			bytes--;
		cut = "…";
	}
	buffer_format(out, "%s  %-*s  %.*s%s", dim ? "\033[2m" : "", columns[0], row->name, bytes, value, cut);
	pad(out, columns[1] - text_columns(value, strlen(value)));
	buffer_format(out, "  %s", option_origins[origin]);
	if (origin > ORIGIN_CHOSEN && row->fallback && *row->fallback && strcmp(row->fallback, value) != 0)
		buffer_format(out, " (default: %s)", row->fallback);
	buffer_format(out, "%s\n", dim ? "\033[0m" : "");
	buffer_release(&scratch);
}

void options_settings_table(const struct options *options, enum option_scope scope, bool all, bool color, struct buffer *out)
{
	struct buffer scratch = {0};
	int columns[2] = {0, 8};
	for (int i = 0; i < options->count; i++) {
		if (!is_shown(options, i, scope, all))
			continue;
		const char *value = shown_value(options, i, &scratch);
		int name_width = (int)strlen(options->table[i].name), value_width = text_columns(value, strlen(value));
		if (name_width > columns[0])
			columns[0] = name_width;
		if (value_width > columns[1] && value_width <= 40) /* a longer one may overflow the column */
			columns[1] = value_width;
	}
	buffer_release(&scratch);
	const char *heading = NULL; /* not printed yet: a group may have nothing to show */
	for (int i = 0; i < options->count; i++) {
		if (!options->table[i].name)
			heading = all ? options->table[i].help : NULL;
		if (!is_shown(options, i, scope, all))
			continue;
		if (heading)
			buffer_format(out, "%s%s%s\n", color ? "\033[1m" : "", heading, color ? "\033[0m" : "");
		heading = NULL;
		settings_row(options, i, columns, color, out);
	}
}
