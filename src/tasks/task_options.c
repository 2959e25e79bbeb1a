/* The table that splices the options of all tasks. */
#include "tasks/task_options.h"

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

const void *task_options_of(const struct task_options *options, const struct task *task)
{
	for (const struct option *row = task_rows; options && row->group; row++)
		if (row->group == task->options)
			return (const char *)options + row->field;
	return NULL;
}
