/* Remembers size and time of a model's files, and compares them later. */
#include "weights/model_files.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "formats/model_file_names.h"
#include "weights/model_folder.h"

/* Whether a name is that of a description or begins like the file of weights, as the parts of weights in several files and of
 * TensorFlow checkpoints do. */
static bool belongs(const char *name, const char *weights)
{
	if (model_file_name_is(name))
		return true;
	size_t stem = strcspn(weights, ".-");
	return stem > 0 && strncmp(name, weights, stem) == 0 && strchr(".-", name[stem]);
}

/* Adds the files of a folder and, if it has modules, of the folders in it. */
static enum status add_folder(struct name_list *out, const char *folder, const char *weights, bool inner)
{
	struct name_list found = {0};
	char path[PATH_BYTES];
	bool has_modules;
	enum status status = path_join(path, folder, "modules.json");
	TRY(status);
	has_modules = inner && file_exists(path);
	TRY(folder_list(folder, &found));
	for (int64_t i = 0; i < found.count; i++) {
		TRY_GOTO(path_join(path, folder, found.names[i]), done);
		if (file_size(path) >= 0 && belongs(found.names[i], weights))
			TRY_GOTO(name_list_add(out, path), done);
		else if (has_modules && file_is_folder(path))
			TRY_GOTO(add_folder(out, path, "model", false), done);
	}
done:
	name_list_release(&found);
	return status;
}

/* Adds the files of the folder that these weights are in. */
static enum status add_beside(struct name_list *out, char *weights)
{
	char *slash = strrchr(weights, '/');
	if (slash)
		*slash = '\0';
	return add_folder(out, !slash ? "." : weights[0] ? weights : "/", slash ? slash + 1 : weights, true);
}

/* Finds the files in the given folder, beside the weights, which may be in another folder of a run, and those of an adapter's
 * base. */
static enum status find(struct name_list *out, const char *model)
{
	struct model_source source;
	bool found = model_source_find(model, &source) == OK;
	const char *slash = found ? strrchr(source.weights, '/') : NULL;
	bool same =
		slash && strlen(model) == (size_t)(slash - source.weights) && strncmp(model, source.weights, strlen(model)) == 0;
	if (file_is_folder(model) && !same)
		TRY(add_folder(out, model, "", true));
	if (found)
		TRY(add_beside(out, source.weights));
	return found && source.base[0] ? add_beside(out, source.base) : OK;
}

enum status model_files_look(struct model_files *out, const char *model)
{
	*out = (struct model_files){0};
	TRY(find(&out->paths, model));
	TRY(memory_new(&out->stamps, out->paths.count, sizeof *out->stamps, "files of a model"));
	for (int64_t i = 0; i < out->paths.count; i++)
		out->stamps[i] = file_stamp_at(out->paths.names[i]);
	return OK;
}

enum status model_files_check(const struct model_files *files, const char *model)
{
	struct name_list now = {0};
	enum status status = OK;
	for (int64_t i = 0; i < files->paths.count; i++) {
		struct file_stamp stamp = file_stamp_at(files->paths.names[i]);
		TRY(file_stamp_check(files->paths.names[i], &files->stamps[i], &stamp, "while the model was read"));
	}
	TRY_GOTO(find(&now, model), done);
	for (int64_t i = 0; i < now.count && status == OK; i++)
		if (i >= files->paths.count || strcmp(now.names[i], files->paths.names[i]) != 0)
			status = error_set(ERR_STATE, "'%s' appeared while the model was read", now.names[i]);
	if (status != OK)
		error_hint("wait until nothing writes to the folder any more, then run the same command again");
done:
	name_list_release(&now);
	return status;
}

void model_files_release(struct model_files *files)
{
	name_list_release(&files->paths);
	free(files->stamps);
	*files = (struct model_files){0};
}

enum status model_files_hash(const char *model, uint64_t *out)
{
	struct model_files files = {0};
	enum status status;
	*out = 0;
	TRY_GOTO(model_files_look(&files, model ? model : ""), done);
	for (int64_t i = 0; i < files.paths.count && status == OK; i++) {
		const char *path = files.paths.names[i], *name = path_name(path);
		int64_t bytes;
		uint32_t crc = 0;
		status = file_checksum(path, &bytes, &crc);
		*out = hash64_combine(*out, hash64_combine(hash64(name, strlen(name)), crc));
	}
done:
	model_files_release(&files);
	return status;
}
