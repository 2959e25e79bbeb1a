/* The option --model; catches models that do not exist, and texts given where a command takes files. */
#include "cmd/saved_models.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "weights/checkpoint_folder.h"

const struct option saved_model_rows[] = {
	{.name = "model",
	 .type = OPTION_TEXT,
	 .role = ROLE_PLACE,
	 .value_name = "FOLDER",
	 .alias = "model_name_or_path",
	 .help = "run folder, checkpoint, or any BERT folder or weights file with its configuration and vocabulary beside it"},
	{0},
};

enum status saved_model_check(struct options *options, const char *model)
{
	char index[PATH_BYTES];
	if (!model || file_exists(model))
		return OK;
	/* The prefix of a TensorFlow checkpoint is not a file. */
	if (snprintf(index, sizeof index, "%s.index", model) < (int)sizeof index && file_exists(index))
		return OK;
	return options_blame(
		options, checkpoint_missing(model, "give a run folder, one of its checkpoints, or any folder with a BERT model"));
}

enum status text_arguments_check(struct options *options, const char *example)
{
	for (int64_t i = 0; i < options->positional.count; i++) {
		const char *word = options->positional.values[i];
		if (!strchr(word, ' ') || file_exists(word) || strpbrk(word, "*?["))
			continue;
		enum status status = error_set(ERR_USAGE, "'%.200s' is not a file", word);
		error_hint("arguments are files; to answer a text, pass it on standard input: echo \"TEXT\" | %s", example);
		TRY(options_blame(options, status));
	}
	return OK;
}
