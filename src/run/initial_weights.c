/* Finds the weights that a run starts from, checks that they fit, and loads or draws them. */
#include "run/initial_weights.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "model/forms.h"
#include "model/neighbor_attention.h"
#include "weights/tokenizer_file.h"

#define ROW(member, role, value) OPTION_ROW(struct initial_options, member, role, value)
/* clang-format off */
const struct option initial_rows[] = {
	{ROW(vocab_file, ROLE_ENTRY, "PATH"), .fallback_text = "the model folder's, or learned from the corpus",
	 .help = "vocab.txt (one WordPiece per line), tokenizer.json, sentencepiece's file, or a folder with one"},
	{ROW(model, ROLE_RESULT, "SIZE|PATH"), .alias = "bert_config_file config_file model_name_or_path",
	 .fallback_text = "from the amount of text",
	 .help = MODEL_SIZES(", ") ", a config.json, or a model folder to start from"},
	{ROW(init_checkpoint, ROLE_START, "PATH"),
	 .help = "initial weights: a Hugging Face folder, .safetensors, PyTorch .bin or .pt, or a TensorFlow BERT checkpoint; "
	 "its configuration, vocabulary and casing are used"},
	{ROW(init_vocab, ROLE_START, "PATH"), .fallback_text = "beside the initial weights", .rare = true,
	 .help = "vocabulary of the initial weights"},
	{ROW(remap_vocab, ROLE_START, NULL), .fallback = "false",
	 .help = "allow a vocabulary other than that of the initial weights (--vocab_file, or learned): embeddings of "
	 "shared tokens are copied, and init_tokens determines the others"},
	{ROW(init_tokens, ROLE_START, "HOW"), .range = "mean|draw", .fallback = "mean", .rare = true,
	 .help = "with remap_vocab, embeddings of new tokens: the mean of the pieces that the initial vocabulary cuts them into "
	 "(mean), or drawn at random (draw)"},
	{ROW(init_positions, ROLE_START, "HOW"), .range = "same|tile|draw", .fallback = "same", .rare = true,
	 .help = "if the model has more positions than the initial weights: fail (same), repeat theirs (tile), or draw new ones "
	 "(draw)"},
	{ROW(init_attention, ROLE_START, "HOW"), .range = "random|neighbors", .fallback = "random", .rare = true,
	 .help = "how attention begins in a new model: with random weights, which attend to everything alike (random), or "
	 "with half of the heads attending to a neighboring token (neighbors), which shortens the plateau at the start of "
	 "training"},
	{0},
};
/* clang-format on */

bool initial_weights_named(const char *model)
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

/* Reports weights that cannot be opened before the text is prepared. */
static enum status try_weights(const char *path)
{
	struct weights_file file;
	TRY(weights_file_open(&file, path));
	weights_file_close(&file);
	return OK;
}

enum status initial_weights_find(struct initial_weights *initial, const struct initial_options *given,
				 const struct options *options, bool resumed)
{
	*initial = (struct initial_weights){.given = given};
	if (resumed)
		return OK;
	initial->path = given->init_checkpoint;
	if (!initial->path && initial_weights_named(given->model))
		initial->path = given->model;
	if (!initial->path) {
		if (given->remap_vocab || given->init_vocab || given->init_positions != POSITIONS_SAME)
			return error_set(ERR_USAGE, "--remap_vocab, --init_vocab, and --init_positions need --init_checkpoint");
		return OK;
	}
	if (given->init_attention == INIT_ATTENTION_NEIGHBORS && options_given(options, "init_attention"))
		return error_hinted(
			error_set(ERR_USAGE, "--init_attention neighbors is for new models, and '%s' has weights", initial->path),
			"leave it out to train these weights further");
	TRY(model_source_find(initial->path, &initial->source));
	TRY(model_files_look(&initial->files, initial->source.weights));
	TRY(try_weights(initial->source.weights));
	const char *vocab = given->init_vocab ? given->init_vocab : initial->source.vocab;
	if (!vocab[0] && (given->remap_vocab || !given->vocab_file))
		return error_hinted(
			error_set(ERR_USAGE, "'%s': no vocab.txt or tokenizer.json beside the initial weights", initial->path),
			"name the vocabulary they were trained with: --init_vocab PATH");
	if (!vocab[0]) {
		log_warning("'%s': no vocabulary beside the weights: assuming that row i is entry i of '%s'", initial->path,
			    given->vocab_file);
		return OK;
	}
	initial->vocab_path = vocab;
	return vocab_file_read(&initial->vocab, vocab);
}

enum status initial_weights_check_vocab(const struct initial_weights *initial, const struct vocab *vocab)
{
	const struct vocab *source = &initial->vocab;
	if (!initial->path || !initial->vocab_path || vocab->hash == source->hash || initial->given->remap_vocab)
		return OK;
	int32_t same = 0, common = vocab->count < source->count ? vocab->count : source->count;
	while (same < common && strcmp(vocab->text[same], source->text[same]) == 0)
		same++;
	enum status status =
		same < common
			? error_set(ERR_STATE,
				    "the run's vocabulary (%d entries) is not that of the initial weights "
				    "(%d, '%s'): entry %d is '%s', there '%s'",
				    vocab->count, source->count, initial->vocab_path, same, vocab->text[same], source->text[same])
			: error_set(ERR_STATE, "the run's vocabulary has %d entries, that of the initial weights ('%s') %d",
				    vocab->count, initial->vocab_path, source->count);
	error_hint("leave --vocab_file out to keep theirs, or give --remap_vocab to copy the embeddings of shared tokens");
	return status;
}

enum status initial_weights_text(const struct initial_weights *initial, struct options *options, const char **out_vocab_file,
				 bool *cased)
{
	const struct initial_options *given = initial->given;
	*out_vocab_file = given->vocab_file;
	if (!initial->vocab_path)
		return OK;
	if (given->vocab_file) { /* checked before the text is tokenized with it */
		struct vocab vocab;
		TRY(vocab_file_read(&vocab, given->vocab_file));
		enum status status = initial_weights_check_vocab(initial, &vocab);
		vocab_release(&vocab);
		TRY(status);
	}
	if (!given->vocab_file && !given->remap_vocab)
		*out_vocab_file = initial->vocab_path;
	if (options_said(options, "cased") || options_origin(options, "cased") == ORIGIN_RESUMED)
		return OK;
	bool found;
	struct tokenizer_settings tokenizer = tokenizer_defaults(vocab_looks_cased(&initial->vocab));
	TRY(tokenizer_file_settings(initial->vocab_path, &tokenizer, &found));
	if (!found)
		log_note("casing: %s of the entries of '%s' are in upper case, so text is %s",
			 tokenizer.lowercase ? "few or none" : "many", initial->vocab_path,
			 tokenizer.lowercase ? "lower-cased" : "left as it is");
	*cased = !tokenizer.lowercase;
	return options_set(options, "cased", *cased ? "true" : "false", ORIGIN_CHOSEN);
}

void initial_weights_fit(const struct initial_weights *initial, int32_t vocab_count, int64_t longest, struct model_config *config)
{
	if (!initial->path)
		return;
	if (initial->given->remap_vocab)
		config->vocab_size = vocab_count;
	if (initial->given->init_positions != POSITIONS_SAME && longest > model_positions(config))
		config->max_position_embeddings = (int32_t)longest + model_first_position(config);
}

/* ---- Loading ---- */

/* One line, or each name if there are few or with --verbose. */
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

static void log_report(const struct initial_weights *initial, const struct model *model, const struct model_folder_report *report)
{
	const struct model_config *config = &model->config;
	log_note("initial weights: %" PRId64 " of the model's %" PRId64 " tensors from %s (%s, %s)", report->loaded,
		 model->parameter_count, report->path, weights_format_name(report->format),
		 safetensors_dtype_name(report->dtype));
	for (int64_t i = 0; i < report->names.count; i++)
		log_detail("  loaded: %s", report->names.names[i]);
	if (strstr(initial->source.config, "bert_config.json"))
		log_note("  activation: %s, which is what '%s' means with such weights",
			 config->hidden_act == ACTIVATION_GELU_TANH ? "gelu (tanh)" : "gelu (erf)", initial->source.config);
	log_names("missing, drawn at random", &report->missing);
	log_names("of other heads, ignored", &report->unused);
	log_names("optimizer state, ignored", &report->optimizer);
	log_names("counters and constants, ignored", &report->others);
	if (report->padding_rows)
		log_note("  %" PRId64 " rows of padding after the vocabulary are ignored", report->padding_rows);
	if (initial->given->remap_vocab)
		log_note("  vocabulary: the embeddings of %" PRId64 " tokens are copied; %" PRId64
			 " new ones begin as the mean of their pieces, %" PRId64
			 " are drawn at random (normal, %g) with the mean output bias",
			 report->carried_tokens, report->composed_tokens, report->drawn_tokens, config->initializer_range);
	if (report->positions_source)
		log_note("  positions: %" PRId64 " there, %d here (%s)", report->positions_source,
			 config->max_position_embeddings, initial->given->init_positions == POSITIONS_TILE ? "tile" : "draw");
}

/* On a GPU, the library computes the tanh form of GELU as part of its products, which saves two passes. But that makes a
 * different model, so a new run only mentions it and leaves the choice to the user. */
static void offer_faster_activation(const struct model *model)
{
	const struct backend *be = model->backend;
	if (strcmp(be->name, "cuda") != 0 || be->dtype == DTYPE_F32 || model->config.hidden_act != ACTIVATION_GELU_ERF)
		return;
	log_note("activation: gelu (erf), as in Hugging Face's models; the tanh form, that of Google's, should take 6 to 7 %% "
		 "less time a step on a GPU at 128 tokens: a --model config.json with \"hidden_act\": \"gelu_new\"");
}

static enum status begin_with_neighbors(struct model *model, struct replica *replica)
{
	float *slab = NULL;
	enum status status;
	TRY(memory_new(&slab, model->slab_count, sizeof *slab, "weights"));
	TRY_GOTO(model_get_weights(model, slab), done);
	neighbor_attention_set(model, slab);
	TRY_GOTO(model_set_weights(model, replica, slab), done);
	log_note("attention: in the initial weights half of the heads look at a neighboring token (--init_attention neighbors)");
done:
	free(slab);
	return status;
}

enum status initial_weights_load(const struct initial_weights *initial, const struct vocab *vocab, struct model *model,
				 struct replica *replica)
{
	const struct initial_options *options = initial->given;
	bool neighbors = options->init_attention == INIT_ATTENTION_NEIGHBORS;
	struct model_folder_report report = {0};
	float *slab = NULL;
	enum status status;
	if (neighbors && !neighbor_attention_fits(&model->config))
		return error_set(ERR_USAGE, "--init_attention neighbors needs embeddings as wide as the hidden states");
	if (!initial->path) {
		offer_faster_activation(model);
		return neighbors ? begin_with_neighbors(model, replica) : OK;
	}
	struct weight_adaptation adaptation = {
		.missing = MISSING_HEADS,
		.positions = options->init_positions,
		.tokens = options->init_tokens == INIT_TOKENS_MEAN ? TOKENS_MEAN : TOKENS_DRAW,
		.source_vocab = options->remap_vocab ? &initial->vocab : NULL,
		.vocab = options->remap_vocab ? vocab : NULL,
	};
	TRY_GOTO(memory_new(&slab, model->slab_count, sizeof *slab, "weights"), done);
	TRY_GOTO(model_get_weights(model, slab), done);
	TRY_GOTO(model_weights_load(initial->source.weights, model, &adaptation, slab, &report), done);
	TRY_GOTO(model_files_check(&initial->files, initial->source.weights), done);
	TRY_GOTO(model_set_weights(model, replica, slab), done);
	log_report(initial, model, &report);
done:
	model_folder_report_release(&report);
	free(slab);
	return status;
}

void initial_weights_release(struct initial_weights *initial)
{
	vocab_release(&initial->vocab);
	model_files_release(&initial->files);
	*initial = (struct initial_weights){0};
}
