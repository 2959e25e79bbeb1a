#include "train/labelled.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "infer/outputs.h"
#include "tasks/embedding.h"
#include "tasks/reranking.h"
#include "tasks/rewriting.h"
#include "tasks/squad.h"
#include "train/ranks.h"
#include "train/step_vectors.h"

struct labelled {
	struct objective objective;
	struct labelled_settings settings;
	struct step_reader *reader;
	const char **evaluation_names;
	int64_t step;                 /* the newest step that was asked for; evaluations are of the weights after it */
	struct step_vectors *vectors; /* for a task whose loss covers the vectors of a whole step; otherwise NULL */
};

static struct labelled *self(const struct objective *objective)
{
	return objective->state;
}

static enum status next_step(struct objective *objective, const struct step **out)
{
	TRY(step_reader_next(self(objective)->reader, out));
	if (*out)
		self(objective)->step = (*out)->number;
	return OK;
}

/* Computes the loss of the whole step. Only the first rank's accumulators receive it, since the ranks' accumulators are added
 * up. */
static enum status begin_step(struct objective *objective, struct replica *replica, const struct step *step)
{
	const struct labelled *labelled = self(objective);
	const struct labelled_settings *settings = &labelled->settings;
	struct backend *be = replica->backend;
	struct accumulators sums = {0};
	double loss;
	model_clear_unused_gradients(settings->model);
	TRY(step_vectors_compute(labelled->vectors, replica, step, objective, &loss));
	if (is_first_rank(settings->comm))
		sums.value[sum_of_loss(0)] = loss * step->weights[0];
	be->functions->to_device(be, replica->accumulators, &sums, sizeof(sums));
	/* Recorded work, when it is queued again, does not give the activations the shapes of this batch. */
	objective->forwarded = step->batch_count == 1 && !be->queues;
	return OK;
}

static enum status begin_batch(struct objective *objective, struct replica *replica, int32_t number, const struct batch *batch)
{
	(void)replica;
	step_vectors_send(self(objective)->vectors, number, batch);
	return OK;
}

/* The second forward pass of the batch, unless the first one has left what backward needs; then backward. */
static void vector_gradients(struct objective *objective, struct replica *replica, const struct batch *batch, bool first,
			     struct layer_hook hook)
{
	const struct labelled_settings *settings = &self(objective)->settings;
	if (!objective->forwarded)
		model_forward(settings->model, settings->activations, replica, batch, true);
	model_vectors_backward(settings->model, settings->activations, replica, batch, 0);
	model_backward(settings->model, settings->activations, replica, batch, first, hook.done, hook.context);
}

static void gradients(struct objective *objective, struct replica *replica, const struct batch *batch, bool first,
		      struct layer_hook hook)
{
	const struct labelled_settings *settings = &self(objective)->settings;
	model_gradients(settings->model, settings->activations, replica, batch, first, hook.done, hook.context);
}

static struct measure loss_measure(double value)
{
	return (struct measure){"loss", "loss", UNIT_NATS, DIRECTION_LOWER, value};
}

/* The mean loss over the labels of a step; with several heads, the sum of their means times their coefficients. */
static void step_metrics(struct objective *objective, const struct step *step, const struct accumulators *sums,
			 struct measures *out)
{
	const struct model_heads *heads = &self(objective)->settings.model->heads;
	double loss = 0;
	for (int h = 0; h < heads->count; h++)
		if (step->weights[h] > 0)
			loss += heads->head[h].coefficient * sums->value[sum_of_loss(h)] / step->weights[h];
	struct measure measure = loss_measure(loss);
	out->count = 0;
	measures_add(out, &measure);
}

/* The loss of a set as if its examples were trained on in order: the mean over its steps. NaN without labels. */
static enum status loss_of_vectors(const struct labelled_settings *settings, struct replica *replica, const struct task_set *set,
				   const struct task_outputs *outputs, double *out)
{
	struct contrastive_scratch scratch = {0};
	struct vector_set vectors = {0};
	int64_t most = settings->steps.batch_size;
	double sum = 0;
	*out = NAN;
	if (!set->has_labels)
		return OK;
	enum status status = vector_set_make(&vectors, set, outputs);
	for (int64_t first = 0; status == OK && first < outputs->count; first += most) {
		double loss = 0;
		int64_t count = outputs->count - first < most ? outputs->count - first : most;
		struct contrastive_step step = vector_set_part(&vectors, first, count);
		status = settings->task->task->loss(settings->task, set, &step, replica->backend->pool, &scratch, &loss, NULL);
		sum += loss * (double)count;
	}
	if (status == OK)
		*out = sum / (double)outputs->count;
	vector_set_release(&vectors);
	contrastive_scratch_release(&scratch);
	return status;
}

enum status labelled_measures(const struct task_state *task, const struct head *head, const struct task_set *set,
			      struct measures *out)
{
	struct task_outputs outputs = {0};
	struct measure measure = loss_measure(NAN);
	TRY(task_outputs_create(&outputs, &set->encoded, head));
	out->count = 0;
	measures_add(out, &measure);
	enum status status = set->has_labels ? task->task->score(task, set, &outputs, out) : OK;
	task_outputs_release(&outputs);
	return status;
}

enum status labelled_score(const struct labelled_settings *settings, struct replica *replica, struct task_set *set,
			   struct task_outputs *outputs, struct measures *out)
{
	struct instances *instances = NULL;
	struct labelled_source source = {.vocab_size = settings->vocab_size};
	struct output_pass pass = {.model = settings->model,
				   .activations = settings->activations,
				   .replica = replica,
				   .comm = settings->comm,
				   .capacity = settings->evaluation_capacity};
	double loss = NAN;
	bool has_vectors = settings->task->task->loss != NULL;
	enum status status;
	TRY(task_outputs_create(outputs, &set->encoded, &settings->model->heads.head[0]));
	TRY_GOTO(instances_open_labelled(&instances, &set->encoded, &source), done);
	TRY_GOTO(outputs_compute(&pass, instances, outputs, &loss), done);
	if (has_vectors)
		TRY_GOTO(loss_of_vectors(settings, replica, set, outputs, &loss), done);
	out->count = 0;
	struct measure measure = loss_measure(loss);
	measures_add(out, &measure);
	if (set->has_labels)
		status = settings->task->task->score(settings->task, set, outputs, out);
	measure = (struct measure){"examples", NULL, UNIT_COUNT, DIRECTION_NONE, (double)task_answers(set)};
	measures_add(out, &measure);
done:
	instances_close(instances);
	if (status != OK)
		task_outputs_release(outputs);
	return status;
}

/* What the report shows about the newest evaluation: which classes are mistaken for each other, and the worst errors. */
static enum status show_classes(const struct labelled_settings *settings, const struct task_set *set,
				const struct task_outputs *outputs)
{
	const struct label_set *labels = &settings->task->labels;
	const int32_t *gold = set->encoded.items[0].classes;
	int64_t classes = labels->count, *counts = NULL;
	enum status status = OK;
	TRY(memory_new(&counts, classes * classes, sizeof(*counts), "confusion matrix"));
	for (int64_t i = 0; i < outputs->count && status == OK; i++) {
		const float *logits = task_output(outputs, i);
		const struct example_text *example = &set->examples.examples[i];
		int64_t best = 0;
		double sum = 0;
		for (int64_t c = 1; c < classes; c++)
			best = logits[c] > logits[best] ? c : best;
		for (int64_t c = 0; c < classes; c++)
			sum += exp((double)logits[c] - (double)logits[best]);
		if (gold[i] < 0)
			continue;
		counts[gold[i] * classes + best]++;
		struct report_error error = {.number = i + 1,
					     .text = example->text,
					     .pair = example->pair,
					     .right = labels->labels[gold[i]].name,
					     .predicted = labels->labels[best].name,
					     .loss = log(sum) + (double)logits[best] - (double)logits[gold[i]]};
		status = task_preview_example(settings->preview, best == gold[i] ? NULL : &error);
	}
	if (status == OK)
		status = task_preview_confusion(settings->preview, counts);
	free(counts);
	return status;
}

/* Each label separately, and the examples in which any label is wrong. */
static enum status show_labels(const struct labelled_settings *settings, const struct task_set *set,
			       const struct task_outputs *outputs)
{
	const struct label_set *labels = &settings->task->labels;
	const float *gold = set->encoded.items[0].numbers;
	struct report_class *classes = NULL;
	struct buffer right = {0}, predicted = {0};
	enum status status;
	TRY_GOTO(memory_new(&classes, labels->count, sizeof(*classes), "labels of a report"), done);
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
			bool is = gold[i * labels->count + c] > 0.5f, said = logits[c] > 0;
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
	status = task_preview_classes(settings->preview, classes, labels->count);
done:
	free(classes);
	buffer_release(&right);
	buffer_release(&predicted);
	return status;
}

static enum status show_numbers(const struct labelled_settings *settings, const struct task_set *set,
				const struct task_outputs *outputs)
{
	const float *gold = set->encoded.items[0].numbers;
	bool is_score = settings->task->task == &task_reranking;
	for (int64_t i = 0; i < outputs->count; i++) {
		double value = task_output(outputs, i)[0];
		TRY(task_preview_point(
			settings->preview,
			(struct report_point){.right = gold[i], .predicted = is_score ? task_sigmoid(value) : value}));
	}
	return OK;
}

/* Each entity type separately. */
static enum status show_entities(const struct labelled_settings *settings, const struct task_set *set,
				 const struct task_outputs *outputs)
{
	struct class_scores types;
	struct report_class *classes = NULL;
	enum status status;
	TRY(settings->task->task->score_classes(settings->task, set, outputs, &types));
	TRY_GOTO(memory_new(&classes, types.count, sizeof(*classes), "entity types"), done);
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
	return status;
}

/* Answers of tasks that examine their outputs themselves are taken as they are. */
static enum status take_answer(void *context, const struct task_answer *answer)
{
	const struct report_error error = {.number = answer->number,
					   .text = answer->text,
					   .pair = answer->pair,
					   .right = answer->right,
					   .predicted = answer->predicted,
					   .loss = answer->loss};
	return task_preview_example(context, answer->wrong ? &error : NULL);
}

static enum status show(const struct labelled_settings *settings, int64_t step, const struct task_set *set,
			const struct task_outputs *outputs)
{
	const struct task *task = settings->task->task;
	if (!settings->preview || set != &settings->evaluation[0] || !set->has_labels)
		return OK;
	task_preview_begin(settings->preview, step);
	if (task->target == TARGET_CLASS && set->examples.count == outputs->count && !task->examine)
		return show_classes(settings, set, outputs);
	if (task == &task_multilabel)
		return show_labels(settings, set, outputs);
	if (task == &task_tagging)
		TRY(show_entities(settings, set, outputs));
	if (task->examine)
		return task->examine(settings->task, set, outputs,
				     (struct task_answer_reader){.take = take_answer, .context = settings->preview});
	return task == &task_regression || task == &task_reranking ? show_numbers(settings, set, outputs) : OK;
}

static enum status evaluate(struct objective *objective, struct replica *replica, int64_t number, struct measures *out)
{
	const struct labelled_settings *settings = &self(objective)->settings;
	struct task_outputs outputs = {0};
	TRY(labelled_score(settings, replica, &settings->evaluation[number], &outputs, out));
	enum status status = show(settings, self(objective)->step, &settings->evaluation[number], &outputs);
	task_outputs_release(&outputs);
	return status;
}

static bool locate_not_finite(struct objective *objective, bool loss_is_finite, char *out, size_t size)
{
	const struct labelled_settings *settings = &self(objective)->settings;
	return model_locate_not_finite(settings->model, settings->activations, loss_is_finite, out, size);
}

static double waited(const struct objective *objective)
{
	return step_reader_waited(self(objective)->reader);
}

static void close_objective(struct objective *objective)
{
	struct labelled *labelled = self(objective);
	step_reader_close(labelled->reader);
	step_vectors_free(labelled->vectors);
	free(labelled->evaluation_names);
	free(labelled);
}

enum status labelled_objective_create(struct objective **out, const struct labelled_settings *settings)
{
	struct labelled *labelled;
	enum status status;
	*out = NULL;
	TRY(memory_new(&labelled, 1, sizeof(*labelled), "objective"));
	labelled->settings = *settings;
	labelled->step = settings->steps.first_step - 1;
	labelled->objective = (struct objective){
		.name = settings->task->task->name,
		.state = labelled,
		.next_step = next_step,
		.gradients = gradients,
		.metrics = step_metrics,
		.evaluation_count = settings->evaluation_count,
		.evaluate = evaluate,
		.locate_not_finite = locate_not_finite,
		.waited = waited,
		.close = close_objective,
	};
	TRY_GOTO(memory_new(&labelled->evaluation_names, settings->evaluation_count, sizeof(*labelled->evaluation_names),
			    "evaluation sets"),
		 failed);
	for (int64_t i = 0; i < settings->evaluation_count; i++)
		labelled->evaluation_names[i] = settings->evaluation[i].name[0] ? settings->evaluation[i].name : NULL;
	labelled->objective.evaluation_names = labelled->evaluation_names;
	if (settings->task->task->loss) {
		struct step_vectors_settings of_vectors = {.task = settings->task,
							   .train = settings->train_set,
							   .model = settings->model,
							   .activations = settings->activations,
							   .comm = settings->comm,
							   .steps = &labelled->settings.steps,
							   .sequences = instances_bounds(settings->train)->sequences};
		TRY_GOTO(step_vectors_create(&labelled->vectors, &of_vectors), failed);
		labelled->objective.begin_step = begin_step;
		labelled->objective.begin_batch = begin_batch;
		labelled->objective.gradients = vector_gradients;
	}
	TRY_GOTO(step_reader_open(&labelled->reader, settings->train, &settings->steps), failed);
	*out = &labelled->objective;
	return OK;
failed:
	close_objective(&labelled->objective);
	return status;
}

static double variance_of(const struct task_set *train)
{
	const struct labelled_items *items = &train->encoded.items[0];
	double mean = 0, sum = 0;
	for (int64_t i = 0; i < items->count; i++)
		mean += (double)items->numbers[i] / (double)items->count;
	for (int64_t i = 0; i < items->count; i++)
		sum += ((double)items->numbers[i] - mean) * ((double)items->numbers[i] - mean);
	return items->count > 0 ? sum / (double)items->count : NAN;
}

/* For tasks that rewrite texts: the scores of leaving the texts unchanged. */
static enum status report_texts(struct report_task *report, const struct task_set *dev)
{
	static const char *const names[][2] = {
		{"exact_match", "copy_exact_match"}, {"bleu_4", "copy_bleu_4"}, {"rouge_l", "copy_rouge_l"}};
	struct measures copies = {0};
	report_task_plain(report, NAN);
	if (dev)
		TRY(rewriting_measure_copies(dev, &copies));
	for (int i = 0; i < 3; i++)
		report_task_add(report, names[i][0])->levels[0] =
			(struct report_level){"copying", measures_get(&copies, names[i][1])};
	return OK;
}

/* For questions, each with any number of choices. */
static void report_choices(struct report_task *report, const struct task_set *train)
{
	double loss = 0, share = 0, count = (double)train->encoded.example_count;
	for (int64_t i = 0; i < train->encoded.example_count; i++) {
		double choices = (double)(train->encoded.examples[i + 1] - train->encoded.examples[i]);
		loss += log(choices) / count;
		share += 1 / choices / count;
	}
	report_task_choices(report, loss, share);
}

/* For scores from 0 to 1: the loss of a model that knows only their mean. */
static enum status report_rankings(struct report_task *report, const struct task_set *train, const struct task_set *dev)
{
	const struct labelled_items *items = &train->encoded.items[0];
	struct measures random = {0};
	double mean = 0;
	for (int64_t i = 0; i < items->count; i++)
		mean += (double)items->numbers[i] / (double)items->count;
	report_task_plain(report, log(2));
	if (mean > 0 && mean < 1) {
		report->prior_loss = -mean * log(mean) - (1 - mean) * log(1 - mean);
		report->words.prior = "the mean score";
		report->columns[0].levels[0] = (struct report_level){"always the mean", report->prior_loss};
	}
	if (dev)
		TRY(reranking_measure_random(dev, &random));
	if (measures_find(&random, "ndcg@10"))
		report_task_add(report, "ndcg@10")->levels[0] =
			(struct report_level){"a random order", measures_get(&random, "ndcg@10")};
	return OK;
}

/* For tags of words: each word is an example for the loss; but what matters is entities. */
static void report_tags(struct report_task *report, const int64_t *counts, const char *const *names, int32_t classes)
{
	report_task_classes(report, counts, names, classes);
	report->columns[0].axis = "nats per word";
	struct report_column *f1 = report_task_add(report, "f1");
	f1->levels[0] = (struct report_level){"no entity", 0};
	f1->meaning = "Harmonic mean of precision and recall of whole entities: both ends and the type have to be right.";
}

/* For questions that may have no answer: the score of always saying that there is none. */
static void report_questions(struct report_task *report, const struct task_set *dev)
{
	double share = dev ? squad_impossible_share(dev) : 0;
	report_task_plain(report, NAN);
	struct report_column *f1 = report_task_add(report, "f1");
	f1->unit = UNIT_POINTS;
	f1->meaning =
		"How many words predicted and right answer share: the harmonic mean of precision and recall of the words, on "
		"average over the questions, 100 at best.";
	if (share > 0)
		f1->levels[0] = (struct report_level){"always \xE2\x80\x9Cno answer\xE2\x80\x9D", 100 * share};
}

enum status labelled_report(const struct task_state *task, const struct task_set *train, const struct task_set *dev,
			    struct task_preview *preview, struct report_task *out)
{
	struct report_task report;
	int64_t counts[256];
	const char *names[256];
	int64_t classes = task->labels.count;
	for (int64_t i = 0; i < classes && i < 256; i++) {
		counts[i] = task->labels.labels[i].count;
		names[i] = task->labels.labels[i].name;
	}
	bool countable = classes > 0 && classes <= 256;
	if (task->task == &task_embedding)
		report_task_plain(&report, NAN);
	else if (task->task == &task_reranking)
		TRY(report_rankings(&report, train, dev));
	else if (task->task == &task_choice)
		report_choices(&report, train);
	else if (task->task == &task_squad)
		report_questions(&report, dev);
	else if (task->task == &task_rewriting)
		TRY(report_texts(&report, dev));
	else if (task->task->target == TARGET_NUMBER)
		report_task_values(&report, variance_of(train));
	else if (task->task == &task_tagging && countable)
		report_tags(&report, counts, names, (int32_t)classes);
	else if (task->task == &task_multilabel && countable)
		report_task_labels(&report, counts, (int32_t)classes, train->encoded.example_count);
	else if (task->task->target == TARGET_CLASS && countable)
		report_task_classes(&report, counts, names, (int32_t)classes);
	else
		report_task_plain(&report, NAN);
	report.decides = task_decides(task);
	if (preview)
		report.preview = task_preview_of(preview);
	*out = report;
	return OK;
}
