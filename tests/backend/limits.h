/* How far the results of an operation may be from the reference: one table, by class of result and type of the
 * activations.
 *
 * Both sides get the same inputs, rounded to the type beforehand, so what remains is the back end's own rounding. The
 * error of an element is divided by the larger of its expected value and the root mean square of its row (a token's row,
 * or a weight's output row; but at least a sixteenth of the whole tensor's, so that rows that cancel out are not compared
 * with themselves). `largest` bounds every element, `rms` the root mean square of the errors, which sees a slight but
 * general error (a factor 1.02) far below `largest`.
 *
 * fp16 has eight times bf16's precision, but not its range. TF32 rounds both factors of a product to eleven bits, and
 * inputs are not rounded to that beforehand: this gives a root mean square error of 3e-4 of a sum of many terms, twice
 * that where a chip truncates instead of rounding. Nothing else is rounded.
 *
 * FP8's column is for tensor cores: Hopper's add 32 products and the running sum with 13 binary places (1.2e-4 of it) and
 * truncate the rest. In forward this applies to all additions, so sums of 4096 terms lose up to a hundredth. The CPU adds
 * in fp32: its FP8 products have bf16's limits.
 *
 * A limit is two to four times what the CPU back end shows on its instruction sets (BERTC_TEST_MARGINS=1 prints that):
 * enough for other orders of summation, too small to hide a missing term. One rounding to bf16 is off by up to 2^-8 =
 * 3.9e-3 of the element, 1.2e-3 in root mean square over a row. */
#ifndef TESTS_BACKEND_LIMITS_H
#define TESTS_BACKEND_LIMITS_H

enum limit_class {
	EXACT,
	PRODUCT,
	NORM,
	STATISTIC,
	SUM,
	GRADIENT,
	ATTENTION,
	ATTENTION_GRADIENT,
	SOFTMAX,
	LOSS,
	OPTIMIZER,
	LIMIT_CLASS_COUNT,
};

struct limit {
	double largest, rms;
};

/* dx adds as many terms as there are words. NEON's products, which add them in order, were off by 1.3e-5 in one of 1,280 elements
 * with 30,522 words, with a root mean square of 2.4e-6. */
#ifdef __aarch64__
#define SOFTMAX_LARGEST 2e-5
#define SOFTMAX_RMS 3e-6
#else
#define SOFTMAX_LARGEST 8e-6
#define SOFTMAX_RMS 1e-6
#endif

/* A root mean square is meaningful from this many elements on. */
#define RMS_ELEMENTS 64

static const struct limits_row {
	const char *name;
	struct limit f32, bf16, f16, tf32, fp8;
} limits_table[LIMIT_CLASS_COUNT] = {
	/* Copies, counts and ids. */
	[EXACT] = {"exact", {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}},
	/* x w' and operations built on it: fp32 sums of up to 3072 terms (a few 1e-7, at most 4e-6 seen); bf16 is rounded
	 * once, or twice where gelu works on the rounded product. */
	[PRODUCT] = {"product", {1e-5, 1.2e-6}, {1.2e-2, 2.8e-3}, {3e-3, 7e-4}, {6e-3, 1.2e-3}, {3e-2, 5e-3}},
	/* Layer normalization and its gradient: sum and y are rounded. An H200 was off by 1.3e-2 in one of a million elements. */
	[NORM] = {"norm", {6e-6, 8e-7}, {1.6e-2, 2.8e-3}, {3.3e-3, 7e-4}, {6e-3, 1.2e-3}, {3e-2, 5e-3}},
	/* mean and rstd: fp32, but of a sum that may have been rounded to bf16. Means are about a tenth of the row that
	 * they are taken from. */
	[STATISTIC] = {"statistic", {3e-6, 6e-7}, {1.2e-2, 3e-3}, {3e-3, 7.5e-4}, {6e-3, 1.2e-3}, {3e-2, 5e-3}},
	/* Sums over rows of the inputs: in fp32 whatever the type. */
	[SUM] = {"sum", {1e-5, 1e-6}, {1e-5, 1e-6}, {1e-5, 1e-6}, {6e-3, 1.2e-3}, {2e-3, 3e-4}},
	/* Sums over rows of what the operation itself has rounded. An H200 was off by 1.8e-5 in one of 31 million elements. */
	[GRADIENT] = {"gradient", {3e-5, 1.2e-6}, {1.6e-2, 3e-3}, {4e-3, 7.5e-4}, {1.5e-2, 3.5e-3}, {3e-2, 5e-3}},
	/* Probabilities and y are rounded. A Zen 5 was off by 1.23e-2 in one of 90,000 elements. */
	[ATTENTION] = {"attention", {8e-6, 1e-6}, {1.6e-2, 2.8e-3}, {3e-3, 7e-4}, {6e-3, 1.2e-3}, {1.6e-2, 2.8e-3}},
	/* p (dp - D) cancels where a row puts its weight on one key; what remains is the rounding of y, from which D is
	 * computed. */
	[ATTENTION_GRADIENT] =
		{"attention gradient", {2e-5, 2e-6}, {6e-2, 5e-3}, {1.5e-2, 1.3e-3}, {1.5e-2, 1.3e-3}, {6e-2, 5e-3}},
	/* Logits of 30 have an error of 2e-6, and exp makes it relative; bf16 rounds dlogits and dx (a GPU the latter twice,
	 * where words exceed a multiple of 8: an H200 was off by 1.27e-2 with 67 words). */
	[SOFTMAX] = {"softmax", {SOFTMAX_LARGEST, SOFTMAX_RMS}, {1.6e-2, 2.8e-3}, {4e-3, 7e-4}, {1e-2, 1.6e-3}, {1.6e-2, 2.8e-3}},
	/* Losses, probabilities and the log of the sum of exp never pass through bf16. */
	[LOSS] = {"loss", {6e-6, 1.2e-6}, {6e-6, 1.2e-6}, {6e-6, 1.2e-6}, {4e-3, 1e-3}, {6e-6, 1.2e-6}},
	/* Element by element, in fp32. */
	[OPTIMIZER] = {"optimizer", {1.5e-6, 2e-7}, {1.5e-6, 2e-7}, {1.5e-6, 2e-7}, {1.5e-6, 2e-7}, {1.5e-6, 2e-7}},
};

#endif
