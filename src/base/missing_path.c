/* What was meant by a path that is not there: an address of something on a network, or a name that is spelled a little
 * differently. */
#include "base/missing_path.h"
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "base/file.h"
#include "base/option.h"
#include "base/path.h"

/* Whether this is a folder with nothing but hidden files, such as that of the run that is just beginning. */
static bool is_bare_folder(const char *path)
{
	struct name_list names;
	bool bare = true;
	if (!file_is_folder(path) || folder_list(path, &names) != OK)
		return false;
	for (int64_t i = 0; i < names.count; i++)
		bare &= names.names[i][0] == '.';
	name_list_release(&names);
	return bare;
}

static void hint_at_neighbor(const char *path)
{
	const struct error missing = *error_last();
	struct name_list names;
	const char *name = path_name(path);
	char folder[PATH_BYTES], meant[PATH_BYTES];
	path_folder(folder, path);
	if (!name[0] || !file_is_folder(folder))
		return;
	if (folder_list(folder, &names) != OK && error_restore(&missing) != OK)
		return;
	const char *near = nearest_name(name, (const char *const *)names.names, names.count);
	if (near && strcmp(near, name) == 0)
		error_hint("it is a link to a file that is not there");
	else if (near && snprintf(meant, sizeof meant, "%.*s%s", (int)(name - path), path, near) < PATH_BYTES &&
		 !is_bare_folder(meant) && error_restore(&missing) != OK)
		error_hint("did you mean '%s'?", meant);
	name_list_release(&names);
}

void hint_at_missing(const char *path)
{
	if (!strstr(path, "://")) {
		hint_at_neighbor(path);
		return;
	}
	error_hint("files are read from this machine: %s, and give the path of what it saves",
		   strncmp(path, "http", 4) == 0 ? "bertc download ADDRESS" : "copy it here with the tool of its store");
}
