/* Describes pre-training to the report: columns, baselines, and what its losses mean. */
#include "train/pretraining_report.h"

#include <math.h>

/* A run that has seen fewer tokens than this is never called stuck. */
#define STUCK_TOKENS 1e6

static const struct report_words words = {
	.subject = "masked words",
	.data = "text",
	.held_out = "held-out text",
	.prior = "word frequencies",
	.frequent = "the most frequent word",
	.warmup = "--num_warmup_steps",
	.length = "--num_train_steps",
	.usual_rates = "1e-4 to 1e-3",
	.why_stuck = "Most often the learning rate is too high or the warm-up too short: start again",
	.check_data = "Otherwise check the text for repeated lines, shuffled words, or a vocabulary of another language.",
	.remedy = "more text, a smaller model, or more dropout",
};

static const struct report_side next_sentences = {
	.subject = "next sentences",
	.loss = "nsp_loss",
	.score = "nsp_accuracy",
	.chance = 0.5,
	.not_yet = "It cannot yet tell a sentence that follows from one drawn at random.",
	.nearly_perfect = "That is as good as it gets; little is left to learn from this part of the task.",
};

/* The meaning of masked-word losses for this text: see docs/quality.md, "Is my loss normal?". The plateau lies this far below
 * word frequencies; the loss beyond it is known from published models, whose vocabularies have about 30,000 entries. */
#define PLATEAU_DEPTH 1.2
#define PUBLISHED_LOSS 2.0
static void set_stages(struct report_task *task)
{
	if (isnan(task->prior_loss))
		return;
	task->stages[0] = (struct report_stage){
		task->prior_loss - 0.1,
		"A few hundred steps at this level are normal: every BERT learns first how frequent words are.",
	};
	task->stages[1] = (struct report_stage){
		task->prior_loss - PLATEAU_DEPTH,
		"This is the plateau on which every BERT begins: it knows frequencies, punctuation, and a little of what is next "
		"to the blank. A model of 4 x 256 was still there after 4,000 steps and 30 million tokens; the number of steps "
		"counts for more than the size of the batch.",
	};
	task->stages[2] = (struct report_stage){
		PUBLISHED_LOSS,
		"The plateau is behind it: it uses the words around the blank. Published models, with vocabularies of 30,000 "
		"entries and far more text, end between 1.2 and 1.8.",
	};
	task->stages[3] = (struct report_stage){
		-INFINITY,
		"Published models, with vocabularies of 30,000 entries, end between 1.2 and 1.8. If this model has read its text "
		"many times, look at the held-out loss alone.",
	};
}

struct report_task pretraining_report(const struct pretraining_report_facts *facts)
{
	const struct token_frequencies *frequencies = facts->frequencies;
	struct report_task task = {
		.words = words,
		.loss = "mlm_loss",
		.share = "mlm_accuracy",
		.chance_loss = facts->vocab_size > 0 ? log(facts->vocab_size) : NAN,
		.prior_loss = frequencies->entropy,
		.prior_share = frequencies->frequent_share,
		.prior_answer = frequencies->frequent_id >= 0 ? facts->vocab->text[frequencies->frequent_id] : NULL,
		.scale = 1,
		.least_tokens = STUCK_TOKENS,
		.spike_floor = NAN,
		.judges_repeats = true,
		.preview = samples_preview(facts->samples),
	};
	set_stages(&task);
	struct report_column *column = report_task_add(&task, "mlm_loss");
	column->levels[0] = (struct report_level){"frequencies", task.prior_loss};
	column->levels[1] = (struct report_level){"guessing", task.chance_loss};
	column = report_task_add(&task, "mlm_accuracy");
	column->levels[0] = (struct report_level){"frequencies", task.prior_share};
	if (!next_sentence_is_pair(facts->next_sentence))
		return task;
	task.side = next_sentences;
	report_task_add(&task, "nsp_loss")->levels[0] = (struct report_level){"guessing", log(2)};
	column = report_task_add(&task, "nsp_accuracy");
	column->levels[0] = (struct report_level){"guessing", task.side.chance};
	if (facts->next_sentence != NEXT_SENTENCE_OVERLAP)
		return task;
	task.side.subject = "pairs of texts";
	task.side.not_yet = "It cannot yet tell how much two texts share; it takes some 30,000 pairs to find what to compare.";
	column->title = "Accuracy on pairs of texts";
	column->tile = "of pairs of texts right";
	column->meaning =
		"Share of the pairs for which the model correctly predicted whether the texts share many of their words. Labels "
		"are drawn by how much they share, so no model could be right every time.";
	return task;
}
