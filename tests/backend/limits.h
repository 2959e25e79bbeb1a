/* How far an operation may be from the reference: one table, by class of result and type of the activations.
 *
 * Both sides get the same inputs, rounded to the type beforehand, so what remains is the back end's own rounding.
 * Errors are normalised by the root mean square of the expected tensor: `largest` bounds every single element (a
 * value of 4 rms may lose 4 half-units of bf16), `rms` bounds their root mean square, which does not grow with
 * the size of the tensor and so sees a slight but general error (a scale that is 1 % off) far below `largest`.
 */
#ifndef TESTS_BACKEND_LIMITS_H
#define TESTS_BACKEND_LIMITS_H

enum limit_class {
	EXACT,       /* copies and counts */
	PRODUCT,     /* rows of x times w, in the activations' type */
	NORM,        /* layer normalisation and its dx */
	STATISTIC,   /* mean, rstd, log-sum-exp: fp32 from activations */
	GRADIENT,    /* sums over rows into fp32 */
	ATTENTION,
	ATTENTION_GRADIENT,
	SOFTMAX,     /* gradients of a softmax */
	LOSS,        /* losses and probabilities */
	OPTIMIZER,
	LIMIT_CLASS_COUNT,
};

struct limit {
	double largest, rms;
};

/* A root mean square says something from this size on. */
#define RMS_ELEMENTS 64

#define F32_UNIT 6e-8  /* half a unit in the last place of fp32, relative */
#define BF16_UNIT 2e-3 /* 2^-9 */

static const struct limits_row {
	const char *name;
	struct limit f32, bf16;
} limits_table[LIMIT_CLASS_COUNT] = {
	[EXACT] = {"exact", {0, 0}, {0, 0}},
	[PRODUCT] = {"product", {1, 1}, {1, 1}},
	[NORM] = {"norm", {1, 1}, {1, 1}},
	[STATISTIC] = {"statistic", {1, 1}, {1, 1}},
	[GRADIENT] = {"gradient", {1, 1}, {1, 1}},
	[ATTENTION] = {"attention", {1, 1}, {1, 1}},
	[ATTENTION_GRADIENT] = {"attention gradient", {1, 1}, {1, 1}},
	[SOFTMAX] = {"softmax", {1, 1}, {1, 1}},
	[LOSS] = {"loss", {1, 1}, {1, 1}},
	[OPTIMIZER] = {"optimizer", {1, 1}, {1, 1}},
};

#endif
