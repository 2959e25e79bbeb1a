#include "cmd/pretrain_settings.h"

/* Nobody has set it, and it has no default. */
static bool is_open(const struct options *options, const char *name)
{
	return options->text[options_find(options, name)] == NULL;
}

/* Only its default says anything. */
static bool is_default(const struct options *options, const char *name)
{
	return options_origin(options, name) == ORIGIN_DEFAULT;
}

static bool is_recorded(const struct options *options, const char *name)
{
	return options_origin(options, name) == ORIGIN_RESUMED;
}

static int flag(const struct options *options, const char *name, bool value)
{
	return is_open(options, name) ? -1 : value;
}

static double number(const struct options *options, const char *name, double value)
{
	return is_open(options, name) ? -1 : value;
}

static int64_t integer(const struct options *options, const char *name, int64_t value)
{
	return is_open(options, name) ? -1 : value;
}

/* ---- Of the machine and the run ---- */

struct machine_settings pretrain_machine(const struct pretrain_settings *settings)
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

static struct recipe recipe_of(const struct options *options)
{
	const struct pretrain_settings *settings = options->settings;
	return (struct recipe){
		.optimizer = settings->optimizer,
		.weight_decay = settings->weight_decay,
		.max_grad_norm = settings->max_grad_norm,
		.beta1 = settings->adam_beta1,
		.beta2 = settings->adam_beta2,
		.epsilon = settings->adam_epsilon,
		.bias_correction = flag(options, "bias_correction", settings->bias_correction),
		.undecayed = settings->exclude_from_weight_decay,
		.trust_ratio = settings->trust_ratio,
		.max_trust_ratio = number(options, "max_trust_ratio", settings->max_trust_ratio),
		.unadapted = settings->exclude_from_layer_adaptation,
		.gradient_normalization = settings->gradient_normalization,
		.gradient_averaging = flag(options, "gradient_averaging", settings->gradient_averaging),
	};
}

struct run_settings pretrain_run(const struct options *options, struct pretrain_inputs *inputs)
{
	const struct pretrain_settings *settings = options->settings;
	*inputs = (struct pretrain_inputs){
		.paths = {settings->vocab_file, settings->model, settings->init_checkpoint, settings->init_vocab,
			  settings->resume_from},
		.patterns = {&settings->corpus},
	};
	return (struct run_settings){
		.folder =
			{
				.command = "pretrain",
				.usage = "bertc pretrain --corpus PATH --out FOLDER",
				.out = settings->out,
				.fresh = settings->fresh,
				.plan = settings->plan,
				.resume_from = settings->resume_from,
				.resume_step = settings->resume_step,
				.paths = inputs->paths,
				.path_count = sizeof(inputs->paths) / sizeof(*inputs->paths),
				.patterns = inputs->patterns,
				.pattern_count = sizeof(inputs->patterns) / sizeof(*inputs->patterns),
			},
		.max_time = settings->max_time,
		.seed = (uint64_t)settings->seed,
		.recipe = recipe_of(options),
		.stop_at_step = settings->stop_at_step,
		.steps_this_run = settings->steps_this_run,
		.keep_checkpoints = settings->keep_checkpoints,
		.save_best = settings->save_best,
		.best_by = settings->best_by,
		.reduce_every_batch = !settings->allreduce_post_accumulation,
		.wire_fp16 = settings->allreduce_post_accumulation_fp16,
		.wire_bf16 = settings->allreduce_post_accumulation_bf16,
		.check_weights_steps = settings->check_weights_steps,
		.skip_spikes = settings->skip_spikes,
		.loss_scale = is_default(options, "loss_scale") ? -1 : settings->loss_scale,
		.init_loss_scale = settings->init_loss_scale,
	};
}

struct phase_settings pretrain_phase(const struct options *phase)
{
	const struct pretrain_settings *settings = phase->settings;
	return (struct phase_settings){
		.num_train_steps = settings->num_train_steps,
		.num_train_tokens = settings->num_train_tokens,
		.num_train_epochs = settings->num_train_epochs,
		.patience = settings->early_stopping_patience,
		.patience_margin = settings->early_stopping_threshold,
		.train_batch_size = settings->train_batch_size,
		.train_batch_size_per_gpu = settings->train_batch_size_per_gpu,
		.gradient_accumulation_steps = settings->gradient_accumulation_steps,
		.micro_batch_tokens = settings->micro_batch_tokens,
		.save_steps = integer(phase, "save_checkpoints_steps", settings->save_checkpoints_steps),
		.eval_steps = integer(phase, "eval_steps", settings->eval_steps),
		.log_steps = settings->log_steps,
		.max_seq_length = settings->max_seq_length,
		.rate =
			{
				.learning_rate = number(phase, "learning_rate", settings->learning_rate),
				.min_learning_rate = settings->min_learning_rate,
				.scale = settings->scale_learning_rate,
				.scale_batch_size = settings->learning_rate_batch_size,
				.schedule = settings->schedule,
				.poly_degree = number(phase, "poly_degree", settings->poly_degree),
				.warmup_proportion = number(phase, "warmup_proportion", settings->warmup_proportion),
				.warmup_steps = integer(phase, "num_warmup_steps", settings->num_warmup_steps),
			},
	};
}

/* ---- Of what it trains on ---- */

static const struct option_list none;

/* A recorded list gives way to another kind of data, where one is given. */
static const struct option_list *source(const struct options *options, const struct options *of, const char *name,
					const struct option_list *list, const char *other, const char *another)
{
	bool given = options_given(options, other) || options_given(options, another);
	return is_recorded(of, name) && given ? &none : list;
}

struct pretraining_run_settings pretrain_pretraining(const struct options *options)
{
	const struct pretrain_settings *s = options->settings;
	return (struct pretraining_run_settings){
		.model = s->model,
		.initial =
			{
				.checkpoint = s->init_checkpoint,
				.model = s->model,
				.vocab = s->init_vocab,
				.vocab_file = s->vocab_file,
				.remap_vocab = s->remap_vocab,
				.positions = s->init_positions,
			},
		.data =
			{
				.corpus = source(options, options, "corpus", &s->corpus, "data", "input_file"),
				.data = source(options, options, "data", &s->data, "corpus", "input_file"),
				.eval_corpus = source(options, options, "eval_corpus", &s->eval_corpus, "eval_data", "eval_file"),
				.eval_data = source(options, options, "eval_data", &s->eval_data, "eval_corpus", "eval_file"),
				.eval_file = source(options, options, "eval_file", &s->eval_file, "eval_corpus", "eval_data"),
				.corpus_recorded = is_recorded(options, "corpus"),
				.eval_recorded = is_recorded(options, "eval_corpus"),
				.input = input_corpus_settings(&s->input, 0),
				.held_out_fraction = s->held_out_fraction,
				.vocab_size = s->vocab_size,
				.min_frequency = s->min_frequency,
				.cased_given = options_given(options, "cased"),
				.cased = options_given(options, "cased") || is_recorded(options, "cased") ? s->cased : -1,
				.shuffle = s->shuffle,
			},
		.hidden_dropout_prob = number(options, "hidden_dropout_prob", s->hidden_dropout_prob),
		.attention_probs_dropout_prob = number(options, "attention_probs_dropout_prob", s->attention_probs_dropout_prob),
	};
}

struct pretraining_phase pretrain_instances(const struct options *options, const struct options *phase)
{
	const struct pretrain_settings *settings = phase->settings;
	return (struct pretraining_phase){
		.input_file = source(options, phase, "input_file", &settings->input_file, "corpus", "data"),
		.instances =
			{
				.min_seq_length = (int32_t)settings->min_seq_length,
				.masked_lm_prob = settings->masked_lm_prob,
				.max_predictions_per_seq = (int32_t)settings->max_predictions_per_seq,
				.short_seq_prob = settings->short_seq_prob,
				.whole_word_mask = settings->whole_word_mask,
				.max_ngram = (int32_t)settings->max_ngram,
				.next_sentence = next_sentence_named(settings->next_sentence),
			},
		.length_open = is_default(phase, "max_seq_length"),
		.eval_instances = settings->eval_instances,
		.eval_whole = is_default(phase, "eval_instances"),
	};
}
