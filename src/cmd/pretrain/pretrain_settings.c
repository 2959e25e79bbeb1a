/* Fills the structs of src/run from the options of `bertc pretrain`. */
#include "cmd/pretrain/pretrain_settings.h"

#include <string.h>

/* Does the option have only its default value? */
static bool is_default(const struct options *options, const char *name)
{
	return options_origin(options, name) == ORIGIN_DEFAULT;
}

static bool is_recorded(const struct options *options, const char *name)
{
	return options_origin(options, name) == ORIGIN_RESUMED;
}

/* ---- The run ---- */

struct run_folder_settings pretrain_folder(const struct options *options, struct pretrain_inputs *inputs)
{
	const struct pretrain_settings *settings = options->settings;
	*inputs = (struct pretrain_inputs){
		.paths = {settings->vocab_file, settings->model, settings->initial.init_checkpoint, settings->initial.init_vocab,
			  settings->training.folder.resume_from},
	};
	return (struct run_folder_settings){
		.command = "pretrain",
		.usage = "bertc pretrain --corpus PATH --out FOLDER",
		.given = &settings->training.folder,
		.paths = inputs->paths,
		.path_count = sizeof inputs->paths / sizeof *inputs->paths,
		.options = options,
	};
}

/* ---- Training data ---- */

static const struct option_list none;

/* A recorded list gives way if another kind of data is given. */
static const struct option_list *source(const struct options *options, const struct options *of, const char *name,
					const struct option_list *list, const char *other, const char *another)
{
	bool given = options_given(options, other) || options_given(options, another);
	return is_recorded(of, name) && given ? &none : list;
}

/* Has a recipe set this dropout? A record does not say, but only `fast` has settings of its own, and its dropout is 0. */
static bool is_of_recipe(const struct options *options, const char *name, double value)
{
	const struct pretrain_settings *settings = options->settings;
	bool recorded = is_recorded(options, name) || (options->from_record && options_origin(options, name) == ORIGIN_FILE);
	return options_origin(options, name) == ORIGIN_RECIPE || (recorded && settings->recipe == RECIPE_FAST && value == 0);
}

struct pretraining_run_settings pretrain_pretraining(const struct options *options)
{
	const struct pretrain_settings *s = options->settings;
	return (struct pretraining_run_settings){
		.model = s->model,
		.sizes = s->sizes,
		.initial =
			{
				.options = &s->initial,
				.model = s->model,
				.vocab_file = s->vocab_file,
				.attention_given = options_given(options, "init_attention"),
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
				.text = &s->text,
				.cased_given = options_said(options, "cased"),
				.cased = options_said(options, "cased") || is_recorded(options, "cased") ? s->cased : -1,
				.shuffle = s->shuffle,
			},
		.recipe_hidden_dropout = is_of_recipe(options, "hidden_dropout_prob", s->training.hidden_dropout_prob),
		.recipe_attention_dropout =
			is_of_recipe(options, "attention_probs_dropout_prob", s->training.attention_probs_dropout_prob),
	};
}

struct pretraining_phase pretrain_instances(const struct options *options, const struct options *phase)
{
	const struct pretrain_settings *settings = phase->settings;
	return (struct pretraining_phase){
		.input_file = source(options, phase, "input_file", &settings->input_file, "corpus", "data"),
		.instances = instance_options_settings(&settings->instances),
		.length_open = is_default(phase, "max_seq_length"),
		.eval_instances = settings->eval_instances,
		.eval_whole = is_default(phase, "eval_instances"),
	};
}
