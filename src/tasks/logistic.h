/* Logistic and ridge regression: the head of a model that has learned from few examples, and what words alone tell. */
#ifndef TASKS_LOGISTIC_H
#define TASKS_LOGISTIC_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"

/* `count` vectors of `width` numbers, and for each the targets of `outputs` outputs. */
struct logistic_examples {
	int64_t count, width, outputs;
	const float *vectors;   /* [count * width]; sparse ones: [starts[count]] elements that are not zero */
	const int64_t *starts;  /* [count + 1] of sparse vectors: the elements of each; NULL: they are not sparse */
	const int32_t *columns; /* [starts[count]] the index of each element */
	const int32_t *classes; /* [count] one of the outputs is right (softmax); NULL: each output by itself (sigmoid) */
	const float *values;    /* [count * outputs] without classes: 0 or 1; if `squared`, any number */
	bool squared;           /* half the squared error in place of the cross entropy: ridge regression */
	double tolerance;       /* of the gradient's largest element, for each example; 0: to the optimum */
};

/* Minimizes half the squared norm of the weights plus the sum of the cross entropies, as scikit-learn's LogisticRegression does
 * with C = 1 and its Ridge with alpha = 1. Biases are free. With two classes, there is one set of weights, and those of class 0
 * are zero. Writes weights[outputs * width] and biases[outputs]. */
MUST_USE enum status logistic_fit(const struct logistic_examples *examples, float *weights, float *biases);

#endif
