/* Warnings and notes of the training commands: a finished run, edited options, files used for two purposes. */
#include "cmd/training_notes.h"

#include <string.h>

#include "base/log.h"
#include "run/phases.h"
#include "base/set_list.h"

enum status training_note_finished(struct options *options, const struct run_start *start, const char *folder,
				   const char *model_option)
{
	char model[PATH_BYTES];
	struct buffer hint = {0};
	if (!start->resumed || !start->own)
		return OK;
	TRY(path_join(model, folder, "final"));
	if (!file_is_folder(model))
		return OK;
	buffer_format(&hint, "to train its model further, give --%s %s and another --out; to start over, give --fresh",
		      model_option, folder);
	enum status status = buffer_status(&hint);
	if (status == OK)
		status = options_note_finished(options, buffer_string(&hint));
	buffer_release(&hint);
	return status;
}

enum status training_note_edits(const struct options *options, const struct run_start *start, const char *folder)
{
	char path[PATH_BYTES];
	struct json_document shown;
	const struct json *record = phases_record(start);
	if (!start->resumed || !start->own || start->begins_phase || options->silent)
		return OK;
	TRY(path_join(path, folder, "settings.json"));
	if (!file_exists(path))
		return OK;
	if (json_read(&shown, path, (size_t)16 << 20) != OK) {
		log_warning("%s; it is now written again", error_last()->message);
		return OK;
	}
	enum status status = options_note_edits(options, record, shown.root, path);
	bool listed = json_member(record, "phases") && json_member(shown.root, "phases");
	for (int64_t i = 0; listed && status == OK && i < phases_recorded(record) && i < phases_recorded(shown.root); i++)
		status = options_note_edits(options, phases_recorded_at(record, i), phases_recorded_at(shown.root, i), path);
	json_release(&shown);
	return status;
}

/* The existing files of a list; whoever reads the files reports what is wrong with the list. */
static void expand(const struct options *options, const char *name, struct name_list *out)
{
	const char *fields = options->settings;
	const struct option_list *list = (const void *)(fields + options->table[options_find(options, name)].field);
	for (int64_t i = 0; i < list->count; i++) {
		const char *path = set_path(list->values[i]);
		if (strcmp(path, "-") != 0 && path_expand(path, out) != OK)
			return;
	}
}

void training_note_shared(const struct options *options, const char *train, const char *other)
{
	struct name_list trained = {0}, scored = {0};
	if (options->silent)
		return;
	expand(options, train, &trained);
	expand(options, other, &scored);
	for (int64_t i = 0; i < scored.count; i++) {
		struct file_stamp file = file_stamp_at(scored.names[i]);
		for (int64_t k = 0; k < trained.count; k++) {
			struct file_stamp own = file_stamp_at(trained.names[k]);
			if (!file_stamp_is_same_file(&own, &file))
				continue;
			log_warning("--%s '%s' is also one of the files of --%s: scores on it say nothing about other texts",
				    other, scored.names[i], train);
			break;
		}
	}
	name_list_release(&trained);
	name_list_release(&scored);
}
