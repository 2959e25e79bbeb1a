/* Losses over the vectors of a whole step, which involve all of its texts at once: in-batch negatives (InfoNCE, van den Oord et
 * al. 2018; sentence-transformers' MultipleNegativesRankingLoss), CoSENT (Su 2022), the regression of a cosine
 * (CosineSimilarityLoss), of margins between cosines (MarginMSE, Hofstaetter et al. 2020), and of a teacher's vectors (Reimers
 * and Gurevych 2020).
 *
 * They are computed on the host, since there are few vectors compared with the tokens they are made from, and in the same order
 * for any number of threads: the same vectors give bitwise equal results on every rank. */
#ifndef TASKS_CONTRASTIVE_H
#define TASKS_CONTRASTIVE_H

#include <stdbool.h>
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
	/* An anchor, its positive, and negatives, with a score for each of the latter two: the mean over all negatives of
	 * (cos(anchor, positive) - cos(anchor, negative) - difference of their scores)^2. */
	CONTRASTIVE_MARGIN,
	/* Any number of texts, all with the same target: the mean over texts and their numbers of (u - t)^2, where u is the
	 * vector and t the target, both scaled to length 1. */
	CONTRASTIVE_TARGET,
};

/* The texts of E examples, one example after the other; all borrowed. */
struct contrastive_step {
	int64_t example_count, count, width; /* E; N texts; H numbers per vector */
	const int64_t *starts;               /* [E+1] first text of each example */
	const float *vectors;                /* [N*H] */
	const struct word_vectors *words;    /* [N] in place of vectors, for scores; NULL: none */
	const uint64_t *texts;               /* [N] equal if and only if the texts are equal */
	const float *scores;                 /* [E], for scored examples; for margins, targets, and guides, numbers of examples */
	const float *marks; /* margins: the scores of example i's texts but the first begin at marks[mark_starts[i]] */
	const int64_t *mark_starts;
	const float *targets; /* targets: that of example i is targets[i*H] */
	/* CONTRASTIVE_IN_BATCH: a text whose cosine is above that of the positive by more than `gap` is taken to be right, too,
	 * and is no negative (GISTEmbed, Solatorio 2024). Cosines are those of another model, the guide, if there are vectors
	 * of it, and otherwise the model's own. */
	bool has_gap;
	double gap;
	const float *guides; /* of length 1; those of example i begin at number guide_starts[scores[i]]; NULL: no guide */
	const int64_t *guide_starts;
	int64_t guide_width;
	int64_t part;         /* of the training set that its examples belong to */
	bool by_dot;          /* the dot product of the vectors as they are, wherever it says cosine here */
	int64_t number, last; /* of the step, from 1, and of the last one; 0: not in training */
};

/* The first numbers of vectors, which are vectors of their own (Matryoshka representations, Kusupati et al. 2022). */
enum { NESTED_MOST = 16 };
struct nested_widths {
	int64_t count, widths[NESTED_MOST];
	double weights[NESTED_MOST];
};

/* Scratch memory for a loss, which grows to the size of the largest step. Zero-initialize. */
struct contrastive_scratch {
	float *units;                 /* [N*H] vectors of length 1 */
	double *rows;                 /* [workers*N] */
	double *inverses, *numbers;   /* [N] 1 / length; [N] */
	double *losses, *nearness;    /* [E]; [E] cosines of positives */
	int64_t *examples, *order;    /* [N] example of each text; [E] */
	float *part, *part_gradients; /* [N*H] the first numbers of vectors, and their gradients */
	int64_t units_capacity, rows_capacity, inverses_capacity, numbers_capacity, losses_capacity, nearness_capacity,
		examples_capacity, order_capacity, part_capacity, part_gradients_capacity;
};
void contrastive_scratch_release(struct contrastive_scratch *scratch);

/* The mean loss of a step, and its gradient for each vector, [N*H]; `gradients` NULL: not wanted. `pool` NULL: one thread. Can
 * only fail for lack of memory. */
MUST_USE enum status contrastive_loss(enum contrastive_kind kind, double temperature, const struct contrastive_step *step,
				      struct pool *pool, struct contrastive_scratch *scratch, double *out_loss, float *gradients);

/* The same for the sum of the losses of vectors cut to each of these widths, times their weights; without widths, of whole
 * vectors. Not for targets. */
MUST_USE enum status contrastive_nested_loss(enum contrastive_kind kind, double temperature, const struct nested_widths *nested,
					     const struct contrastive_step *step, struct pool *pool,
					     struct contrastive_scratch *scratch, double *out_loss, float *gradients);

/* Adds to a loss and its gradients that of FLOPS (Paria et al. 2020), the sum over words of (mean weight)^2, for the first texts
 * of examples and for all others, times these factors. */
MUST_USE enum status contrastive_flops(const struct contrastive_step *step, double first, double others,
				       struct contrastive_scratch *scratch, double *loss, float *gradients);

/* A key for a text in `texts`: equal for equal ids. */
uint64_t contrastive_text(const int32_t *ids, int64_t count);
/* The sum of a[i] b[i], always in the same order. */
double vectors_dot(const float *a, const float *b, int64_t count);
/* The cosine of two vectors, computed in double throughout. */
double vectors_cosine(const float *a, const float *b, int64_t count);

#endif
