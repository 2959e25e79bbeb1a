/* The options of their own that tasks have, as one group for commands. A task with options adds a member here, and in
 * task_options.c the row that splices its group. */
#ifndef TASKS_TASK_OPTIONS_H
#define TASKS_TASK_OPTIONS_H

#include "tasks/classification.h"
#include "tasks/embedding.h"
#include "tasks/relation.h"
#include "tasks/reranking.h"
#include "tasks/squad.h"

struct task_options {
	struct classification_settings classification; /* and of several labels */
	struct relation_settings relation;
	struct squad_settings squad;
	struct embedding_settings embedding;
	struct reranking_settings reranking;
};

/* Of training; and those that also apply to a finished model, where they override what was recorded. */
extern const struct option task_rows[], task_answer_rows[];

/* ERR_USAGE for an option that was given and that only other tasks obey, except those in `also`, a list up to a NULL or NULL. */
MUST_USE enum status task_options_check(const struct options *options, const struct task *task, const char *const *also);

/* The settings of one task, for task_state_open(); NULL: it has no options, or `options` is NULL. */
const void *task_options_of(const struct task_options *options, const struct task *task);

#endif
