/* Takes a fine-tuning run from the model's folder and the task's files to its objective and its final scores. */
#include "run/labeled_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "model/forms.h"
#include "data/unknown.h"
#include "run/guide_run.h"
#include "run/run_results.h"
#include "tasks/record.h"
#include "base/set_list.h"
#include "train/labeled_report.h"
#include "train/ranks.h"
#include "train/step_vectors.h"

/* ---- The model's folder ---- */

static enum status take_file(const char *given, const char *option, char place[PATH_BYTES])
{
	if (!given)
		return OK;
	if (strlen(given) >= PATH_BYTES)
		return error_set(ERR_USAGE, "--%s: the path is too long", option);
	memcpy(place, given, strlen(given) + 1);
	return OK;
}

/* Files that need not be beside the weights. */
static enum status take_files(struct labeled_run *labeled)
{
	TRY(take_file(labeled->given->config_file, "config_file", labeled->source.config));
	return take_file(labeled->given->vocab_file, "vocab_file", labeled->source.vocab);
}

static void take_case(struct labeled_run *labeled)
{
	struct tokenizer_settings *own = &labeled->tokenizer.settings;
	bool lowercase = !labeled->given->cased;
	if (own->lowercase == lowercase)
		return;
	log_warning("texts %s their upper-case letters, as --cased %s says; '%s' says otherwise", lowercase ? "lose" : "keep",
		    lowercase ? "false" : "true", labeled->source.vocab);
	own->lowercase = own->strip_accents = lowercase;
}

/* Parses --init_layers: a smaller model made of some of the layers. */
static enum status take_layers(struct labeled_run *labeled)
{
	struct model_config *config = &labeled->run->config;
	const char *given = labeled->given->init_layers;
	int32_t count = 0, before = -1;
	labeled->source_layers = config->num_hidden_layers;
	if (!given || !*given || labeled->run->start.resumed)
		return OK;
	TRY(memory_new(&labeled->init_layers, config->num_hidden_layers, sizeof *labeled->init_layers, "layers"));
	for (const char *at = given;; at++) {
		char *end;
		long layer = *at >= '0' && *at <= '9' ? strtol(at, &end, 10) : -1;
		if (layer <= before || layer >= config->num_hidden_layers || (*end && *end != ','))
			return error_hinted(error_set(ERR_USAGE, "--init_layers %s: not ascending layers from 0 to %d", given,
						      config->num_hidden_layers - 1),
					    "write layer numbers as in the names of the weights, separated by commas: 0,2,4");
		labeled->init_layers[count++] = before = (int32_t)layer;
		at = end;
		if (!*at)
			break;
	}
	config->num_hidden_layers = count;
	return OK;
}

static enum status read_model(struct labeled_run *labeled)
{
	struct run *run = labeled->run;
	const char *model = run->start.resumed ? run->start.checkpoint : labeled->given->model;
	if (!model)
		return error_hinted(error_set(ERR_USAGE, "--model is missing"),
				    "give a pre-trained model: a run of bertc pretrain, or any BERT folder");
	TRY(model_source_find(model, &labeled->source));
	TRY(model_files_look(&labeled->files, labeled->source.weights));
	if (!run->start.resumed)
		TRY(take_files(labeled));
	/* The configuration beside the weights that were found: a folder called "base" is that folder, not the size. */
	const char *config = labeled->source.config[0] ? labeled->source.config : model;
	TRY(model_folder_config(config, &run->config));
	TRY(model_folder_task(config, &labeled->folder));
	TRY(take_layers(labeled));
	TRY(folder_tokenizer_read(&labeled->tokenizer, &labeled->source));
	TRY(folder_tokenizer_fit(&labeled->tokenizer, model, &run->config.vocab_size));
	if (!run->start.resumed && options_given(&run->options, "cased"))
		take_case(labeled);
	labeled->tokenizer.settings.special_tokens = false; /* "[MASK]" in a labeled text is text */
	run->vocab = &labeled->tokenizer.vocab;
	run->tokenizer = &labeled->tokenizer.settings;
	return tokenizer_open(&labeled->encoder, &labeled->tokenizer.vocab, &labeled->tokenizer.settings);
}

/* ---- The task's files ---- */

/* Does the vocabulary contain the words of the examples? */
static enum status check_unknown(const struct labeled_run *labeled, const struct task_set *set, const char *path)
{
	char what[PATH_BYTES + 2];
	int64_t unknown = 0, words = 0;
	labeled_count_unknown(&set->encoded, labeled->run->vocab, &unknown, &words);
	snprintf(what, sizeof what, "'%s'", path);
	return unknown_check(what, unknown, words);
}

/* Reads and encodes a set, and logs what was left out. Nothing is left out of sets to predict: results have a row for every row
 * of their file. */
static enum status read_set(struct labeled_run *labeled, struct task_set *set, const char *const *paths, int64_t count)
{
	struct task_state *state = &labeled->state;
	labeled->bad.count = 0;
	labeled->bad.skip = labeled->given->on_bad_record == SKIP_BAD_RECORD && set->use != TASK_PREDICT;
	int32_t added = labeled->tokenizer.vocab.added_count;
	enum status status = state->task->read(state, set, paths, count);
	if (status == ERR_RESOURCE && !*error_last()->hint)
		error_hint("'%s' is held in memory, which takes a few times its size: give a part of it", paths[0]);
	TRY(status);
	task_keep_first(state, set, paths, count);
	if (labeled->given->folds.fold > 0 && set->use != TASK_PREDICT)
		TRY(folds_keep(&labeled->given->folds, state, &set->examples, set->use == TASK_SCORE,
			       set->use == TASK_SCORE ? &labeled->fold_rows : NULL));
	if (labeled->tokenizer.vocab.added_count != added) { /* so that texts are read as they will be with the finished model */
		tokenizer_close(labeled->encoder);
		labeled->encoder = NULL;
		TRY(tokenizer_open(&labeled->encoder, &labeled->tokenizer.vocab, &labeled->tokenizer.settings));
		state->settings.tokenizer = labeled->encoder;
	}
	TRY(state->task->encode(state, set));
	bad_records_log(&labeled->bad, paths[0]);
	if (set->use != TASK_PREDICT && set->encoded.example_count == 0)
		return error_hinted(error_set(ERR_DATA, "'%s': there is no text in it that the model could read", paths[0]),
				    "its texts are empty, or consist of characters that the tokenizer leaves out");
	if (labeled_has_pairs(&set->encoded))
		TRY(model_config_check_pairs(&labeled->run->config, paths[0]));
	return set->use == TASK_PREDICT ? OK : check_unknown(labeled, set, paths[0]);
}

static enum status open_sets(struct labeled_run *labeled, const char *option, const struct option_list *list, enum task_use use,
			     struct task_set **out, int64_t *out_count)
{
	struct set_list files = {0};
	enum status status;
	*out_count = 0;
	TRY_GOTO(set_list_parse(&files, list), done);
	if (use == TASK_PREDICT)
		TRY_GOTO(set_list_check_folders(&files, option), done);
	TRY_GOTO(memory_new(out, files.count, sizeof **out, "sets of examples"), done);
	for (int64_t i = 0; i < files.count && status == OK; i++) {
		struct task_set *set = &(*out)[(*out_count)++];
		*set = (struct task_set){.name = "", .use = use};
		status = string_store_copy(&labeled->strings, files.sets[i].name, strlen(files.sets[i].name), &set->name);
		if (status == OK)
			status = read_set(labeled, set, files.sets[i].paths, files.sets[i].count);
	}
done:
	set_list_release(&files);
	return status;
}

/* Without a dev set, options that need one are an error. */
static enum status do_without_dev(const struct labeled_run *labeled)
{
	const struct run *run = labeled->run;
	const struct calibration_options *calibration = &labeled->given->calibration;
	const char *option = labeled->run->values->saving.save_best            ? "save_best"
			     : calibration->calibrate                          ? "calibrate"
			     : calibration->thresholds                         ? "thresholds"
			     : run->values->saving.best_by                     ? "best_by"
			     : run->values->length.early_stopping_patience > 0 ? "early_stopping_patience"
									       : NULL;
	if (!option) {
		if (!options_given(&run->options, "do_eval"))
			log_warning("no dev set: the model is not evaluated (give --dev)");
		return OK;
	}
	return error_hinted(error_set(ERR_USAGE, "--%s: there is no dev set", option), "give --dev FILE: its scores decide");
}

/* The dev set of a run that holds out a fold of the training files. */
static enum status open_fold(struct labeled_run *labeled)
{
	const struct labeled_options *given = labeled->given;
	TRY(memory_new(&labeled->dev, 1, sizeof *labeled->dev, "sets of examples"));
	labeled->dev[labeled->dev_count++] = (struct task_set){.name = "", .use = TASK_SCORE};
	return read_set(labeled, &labeled->dev[0], given->train.values, given->train.count);
}

static enum status read_sets(struct labeled_run *labeled)
{
	const struct labeled_options *given = labeled->given;
	if (given->train.count == 0)
		return error_hinted(error_set(ERR_USAGE, "--train is missing"),
				    "bertc finetune --task classification --model FOLDER --train FILE --dev FILE --out FOLDER");
	labeled->train = (struct task_set){.name = "", .use = TASK_TRAIN};
	labeled->state.settings.most = given->max_train_samples;
	TRY(read_set(labeled, &labeled->train, given->train.values, given->train.count));
	if (given->folds.fold > 0)
		TRY(open_fold(labeled));
	labeled->state.settings.most = given->max_eval_samples;
	if (given->folds.fold == 0)
		TRY(open_sets(labeled, "dev", &given->dev, TASK_SCORE, &labeled->dev, &labeled->dev_count));
	if (labeled->dev_count == 0)
		TRY(do_without_dev(labeled));
	labeled->state.settings.most = given->max_predict_samples;
	return open_sets(labeled, "test", &given->test, TASK_PREDICT, &labeled->test, &labeled->test_count);
}

/* All sets must be of one moment: a folder with all of them may be replaced by another version. */
static enum status read_files(struct labeled_run *labeled)
{
	const struct option_list *lists[] = {&labeled->given->train, &labeled->given->dev, &labeled->given->test};
	struct file_stamp *before;
	int64_t count = 0, at = 0;
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
		count += lists[i]->count;
	TRY(memory_new(&before, count, sizeof *before, "files of examples"));
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
		for (int64_t k = 0; k < lists[i]->count; k++)
			before[at++] = file_stamp_at(set_path(lists[i]->values[k]));
	enum status status = read_sets(labeled);
	at = 0;
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
		for (int64_t k = 0; k < lists[i]->count && status == OK; k++) {
			const char *path = set_path(lists[i]->values[k]);
			struct file_stamp now = file_stamp_at(path);
			status = file_stamp_check(path, &before[at++], &now, "while the examples were read");
		}
	free(before);
	return status;
}

/* Tokens of an example: as given, else what the folder of an embedding model says, else the task's default. */
static enum status choose_length(const struct labeled_run *labeled, struct run_phase *phase)
{
	const int64_t *length = &phase->values->max_seq_length;
	int64_t most = model_positions(&labeled->run->config), of_folder = labeled->sentence.max_seq_length;
	int64_t of_task = labeled->state.task->max_seq_length;
	if (options_is_open(phase->options, length)) {
		int64_t usual = of_folder > 0 ? of_folder : of_task > 0 ? of_task : 128;
		return options_choose_integer(phase->options, length, usual < most ? usual : most);
	}
	if (*length <= most)
		return OK;
	return error_hinted(error_set(ERR_USAGE, "--max_seq_length %lld is beyond the model's %lld positions", (long long)*length,
				      (long long)most),
			    "lower it");
}

static enum status note_choice(void *context, const char *option, const char *value)
{
	struct labeled_run *labeled = context;
	return options_set(&labeled->run->options, option, value, ORIGIN_CHOSEN);
}

/* The task's own settings. */
static enum status settle_task(struct labeled_run *labeled)
{
	const struct labeled_options *given = labeled->given;
	const struct task *task = labeled->state.task;
	const struct task_beginning beginning = {.model = given->model,
						 .has_dev = given->dev.count > 0,
						 .folder = &labeled->sentence,
						 .chose = note_choice,
						 .context = labeled};
	return task->settle ? task->settle(&labeled->state, &beginning) : OK;
}

static enum status find_task(struct labeled_run *labeled)
{
	const struct labeled_options *given = labeled->given;
	const struct run_start *start = &labeled->run->start;
	struct task_state *state = &labeled->state;
	const char **names = NULL;
	int64_t count = 0;
	if (!given->task)
		return error_hinted(error_set(ERR_USAGE, "--task is missing"), "name the task, such as --task classification");
	const struct task *task;
	TRY(task_find(given->task, &task, &state->settings.layout));
	TRY(task_state_open(state, task, task_options_of(&given->own, task)));
	TRY(folds_check(&given->folds, state));
	if (given->folds.folds > 0 && (given->dev.count > 0 || given->on_bad_record == SKIP_BAD_RECORD))
		return error_hinted(
			error_set(ERR_USAGE,
				  "--folds and --%s do not go together: the folds are the dev sets, and each row is in one",
				  given->dev.count > 0 ? "dev" : "on_bad_record skip"),
			given->dev.count > 0 ? "leave --dev out" : "take rows that cannot be used out of the files");
	TRY(windows_check(given->windows.long_texts, state));
	if (given->own.squad.doc_stride > 0 && task->reads_windows && given->windows.long_texts <= WINDOWS_NONE)
		return error_hinted(error_set(ERR_USAGE, "--doc_stride has no effect without --long_texts"),
				    "--long_texts mean reads long texts in windows");
	state->settings.long_texts = given->windows.long_texts;
	state->settings.doc_stride = given->own.squad.doc_stride;
	TRY(calibration_check(&given->calibration, state));
	state->settings.calibration = &given->calibration;
	const char *const of_classes[][2] = {
		{"class_weights", given->class_weights}, {"labels", given->labels}, {"negative_label", given->negative_label}};
	for (size_t i = 0; i < sizeof of_classes / sizeof *of_classes; i++)
		if (of_classes[i][1] && !state->task->weighs_classes)
			return error_set(ERR_USAGE, "--%s is for tasks that choose among classes or labels, not for %s",
					 of_classes[i][0], state->task->name);
	if (given->negative_label && state->task->target != TARGET_CLASS)
		return error_set(ERR_USAGE, "--negative_label is for tasks that choose one class for each text, not for %s",
				 state->task->name);
	if (given->labels)
		TRY(labels_parse_option(given->labels, &labeled->strings, &names, &count));
	labeled->names = names;
	state->settings.tokenizer = labeled->encoder;
	if (state->task->makes_vectors)
		TRY(sentence_folder_read(&labeled->sentence, start->resumed ? start->checkpoint : given->model));
	TRY(choose_length(labeled, &labeled->run->phases[0]));
	state->settings.max_seq_length = (int32_t)labeled->run->values->max_seq_length;
	state->settings.columns = given->columns;
	state->settings.needs_pairs = task_needs_pairs(given->task, state->settings.layout);
	state->settings.given = (struct label_list){names, count};
	state->settings.folder = (struct label_list){(const char *const *)labeled->folder.labels,
						     labeled->folder.labels ? labeled->folder.label_count : 0};
	state->settings.class_weights = given->class_weights;
	state->settings.negative_label = given->negative_label;
	state->settings.negative_columns = given->negative_column;
	state->settings.hidden_size = labeled->run->config.hidden_size;
	state->settings.vocab_size = labeled->run->config.vocab_size;
	state->pool = labeled->run->machine->pool;
	state->settings.vocab = &labeled->tokenizer.vocab;
	state->settings.bad = &labeled->bad;
	return settle_task(labeled);
}

/* Is the folder's head for this very task? Then training continues with it. */
static bool has_same_head(const struct labeled_run *labeled)
{
	const struct task_config *folder = &labeled->folder;
	const struct label_set *labels = &labeled->state.labels;
	if (model_heads_have_words(&labeled->heads))
		return true; /* or the model is refused when it is loaded */
	if (!folder->architecture || strcmp(folder->architecture, labeled->heads.architecture) != 0)
		return false;
	if (labels->count == 0)
		return task_config_outputs(folder) == labeled->heads.head[0].outputs;
	bool same = folder->labels && folder->label_count == labels->count;
	for (int64_t i = 0; same && i < labels->count; i++)
		same = strcmp(folder->labels[i], labels->labels[i].name) == 0;
	return same;
}

enum status labeled_run_record(struct labeled_run *labeled)
{
	struct buffer text = {0};
	labeled->state.settings.trained = labeled->train.examples.columns;
	enum status status = task_record_write(&labeled->state, &text);
	if (status != OK)
		buffer_release(&text);
	free(labeled->config.record);
	labeled->config.record = text.data;
	return status;
}

static enum status make_head(struct labeled_run *labeled)
{
	const struct task_state *state = &labeled->state;
	const char **names = NULL;
	state->task->heads(state, &labeled->heads);
	labeled->task.heads = &labeled->heads;
	labeled->task.decides = labeled->given->metric ? labeled->given->metric : task_decides(state);
	labeled->continues_head = has_same_head(labeled);
	TRY(memory_new(&names, state->labels.count, sizeof *names, "labels"));
	for (int64_t i = 0; i < state->labels.count; i++)
		names[i] = state->labels.labels[i].name;
	labeled->preview_labels = names;
	labeled->preview = (struct task_preview){.labels = state->task->target == TARGET_CLASS ? names : NULL,
						 .classes = (int32_t)state->labels.count};
	TRY(task_config_make(&labeled->config, labeled->heads.architecture, state->task->problem_type,
			     state->labels.count > 0 ? names : NULL,
			     model_heads_have_words(&labeled->heads) ? 0 : labeled->heads.head[0].outputs));
	if (state->task->makes_vectors)
		labeled->config.sentence = &labeled->sentence;
	return labeled_run_record(labeled);
}

/* Checks now that the deciding set and measure exist, not after the first epoch. */
static enum status check_decision(const struct labeled_run *labeled)
{
	const char **names = NULL;
	int64_t deciding;
	struct measures measures = {0};
	struct measure decides;
	if (labeled->dev_count == 0)
		return OK;
	TRY(memory_new(&names, labeled->dev_count, sizeof *names, "names of sets"));
	for (int64_t i = 0; i < labeled->dev_count; i++)
		names[i] = labeled->dev[i].name;
	enum status status = run_find_best_set(labeled->run, names, labeled->dev_count, &deciding);
	free(names);
	if (status != OK || !labeled->given->metric)
		return status;
	TRY(labeled_measures(&labeled->state, &labeled->heads.head[0], &labeled->dev[deciding], &measures));
	return loop_deciding_measure(labeled->given->metric, &measures, &decides);
}

/* ---- Its training ---- */

/* With fewer examples, a single answer changes the score by more than a point. */
#define DEV_LEAST 100

static void warn_of_small_sets(const struct labeled_run *labeled)
{
	for (int64_t i = 0; i < labeled->dev_count; i++) {
		const struct task_set *set = &labeled->dev[i];
		long long count = set->encoded.example_count;
		if (count < DEV_LEAST)
			log_warning("the dev set%s%s has only %lld example%s: small differences between its scores mean nothing",
				    set->name[0] ? " " : "", set->name, count, count == 1 ? "" : "s");
	}
}

/* So many repeated rows, of a hundred, are hardly meant: a file was given twice, or rows were copied. */
#define REPEATED_MOST 10

/* Warns of training rows that occur twice or contradict each other, and of texts that are in the training files and in others. */
static enum status compare_rows(struct labeled_run *labeled)
{
	const struct task_set *train = &labeled->train;
	struct row_repeats repeats;
	struct row_hashes rows = {0};
	char count[FORMAT_BYTES], all[FORMAT_BYTES], what[80];
	TRY(row_repeats_count(&repeats, &train->encoded));
	format_count(all, train->encoded.example_count);
	if (repeats.repeated * 100 >= REPEATED_MOST * train->encoded.example_count)
		log_warning("%s of %s training examples repeat another one, text and label: was a file given twice?",
			    format_count(count, repeats.repeated), all);
	enum task_view view = labeled->state.task->view;
	if (repeats.contradicted > 0 && (view == VIEW_CLASSES || view == VIEW_LABELS || view == VIEW_NUMBERS))
		log_warning("%s of %s training examples have a text that occurs with another label, too",
			    format_count(count, repeats.contradicted), all);
	enum status status = row_hashes_make(&rows, &train->encoded, 0);
	for (int64_t i = 0; i < labeled->dev_count && status == OK; i++) {
		snprintf(what, sizeof what, "the dev set%s%.60s", *labeled->dev[i].name ? " " : "", labeled->dev[i].name);
		status = task_warn_of_trained(&rows, &labeled->dev[i], what);
	}
	for (int64_t i = 0; i < labeled->test_count && status == OK; i++) {
		snprintf(what, sizeof what, "the test set%s%.60s", *labeled->test[i].name ? " " : "", labeled->test[i].name);
		status = task_warn_of_trained(&rows, &labeled->test[i], what);
	}
	row_hashes_release(&rows);
	if (status == OK)
		status = row_hashes_make(&labeled->state.trained_rows, &train->encoded, ROW_HASHES_KEPT);
	return status;
}

enum status labeled_run_check(const struct labeled_run *labeled, const struct options *options)
{
	struct run_phase phase = {.options = &phase.own};
	TRY(options_derive(&phase.own, options, options->section_count, NULL));
	phase.values = phase.own.settings;
	enum status status = choose_length(labeled, &phase);
	if (status == OK)
		status = recipe_choose(&phase.own, &phase.values->optimizer);
	if (status == OK)
		status = labeled_choose_phase(labeled, &phase);
	options_release(&phase.own);
	return status;
}

enum status labeled_run_prepare(struct labeled_run *labeled, const struct labeled_options *given,
				const struct distillation_options *distillation)
{
	struct run *run = labeled->run;
	labeled->given = given;
	TRY(ranks_agree(run->machine->comm, read_model(labeled)));
	TRY(ranks_agree(run->machine->comm, find_task(labeled)));
	TRY(ranks_agree(run->machine->comm, read_files(labeled)));
	TRY(run_results_check(run, labeled->test, labeled->test_count));
	warn_of_small_sets(labeled);
	TRY(compare_rows(labeled));
	TRY(make_head(labeled));
	TRY(labeled_choose_learning(labeled));
	TRY(check_decision(labeled));
	TRY(ranks_agree(run->machine->comm,
			distillation_run_prepare(&labeled->distillation, distillation, run, &labeled->state, &labeled->heads)));
	if (!run->start.resumed && labeled->heads.head[0].loss != LOSS_VECTORS)
		log_note("%s", labeled->continues_head
				       ? "the model has a head for this task: training continues with it"
				       : "the model has no head for this task; starting with a randomly initialized one");
	TRY(run_choose_dropout(run));
	run->data_hash = hash64_combine(run->vocab->hash, labeled_hash(&labeled->train.encoded));
	TRY(ranks_agree(run->machine->comm, guide_run_prepare(run, &labeled->state, &labeled->train, &run->data_hash)));
	run->phases[0].data_hash = run->data_hash;
	for (int64_t i = 0; i < labeled->dev_count; i++) {
		const char *name = labeled->dev[i].name ? labeled->dev[i].name : "";
		run->evaluation_hash = hash64_combine(run->evaluation_hash, hash64(name, strlen(name)));
		run->evaluation_hash = hash64_combine(run->evaluation_hash, labeled_hash(&labeled->dev[i].encoded));
	}
	for (int64_t i = 0; i < labeled->test_count; i++)
		run->test_hash = hash64_combine(run->test_hash, labeled_hash(&labeled->test[i].encoded));
	run->task_config = &labeled->config;
	/* The hash covers the numbers of labels, not their names. */
	bool renamed = labeled->folder.labels && labeled->state.labels.count > 0 && !labeled->continues_head;
	if (run->start.resumed && (run->start.data_hash != run->data_hash || renamed))
		return error_hinted(error_set(ERR_STATE, "the training examples have changed since '%s'", run->start.checkpoint),
				    "give --fresh to start over with the new ones, or choose another --out");
	TRY(recipe_choose(&run->options, &run->values->optimizer));
	return labeled_choose_phase(labeled, &run->phases[0]);
}

/* ---- Callbacks of the run ---- */

#define EVALUATION_EXAMPLES 64

static struct example_bounds bounds_of(const struct labeled_run *labeled, const struct labeled_set *set)
{
	struct example_bounds bounds = {
		.max_seq_length = set->longest, .sequences = set->most_sequences, .vocab_size = labeled->run->config.vocab_size};
	for (int h = 0; h < BATCH_HEADS; h++)
		if (set->items[h].width > 0)
			bounds.labels[h] = (struct label_bounds){.most = set->items[h].most,
								 .width = set->items[h].width,
								 .row_width = set->items[h].row_width,
								 .values = set->items[h].values};
	return bounds;
}

static void grow_for(const struct labeled_run *labeled, const struct labeled_set *set, int64_t tokens,
		     struct batch_capacity *capacity)
{
	struct example_bounds bounds = bounds_of(labeled, set);
	if (set->example_count == 0)
		return;
	struct batch_capacity one = batch_capacity_for(&bounds, EVALUATION_EXAMPLES, 0, tokens);
	batch_capacity_grow(capacity, &one);
}

static void shape(void *context, int64_t index, struct run_phase *phase, int64_t tokens)
{
	const struct labeled_run *labeled = context;
	struct example_bounds bounds = bounds_of(labeled, &labeled->train.encoded);
	int32_t accumulation = phase->steps.accumulation_steps;
	(void)index;
	phase->steps.capacity =
		batch_capacity_for(&bounds, step_part_examples(&phase->steps), accumulation, accumulation > 0 ? 0 : tokens);
	phase->evaluation_capacity = batch_capacity_for(&bounds, EVALUATION_EXAMPLES, 0, tokens);
	for (int64_t i = 0; i < labeled->dev_count; i++)
		grow_for(labeled, &labeled->dev[i].encoded, tokens, &phase->evaluation_capacity);
	for (int64_t i = 0; i < labeled->test_count; i++)
		grow_for(labeled, &labeled->test[i].encoded, tokens, &phase->evaluation_capacity);
}

static enum status mean_length(void *context, int64_t index, double *out)
{
	const struct labeled_run *labeled = context;
	(void)index;
	*out = (double)labeled->train.encoded.token_count / (double)labeled->train.encoded.example_count;
	return OK;
}

/* What the answers to the largest of these sets take while they are scored. */
static size_t answer_bytes(const struct labeled_run *labeled, const struct task_set *sets, int64_t count)
{
	size_t most = 0;
	for (int64_t i = 0; i < count; i++) {
		size_t bytes = task_outputs_bytes(&sets[i].encoded, &labeled->heads.head[0]);
		most = bytes > most ? bytes : most;
	}
	return most;
}

static size_t reader_bytes(void *context, int64_t index, const struct run_phase *phase)
{
	const struct labeled_run *labeled = context;
	struct example_bounds bounds = bounds_of(labeled, &labeled->train.encoded);
	(void)index;
	size_t bytes = step_reader_bytes(&bounds, &phase->steps);
	if (labeled->state.task->loss)
		bytes += step_vectors_bytes(&phase->steps, bounds.sequences, labeled->heads.head[0].outputs, sizeof(float));
	size_t dev = answer_bytes(labeled, labeled->dev, labeled->dev_count),
	       test = answer_bytes(labeled, labeled->test, labeled->test_count);
	return bytes + (dev > test ? dev : test);
}

/* Copies the parameters that both models have. */
static void copy_parameters(const struct model *from, const float *from_slab, const struct model *to, float *to_slab)
{
	for (int64_t i = 0; i < from->parameter_count; i++) {
		const struct parameter *parameter = &from->parameters[i];
		int64_t other = model_find_parameter(to, parameter->name);
		if (other >= 0)
			memcpy(to_slab + to->parameters[other].offset, from_slab + parameter->offset,
			       (size_t)parameter->count * sizeof *to_slab);
	}
}

/* Copies the layers that make up a smaller model. */
static void copy_layers(const struct labeled_run *labeled, const struct model *from, const float *from_slab,
			const struct model *to, float *to_slab)
{
	char name[sizeof from->parameters->name];
	for (int64_t i = 0; labeled->init_layers && i < to->parameter_count; i++) {
		const struct parameter *parameter = &to->parameters[i];
		int layer, own = 0;
		if (sscanf(parameter->name, "bert.encoder.layer.%d.%n", &layer, &own) != 1 || own == 0)
			continue;
		snprintf(name, sizeof name, "bert.encoder.layer.%d.%s", labeled->init_layers[layer], parameter->name + own);
		int64_t other = model_find_parameter(from, name);
		BUG_IF(other < 0);
		memcpy(to_slab + parameter->offset, from_slab + from->parameters[other].offset,
		       (size_t)parameter->count * sizeof *to_slab);
	}
}

/* Loads the encoder over the randomly initialized weights, and the head if it is the same. */
static enum status load_weights(void *context, struct model *model, struct replica *replica)
{
	struct labeled_run *labeled = context;
	struct model_heads heads = model->heads;
	struct model_config config = model->config;
	struct model_folder_report report = {0};
	struct model *source = NULL;
	float *slab = NULL, *loaded = NULL;
	enum status status;
	if (!labeled->continues_head)
		heads.count = 0;
	heads.projection = 0;
	heads.low_rank.rank = 0;
	config.num_hidden_layers = labeled->source_layers;
	TRY_GOTO(model_create(&source, model->backend, &config, &heads), done);
	TRY_GOTO(memory_new(&slab, model->slab_count, sizeof *slab, "weights"), done);
	TRY_GOTO(memory_new(&loaded, source->slab_count, sizeof *loaded, "weights"), done);
	TRY_GOTO(model_get_weights(model, slab), done);
	copy_parameters(model, slab, source, loaded);
	enum missing_weights missing = model_heads_have_words(&heads) ? MISSING_NOTHING : MISSING_HEADS;
	TRY_GOTO(model_folder_load(labeled->source.weights, source, missing, loaded, &report), done);
	TRY_GOTO(model_files_check(&labeled->files, labeled->source.weights), done);
	copy_parameters(source, loaded, model, slab);
	copy_layers(labeled, source, loaded, model, slab);
	status = model_set_weights(model, replica, slab);
done:
	model_folder_report_release(&report);
	model_free(source);
	free(slab);
	free(loaded);
	return status;
}

struct labeled_settings labeled_run_settings(struct labeled_run *labeled)
{
	struct run *run = labeled->run;
	return (struct labeled_settings){
		.task = &labeled->state,
		.model = run->memory.model,
		.activations = run->memory.activations,
		.comm = run->machine->comm,
		.train = labeled->instances,
		.train_set = &labeled->train,
		.steps = run->phases[0].steps,
		.evaluation = labeled->dev,
		.evaluation_count = labeled->dev_count,
		.evaluation_capacity = run->phases[0].evaluation_capacity,
		.vocab_size = run->config.vocab_size,
		.preview = &labeled->preview,
	};
}

static enum status open_phase(void *context, const struct train_state *state, struct objective **out)
{
	struct labeled_run *labeled = context;
	struct labeled_source source = {.seed = (uint64_t)labeled->run->values->seed,
					.shuffle = labeled->given->shuffle,
					.batch_size = labeled->run->phases[0].steps.batch_size,
					.vocab_size = labeled->run->config.vocab_size};
	TRY(instances_open_labeled(&labeled->instances, &labeled->train.encoded, &source));
	if (state->samples > 0)
		TRY(instances_hint(labeled->instances, state->epoch, state->epoch_first_sample));
	struct labeled_settings settings = labeled_run_settings(labeled);
	TRY(labeled_objective_create(out, &settings));
	TRY(distillation_run_wrap(&labeled->distillation, labeled->run, out));
	/* Checkpoints do not contain what the report shows of the latest evaluation, so it is repeated. */
	struct measures known = {0};
	bool shown = state->evaluated_step == 0 || labeled->dev_count == 0;
	return shown ? OK : (*out)->evaluate(*out, &labeled->run->memory.replica, 0, &known);
}

static void close_phase(void *context, int64_t index)
{
	struct labeled_run *labeled = context;
	(void)index;
	instances_close(labeled->instances);
	labeled->instances = NULL;
}

static enum status locate(void *context, struct train_state *state)
{
	struct labeled_run *labeled = context;
	return instances_locate(labeled->instances, state->samples, &state->epoch, &state->epoch_first_sample);
}

static enum status describe(void *context, struct report *report)
{
	struct labeled_run *labeled = context;
	report->facts.epoch_tokens = (double)labeled->train.encoded.token_count;
	TRY(labeled_report(&labeled->state, &labeled->train, labeled->dev_count > 0 ? &labeled->dev[0] : NULL, &labeled->preview,
			   &report->task));
	if (labeled_is_small(&labeled->run->config))
		report->task.words.usual_rates = "5e-5 to 5e-4";
	report->task.decides = labeled->task.decides;
	distillation_run_report(&labeled->distillation, &report->task);
	return OK;
}

static size_t teacher_bytes_of(void *context, const struct shape_limits *limits)
{
	const struct labeled_run *labeled = context;
	return distillation_run_bytes(&labeled->distillation, limits);
}

static double teacher_flops_of(void *context, const struct model_work *work)
{
	const struct labeled_run *labeled = context;
	return distillation_run_flops(&labeled->distillation, labeled->run, work);
}

static enum status allocate(void *context, const struct shape_limits *limits)
{
	struct labeled_run *labeled = context;
	return distillation_run_allocate(&labeled->distillation, labeled->run, limits);
}

static enum status give_back(void *context)
{
	struct labeled_run *labeled = context;
	return distillation_run_give_back(&labeled->distillation);
}

void labeled_run_begin(struct labeled_run *out, struct run *run)
{
	*out = (struct labeled_run){
		.run = run,
		.task = {.context = out,
			 .shapes = {.context = out,
				    .shape = shape,
				    .mean_length = mean_length,
				    .reader_bytes = reader_bytes,
				    .teacher_bytes = teacher_bytes_of,
				    .teacher_flops = teacher_flops_of},
			 .allocate = allocate,
			 .give_back = give_back,
			 .heads = &model_heads_none, /* until the labels are known */
			 .load_weights = load_weights,
			 .describe = describe,
			 .open_phase = open_phase,
			 .close_phase = close_phase,
			 .locate = locate},
	};
}

void labeled_run_release(struct labeled_run *labeled)
{
	task_preview_release(&labeled->preview);
	model_files_release(&labeled->files);
	distillation_run_release(&labeled->distillation);
	free(labeled->init_layers);
	for (int64_t i = 0; i < labeled->dev_count; i++)
		task_set_release(&labeled->state, &labeled->dev[i]);
	for (int64_t i = 0; i < labeled->test_count; i++)
		task_set_release(&labeled->state, &labeled->test[i]);
	if (labeled->state.task)
		task_set_release(&labeled->state, &labeled->train);
	free(labeled->dev);
	free(labeled->test);
	free(labeled->fold_rows);
	free(labeled->preview_labels);
	free(labeled->names);
	sentence_folder_release(&labeled->sentence);
	task_config_release(&labeled->config);
	task_config_release(&labeled->folder);
	task_state_release(&labeled->state);
	tokenizer_close(labeled->encoder);
	folder_tokenizer_release(&labeled->tokenizer);
	string_store_release(&labeled->strings);
}
