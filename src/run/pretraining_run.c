/* Chooses a pre-training run's model and length where they were left open, and makes the objective of each phase. */
#include "run/pretraining_run.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/numbers.h"
#include "model/forms.h"
#include "run/budget.h"
#include "train/pretraining_report.h"
#include "text/vocab_learn.h"
#include "train/ranks.h"

static const struct pretraining_options *given_in(const struct pretraining_run *pretraining)
{
	return pretraining->run->options.settings;
}

/* ---- The model ---- */

/* Static instances cannot be cut: the longest one determines the sequence length. */
static enum status fit_static_length(struct pretraining_run *pretraining, int64_t index)
{
	struct run *run = pretraining->run;
	const struct pretraining_phase *phase = &pretraining->data.phases[index];
	struct run_phase *of_run = &run->phases[index];
	const int64_t *length = &of_run->values->max_seq_length;
	int32_t longest = 0;
	for (int64_t i = 0; i < phase->file_count; i++)
		longest = larger(longest, phase->files[i].summary.max_length);
	if (run->phase_count == 1)
		longest = larger(longest, run->longest_evaluated);
	if (phase->file_count > 0 && pretraining_length_is_open(of_run))
		return options_choose_integer(of_run->options, length, longest < 8 ? 8 : longest);
	if (longest <= *length)
		return OK;
	return error_hinted(
		error_set(ERR_USAGE, "a static instance has %d tokens, more than --max_seq_length %" PRId64, longest, *length),
		"static instances are used as they are: leave --max_seq_length out, or increase it");
}

/* ERR_USAGE if the model has fewer positions. */
static enum status check_length(const struct pretraining_run *pretraining, int64_t length, const struct model_config *config)
{
	if (length <= model_positions(config))
		return OK;
	return error_hinted(error_set(ERR_USAGE, "--max_seq_length %" PRId64 " is beyond the model's %d positions", length,
				      model_positions(config)),
			    pretraining->initial.path
				    ? "decrease it, or say where more positions come from: --init_positions tile|draw"
				    : "decrease it, or increase max_position_embeddings in config.json");
}

/* Applies the options for sizes, which cannot change those of existing weights. */
static enum status resize_model(const struct pretraining_run *pretraining, struct model_config *config)
{
	const struct model_sizes *sizes = &given_in(pretraining)->sizes;
	struct model_config before = *config;
	TRY(model_config_resize(config, sizes));
	if (!model_sizes_any(sizes) || !pretraining->initial.path || memcmp(&before, config, sizeof before) == 0)
		return OK;
	return error_hinted(
		error_set(ERR_USAGE,
			  "'%s' has %d layers of width %d, with %d heads, %d intermediate columns and %d positions: options "
			  "cannot change the sizes of trained weights",
			  pretraining->initial.path, before.num_hidden_layers, before.hidden_size, before.num_attention_heads,
			  before.intermediate_size, before.max_position_embeddings),
		"leave --num_hidden_layers, --hidden_size and the like out, or begin with new weights: --model tiny ... large");
}

/* A different shape would be noticed only when the weights are loaded, after the text was prepared; a different number of heads,
 * never. */
static enum status check_shape(const struct pretraining_run *pretraining, const struct model_config *config)
{
	const struct initial_weights *initial = &pretraining->initial;
	const char *model = given_in(pretraining)->initial.model;
	struct model_config own;
	if (!model || !initial->path || !initial->source.config[0])
		return OK;
	TRY(model_folder_config(initial->source.config, &own));
	const struct {
		const char *name;
		int32_t given, own;
	} sizes[] = {
		{"num_hidden_layers", config->num_hidden_layers, own.num_hidden_layers},
		{"hidden_size", config->hidden_size, own.hidden_size},
		{"num_attention_heads", config->num_attention_heads, own.num_attention_heads},
		{"intermediate_size", config->intermediate_size, own.intermediate_size},
	};
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		if (sizes[i].given == sizes[i].own)
			continue;
		return error_hinted(error_set(ERR_STATE, "--model %s has %s %d, but the weights in '%s' have %d", model,
					      sizes[i].name, sizes[i].given, initial->path, sizes[i].own),
				    "leave --model out: --init_checkpoint has a configuration of its own");
	}
	return OK;
}

/* A named size is BERT's unless another form is wanted; a configuration has a form of its own. */
static enum status take_form(const struct pretraining_run *pretraining, struct model_config *config)
{
	const struct initial_options *given = &given_in(pretraining)->initial;
	const struct run *run = pretraining->run;
	const char *form = given_in(pretraining)->sizes.form, *own = model_form_of(config)->model_type;
	if (!form || run->start.resumed || strcmp(form, own) == 0)
		return OK;
	struct model_config named;
	if (pretraining->initial.path || (given->model && model_config_named(&named, given->model) != OK))
		return error_set(ERR_USAGE, "--form %s: '%s' is a model of the form \"%s\"", form,
				 given->model ? given->model : pretraining->initial.path, own);
	/* Before the text is prepared, there may be no vocabulary yet. */
	TRY(model_config_take_form(config, form, run->vocab ? run->vocab->pad : 0));
	config->bos_token_id = run->vocab ? run->vocab->cls : config->bos_token_id;
	config->eos_token_id = run->vocab ? run->vocab->sep : config->eos_token_id;
	return OK;
}

/* Models whose published form has no next-sentence head learn from running text unless told otherwise; then they have such a head
 * while they train. */
static enum status settle_next_sentence(struct pretraining_run *pretraining)
{
	struct run *run = pretraining->run;
	bool has_head = model_form_of(&run->config)->has_next_sentence;
	pretraining->task.heads = model_heads_of_words(&run->config);
	for (int64_t i = 0; i < run->phase_count && !has_head; i++) {
		const struct pretraining_phase *phase = &pretraining->data.phases[i];
		const struct pretraining_options *given = run->phases[i].options->settings;
		const enum next_sentence *kind = &given->instances.next_sentence;
		bool asked = options_origin_of(run->phases[i].options, kind) > ORIGIN_RECIPE, labeled = false;
		for (int64_t f = 0; f < phase->file_count; f++)
			labeled = labeled || phase->files[f].summary.labeled_count > 0;
		if (labeled || (asked && *kind != NEXT_SENTENCE_NONE && *kind != NEXT_SENTENCE_SINGLE))
			pretraining->task.heads = &model_heads_words_and_pairs;
		else if (!asked)
			TRY(options_set(run->phases[i].options, "next_sentence", "none", ORIGIN_CHOSEN));
	}
	const struct pretraining_options *last = run->phases[run->phase_count - 1].options->settings;
	bool made = pretraining->data.phases[run->phase_count - 1].file_count > 0; /* what such instances ask is not known */
	snprintf(run->config.next_sentence, sizeof run->config.next_sentence, "%s",
		 made ? "" : next_sentence_names[last->instances.next_sentence]);
	return OK;
}

static enum status check_rows(const char *model, const struct model_config *config, const struct vocab *vocab)
{
	if (config->vocab_size >= vocab->count)
		return OK;
	return error_hinted(error_set(ERR_STATE, "'%s' has vocab_size %d, the vocabulary has %d entries", model,
				      config->vocab_size, vocab->count),
			    "give the vocabulary that belongs to this model: its tokenizer's files, or --vocab_file");
}

/* A byte-level BPE keeps upper case. */
static enum status settle_case(struct run *run, bool cased)
{
	if (!cased && options_said(&run->options, "cased"))
		log_warning("--cased false has no effect: a byte-level BPE keeps upper case");
	else if (!cased)
		return options_set(&run->options, "cased", "true", ORIGIN_CHOSEN);
	return OK;
}

/* Reports a mistyped name, a vocabulary of another model, and sequences too long for the model, before the text is prepared.
 * Models chosen later are of a named size. */
static enum status check_model(struct pretraining_run *pretraining)
{
	const struct initial_options *given = &given_in(pretraining)->initial;
	struct run *run = pretraining->run;
	struct model_config config;
	if (!given->model && pretraining->initial.path)
		TRY(model_folder_config(pretraining->initial.path, &config));
	else
		TRY(model_size_or_folder_config(given->model ? given->model : "base", &config));
	TRY(take_form(pretraining, &config));
	bool learns = !given->vocab_file && !pretraining->initial.path && !run->start.resumed;
	if (learns && model_form_of(&config)->byte_pairs &&
	    options_is_open(&run->options, &given_in(pretraining)->text.vocab_type))
		TRY(options_set(&run->options, "vocab_type", "bpe", ORIGIN_CHOSEN));
	if (learns && given_in(pretraining)->text.vocab_type == VOCAB_BPE)
		TRY(settle_case(run, given_in(pretraining)->text.cased));
	if (!run->start.resumed)
		TRY(resize_model(pretraining, &config));
	TRY(check_shape(pretraining, &config));
	if (pretraining->initial.vocab_path && !given->model && !given->remap_vocab)
		TRY(check_rows(pretraining->initial.path, &config, &pretraining->initial.vocab));
	bool fixed = given->init_positions == POSITIONS_SAME;
	for (int64_t i = 0; fixed && i < run->phase_count; i++)
		if (pretraining->data.phases[i].input_file.count == 0) /* static instances determine the length themselves */
			TRY(check_length(pretraining, run->phases[i].values->max_seq_length, &config));
	return OK;
}

/* Has a recipe set this dropout? A record does not say, but only `fast` has settings of its own, and its dropout is 0. */
static bool is_of_recipe(const struct run *run, const double *dropout)
{
	enum option_origin origin = options_origin_of(&run->options, dropout);
	bool recorded = origin == ORIGIN_RESUMED || (run->options.from_record && origin == ORIGIN_FILE);
	return origin == ORIGIN_RECIPE || (recorded && run->values->recipe == RECIPE_FAST && *dropout == 0);
}

/* If the run has a time limit: how much the machine can compute in it. */
static enum status choose_budget(struct pretraining_run *pretraining)
{
	struct run *run = pretraining->run;
	double seconds = run->phases[run->phase_count - 1].seconds;
	return seconds > 0 && !run->start.resumed ? budget_flops(run->machine, seconds, &pretraining->budget) : OK;
}

static int64_t encoder_size(const char *model)
{
	struct model_config config;
	BUG_IF(model_config_named(&config, model) != OK);
	return (int64_t)config.num_hidden_layers * config.hidden_size * config.hidden_size;
}

/* The default of --model by the amount of text: a few hours on this machine cannot train a larger model on that much text (about
 * 20 tokens of text per parameter would be ideal). */
static const char *usual_model(int64_t tokens)
{
	return tokens < 1000000 ? "tiny" : tokens < 20000000 ? "mini" : tokens < 300000000 ? "small" : "base";
}

/* The same, but in a given time no larger model than that time allows. */
static const char *usual_model_in_time(int64_t tokens, double budget, bool on_gpu)
{
	const char *by_text = usual_model(tokens), *by_time = budget > 0 ? budget_model(budget, on_gpu) : by_text;
	return encoder_size(by_time) < encoder_size(by_text) ? by_time : by_text;
}

/* The model's shape: given, or chosen from the amount of text. */
static enum status choose_model(struct pretraining_run *pretraining)
{
	struct run *run = pretraining->run;
	struct model_config *config = &run->config;
	const double *hidden_dropout = &run->values->hidden_dropout_prob;
	const double *attention_dropout = &run->values->attention_probs_dropout_prob;
	const char *model = given_in(pretraining)->initial.model;
	if (!model) {
		/* As an absolute path, since the run may be started again from another folder. */
		char *initial = pretraining->initial.path ? realpath(pretraining->initial.path, NULL) : NULL;
		model = pretraining->initial.path ? pretraining->initial.path
						  : usual_model_in_time(pretraining_data_tokens(&pretraining->data),
									pretraining->budget, machine_on_gpu(run->machine));
		enum status status = options_set(&run->options, "model", initial ? initial : model, ORIGIN_CHOSEN);
		free(initial);
		TRY(status);
	}
	/* A checkpoint contains the configuration; what --model named may have moved or changed since. */
	if (run->start.resumed || model == pretraining->initial.path)
		TRY(model_folder_config(run->start.resumed ? run->start.checkpoint : model, config));
	else
		TRY(model_size_or_folder_config(model, config));
	TRY(take_form(pretraining, config));
	if (!run->start.resumed)
		TRY(resize_model(pretraining, config));
	initial_weights_fit(&pretraining->initial, run->vocab->count, run_longest(run), config);
	if (config->vocab_size == 0)
		config->vocab_size = run->vocab->count;
	TRY(check_rows(model, config, run->vocab));
	if (!run->start.resumed)
		vocab_warn_of_rows(model, run->vocab->count, config->vocab_size);
	const struct model_config own = *config;
	TRY(run_choose_dropout(run));
	/* A recipe's dropout is that of the run, and the model keeps its own for fine-tuning; a checkpoint's configuration
	 * already says what it is. */
	config->saved_dropout.set = true;
	config->saved_dropout.hidden =
		is_of_recipe(run, hidden_dropout) || run->start.resumed ? own.hidden_dropout_prob : config->hidden_dropout_prob;
	config->saved_dropout.attention_probs = is_of_recipe(run, attention_dropout) || run->start.resumed
							? own.attention_probs_dropout_prob
							: config->attention_probs_dropout_prob;
	for (int64_t i = 0; i < run->phase_count; i++) {
		TRY(fit_static_length(pretraining, i));
		int32_t length = (int32_t)run->phases[i].values->max_seq_length;
		TRY(check_length(pretraining, larger(length, run->longest_evaluated), config));
	}
	return OK;
}

/* ---- Its training ---- */

/* Number of instances from whose lengths the mean is estimated. */
#define LENGTH_SAMPLES 65536

static enum status mean_length(void *context, int64_t index, double *out)
{
	struct pretraining_run *pretraining = context;
	TRY(pretraining_open_instances(&pretraining->data, index));
	return instances_mean_length(pretraining->data.phases[index].source, LENGTH_SAMPLES, out);
}

static enum status too_little_text(int64_t tokens, int64_t length)
{
	return error_hinted(error_set(ERR_DATA, "the training text has %" PRId64 " tokens: less than one sequence of %" PRId64,
				      tokens, length),
			    "check that this is the right file; give more text, or a smaller --max_seq_length");
}

/* For a run with a time limit: the estimated number of tokens, and their mean number per instance. */
static enum status tokens_in_time(struct pretraining_run *pretraining, int64_t index, double *out_mean, double *out_tokens)
{
	const struct run *run = pretraining->run;
	const struct model_config *config = &run->config;
	double seconds = run->phases[index].seconds, before = index > 0 ? run->phases[index - 1].seconds : 0;
	TRY(mean_length(pretraining, index, out_mean));
	if (run->machine->training_rate <= 0)
		TRY(budget_measure(run->machine, config, (int32_t)ceil(*out_mean), seconds));
	/* Preparing the text may have taken a large part of a short time. The first rank's clock counts for all. */
	double whole = run->phases[run->phase_count - 1].seconds, begun = clock_seconds() - run->opened;
	double left = fmax(0, whole - begun) * (seconds - before) / whole;
	if (run->machine->comm)
		TRY(comm_broadcast(run->machine->comm, &left, sizeof left, 0));
	*out_tokens = budget_tokens(left * budget_rate(run->machine, config->hidden_size), config, run->task->heads, *out_mean,
				    pretraining->data.phases[index].training.masked_lm_prob);
	return OK;
}

/* The batch size if it is open: smaller for a short time, so that there are enough updates. */
static enum status usual_batch(struct pretraining_run *pretraining, int64_t index, int64_t *out)
{
	int64_t hidden = pretraining->run->config.hidden_size;
	double mean, tokens;
	*out = hidden < 512 ? 64 : hidden < 768 ? 128 : 256;
	if (pretraining->budget <= 0)
		return OK;
	TRY(tokens_in_time(pretraining, index, &mean, &tokens));
	*out = budget_batch(tokens, mean, *out);
	return OK;
}

/* How often to read the text. A model that is already trained needs few passes to adapt, and forgets with many. */
static double usual_epochs(const struct pretraining_run *pretraining, int64_t tokens)
{
	double epochs = tokens < 5000000 ? 40 : tokens < 50000000 ? 20 : tokens < 500000000 ? 10 : 4;
	double whole = pretraining->initial.path ? floor(epochs / 4) : epochs;
	return given_in(pretraining)->end_with_pairs ? whole / (double)pretraining->run->phase_count : whole;
}

/* What evaluations may take of the time in a run with a time limit. */
#define EVALUATED_SHARE 0.1

/* For a run with a time limit, in which there is time for `*steps` updates without evaluations: chooses how often to evaluate and
 * save, and leaves the time of the evaluations out. A sequence that is scored costs a third of one that is trained on. */
static enum status leave_time_to_evaluate(struct pretraining_run *pretraining, int64_t index, double *steps)
{
	const struct run_phase *phase = &pretraining->run->phases[index];
	const struct pretraining_options *given = phase->options->settings;
	const struct saving_options *saving = &phase->values->saving;
	const int64_t *const every[] = {&saving->eval_steps, &saving->save_checkpoints_steps};
	double scored = 0;
	TRY(pretraining_open_evaluation(&pretraining->data, index));
	for (int64_t i = 0; i < pretraining->data.evaluation_count; i++) {
		const struct evaluation_set *set = &pretraining->data.evaluation_sets[i];
		int64_t all = instances_per_epoch(set->instances), limit = set->whole ? 0 : given->eval_instances;
		scored += (double)(limit > 0 ? smaller(all, limit) : all);
	}
	double each = scored / 3 / (double)phase->values->batch.train_batch_size;
	/* At least twice: the first one tells the loop how long the last one will take. */
	double wanted = fmin(fmax(fmin(*steps / 20, 5000), each / EVALUATED_SHARE), *steps / 2);
	for (size_t i = 0; i < sizeof every / sizeof *every; i++)
		if (options_is_open(phase->options, every[i]))
			TRY(options_choose_integer(phase->options, every[i], (int64_t)fmax(wanted, 1)));
	double apart = saving->eval_steps > 0 ? (double)saving->eval_steps : *steps;
	*steps = apart < *steps ? *steps / (1 + each / apart) : *steps - each;
	return OK;
}

/* The phase's length in steps, if it was given in epochs, in tokens, as a time, or not at all. */
static enum status choose_steps(struct pretraining_run *pretraining, int64_t index)
{
	const struct pretraining_phase *phase = &pretraining->data.phases[index];
	struct run_phase *of_run = &pretraining->run->phases[index];
	const struct length_options *length = &of_run->values->length;
	int64_t longest = of_run->values->max_seq_length, batch_size = of_run->values->batch.train_batch_size;
	int64_t tokens = pretraining_data_tokens(&pretraining->data);
	double steps, mean;
	TRY(pretraining_open_instances(&pretraining->data, index));
	int64_t an_epoch = instances_per_epoch(phase->source);
	if (an_epoch == 0)
		return error_hinted(error_set(ERR_DATA, "the training text yields no instances"),
				    "its documents are too short; give more text");
	if (!options_is_open(of_run->options, &length->num_train_steps))
		return OK;
	/* Probably the wrong file (a list of names, just a header), unless a number of steps was asked for. */
	if (phase->file_count == 0 && tokens < longest)
		return too_little_text(tokens, longest);
	if (of_run->seconds > 0) {
		TRY(tokens_in_time(pretraining, index, &mean, &steps));
		steps /= mean * (double)batch_size;
		TRY(leave_time_to_evaluate(pretraining, index, &steps));
		steps = floor(steps);
	} else if (length->num_train_tokens > 0) {
		/* A little more, since the phase ends once the tokens have been seen. */
		TRY(mean_length(pretraining, index, &mean));
		steps = ceil(1.01 * (double)length->num_train_tokens / (mean * (double)batch_size));
	} else {
		bool open = options_is_open(of_run->options, &length->num_train_epochs);
		if (open && pretraining->initial.path)
			log_note(
				"length: %g passes over the text, a quarter of those of a new model, because this one is already "
				"trained",
				usual_epochs(pretraining, tokens));
		if (open)
			TRY(options_choose_number(of_run->options, &length->num_train_epochs, usual_epochs(pretraining, tokens),
						  6));
		steps = ceil(length->num_train_epochs * (double)an_epoch / (double)batch_size);
	}
	if (!(steps < 1e15))
		return error_set(ERR_USAGE, "the run would take %.3g steps", steps);
	return options_choose_integer(of_run->options, &length->num_train_steps, steps < 1 ? 1 : (int64_t)steps);
}

/* The usual learning rate for a model of this size and, with LAMB, this batch size. */
static double usual_rate(const struct pretraining_run *pretraining, int64_t batch_size)
{
	const struct run *run = pretraining->run;
	int64_t hidden = run->config.hidden_size;
	/* You et al. 2020, table 4: 5e-3 at a batch size of 32,768, scaled by the square root for others. */
	double rate = optimizer_is_lamb(&run->values->optimizer) ? 5e-3 * sqrt((double)batch_size / 32768)
		      : hidden < 512                             ? 1e-3
		      : hidden < 768                             ? 5e-4
		      : hidden < 1024                            ? 2e-4
								 : 1e-4;
	/* Published models that continued from a trained one used 2e-5 (Google's advice) to 5e-5 (BioBERT) at such batch sizes
	 * for BERT-base; too high a rate destroys what was learned. */
	return pretraining->initial.path ? rate / 4 : rate;
}

/* Chooses batch size, length and learning rate for this model and this amount of text, where the user left them open. */
static enum status choose_phase(struct pretraining_run *pretraining, int64_t index)
{
	struct run *run = pretraining->run;
	struct run_phase *phase = &run->phases[index];
	const struct training_options *training = phase->values;
	int64_t batch;
	TRY(usual_batch(pretraining, index, &batch));
	TRY(phase_choose_batch(phase, run->machine, batch));
	/* A resumed run knows its length, so its instances need not be opened yet. */
	if (!run->start.resumed || options_is_open(phase->options, &training->length.num_train_steps))
		TRY(choose_steps(pretraining, index));
	phase->usual_learning_rate = usual_rate(pretraining, training->batch.train_batch_size);
	if (index > 0 && given_in(pretraining)->end_with_pairs) /* the second part of one schedule */
		phase->usual_learning_rate = run->phases[index - 1].values->rate.learning_rate;
	phase->new_layers = pretraining->initial.path ? 0 : run->config.num_hidden_layers;
	if (options_is_open(phase->options, &training->rate.learning_rate) && pretraining->initial.path)
		log_note("learning rate: %.2g, a quarter of that for a new model, because this one is already trained",
			 phase->usual_learning_rate);
	enum status status = phase_choose(phase, &run->values->optimizer);
	if (status == ERR_USAGE && given_in(pretraining)->end_with_pairs &&
	    training->rate.num_warmup_steps > training->length.num_train_steps)
		error_hint("this is half of the run: --no_end_with_pairs keeps the run in one piece");
	return status;
}

static enum status open_text(struct pretraining_run *pretraining)
{
	const struct run *run = pretraining->run;
	TRY(initial_weights_find(&pretraining->initial, &given_in(pretraining)->initial, &run->options, run->start.resumed));
	if (!run->start.resumed)
		TRY(check_model(pretraining));
	return pretraining_data_open(&pretraining->data);
}

static enum status check_best_set(const struct pretraining_run *pretraining)
{
	const struct run_data *data = &pretraining->data.data;
	const char **names = NULL;
	int64_t deciding;
	TRY(memory_new(&names, data->evaluation_count, sizeof *names, "names of sets"));
	for (int64_t i = 0; i < data->evaluation_count; i++)
		names[i] = data->evaluation[i].name;
	enum status status = run_find_best_set(pretraining->run, names, data->evaluation_count, &deciding);
	free(names);
	return status;
}

enum status pretraining_run_prepare(struct pretraining_run *pretraining)
{
	struct run *run = pretraining->run;
	struct comm *comm = run->machine->comm;
	bool first = is_first_rank(comm);
	TRY(pretraining_data_begin(&pretraining->data, run, &pretraining->initial));
	TRY(ranks_agree(comm, first ? open_text(pretraining) : OK));
	TRY(ranks_agree(comm, first ? OK : open_text(pretraining)));
	TRY(check_best_set(pretraining));
	TRY(choose_budget(pretraining));
	TRY(choose_model(pretraining));
	TRY(settle_next_sentence(pretraining));
	TRY(recipe_choose(&run->options, &run->values->optimizer));
	for (int64_t i = 0; i < run->phase_count; i++) {
		pretraining_set_instances(&pretraining->data, i);
		TRY(choose_phase(pretraining, i));
	}
	return OK;
}

/* ---- Callbacks of the run ---- */

/* Most instances in an evaluation batch. */
#define EVALUATION_INSTANCES 64

static void shape(void *context, int64_t index, struct run_phase *phase, int64_t tokens)
{
	const struct pretraining_run *pretraining = context;
	const struct pretraining_phase *own = &pretraining->data.phases[index];
	const struct run_data *data = &pretraining->data.data;
	struct example_bounds training = instance_bounds(&own->training), evaluation = instance_bounds(&own->evaluation);
	int32_t accumulation = phase->steps.accumulation_steps;
	phase->steps.capacity =
		batch_capacity_for(&training, step_part_examples(&phase->steps), accumulation, accumulation > 0 ? 0 : tokens);
	phase->evaluation_capacity = batch_capacity_for(&evaluation, EVALUATION_INSTANCES, 0, tokens);
	for (int64_t k = 0; k < data->evaluation_count; k++) {
		const struct run_data_set *set = &data->evaluation[k];
		struct instance_settings settings = own->evaluation;
		if (set->file_count == 0)
			continue;
		instances_static_bounds(set->files, set->file_count, &settings);
		struct example_bounds bounds = instance_bounds(&settings);
		struct batch_capacity one = batch_capacity_for(&bounds, EVALUATION_INSTANCES, 0, tokens);
		batch_capacity_grow(&phase->evaluation_capacity, &one);
	}
}

static size_t reader_bytes(void *context, int64_t index, const struct run_phase *phase)
{
	const struct pretraining_run *pretraining = context;
	struct example_bounds bounds = instance_bounds(&pretraining->data.phases[index].training);
	return step_reader_bytes(&bounds, &phase->steps);
}

static enum status load_weights(void *context, struct model *model, struct replica *replica)
{
	const struct pretraining_run *pretraining = context;
	return initial_weights_load(&pretraining->initial, pretraining->run->vocab, model, replica);
}

/* Opens what the phase of `state` reads. A phase begins with a new epoch, so that no sample number stands for two instances. */
static enum status open_phase(void *context, const struct train_state *state, struct objective **out)
{
	struct pretraining_run *pretraining = context;
	struct run *run = pretraining->run;
	struct pretraining_data *data = &pretraining->data;
	int64_t index = state->phase.index;
	const struct pretraining_phase *phase = &data->phases[index];
	const struct pretraining_options *given = run->phases[index].options->settings;
	bool begins = state->samples == state->phase.first_sample && state->samples > 0;
	TRY(pretraining_open_instances(data, index));
	if (begins)
		TRY(instances_hint(phase->source, state->epoch + 1, state->samples));
	else if (state->samples > 0)
		TRY(instances_hint(phase->source, state->epoch, state->epoch_first_sample));
	TRY(pretraining_open_evaluation(data, index));
	return pretraining_create(out, &(struct pretraining_settings){
					       .model = run->memory.model,
					       .activations = run->memory.activations,
					       .comm = run->machine->comm,
					       .train = phase->source,
					       .steps = run->phases[index].steps,
					       .evaluation_sets = data->evaluation_sets,
					       .evaluation_count = data->evaluation_count,
					       .evaluation_instances = given->eval_instances,
					       .evaluation_capacity = run->phases[index].evaluation_capacity,
				       });
}

static void close_phase(void *context, int64_t index)
{
	struct pretraining_run *pretraining = context;
	pretraining_close_instances(&pretraining->data, index);
}

static enum status locate(void *context, struct train_state *state)
{
	struct pretraining_run *pretraining = context;
	struct instances *instances = pretraining->data.phases[state->phase.index].source;
	return instances_locate(instances, state->samples, &state->epoch, &state->epoch_first_sample);
}

static enum status check_data(void *context, bool wait)
{
	struct pretraining_run *pretraining = context;
	struct shard_check *check = pretraining->data.data.check;
	return wait ? shard_check_wait(check) : shard_check_status(check);
}

/* Statistics of the text, and sentences whose blanks the model fills as it learns. */
static enum status describe(void *context, struct report *report)
{
	struct pretraining_run *pretraining = context;
	struct run *run = pretraining->run;
	const struct run_data *data = &pretraining->data.data;
	const struct vocab *vocab = run->vocab;
	struct token_frequencies frequencies;
	if (data->train_file_count > 0)
		TRY(token_frequencies_measure_static(data->train_files, data->train_file_count, vocab->count, &frequencies));
	else
		TRY(token_frequencies_measure(data->train, data->train_count, vocab->count, &frequencies));
	const struct run_data_set *set = data->evaluation_count > 0 ? &data->evaluation[0] : NULL;
	struct report_progress progress = train_progress(&run->training.state);
	TRY(samples_open(&pretraining->samples, run->folder.path, set ? set->shards : NULL, set ? set->shard_count : 0,
			 run->memory.model, &run->memory.replica, vocab, &progress));
	int64_t last = run->phase_count - 1; /* the last phase with pairs; else the first one */
	while (last > 0 && !next_sentence_is_pair(pretraining->data.phases[last].training.next_sentence))
		last--;
	report->facts.epoch_tokens = (double)pretraining_data_tokens(&pretraining->data);
	report->task = pretraining_report(&(struct pretraining_report_facts){
		.vocab_size = run->config.vocab_size,
		.frequencies = &frequencies,
		.vocab = vocab,
		.next_sentence = pretraining->data.phases[last].training.next_sentence,
		.samples = &pretraining->samples,
	});
	return OK;
}

void pretraining_run_begin(struct pretraining_run *out, struct run *run)
{
	*out = (struct pretraining_run){
		.run = run,
		.task =
			{
				.context = out,
				.shapes = {.context = out,
					   .shape = shape,
					   .mean_length = mean_length,
					   .reader_bytes = reader_bytes},
				.heads = &model_heads_pretraining,
				.load_weights = load_weights,
				.describe = describe,
				.open_phase = open_phase,
				.close_phase = close_phase,
				.locate = locate,
				.check_data = check_data,
			},
	};
}

void pretraining_run_leave_device(struct pretraining_run *pretraining)
{
	samples_release(&pretraining->samples);
}

void pretraining_run_release(struct pretraining_run *pretraining)
{
	pretraining_data_close(&pretraining->data);
	initial_weights_release(&pretraining->initial);
}
