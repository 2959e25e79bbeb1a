/* The table that splices the options of all tasks. */
#include "tasks/task_options.h"

#include <string.h>

const struct option task_rows[] = {
	{.group = classification_rows, .field = offsetof(struct task_options, classification)},
	{.group = relation_rows, .field = offsetof(struct task_options, relation)},
	{.group = squad_rows, .field = offsetof(struct task_options, squad)},
	{.group = embedding_rows, .field = offsetof(struct task_options, embedding)},
	{.group = reranking_rows, .field = offsetof(struct task_options, reranking)},
	{0},
};

const struct option task_answer_rows[] = {
	{.group = squad_answer_rows, .field = offsetof(struct task_options, squad)},
	{0},
};

static bool is_among(const char *name, const char *const *names)
{
	while (names && *names && strcmp(*names, name) != 0)
		names++;
	return names && *names;
}

enum status task_options_check(const struct options *options, const struct task *task, const char *const *also)
{
	int count;
	const struct task *const *tasks = tasks_all(&count);
	for (int t = 0; t < count; t++)
		for (const char *const *option = tasks[t]->exclusive; tasks[t] != task && option && *option; option++) {
			if (options_find(options, *option) < 0 || !options_said(options, *option) ||
			    is_among(*option, task->exclusive) || is_among(*option, also))
				continue;
			return error_hinted(
				error_set(ERR_USAGE, "--%s is for --task %s, not %s", *option, tasks[t]->name, task->name),
				"leave it out");
		}
	return OK;
}

const void *task_options_of(const struct task_options *options, const struct task *task)
{
	for (const struct option *row = task_rows; options && row->group; row++)
		if (row->group == task->options)
			return (const char *)options + row->field;
	return NULL;
}
