/* Losses over the vectors of a whole step, which involve all of its texts at once: in-batch negatives (InfoNCE, van den Oord et
 * al. 2018; sentence-transformers' MultipleNegativesRankingLoss), CoSENT (Su 2022), and the regression of a cosine
 * (CosineSimilarityLoss).
 *
 * They are computed on the host, since there are few vectors compared with the tokens they are made from, and in the same order
 * for any number of threads: the same vectors give bitwise equal results on every rank. */
#ifndef TASKS_CONTRASTIVE_H
#define TASKS_CONTRASTIVE_H

#include <stdint.h>
#include "base/error.h"
#include "base/pool.h"

enum contrastive_kind {
	/* Each example is an anchor, a text that belongs to it (its positive), and any number of texts that do not (its
	 * negatives). Cross entropy of softmax(cos(anchor, .) / temperature) over the positives and negatives of all examples,
	 * averaged over anchors. Texts equal to the anchor or its positive, and positives of equal anchors, do not count as
	 * negatives: they are left out of that anchor's sum. */
	CONTRASTIVE_IN_BATCH,
	/* Each example is two texts with a score: log(1 + sum of exp((s_j - s_i) / temperature) over the pairs of examples in
	 * which i has the higher score), where s are their cosines. Only the order of the scores matters. */
	CONTRASTIVE_COSENT,
	/* The same examples: the mean of (cosine - score)^2. */
	CONTRASTIVE_COSINE,
};

/* The texts of E examples, one example after the other; all borrowed. */
struct contrastive_step {
	int64_t example_count, count, width; /* E; N texts; H numbers per vector */
	const int64_t *starts;               /* [E+1] first text of each example */
	const float *vectors;                /* [N*H] */
	const uint64_t *texts;               /* [N] equal if and only if the texts are equal */
	const float *scores;                 /* [E], for scored examples */
};

/* Scratch memory for a loss, which grows to the size of the largest step. Zero-initialize. */
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

/* The mean loss of a step, and its gradient for each vector, [N*H]; `gradients` NULL: not wanted. `pool` NULL: one thread. Can
 * only fail for lack of memory. */
MUST_USE enum status contrastive_loss(enum contrastive_kind kind, double temperature, const struct contrastive_step *step,
				      struct pool *pool, struct contrastive_scratch *scratch, double *out_loss, float *gradients);

/* A key for a text in `texts`: equal for equal ids. */
uint64_t contrastive_text(const int32_t *ids, int64_t count);
/* The sum of a[i] b[i], always in the same order. */
double vectors_dot(const float *a, const float *b, int64_t count);
/* The cosine of two vectors, computed in double throughout. */
double vectors_cosine(const float *a, const float *b, int64_t count);
/* Sets unit = vector / |vector|, with |vector| taken to be at least 1e-12; returns 1 / |vector|. */
double vectors_unit(const float *vector, int64_t count, float *unit);

#endif
