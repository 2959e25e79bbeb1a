/* The part of option.h about names from other programs. */
#include <string.h>
#include "base/option_internal.h"

static const struct option_foreign *find(const struct option_foreign *table, const char *word, size_t length)
{
	const struct option_foreign *row = table;
	for (; row && row->name; row++) {
		if (option_same_names(row->name, word, length))
			return row;
	}
	return row && row->rest ? find(row->rest, word, length) : NULL;
}

const struct option_foreign *option_foreign_find(const struct options *options, const char *word, size_t length)
{
	const struct option_foreign *row = find(options->foreign, word, length);
	return row ? row : find(options->removed, word, length);
}

enum status option_foreign_apply(struct options *options, const struct option_foreign *row, const char *name, const char *value,
				 enum option_origin origin)
{
	bool flag = true;
	if (row->program && origin == ORIGIN_COMMAND && !options->foreign_program) {
		options->foreign_program = row->program;
		TRY(option_copy_text(options, name, &options->foreign_name));
	}
	if (row->kind == FOREIGN_VALUE && row->answer == FOREIGN_MEANS) {
		TRY(option_answer(options, NULL, "--%s means --%s %s", name, row->option, value));
		return options_set(options, row->option, value, origin);
	}
	if (row->kind == FOREIGN_EITHER && row->option && value && !option_parse_flag(value, &flag))
		return options_set(options, row->option, value, origin);
	if (row->kind == FOREIGN_FLAG && value && !option_parse_flag(value, &flag))
		return error_set(ERR_USAGE, "--%s must be true or false, not '%s'", name, value);
	switch (row->answer) {
	case FOREIGN_IGNORED: return option_answer(options, name, "--%s is ignored: %s", name, row->why);
	case FOREIGN_REFUSED:
		if (row->kind == FOREIGN_FLAG && !flag) /* "--use_tpu false" asks for what is done anyway */
			return OK;
		if (row->kind == FOREIGN_VALUE && row->value && value && option_same_names(row->value, value, strlen(value)))
			return OK;
		return error_hinted(error_set(ERR_USAGE, "bertc has no option --%s", name), "%s", row->why);
	case FOREIGN_ALWAYS:
		if (flag)
			return OK;
		return error_hinted(error_set(ERR_USAGE, "--%s false: this command does nothing else", name), "%s", row->why);
	case FOREIGN_MEANS: break;
	}
	if (row->kind == FOREIGN_FLAG && row->value && !flag)
		return OK;
	const char *text = row->value ? row->value : flag ? "false" : "true";
	TRY(option_answer(options, NULL, "--%s means --%s %s%s%s", name, row->option, text, row->why ? ": " : "",
			  row->why ? row->why : ""));
	return options_set(options, row->option, text, origin);
}
