/* The part of option.h about the command line. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include "base/log.h"
#include "base/memory.h"
#include "base/option_internal.h"

static int find_letter(const struct option *table, char letter)
{
	for (int i = 0; !option_table_ends(&table[i]); i++) {
		if (table[i].name && table[i].letter && table[i].letter == letter)
			return i;
	}
	return -1;
}

struct arguments {
	int count, at;
	char **words;
};

/* No option name begins with a digit, so "-1" and the list "-1,-2" are values. */
static bool looks_like_option(const char *word)
{
	double number;
	bool is_negative = word[0] == '-' && word[1] >= '0' && word[1] <= '9';
	return word[0] == '-' && word[1] != '\0' && !is_negative && !option_parse_number(word, &number);
}

static void skip_values(struct arguments *arguments)
{
	while (arguments->at < arguments->count && !looks_like_option(arguments->words[arguments->at]))
		arguments->at++;
}

/* The value of `name`: `attached` ("--name=value"), or the next argument. */
static enum status take_value(struct arguments *arguments, const char *name, const char *attached, const char **out)
{
	*out = attached;
	if (attached)
		return OK;
	if (arguments->at < arguments->count && !looks_like_option(arguments->words[arguments->at])) {
		*out = arguments->words[arguments->at++];
		return OK;
	}
	enum status status = error_set(ERR_USAGE, "--%s needs a value", name);
	if (arguments->at < arguments->count)
		error_hint("if you mean '%s', write --%s=%s", arguments->words[arguments->at], name,
			   arguments->words[arguments->at]);
	return status;
}

static enum status apply_common(struct options *options, struct arguments *arguments, const struct option *row,
				const char *attached)
{
	if (row->type == OPTION_FLAG && attached)
		return error_set(ERR_USAGE, "--%s takes no value", row->name);
	if (!strcmp(row->name, "help")) {
		options->help = true;
		options->help_all = arguments->at < arguments->count && !strcmp(arguments->words[arguments->at], "all");
		arguments->at += options->help_all;
	} else if (!strcmp(row->name, "quiet")) {
		log_level = LOG_QUIET;
	} else if (!strcmp(row->name, "verbose")) {
		log_level = LOG_VERBOSE;
	} else if (!strcmp(row->name, "no_progress")) {
		log_progress = false;
	} else if (!strcmp(row->name, "print_config")) {
		options->print_config = true;
	} else {
		const char *path;
		TRY(take_value(arguments, row->name, attached, &path));
		TRY(option_config_read(options, path));
	}
	return OK;
}

/* Sets a row from the command line, for the whole run or for one section. */
static enum status set(struct options *options, int64_t section, int index, const char *value)
{
	if (section >= 0)
		return options_set_section(options, section, options->table[index].name, value, ORIGIN_COMMAND);
	return option_set_at(options, index, value, ORIGIN_COMMAND);
}

/* Applies a row of the command's own table; section -1 is the whole run. */
static enum status apply(struct options *options, struct arguments *arguments, int64_t section, int index, const char *attached)
{
	const struct option *row = &options->table[index];
	const char *value;
	if (row->type == OPTION_FLAG) {
		value = attached ? attached : "true";
		if (!attached && arguments->at < arguments->count &&
		    (!strcasecmp(arguments->words[arguments->at], "true") ||
		     !strcasecmp(arguments->words[arguments->at], "false")))
			value = arguments->words[arguments->at++];
		return set(options, section, index, value);
	}
	options->faulty[index] = true; /* in case the value is missing */
	TRY(take_value(arguments, row->name, attached, &value));
	options->faulty[index] = false;
	TRY(set(options, section, index, value));
	while (row->type == OPTION_LIST && !attached && arguments->at < arguments->count &&
	       !looks_like_option(arguments->words[arguments->at]))
		TRY(set(options, section, index, arguments->words[arguments->at++]));
	return OK;
}

/* The same for a row found by one of its names, which the error mentions if it is not the first. */
static enum status apply_named(struct options *options, struct arguments *arguments, int64_t section, int index, const char *name,
			       size_t length, const char *attached)
{
	const struct option *row = &options->table[index];
	enum status status = apply(options, arguments, section, index, attached);
	if (status != ERR_USAGE || !option_same_names(row->alias, name, length))
		return status;
	const struct error error = *error_last();
	if (error.hint[0])
		error_hint("--%.*s is --%s here; %s", (int)length, name, row->name, error.hint);
	else
		error_hint("--%.*s is --%s here", (int)length, name, row->name);
	return status;
}

/* An option of another command: its values are checked but otherwise ignored. */
static enum status leave_aside(struct arguments *arguments, const struct option *row, const char *attached)
{
	const char *value;
	bool flag;
	if (row->type == OPTION_FLAG) {
		if (!attached && arguments->at < arguments->count && isalpha((unsigned char)arguments->words[arguments->at][0]) &&
		    option_parse_flag(arguments->words[arguments->at], &flag))
			arguments->at++;
		return attached ? option_check(row, attached) : OK;
	}
	TRY(take_value(arguments, row->name, attached, &value));
	TRY(option_check(row, value));
	while (row->type == OPTION_LIST && !attached && arguments->at < arguments->count &&
	       !looks_like_option(arguments->words[arguments->at]))
		arguments->at++;
	return OK;
}

/* Takes the value of a name from another program and applies it. */
static enum status apply_foreign(struct options *options, struct arguments *arguments, const struct option_foreign *row,
				 const char *name, const char *attached)
{
	const char *value = attached;
	if (row->kind == FOREIGN_VALUE || row->kind == FOREIGN_VALUES) {
		TRY(take_value(arguments, name, attached, &value));
		if (row->kind == FOREIGN_VALUES && !attached)
			skip_values(arguments);
	} else if (!attached && arguments->at < arguments->count) {
		bool flag;
		const char *next = arguments->words[arguments->at];
		if (row->kind == FOREIGN_EITHER && !looks_like_option(next))
			value = arguments->words[arguments->at++];
		else if (isalpha((unsigned char)next[0]) && option_parse_flag(next, &flag))
			value = arguments->words[arguments->at++];
	}
	return option_foreign_apply(options, row, name, value, ORIGIN_COMMAND);
}

/* A flag turned off: "--no_save_best", or as TensorFlow's scripts write it, "--nodo_lower_case". */
static enum status apply_negated(struct options *options, int64_t section, const char *name, size_t length, bool *out_found)
{
	size_t no = length > 3 && !strncmp(name, "no", 2) ? 2 + (name[2] == '_' || name[2] == '-') : 0;
	const char *rest = name + no;
	if (no == 0)
		return OK;
	int index = option_find_row(options->table, rest, length - no);
	const struct option *aside = option_aside_find(options, rest, length - no);
	const struct option_foreign *foreign = option_foreign_find(options, rest, length - no);
	*out_found = true;
	if (index >= 0 && options->table[index].type == OPTION_FLAG)
		return set(options, section, index, "false");
	if (aside && aside->type == OPTION_FLAG)
		return OK;
	if (foreign && foreign->kind == FOREIGN_FLAG && section < 0) {
		char given[128];
		snprintf(given, sizeof given, "%.*s", (int)(length - no), rest);
		return option_foreign_apply(options, foreign, given, "false", ORIGIN_COMMAND);
	}
	*out_found = false;
	return OK;
}

static enum status parse_long(struct options *options, struct arguments *arguments, const char *word)
{
	const char *name = word + 2, *equals = strchr(name, '=');
	size_t length = equals ? (size_t)(equals - name) : strlen(name);
	const char *attached = equals ? equals + 1 : NULL;
	int64_t section = -1;
	int index = option_find_row(options->table, name, length);
	if (index < 0 && option_section_name(options, name, length, &section, &name)) {
		length = equals ? (size_t)(equals - name) : strlen(name);
		index = option_find_row(options->table, name, length);
	}
	if (index >= 0)
		return apply_named(options, arguments, section, index, name, length, attached);
	int common = option_find_row(option_common, name, length);
	if (common >= 0 && section < 0)
		return apply_common(options, arguments, &option_common[common], attached);
	bool negated = false;
	if (!attached)
		TRY(apply_negated(options, section, name, length, &negated));
	if (negated)
		return OK;
	const struct option *aside = option_aside_find(options, name, length);
	if (aside)
		return leave_aside(arguments, aside, attached);
	const struct option_foreign *foreign = option_foreign_find(options, name, length);
	if (foreign && section < 0) {
		char given[128];
		snprintf(given, sizeof given, "%.*s", (int)length, name);
		return apply_foreign(options, arguments, foreign, given, attached);
	}
	if (!attached) /* skip what may be its values, which mean nothing by themselves */
		skip_values(arguments);
	char shown[128];
	snprintf(shown, sizeof shown, "%.*s", (int)(name - (word + 2) + (ptrdiff_t)length), word + 2);
	enum status status = error_set(ERR_USAGE, "unknown option '--%s'", shown);
	snprintf(shown, sizeof shown, "%.*s", (int)length, name);
	option_hint_nearest(options, shown, "--");
	return status;
}

/* "-q", "-qv", "-n5", "-n 5". */
static enum status parse_letters(struct options *options, struct arguments *arguments, const char *word)
{
	for (const char *letter = word + 1; *letter; letter++) {
		const char *rest = letter[1] ? letter + 1 : NULL;
		int index = find_letter(options->table, *letter);
		int common = index < 0 ? find_letter(option_common, *letter) : -1;
		if (index >= 0 && options->table[index].type != OPTION_FLAG)
			return apply(options, arguments, -1, index, rest);
		if (index >= 0)
			TRY(option_set_at(options, index, "true", ORIGIN_COMMAND));
		else if (common >= 0)
			TRY(apply_common(options, arguments, &option_common[common], NULL));
		else {
			return error_hinted(error_set(ERR_USAGE, "unknown option '-%c'", *letter), "--help lists all options");
		}
	}
	return OK;
}

static enum status parse_word(struct options *options, struct arguments *arguments, const char *word)
{
	enum status status = OK;
	if (!strcmp(word, "--")) {
		while (status == OK && arguments->at < arguments->count)
			status = option_list_add(&options->positional, arguments->words[arguments->at++]);
		return status;
	}
	if (!strncmp(word, "--", 2))
		return parse_long(options, arguments, word);
	if (word[0] == '-' && word[1])
		return parse_letters(options, arguments, word);
	return option_list_add(&options->positional, word);
}

enum status options_parse(struct options *options, int argc, char **argv)
{
	struct arguments arguments = {.count = argc, .words = argv};
	options->problem_count = 0;
	while (arguments.at < argc) {
		const char *word = argv[arguments.at++];
		TRY(options_blame(options, parse_word(options, &arguments, word)));
	}
	option_say_answers(options);
	return options_problem_status(options);
}
