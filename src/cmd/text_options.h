/* Rows that the option tables of all commands that read text share, with the same names and the same help. `offset` is that of
 * the member in the command's settings; option.h says which type it has. */
#ifndef CMD_TEXT_OPTIONS_H
#define CMD_TEXT_OPTIONS_H

#include "base/option.h"
#include "infer/device_options.h"
#include "text/corpus.h"

#define CORPUS_OPTION(offset, sentence, other_names)                                                                             \
	{                                                                                                                        \
		.name = "corpus", .type = OPTION_LIST, .field = (offset), .role = ROLE_SOURCE, .value_name = "PATH...",          \
		.alias = other_names, .help = sentence ": files, folders, globs, - for standard input; plain, gz, bz2, zst, xz"  \
	}

#endif
