/* Fills in what a report knows of each kind of task: columns, baselines, and words. */
#include "report/task.h"

#include <math.h>
#include <string.h>

#include "base/error.h"

struct report_column *report_task_add(struct report_task *task, const char *name)
{
	BUG_IF(task->column_count == REPORT_COLUMNS);
	struct report_column *column = &task->columns[task->column_count++];
	*column = report_column(name);
	return column;
}

const struct report_column *report_task_column(const struct report_task *task, const char *name)
{
	for (int i = 0; name && i < task->column_count; i++)
		if (strcmp(task->columns[i].name, name) == 0)
			return &task->columns[i];
	return NULL;
}

/* Defaults for labeled tasks. */
static const struct report_words labeled_words = {
	.subject = "",
	.data = "training data",
	.held_out = "dev set",
	.prior = "the frequency of each label",
	.frequent = "the most frequent label",
	.warmup = "--warmup_proportion",
	.length = "--num_train_epochs",
	.usual_rates = "1e-5 to 5e-5",
	.why_stuck = "Either the model was pre-trained on too little text to learn this, or the learning rate is too high. "
		     "Try a model that was trained for longer, or start again",
	.check_data = "Otherwise check the data: labels in another column, labels that do not belong to their text, or "
		      "texts that are cut off before what matters (--max_seq_length).",
	.remedy = "fewer epochs, more labeled examples, or more dropout",
};

static void start(struct report_task *task)
{
	*task = (struct report_task){
		.words = labeled_words,
		.loss = "loss",
		.chance_loss = NAN,
		.prior_loss = NAN,
		.prior_share = NAN,
		.scale = 1,
		.spike_floor = NAN,
	};
}

/* A task's losses are judged relative to the loss to be overcome. */
static void set_scale(struct report_task *task, double loss)
{
	if (loss > 0) {
		task->scale = loss;
		task->spike_floor = loss;
	}
}

void report_task_classes(struct report_task *task, const int64_t *counts, const char *const *labels, int32_t classes)
{
	int64_t total = 0, most = 0;
	double entropy = 0;
	start(task);
	for (int32_t c = 0; c < classes; c++)
		total += counts[c];
	for (int32_t c = 0; c < classes; c++) {
		double share = total > 0 ? (double)counts[c] / (double)total : 0;
		entropy -= share > 0 ? share * log(share) : 0;
		if (counts[c] > most) {
			most = counts[c];
			task->prior_answer = labels ? labels[c] : NULL;
		}
	}
	task->chance_loss = log(classes);
	if (total > 0) {
		task->prior_loss = entropy;
		task->prior_share = (double)most / (double)total;
	}
	task->share = "accuracy";
	set_scale(task, total > 0 && entropy > 0 ? entropy : task->chance_loss);
	struct report_column *loss = report_task_add(task, "loss");
	loss->axis = "nats per example";
	loss->levels[0] = (struct report_level){"label frequencies", task->prior_loss};
	report_task_add(task, "accuracy")->levels[0] = (struct report_level){"most frequent", task->prior_share};
}

void report_task_labels(struct report_task *task, const int64_t *counts, int32_t labels, int64_t examples)
{
	double sum = 0;
	start(task);
	for (int32_t i = 0; i < labels && examples > 0; i++) {
		double share = (double)counts[i] / (double)examples;
		sum -= share > 0 ? share * log(share) : 0;
		sum -= share < 1 ? (1 - share) * log(1 - share) : 0;
	}
	task->chance_loss = log(2);
	if (labels > 0 && examples > 0)
		task->prior_loss = sum / labels;
	set_scale(task, task->prior_loss > 0 ? task->prior_loss : task->chance_loss);
	struct report_column *loss = report_task_add(task, "loss");
	loss->axis = "nats per label";
	loss->levels[0] = (struct report_level){"label frequencies", task->prior_loss};
	report_task_add(task, "f1_micro")->levels[0] = (struct report_level){"no label", 0};
}

void report_task_choices(struct report_task *task, double chance_loss, double chance_share)
{
	start(task);
	task->words.prior = "the number of choices";
	task->words.frequent = "at random";
	task->chance_loss = task->prior_loss = chance_loss;
	task->prior_share = chance_share;
	task->share = "accuracy";
	set_scale(task, chance_loss);
	struct report_column *loss = report_task_add(task, "loss");
	loss->axis = "nats per example";
	loss->levels[0] = (struct report_level){"guessing", chance_loss};
	report_task_add(task, "accuracy")->levels[0] = (struct report_level){"guessing", chance_share};
}

void report_task_values(struct report_task *task, double variance)
{
	start(task);
	task->words.prior = "the mean";
	task->words.frequent = "the mean";
	task->prior_loss = variance;
	set_scale(task, variance);
	struct report_column *loss = report_task_add(task, "loss");
	loss->axis = "squared error";
	loss->unit = UNIT_NUMBER;
	loss->meaning = "What training minimizes: the mean squared difference between predicted and right values.";
	loss->levels[0] = (struct report_level){"always the mean", variance};
}

void report_task_plain(struct report_task *task, double chance_loss)
{
	start(task);
	task->chance_loss = chance_loss;
	set_scale(task, chance_loss);
	report_task_add(task, "loss")->levels[0] = (struct report_level){"guessing", chance_loss};
}
