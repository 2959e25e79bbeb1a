/* What a report shows of each kind of answer: a row of a table for each view that a task may have (tasks/task.h). */
#include "train/labeled_report.h"

#include <math.h>
#include <string.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "base/memory.h"

/* ---- What is shown of the newest evaluation ---- */

static void take_score(void *context, double score, bool right)
{
	task_preview_score(context, score, right);
}

static void take_calibrated(void *context, double score, bool right)
{
	score_bins_add(context, score, right);
}

/* How often probabilities are right and, if the run calibrates them, how often they would be. */
static enum status show_scores(const struct labeled_settings *settings, const struct task_set *set,
			       const struct task_outputs *outputs)
{
	const struct task_state *task = settings->task;
	struct report_scores *scores = &settings->preview->scores;
	TRY(calibration_examine(task, set, outputs, 1, take_score, settings->preview));
	if (task->settings.calibration && task->settings.calibration->calibrate)
		TRY(calibration_temperature(task, set, outputs, &scores->temperature));
	return scores->temperature > 0
		       ? calibration_examine(task, set, outputs, scores->temperature, take_calibrated, &scores->calibrated)
		       : OK;
}

/* Which classes are mistaken for each other, and the worst errors. */
static enum status show_classes(const struct labeled_settings *settings, const struct task_set *set,
				const struct task_outputs *outputs)
{
	const struct label_set *labels = &settings->task->labels;
	const int32_t *gold = set->encoded.items[0].classes;
	int64_t classes = labels->count, *counts = NULL;
	enum status status = OK;
	if (set->examples.count != outputs->count)
		return OK;
	TRY(memory_new(&counts, classes * classes, sizeof *counts, "confusion matrix"));
	for (int64_t i = 0; i < outputs->count && status == OK; i++) {
		const float *logits = task_output(outputs, i);
		const struct example_text *example = &set->examples.examples[i];
		int64_t best = 0;
		double sum = 0;
		for (int64_t c = 1; c < classes; c++)
			best = logits[c] > logits[best] ? c : best;
		for (int64_t c = 0; c < classes; c++)
			sum += exp((double)logits[c] - (double)logits[best]);
		int32_t right = gold[task_example_of(set, i)];
		if (right < 0)
			continue;
		counts[right * classes + best]++;
		struct report_error error = {.number = i + 1,
					     .text = example->text,
					     .pair = example->pair,
					     .right = labels->labels[right].name,
					     .predicted = labels->labels[best].name,
					     .loss = log(sum) + (double)logits[best] - (double)logits[right]};
		status = task_preview_example(settings->preview, best == right ? NULL : &error);
	}
	if (status == OK)
		status = task_preview_confusion(settings->preview, counts);
	free(counts);
	return status == OK ? show_scores(settings, set, outputs) : status;
}

/* Each label separately, and the examples in which any label is wrong. */
static enum status show_labels(const struct labeled_settings *settings, const struct task_set *set,
			       const struct task_outputs *outputs)
{
	const struct label_set *labels = &settings->task->labels;
	const float *gold = set->encoded.items[0].numbers;
	struct report_class *classes = NULL;
	struct buffer right = {0}, predicted = {0};
	enum status status;
	TRY_GOTO(memory_new(&classes, labels->count, sizeof *classes, "labels of a report"), done);
	for (int64_t c = 0; c < labels->count; c++)
		classes[c].label = labels->labels[c].name;
	for (int64_t i = 0; i < outputs->count; i++) {
		const struct example_text *example = &set->examples.examples[i];
		const float *logits = task_output(outputs, i);
		bool wrong = false;
		double loss = 0;
		buffer_clear(&right);
		buffer_clear(&predicted);
		for (int64_t c = 0; c < labels->count; c++) {
			bool is = gold[task_example_of(set, i) * labels->count + c] > 0.5f, said = logits[c] > 0;
			classes[c].right += is;
			classes[c].predicted += said;
			classes[c].both += is && said;
			wrong |= is != said;
			loss += log1p(exp(is ? -(double)logits[c] : (double)logits[c])) / (double)labels->count;
			if (is)
				buffer_format(&right, "%s%s", right.size ? ", " : "", labels->labels[c].name);
			if (said)
				buffer_format(&predicted, "%s%s", predicted.size ? ", " : "", labels->labels[c].name);
		}
		TRY_GOTO(buffer_status(&right), done);
		TRY_GOTO(buffer_status(&predicted), done);
		struct report_error error = {.number = i + 1,
					     .text = example->text,
					     .pair = example->pair,
					     .right = right.size ? buffer_string(&right) : "(none)",
					     .predicted = predicted.size ? buffer_string(&predicted) : "(none)",
					     .loss = loss};
		TRY_GOTO(task_preview_example(settings->preview, wrong ? &error : NULL), done);
	}
	TRY_GOTO(task_preview_classes(settings->preview, classes, labels->count), done);
	status = show_scores(settings, set, outputs);
done:
	free(classes);
	buffer_release(&right);
	buffer_release(&predicted);
	return status;
}

static enum status show_numbers(const struct labeled_settings *settings, const struct task_set *set,
				const struct task_outputs *outputs)
{
	const float *gold = set->encoded.items[0].numbers;
	bool is_logit = settings->task->task->output_is_logit;
	for (int64_t i = 0; i < outputs->count; i++) {
		double value = task_output(outputs, i)[0];
		TRY(task_preview_point(settings->preview,
				       (struct report_point){.right = gold[task_example_of(set, i)],
							     .predicted = is_logit ? task_sigmoid(value) : value}));
	}
	return OK;
}

/* Answers of tasks that examine their outputs themselves are taken as they are. */
static enum status take_answer(void *context, const struct task_answer *answer)
{
	struct report_span *spans = NULL;
	if (!answer->wrong)
		return task_preview_example(context, NULL);
	if (answer->spans)
		TRY(memory_new(&spans, answer->span_count, sizeof *spans, "spans of a report"));
	for (int64_t i = 0; spans && i < answer->span_count; i++) {
		const struct task_span *span = &answer->spans[i];
		spans[i] = (struct report_span){span->begin, span->end, span->label, span->predicted, span->agrees};
	}
	const struct report_error error = {.number = answer->number,
					   .text = answer->text,
					   .pair = answer->pair,
					   .right = answer->right,
					   .predicted = answer->predicted,
					   .loss = answer->loss,
					   .spans = spans,
					   .span_count = answer->span_count};
	enum status status = task_preview_example(context, &error);
	free(spans);
	return status;
}

static enum status show_answers(const struct labeled_settings *settings, const struct task_set *set,
				const struct task_outputs *outputs)
{
	return settings->task->task->examine(settings->task, set, outputs,
					     (struct task_answer_reader){.take = take_answer, .context = settings->preview});
}

/* Each entity type separately, and the sentences with errors. */
static enum status show_entities(const struct labeled_settings *settings, const struct task_set *set,
				 const struct task_outputs *outputs)
{
	struct class_scores types;
	struct report_class *classes = NULL;
	enum status status;
	TRY(settings->task->task->score_classes(settings->task, set, outputs, &types));
	TRY_GOTO(memory_new(&classes, types.count, sizeof *classes, "entity types"), done);
	for (int32_t i = 0; i < types.count; i++)
		classes[i] = (struct report_class){.label = types.names[i],
						   .right = types.scores[i].support,
						   .predicted = types.scores[i].predicted,
						   .both = types.scores[i].correct};
	if (types.count > 0)
		status = task_preview_classes(settings->preview, classes, types.count);
done:
	free(classes);
	class_scores_release(&types);
	return status == OK ? show_answers(settings, set, outputs) : status;
}

/* ---- What scores and losses are compared with ---- */

/* What is described. */
struct subject {
	const struct task_state *state;
	const struct task_set *train, *dev; /* dev NULL: there is none */
};

static enum status report_plain(const struct subject *subject, struct report_task *out)
{
	(void)subject;
	report_task_plain(out, NAN);
	return OK;
}

/* The labels of the training set. */
struct label_counts {
	int64_t counts[256];
	const char *names[256];
	int32_t count;
};

/* false: there are none, or too many to be told apart in a report. */
static bool count_labels(const struct subject *subject, struct label_counts *out)
{
	const struct label_set *labels = &subject->state->labels;
	if (labels->count < 1 || labels->count > 256)
		return false;
	out->count = (int32_t)labels->count;
	for (int32_t i = 0; i < out->count; i++) {
		out->counts[i] = labels->labels[i].count;
		out->names[i] = labels->labels[i].name;
	}
	return true;
}

/* What the first dev set scores without a model. */
static enum status measure_baseline(const struct subject *subject, struct measures *out)
{
	const struct task *task = subject->state->task;
	*out = (struct measures){0};
	return subject->dev && task->baseline ? task->baseline(subject->state, subject->train, subject->dev, out) : OK;
}

/* Adds what words alone score, `name` of the baseline's measures, to the measure that decides. */
static void put_words(const struct subject *subject, const struct measures *baseline, const char *name, const char *what,
		      struct report_task *out)
{
	const char *decides = task_decides(subject->state);
	struct report_column *column = NULL;
	for (int i = 0; i < out->column_count; i++)
		if (strcmp(out->columns[i].name, decides) == 0)
			column = &out->columns[i];
	if (!measures_find(baseline, name))
		return;
	if (!column)
		column = report_task_add(out, decides);
	column->levels[REPORT_ALONE] = (struct report_level){what, measures_get(baseline, name)};
}

static enum status compare_with_words(const struct subject *subject, const char *what, struct report_task *out)
{
	struct measures alone;
	TRY(measure_baseline(subject, &alone));
	put_words(subject, &alone, task_decides(subject->state), what, out);
	return OK;
}

#define BY_WORDS "words alone (TF-IDF)"

static enum status report_classes(const struct subject *subject, struct report_task *out)
{
	struct label_counts labels;
	if (!count_labels(subject, &labels))
		return report_plain(subject, out);
	report_task_classes(out, labels.counts, labels.names, labels.count);
	return compare_with_words(subject, BY_WORDS, out);
}

static enum status report_labels(const struct subject *subject, struct report_task *out)
{
	struct label_counts labels;
	if (!count_labels(subject, &labels))
		return report_plain(subject, out);
	report_task_labels(out, labels.counts, labels.count, subject->train->encoded.example_count);
	return compare_with_words(subject, BY_WORDS, out);
}

/* Each word is an example for the loss; but what matters is entities. */
static enum status report_entities(const struct subject *subject, struct report_task *out)
{
	struct label_counts labels;
	if (!count_labels(subject, &labels))
		return report_plain(subject, out);
	report_task_classes(out, labels.counts, labels.names, labels.count);
	out->columns[0].axis = "nats per word";
	struct report_column *f1 = report_task_add(out, "f1");
	f1->levels[0] = (struct report_level){"no entity", 0};
	f1->meaning = "Harmonic mean of precision and recall of whole entities: both ends and the type have to be right.";
	return compare_with_words(subject, "words alone (usual tags)", out);
}

static double mean_of(const struct labeled_items *items)
{
	double mean = 0;
	for (int64_t i = 0; i < items->count; i++)
		mean += (double)items->numbers[i] / (double)items->count;
	return mean;
}

static enum status report_numbers(const struct subject *subject, struct report_task *out)
{
	const struct labeled_items *items = &subject->train->encoded.items[0];
	double mean = mean_of(items), sum = 0;
	for (int64_t i = 0; i < items->count; i++)
		sum += ((double)items->numbers[i] - mean) * ((double)items->numbers[i] - mean);
	report_task_values(out, items->count > 0 ? sum / (double)items->count : NAN);
	return compare_with_words(subject, BY_WORDS, out);
}

/* Each question has any number of choices. */
static enum status report_choices(const struct subject *subject, struct report_task *out)
{
	const struct labeled_set *train = &subject->train->encoded;
	double loss = 0, share = 0, count = (double)train->example_count;
	for (int64_t i = 0; i < train->example_count; i++) {
		double choices = (double)(train->examples[i + 1] - train->examples[i]);
		loss += log(choices) / count;
		share += 1 / choices / count;
	}
	report_task_choices(out, loss, share);
	return compare_with_words(subject, BY_WORDS, out);
}

static enum status report_vectors(const struct subject *subject, struct report_task *out)
{
	TRY(report_plain(subject, out));
	return compare_with_words(subject, BY_WORDS, out);
}

/* For scores from 0 to 1: the loss of a model that knows only their mean, and a random order. */
static enum status report_rankings(const struct subject *subject, struct report_task *out)
{
	double mean = mean_of(&subject->train->encoded.items[0]);
	struct measures random;
	report_task_plain(out, log(2));
	if (mean > 0 && mean < 1) {
		out->prior_loss = -mean * log(mean) - (1 - mean) * log(1 - mean);
		out->words.prior = "the mean score";
		out->columns[0].levels[0] = (struct report_level){"always the mean", out->prior_loss};
	}
	TRY(measure_baseline(subject, &random));
	if (measures_find(&random, "ndcg@10"))
		report_task_add(out, "ndcg@10")->levels[0] =
			(struct report_level){"a random order", measures_get(&random, "ndcg@10")};
	put_words(subject, &random, "words_alone", BY_WORDS, out);
	return OK;
}

/* A question may have no answer: the score of always saying that there is none. */
static enum status report_questions(const struct subject *subject, struct report_task *out)
{
	struct measures silent;
	report_task_plain(out, NAN);
	TRY(measure_baseline(subject, &silent));
	struct report_column *f1 = report_task_add(out, "f1");
	f1->unit = UNIT_POINTS;
	f1->meaning =
		"How many words predicted and right answer share: the harmonic mean of precision and recall of the words, on "
		"average over the questions, 100 at best.";
	if (measures_find(&silent, "f1"))
		f1->levels[0] = (struct report_level){"always \xE2\x80\x9Cno answer\xE2\x80\x9D", measures_get(&silent, "f1")};
	return OK;
}

/* The scores of leaving the texts unchanged. */
static enum status report_texts(const struct subject *subject, struct report_task *out)
{
	static const char *const names[][2] = {
		{"exact_match", "copy_exact_match"}, {"bleu_4", "copy_bleu_4"}, {"rouge_l", "copy_rouge_l"}};
	struct measures copies;
	report_task_plain(out, NAN);
	TRY(measure_baseline(subject, &copies));
	for (int i = 0; i < 3; i++)
		report_task_add(out, names[i][0])->levels[0] =
			(struct report_level){"copying", measures_get(&copies, names[i][1])};
	return OK;
}

/* ---- Views ---- */

static const struct {
	enum status (*report)(const struct subject *subject, struct report_task *out);
	/* NULL: nothing is shown. */
	enum status (*show)(const struct labeled_settings *settings, const struct task_set *set,
			    const struct task_outputs *outputs);
} views[] = {
	[VIEW_CLASSES] = {report_classes, show_classes}, [VIEW_NUMBERS] = {report_numbers, show_numbers},
	[VIEW_LABELS] = {report_labels, show_labels},    [VIEW_ENTITIES] = {report_entities, show_entities},
	[VIEW_CHOICES] = {report_choices, show_answers}, [VIEW_RANKINGS] = {report_rankings, show_numbers},
	[VIEW_VECTORS] = {report_vectors, NULL},         [VIEW_QUESTIONS] = {report_questions, show_answers},
	[VIEW_TEXTS] = {report_texts, show_answers},
};

enum status labeled_show(const struct labeled_settings *settings, int64_t step, const struct task_set *set,
			 const struct task_outputs *outputs)
{
	enum task_view view = settings->task->task->view;
	task_preview_begin(settings->preview, step);
	return views[view].show ? views[view].show(settings, set, outputs) : OK;
}

enum status labeled_report(const struct task_state *task, const struct task_set *train, const struct task_set *dev,
			   struct task_preview *preview, struct report_task *out)
{
	TRY(views[task->task->view].report(&(struct subject){task, train, dev}, out));
	out->decides = task_decides(task);
	if (preview)
		out->preview = task_preview_of(preview);
	return OK;
}
