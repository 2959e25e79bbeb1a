#include "tasks/set_list.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"

/* Names that `bertc finetune` uses in its folder. */
static bool is_of_run(const char *name)
{
	static const char *const names[] = {"final", "best", "data", "logs", ".", ".."};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return strncmp(name, "checkpoint-", 11) == 0 || strncmp(name, "run-", 4) == 0;
}

static enum status check_name(const struct set_list *list, const char *option, const char *name, bool name_folders)
{
	for (int64_t i = 0; i < list->count; i++)
		if (strcmp(list->sets[i].name, name) == 0)
			return error_set(ERR_USAGE, "--%s: two sets are called '%s'", option, name);
	if (name_folders && is_of_run(name)) {
		enum status status = error_set(ERR_USAGE, "--%s %s=...: a run has a folder of that name", option, name);
		error_hint("results are written into a folder that is called as the set: choose another name");
		return status;
	}
	return OK;
}

enum status set_list_parse(struct set_list *out, const char *option, const struct option_list *list, bool name_folders)
{
	if (!list || list->count == 0)
		return OK;
	TRY(memory_new(&out->sets, list->count, sizeof(*out->sets), "sets of files"));
	TRY(memory_new(&out->paths, list->count, sizeof(*out->paths), "sets of files"));
	for (int64_t i = 0; i < list->count; i++) {
		const char *value = list->values[i], *name = "";
		size_t size = set_name_size(value);
		if (size > 0)
			TRY(string_store_copy(&out->names, value, size, &name));
		if (size > 0 || out->count == 0) {
			TRY(check_name(out, option, name, name_folders));
			out->sets[out->count++] = (struct file_set){.name = name, .paths = out->paths + i};
		}
		out->paths[i] = set_path(value);
		out->sets[out->count - 1].count++;
	}
	return OK;
}

void set_list_release(struct set_list *list)
{
	free(list->sets);
	free(list->paths);
	string_store_release(&list->names);
	*list = (struct set_list){.count = 0};
}
