/* Replaces hf:OWNER/NAME by the folder of that model. */
#include "cmd/hub_models.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/path.h"
#include "formats/hub.h"

/* The options that name models; a vocabulary may be named by its model. */
static const char *const model_options[] = {"model", "init_checkpoint", "teacher", "guide", "reranker", "vocab_file"};

static bool names_model(const char *value)
{
	return value && strncmp(set_path(value), HUB_PREFIX, strlen(HUB_PREFIX)) == 0;
}

/* The folder of a model that the value names, with the value's NAME= before it. */
static enum status enter(const char *value, char out[PATH_BYTES])
{
	static const struct fetch_settings settings = {.stall_seconds = 30, .pause_seconds = 2, .retries = 6};
	const char *path = set_path(value);
	char folder[PATH_BYTES];
	TRY(hub_fetch(path + strlen(HUB_PREFIX), false, &settings, folder));
	if (snprintf(out, PATH_BYTES, "%.*s%s", (int)(path - value), value, folder) >= PATH_BYTES)
		return error_set(ERR_USAGE, "'%.100s...': the path is too long", value);
	return OK;
}

static enum status enter_list(struct options *options, const char *name, const struct option_list *list)
{
	struct name_list values = {0};
	char folder[PATH_BYTES];
	enum option_origin origin = options_origin(options, name);
	enum status status = OK;
	for (int64_t i = 0; i < list->count; i++) {
		if (names_model(list->values[i]))
			TRY_GOTO(enter(list->values[i], folder), done);
		TRY_GOTO(name_list_add(&values, names_model(list->values[i]) ? folder : list->values[i]), done);
	}
	options_forget(options, name);
	for (int64_t i = 0; i < values.count; i++)
		TRY_GOTO(options_set(options, name, values.names[i], origin), done);
done:
	name_list_release(&values);
	return status;
}

/* The row of the i-th of model_options, or NULL if the command has none. *field: its value. */
static const struct option *row_of(const struct options *options, size_t i, const void **field)
{
	int index = options_find(options, model_options[i]);
	if (index < 0)
		return NULL;
	*field = (const char *)options->settings + options->table[index].field;
	return &options->table[index];
}

bool hub_models_are_named(const struct options *options)
{
	const void *field;
	for (size_t i = 0; i < sizeof model_options / sizeof *model_options; i++) {
		const struct option *row = row_of(options, i, &field);
		const struct option_list *list = field;
		if (row && row->type == OPTION_TEXT && names_model(*(const char *const *)field))
			return true;
		for (int64_t k = 0; row && row->type == OPTION_LIST && k < list->count; k++)
			if (names_model(list->values[k]))
				return true;
	}
	return false;
}

enum status hub_models_enter(struct options *options)
{
	char folder[PATH_BYTES];
	const void *field;
	for (size_t i = 0; i < sizeof model_options / sizeof *model_options; i++) {
		const struct option *row = row_of(options, i, &field);
		if (row && row->type == OPTION_LIST)
			TRY(enter_list(options, row->name, field));
		if (!row || row->type != OPTION_TEXT || !names_model(*(const char *const *)field))
			continue;
		TRY(enter(*(const char *const *)field, folder));
		TRY(options_set(options, row->name, folder, options_origin(options, row->name)));
	}
	return OK;
}
