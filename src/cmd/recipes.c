/* Finds a recipe's file near the program and reads it into the options. */
#include "cmd/recipes.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

/* Where recipes are, relative to the program's folder: in a release, in a source tree (build, build/emulated), installed. */
static const char *const places[] = {"recipes", "../recipes", "../../recipes", "../share/bertc/recipes"};

/* The folder of the running program. */
static enum status program_folder(char out[PATH_BYTES])
{
	ssize_t size = readlink("/proc/self/exe", out, PATH_BYTES - 1);
	if (size < 0)
		return error_set_errno(ERR_RESOURCE, "cannot determine where this program is installed");
	out[size] = '\0';
	path_folder(out, out);
	return OK;
}

static enum status find(const char *name, char out[PATH_BYTES])
{
	char folder[PATH_BYTES], below[64];
	TRY(program_folder(folder));
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		snprintf(below, sizeof below, "%s/%s.conf", places[i], name);
		TRY(path_join(out, folder, below));
		if (file_exists(out))
			return OK;
	}
	return error_hinted(error_set(ERR_USAGE, "--recipe %s: '%s.conf' is not installed with this program", name, name),
			    "it belongs in '%s/%s'; any config file can be read with --config FILE", folder, places[3]);
}

enum status recipes_read(struct options *options)
{
	char path[PATH_BYTES];
	struct buffer name = {0};
	if (options_origin(options, "recipe") == ORIGIN_DEFAULT)
		return OK;
	enum status status = find(options_value(options, "recipe", &name), path);
	if (status == OK)
		status = options_read_recipe(options, path);
	buffer_release(&name);
	return status;
}
