/* Parses lists of named sets of files, and checks that their names are usable and different. */
#include "base/set_list.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define NAME_MOST 63
#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."

static int64_t find(const struct set_list *list, const char *name, size_t size)
{
	for (int64_t i = 0; i < list->count; i++)
		if (strlen(list->sets[i].name) == size && memcmp(list->sets[i].name, name, size) == 0)
			return i;
	return -1;
}

/* Makes the sets, and sets owner[] to the set of each value. */
static enum status assign(struct set_list *out, const struct option_list *list, int64_t *owner)
{
	int64_t current = -1;
	for (int64_t i = 0; i < list->count; i++) {
		const char *value = list->values[i];
		size_t size = set_name_size(value);
		if (size > 0 && !value[size + 1])
			return error_set(ERR_USAGE, "'%s': a path is missing after the name", value);
		if (size > 0 || current < 0)
			current = find(out, value, size);
		if (current < 0) {
			current = out->count++;
			TRY(string_store_copy(&out->names, value, size, &out->sets[current].name));
		}
		owner[i] = current;
	}
	return OK;
}

enum status set_list_parse(struct set_list *out, const struct option_list *list)
{
	int64_t *owner = NULL, at = 0;
	enum status status;
	if (!list || list->count == 0)
		return OK;
	TRY_GOTO(memory_new(&out->sets, list->count, sizeof *out->sets, "sets of files"), done);
	TRY_GOTO(memory_new(&out->paths, list->count, sizeof *out->paths, "sets of files"), done);
	TRY_GOTO(memory_new(&owner, list->count, sizeof *owner, "sets of files"), done);
	TRY_GOTO(assign(out, list, owner), done);
	for (int64_t set = 0; set < out->count; set++) {
		out->sets[set].paths = &out->paths[at];
		for (int64_t i = 0; i < list->count; i++)
			if (owner[i] == set)
				out->paths[at++] = set_path(list->values[i]);
		out->sets[set].count = &out->paths[at] - out->sets[set].paths;
	}
done:
	free(owner);
	return status;
}

void set_list_release(struct set_list *list)
{
	free(list->sets);
	free(list->paths);
	string_store_release(&list->names);
	*list = (struct set_list){.count = 0};
}

/* Names that `bertc finetune` uses in its folder. */
static bool is_of_run(const char *name)
{
	static const char *const names[] = {"final", "best", "data", "logs", ".", ".."};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return strncmp(name, "checkpoint-", 11) == 0 || strncmp(name, "run-", 4) == 0;
}

enum status set_list_check_folders(const struct set_list *list, const char *option)
{
	for (int64_t i = 0; i < list->count; i++) {
		if (!is_of_run(list->sets[i].name))
			continue;
		return error_hinted(
			error_set(ERR_USAGE, "--%s %s=...: a run has a folder of that name", option, list->sets[i].name),
			"results are written into a folder named after the set: choose another name");
	}
	return OK;
}

enum status set_list_check_names(const struct set_list *list)
{
	for (int64_t i = 0; i < list->count; i++) {
		const char *name = list->sets[i].name;
		if (name[strspn(name, NAME_CHARACTERS)])
			return error_hinted(
				error_set(
					ERR_USAGE,
					"'%s=%s': the name of an evaluation set may have letters, digits, '_', '-', and '.' only",
					name, list->sets[i].paths[0]),
				"if it is a path or a pattern, write ./ before it");
		if (strlen(name) > NAME_MOST)
			return error_set(ERR_USAGE, "'%s=%s': the name of an evaluation set can have at most %d characters", name,
					 list->sets[i].paths[0], NAME_MOST);
	}
	return OK;
}

enum status set_list_check_apart(const struct set_list *a, const struct set_list *b)
{
	for (int64_t i = 0; i < a->count; i++) {
		const char *name = a->sets[i].name;
		if (find(b, name, strlen(name)) < 0)
			continue;
		if (!name[0])
			return error_set(ERR_USAGE, "evaluation sets of two kinds need names: NAME=PATH");
		return error_set(ERR_USAGE, "the evaluation set '%s' is given by two options", name);
	}
	return OK;
}
