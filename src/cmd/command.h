/* Commands: one row each in the table of command.c. To add one: write cmd/<name>.c with its option table, its
 * command_text and its function; declare it here; add the row. Help, man page, completion and the tests that loop
 * over the table follow. Only src/cmd prints results and exits.
 *
 * A command returns a status and prints no errors: main does, and exits with the status. It may print results with
 * stdio: that standard output could not be written is noticed at the end. */
#ifndef CMD_COMMAND_H
#define CMD_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include "base/error.h"
#include "base/option.h"

struct command {
	const struct command_text *text;
	const struct option *options;
	const struct option_foreign *foreign; /* names from other programs; may be NULL */
	const struct option *aside; /* another command's options that this one accepts and has no use for; may be NULL */
	size_t settings_bytes;      /* of the command's settings struct, which `run` receives parsed in options->settings */
	/* Completes the options when all that was given is read, before they are checked, shown or used. NULL: nothing to do. */
	enum status (*complete)(struct options *options);
	/* Takes down as problems what is missing from the options, or what does not go together, as far as they tell without a
	 * look at any file; may be NULL. Runs before `run`, and also where the line has problems already. */
	enum status (*check)(struct options *options);
	enum status (*run)(struct options *options);
	bool takes_arguments; /* reads options->positional; otherwise a stray argument is an error before `run` */
};

extern const struct command *const commands[];        /* ends with NULL */
const struct command *command_find(const char *name); /* or NULL */

/* `bertc ARGUMENTS`: everything but the process's own affairs; returns the exit code. */
int command_main(int argc, char **argv);

/* For a write to standard output that failed, errno being its reason: an error. But where its reader has gone, as `head` goes
 * when it has enough, the process ends in silence, as by SIGPIPE. */
MUST_USE enum status command_output_failed(void);

/* Texts about all commands, appended to `out`. */
void command_list_help(struct buffer *out);
void command_list_man(struct buffer *out); /* bertc(1) */
void completion_bash(struct buffer *out);
void completion_zsh(struct buffer *out);
void completion_commands(struct buffer *out); /* names, one a line */

extern const struct command command_download, command_extract, command_vocab, command_tokenize, command_prepare, command_pretrain,
	command_finetune, command_predict, command_embed, command_score, command_evaluate, command_export, command_fill,
	command_serve, command_inspect, command_verify, command_compare, command_bench, command_instances, command_plan;

#endif
