#include "run/choices.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static struct choice *find(struct choices *choices, const char *name)
{
	for (int64_t i = 0; i < choices->count; i++)
		if (strcmp(choices->items[i].name, name) == 0)
			return &choices->items[i];
	return NULL;
}

enum status choose_text(struct choices *choices, const char *name, const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy;
	struct choice *choice = find(choices, name);
	if (!choice)
		TRY(memory_grow(&choices->items, &choices->capacity, choices->count + 1, sizeof(*choices->items), "choices"));
	TRY(memory_new(&copy, (int64_t)size, 1, "choices"));
	memcpy(copy, text, size);
	if (choice)
		free(choice->text);
	else
		choice = &choices->items[choices->count++];
	*choice = (struct choice){name, copy};
	return OK;
}

enum status choose_integer(struct choices *choices, const char *name, int64_t value, int64_t *out)
{
	char text[32];
	snprintf(text, sizeof(text), "%" PRId64, value);
	*out = value;
	return choose_text(choices, name, text);
}

enum status choose_number(struct choices *choices, const char *name, double value, int digits, double *out)
{
	char text[64];
	snprintf(text, sizeof(text), "%.*g", digits, value);
	*out = strtod(text, NULL);
	return choose_text(choices, name, text);
}

enum status choose_flag(struct choices *choices, const char *name, bool value, int *out)
{
	*out = value;
	return choose_text(choices, name, value ? "true" : "false");
}

void choices_release(struct choices *choices)
{
	for (int64_t i = 0; i < choices->count; i++)
		free(choices->items[i].text);
	free(choices->items);
	*choices = (struct choices){0};
}
