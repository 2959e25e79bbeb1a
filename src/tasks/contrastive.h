/* Losses over the vectors of a whole step, which see every text of it at once: in-batch negatives (InfoNCE, van den Oord et al.
 * 2018; sentence-transformers' MultipleNegativesRankingLoss), CoSENT (Su 2022), and the regression of a cosine
 * (CosineSimilarityLoss).
 *
 * They are computed on the host, since vectors are few beside the tokens they are made of, in one order whatever the number of
 * threads: the same vectors give the same bits in every rank.
 */
#ifndef TASKS_CONTRASTIVE_H
#define TASKS_CONTRASTIVE_H

#include <stdint.h>
#include "base/error.h"
#include "base/pool.h"

enum contrastive_kind {
	/* Each example is an anchor, what belongs to it (its positive), and any number of texts that do not (its negatives).
	 * Cross entropy of softmax(cos(anchor, .) / temperature) over the positives and negatives of all examples, the mean
	 * over anchors. A text equal to the anchor or its positive, and the positive of an equal anchor, is no negative: it is
	 * left out of that anchor's sum. */
	CONTRASTIVE_IN_BATCH,
	/* Each example is two texts with a score: log(1 + sum of exp((s_j - s_i) / temperature) over the pairs of examples of
	 * which i has the higher score), s their cosines. Only the order of scores matters. */
	CONTRASTIVE_COSENT,
	/* The same examples: mean of (cosine - score)^2. */
	CONTRASTIVE_COSINE,
};

/* The texts of E examples, one example after the other; all borrowed. */
struct contrastive_step {
	int64_t example_count, count, width; /* E, N texts, H numbers per vector */
	const int64_t *starts;               /* [E+1] first text of each example */
	const float *vectors;                /* [N*H] */
	const uint64_t *texts;               /* [N] equal for equal texts, else not */
	const float *scores;                 /* [E], of scored examples */
};

/* What a loss needs room for; grows to the largest step and stays. Zero-initialise. */
struct contrastive_scratch {
	float *units;               /* [N*H] vectors of length 1 */
	double *rows;               /* [workers*N] */
	double *inverses, *numbers; /* [N] 1 / length; [N] */
	double *losses;             /* [E] */
	int64_t *examples, *order;  /* [N] example of each text; [E] */
	int64_t units_capacity, rows_capacity, inverses_capacity, numbers_capacity, losses_capacity, examples_capacity,
		order_capacity;
};
void contrastive_scratch_release(struct contrastive_scratch *scratch);

/* The loss of a step, a mean, and its gradient for each vector, [N*H]; `gradients` NULL: not wanted. `pool` NULL: one thread. Can
 * only fail for lack of memory. */
MUST_USE enum status contrastive_loss(enum contrastive_kind kind, double temperature, const struct contrastive_step *step,
				      struct pool *pool, struct contrastive_scratch *scratch, double *out_loss, float *gradients);

/* What stands for a text in `texts`: equal for equal ids. */
uint64_t contrastive_text(const int32_t *ids, int64_t count);
/* Sum of a[i] b[i], in one order. */
double vectors_dot(const float *a, const float *b, int64_t count);
/* The cosine of two vectors, in double throughout. */
double vectors_cosine(const float *a, const float *b, int64_t count);
/* unit = vector / |vector|, at least 1e-12; 1 / |vector|. */
double vectors_unit(const float *vector, int64_t count, float *unit);

#endif
