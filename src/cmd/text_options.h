/* Rows of option tables that every command which reads text has: the same name, the same words. `offset` is that of
 * the command's member, of the type option.h asks for. */
#ifndef CMD_TEXT_OPTIONS_H
#define CMD_TEXT_OPTIONS_H

#include "base/option.h"

#define CORPUS_OPTION(offset, sentence)                                                                      \
	{.name = "corpus",                                                                                   \
	 .type = OPTION_LIST,                                                                                \
	 .field = (offset),                                                                                  \
	 .role = ROLE_SOURCE,                                                                                \
	 .value_name = "PATH...",                                                                            \
	 .help = sentence ": files, folders, globs, - for standard input; plain, gz, bz2, zst, xz"}

#define TEXT_FORM_OPTION(offset)                                                                             \
	{.name = "text_form",                                                                                \
	 .type = OPTION_CHOICE,                                                                              \
	 .field = (offset),                                                                                  \
	 .fallback = "auto",                                                                                 \
	 .range = "auto|sentences|paragraphs|wrapped|documents",                                             \
	 .role = ROLE_PLACE,                                                                                 \
	 .value_name = "FORM",                                                                               \
	 .help = "what a line of the text is; auto finds out for each file and says so"}

#define THREADS_OPTION(offset)                                                                               \
	{.name = "threads",                                                                                  \
	 .type = OPTION_INTEGER,                                                                             \
	 .field = (offset),                                                                                  \
	 .fallback = "0",                                                                                    \
	 .range = "0..1024",                                                                                 \
	 .role = ROLE_RUN,                                                                                   \
	 .value_name = "N",                                                                                  \
	 .help = "worker threads, 0 = one for each core; the result does not depend on them",               \
	 .alias = "num_threads"}

#endif
