/* The weights that `bertc pretrain` begins with when they are another's (--init_checkpoint, --model FOLDER): where they
 * are, what their vocabulary and configuration decide, and how they get into the model. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "cmd/pretrain.h"
#include "weights/tokenizer_file.h"

/* --model names weights to go on from: not a size, and not a configuration alone. */
static bool model_has_weights(const char *model)
{
	struct model_config config;
	char weights[PATH_BYTES];
	if (!model || model_config_named(&config, model) == OK)
		return false;
	if (file_is_folder(model))
		return true;
	bool json = text_ends_with(model, ".json"), index = text_ends_with(model, ".index.json");
	return (!json || index) && weights_file_find(model, weights) == OK;
}

/* What cannot be opened is said before the text is prepared. */
static enum status try_weights(const char *path)
{
	struct weights_file file;
	TRY(weights_file_open(&file, path));
	weights_file_close(&file);
	return OK;
}

enum status pretrain_find_initial(struct pretrain *run)
{
	const struct pretrain_settings *settings = run->settings;
	struct initial_weights *initial = &run->initial;
	if (run->resumed)
		return OK;
	initial->path = settings->init_checkpoint;
	if (!initial->path && model_has_weights(settings->model))
		initial->path = settings->model;
	if (!initial->path) {
		if (settings->remap_vocab || settings->init_vocab || strcmp(settings->init_positions, "same") != 0)
			return error_set(ERR_USAGE, "--remap_vocab, --init_vocab and --init_positions belong to "
						    "--init_checkpoint");
		return OK;
	}
	TRY(model_source_find(initial->path, &initial->source));
	TRY(try_weights(initial->source.weights));
	const char *vocab = settings->init_vocab ? settings->init_vocab : initial->source.vocab;
	if (!vocab[0] && (settings->remap_vocab || !settings->vocab_file)) {
		enum status status =
			error_set(ERR_USAGE, "'%s': no vocab.txt or tokenizer.json beside the initial weights", initial->path);
		error_hint("name the vocabulary they were trained with: --init_vocab PATH");
		return status;
	}
	if (!vocab[0]) {
		log_warning("'%s': no vocabulary beside the weights: row i is taken for entry i of '%s'", initial->path,
			    settings->vocab_file);
		return OK;
	}
	initial->vocab_path = vocab;
	return vocab_file_read(&initial->vocab, vocab);
}

/* ERR_STATE that says where the vocabularies part, if they do. */
static enum status check_vocab(const struct pretrain *run, const struct vocab *vocab)
{
	const struct vocab *source = &run->initial.vocab;
	if (!run->initial.vocab_path || vocab->hash == source->hash || run->settings->remap_vocab)
		return OK;
	int32_t same = 0, common = vocab->count < source->count ? vocab->count : source->count;
	while (same < common && strcmp(vocab->text[same], source->text[same]) == 0)
		same++;
	enum status status =
		same < common ? error_set(ERR_STATE,
					  "the run's vocabulary (%d entries) is not that of the initial weights "
					  "(%d, '%s'): entry %d is '%s', there '%s'",
					  vocab->count, source->count, run->initial.vocab_path, same, vocab->text[same],
					  source->text[same])
			      : error_set(ERR_STATE, "the run's vocabulary has %d entries, that of the initial weights ('%s') %d",
					  vocab->count, run->initial.vocab_path, source->count);
	error_hint("leave --vocab_file out to keep theirs, or give --remap_vocab to carry the rows of shared tokens over");
	return status;
}

enum status pretrain_initial_text(struct pretrain *run, const char **out_vocab_file)
{
	const struct pretrain_settings *settings = run->settings;
	const struct initial_weights *initial = &run->initial;
	*out_vocab_file = settings->vocab_file;
	if (!initial->vocab_path)
		return OK;
	if (settings->vocab_file) { /* before the text is cut by it */
		struct vocab vocab;
		TRY(vocab_file_read(&vocab, settings->vocab_file));
		enum status status = check_vocab(run, &vocab);
		vocab_release(&vocab);
		TRY(status);
	}
	if (!settings->vocab_file && !settings->remap_vocab)
		*out_vocab_file = initial->vocab_path;
	if (options_given(run->options, "cased"))
		return OK;
	bool found;
	struct tokenizer_settings tokenizer = tokenizer_defaults(vocab_has_upper_case(&initial->vocab));
	TRY(tokenizer_file_settings(initial->vocab_path, &tokenizer, &found));
	if (!found)
		log_note("casing: %s entries of '%s' are in upper case, so text is %s", tokenizer.lowercase ? "no" : "some",
			 initial->vocab_path, tokenizer.lowercase ? "made lower case" : "left as it is");
	return pretrain_choose(run->options, "cased", "%s", tokenizer.lowercase ? "false" : "true");
}

enum status pretrain_check_initial_vocab(struct pretrain *run)
{
	return check_vocab(run, &run->data.vocab);
}

enum status pretrain_initial_config(struct pretrain *run, struct model_config *config)
{
	const struct pretrain_settings *settings = run->settings;
	const struct initial_weights *initial = &run->initial;
	if (!initial->path)
		return OK;
	if (settings->remap_vocab)
		config->vocab_size = run->data.vocab.count;
	int64_t longest = 0;
	for (int64_t i = 0; i < run->phase_count; i++)
		longest = longest > run->phases[i].settings->max_seq_length ? longest : run->phases[i].settings->max_seq_length;
	if (strcmp(settings->init_positions, "same") != 0 && longest > config->max_position_embeddings)
		config->max_position_embeddings = (int32_t)longest;
	return OK;
}

/* --- Loading --- */

/* One line, or with --verbose each name. */
static void log_names(const char *what, const struct name_list *names)
{
	if (names->count == 0)
		return;
	bool all = log_level >= LOG_VERBOSE;
	if (names->count <= 3 || all)
		log_note("  %s: %" PRId64, what, names->count);
	else
		log_note("  %s: %" PRId64 ", the first is %s (--verbose lists them)", what, names->count, names->names[0]);
	for (int64_t i = 0; i < names->count && (all || names->count <= 3); i++)
		log_note("    %s", names->names[i]);
}

static void log_report(const struct pretrain *run, const struct model_folder_report *report)
{
	log_note("initial weights: %" PRId64 " of the model's %" PRId64 " tensors from %s (%s, %s)", report->loaded,
		 run->model->parameter_count, report->path, weights_format_name(report->format),
		 safetensors_dtype_name(report->dtype));
	for (int64_t i = 0; i < report->names.count; i++)
		log_detail("  loaded: %s", report->names.names[i]);
	if (strstr(run->initial.source.config, "bert_config.json"))
		log_note("  activation: %s, which is how '%s' is read beside such weights",
			 run->config.hidden_act == ACTIVATION_GELU_TANH ? "gelu (tanh)" : "gelu (erf)",
			 run->initial.source.config);
	log_names("missing there, drawn anew", &report->missing);
	log_names("of other heads, not used", &report->unused);
	log_names("state of an optimiser, not used", &report->optimizer);
	log_names("counters and constants, not used", &report->others);
	if (report->padding_rows)
		log_note("  %" PRId64 " rows of padding behind the vocabulary are left out", report->padding_rows);
	if (run->settings->remap_vocab)
		log_note("  vocabulary: the rows of %" PRId64 " tokens are carried over; %" PRId64 " tokens are new: embeddings "
			 "drawn (normal, %g), output bias the mean of the others",
			 report->carried_tokens, report->drawn_tokens, run->config.initializer_range);
	if (report->positions_source)
		log_note("  positions: %" PRId64 " there, %d here (%s)", report->positions_source,
			 run->config.max_position_embeddings, run->settings->init_positions);
}

/* A GPU's library computes the tanh form of GELU with its products, which saves two passes; but the model is another one, so that
 * it is said where one begins, and left to the user. */
static void offer_faster_activation(const struct pretrain *run)
{
	const struct backend *be = run->replica.backend;
	if (strcmp(be->name, "cuda") != 0 || be->dtype == DTYPE_F32 || run->config.hidden_act != ACTIVATION_GELU_ERF)
		return;
	log_note("activation: gelu (erf), as in Hugging Face's models; the tanh form, that of Google's, should take 6 to 7 %% "
		 "less time a step on a GPU at 128 tokens: a --model config.json with \"hidden_act\": \"gelu_new\"");
}

enum status pretrain_load_initial(struct pretrain *run)
{
	const struct pretrain_settings *settings = run->settings;
	const struct initial_weights *initial = &run->initial;
	struct weight_adaptation adaptation = {
		.missing = MISSING_HEADS,
		.positions = strcmp(settings->init_positions, "tile") == 0   ? POSITIONS_TILE
			     : strcmp(settings->init_positions, "draw") == 0 ? POSITIONS_DRAW
									     : POSITIONS_SAME,
		.source_vocab = settings->remap_vocab ? &initial->vocab : NULL,
		.vocab = settings->remap_vocab ? &run->data.vocab : NULL,
	};
	struct model_folder_report report = {0};
	float *slab = NULL;
	enum status status;
	if (!initial->path) {
		offer_faster_activation(run);
		return OK;
	}
	TRY_GOTO(memory_new(&slab, run->model->slab_count, sizeof(*slab), "weights"), done);
	TRY_GOTO(model_get_weights(run->model, slab), done);
	TRY_GOTO(model_weights_load(initial->source.weights, run->model, &adaptation, slab, &report), done);
	TRY_GOTO(model_set_weights(run->model, &run->replica, slab), done);
	log_report(run, &report);
done:
	model_folder_report_release(&report);
	free(slab);
	return status;
}
