/* Commands: one row each in the table of command.c. To add one, write cmd/<name>.c (or a folder cmd/<name>, if it takes several
 * files) with its option table, its command_text, and its function, declare it here, and add the row. Help, man page, completion,
 * and the tests that loop over the table follow. Only src/cmd prints results and ends the program.
 *
 * A command returns a status and prints no errors: command_main() prints the error and returns the exit code. A command may print
 * results with stdio; failed writes to standard output are noticed at the end. */
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
	const struct option *aside; /* another command's options, which this one accepts but does not use; may be NULL */
	size_t settings_bytes;      /* of the command's settings struct, which `run` receives filled in as options->settings */
	/* Completes the options once everything given has been read, before they are checked, shown, or used; may be NULL. */
	enum status (*complete)(struct options *options);
	/* Records as problems what is missing from the options or contradictory, as far as that can be told without looking at
	 * any file; may be NULL. Runs before `run`, even if the command line already has problems. */
	enum status (*check)(struct options *options);
	enum status (*run)(struct options *options);
	bool rare;            /* left out of the short list of commands */
	bool prints_out;      /* takes --out - as standard output */
	bool takes_arguments; /* reads options->positional; otherwise a positional argument is an error before `run` */
};

extern const struct command *const commands[];        /* ends with NULL */
const struct command *command_find(const char *name); /* or NULL */

/* Runs `bertc ARGUMENTS`, except for what concerns the process itself; returns the exit code. */
int command_main(int argc, char **argv);

/* ERR_USAGE if `target` (may be NULL), which --`option` writes, is the file `path`, which is read. command_main() checks this for
 * --out and the files that options and arguments name; what else a command reads, it checks itself. */
MUST_USE enum status command_check_input(const char *path, const char *option, const char *target);
/* Prints a text as a result and releases it. */
MUST_USE enum status command_print(struct buffer *text);
/* The error for a failed write to standard output, whose cause is in errno. If the reader has gone away, as `head` does when it
 * has enough, the process ends silently, as with SIGPIPE. */
MUST_USE enum status command_output_failed(void);

/* Texts about all commands, appended to `out`. */
void command_list_help(bool all, struct buffer *out); /* unless `all`, without rare ones */
void command_list_man(struct buffer *out);            /* bertc(1) */
MUST_USE enum status completion_bash(struct buffer *out);
MUST_USE enum status completion_zsh(struct buffer *out);
void completion_commands(struct buffer *out); /* names, one per line */

extern const struct command command_download, command_extract, command_vocab, command_tokenize, command_prepare, command_pretrain,
	command_finetune, command_predict, command_embed, command_score, command_evaluate, command_export, command_fill,
	command_serve, command_inspect, command_verify, command_compare, command_bench, command_instances, command_plan,
	command_mine;

#endif
