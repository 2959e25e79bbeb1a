#include "run/evaluation_groups.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"

#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."

static int64_t find(const struct evaluation_groups *groups, const char *name, size_t length)
{
	for (int64_t i = 0; i < groups->count; i++)
		if (strlen(groups->groups[i].name) == length && memcmp(groups->groups[i].name, name, length) == 0)
			return i;
	return -1;
}

/* Creates the groups, and sets owner[] to the group of each value. */
static enum status assign(struct evaluation_groups *out, const struct option_list *list, int64_t *owner)
{
	int64_t current = -1;
	for (int64_t i = 0; i < list->count; i++) {
		const char *value = list->values[i];
		size_t length = set_name_size(value);
		if (strspn(value, NAME_CHARACTERS) < length) {
			enum status status = error_set(
				ERR_USAGE, "'%s': the name of an evaluation set may have letters, digits, '_', '-', and '.' only",
				value);
			error_hint("if it is a path or a pattern, write ./ before it");
			return status;
		}
		if (length >= sizeof(out->groups->name))
			return error_set(ERR_USAGE, "'%s': the name of an evaluation set can have at most %d characters", value,
					 (int)sizeof(out->groups->name) - 1);
		if (length > 0 && !value[length + 1])
			return error_set(ERR_USAGE, "'%s': a path is missing after the name", value);
		if (length > 0 || current < 0) {
			current = find(out, value, length);
			if (current < 0) {
				current = out->count++;
				memcpy(out->groups[current].name, value, length);
			}
		}
		owner[i] = current;
		out->groups[current].count++;
	}
	return OK;
}

enum status evaluation_groups_parse(struct evaluation_groups *out, const struct option_list *list)
{
	int64_t *owner = NULL, at = 0;
	enum status status;
	*out = (struct evaluation_groups){0};
	TRY_GOTO(memory_new(&out->groups, list->count, sizeof(*out->groups), "evaluation sets"), done);
	TRY_GOTO(memory_new(&out->values, list->count, sizeof(*out->values), "evaluation sets"), done);
	TRY_GOTO(memory_new(&owner, list->count, sizeof(*owner), "evaluation sets"), done);
	TRY_GOTO(assign(out, list, owner), done);
	for (int64_t group = 0; group < out->count; group++) {
		out->groups[group].values = &out->values[at];
		for (int64_t i = 0; i < list->count; i++) {
			size_t length = set_name_size(list->values[i]);
			if (owner[i] == group)
				out->values[at++] = list->values[i] + (length > 0 ? length + 1 : 0);
		}
	}
done:
	free(owner);
	if (status != OK)
		evaluation_groups_release(out);
	return status;
}

enum status evaluation_groups_check(const struct evaluation_groups *a, const struct evaluation_groups *b)
{
	for (int64_t i = 0; i < a->count; i++) {
		const char *name = a->groups[i].name;
		if (find(b, name, strlen(name)) < 0)
			continue;
		if (!name[0])
			return error_set(ERR_USAGE, "evaluation sets of two kinds need names: NAME=PATH");
		return error_set(ERR_USAGE, "the evaluation set '%s' is given by two options", name);
	}
	return OK;
}

void evaluation_groups_release(struct evaluation_groups *groups)
{
	free(groups->groups);
	free(groups->values);
	*groups = (struct evaluation_groups){0};
}
