/* Multiple choice: which of several continuations or answers is right. Files are tables (tasks/examples.h). Each choice, after
 * the text that all share, is a sequence of its own and gets one number from the pooler: BertForMultipleChoice. A question may
 * have any number of choices. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "tasks/results.h"
#include "tasks/task.h"
#include "tasks/words_alone.h"

/* Encodes the sequences of one question. `ids` has room for max_seq_length ids. */
static enum status encode_choices(struct task_state *state, struct task_set *set, const struct example_text *example,
				  struct tokens scratch[2], int32_t *ids)
{
	const struct task_settings *settings = &state->settings;
	int32_t cut = 0;
	TRY(labeled_begin(&set->encoded));
	for (int32_t c = 0; c < example->choice_count; c++) {
		struct encoded_text text;
		const char *choice = set->examples.choices[example->first_choice + c];
		TRY(task_encode_text(settings->tokenizer, scratch, example->text, choice, settings->max_seq_length, ids, &text));
		TRY(labeled_sequence(&set->encoded, ids, text.count, text.second));
		cut = text.cut > cut ? text.cut : cut;
	}
	set->cut_count += cut > 0;
	set->cut_tokens += cut;
	return OK;
}

struct encoding {
	struct task_state *state;
	struct task_set *set;
	struct tokens scratch[2];
	int32_t *ids; /* [max_seq_length] */
};

static enum status add_example(void *context, int64_t number)
{
	struct encoding *e = context;
	const struct example_text *example = &e->set->examples.examples[number];
	int32_t right = -1;
	if (e->set->has_labels && example->label)
		TRY(task_label_read(e->set, number, example_right_choice(&e->set->examples, number, &right)));
	TRY(encode_choices(e->state, e->set, example, e->scratch, e->ids));
	return labeled_item(&e->set->encoded, 0, NULL, &right, NULL, right < 0 ? 0 : 1);
}

static enum status choice_encode(struct task_state *state, struct task_set *set)
{
	struct encoding e = {.state = state, .set = set};
	TRY(memory_new(&e.ids, state->settings.max_seq_length, sizeof *e.ids, "a text's tokens"));
	labeled_form(&set->encoded, 0, 1, 0, false);
	enum status status = task_add_examples(state, set, add_example, &e);
	tokens_release(&e.scratch[0]);
	tokens_release(&e.scratch[1]);
	free(e.ids);
	return status;
}

static void choice_heads(const struct task_state *state, struct model_heads *out)
{
	(void)state;
	*out = (struct model_heads){.architecture = "BertForMultipleChoice", .pooler = true, .count = 1};
	out->head[0] = (struct head){
		.input = INPUT_FIRST_ROW,
		.pooled = true,
		.drops = true,
		.outputs = 1,
		.loss = LOSS_GROUP,
		.coefficient = 1,
		.name = "classifier",
	};
}

static int32_t chosen(const struct task_outputs *outputs, int64_t example)
{
	return task_best(task_output(outputs, example), outputs->starts[example + 1] - outputs->starts[example]);
}

static enum status choice_score(const struct task_state *state, const struct task_set *set, const struct task_outputs *outputs,
				struct measures *out)
{
	const int32_t *right = set->encoded.items[0].classes;
	int64_t known = 0, correct = 0;
	(void)state;
	for (int64_t i = 0; i < outputs->count; i++) {
		known += right[i] >= 0;
		correct += right[i] >= 0 && chosen(outputs, i) == right[i];
	}
	measures_add(out, &(struct measure){.name = "accuracy",
					    .unit = UNIT_SHARE,
					    .direction = DIRECTION_HIGHER,
					    .value = (double)correct / (double)known});
	return OK;
}

static enum status choice_baseline(const struct task_state *state, const struct task_set *train, const struct task_set *set,
				   struct measures *out)
{
	(void)train;
	return words_alone_cosines(state, set, out);
}

static enum status choice_write(const struct task_state *state, const struct task_set *set, const struct task_outputs *outputs,
				const char *folder)
{
	char path[PATH_BYTES];
	int32_t *choices;
	enum status status;
	(void)state;
	(void)set;
	TRY(memory_new(&choices, outputs->count, sizeof *choices, "results"));
	for (int64_t i = 0; i < outputs->count; i++)
		choices[i] = chosen(outputs, i);
	TRY_GOTO(path_join(path, folder, "predict.txt"), done);
	status = results_write_classes(path, choices, outputs->count);
done:
	free(choices);
	return status;
}

/* The probability of each choice. */
static enum status choice_put_tsv(const struct task_state *state, const struct task_set *set, const struct task_outputs *outputs,
				  int64_t example, struct buffer *out)
{
	int64_t count = outputs->starts[example + 1] - outputs->starts[example];
	double *shares;
	(void)state;
	(void)set;
	TRY(memory_new(&shares, count, sizeof *shares, "probabilities"));
	task_probabilities(task_output(outputs, example), count, shares);
	for (int64_t i = 0; i < count; i++) {
		if (i > 0)
			buffer_char(out, '\t');
		results_put_float(out, (float)shares[i]);
	}
	free(shares);
	return buffer_status(out);
}

static enum status choice_put(const struct task_state *state, const struct task_set *set, const struct task_outputs *outputs,
			      int64_t example, struct buffer *out)
{
	struct json_writer writer = {.out = out};
	int64_t count = outputs->starts[example + 1] - outputs->starts[example];
	double *shares;
	(void)state;
	TRY(memory_new(&shares, count, sizeof *shares, "probabilities"));
	task_probabilities(task_output(outputs, example), count, shares);
	json_open(&writer, NULL, '{');
	example_put_id(&set->examples, example, &writer);
	json_put_integer(&writer, "label", chosen(outputs, example));
	json_open(&writer, "probabilities", '{');
	for (int64_t i = 0; i < count; i++) {
		char name[24];
		snprintf(name, sizeof name, "%lld", (long long)i);
		json_put_double(&writer, name, shares[i]);
	}
	json_close(&writer);
	json_close(&writer);
	free(shares);
	return buffer_status(out);
}

static enum status choice_examine(const struct task_state *state, const struct task_set *set, const struct task_outputs *outputs,
				  struct task_answer_reader reader)
{
	const int32_t *right = set->encoded.items[0].classes;
	double *shares = NULL;
	int64_t room = 0;
	enum status status = OK;
	(void)state;
	for (int64_t i = 0; i < outputs->count && status == OK; i++) {
		const struct example_text *example = &set->examples.examples[i];
		const char *const *choices = set->examples.choices + example->first_choice;
		int64_t count = outputs->starts[i + 1] - outputs->starts[i];
		int32_t best = chosen(outputs, i);
		if (right[i] < 0)
			continue;
		TRY_GOTO(memory_grow(&shares, &room, count, sizeof *shares, "probabilities"), done);
		task_probabilities(task_output(outputs, i), count, shares);
		status = reader.take(reader.context, &(struct task_answer){.number = i + 1,
									   .text = example->text,
									   .right = choices[right[i]],
									   .predicted = choices[best],
									   .loss = -log(shares[right[i]]),
									   .wrong = best != right[i]});
	}
done:
	free(shares);
	return status;
}

const struct task task_choice = {
	.name = "multiple_choice",
	.summary = "which of several choices fits a text",
	.architecture = "BertForMultipleChoice",
	.input = TASK_INPUT_CHOICES,
	.target = TARGET_CHOICE,
	.decides = "accuracy",
	.view = VIEW_CHOICES,
	.streams = true,
	.read = task_read_tables,
	.encode = choice_encode,
	.heads = choice_heads,
	.score = choice_score,
	.baseline = choice_baseline,
	.write = choice_write,
	.put = choice_put,
	.put_tsv = choice_put_tsv,
	.examine = choice_examine,
};
