/* Completion scripts for shells, made from the option tables and the tables of named things: model sizes, tasks, downloads. */
#include <stdlib.h>
#include <string.h>
#include "base/option.h"
#include "cmd/command.h"
#include "cmd/download_sources.h"
#include "model/model.h"
#include "tasks/task.h"

/* Options that every command has (base/option.h). */
#define COMMON_WORDS "--help --quiet --no_progress --verbose --config --print_config"

static void append_choices(struct buffer *out, const char *range)
{
	for (const char *p = range + (*range == '|'); *p; p++)
		buffer_char(out, *p == '|' ? ' ' : *p);
}

static void append_tasks(struct buffer *out)
{
	int count;
	const struct task *const *tasks = tasks_all(&count);
	for (int i = 0; i < count; i++)
		buffer_format(out, "%s%s", i ? " " : "", tasks[i]->name);
	const struct layout *layouts = layouts_all(&count);
	for (int i = 0; i < count; i++)
		buffer_format(out, " %s", layouts[i].name);
}

/* Downloads by name, and groups of them by the part before the '/'. */
static void append_downloads(struct buffer *out)
{
	const char *group = "";
	size_t length = 0;
	for (const struct download_source *row = download_sources; row->name; row++) {
		bool again = row > download_sources && !strcmp(row->name, row[-1].name);
		const char *slash = strchr(row->name, '/');
		if (slash && (strncmp(row->name, group, length + 1) != 0 || length == 0)) {
			group = row->name;
			length = (size_t)(slash - row->name);
			buffer_format(out, "%.*s ", (int)length, group);
		}
		if (!again)
			buffer_format(out, "%s ", row->name);
	}
}

/* The values that an option of this command knows by name, separated by spaces. False: any other text, or a file. */
static bool append_values(struct buffer *out, const struct command *command, const struct option *row)
{
	const char *name = command->text->name;
	bool makes_models = !strcmp(name, "pretrain") || !strcmp(name, "plan") || !strcmp(name, "bench");
	if (row->type == OPTION_CHOICE)
		append_choices(out, row->range);
	else if (!strcmp(row->name, "model") && makes_models)
		append_choices(out, MODEL_SIZES("|"));
	else if (!strcmp(row->name, "task"))
		append_tasks(out);
	else
		return false;
	return true;
}

static void append_command_names(struct buffer *out)
{
	for (int i = 0; commands[i]; i++)
		buffer_format(out, "%s ", commands[i]->text->name);
}

/* Offers values after `previous`: choices where there are some; otherwise none, for which bash falls back to file names. */
static void bash_command(struct buffer *out, const struct command *command, const struct option *rows)
{
	buffer_format(out, "\t%s)\n\t\tcase $previous in\n", command->text->name);
	for (const struct option *row = rows; row->name || row->help; row++) {
		struct buffer values = {0};
		if (row->name && append_values(&values, command, row))
			buffer_format(out, "\t\t--%s) words='%s' ;;\n", row->name, buffer_string(&values));
		buffer_release(&values);
	}
	if (command == &command_download) {
		buffer_text(out, "\t\t*) words='");
		append_downloads(out);
		buffer_text(out, "'\n\t\t\t[[ $current == -* ]] && words='" COMMON_WORDS);
	} else {
		buffer_text(out, "\t\t*) [[ $current == -* ]] && words='" COMMON_WORDS);
	}
	for (const struct option *row = rows; row->name || row->help; row++) {
		if (row->name)
			buffer_format(out, " --%s", row->name);
	}
	buffer_text(out, "' ;;\n\t\tesac ;;\n");
}

void completion_commands(struct buffer *out)
{
	for (int i = 0; commands[i]; i++)
		buffer_format(out, "%s\n", commands[i]->text->name);
}

/* Appends the part of each command. */
static enum status append_commands(struct buffer *out,
				   void append(struct buffer *, const struct command *, const struct option *))
{
	for (int i = 0; commands[i]; i++) {
		struct option *rows;
		TRY(options_flatten(commands[i]->options, &rows));
		append(out, commands[i], rows);
		free(rows);
	}
	return OK;
}

enum status completion_bash(struct buffer *out)
{
	buffer_text(out, "# Completion of bertc for bash: source this file, or put it into\n"
			 "# /usr/share/bash-completion/completions/bertc\n"
			 "_bertc()\n{\n"
			 "\tlocal current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} words=\n"
			 "\t[[ $current == = ]] && current=\n"
			 "\t[[ $previous == = ]] && previous=${COMP_WORDS[COMP_CWORD-2]}\n"
			 "\tprevious=${previous//-/_} previous=${previous/#__/--}\n"
			 "\tif ((COMP_CWORD == 1)); then\n\t\twords='");
	append_command_names(out);
	buffer_text(out, "help man completion version'\n\telse case ${COMP_WORDS[1]} in\n\thelp | man) words='");
	append_command_names(out);
	buffer_text(out, "' ;;\n\tcompletion) words='bash zsh' ;;\n");
	TRY(append_commands(out, bash_command));
	buffer_text(out, "\tesac fi\n"
			 "\tCOMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
			 "}\n"
			 "complete -o default -F _bertc bertc\n");
	return OK;
}

/* Text within '...[...]', where brackets, colons, and quotes have a meaning. */
static void zsh_text(struct buffer *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\'')
			buffer_text(out, "'\\''");
		else if (strchr("[]:\\", *text))
			buffer_format(out, "\\%c", *text);
		else
			buffer_char(out, *text);
	}
}

static void zsh_command(struct buffer *out, const struct command *command, const struct option *rows)
{
	buffer_format(out, "\t%s)\n\t\t_arguments -S", command->text->name);
	for (const struct option *row = rows; row->name || row->help; row++) {
		if (!row->name)
			continue;
		buffer_format(out, " \\\n\t\t\t'%s--%s[", row->type == OPTION_LIST ? "*" : "", row->name);
		zsh_text(out, row->help);
		buffer_char(out, ']');
		struct buffer values = {0};
		if (append_values(&values, command, row)) {
			/* A model may be a size or a folder. */
			bool closed = row->type == OPTION_CHOICE;
			buffer_format(out, closed ? ":choice:(%s)" : ":value:{compadd -- %s; _files}", buffer_string(&values));
		} else if (row->type != OPTION_FLAG) {
			buffer_char(out, ':');
			zsh_text(out, row->value_name ? row->value_name : "value");
			buffer_text(out, row->type == OPTION_TEXT || row->type == OPTION_LIST ? ":_files" : ": ");
		}
		buffer_release(&values);
		buffer_char(out, '\'');
	}
	buffer_text(out, " \\\n\t\t\t'--help[show the help]' '--quiet[say less]' '--no_progress[no progress bar]' '--verbose[say "
			 "more]' \\\n"
			 "\t\t\t'--config[read options from a file]:FILE:_files' \\\n"
			 "\t\t\t'--print_config[print all settings]'");
	if (command == &command_download) {
		buffer_text(out, " '*:download:(");
		append_downloads(out);
		buffer_text(out, ")' ;;\n");
	} else {
		buffer_format(out, "%s ;;\n", command->takes_arguments ? " '*:file:_files'" : "");
	}
}

enum status completion_zsh(struct buffer *out)
{
	buffer_text(out, "#compdef bertc\n"
			 "# Completion of bertc for zsh: source this file, or put it as _bertc into a folder "
			 "of $fpath.\n"
			 "_bertc()\n{\n\tlocal -a names=(\n");
	for (int i = 0; commands[i]; i++) {
		buffer_format(out, "\t\t'%s:", commands[i]->text->name);
		zsh_text(out, commands[i]->text->summary);
		buffer_text(out, "'\n");
	}
	buffer_text(out, "\t\thelp man completion version)\n"
			 "\tif ((CURRENT == 2)); then\n\t\t_describe command names\n\t\treturn\n\tfi\n"
			 "\tlocal command=$words[2]\n"
			 "\tshift words\n\t((CURRENT--))\n"
			 "\tcase $command in\n"
			 "\thelp | man) _describe command names ;;\n"
			 "\tcompletion) _values shell bash zsh ;;\n");
	TRY(append_commands(out, zsh_command));
	buffer_text(out, "\tesac\n}\n"
			 "if [[ $funcstack[1] == _bertc ]]; then\n\t_bertc \"$@\"\nelse\n\tcompdef _bertc "
			 "bertc\nfi\n");
	return OK;
}
