/* Names of options: which row a word refers to, and which name was probably meant. */
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include "base/option_internal.h"

const struct option option_common[] = {
	{.help = "General"},
	{.name = "help", .letter = 'h', .type = OPTION_FLAG, .help = "show this help and exit"},
	{.name = "quiet", .letter = 'q', .type = OPTION_FLAG, .help = "print only warnings and errors"},
	{.name = "no_progress",
	 .type = OPTION_FLAG,
	 .alias = "disable_progress_bar",
	 .help = "no progress bar and no progress line every minute; all other messages stay"},
	{.name = "verbose", .letter = 'v', .type = OPTION_FLAG, .help = "print more detail"},
	{.name = "config",
	 .type = OPTION_TEXT,
	 .value_name = "FILE",
	 .help = "read options from a JSON object or from lines of the form 'name = value'; the command line takes precedence"},
	{.name = "print_config",
	 .type = OPTION_FLAG,
	 .help = "print all settings as a config file, with the source of each, and exit"},
	{0},
};

bool option_table_ends(const struct option *row)
{
	return !row->name && !row->help && !row->group;
}

/* Whether `name` is the word of `length` bytes; dashes and underscores are interchangeable. */
static bool same_name(const char *name, const char *word, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		if ((name[i] == '-' ? '_' : name[i]) != (word[i] == '-' ? '_' : word[i]))
			return false;
	}
	return name[length] == '\0';
}

bool option_same_names(const char *list, const char *word, size_t length)
{
	for (const char *name = list; name && *name;) {
		size_t name_length = strcspn(name, " ");
		if (name_length == length) {
			char copy[128];
			snprintf(copy, sizeof copy, "%.*s", (int)name_length, name);
			if (same_name(copy, word, length))
				return true;
		}
		name += name_length + strspn(name + name_length, " ");
	}
	return false;
}

static bool row_has_name(const struct option *row, const char *word, size_t length)
{
	return row->name && (same_name(row->name, word, length) || option_same_names(row->alias, word, length));
}

int option_find_row(const struct option *table, const char *word, size_t length)
{
	for (int i = 0; !option_table_ends(&table[i]); i++) {
		if (row_has_name(&table[i], word, length))
			return i;
	}
	return -1;
}

int options_find(const struct options *options, const char *name)
{
	return option_find_row(options->table, name, strlen(name));
}

static char plain_character(char c)
{
	return c == '-' ? '_' : (char)tolower((unsigned char)c);
}

/* Number of edits (insert, delete, replace) that turn a into b; case and the difference between dash and underscore are
 * ignored. */
static int edit_distance(const char *a, const char *b)
{
	enum { LONGEST = 64 };
	int row[LONGEST + 1], length = (int)strlen(b);
	if (length > LONGEST || strlen(a) > LONGEST)
		return INT_MAX;
	for (int j = 0; j <= length; j++)
		row[j] = j;
	for (int i = 1; a[i - 1]; i++) {
		int diagonal = row[0];
		row[0] = i;
		for (int j = 1; j <= length; j++) {
			int above = row[j];
			int replaced = diagonal + (plain_character(a[i - 1]) != plain_character(b[j - 1]));
			int moved = (above < row[j - 1] ? above : row[j - 1]) + 1;
			row[j] = replaced < moved ? replaced : moved;
			diagonal = above;
		}
	}
	return row[length];
}

const char *nearest_name(const char *word, const char *const *names, int64_t count)
{
	int length = (int)strlen(word), best_distance = length / 3 > 2 ? length / 3 : 2;
	const char *best = NULL;
	if (length <= 2) /* every name is near such a short word */
		best_distance = 1;
	for (int64_t i = 0; i < count; i++) {
		int distance = edit_distance(word, names[i]);
		if (distance < best_distance || (distance == best_distance && !best)) {
			best_distance = distance;
			best = names[i];
		}
	}
	/* "batch_size" is many edits from "train_batch_size" but close in meaning. */
	for (int64_t i = 0; i < count && !best && length >= 4; i++) {
		for (const char *p = names[i]; *p && !best; p++) {
			int k = 0;
			while (k < length && p[k] && plain_character(p[k]) == plain_character(word[k]))
				k++;
			if (k == length)
				best = names[i];
		}
	}
	return best;
}

/* Collects names and aliases separately: of two that are equally near, the name takes precedence. */
static int64_t collect_names(const struct option *table, struct buffer *aliases, const char **names, int64_t limit)
{
	int64_t count = 0;
	for (int i = 0; !option_table_ends(&table[i]); i++) {
		if (table[i].name && count < limit)
			names[count++] = table[i].name;
		if (table[i].alias)
			buffer_format(aliases, "%s ", table[i].alias);
	}
	return count;
}

void option_hint_nearest(struct options *options, const char *word, const char *dashes)
{
	enum { LIMIT = 512 };
	const char *names[LIMIT];
	struct buffer aliases = {0};
	int64_t count = collect_names(options->table, &aliases, names, LIMIT);
	count += collect_names(option_common, &aliases, names + count, LIMIT - count);
	for (char *save, *alias = aliases.size ? strtok_r(aliases.data, " ", &save) : NULL; alias && count < LIMIT;
	     alias = strtok_r(NULL, " ", &save))
		names[count++] = alias;
	const char *nearest = nearest_name(word, names, count);
	int row = nearest ? options_find(options, nearest) : -1;
	if (nearest)
		error_hint("did you mean %s%s?", dashes, nearest);
	else
		error_hint("--help lists all options");
	if (row >= 0)
		options->faulty[row] = true;
	buffer_release(&aliases);
}
