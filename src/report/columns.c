/* The table of known columns, and how their values are written. */
#include "report/columns.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define HIGHER DIRECTION_HIGHER
#define LOWER DIRECTION_LOWER
#define NEITHER DIRECTION_NONE

/* clang-format off */
static const struct report_column known[] = {
	{"mlm_loss", "Loss of masked words", "MLM loss", "nats per word", "loss of masked words", UNIT_NATS, LOWER,
	 "Mean of \xE2\x88\x92ln(probability given to the right word), in nats. Its exponential is the perplexity.", {{0}}},
	{"mlm_accuracy", "Accuracy on masked words", "MLM accuracy", "share predicted correctly", "of masked words right",
	 UNIT_SHARE, HIGHER, "Share of the masked words for which the right word was the most probable one.", {{0}}},
	{"mlm_perplexity", "Perplexity of masked words", "perplexity", "perplexity", NULL, UNIT_NUMBER, LOWER, NULL, {{0}}},
	{"nsp_loss", "Loss of next sentences", "NSP loss", "nats per pair", NULL, UNIT_NATS, LOWER, NULL, {{0}}},
	{"nsp_accuracy", "Accuracy on next sentences", "NSP accuracy", "share predicted correctly", "of next sentences right",
	 UNIT_SHARE, HIGHER,
	 "Share of the sentence pairs for which the model correctly predicted whether the second follows the first.", {{0}}},
	{"loss", "Loss", "loss", "loss", "loss", UNIT_NATS, LOWER,
	 "What training minimizes; for classes the mean of \xE2\x88\x92ln(probability given to the right class), in nats.",
	 {{0}}},
	{"label_loss", "Loss against the labels", "label loss", "loss", "loss against the labels", UNIT_NATS, LOWER,
	 "The part of a student's loss that is about the labels: what a dev set is scored by, too.", {{0}}},
	{"soft_loss", "Loss against the teacher's answers", "soft loss", "loss", "loss against the teacher's answers", UNIT_NATS,
	 LOWER,
	 "How far the student's probabilities are from the teacher's at the temperature: the Kullback-Leibler divergence times "
	 "its square.", {{0}}},
	{"hidden_loss", "Error of the hidden states", "hidden loss", "squared error", "error of the hidden states", UNIT_NUMBER,
	 LOWER,
	 "Mean squared error between the layers of the student and those of the teacher, added up over the pairs of layers.",
	 {{0}}},
	{"accuracy", "Accuracy", "accuracy", "share predicted correctly", "accuracy", UNIT_SHARE, HIGHER,
	 "Share of the examples whose label was predicted correctly.", {{0}}},
	{"precision", "Precision", "precision", "share", NULL, UNIT_SHARE, HIGHER,
	 "Share of the examples predicted to be in a class that are in it.", {{0}}},
	{"recall", "Recall", "recall", "share", NULL, UNIT_SHARE, HIGHER,
	 "Share of the examples of a class that were predicted to be in it.", {{0}}},
	{"f1", "F1", "F1", "F1", "F1", UNIT_SHARE, HIGHER,
	 "Harmonic mean of precision and recall; for several classes the mean over the classes.", {{0}}},
	{"f1_micro", "F1, micro-averaged", "F1 (micro)", "F1", NULL, UNIT_SHARE, HIGHER,
	 "Harmonic mean of precision and recall over all decisions taken together.", {{0}}},
	{"matthews_correlation", "Matthews correlation", "Matthews", "correlation", "Matthews correlation", UNIT_NUMBER, HIGHER,
	 "Correlation of predicted and right classes: 1 is perfect, 0 no better than chance, whatever the share of the classes.",
	 {{0}}},
	{"auc", "Area under the ROC curve", "AUC", "AUC", NULL, UNIT_NUMBER, HIGHER,
	 "Probability that a positive example gets a higher score than a negative one; 0.5 is chance.", {{0}}},
	{"pearson", "Pearson correlation", "Pearson", "correlation", "Pearson correlation", UNIT_NUMBER, HIGHER,
	 "Linear correlation of predicted and right values.", {{0}}},
	{"spearmanr", "Spearman correlation", "Spearman", "correlation", "Spearman correlation", UNIT_NUMBER, HIGHER,
	 "Correlation of the ranks of predicted and right values.", {{0}}},
	{"mse", "Mean squared error", "MSE", "squared error", "mean squared error", UNIT_NUMBER, LOWER,
	 "Mean of the squared difference between predicted and right values.", {{0}}},
	{"exact_match", "Exact match", "exact match", "percent", "exact match", UNIT_POINTS, HIGHER,
	 "Share of the answers that are exactly right; of questions, ignoring articles and punctuation.", {{0}}},
	{"bleu_4", "BLEU", "BLEU", "BLEU", "BLEU", UNIT_POINTS, HIGHER,
	 "How many of the words and word sequences of up to four words in the predicted texts also occur in the correct texts; "
	 "100 is perfect. In Chinese, characters count as words.", {{0}}},
	{"bleu_1", "BLEU of words", "bleu 1", "BLEU", NULL, UNIT_POINTS, HIGHER, NULL, {{0}}},
	{"bleu_2", "BLEU of up to two words", "bleu 2", "BLEU", NULL, UNIT_POINTS, HIGHER, NULL, {{0}}},
	{"bleu_3", "BLEU of up to three words", "bleu 3", "BLEU", NULL, UNIT_POINTS, HIGHER, NULL, {{0}}},
	{"bleu_sentence", "BLEU, mean over the texts", "bleu sentence", "BLEU", NULL, UNIT_POINTS, HIGHER, NULL, {{0}}},
	{"rouge_1", "ROUGE-1", "rouge 1", "ROUGE", NULL, UNIT_POINTS, HIGHER, NULL, {{0}}},
	{"rouge_2", "ROUGE-2", "rouge 2", "ROUGE", NULL, UNIT_POINTS, HIGHER, NULL, {{0}}},
	{"rouge_l", "ROUGE-L", "ROUGE-L", "ROUGE-L", "ROUGE-L", UNIT_POINTS, HIGHER,
	 "F1 of the longest sequence of words, with gaps, that predicted and right text share; 100 is perfect.", {{0}}},
	{"exact", "Exact match", "exact match", "percent", "exact match", UNIT_POINTS, HIGHER,
	 "Share of the questions whose answer exactly matches one of the correct ones (ignoring articles and punctuation).",
	 {{0}}},
	{"ndcg@10", "nDCG at 10", "nDCG@10", "nDCG", "nDCG@10", UNIT_SHARE, HIGHER,
	 "How close the correct answers are to the top of the ranking; 100 % is perfect.", {{0}}},
	{"mrr@10", "Mean reciprocal rank at 10", "MRR@10", "MRR", "MRR@10", UNIT_SHARE, HIGHER,
	 "Mean of 1 / (rank of the first correct answer), 0 beyond the tenth.", {{0}}},
	{"examples", "Examples", "examples", "examples", NULL, UNIT_COUNT, NEITHER, NULL, {{0}}},
	{"predictions", "Predictions", "predictions", "predictions", NULL, UNIT_COUNT, NEITHER, NULL, {{0}}},
	{"instances", "Instances", "instances", "instances", NULL, UNIT_COUNT, NEITHER, NULL, {{0}}},
	{"total", "Questions", "questions", "questions", NULL, UNIT_COUNT, NEITHER, NULL, {{0}}},
};
/* clang-format on */

static const struct report_column *find(const char *name)
{
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (strcmp(known[i].name, name) == 0)
			return &known[i];
	return NULL;
}

bool report_column_is_known(const char *name)
{
	return find(name) != NULL;
}

struct report_column report_column(const char *name)
{
	const struct report_column *found = find(name);
	struct report_column column =
		found ? *found
		      : (struct report_column){
				.name = name, .title = name, .heading = name, .axis = "value", .unit = UNIT_NUMBER};
	for (int i = 0; i < REPORT_LEVELS; i++)
		column.levels[i].value = NAN;
	return column;
}

const char *report_number(char out[REPORT_NUMBER_BYTES], double value, enum measure_unit unit)
{
	if (!isfinite(value))
		snprintf(out, REPORT_NUMBER_BYTES, "\xE2\x80\x93");
	else if (unit == UNIT_SHARE)
		snprintf(out, REPORT_NUMBER_BYTES, "%.1f %%", 100 * value);
	else if (unit == UNIT_POINTS)
		snprintf(out, REPORT_NUMBER_BYTES, "%.1f", value);
	else if (unit == UNIT_COUNT)
		snprintf(out, REPORT_NUMBER_BYTES, "%.0f", value);
	else if (fabs(value) >= 100)
		snprintf(out, REPORT_NUMBER_BYTES, "%.4g", value);
	else
		snprintf(out, REPORT_NUMBER_BYTES, "%.3f", value);
	return out;
}

enum chart_number report_axis_number(enum measure_unit unit)
{
	return unit == UNIT_SHARE ? CHART_SHARE : unit == UNIT_COUNT ? CHART_COUNT : CHART_PLAIN;
}
