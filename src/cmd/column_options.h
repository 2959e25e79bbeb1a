/* Options for the columns of a fine-tuned model's files, of predict and evaluate. */
#ifndef CMD_COLUMN_OPTIONS_H
#define CMD_COLUMN_OPTIONS_H

#include "base/option.h"

#define COLUMN_OPTION(type_, name_, help_)                                                                                       \
	{                                                                                                                        \
		.name = #name_, .type = OPTION_TEXT, .field = offsetof(type_, name_), .role = ROLE_RESULT,                       \
		.value_name = "COLUMN", .fallback_text = "as in training", .help = help_                                         \
	}

/* Rows of a command's table; its settings have members of these names. */
#define TEXT_COLUMN_OPTIONS(type_)                                                                                               \
	COLUMN_OPTION(type_, text_column, "column of the text, by name or by number from 1"),                                    \
		COLUMN_OPTION(type_, pair_column, "column of the second text of a pair")
#define LABEL_COLUMN_OPTION(type_) COLUMN_OPTION(type_, label_column, "column of the label")

#endif
