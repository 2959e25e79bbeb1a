/* Questions about paragraphs, beyond what the row of the table says. */
#ifndef TASKS_SQUAD_H
#define TASKS_SQUAD_H

#include "tasks/task.h"

/* The share of the questions of a set of task_squad that have no answer: what always giving none scores. */
double squad_impossible_share(const struct task_set *set);

#endif
