/* Claims a run's data folder, or refuses one that belongs to something else. */
#include "run/data_folder.h"

#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/log.h"

static enum status refuse_strange(const char *folder)
{
	struct name_list names = {0};
	if (!file_exists(folder))
		return OK;
	enum status status = folder_list(folder, &names);
	if (status == OK && names.count > 0) {
		status = error_set(ERR_USAGE, "'%s' exists and was not made by bertc", folder);
		error_hint("choose another --out; a run keeps its vocabulary and tokens in a folder of that name");
	}
	name_list_release(&names);
	return status;
}

/* Was the folder made with these settings? */
static enum status read_mark(const char *mark, const char *settings, bool *out_same)
{
	struct buffer found = {0};
	enum status status = file_read(mark, 1 << 20, &found);
	*out_same = status == OK && found.size == strlen(settings) && memcmp(found.data, settings, found.size) == 0;
	buffer_release(&found);
	return status;
}

/* Refuses to remove what the run is about to read. */
static enum status check_inputs(const char *folder, const struct name_list *inputs)
{
	for (int64_t i = 0; i < inputs->count; i++) {
		if (!path_lies_within(folder, inputs->names[i]))
			continue;
		return error_hinted(
			error_set(ERR_USAGE,
				  "'%s' is in '%s', which was made with other settings or from other text and would be "
				  "replaced",
				  inputs->names[i], folder),
			"copy it elsewhere, or choose another --out");
	}
	return OK;
}

enum status data_folder_claim(const char *folder, const char *settings, bool keep, const struct name_list *inputs)
{
	char mark[PATH_BYTES];
	TRY(path_join(mark, folder, DATA_FOLDER_MARK));
	if (file_exists(mark)) {
		bool same;
		TRY(read_mark(mark, settings, &same));
		if (keep || same)
			return OK;
		TRY(check_inputs(folder, inputs));
		log_note("'%s' was made with other settings or from other text: making it again", folder);
		TRY(folder_remove(folder));
	}
	TRY(refuse_strange(folder));
	TRY(folder_make(folder));
	return file_write(mark, settings, strlen(settings));
}
