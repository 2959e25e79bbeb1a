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

/* TF-IDF of words and of pairs of neighbors as above, fitted to these texts: sparse vectors of length 1. Zero-initialize. */
struct word_vectors {
	int64_t count, size;
	int64_t *starts;  /* [count + 1] */
	int32_t *columns; /* [size] ascending in each vector */
	float *values;
	int64_t start_room, column_room, value_room; /* private */
};
MUST_USE enum status word_vectors_make(struct word_vectors *out, const char *const *texts, int64_t count);
double word_vectors_dot(const struct word_vectors *vectors, int64_t a, int64_t b);
void word_vectors_release(struct word_vectors *vectors);

/* For tasks with a score for each second text or choice: adds what `set` would score if it were the cosine of these vectors. */
MUST_USE enum status words_alone_cosines(const struct task_state *state, const struct task_set *set, struct measures *out);

#endif
