/* Tasks with one answer per text or pair: a class, a number, or several labels. Their files are tables (tasks/examples.h), and
 * their head is a linear layer on the pooler: BertForSequenceClassification. */
#include "tasks/classification.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/string_index.h"
#include "tasks/list_cell.h"
#include "tasks/measures.h"
#include "tasks/results.h"
#include "tasks/words_alone.h"

/* ---- Settings ---- */

#define ROW(member, value) OPTION_ROW(struct classification_settings, member, ROLE_RESULT, value)

/* clang-format off */
const struct option classification_rows[] = {
	{.help = "Classes and labels"},
	{ROW(few_shot, NULL), .fallback_text = "false",
	 .help = "for a handful of examples of each class, and an embedding model: train on pairs of the examples first, then "
	 "fit a linear head to their vectors (SetFit's method)"},
	{ROW(classifier_pooling, "WHAT"), .range = "|pooler|mean|cls", .fallback_text = "pooler",
	 .help = "what the head reads: the pooler's output, as in transformers; or the mean of a text's rows, or the row of "
	 "[CLS] (transformers has no class for such models)"},
	{0},
};
/* clang-format on */

static const char *const poolings[] = {
	[CLASSIFIER_OPEN] = "", [CLASSIFIER_POOLER] = "pooler", [CLASSIFIER_MEAN] = "mean", [CLASSIFIER_CLS] = "cls"};

static struct classification_settings *own_of(const struct task_state *state)
{
	return state->own;
}

/* ---- Reading ---- */

static enum label_cells cells_of(const struct task_state *state, const struct example_text *example)
{
	return example->lists_labels && own_of(state)->cells != CELLS_FLAGS ? CELLS_LIST : own_of(state)->cells;
}

/* A header that was not recognized is an example of a class of its own, unless labels are given. */
static void warn_of_headers(const struct task_state *state, const struct example_set *examples)
{
	const struct label_set *labels = &state->labels;
	for (int64_t i = 0; i < examples->count && state->settings.given.count == 0; i++) {
		if (!example_may_be_header(examples, i) || examples->count < 2 * labels->count)
			continue;
		int64_t id = label_set_find(labels, examples->examples[i].label);
		if (id >= 0 && labels->labels[id].count == 1)
			example_warn_of_header(examples, i);
	}
}

/* Whether an example is beyond those that are used: its label is a class, but does not count. */
static bool is_left_out(const struct task_state *state, int64_t number)
{
	return state->settings.most > 0 && number >= state->settings.most;
}

/* Lists and amounts are hardly meant as names of classes. */
static void warn_of_odd_labels(const struct task_state *state)
{
	const struct label_set *labels = &state->labels;
	int64_t lists = 0;
	for (int64_t i = 0; i < labels->count; i++)
		lists += list_cell_kind(labels->labels[i].name) == CELL_LIST;
	if (lists > 0 && lists == labels->count)
		log_warning("each label is a list, such as '%s', and taken as the name of a class: --task multilabel learns the "
			    "labels in "
			    "such lists",
			    labels->labels[0].name);
	if (state->settings.given.count == 0 && label_set_has_amounts(labels))
		log_warning("each label is a number, such as '%s', and taken as the name of a class: --task regression learns "
			    "amounts",
			    labels->labels[0].name);
	else if (state->settings.given.count == 0 && label_set_has_many_numbers(labels))
		log_warning("each of the %lld labels is a whole number, such as '%s', and taken as the name of a class: --task "
			    "regression learns amounts; if they are classes, --labels says so",
			    (long long)labels->count, labels->labels[0].name);
}

/* 0 and 1, or a probability, for each label are no names. */
static enum status refuse_numbers(const struct task_state *state, bool one_each)
{
	const struct label_set *labels = &state->labels;
	if (state->settings.given.count > 0 || !(label_set_has_amounts(labels) || (one_each && label_set_has_flags(labels))))
		return OK;
	return error_hinted(error_set(ERR_DATA,
				      "'%s', line %lld: '%.100s', as every other label, looks like a value, not like a name",
				      labels->labels[0].file, (long long)labels->labels[0].line, labels->labels[0].name),
			    "write 0 or 1 for each label as a list, [1, 0, 1], and give the names with --labels a,b,c");
}

/* With fewer labels, rows as few as a test's may repeat their texts. */
#define SWAPPED_LEAST 20

/* Refuses labels that are mostly different where texts are few: the columns were taken for each other. */
static enum status refuse_swapped(const struct task_state *state, const struct example_set *examples)
{
	const struct label_set *labels = &state->labels;
	struct string_index texts = {0};
	enum status status = OK;
	if (labels->count <= SWAPPED_LEAST || labels->count * 2 <= examples->count)
		return OK;
	for (int64_t i = 0, value; i < examples->count && status == OK; i++)
		status = string_index_add(&texts, examples->examples[i].text, i, &value);
	if (status == OK && texts.count < labels->count) {
		status = error_set(ERR_DATA, "'%s': %lld different labels for %lld different texts: are the columns swapped?",
				   examples->examples[0].file, (long long)labels->count, (long long)texts.count);
		error_hint("'%.100s' was read as the text and '%.100s' as the label; --text_column and --label_column name them",
			   examples->columns.text, examples->columns.label);
	}
	string_index_release(&texts);
	return status;
}

/* Counts the labels of a training set. */
static enum status count_labels(struct task_state *state, struct example_set *examples)
{
	const char **cells = NULL;
	struct string_store store = {0};
	enum status status = OK;
	int64_t kept = 0;
	bool one_each = true;
	if (state->task->target == TARGET_CLASS) {
		for (int64_t i = 0; i < examples->count; i++) {
			const struct example_text *example = &examples->examples[i];
			enum status added = label_set_add(&state->labels, example->label, example->file, example->line);
			if (added != OK) {
				TRY(bad_record(state->settings.bad, added));
				continue;
			}
			if (is_left_out(state, kept))
				label_set_drop_use(&state->labels, example->label);
			examples->examples[kept++] = *example;
		}
		examples->count = kept;
		warn_of_headers(state, examples);
		warn_of_odd_labels(state);
		TRY(refuse_swapped(state, examples));
		return task_order_labels(state, kept);
	}
	TRY(memory_new(&cells, examples->count, sizeof *cells, "labels"));
	for (int64_t i = 0; i < examples->count; i++)
		cells[i] = examples->examples[i].label;
	TRY_GOTO(label_cells_detect(cells, examples->count, &own_of(state)->cells), done);
	for (int64_t i = 0; i < examples->count; i++) {
		const struct example_text *example = &examples->examples[i];
		const char **names;
		int64_t count;
		status = label_cell_split(example->label, cells_of(state, example), &state->settings.given, example->file,
					  example->line, &store, &names, &count);
		for (int64_t k = 0; k < count && status == OK; k++)
			status = label_set_add(&state->labels, names[k], example->file, example->line);
		for (int64_t k = 0; k < count && status == OK && is_left_out(state, kept); k++)
			label_set_drop_use(&state->labels, names[k]);
		free(names);
		one_each = one_each && count <= 1;
		if (status == OK)
			examples->examples[kept++] = *example;
		else
			TRY_GOTO(bad_record(state->settings.bad, status), done);
	}
	examples->count = kept;
	warn_of_headers(state, examples);
	TRY_GOTO(refuse_numbers(state, one_each), done);
	TRY_GOTO(refuse_swapped(state, examples), done);
	status = task_order_labels(state, is_left_out(state, kept) ? state->settings.most : kept);
done:
	string_store_release(&store);
	free(cells);
	return status;
}

/* The class that means "nothing", which is left out of micro F1; -1: none. */
static int32_t negative_class(const struct task_state *state)
{
	const char *name = state->settings.negative_label;
	return name ? (int32_t)label_set_find(&state->labels, name) : -1;
}

static enum status check_negative(const struct task_state *state)
{
	if (!state->settings.negative_label || negative_class(state) >= 0)
		return OK;
	return error_hinted(error_set(ERR_USAGE, "--negative_label %.200s: the training files have no such label",
				      state->settings.negative_label),
			    "the labels are listed above");
}

/* Single precision, in which the model learns, must tell the numbers apart. */
static void warn_of_one_number(const struct example_set *examples)
{
	double number, least = INFINITY, most = -INFINITY;
	for (int64_t i = 0; i < examples->count; i++) {
		const struct example_text *example = &examples->examples[i];
		if (label_number(example->label, example->file, example->line, &number) != OK)
			return; /* which is an error when it is read */
		least = fmin(least, number);
		most = fmax(most, number);
	}
	double largest = fmax(fabs(least), fabs(most));
	if (examples->count > 1 && (most - least <= 1e-6 * largest || largest < FLT_MIN))
		log_warning("all numbers to learn are %g in single precision, so that there is nothing to learn from them", most);
}

enum status classification_read(struct task_state *state, struct task_set *set, const char *const *paths, int64_t count)
{
	TRY(task_read_tables(state, set, paths, count));
	if (set->use != TASK_TRAIN)
		return OK;
	if (state->task->target == TARGET_NUMBER) {
		warn_of_one_number(&set->examples);
		return OK;
	}
	TRY(count_labels(state, &set->examples));
	return check_negative(state);
}

/* ---- Encoding ---- */

static enum status split_labels(const struct task_state *state, const struct example_text *example, struct string_store *store,
				const char ***out_names, int64_t *out_count)
{
	struct label_list all = {.count = cells_of(state, example) == CELLS_FLAGS ? state->labels.count : 0};
	const char **names = NULL;
	if (all.count > 0)
		TRY(memory_new(&names, all.count, sizeof *names, "names of labels"));
	for (int64_t i = 0; i < all.count; i++)
		names[i] = state->labels.labels[i].name;
	all.names = names;
	enum status status = label_cell_split(example->label, cells_of(state, example), &all, example->file, example->line, store,
					      out_names, out_count);
	free(names);
	return status;
}

/* The label of an example in the form that the head learns: for classes its id (-1: unknown), else values. */
static enum status read_label(const struct task_state *state, const struct example_text *example, bool known, int32_t *class_id,
			      float *values)
{
	*class_id = -1;
	if (state->task->target == TARGET_CLASS) {
		int64_t id = -1;
		if (known)
			TRY(label_set_id(&state->labels, example->label, example->file, example->line, &id));
		*class_id = (int32_t)id;
		return OK;
	}
	if (state->task->target == TARGET_NUMBER) {
		double number = 0;
		values[0] = 0;
		if (known)
			TRY(label_number(example->label, example->file, example->line, &number));
		values[0] = (float)number;
		return OK;
	}
	struct string_store store = {0};
	const char **names = NULL;
	int64_t count = 0;
	enum status status = OK;
	memset(values, 0, (size_t)state->labels.count * sizeof *values);
	if (known)
		status = split_labels(state, example, &store, &names, &count);
	for (int64_t k = 0; k < count && status == OK; k++) {
		int64_t id;
		status = label_set_id(&state->labels, names[k], example->file, example->line, &id);
		if (status == OK)
			values[id] = 1;
	}
	free(names);
	string_store_release(&store);
	return status;
}

static enum status add_label(const struct task_state *state, struct task_set *set, bool known, const int32_t *rows,
			     int32_t class_id, const float *values, float share)
{
	if (state->task->target != TARGET_CLASS)
		return labeled_item(&set->encoded, 0, rows, NULL, values, known ? share : 0);
	float weight = class_id < 0 ? 0 : state->label_weights && set->use == TASK_TRAIN ? state->label_weights[class_id] : 1;
	return labeled_item(&set->encoded, 0, rows, &class_id, NULL, weight * share);
}

struct encoding {
	struct task_state *state;
	struct task_set *set;
	int32_t row_width;
	example_encoder *encode;
	void *context; /* of `encode` */
	float *values; /* room for an example's label */
	int64_t window_capacity;
};

/* Notes that a text's examples end here. */
static enum status end_windows(struct encoding *e)
{
	struct task_set *set = e->set;
	if (e->state->settings.long_texts <= WINDOWS_NONE)
		return OK;
	TRY(memory_grow(&set->windows, &e->window_capacity, set->answer_count + 2, sizeof *set->windows, "windows"));
	set->windows[0] = 0;
	set->windows[++set->answer_count] = set->encoded.example_count;
	return OK;
}

static enum status add_example(void *context, int64_t number)
{
	struct encoding *e = context;
	struct task_set *set = e->set;
	struct example_text *example = &set->examples.examples[number];
	bool known = set->has_labels && example->label;
	struct encoded_example encoded = {0};
	int32_t class_id;
	enum status status = read_label(e->state, example, known, &class_id, e->values);
	if (status == ERR_DATA && example_may_be_header(&set->examples, number))
		example_hint_at_header(&set->examples, number);
	TRY(task_label_read(set, number, status));
	known = known && example->label;
	for (int64_t window = 0; window == 0 || window < encoded.windows; window++) {
		TRY(e->encode(e->context, e->state, &set->examples, number, window, &encoded));
		TRY(labeled_begin(&set->encoded));
		TRY(labeled_sequence(&set->encoded, encoded.ids, encoded.count, encoded.second));
		set->cut_count += encoded.cut > 0;
		set->cut_tokens += encoded.cut;
		/* All windows of a text count as one example. */
		float share = encoded.windows > 1 ? 1 / (float)encoded.windows : 1;
		TRY(add_label(e->state, set, known, e->row_width > 0 ? encoded.rows : NULL, class_id, e->values, share));
	}
	return end_windows(e);
}

enum status classification_encode(struct task_state *state, struct task_set *set, int32_t row_width, example_encoder *encode,
				  void *context)
{
	int32_t width = state->task->target == TARGET_CLASSES ? (int32_t)state->labels.count : 1;
	struct encoding e = {.state = state, .set = set, .row_width = row_width, .encode = encode, .context = context};
	TRY(memory_new(&e.values, width, sizeof *e.values, "labels"));
	labeled_form(&set->encoded, 0, width, row_width, state->task->target != TARGET_CLASS);
	enum status status = task_add_examples(state, set, add_example, &e);
	free(e.values);
	return status;
}

/* Scratch memory for encoding texts and pairs. */
struct text_encoder {
	struct tokens scratch[2];
	int32_t *ids; /* [max_seq_length] */
};

/* One of several windows on the text that was tokenized for the first of them. */
static void encode_window(struct text_encoder *encoder, const struct task_state *state, const struct text_windows *windows,
			  int64_t window, bool paired, struct encoded_text *out)
{
	struct tokens first = encoder->scratch[0], last = encoder->scratch[paired];
	first.count = windows->kept;
	last.ids += window * windows->stride;
	last.count -= window * windows->stride;
	last.count = last.count < windows->room ? last.count : windows->room;
	task_join_tokens(tokenizer_vocab(state->settings.tokenizer), paired ? &first : &last, paired ? &last : NULL,
			 state->settings.max_seq_length, encoder->ids, out);
}

static enum status encode_text(void *context, const struct task_state *state, const struct example_set *examples, int64_t number,
			       int64_t window, struct encoded_example *out)
{
	struct text_encoder *encoder = context;
	const struct example_text *example = &examples->examples[number];
	const struct vocab *vocab = tokenizer_vocab(state->settings.tokenizer);
	struct encoded_text text;
	if (window == 0)
		TRY(task_encode_text(state->settings.tokenizer, encoder->scratch, example->text, example->pair,
				     state->settings.max_seq_length, encoder->ids, &text));
	int64_t first = encoder->scratch[0].count, last = encoder->scratch[example->pair != NULL].count;
	int64_t room = state->settings.max_seq_length - template_size(example->pair ? &vocab->pair : &vocab->single);
	struct text_windows windows = windows_find(state, example->pair ? first : -1, last, room);
	if (windows.room > 0) {
		encode_window(encoder, state, &windows, window, example->pair != NULL, &text);
		text.cut = window == 0 && example->pair ? (int32_t)(first - windows.kept) : 0;
	}
	*out = (struct encoded_example){
		.ids = encoder->ids, .count = text.count, .second = text.second, .cut = text.cut, .windows = windows.count};
	return OK;
}

static enum status encode_texts(struct task_state *state, struct task_set *set)
{
	struct text_encoder encoder = {0};
	TRY(memory_new(&encoder.ids, state->settings.max_seq_length, sizeof *encoder.ids, "a text's tokens"));
	enum status status = classification_encode(state, set, 0, encode_text, &encoder);
	tokens_release(&encoder.scratch[0]);
	tokens_release(&encoder.scratch[1]);
	free(encoder.ids);
	return status;
}

/* ---- The head ---- */

static void classification_heads(const struct task_state *state, struct model_heads *out)
{
	enum task_target target = state->task->target;
	enum classifier_pooling pooling = state->own ? own_of(state)->classifier_pooling : CLASSIFIER_OPEN;
	bool pooled = pooling < CLASSIFIER_MEAN;
	*out = (struct model_heads){.architecture = "BertForSequenceClassification", .pooler = pooled, .count = 1};
	if (!pooled)
		snprintf(out->architecture, sizeof out->architecture, "BertForPooledClassification");
	out->head[0] = (struct head){
		.input = INPUT_FIRST_ROW,
		.pooling = pooling == CLASSIFIER_MEAN ? POOLING_MEAN : 0,
		.pooled = pooled,
		.drops = true,
		.outputs = target == TARGET_NUMBER ? 1 : (int32_t)state->labels.count,
		.loss = target == TARGET_NUMBER    ? LOSS_SQUARED
			: target == TARGET_CLASSES ? LOSS_BINARY
						   : LOSS_CLASSES,
		.coefficient = 1,
		.positive_weights = target == TARGET_CLASSES ? state->label_weights : NULL,
		.name = "classifier",
	};
}

/* ---- Scores ---- */

/* Which classes were predicted for which. To be released also after a failure. */
static enum status count_classes(const struct task_state *state, const struct task_set *set, const struct task_outputs *outputs,
				 struct confusion *out)
{
	int32_t *predicted = NULL, *gold = NULL;
	enum status status;
	TRY_GOTO(memory_new(&predicted, outputs->count, sizeof *predicted, "predictions"), done);
	TRY_GOTO(memory_new(&gold, outputs->count, sizeof *gold, "predictions"), done);
	for (int64_t i = 0; i < outputs->count; i++) {
		predicted[i] = task_class(state, task_output(outputs, i));
		gold[i] = set->encoded.items[0].classes[task_example_of(set, i)];
	}
	status = confusion_make(out, (int32_t)state->labels.count, gold, predicted, outputs->count);
done:
	free(predicted);
	free(gold);
	return status;
}

enum status classification_score(const struct task_state *state, const struct task_set *set, const struct task_outputs *outputs,
				 struct measures *out)
{
	int64_t count = outputs->count, classes = state->labels.count;
	int32_t *positive = NULL;
	double *scores = NULL, *shares = NULL;
	struct confusion confusion = {0};
	const int32_t *gold = set->encoded.items[0].classes;
	enum status status;
	TRY_GOTO(memory_new(&positive, count, sizeof *positive, "predictions"), done);
	TRY_GOTO(memory_new(&scores, count, sizeof *scores, "predictions"), done);
	TRY_GOTO(memory_new(&shares, classes, sizeof *shares, "predictions"), done);
	for (int64_t i = 0; i < count; i++) {
		const float *logits = task_output(outputs, i);
		task_shares(state, logits, shares);
		positive[i] = gold[task_example_of(set, i)] == 1;
		scores[i] = classes == 2 ? shares[1] : 0;
	}
	TRY_GOTO(count_classes(state, set, outputs, &confusion), done);
	measure_classes(&confusion, negative_class(state), out);
	if (classes == 2)
		TRY_GOTO(measure_auc(scores, positive, count, out), done);
	status = calibration_measures(state, set, outputs, out);
done:
	confusion_release(&confusion);
	free(positive);
	free(scores);
	free(shares);
	return status;
}

static enum status score_numbers(const struct task_state *state, const struct task_set *set, const struct task_outputs *outputs,
				 struct measures *out)
{
	double *gold = NULL, *predicted = NULL;
	enum status status;
	(void)state;
	TRY_GOTO(memory_new(&gold, outputs->count, sizeof *gold, "predictions"), done);
	TRY_GOTO(memory_new(&predicted, outputs->count, sizeof *predicted, "predictions"), done);
	for (int64_t i = 0; i < outputs->count; i++) {
		gold[i] = set->encoded.items[0].numbers[task_example_of(set, i)];
		predicted[i] = task_output(outputs, i)[0];
	}
	status = measure_values(gold, predicted, outputs->count, out);
done:
	free(gold);
	free(predicted);
	return status;
}

static enum status measure_labels(const struct task_state *state, const struct task_set *set, const struct task_outputs *outputs,
				  struct class_score *per_label, struct measures *out)
{
	int64_t all = outputs->count * state->labels.count;
	uint8_t *gold = NULL, *predicted = NULL;
	enum status status;
	TRY_GOTO(memory_new(&gold, all, 1, "predictions"), done);
	TRY_GOTO(memory_new(&predicted, all, 1, "predictions"), done);
	for (int64_t i = 0; i < all; i++) {
		int64_t label = i % state->labels.count, example = task_example_of(set, i / state->labels.count);
		gold[i] = set->encoded.items[0].numbers[example * state->labels.count + label] > 0.5f;
		predicted[i] = task_has_label(state, outputs->values + i - label, label);
	}
	status = measure_multilabel(gold, predicted, outputs->count, (int32_t)state->labels.count, per_label, out);
done:
	free(gold);
	free(predicted);
	return status;
}

static enum status score_labels(const struct task_state *state, const struct task_set *set, const struct task_outputs *outputs,
				struct measures *out)
{
	TRY(measure_labels(state, set, outputs, NULL, out));
	return calibration_measures(state, set, outputs, out);
}

/* Room for a score of each label. */
static enum status label_scores_make(const struct task_state *state, struct class_scores *out)
{
	*out = (struct class_scores){.count = 0};
	TRY(memory_new(&out->names, state->labels.count, sizeof *out->names, "scores of labels"));
	TRY(memory_new(&out->scores, state->labels.count, sizeof *out->scores, "scores of labels"));
	for (; out->count < state->labels.count; out->count++)
		out->names[out->count] = state->labels.labels[out->count].name;
	return OK;
}

enum status classification_score_classes(const struct task_state *state, const struct task_set *set,
					 const struct task_outputs *outputs, struct class_scores *out)
{
	struct confusion confusion = {0};
	enum status status;
	TRY_GOTO(label_scores_make(state, out), failed);
	TRY_GOTO(count_classes(state, set, outputs, &confusion), failed);
	for (int32_t i = 0; i < out->count; i++)
		out->scores[i] = confusion_class(&confusion, i);
	confusion_release(&confusion);
	return OK;
failed:
	confusion_release(&confusion);
	class_scores_release(out);
	return status;
}

static enum status score_each_label(const struct task_state *state, const struct task_set *set,
				    const struct task_outputs *outputs, struct class_scores *out)
{
	struct measures measures = {0};
	enum status status = label_scores_make(state, out);
	if (status == OK)
		status = measure_labels(state, set, outputs, out->scores, &measures);
	if (status != OK)
		class_scores_release(out);
	return status;
}

/* ---- Results ---- */

/* Name of the file that GLUE's server accepts for the set; NULL: there is none. */
static const char *submission_of(const struct task_state *state, const struct task_set *set)
{
	const struct layout *layout = state->settings.layout;
	for (int i = 0; layout && i < 2 && layout->test[i].name; i++)
		if (strcmp(layout->test[i].name, set->name) == 0)
			return layout->test[i].submission;
	return NULL;
}

static enum status write_submission(const struct task_state *state, const struct task_set *set,
				    const struct task_outputs *outputs, const char *folder)
{
	char path[PATH_BYTES];
	const char *name = submission_of(state, set), **ids = NULL, **labels = NULL;
	bool has_ids = set->examples.has_ids;
	enum status status = OK;
	if (!name || state->task->target == TARGET_CLASSES)
		return OK;
	TRY_GOTO(path_join(path, folder, name), done);
	TRY_GOTO(memory_new(&ids, outputs->count, sizeof *ids, "results"), done);
	TRY_GOTO(memory_new(&labels, outputs->count, sizeof *labels, "results"), done);
	for (int64_t i = 0; i < outputs->count; i++) {
		ids[i] = set->examples.examples[i].id;
		has_ids = has_ids && ids[i];
		if (state->task->target == TARGET_CLASS)
			labels[i] = state->labels.labels[task_best(task_output(outputs, i), state->labels.count)].name;
	}
	status = state->task->target == TARGET_CLASS
			 ? results_write_submission(path, has_ids ? ids : NULL, labels, outputs->count)
			 : results_write_submitted_numbers(path, has_ids ? ids : NULL, outputs->values, outputs->count);
done:
	free(ids);
	free(labels);
	return status;
}

static int64_t value_count(const struct task_state *state)
{
	return state->task->target == TARGET_NUMBER ? 1 : state->labels.count;
}

/* What test_results.tsv has of an example: the probability of each class or label, or the number. `shares` is scratch space of
 * value_count() numbers. */
static void find_values(const struct task_state *state, const float *own, double *shares, float *out)
{
	if (state->task->target != TARGET_NUMBER)
		task_shares(state, own, shares);
	for (int64_t k = 0; k < value_count(state); k++)
		out[k] = state->task->target == TARGET_NUMBER ? own[k] : (float)shares[k];
}

enum status classification_put_tsv(const struct task_state *state, const struct task_set *set, const struct task_outputs *outputs,
				   int64_t example, struct buffer *out)
{
	double *shares = NULL;
	float *values = NULL;
	enum status status;
	(void)set;
	TRY_GOTO(memory_new(&shares, value_count(state), sizeof *shares, "probabilities"), done);
	TRY_GOTO(memory_new(&values, value_count(state), sizeof *values, "probabilities"), done);
	find_values(state, task_output(outputs, example), shares, values);
	results_put_values(out, values, value_count(state));
	status = buffer_status(out);
done:
	free(shares);
	free(values);
	return status;
}

enum status classification_write(const struct task_state *state, const struct task_set *set, const struct task_outputs *outputs,
				 const char *folder)
{
	char path[PATH_BYTES];
	int64_t width = value_count(state);
	float *values = NULL;
	int32_t *classes = NULL;
	double *shares = NULL;
	enum status status;
	TRY_GOTO(memory_new(&values, outputs->count * width, sizeof *values, "results"), done);
	TRY_GOTO(memory_new(&classes, outputs->count, sizeof *classes, "results"), done);
	TRY_GOTO(memory_new(&shares, width, sizeof *shares, "results"), done);
	for (int64_t i = 0; i < outputs->count; i++) {
		const float *own = task_output(outputs, i);
		classes[i] = state->task->target == TARGET_CLASS ? task_class(state, own) : 0;
		find_values(state, own, shares, values + i * width);
	}
	TRY_GOTO(path_join(path, folder, "test_results.tsv"), done);
	TRY_GOTO(results_write_values(path, values, outputs->count, width), done);
	if (state->task->target == TARGET_CLASS) {
		TRY_GOTO(path_join(path, folder, "predict.txt"), done);
		TRY_GOTO(results_write_classes(path, classes, outputs->count), done);
	}
	status = write_submission(state, set, outputs, folder);
done:
	free(values);
	free(classes);
	free(shares);
	return status;
}

/* The name of a class, or null. */
static void put_label(const struct task_state *state, int32_t class_id, struct json_writer *writer)
{
	if (class_id < 0)
		json_put_null(writer, "label");
	else
		json_put_string(writer, "label", state->labels.labels[class_id].name);
}

enum status classification_put(const struct task_state *state, const struct task_set *set, const struct task_outputs *outputs,
			       int64_t example, struct buffer *out)
{
	const float *own = task_output(outputs, example);
	const struct label_set *labels = &state->labels;
	struct json_writer writer = {.out = out};
	double *shares = NULL;
	json_open(&writer, NULL, '{');
	example_put_id(&set->examples, example, &writer);
	if (state->task->target == TARGET_NUMBER) {
		json_put_double(&writer, "value", own[0]);
		json_close(&writer);
		return buffer_status(out);
	}
	TRY(memory_new(&shares, labels->count, sizeof *shares, "probabilities"));
	task_shares(state, own, shares);
	if (state->task->target == TARGET_CLASS) {
		put_label(state, task_class(state, own), &writer);
	} else {
		json_open(&writer, "labels", '[');
		for (int64_t i = 0; i < labels->count; i++)
			if (task_has_label(state, own, i))
				json_put_string(&writer, NULL, labels->labels[i].name);
		json_close(&writer);
	}
	json_open(&writer, "probabilities", '{');
	for (int64_t i = 0; i < labels->count; i++)
		json_put_double(&writer, labels->labels[i].name, shares[i]);
	json_close(&writer);
	json_close(&writer);
	free(shares);
	return buffer_status(out);
}

enum status classification_put_pipeline(const struct task_state *state, const struct task_set *set,
					const struct task_outputs *outputs, int64_t example, struct buffer *out)
{
	const float *own = task_output(outputs, example);
	const struct label_set *labels = &state->labels;
	struct json_writer writer = {.out = out};
	double *shares = NULL;
	bool chooses = task_chooses_answers(state), is_number = state->task->target == TARGET_NUMBER;
	int32_t answer = is_number ? 0 : chooses ? task_class(state, own) : task_best(own, labels->count);
	(void)set;
	TRY(memory_new(&shares, value_count(state), sizeof *shares, "probabilities"));
	if (!is_number)
		task_shares(state, own, shares);
	json_open(&writer, NULL, '[');
	for (int64_t i = 0; i < value_count(state); i++) {
		if (chooses && state->task->target == TARGET_CLASSES ? !task_has_label(state, own, i) : i != answer)
			continue;
		json_open(&writer, NULL, '{');
		json_put_string(&writer, "label", labels->count > 0 ? labels->labels[i].name : "LABEL_0");
		json_put_double(&writer, "score", is_number ? own[0] : shares[i]);
		json_close(&writer);
	}
	json_close(&writer);
	free(shares);
	return buffer_status(out);
}

/* ---- The records ---- */

static void put_pooling(const void *own, struct json_writer *writer)
{
	const struct classification_settings *settings = own;
	if (settings->classifier_pooling >= CLASSIFIER_MEAN)
		json_put_string(writer, "classifier_pooling", poolings[settings->classifier_pooling]);
}

static enum status read_pooling(const struct json *record, const char *name, void *own)
{
	struct classification_settings *settings = own;
	const char *pooling = poolings[CLASSIFIER_POOLER];
	TRY(json_get_string(record, name, "classifier_pooling", &pooling));
	for (size_t i = CLASSIFIER_POOLER; i < sizeof poolings / sizeof *poolings; i++)
		if (strcmp(pooling, poolings[i]) == 0) {
			settings->classifier_pooling = (enum classifier_pooling)i;
			return OK;
		}
	return error_set(ERR_DATA, "'%s': unknown \"classifier_pooling\" '%.40s'", name, pooling);
}

static const char *const classification_options[] = {"few_shot", "classifier_pooling", NULL};

const struct task task_classification = {
	.name = "classification",
	/* "pair": two texts instead of one, which the files show */
	.other_names =
		(const char *const[]){"pair", "text-classification", "sequence-classification", "sentiment-analysis", NULL},
	.summary = "one class for each text or pair of texts",
	.architecture = "BertForSequenceClassification",
	.problem_type = "single_label_classification",
	.input = TASK_INPUT_TEXT,
	.target = TARGET_CLASS,
	.decides = "accuracy",
	.view = VIEW_CLASSES,
	.streams = true,
	.weighs_classes = true,
	.calibrates = true,
	.tunes = calibration_tunes,
	.tune = calibration_tune,
	.reads_windows = true,
	.read = classification_read,
	.take = task_take_texts,
	.encode = encode_texts,
	.heads = classification_heads,
	.score = classification_score,
	.baseline = words_alone,
	.score_classes = classification_score_classes,
	.write = classification_write,
	.put = classification_put,
	.put_tsv = classification_put_tsv,
	.put_pipeline = classification_put_pipeline,
	.exclusive = classification_options,
	.settings_bytes = sizeof(struct classification_settings),
	.options = classification_rows,
	.put_record = put_pooling,
	.read_record = read_pooling,
};

const struct task task_regression = {
	.name = "regression",
	.summary = "a number for each text or pair of texts",
	.architecture = "BertForSequenceClassification",
	.problem_type = "regression",
	.input = TASK_INPUT_TEXT,
	.target = TARGET_NUMBER,
	.decides = "spearmanr",
	.view = VIEW_NUMBERS,
	.streams = true,
	.reads_windows = true,
	.read = classification_read,
	.take = task_take_texts,
	.encode = encode_texts,
	.heads = classification_heads,
	.score = score_numbers,
	.baseline = words_alone,
	.write = classification_write,
	.put = classification_put,
	.put_tsv = classification_put_tsv,
	.put_pipeline = classification_put_pipeline,
};

/* How cells separate several labels. */
static const char *const label_cells[] = {[CELLS_COMMA] = "comma",
					  [CELLS_BAR] = "bar",
					  [CELLS_SEMICOLON] = "semicolon",
					  [CELLS_LIST] = "json",
					  [CELLS_FLAGS] = "flags"};

static void put_label_cells(const void *own, struct json_writer *writer)
{
	const struct classification_settings *settings = own;
	json_put_string(writer, "label_cells", label_cells[settings->cells]);
	put_pooling(own, writer);
}

static enum status read_label_cells(const struct json *record, const char *name, void *own)
{
	struct classification_settings *settings = own;
	const char *form = label_cells[settings->cells];
	TRY(read_pooling(record, name, own));
	TRY(json_get_string(record, name, "label_cells", &form));
	for (int i = CELLS_COMMA; i <= CELLS_FLAGS; i++)
		if (strcmp(form, label_cells[i]) == 0) {
			settings->cells = (enum label_cells)i;
			return OK;
		}
	return error_set(ERR_DATA, "'%s': unknown \"label_cells\" '%.40s'", name, form);
}

const struct task task_multilabel = {
	.name = "multilabel",
	.other_names = (const char *const[]){"multi-label-classification", NULL},
	.summary = "any number of labels for each text or pair of texts",
	.architecture = "BertForSequenceClassification",
	.problem_type = "multi_label_classification",
	.input = TASK_INPUT_TEXT,
	.target = TARGET_CLASSES,
	.decides = "f1_micro",
	.view = VIEW_LABELS,
	.streams = true,
	.calibrates = true,
	.tunes = calibration_tunes,
	.tune = calibration_tune,
	.reads_windows = true,
	.weighs_classes = true,
	.read = classification_read,
	.take = task_take_texts,
	.encode = encode_texts,
	.heads = classification_heads,
	.score = score_labels,
	.baseline = words_alone,
	.score_classes = score_each_label,
	.write = classification_write,
	.put = classification_put,
	.put_tsv = classification_put_tsv,
	.put_pipeline = classification_put_pipeline,
	.exclusive = classification_options,
	.settings_bytes = sizeof(struct classification_settings),
	.options = classification_rows,
	.put_record = put_label_cells,
	.read_record = read_label_cells,
};
