/* How far probabilities can be trusted: a reliability diagram, and precision against recall. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "formats/chart.h"
#include "report/html.h"
#include "report/preview.h"

/* Logits from -LOGIT_MOST to LOGIT_MOST are told apart. */
#define LOGIT_MOST 15.0

void task_preview_score(struct task_preview *preview, double score, bool right)
{
	double logit = log(score) - log1p(-score);
	double place = (logit + LOGIT_MOST) / (2 * LOGIT_MOST) * PREVIEW_STEPS;
	int step = !(place > 0) ? 0 : place < PREVIEW_STEPS ? (int)place : PREVIEW_STEPS - 1;
	score_bins_add(&preview->scores.plain, score, right);
	preview->scores.steps[step][right]++;
}

/* A curve of the bins that are not empty. */
struct curve {
	double x[SCORE_BINS], y[SCORE_BINS];
	int64_t count, scores;
	double error;
};

static void find_curve(const struct score_bins *bins, struct curve *out)
{
	*out = (struct curve){.error = score_bins_error(bins)};
	for (int i = 0; i < SCORE_BINS; i++) {
		out->scores += bins->count[i];
		if (bins->count[i] == 0)
			continue;
		out->x[out->count] = bins->sum[i] / (double)bins->count[i];
		out->y[out->count++] = (double)bins->right[i] / (double)bins->count[i];
	}
}

static void put_reliability(const struct report_scores *scores, struct buffer *out)
{
	static const double exact[] = {0, 1};
	struct curve plain, calibrated;
	char description[200];
	find_curve(&scores->plain, &plain);
	find_curve(&scores->calibrated, &calibrated);
	snprintf(description, sizeof description, "%" PRId64 " probabilities in %d bins, calibration error %.1f %%.",
		 plain.scores, SCORE_BINS, 100 * plain.error);
	buffer_format(out,
		      "<p class=\"note\">The calibration error is how far probabilities are, on average, from the share that is "
		      "right: %.1f %%",
		      100 * plain.error);
	if (calibrated.count > 0)
		buffer_format(out, ", and %.1f %% with a temperature of %.3g", 100 * calibrated.error, scores->temperature);
	buffer_text(
		out,
		". Where the curve lies below the straight line, the model is too sure of itself.</p>\n<div class=\"grid\">\n");
	struct chart chart = {.title = "How often probabilities are right",
			      .description = description,
			      .x = {.label = "probability", .number = CHART_SHARE, .from_zero = true},
			      .y = {.label = "right", .number = CHART_SHARE, .from_zero = true}};
	chart_add_series(&chart, (struct chart_series){"exact", 8, false, true, exact, exact, NULL, NULL, 2});
	chart_add_series(&chart, (struct chart_series){"the model", 1, true, false, plain.x, plain.y, NULL, NULL, plain.count});
	chart_add_series(&chart, (struct chart_series){"calibrated", 2, true, false, calibrated.x, calibrated.y, NULL, NULL,
						       calibrated.count});
	chart_svg(&chart, out);
}

static void put_precision(const struct report_scores *scores, struct buffer *out)
{
	double recall[PREVIEW_STEPS], precision[PREVIEW_STEPS], all = 0, answered = 0, right = 0;
	int64_t count = 0;
	for (int i = 0; i < PREVIEW_STEPS; i++)
		all += (double)scores->steps[i][1];
	for (int i = PREVIEW_STEPS - 1; i >= 0 && all > 0; i--) {
		if (scores->steps[i][0] + scores->steps[i][1] == 0)
			continue;
		right += (double)scores->steps[i][1];
		answered += (double)(scores->steps[i][0] + scores->steps[i][1]);
		recall[count] = right / all;
		precision[count++] = right / answered;
	}
	struct chart chart = {.title = "Precision and recall",
			      .description =
				      "Each point is a threshold: of what reaches it, the share that is right, and the share "
				      "of all that is right.",
			      .x = {.label = "recall", .number = CHART_SHARE, .from_zero = true},
			      .y = {.label = "precision", .number = CHART_SHARE, .from_zero = true}};
	chart_add_series(&chart, (struct chart_series){NULL, 1, false, false, recall, precision, NULL, NULL, count});
	chart_svg(&chart, out);
}

void report_scores_html(const struct report_scores *scores, struct buffer *out)
{
	int64_t count = 0;
	for (int i = 0; i < SCORE_BINS; i++)
		count += scores->plain.count[i];
	if (count == 0)
		return;
	buffer_text(out, "<h3>Probabilities</h3>\n");
	put_reliability(scores, out);
	put_precision(scores, out);
	buffer_text(out, "</div>\n");
}
