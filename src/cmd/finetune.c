/* bertc finetune: a pre-trained model and a labelled task's files to a model that answers the task. The command fills src/run's
 * structs from its options, shows and records them, and lets the run do the work (run/run.h, run/labelled_run.h). */
#include "base/log.h"
#include "cmd/command.h"
#include "cmd/device_options.h"
#include "cmd/settled_options.h"
#include "cmd/text_options.h"
#include "run/labelled_run.h"
#include "train/schedule.h"

struct finetune_settings {
	/* task */
	const char *task, *text_column, *pair_column, *label_column, *labels, *class_weights, *metric, *on_bad_record;
	struct option_list train, dev, test;
	/* model */
	const char *model;
	int64_t max_seq_length;
	double hidden_dropout_prob, attention_probs_dropout_prob;
	/* run */
	const char *out, *resume_from, *max_time, *best_by;
	bool fresh, plan, save_best, shuffle;
	int64_t num_train_steps, early_stopping_patience, stop_at_step, steps_this_run;
	int64_t train_batch_size, gradient_accumulation_steps, micro_batch_tokens;
	double num_train_epochs;
	int64_t save_checkpoints_steps, keep_checkpoints, eval_steps, log_steps, seed;
	/* ranks and numbers */
	int64_t ranks, n_gpus, replicas_per_gpu, max_restarts;
	double watchdog_seconds, loss_scale;
	/* optimiser */
	const char *optimizer, *schedule;
	bool bias_correction;
	double learning_rate, weight_decay, max_grad_norm, adam_beta1, adam_beta2, adam_epsilon, warmup_proportion, poly_degree;
	int64_t num_warmup_steps;
	struct device_settings device;
};

#define FIELD(name) offsetof(struct finetune_settings, name)
#define TEXT(option, place, names, value, text)                                                                                  \
	{                                                                                                                        \
		.name = option, .type = OPTION_TEXT, .field = FIELD(place), .role = ROLE_RESULT, .value_name = value,            \
		.alias = names, .help = text                                                                                     \
	}
#define FILES(option, place, names, text)                                                                                        \
	{                                                                                                                        \
		.name = option, .type = OPTION_LIST, .field = FIELD(place), .role = ROLE_SOURCE, .value_name = "[NAME=]FILE...", \
		.alias = names, .help = text                                                                                     \
	}
#define COUNT(option, place, least, usual, names, when, text)                                                                    \
	{                                                                                                                        \
		.name = option, .type = OPTION_INTEGER, .field = FIELD(place), .range = least "..", .fallback = usual,           \
		.role = when, .value_name = "N", .alias = names, .help = text                                                    \
	}
#define NUMBER(option, place, between, usual, names, text)                                                                       \
	{                                                                                                                        \
		.name = option, .type = OPTION_NUMBER, .field = FIELD(place), .range = between, .fallback = usual,               \
		.role = ROLE_RESULT, .value_name = "X", .alias = names, .help = text                                             \
	}
#define FLAG(option, place, usual, names, when, text)                                                                            \
	{                                                                                                                        \
		.name = option, .type = OPTION_FLAG, .field = FIELD(place), .fallback = usual, .role = when, .alias = names,     \
		.help = text                                                                                                     \
	}

static const struct option finetune_options[] = {
	{.help = "Task"},
	TEXT("task", task, "task_name", "NAME",
	     "what is to be learned: classification, pair, regression, multilabel, multiple_choice, tagging, squad, or a "
	     "published task such as mrpc or mnli"),
	FILES("train", train, "train_file", "labelled examples to train on: TSV, CSV or JSON lines, told apart by content"),
	FILES("dev", dev, "validation_file eval_file", "examples to evaluate on; each name begins a set of its own"),
	FILES("test", test, "test_file predict_file", "examples to predict when training is done; labels may be absent"),
	TEXT("text_column", text_column, NULL, "COLUMN", "the column with the text, by name or by number from 1"),
	TEXT("pair_column", pair_column, NULL, "COLUMN", "the column with the second text of a pair"),
	TEXT("label_column", label_column, NULL, "COLUMN", "the column with the label"),
	TEXT("labels", labels, NULL, "A,B,C", "all labels, in the order of their numbers"),
	TEXT("class_weights", class_weights, NULL, "WEIGHTS",
	     "weights of the classes in the loss: label:weight,label:weight, or balanced"),
	TEXT("metric", metric, "metric_for_best_model", "NAME",
	     "the measure of the dev set that says which checkpoint is best and when to stop, such as accuracy, f1 or loss"),
	{.name = "on_bad_record",
	 .type = OPTION_CHOICE,
	 .field = FIELD(on_bad_record),
	 .fallback = "stop",
	 .range = "stop|skip",
	 .role = ROLE_RESULT,
	 .value_name = "WHAT",
	 .help = "a row that cannot be used ends the run, or is left out and counted"},
	{.help = "Model"},
	{.name = "model",
	 .type = OPTION_TEXT,
	 .field = FIELD(model),
	 .role = ROLE_SOURCE,
	 .value_name = "FOLDER",
	 .alias = "model_name_or_path init_checkpoint",
	 .help = "the pre-trained model: a run or checkpoint of bertc, or any BERT folder with its vocabulary"},
	COUNT("max_seq_length", max_seq_length, "8", "128", "max_length", ROLE_RESULT,
	      "tokens of an example at most; longer texts are cut"),
	{.name = "hidden_dropout_prob",
	 .type = OPTION_NUMBER,
	 .field = FIELD(hidden_dropout_prob),
	 .range = "0..0.9",
	 .role = ROLE_RESULT,
	 .value_name = "X",
	 .fallback_text = "the model's",
	 .help = "dropout of hidden states and of what the head reads"},
	{.name = "attention_probs_dropout_prob",
	 .type = OPTION_NUMBER,
	 .field = FIELD(attention_probs_dropout_prob),
	 .range = "0..0.9",
	 .role = ROLE_RESULT,
	 .value_name = "X",
	 .fallback_text = "the model's",
	 .help = "dropout of attention probabilities"},
	{.help = "Run"},
	{.name = "out",
	 .type = OPTION_TEXT,
	 .field = FIELD(out),
	 .role = ROLE_PLACE,
	 .value_name = "FOLDER",
	 .alias = "output_dir",
	 .help = "the run's folder; the same command again resumes an interrupted run"},
	FLAG("fresh", fresh, "false", NULL, ROLE_PLACE, "begin again; what an earlier run left in the folder is removed"),
	FLAG("plan", plan, "false", NULL, ROLE_PLACE, "show settings and memory, and train nothing"),
	{.name = "resume_from",
	 .type = OPTION_TEXT,
	 .field = FIELD(resume_from),
	 .role = ROLE_PLACE,
	 .value_name = "CHECKPOINT",
	 .help = "resume from this checkpoint instead of the newest"},
	{.name = "num_train_epochs",
	 .type = OPTION_NUMBER,
	 .field = FIELD(num_train_epochs),
	 .range = "0..",
	 .role = ROLE_RESULT,
	 .value_name = "X",
	 .fallback_text = "3",
	 .help = "passes over the training examples"},
	{.name = "num_train_steps",
	 .type = OPTION_INTEGER,
	 .field = FIELD(num_train_steps),
	 .range = "1..",
	 .role = ROLE_RESULT,
	 .value_name = "N",
	 .alias = "max_steps",
	 .fallback_text = "from num_train_epochs",
	 .help = "updates in all"},
	{.name = "train_batch_size",
	 .type = OPTION_INTEGER,
	 .field = FIELD(train_batch_size),
	 .range = "1..1000000",
	 .role = ROLE_RESULT,
	 .value_name = "N",
	 .alias = "per_device_train_batch_size",
	 .fallback_text = "32",
	 .help = "examples of an update, over all ranks and micro-batches"},
	COUNT("gradient_accumulation_steps", gradient_accumulation_steps, "0", "0", NULL, ROLE_RUN,
	      "micro-batches of an update; 0 = as few as fit"),
	{.name = "micro_batch_tokens",
	 .type = OPTION_INTEGER,
	 .field = FIELD(micro_batch_tokens),
	 .range = "1..",
	 .role = ROLE_RUN,
	 .value_name = "N",
	 .fallback_text = "8192; on GPUs from the memory",
	 .automatic = "auto",
	 .help = "tokens computed at a time"},
	{.name = "eval_steps",
	 .type = OPTION_INTEGER,
	 .field = FIELD(eval_steps),
	 .range = "0..",
	 .role = ROLE_RUN,
	 .value_name = "N",
	 .fallback_text = "an epoch",
	 .help = "steps between evaluations of the dev sets; 0 = only at the end"},
	{.name = "save_checkpoints_steps",
	 .type = OPTION_INTEGER,
	 .field = FIELD(save_checkpoints_steps),
	 .range = "0..",
	 .role = ROLE_RUN,
	 .value_name = "N",
	 .alias = "save_steps",
	 .fallback_text = "an epoch",
	 .help = "steps between checkpoints; 0 = only at the end"},
	COUNT("keep_checkpoints", keep_checkpoints, "0", "2", "save_total_limit", ROLE_RUN,
	      "newest checkpoints that are kept, besides the best one; 0 = all"),
	FLAG("save_best", save_best, "false", "load_best_model_at_end", ROLE_RUN,
	     "the finished model is the checkpoint that is best on the first dev set instead of the last"),
	{.name = "best_by",
	 .type = OPTION_TEXT,
	 .field = FIELD(best_by),
	 .role = ROLE_RUN,
	 .value_name = "NAME",
	 .fallback_text = "the first",
	 .help = "the dev set that decides"},
	COUNT("early_stopping_patience", early_stopping_patience, "0", "0", NULL, ROLE_RUN,
	      "evaluations in a row that are not better which end the run; 0 = none do"),
	COUNT("log_steps", log_steps, "1", "10", "logging_steps", ROLE_RUN, "steps between lines of metrics.jsonl"),
	COUNT("stop_at_step", stop_at_step, "0", "0", NULL, ROLE_PLACE,
	      "save and stop there, the schedule unchanged; 0 = at the end"),
	COUNT("steps_this_run", steps_this_run, "0", "0", NULL, ROLE_PLACE, "save and stop after so many steps; 0 = at the end"),
	{.name = "max_time",
	 .type = OPTION_TEXT,
	 .field = FIELD(max_time),
	 .role = ROLE_PLACE,
	 .value_name = "TIME",
	 .fallback_text = "no limit",
	 .help = "save and stop (status 75) so as to have ended by then: seconds, 1h30m"},
	COUNT("seed", seed, "0", "12345", "random_seed", ROLE_RESULT,
	      "of the head's initial weights, the order of examples, and dropout"),
	FLAG("shuffle", shuffle, "true", NULL, ROLE_RESULT,
	     "examples in another order in every epoch; false: in the order of the files"),
	{.help = "Optimiser"},
	{.name = "optimizer",
	 .type = OPTION_CHOICE,
	 .field = FIELD(optimizer),
	 .fallback = "adamw",
	 .range = "adamw|google_adamw",
	 .role = ROLE_RESULT,
	 .value_name = "NAME",
	 .help = "google_adamw is the optimizer of google-research/bert, without bias correction"},
	{.name = "bias_correction",
	 .type = OPTION_FLAG,
	 .field = FIELD(bias_correction),
	 .role = ROLE_RESULT,
	 .fallback_text = "true; false with google_adamw",
	 .help = "whether the averages of early steps are corrected"},
	{.name = "learning_rate",
	 .type = OPTION_NUMBER,
	 .field = FIELD(learning_rate),
	 .range = "0..10",
	 .role = ROLE_RESULT,
	 .value_name = "X",
	 .fallback_text = "3e-5; 1e-4 for small models",
	 .help = "the highest rate of the schedule"},
	{.name = "schedule",
	 .type = OPTION_CHOICE,
	 .field = FIELD(schedule),
	 .fallback = "linear",
	 .range = SCHEDULE_NAMES,
	 .role = ROLE_RESULT,
	 .value_name = "NAME",
	 .alias = "lr_scheduler_type",
	 .help = "how the rate falls after the warm-up"},
	NUMBER("warmup_proportion", warmup_proportion, "0..1", "0.1", "warmup_ratio",
	       "share of the steps in which the rate rises"),
	{.name = "num_warmup_steps",
	 .type = OPTION_INTEGER,
	 .field = FIELD(num_warmup_steps),
	 .range = "0..",
	 .role = ROLE_RESULT,
	 .value_name = "N",
	 .alias = "warmup_steps",
	 .fallback_text = "from warmup_proportion",
	 .help = "the same in steps"},
	{.name = "poly_degree",
	 .type = OPTION_NUMBER,
	 .field = FIELD(poly_degree),
	 .range = "0.01..100",
	 .role = ROLE_RESULT,
	 .value_name = "X",
	 .fallback_text = "1",
	 .help = "exponent of the schedule poly"},
	NUMBER("weight_decay", weight_decay, "0..10", "0.01", NULL, "decoupled decay of all weights but biases and layer norms"),
	NUMBER("max_grad_norm", max_grad_norm, "0..", "1", NULL, "gradients are scaled down to this norm; 0 = never"),
	NUMBER("adam_beta1", adam_beta1, "0..0.99999", "0.9", NULL, "decay of the mean of gradients"),
	NUMBER("adam_beta2", adam_beta2, "0..0.9999999", "0.999", NULL, "decay of the mean of their squares"),
	NUMBER("adam_epsilon", adam_epsilon, "1e-30..1", "1e-6", NULL, "added to the root of that"),
	{.help = "Machine"},
	DEVICE_OPTIONS(struct finetune_settings, device),
	COUNT("ranks", ranks, "0", "0", "nproc_per_node", ROLE_RUN,
	      "processes that train together on this machine; 0 = one, or one a GPU"),
	COUNT("n_gpus", n_gpus, "0", "0", "gpus num_gpus", ROLE_RUN,
	      "GPUs to train on, a rank for each; 0 = all that are visible"),
	COUNT("replicas_per_gpu", replicas_per_gpu, "1", "1", "replicas_per_rank", ROLE_RUN,
	      "a rank computes the shares of so many devices, one after the other"),
	COUNT("max_restarts", max_restarts, "0", "0", NULL, ROLE_RUN, "times that all ranks are started again after one died"),
	{.name = "watchdog_seconds",
	 .type = OPTION_NUMBER,
	 .field = FIELD(watchdog_seconds),
	 .range = "0.5..",
	 .fallback = "60",
	 .role = ROLE_RUN,
	 .value_name = "X",
	 .help = "a rank that shows no life for so long ends the run (status 6)"},
	{.name = "loss_scale",
	 .type = OPTION_NUMBER,
	 .field = FIELD(loss_scale),
	 .range = "0..",
	 .fallback = "1",
	 .role = ROLE_RUN,
	 .value_name = "X",
	 .help = "the loss is multiplied by it before backward; 0 = dynamic, as --precision fp16 has it unless this is given"},
	{.name = NULL},
};

static const struct command_text finetune_text = {
	.name = "finetune",
	.synopsis = "--task NAME --model FOLDER --train FILE... --out FOLDER [options]",
	.summary = "train a pre-trained model for a task with labels",
	.description = "Reads labelled examples, puts a head for the task on a pre-trained model and trains both. FOLDER/final "
		       "is a Hugging "
		       "Face folder with labels and problem type in its config.json; eval_results.json and eval_results.txt hold "
		       "the measures "
		       "of the dev sets, test_results.tsv and predict.txt the predictions for --test.\n\nColumns are found by "
		       "their usual "
		       "names (sentence1 and sentence2, text, label, ...) and reported; options override. An interrupted run "
		       "resumes when "
		       "the same command is run again.",
	.examples = "bertc finetune --task classification --model runs/mine --train train.tsv --dev dev.tsv --out "
		    "runs/task\tfine-tune a "
		    "model on a table of texts and labels\n",
};

/* ---- Options as the run takes them ---- */

static bool is_open(const struct options *options, const char *name)
{
	return options->text[options_find(options, name)] == NULL;
}

static struct machine_settings machine_of(const struct finetune_settings *settings)
{
	return (struct machine_settings){
		.ranks = settings->ranks,
		.n_gpus = settings->n_gpus,
		.replicas = settings->replicas_per_gpu,
		.max_restarts = settings->max_restarts,
		.watchdog_seconds = settings->watchdog_seconds,
		.device = settings->device,
	};
}

/* Everything the command owns. */
struct finetune {
	struct options *options;
	struct machine machine;
	const char *paths[2];
	const struct option_list *patterns[3];
	struct run_settings run_settings;
	struct labelled_run_settings settings;
	struct run run;
	struct run_record record;
	struct labelled_run labelled;
	struct settled_options settled;
};

static void fill_run(struct finetune *finetune)
{
	const struct options *options = finetune->options;
	const struct finetune_settings *settings = options->settings;
	finetune->paths[0] = settings->model;
	finetune->paths[1] = settings->resume_from;
	finetune->patterns[0] = &settings->train;
	finetune->patterns[1] = &settings->dev;
	finetune->patterns[2] = &settings->test;
	finetune->run_settings = (struct run_settings){
		.folder = {.command = "finetune",
			   .usage = "bertc finetune --task NAME --model FOLDER --train FILE --out FOLDER",
			   .out = settings->out,
			   .fresh = settings->fresh,
			   .plan = settings->plan,
			   .resume_from = settings->resume_from,
			   .resume_step = -1,
			   .paths = finetune->paths,
			   .path_count = 2,
			   .patterns = finetune->patterns,
			   .pattern_count = 3},
		.max_time = settings->max_time,
		.seed = (uint64_t)settings->seed,
		.recipe = {.optimizer = settings->optimizer,
			   .weight_decay = settings->weight_decay,
			   .max_grad_norm = settings->max_grad_norm,
			   .beta1 = settings->adam_beta1,
			   .beta2 = settings->adam_beta2,
			   .epsilon = settings->adam_epsilon,
			   .bias_correction = is_open(options, "bias_correction") ? -1 : settings->bias_correction,
			   .max_trust_ratio = -1,
			   .gradient_averaging = -1},
		.stop_at_step = settings->stop_at_step,
		.steps_this_run = settings->steps_this_run,
		.keep_checkpoints = settings->keep_checkpoints,
		.save_best = settings->save_best,
		.best_by = settings->best_by,
		.check_weights_steps = 100,
		.loss_scale = options_origin(options, "loss_scale") == ORIGIN_DEFAULT ? -1 : settings->loss_scale,
		.init_loss_scale = 65536,
	};
	finetune->settings = (struct labelled_run_settings){
		.task = settings->task,
		.model = settings->model,
		.train = &settings->train,
		.dev = &settings->dev,
		.test = &settings->test,
		.columns = {.text = settings->text_column, .pair = settings->pair_column, .label = settings->label_column},
		.labels = settings->labels,
		.class_weights = settings->class_weights,
		.metric = settings->metric,
		.skip_bad = settings->on_bad_record[1] == 'k',
		.shuffle = settings->shuffle,
		.save_best = settings->save_best,
		.hidden_dropout_prob = is_open(options, "hidden_dropout_prob") ? -1 : settings->hidden_dropout_prob,
		.attention_probs_dropout_prob =
			is_open(options, "attention_probs_dropout_prob") ? -1 : settings->attention_probs_dropout_prob,
	};
}

static struct phase_settings phase_of_options(const struct options *options)
{
	const struct finetune_settings *settings = options->settings;
	return (struct phase_settings){
		.num_train_steps = settings->num_train_steps,
		.num_train_epochs = settings->num_train_epochs,
		.patience = settings->early_stopping_patience,
		.train_batch_size = settings->train_batch_size,
		.gradient_accumulation_steps = settings->gradient_accumulation_steps,
		.micro_batch_tokens = settings->micro_batch_tokens,
		.save_steps = is_open(options, "save_checkpoints_steps") ? -1 : settings->save_checkpoints_steps,
		.eval_steps = is_open(options, "eval_steps") ? -1 : settings->eval_steps,
		.log_steps = settings->log_steps,
		.max_seq_length = settings->max_seq_length,
		.rate = {.learning_rate = is_open(options, "learning_rate") ? -1 : settings->learning_rate,
			 .scale = "none",
			 .schedule = settings->schedule,
			 .poly_degree = is_open(options, "poly_degree") ? -1 : settings->poly_degree,
			 .warmup_proportion = settings->warmup_proportion,
			 .warmup_steps = is_open(options, "num_warmup_steps") ? -1 : settings->num_warmup_steps},
	};
}

/* ---- The settings, shown and recorded ---- */

static enum status settle(struct finetune *finetune, const struct run *run)
{
	TRY(settled_options_make(&finetune->settled, finetune->options, sizeof(struct finetune_settings), &run->choices));
	return settled_options_add(&finetune->settled, &run->phases[0].choices);
}

static enum status show_settings(void *context, const struct run *run, struct buffer *out)
{
	struct finetune *finetune = context;
	TRY(settle(finetune, run));
	options_settings_table(&finetune->settled.options, SCOPE_ALL, log_has_colour(), out);
	return OK;
}

static enum status write_record(void *context, const struct run *run, struct json_writer *writer)
{
	struct finetune *finetune = context;
	TRY(settle(finetune, run));
	options_write_json(&finetune->settled.options, writer, NULL, SCOPE_ALL);
	return OK;
}

static enum status report_options(void *context, const struct run *run, const struct options **out)
{
	struct finetune *finetune = context;
	TRY(settle(finetune, run));
	*out = &finetune->settled.options;
	return OK;
}

/* ---- The run ---- */

static enum status train_in_folder(struct finetune *finetune)
{
	struct run *run = &finetune->run;
	finetune->record =
		(struct run_record){.context = finetune, .write = write_record, .show = show_settings, .options = report_options};
	labelled_run_begin(&finetune->labelled, run);
	fill_run(finetune);
	TRY(run_open(run, &finetune->run_settings, &finetune->machine, &finetune->labelled.task, &finetune->record));
	/* A checkpoint's record completes the options. */
	if (run->start.resumed && phases_record(&run->start))
		TRY(options_resume(finetune->options, phases_record(&run->start), run->start.checkpoint, SCOPE_ALL));
	const struct machine_settings machine = machine_of(finetune->options->settings);
	machine_resume(&finetune->machine, &machine);
	fill_run(finetune);
	TRY(run_set_phases(run, 1));
	run->phases[0].settings = phase_of_options(finetune->options);
	TRY(run_open_device(run));
	TRY(labelled_run_prepare(&finetune->labelled, &finetune->settings));
	TRY(run_plan(run));
	if (finetune->run_settings.folder.plan)
		return OK;
	TRY(run_train(run));
	return labelled_run_finish(&finetune->labelled);
}

static enum status run_finetune(struct options *options)
{
	struct finetune finetune = {.options = options};
	const struct finetune_settings *settings = options->settings;
	const struct machine_settings machine = machine_of(settings);
	run_stop_before_training();
	enum status status = machine_find(&finetune.machine, &machine);
	if (status == OK && machine_launches(&finetune.machine) && !settings->plan && settings->out) {
		fill_run(&finetune);
		status = run_folder_launch(&finetune.run_settings.folder, &finetune.machine);
	} else if (status == OK) {
		status = train_in_folder(&finetune);
	}
	comm_fail(finetune.machine.comm, status);
	struct error error = *error_last();
	run_close(&finetune.run, status);
	labelled_run_release(&finetune.labelled);
	settled_options_release(&finetune.settled);
	machine_close(&finetune.machine);
	return status == OK ? OK : error_restore(&error);
}

const struct command command_finetune = {
	.text = &finetune_text,
	.options = finetune_options,
	.settings_bytes = sizeof(struct finetune_settings),
	.run = run_finetune,
};
