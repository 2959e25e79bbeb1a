/* Logistic regression on vectors, to its optimum: the head of a model that has learned from few examples. */
#ifndef TASKS_LOGISTIC_H
#define TASKS_LOGISTIC_H

#include <stdint.h>
#include "base/error.h"

/* `count` vectors of `width` numbers, and for each the targets of `outputs` outputs. */
struct logistic_examples {
	int64_t count, width, outputs;
	const float *vectors;   /* [count * width] */
	const int32_t *classes; /* [count] one of the outputs is right (softmax); NULL: each output by itself (sigmoid) */
	const float *values;    /* [count * outputs] without classes: 0 or 1 */
};

/* Minimizes half the squared norm of the weights plus the sum of the cross entropies, as scikit-learn's LogisticRegression does
 * with C = 1. Biases are free. With two classes, there is one set of weights, and those of class 0 are zero. Writes
 * weights[outputs * width] and biases[outputs]. */
MUST_USE enum status logistic_fit(const struct logistic_examples *examples, float *weights, float *biases);

#endif
