/* bertc evaluate: scores a model on text with fixed masks or on labeled examples, or scores a file of predictions. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/rng.h"
#include "base/temporary.h"
#include "cmd/command.h"
#include "cmd/evaluate_retrieval.h"
#include "cmd/saved_models.h"
#include "infer/device_options.h"
#include "data/pretraining/instance_options.h"
#include "infer/session.h"
#include "infer/task_session.h"
#include "model/forms.h"
#include "tasks/results.h"
#include "base/set_list.h"
#include "train/pretraining.h"
#include "run/run_data.h"
#include "weights/model_folder.h"

struct evaluate_settings {
	const char *model, *task;
	struct option_list corpus, data, input_file, test;
	struct column_choice columns;
	struct squad_prediction_settings predictions;
	struct window_options windows;
	struct calibration_options calibration;
	struct retrieval_settings retrieval;
	struct task_options own;           /* of each task */
	struct instance_options instances; /* of which two are options */
	struct input_options input;
	int64_t max_seq_length, eval_instances, micro_batch_tokens;
	bool json;
	struct device_options device;
};

/* clang-format off */
#define ROW(member, role, value) OPTION_ROW(struct squad_prediction_settings, member, role, value)
static const struct option prediction_rows[] = {
	{.help = "Scores of a file of answers"},
	{ROW(predictions, ROLE_PLACE, "FILE"),
	 .help = "answers to the questions in --test, from any program: predictions.json, or nbest_predictions.json for the best "
	 "answer that is not empty"},
	{ROW(na_prob_file, ROLE_PLACE, "FILE"),
	 .help = "probability that each question has no answer, such as null_odds.json: adds the best thresholds"},
	{ROW(na_prob_thresh, ROLE_RESULT, "X"), .fallback = "1.0",
	 .help = "an answer whose value in --na_prob_file is above this counts as no answer"},
	{ROW(find_threshold, ROLE_RUN, NULL), .fallback = "false",
	 .help = "find the best threshold for the best answers in nbest_predictions.json"},
	{0},
};
#undef ROW

#define FIELD(name) offsetof(struct evaluate_settings, name)
#define ROW(member, role, value) OPTION_ROW(struct evaluate_settings, member, role, value)
static const struct option evaluate_options[] = {
	{.help = "What is scored"},
	{.group = saved_model_rows, .field = FIELD(model)},
	{ROW(corpus, ROLE_SOURCE, "PATH..."), .help = "text to score the model on: " CORPUS_FILES},
	{ROW(data, ROLE_PLACE, "PREFIX..."), .help = "token shards instead of text"},
	{ROW(input_file, ROLE_PLACE, "PATH..."),
	 .help = "static instances instead of text (TFRecord, HDF5, bertc's own): each of them once, unchanged"},
	{.group = input_rows, .field = FIELD(input)},
	{ROW(test, ROLE_PLACE, "[NAME=]FILE..."),
	 .help = "labeled examples of a task; with --predictions: questions in SQuAD's JSON"},
	{ROW(task, ROLE_RESULT, "NAME"), .alias = "task_name", .fallback_text = "the model's own",
	 .help = "task whose files --test names, as in bertc finetune: sts-b for a model of embeddings, xnli for one of mnli"},
	{.group = column_rows, .fallback_text = "as in training", .field = FIELD(columns)},
	{.group = window_rows, .fallback_text = "as in training", .field = FIELD(windows)},
	{.group = calibration_rows, .field = FIELD(calibration)},
	{.reworded = true, .name = "min_score", .fallback_text = "as recorded"},
	{.group = prediction_rows, .field = FIELD(predictions)},
	{.group = retrieval_rows, .field = FIELD(retrieval)},
	{.group = task_answer_rows, .field = FIELD(own)},
	{.help = "How it is scored"},
	{ROW(max_seq_length, ROLE_RESULT, "N"), .range = "8..65536", .fallback = "128",
	 .help = "maximum number of tokens per instance; with --test, of an example, where the default is that of training"},
	{.group = instance_rows, .only = "next_sentence whole_word_mask", .unsectioned = true, .field = FIELD(instances)},
	{.reworded = true, .name = "next_sentence", .help = "as in bertc pretrain",
	 .fallback_text = "what the model was trained on; running text, if that was overlap"},
	{ROW(eval_instances, ROLE_RESULT, "N"), .range = "0..", .fallback = "0",
	 .help = "number of instances to score, always the same ones; 0 = all"},
	{ROW(micro_batch_tokens, ROLE_RUN, "N"), .range = "128..1048576", .fallback = "8192",
	 .help = "maximum number of tokens computed at a time"},
	{ROW(json, ROLE_RUN, NULL), .fallback = "false",
	 .help = "print one JSON object, which has an object for each set if --test names several"},
	{.help = "Device"},
	{.group = device_rows, .field = FIELD(device)},
	{.name = NULL},
};
/* clang-format on */

static const struct command_text evaluate_text = {
	.name = "evaluate",
	.synopsis =
		"--model FOLDER (--corpus PATH... | --data PREFIX... | --input_file PATH...) [options] | --model FOLDER "
		"--test [NAME=]FILE... [options] | --model FOLDER --retrieval FOLDER [options] | --predictions FILE --test FILE "
		"[options]",
	.summary = "evaluate a model on text, examples, or retrieval, or a file of predictions",
	.description =
		"Masks and next-sentence pairs are drawn from a fixed seed, so that two models, or one model at two times, "
		"are scored on exactly the same predictions. Static instances (--input_file) already have their masks.\n\n"
		"With --test, a fine-tuned model is scored on labeled examples of its task. --calibrate and --thresholds "
		"change the model's folder: they determine how it makes probabilities and answers of its outputs from then "
		"on.\n\nWith --retrieval, a corpus is searched for queries, and the documents found are compared with "
		"judgments: nDCG, MAP, recall, and MRR as trec_eval computes them.\n\nWith --predictions, no model is run: "
		"the answers in a file, from any program, are compared with those of a test set, and the measures are the "
		"official ones of SQuAD 1.1, of SQuAD 2.0 (--version_2_with_negative) or of CMRC 2018.",
	.examples = "bertc evaluate --model runs/mine --corpus test.txt --json\tone JSON object on standard output\n"
		    "bertc evaluate --model runs/task --test dev.tsv --calibrate --thresholds f1\tcalibrate a finished model\n"
		    "bertc evaluate --predictions predictions.json --test dev-v1.1.json\texact match and F1 of SQuAD",
};

/* Prints a line for each measure or, with --json, puts them into the object that `json` has open. */
static void print_metrics(const struct measures *metrics, struct json_writer *json)
{
	for (int i = 0; i < metrics->count; i++) {
		const struct measure *measure = &metrics->item[i];
		char line[MEASURE_BYTES];
		if (json && measure->unit == UNIT_COUNT)
			json_put_integer(json, measure->name, (int64_t)measure->value);
		else if (json)
			json_put_double(json, measure->name, measure->value);
		else
			puts(measure_text(line, measure));
	}
}

/* Of --json: opens the object. */
static struct json_writer *open_json(struct json_writer *writer, const struct evaluate_settings *settings)
{
	if (!settings->json)
		return NULL;
	json_open(writer, NULL, '{');
	return writer;
}

/* Prints the object, if there is one, unless something failed on the way, and releases its text. */
static enum status close_json(struct json_writer *json, struct buffer *text, enum status status)
{
	if (json && status == OK) {
		json_close(json);
		status = buffer_status(text);
		if (status == OK)
			printf("%s\n", buffer_string(text));
	}
	buffer_release(text);
	return status;
}

/* Writes shards of the text into a folder that exists only while the command runs. */
static enum status temporary_shards(const struct evaluate_settings *settings, struct session *session, const char *folder,
				    char prefix[PATH_BYTES])
{
	struct tokenizer *tokenizer;
	struct tokenizer_settings tokenizer_settings = session->tokenizer.settings;
	tokenizer_settings.special_tokens = false;
	struct corpus_settings input = {.input = settings->input, .threads = (int)settings->device.threads};
	TRY(path_join(prefix, folder, "text"));
	TRY(tokenizer_open(&tokenizer, &session->tokenizer.vocab, &tokenizer_settings));
	enum status status = run_data_shards(&settings->corpus, &input, tokenizer, session->pool, prefix, 0, false);
	tokenizer_close(tokenizer);
	return status;
}

/* What the model is scored on, once opened. */
struct scored {
	struct shard *shards;
	int64_t shard_count;
	struct static_file *files;
	int64_t file_count;
	struct instances *instances;
};

static void scored_close(struct scored *scored)
{
	instances_close(scored->instances);
	for (int64_t i = 0; i < scored->shard_count; i++)
		shard_close(&scored->shards[i]);
	free(scored->shards);
	run_static_close(scored->files, scored->file_count);
}

static enum status open_shards(const struct evaluate_settings *settings, struct session *session, const char *folder,
			       const struct instance_settings *instance_settings, struct scored *out)
{
	char prefix[PATH_BYTES];
	const char *own[] = {prefix};
	const char *const *prefixes = own;
	int64_t count = 1;
	if (settings->data.count > 0) {
		prefixes = settings->data.values;
		count = settings->data.count;
	} else
		TRY(temporary_shards(settings, session, folder, prefix));
	TRY(memory_new(&out->shards, count, sizeof *out->shards, "shards"));
	for (int64_t i = 0; i < count; i++) {
		TRY(shard_open(&out->shards[i], prefixes[i]));
		out->shard_count++;
		TRY(shard_check_vocab(&out->shards[i], session->tokenizer.vocab.hash, session->tokenizer.vocab.count));
		TRY(shard_check_contents(&out->shards[i], NULL, NULL));
	}
	return instances_open(&out->instances, out->shards, out->shard_count, instance_settings);
}

static enum status score(const struct evaluate_settings *settings, struct session *session,
			 const struct instance_settings *instance_settings, const char *folder, struct scored *scored)
{
	struct measures metrics = {0};
	if (scored->file_count > 0)
		TRY(instances_open_static(&scored->instances, scored->files, scored->file_count, instance_settings));
	else
		TRY(open_shards(settings, session, folder, instance_settings, scored));
	TRY(pretraining_score(session->model, session->activations, &session->replica, NULL, scored->instances,
			      settings->eval_instances, session->capacity, &metrics));
	struct buffer text = {0};
	struct json_writer writer = {.out = &text}, *json = open_json(&writer, settings);
	print_metrics(&metrics, json);
	return close_json(json, &text, OK);
}

/* Static instances are opened before the model, because their lengths determine how much room it needs. */
static enum status open_static(const struct evaluate_settings *settings, const struct model_config *config, const char *folder,
			       struct scored *out, struct instance_settings *bounds)
{
	struct instance_demands demands = {.vocab_size = config->vocab_size,
					   .max_length = model_positions(config),
					   .pair_length = (int32_t)(settings->max_seq_length < model_positions(config)
									    ? settings->max_seq_length
									    : model_positions(config)),
					   .skip_bad = settings->input.on_bad_record == SKIP_BAD_RECORD};
	struct model_source source;
	struct folder_tokenizer tokenizer;
	struct tokenizer *encoder = NULL; /* for pairs */
	struct pool *pool = NULL;
	enum status status;
	TRY(model_source_find(settings->model, &source));
	TRY(folder_tokenizer_read(&tokenizer, &source));
	tokenizer.settings.special_tokens = false;
	TRY_GOTO(tokenizer_open(&encoder, &tokenizer.vocab, &tokenizer.settings), done);
	demands.tokenizer = encoder;
	TRY_GOTO(pool_create(&pool, (int)settings->device.threads), done);
	status = run_static_open(settings->input_file.values, settings->input_file.count, folder, &demands, &tokenizer.vocab,
				 pool, &out->files, &out->file_count);
done:
	if (pool)
		pool_free(pool);
	tokenizer_close(encoder);
	folder_tokenizer_release(&tokenizer);
	for (int64_t i = 0; status == OK && i < out->file_count; i++) {
		struct shard_contents contents = static_contents(&out->files[i]);
		status = contents.verify(contents.file, NULL, NULL);
	}
	instances_static_bounds(out->files, out->file_count, bounds);
	bounds->shuffle = false;
	return status;
}

/* What the model has learned decides what is scored, unless the folder does not say. Pairs that share words taught it to compare;
 * how well it knows language shows on running text. */
static void take_learned(const struct model_config *config, enum next_sentence *kind)
{
	const char *learned = model_form_of(config)->has_next_sentence ? config->next_sentence : "none";
	for (int i = 0; next_sentence_names[i]; i++)
		if (strcmp(next_sentence_names[i], learned) == 0)
			*kind = i == NEXT_SENTENCE_OVERLAP ? NEXT_SENTENCE_NONE : (enum next_sentence)i;
}

static enum status evaluate_in(const struct options *options, const char *folder, struct scored *scored)
{
	const struct evaluate_settings *settings = options->settings;
	struct session session;
	struct instance_settings instance_settings = {
		.seed = EVALUATION_SEED,
		.max_seq_length = (int32_t)settings->max_seq_length,
		.masked_lm_prob = EVALUATION_MASKED,
		.short_seq_prob = 0.1,
		.whole_word_mask = settings->instances.whole_word_mask,
		.next_sentence = settings->instances.next_sentence,
		.shuffle = true,
	};
	struct model_config config;
	TRY(model_folder_config(settings->model, &config));
	if (!options_given(options, "max_seq_length") && settings->max_seq_length > model_positions(&config))
		instance_settings.max_seq_length = model_positions(&config);
	instance_settings.one_segment = !model_takes_pairs(&config);
	if (!options_given(options, "next_sentence"))
		take_learned(&config, &instance_settings.next_sentence);
	if (settings->input_file.count > 0)
		TRY(open_static(settings, &config, folder, scored, &instance_settings));
	else if (instance_settings.max_seq_length > model_positions(&config))
		return error_set(ERR_USAGE, "--max_seq_length %" PRId64 " is beyond the model's %d positions",
				 settings->max_seq_length, model_positions(&config));
	struct example_bounds bounds = instance_bounds(&instance_settings);
	struct batch_capacity capacity = batch_capacity_for(&bounds, 64, 0, settings->micro_batch_tokens);
	TRY(session_open(&session, settings->model, &settings->device, capacity, instance_settings.max_seq_length));
	enum status status = instance_vocab_check(&session.tokenizer.vocab);
	if (status != OK) {
		session_close(&session);
		return status;
	}
	instance_settings_take_vocab(&instance_settings, &session.tokenizer.vocab);
	bool labeled = instance_is_pair(&instance_settings);
	if (!session.has_next_sentence && labeled) {
		status = error_set(ERR_STATE, "'%s' has no next-sentence head to evaluate", settings->model);
		error_hint("--next_sentence none scores masked words alone");
	} else
		status = score(settings, &session, &instance_settings, folder, scored);
	session_close(&session);
	return status;
}

/* Puts the scores of each class, label, or entity type. */
static enum status put_classes(const struct task_state *state, const struct task_set *set, const struct task_outputs *outputs,
			       struct json_writer *json)
{
	struct class_scores classes = {0};
	if (!state->task->score_classes)
		return OK;
	TRY(state->task->score_classes(state, set, outputs, &classes));
	results_put_classes(json, "classes", &classes);
	class_scores_release(&classes);
	return OK;
}

/* Parses --test, of which the JSON object has a member for each set, called by its name. */
static enum status parse_sets(const struct evaluate_settings *settings, struct set_list *out)
{
	TRY(set_list_parse(out, &settings->test));
	for (int64_t i = 1; i < out->count && settings->json && !*out->sets[0].name; i++)
		if (strcmp(out->sets[i].name, "test") == 0)
			return error_hinted(
				error_set(ERR_USAGE, "--test: a set is called 'test', as the one without a name would be"),
				"give that one a name: --test NAME=%.200s", out->sets[0].paths[0]);
	return OK;
}

/* Scores a fine-tuned model on examples of its task. */
static enum status score_task(const struct options *options, const struct evaluate_settings *settings)
{
	bool length_given = options_given(options, "max_seq_length");
	struct task_session_settings of_session = {
		.model = settings->model,
		.task = settings->task,
		.max_seq_length = length_given ? settings->max_seq_length : 0,
		.micro_batch_tokens = settings->micro_batch_tokens,
		.columns = &settings->columns,
		.options = options,
		.own = &settings->own,
		.calibration = &settings->calibration,
		.windows = &settings->windows,
		.on_bad_record = settings->input.on_bad_record,
		.device = &settings->device,
	};
	struct task_session session = {0};
	struct set_list files = {0};
	struct buffer text = {0};
	struct json_writer writer = {.out = &text}, *json = open_json(&writer, settings);
	enum status status = parse_sets(settings, &files);
	if (status == OK)
		status = task_session_open(&session, &of_session);
	if (status == OK)
		status = task_options_check(options, session.state.task, NULL);
	bool tunes = settings->calibration.calibrate || settings->calibration.thresholds;
	for (int64_t i = 0; i < files.count && status == OK; i++) {
		struct task_set set = {0};
		struct task_outputs outputs = {0};
		struct measures measures = {0};
		double loss;
		status = task_session_run(&session, files.sets[i].paths, files.sets[i].count, TASK_SCORE, &set, &outputs, &loss);
		if (status == OK && tunes && i == 0)
			status = session.state.task->tune(&session.state, &set, &outputs);
		if (status == OK && !session.state.task->loss) /* a loss over whole steps exists only in training */
			measures_add(&measures, &(struct measure){"loss", "loss", UNIT_NATS, DIRECTION_LOWER, loss});
		if (status == OK)
			status = session.state.task->score(&session.state, &set, &outputs, &measures);
		if (status == OK) {
			double count = (double)task_answers(&set);
			measures_add(&measures, &(struct measure){"examples", NULL, UNIT_COUNT, DIRECTION_NONE, count});
			if (*files.sets[i].name && !json)
				printf("%s\n", files.sets[i].name);
			if (json && files.count > 1)
				json_open(json, *files.sets[i].name ? files.sets[i].name : "test", '{');
			print_metrics(&measures, json);
			if (json)
				status = put_classes(&session.state, &set, &outputs, json);
			if (json && files.count > 1)
				json_close(json);
		}
		task_outputs_release(&outputs);
		if (session.state.task)
			task_set_release(&session.state, &set);
	}
	if (status == OK && tunes)
		status = task_session_save_record(&session);
	set_list_release(&files);
	task_session_close(&session);
	return close_json(json, &text, status);
}

static int text_inputs(const struct evaluate_settings *settings)
{
	return (settings->corpus.count > 0) + (settings->data.count > 0) + (settings->input_file.count > 0);
}

/* ---- Answers in a file ---- */

static enum status check_predictions(const struct squad_prediction_settings *settings, const struct squad_settings *squad,
				     const struct option_list *test)
{
	enum status status = OK;
	if (test->count != 1) {
		status = error_set(ERR_USAGE, test->count == 0 ? "--test is missing: the questions that --predictions answers"
							       : "--predictions answers the questions of one --test file");
		error_hint("bertc evaluate --predictions predictions.json --test dev-v1.1.json");
	} else if (!squad->version_2_with_negative && (settings->na_prob_file || settings->find_threshold)) {
		status = error_set(ERR_USAGE, "%s needs --version_2_with_negative",
				   settings->na_prob_file ? "--na_prob_file" : "--find_threshold");
	} else if (squad->version_2_with_negative && squad->scorer == SQUAD_SCORER_CMRC) {
		status = error_set(ERR_USAGE, "--scorer cmrc has no measures for --version_2_with_negative");
	} else if (!settings->na_prob_file && (settings->find_threshold || settings->na_prob_thresh != 1)) {
		status = error_set(ERR_USAGE, "%s needs --na_prob_file",
				   settings->find_threshold ? "--find_threshold" : "--na_prob_thresh");
	}
	return status;
}

/* At full precision, as the official scripts print them; with `json`, as one object. */
static enum status print_measures(const struct measures *measures, bool json)
{
	struct buffer text = {0};
	struct json_writer writer = {.out = &text};
	if (json)
		json_open(&writer, NULL, '{');
	for (int i = 0; i < measures->count; i++) {
		const struct measure *measure = &measures->item[i];
		if (!json)
			buffer_format(&text, "%-18s ", measure->name);
		if (measure->unit == UNIT_COUNT)
			json_put_integer(&writer, measure->name, (int64_t)measure->value);
		else
			json_put_double(&writer, measure->name, measure->value);
		if (!json)
			buffer_char(&text, '\n');
	}
	if (json) {
		json_close(&writer);
		buffer_char(&text, '\n');
	}
	return command_print(&text);
}

static enum status evaluate_predictions(const struct squad_prediction_settings *settings, const struct squad_settings *squad,
					const struct option_list *test, bool json)
{
	struct measures measures = {0};
	TRY(check_predictions(settings, squad, test));
	TRY(squad_score_predictions(settings, squad, set_path(test->values[0]), &measures));
	return print_measures(&measures, json);
}

static enum status score_retrieval(const struct options *options, const struct evaluate_settings *settings)
{
	struct measures measures = {0};
	int64_t length = options_given(options, "max_seq_length") ? settings->max_seq_length : 0;
	TRY(retrieval_evaluate(&settings->retrieval, settings->model, length, settings->micro_batch_tokens, &settings->device,
			       &measures));
	return print_measures(&measures, settings->json);
}

/* ---- The command ---- */

/* What is evaluated, and which options it takes: the others would change nothing. */
enum evaluation { OF_TEXT = 1, OF_TASK = 2, OF_RETRIEVAL = 4, OF_ANSWERS = 8 };
#define PART(member, of, name)                                                                                                   \
	{                                                                                                                        \
		FIELD(member), FIELD(member) + sizeof(((struct evaluate_settings *)0)->member), of, name                         \
	}
static const struct {
	size_t begin, end; /* in the settings */
	unsigned of;
	const char *needed;
} parts[] = {
	PART(task, OF_TASK | OF_ANSWERS, "--test"),
	PART(columns, OF_TASK, "--test"),
	PART(windows, OF_TASK, "--test"),
	PART(calibration, OF_TASK, "--test"),
	PART(own, OF_TASK | OF_ANSWERS, "--test"),
	PART(predictions, OF_ANSWERS, "--predictions"),
	PART(retrieval, OF_RETRIEVAL, "--retrieval"),
	PART(instances, OF_TEXT, "text"),
	PART(eval_instances, OF_TEXT, "text"),
	PART(input.input_form, OF_TEXT, "text"),
	PART(input.text_form, OF_TEXT, "text"),
	PART(input.text_key, OF_TEXT, "text"),
};

static enum status check_parts(const struct options *options)
{
	const struct evaluate_settings *settings = options->settings;
	if (settings->predictions.predictions && settings->retrieval.retrieval)
		return error_set(ERR_USAGE, "--predictions and --retrieval do not go together: evaluate one after the other");
	unsigned of = settings->predictions.predictions ? OF_ANSWERS
		      : settings->retrieval.retrieval   ? OF_RETRIEVAL
		      : settings->test.count > 0        ? OF_TASK
							: OF_TEXT;
	for (int i = 0; i < options->count; i++) {
		const struct option *row = &options->table[i];
		for (size_t p = 0; row->name && p < sizeof parts / sizeof *parts; p++)
			if (row->field >= parts[p].begin && row->field < parts[p].end && !(parts[p].of & of) &&
			    options_given(options, row->name))
				return error_set(ERR_USAGE, "--%s only applies to %s", row->name, parts[p].needed);
	}
	return OK;
}

static enum status check_evaluate(struct options *options)
{
	const struct evaluate_settings *settings = options->settings;
	enum status status = check_parts(options);
	if (status != OK)
		return options_blame(options, status);
	int inputs = text_inputs(settings);
	if (settings->predictions.predictions) {
		if (settings->model || settings->task || inputs > 0)
			status =
				error_set(ERR_USAGE,
					  "%s and --predictions do not go together: answers in a file are scored without a model",
					  settings->model  ? "--model"
					  : settings->task ? "--task"
							   : "text");
		return options_blame(options, status);
	}
	if (settings->retrieval.retrieval) {
		if (inputs > 0 || settings->test.count > 0)
			status = error_set(ERR_USAGE,
					   "--retrieval goes with neither --test nor text: evaluate one after the other");
		else if (options_given(options, "rerank_top") && !settings->retrieval.reranker)
			status = error_set(ERR_USAGE, "--rerank_top only applies to --reranker");
		else if (settings->retrieval.codes.calibration_vectors && !settings->retrieval.search.corpus_vectors)
			status = error_set(ERR_USAGE, "--calibration_vectors only applies to --corpus_vectors");
		else
			status = text_search_check(&settings->retrieval.search, settings->model);
		TRY(saved_model_check(options, settings->model));
		TRY(saved_model_check(options, settings->retrieval.reranker));
		return options_blame(options, status);
	}
	TRY(options_require(options, "model", "for instance: bertc evaluate --model FOLDER --corpus PATH"));
	TRY(saved_model_check(options, settings->model));
	if (settings->test.count > 0 && inputs > 0)
		status = error_set(ERR_USAGE, "--test and text to pre-train on do not go together: evaluate one after the other");
	else if (settings->test.count == 0 && inputs != 1)
		status = error_set(ERR_USAGE, "%s",
				   inputs == 0 ? "nothing to evaluate on: give --test for a fine-tuned model, or "
						 "--corpus, --data or --input_file"
					       : "give one of --corpus, --data and --input_file");
	return options_blame(options, status);
}

static enum status run_evaluate(struct options *options)
{
	const struct evaluate_settings *settings = options->settings;
	if (settings->predictions.predictions)
		return evaluate_predictions(&settings->predictions, &settings->own.squad, &settings->test, settings->json);
	if (settings->retrieval.retrieval)
		return score_retrieval(options, settings);
	if (settings->test.count > 0)
		return score_task(options, settings);
	TRY(session_needs_words(settings->model));
	struct temporary_folder temporary;
	TRY(temporary_folder_make(&temporary, "evaluate"));
	struct scored scored = {0};
	enum status status = evaluate_in(options, temporary.path, &scored);
	scored_close(&scored);
	temporary_folder_remove(&temporary);
	return status;
}

const struct command command_evaluate = {
	.text = &evaluate_text,
	.options = evaluate_options,
	.settings_bytes = sizeof(struct evaluate_settings),
	.check = check_evaluate,
	.run = run_evaluate,
};
