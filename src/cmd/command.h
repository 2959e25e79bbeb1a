/* Commands: one row each in the table of main.c. To add one: write cmd/<name>.c with its option table, its
 * command_text and its function; declare them here; add the row. Help, man page, completion and the tests that loop
 * over the table follow. Only src/cmd prints results and exits. */
#ifndef CMD_COMMAND_H
#define CMD_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include "base/error.h"
#include "base/option.h"

struct command {
	const struct command_text *text;
	const struct option *options;
	size_t settings_bytes; /* of the command's settings struct, which `run` receives parsed in options->settings */
	enum status (*run)(struct options *options);
	bool takes_arguments; /* reads options->positional; otherwise a stray argument is an error before `run` */
};

extern const struct command command_vocab, command_tokenize, command_prepare, command_pretrain, command_evaluate,
	command_fill, command_inspect;

#endif
