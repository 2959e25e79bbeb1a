/* What words alone tell of the answers to texts: what a model has to beat. */
#ifndef TASKS_WORDS_ALONE_H
#define TASKS_WORDS_ALONE_H

#include "tasks/task.h"

/* For tasks with classes, labels, or a number for each text or pair: adds what `set` would score by logistic regression (numbers:
 * ridge regression) on TF-IDF of words and of pairs of neighbors, fitted to `train`, as scikit-learn's TfidfVectorizer and
 * LogisticRegression with C = 1 do. Of two texts, the features are |a - b|, a * b, and their cosine. Takes a few seconds at most:
 * it reads the beginnings of long texts and, of many, a part. Adds nothing if there are too many labels. */
MUST_USE enum status words_alone(const struct task_state *state, const struct task_set *train, const struct task_set *set,
				 struct measures *out);

#endif
