/* The scores of tasks: pure functions from gold labels and predictions to named numbers.
 *
 * Each agrees with the program that the field compares with, also in edge cases: scikit-learn (classes, labels, AUC, nDCG), SciPy
 * (correlations), seqeval's default mode (entities), sacrebleu (BLEU of a set) and NLTK (of a text), rouge-score (ROUGE). A
 * quotient 0/0 is 0 where scikit-learn makes it 0; what is undefined (no examples, AUC of one class, correlation with a constant)
 * is NaN, which files show as null. Proportions range from 0 to 1. Functions that need memory for sorting return a status and can
 * only fail for lack of memory. */
#ifndef TASKS_MEASURES_H
#define TASKS_MEASURES_H

#include <stdint.h>
#include "base/error.h"
#include "base/measures.h"
#include "base/string_store.h"

/* Counts of pairs: counts[gold * classes + predicted]; then, for each gold class, how often there was no prediction. */
struct confusion {
	int32_t classes;
	int64_t *counts;
};
/* Counts the pairs of gold[count] and predicted[count], all below `classes`. Pairs without a gold label (negative) are left out;
 * a negative prediction counts for no class. */
MUST_USE enum status confusion_make(struct confusion *out, int32_t classes, const int32_t *gold, const int32_t *predicted,
				    int64_t count);
void confusion_release(struct confusion *confusion);

/* The score of a single class, label or entity type; 0/0 is 0. */
struct class_score {
	double precision, recall, f1;
	int64_t support;   /* number of gold ones */
	int64_t predicted; /* number of predicted ones */
	int64_t correct;
};
/* The score of one class in a table. */
struct class_score confusion_class(const struct confusion *confusion, int32_t class_id);

/* Adds accuracy, precision, recall, f1, f1_micro and matthews_correlation of a table. With two classes, precision, recall and f1
 * are those of class 1; with more, they are means over the classes that occur in gold labels or predictions ("macro"). f1_micro
 * pools all classes except `negative`; with -1 every class counts (and f1_micro equals accuracy). With a negative class
 * precision_micro and recall_micro are added, too. */
void measure_classes(const struct confusion *confusion, int32_t negative, struct measures *out);

/* Area under the ROC curve: the proportion of (positive, negative) pairs that scores[count] ranks correctly, ties counting half.
 * positive[count] is nonzero for positives. NaN if there is only one class or a score is NaN. */
MUST_USE enum status area_under_roc(const double *scores, const int32_t *positive, int64_t count, double *out);
/* Adds the same as the measure "auc". */
MUST_USE enum status measure_auc(const double *scores, const int32_t *positive, int64_t count, struct measures *out);

/* Pearson's correlation, in two passes; NaN for fewer than two pairs or if one side is constant. */
double pearson_correlation(const double *x, const double *y, int64_t count);
/* Spearman's correlation: Pearson's correlation of the ranks, where ties share their mean rank. */
MUST_USE enum status spearman_correlation(const double *x, const double *y, int64_t count, double *out);
/* Adds pearson, spearmanr and mse. */
MUST_USE enum status measure_values(const double *gold, const double *predicted, int64_t count, struct measures *out);

/* Adds pearson and spearmanr. */
MUST_USE enum status measure_correlations(const double *gold, const double *predicted, int64_t count, struct measures *out);

/* Several labels per example: gold and predicted are 0 or 1, [count * labels]. Adds accuracy (all labels of an example right),
 * precision, recall and f1 (means over all labels, including those that never occur) and f1_micro. If per_label is not NULL, it
 * gets the score of each label, [labels]. */
MUST_USE enum status measure_multilabel(const uint8_t *gold, const uint8_t *predicted, int64_t count, int32_t labels,
					struct class_score *per_label, struct measures *out);

/* Tags of sentences: sentence s has words starts[s] to starts[s + 1]; the tags are indices into `names` ("O", "B-PER", ...). */
struct tagged {
	const int32_t *gold, *predicted; /* [starts[sentences]] */
	const int64_t *starts;           /* [sentences + 1] */
	int64_t sentences;
	const char *const *names; /* [tags] */
	int32_t tags;
};
/* Scores by class, label, or entity type. */
struct class_scores {
	int32_t count;
	const char **names; /* [count] borrowed: of labels from the state, of entity types from the set */
	struct class_score *scores;
	struct string_store store; /* see class_scores_keep_names() */
};
/* Copies the names, so that they outlive the set. */
MUST_USE enum status class_scores_keep_names(struct class_scores *scores);
/* Adds accuracy (of tokens), precision, recall and f1 of entities, counted over all types together as in seqeval's default mode.
 * That mode knows B, I, E and S, whatever the scheme; BILOU must be converted first. If per_type is not NULL, it gets the score
 * of each type, in the order in which the types first occur in `names`, and must be released. */
MUST_USE enum status measure_entities(const struct tagged *tagged, struct class_scores *per_type, struct measures *out);
void class_scores_release(struct class_scores *scores);

/* Rankings: query q has candidates starts[q] to starts[q + 1], each with a relevance (at least 0; 0 = irrelevant) and a score to
 * rank by. Queries without candidates are left out. Measures:
 *   ndcg@10  gain relevance, discount log2(rank + 1), divided by that of the best order of all candidates; 0 where nothing
 *            is relevant. Candidates with equal scores share the mean of their places' discounts, as in scikit-learn.
 *   mrr@10   1 / rank of the first relevant candidate, 0 if it is not among the first 10: with equal scores its mean over
 *            all orders of them, so that the order of a file earns nothing.
 * Both are NaN if a score is NaN.
 * ranking_of_query() computes them for one query with count > 0 candidates, measure_add_ranking() adds given means as measures,
 * and measure_rankings() does both for all queries. */
MUST_USE enum status ranking_of_query(const double *scores, const double *relevance, int64_t count, double *out_ndcg,
				      double *out_mrr);
void measure_add_ranking(double ndcg, double mrr, struct measures *out);
MUST_USE enum status measure_rankings(const double *scores, const double *relevance, const int64_t *starts, int64_t queries,
				      struct measures *out);

/* The units in which texts are compared. */
enum text_units {
	UNITS_WORDS,      /* separated by white space */
	UNITS_CHARACTERS, /* code points without white space: Chinese */
};
/* What is compared with the references: the model's outputs, or, as a baseline, its inputs. */
enum text_role { TEXTS_PREDICTED, TEXTS_COPIED };
/* Compares texts with one reference each (both [count], NUL-terminated). Adds, from 0 to 100:
 *   exact_match       share of texts that are equal byte for byte
 *   bleu_1 to bleu_4  of the whole set: BP * exp(mean of log p_n) for n up to that, with counts clipped and summed over the set
 *                     (Papineni et al. 2002); 0 if some p_n is 0
 *   bleu_sentence     mean of each text's own with n up to 4, 1 added to matches and counts from n = 2 on
 *                     (Lin and Och 2004)
 *   rouge_1, rouge_2  mean of F1 of the words, and of the pairs of words, that both have (Lin 2004)
 *   rouge_l           mean of F1 of the longest common subsequence
 * TEXTS_COPIED: the same with "copy_" before the names. */
MUST_USE enum status measure_texts(const char *const *texts, const char *const *references, int64_t count, enum text_units units,
				   enum text_role role, struct measures *out);

#endif
