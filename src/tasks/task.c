/* The table of tasks, and what all tasks share: finding one by name, its state, its sets, and its windows. */
#include "tasks/task.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "base/option.h"

static const struct task *const tasks[] = {&task_classification, &task_regression, &task_multilabel, &task_choice,
					   &task_tagging,        &task_squad,      &task_relation,   &task_embedding,
					   &task_reranking,      &task_rewriting};
#define TASK_COUNT ((int)(sizeof tasks / sizeof tasks[0]))

const struct task *const *tasks_all(int *count)
{
	*count = TASK_COUNT;
	return tasks;
}

/* The kind of a published task. */
static const struct task *task_of_layout(const struct layout *layout)
{
	if (layout->relates)
		return &task_relation;
	switch (layout->target) {
	case TARGET_NUMBER: return &task_regression;
	case TARGET_CLASSES: return &task_multilabel;
	case TARGET_CHOICE: return &task_choice;
	case TARGET_CLASS:
	case TARGET_PARTS: break;
	}
	return &task_classification;
}

/* Names that may mean several tasks here, or none, and what to do. */
static const struct {
	const char *name, *hint;
} unclear_names[] = {
	{"similarity", "--task embedding learns vectors to compare, and --task sts-b or regression a number for a pair of texts"},
	{"feature-extraction", "`bertc embed` makes vectors with any model; --task embedding trains one for that"},
	{"nli", "give --task mnli for its files, and --task classification for others"},
	{"fill-mask", "`bertc pretrain` trains on masked words, and `bertc fill` guesses them"},
	{"masked-lm", "`bertc pretrain` trains on masked words"},
	{"mlm", "`bertc pretrain` trains on masked words"},
};
#define UNCLEAR_COUNT ((int)(sizeof unclear_names / sizeof unclear_names[0]))

/* The error that suggests the task with the nearest name or, if none is near, lists all. */
static enum status no_such_task(const char *name)
{
	enum { MOST = 64 };
	struct buffer list = {0};
	int layout_count, count = 0;
	const struct layout *layouts = layouts_all(&layout_count);
	const char *names[MOST], *near, *hint = NULL;
	for (int i = 0; i < TASK_COUNT; i++)
		names[count++] = tasks[i]->name;
	names[count++] = "pair"; /* of the other names, the one that the help lists */
	int own = count;
	for (int i = 0; i < layout_count && count < MOST; i++)
		names[count++] = layouts[i].name;
	for (int i = 0; i < count; i++)
		buffer_format(&list, "%s%s", i == 0 ? "" : i == own ? "; or a published task: " : ", ", names[i]);
	for (int i = 0; i < TASK_COUNT; i++)
		for (const char *const *other = tasks[i]->other_names; other && *other && count < MOST; other++)
			names[count++] = *other;
	near = nearest_name(name, names, count);
	for (int i = 0; i < UNCLEAR_COUNT && !hint; i++)
		hint = layout_same_name(unclear_names[i].name, name) ? unclear_names[i].hint : NULL;
	enum status status = error_set(ERR_USAGE, "--task %s: there is no such task", name);
	if (hint)
		error_hint("%s", hint);
	else if (near)
		error_hint("did you mean %s? `bertc help finetune` lists the tasks", near);
	else
		error_hint("tasks are: %s", buffer_string(&list));
	buffer_release(&list);
	return status;
}

void task_keep_first(const struct task_state *state, struct task_set *set, const char *const *paths, int64_t count)
{
	int64_t most = state->settings.most, all;
	char kept[FORMAT_BYTES], number[FORMAT_BYTES];
	const char *others = count > 1 ? " and the other files" : "";
	if (most == 0)
		return;
	all = state->task->keep ? state->task->keep(set, most) : set->examples.count;
	if (all <= most)
		return;
	if (!state->task->keep)
		set->examples.count = most;
	format_count(number, all);
	if (most == 1)
		log_note("'%s'%s: only the first of %s is used", paths[0], others, number);
	else
		log_note("'%s'%s: only the first %s of %s are used", paths[0], others, format_count(kept, most), number);
}

enum status task_warn_of_trained(const struct row_hashes *trained, const struct task_set *set, const char *what)
{
	char found[FORMAT_BYTES], all[FORMAT_BYTES];
	struct row_matches matches;
	const char *sample = trained->limit != UINT64_MAX ? "a sample of " : "";
	TRY(row_hashes_count(&matches, trained, &set->encoded));
	if (matches.found > 0)
		log_warning(
			"%s of %s examples of %s%s are in the training files as well: their scores say little about new texts",
			format_count(found, matches.found), format_count(all, matches.examined), sample, what);
	if (matches.swapped > 0)
		log_warning(
			"%s of %s pairs of %s%s are in the training files with their texts swapped: their scores may say little "
			"about new texts",
			format_count(found, matches.swapped), format_count(all, matches.swap_examined), sample, what);
	return OK;
}

bool task_is_labeled(const struct task_set *set)
{
	const struct labeled_items *items = &set->encoded.items[0];
	bool differ = false;
	for (int64_t i = 0; i < set->examples.count; i++)
		if (!set->examples.examples[i].label)
			return false;
	for (int64_t i = items->width; i < items->count * items->width && !differ; i++)
		differ = items->values ? items->numbers[i] != items->numbers[i - items->width]
				       : items->classes[i] != items->classes[i - items->width];
	return set->has_labels && differ;
}

enum status task_put(const struct task_state *state, enum answer_form form, const struct task_set *set,
		     const struct task_outputs *outputs, int64_t example, struct buffer *out)
{
	const struct task *task = state->task;
	TRY((form == ANSWER_JSONL ? task->put
	     : form == ANSWER_TSV ? task->put_tsv
				  : task->put_pipeline)(state, set, outputs, example, out));
	buffer_char(out, '\n');
	return OK;
}

enum status task_find(const char *name, const struct task **out, const struct layout **out_layout)
{
	*out_layout = layout_find(name);
	if (*out_layout) {
		*out = task_of_layout(*out_layout);
		return OK;
	}
	for (int i = 0; i < TASK_COUNT; i++) {
		bool found = layout_same_name(tasks[i]->name, name);
		for (const char *const *other = tasks[i]->other_names; other && *other && !found; other++)
			found = layout_same_name(*other, name);
		if (found) {
			*out = tasks[i];
			return OK;
		}
	}
	return no_such_task(name);
}

bool task_needs_pairs(const char *name, const struct layout *layout)
{
	return layout_same_name("pair", name) || (layout && layout->input == TASK_INPUT_PAIR);
}

const struct task *task_of_architecture(const char *architecture, const char *problem_type, int32_t outputs)
{
	/* For a single output transformers applies the sigmoid unless a problem type says otherwise: that is a cross-encoder. */
	if (architecture && !problem_type && outputs == 1 && strcmp(architecture, task_reranking.architecture) == 0)
		return &task_reranking;
	for (int i = 0; architecture && i < TASK_COUNT; i++) {
		bool same = !tasks[i]->loss && strcmp(tasks[i]->architecture, architecture) == 0;
		/* Only classification has several problem types; for other tasks, config.json's means nothing. */
		bool typed = !problem_type || !tasks[i]->problem_type || strcmp(problem_type, tasks[i]->problem_type) == 0;
		if (same && typed)
			return tasks[i];
	}
	return NULL;
}

const struct task *task_of_vectors(void)
{
	for (int i = 0; i < TASK_COUNT; i++)
		if (tasks[i]->makes_vectors)
			return tasks[i];
	return NULL;
}

void task_set_release(const struct task_state *state, struct task_set *set)
{
	if (set->own && state->task->close_set)
		state->task->close_set(set);
	labeled_release(&set->encoded);
	example_set_release(&set->examples);
	free(set->windows);
	*set = (struct task_set){0};
}

enum status task_state_open(struct task_state *state, const struct task *task, const void *own)
{
	state->task = task;
	if (task->settings_bytes == 0)
		return OK;
	TRY(memory_new(&state->own, 1, (int64_t)task->settings_bytes, "the settings of a task"));
	if (own)
		memcpy(state->own, own, task->settings_bytes);
	return OK;
}

void task_state_release(struct task_state *state)
{
	label_set_release(&state->labels);
	free(state->label_weights);
	row_hashes_release(&state->trained_rows);
	calibration_release(&state->calibration);
	free(state->own);
	*state = (struct task_state){0};
}

enum status task_state_labels(struct task_state *state, const char *const *names, int64_t count)
{
	struct label_rules rules = {.given = {names, count}, .allow_one = true, .no_warnings = true};
	for (int64_t i = 0; i < count; i++)
		TRY(label_set_add(&state->labels, names[i], "config.json", 0));
	return count > 0 ? label_set_order(&state->labels, &rules) : OK;
}

/* The number of values that a head outputs for an example. */
static int64_t output_count(const struct labeled_set *set, const struct head *head, int64_t example)
{
	int64_t items = set->examples[example + 1] - set->examples[example]; /* for first rows and pooled rows */
	if (head->input == INPUT_ALL_ROWS)
		items = labeled_tokens(set, example);
	else if (head->input == INPUT_CHOSEN_ROWS)
		items = set->items[0].starts[example + 1] - set->items[0].starts[example];
	return items * head->outputs;
}

size_t task_outputs_bytes(const struct labeled_set *set, const struct head *head)
{
	int64_t count = 0;
	for (int64_t e = 0; e < set->example_count; e++)
		count += output_count(set, head, e);
	return (size_t)count * sizeof(float);
}

enum status task_outputs_create(struct task_outputs *out, const struct labeled_set *set, const struct head *head)
{
	enum status status;
	*out = (struct task_outputs){.count = set->example_count};
	TRY(memory_new(&out->starts, set->example_count + 1, sizeof *out->starts, "outputs"));
	for (int64_t e = 0; e < set->example_count; e++)
		out->starts[e + 1] = out->starts[e] + output_count(set, head, e);
	status = memory_new(&out->values, out->starts[set->example_count], sizeof *out->values, "outputs");
	if (status != OK)
		task_outputs_release(out);
	return status;
}

void task_outputs_release(struct task_outputs *outputs)
{
	free(outputs->starts);
	free(outputs->values);
	*outputs = (struct task_outputs){0};
}

void task_cut_pair(int64_t *a, int64_t *b, int64_t room)
{
	int64_t *shorter = *a <= *b ? a : b, *longer = *a <= *b ? b : a;
	if (*a + *b <= room)
		return;
	*shorter = smaller(*shorter, room / 2);
	*longer = room - *shorter;
}

void task_join_tokens(const struct vocab *vocab, const struct tokens *text, const struct tokens *pair, int32_t most, int32_t *ids,
		      struct encoded_text *out)
{
	const struct token_template *template = pair ? &vocab->pair : &vocab->single;
	int64_t a = text->count, b = pair ? pair->count : 0, room = most - template_size(template), all = a + b;
	BUG_IF(room < 0);
	task_cut_pair(&a, &b, room);
	out->count = template_join(template, text->ids, a, pair ? pair->ids : NULL, b, ids);
	out->second = template_type_0(template, a, b);
	out->cut = (int32_t)(all - a - b);
}

enum status task_encode_text(const struct tokenizer *tokenizer, struct tokens scratch[2], const char *text, const char *pair,
			     int32_t most, int32_t *ids, struct encoded_text *out)
{
	tokens_clear(&scratch[0]);
	tokens_clear(&scratch[1]);
	TRY(tokenizer_encode(tokenizer, text, strlen(text), &scratch[0]));
	if (pair)
		TRY(tokenizer_encode(tokenizer, pair, strlen(pair), &scratch[1]));
	task_join_tokens(tokenizer_vocab(tokenizer), &scratch[0], pair ? &scratch[1] : NULL, most, ids, out);
	return OK;
}

enum status task_read_tables(struct task_state *state, struct task_set *set, const char *const *paths, int64_t count)
{
	const struct task_settings *settings = &state->settings;
	struct example_options options = {
		.input = settings->needs_pairs && state->task->input == TASK_INPUT_TEXT ? TASK_INPUT_PAIR : state->task->input,
		.target = state->task->target,
		.layout = settings->layout,
		.given = settings->columns,
		.trained = settings->trained,
		.needs_labels = set->use != TASK_PREDICT,
		.relates = state->task->relates,
		.allows_empty = set->use == TASK_PREDICT,
		.bad = settings->bad,
		.piece = settings->piece,
	};
	for (int64_t i = 0; i < count; i++)
		TRY(example_set_read(&set->examples, paths[i], &options));
	set->has_labels = set->examples.has_labels;
	if (set->examples.count == 0 && set->use != TASK_PREDICT)
		return error_hinted(error_set(ERR_DATA, "'%s': there are no examples", count > 0 ? paths[0] : ""),
				    "a file of examples has a row each, with a text and %s",
				    state->task->view == VIEW_TEXTS ? "what it is to become" : "a label");
	if (set->use == TASK_TRAIN) {
		if (!settings->layout) /* the files of a published task differ by use */
			state->settings.trained = set->examples.columns;
		state->pairs = set->examples.has_pairs || state->task->input == TASK_INPUT_CHOICES;
	}
	return OK;
}

enum status task_take_texts(struct task_state *state, struct task_set *set, const struct task_text *texts, int64_t count)
{
	(void)state;
	set->use = TASK_PREDICT;
	for (int64_t i = 0; i < count; i++)
		TRY(example_set_add(&set->examples, texts[i].text, texts[i].pair));
	return OK;
}

enum status task_label_read(struct task_set *set, int64_t number, enum status status)
{
	struct example_set *examples = &set->examples;
	return example_drop_label(examples, &examples->examples[number], set->use != TASK_PREDICT, status);
}

/* How many texts have several windows. */
static void log_windows(const struct task_state *state, const struct task_set *set)
{
	char all[FORMAT_BYTES], windows[FORMAT_BYTES];
	int64_t texts = task_answers(set), several = 0, examples = 0;
	for (int64_t i = 0; i < texts; i++) {
		int64_t own = set->windows[i + 1] - set->windows[i];
		several += own > 1;
		examples += own > 1 ? own : 0;
	}
	if (several > 0)
		log_note("%lld of %s are longer than %d tokens and are read in %s; the answer is the %s of their outputs",
			 (long long)several, format_counted(all, texts, "text", "texts"), state->settings.max_seq_length,
			 format_counted(windows, examples, "window", "windows"),
			 state->settings.long_texts == WINDOWS_MAX ? "maximum" : "mean");
	if (several > 0 && state->settings.doc_stride > state->settings.max_seq_length)
		log_warning("--doc_stride %lld is more than a window holds: each window begins where the one before it ends",
			    (long long)state->settings.doc_stride);
	if (set->cut_count > 0)
		log_note("the first texts of %lld pairs leave too little room for a window, and are cut to half of it",
			 (long long)set->cut_count);
}

enum status task_add_examples(struct task_state *state, struct task_set *set, task_example_adder *add, void *context)
{
	struct example_set *examples = &set->examples;
	int64_t kept = 0;
	for (int64_t i = 0; i < examples->count; i++) {
		enum status status = add(context, i);
		if (status != OK) {
			TRY(bad_record(state->settings.bad, status));
			continue;
		}
		examples->examples[kept++] = examples->examples[i];
	}
	if (kept == 0 && examples->count > 0 && !state->settings.piece)
		return error_set(ERR_DATA, "'%s': none of its rows can be used", examples->examples[0].file);
	examples->count = kept;
	if (state->settings.quiet)
		return OK;
	if (set->windows)
		log_windows(state, set);
	else
		task_log_cut(set, state->settings.max_seq_length);
	if (kept > 0 && set->cut_count > 0 && !set->windows && state->task->reads_windows)
		log_note("--long_texts mean reads such texts in windows");
	if (kept > 0)
		example_log_unread(&examples->unread, examples->examples[0].file);
	return OK;
}

void task_log_cut(const struct task_set *set, int32_t most)
{
	char count[FORMAT_BYTES];
	const char *all = format_counted(count, set->encoded.example_count, "text", "texts");
	if (set->cut_count == 1)
		log_note("1 of %s is longer than %d tokens and was cut, by %lld; --max_seq_length raises the limit", all, most,
			 (long long)set->cut_tokens);
	else if (set->cut_count > 1)
		log_note("%lld of %s are longer than %d tokens and were cut, by %.0f tokens on average; --max_seq_length raises "
			 "the "
			 "limit",
			 (long long)set->cut_count, all, most, (double)set->cut_tokens / (double)set->cut_count);
}

int32_t task_best(const float *values, int64_t count)
{
	int32_t best = 0;
	for (int32_t i = 1; i < count; i++)
		if (values[i] > values[best])
			best = i;
	return best;
}

void task_probabilities(const float *logits, int64_t count, double *out)
{
	double largest = logits[task_best(logits, count)], sum = 0;
	for (int64_t i = 0; i < count; i++)
		sum += out[i] = exp(logits[i] - largest);
	for (int64_t i = 0; i < count; i++)
		out[i] /= sum;
}

double task_sigmoid(double logit)
{
	return 1 / (1 + exp(-logit));
}

double task_score(const struct task_state *state, double output)
{
	return state->task->output_is_logit && !state->scores_are_outputs ? task_sigmoid(output) : output;
}

/* Reads "balanced", or weights of labels: "a:2,b:1"; labels that are not listed have 1. */
static enum status read_label_weights(struct task_state *state, int64_t examples)
{
	const char *text = state->settings.class_weights;
	int64_t count = state->labels.count, all = 0;
	if (!text)
		return OK;
	TRY(memory_new(&state->label_weights, count, sizeof *state->label_weights, "weights of labels"));
	for (int64_t i = 0; i < count; i++) {
		state->label_weights[i] = 1;
		all += state->labels.labels[i].count;
	}
	if (strcmp(text, "balanced") == 0) {
		bool several = state->task->target == TARGET_CLASSES;
		for (int64_t i = 0; i < count; i++) {
			double own = (double)state->labels.labels[i].count;
			/* as in scikit-learn: n / (classes * n_i); with several labels, examples without it by those with it */
			double weight = several ? ((double)examples - own) / own : (double)all / ((double)count * own);
			if (own > 0 && weight > 0)
				state->label_weights[i] = (float)weight;
		}
		return OK;
	}
	for (int64_t i = 0; i < count; i++)
		state->label_weights[i] = -1; /* not given */
	for (const char *at = text; *at;) {
		size_t length = strcspn(at, ",");
		const char *colon = memrchr(at, ':', length);
		char name[256] = "", *end = NULL;
		double weight = colon ? strtod(colon + 1, &end) : NAN;
		if (colon && (size_t)(colon - at) < sizeof name)
			memcpy(name, at, (size_t)(colon - at));
		int64_t id = colon ? label_set_find(&state->labels, name) : -1;
		if (id < 0 || end != at + length || !(weight >= 0 && weight < 1e6))
			return error_hinted(
				error_set(ERR_USAGE, "--class_weights: '%.*s' is not a label and its weight", (int)length, at),
				"write label:weight,label:weight with labels of the training set, or balanced");
		if (state->label_weights[id] >= 0)
			return error_set(ERR_USAGE, "--class_weights gives '%s' two weights", name);
		state->label_weights[id] = (float)weight;
		at += length + (at[length] == ',');
	}
	for (int64_t i = 0; i < count; i++)
		state->label_weights[i] = state->label_weights[i] < 0 ? 1 : state->label_weights[i];
	return OK;
}

/* If classes have this many examples on average, one with a single example is probably a typo. */
#define USUAL_LEAST 10

/* Warns of labels with a single example: a mistyped label becomes a class of its own, which would go unnoticed. */
static void warn_of_single_labels(const struct task_state *state)
{
	const struct label_set *labels = &state->labels;
	const char *names[64], *near;
	int64_t all = 0, named = 0;
	for (int64_t i = 0; i < labels->count; i++)
		all += labels->labels[i].count;
	for (int64_t i = 0; i < labels->count && named < 64; i++)
		if (labels->labels[i].count >= USUAL_LEAST)
			names[named++] = labels->labels[i].name;
	if (state->task->view == VIEW_ENTITIES || all < USUAL_LEAST * labels->count) /* rare tags are common */
		return;
	for (int64_t i = 0; i < labels->count; i++) {
		const char *name = labels->labels[i].name;
		if (labels->labels[i].count != 1)
			continue;
		near = nearest_name(name, names, named);
		if (near)
			log_warning("the label '%s' has a single example: is it a mistyped '%s'?", name, near);
		else
			log_warning("the label '%s' has a single example, which is too few to learn from", name);
	}
}

/* A file that is sorted by label begins with many examples of one class. */
static void warn_of_one_class(const struct task_state *state)
{
	int64_t classes = 0, only = 0;
	for (int64_t i = 0; i < state->labels.count; i++) {
		classes += state->labels.labels[i].count > 0;
		only = state->labels.labels[i].count > 0 ? i : only;
	}
	if (state->settings.most > 0 && classes == 1 && state->labels.count > 1)
		log_warning("all of the first %lld examples have the label '%s', and nothing else can be learned from them: is "
			    "the file "
			    "sorted? Shuffle it, or raise --max_train_samples",
			    (long long)state->settings.most, state->labels.labels[only].name);
}

static void warn_of_no_weight(const struct task_state *state)
{
	int64_t weighted = 0, only = 0;
	if (!state->label_weights || state->task->target == TARGET_CLASSES)
		return;
	for (int64_t i = 0; i < state->labels.count; i++)
		if (state->label_weights[i] > 0 && state->labels.labels[i].count > 0) {
			weighted++;
			only = i;
		}
	if (weighted == 0)
		log_warning("--class_weights gives every class with examples the weight 0: nothing is learned");
	else if (weighted == 1)
		log_warning("--class_weights gives every class with examples but '%s' the weight 0: nothing else is learned",
			    state->labels.labels[only].name);
}

enum status task_order_labels(struct task_state *state, int64_t examples)
{
	const struct layout *layout = state->settings.layout;
	int64_t named = 0;
	while (layout && named < LAYOUT_NAMES && layout->labels[named])
		named++;
	struct label_rules rules = {
		.given = state->settings.given,
		.folder = state->settings.folder,
		.task = {.names = layout ? layout->labels : NULL, .count = named},
		.task_name = layout ? layout->name : NULL,
		.allow_one = state->task->target == TARGET_CLASSES || state->task->target == TARGET_PARTS,
	};
	struct buffer text = {0};
	TRY(label_set_order(&state->labels, &rules));
	label_set_describe(&state->labels, &text);
	log_note("%s", buffer_string(&text));
	buffer_release(&text);
	warn_of_single_labels(state);
	warn_of_one_class(state);
	TRY(read_label_weights(state, examples));
	warn_of_no_weight(state);
	return OK;
}

const char *task_decides(const struct task_state *state)
{
	if (state->decides)
		return state->decides;
	if (state->settings.layout && state->settings.layout->measures[0])
		return state->settings.layout->measures[0];
	return state->task->decides;
}
