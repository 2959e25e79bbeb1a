/* The task of questions about paragraphs: functions beyond its entry in the table of tasks. */
#ifndef TASKS_SQUAD_H
#define TASKS_SQUAD_H

#include "tasks/task.h"

/* The share of questions without an answer in a set of task_squad, which is the score for never giving an answer. */
double squad_impossible_share(const struct task_set *set);

#endif
