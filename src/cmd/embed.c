/* bertc embed: turns texts into vectors. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/log.h"
#include "base/memory.h"
#include "cmd/answer_options.h"
#include "cmd/command.h"
#include "cmd/saved_models.h"
#include "cmd/foreign_rows.h"
#include "formats/npy_file.h"
#include "infer/sparse_vectors.h"
#include "infer/vector_codes.h"
#include "infer/vector_format.h"
#include "model/pooling.h"
#include "weights/sentence_folder.h"

/* The words of --pooling and of --format, in their order. */
enum pooling_name {
	NAMED_OPEN,
	NAMED_MEAN,
	NAMED_CLS,
	NAMED_POOLER,
	NAMED_MAX,
	NAMED_MEAN_SQRT,
	NAMED_WEIGHTED_MEAN,
	NAMED_LAST,
	NAMED_SPLADE,
};
enum vector_file { VECTORS_AUTO, VECTORS_JSON, VECTORS_NPY, VECTORS_TSV, VECTORS_GOOGLE };

struct embed_settings {
	struct answer_settings answer;
	enum pooling_name pooling;
	enum vector_file format;
	const char *layers, *prompt, *prompt_name;
	bool normalize;
	int64_t truncate_dim, max_active_dims;
	enum vector_code vector_type;
	const char *calibration_vectors;
};

#define FIELD(name) offsetof(struct embed_settings, name)
#define ROW(member, role, value) OPTION_ROW(struct embed_settings, member, role, value)

/* clang-format off */
static const struct option embed_options[] = {
	{.help = "Input"},
	{.group = answer_input_rows, .field = FIELD(answer)},
	{ROW(prompt_name, ROLE_RESULT, "NAME"), .fallback_text = "the folder's default",
	 .help = "prompt of the sentence-transformers folder to put before each text"},
	{ROW(prompt, ROLE_RESULT, "TEXT"), .help = "put this before each text; an empty one turns off the folder's default"},
	{.help = "Vectors"},
	{ROW(pooling, ROLE_RESULT, "HOW"), .range = "|mean|cls|pooler|max|mean_sqrt_len|weightedmean|lasttoken|splade",
	 .fallback_text = "as the folder's modules.json says, else mean",
	 .help = "how the rows of a text become its vector: their mean, the row of [CLS], that row through the pooler, or the "
	 "maximum of each column; the others as in sentence-transformers; splade: instead of a vector, weights for the words of "
	 "the vocabulary, from the masked-word head"},
	{ROW(normalize, ROLE_RESULT, NULL), .fallback_text = "as the folder's modules.json says, else no",
	 .help = "divide vectors by their length"},
	{ROW(layers, ROLE_RESULT, "LIST"), .fallback_text = "-1, with --format google -1,-2,-3,-4",
	 .help = "layers whose vectors are concatenated: -1 is the last layer, 1 the first, 0 the embeddings"},
	{ROW(truncate_dim, ROLE_RESULT, "N"), .range = "1..", .fallback_text = "as the folder says, else all",
	 .help = "keep only this many numbers of each vector; --normalize gives what is kept a length of 1, a folder's own "
	 "normalization the whole vector"},
	{ROW(max_active_dims, ROLE_RESULT, "N"), .range = "1..", .fallback_text = "all",
	 .help = "with --pooling splade: keep only so many of a text's weights, the largest"},
	{ROW(vector_type, ROLE_RESULT, "NAME"), .range = "float32|int8|uint8|binary|ubinary", .fallback = "float32",
	 .help = "how numbers are stored: as they are, in one byte each, or in one bit each, as sentence-transformers' "
	 "quantize_embeddings does it"},
	{ROW(calibration_vectors, ROLE_SOURCE, "FILE.npy"),
	 .help = "float32 vectors of similar texts; --vector_type int8 and uint8 divide the ranges of their numbers into "
	 "steps"},
	{.help = "Output"},
	{ROW(format, ROLE_RESULT, "NAME"), .range = "auto|jsonl|npy|tsv|google", .fallback = "auto",
	 .help = "jsonl: {\"embedding\": [...]} for each text, with --pooling splade {\"embedding\": {\"word\": weight, ...}}; "
	 "npy: one NumPy array, to --out only; tsv: numbers separated by tabs; google: the rows of all tokens, as "
	 "extract_features.py prints them; auto goes by the name of --out: npy for "
	 ".npy, tsv for .tsv, otherwise jsonl"},
	{.group = answer_output_rows, .only = "out fresh", .field = FIELD(answer.output)},
	{.help = "Machine"},
	{.group = answer_output_rows, .only = "micro_batch_tokens", .field = FIELD(answer.output)},
	{.group = device_rows, .field = FIELD(answer.device)},
	{.name = NULL},
};
/* clang-format on */

static const struct command_text embed_text = {
	.name = "embed",
	.synopsis = "--model FOLDER [FILE...|-] [options]",
	.summary = "turn texts into vectors",
	.description = "Reads texts from files or standard input, one per line, as JSON lines with \"text\" (and \"id\", "
		       "which is repeated), or from the column of a table that --text_column names, and prints a vector for "
		       "each, in the same order. A sentence-transformers folder defines its own pooling, normalization, "
		       "prompt, and maximum length; for other folders it is the mean over the tokens, not normalized.",
	.examples =
		"bertc embed --model runs/vectors sentences.txt --out sentences.npy\ta NumPy array with one row per "
		"line\nbertc embed --model BERT --format google --layers -1,-2 sentences.txt\twhat extract_features.py prints\n",
};

#define LAYERS_MOST 64

struct embed {
	struct answer_model model; /* first, as answer_model_job() asks */
	const struct embed_settings *settings;
	struct sentence_folder folder;
	struct encoder_wish wish;
	struct encoder_answers answers;
	enum vector_file format;
	bool normalize;
	int64_t normalized; /* numbers that get a length of 1: with --normalize, those that are kept */
	int32_t layers[LAYERS_MOST], said_layers[LAYERS_MOST], layer_count; /* counted from 0; as the user named them */
	int64_t width, dimensions;                                          /* values of a vector; values that are kept */
	float *vector;                                                      /* [width]: of a text in several windows */
	struct code_ranges ranges;
	bool is_sparse;     /* weights of words */
	int32_t *words;     /* [width] those of a text */
	int64_t code_count; /* values that are written: the kept ones, or codes of them */
	float *codes;       /* [code_count] */
};

/* ---- The request ---- */

static enum status parse_layers(struct embed *embed, const char *text, int32_t most)
{
	const char *rest = text;
	embed->layer_count = 0;
	while (true) {
		char *end;
		long said = strtol(rest, &end, 10), layer = said < 0 ? most + 1 + said : said;
		if (end == rest || (*end != ',' && *end != '\0') || layer < 0 || layer > most)
			return error_hinted(
				error_set(ERR_USAGE, "--layers '%.80s': '%.20s' is not a layer of this model", text, rest),
				"write numbers with commas between them: -1 (the last) to -%d (the first), or 1 to %d, or 0 for "
				"the embeddings",
				most, most);
		if (embed->layer_count == LAYERS_MOST)
			return error_set(ERR_USAGE, "--layers names more than %d layers", LAYERS_MOST);
		embed->layers[embed->layer_count] = (int32_t)layer;
		embed->said_layers[embed->layer_count++] = (int32_t)said;
		if (*end == '\0')
			return OK;
		rest = end + 1;
	}
}

/* The format that a file name asks for. */
static enum vector_file format_by_name(const char *path)
{
	const char *end = path ? strrchr(path, '.') : "";
	return !end                           ? VECTORS_JSON
	       : strcasecmp(end, ".npy") == 0 ? VECTORS_NPY
	       : strcasecmp(end, ".tsv") == 0 ? VECTORS_TSV
					      : VECTORS_JSON;
}

static enum status check_embed(struct options *options)
{
	struct embed_settings *settings = options->settings;
	enum status status = OK;
	if (settings->format == VECTORS_AUTO)
		settings->format = format_by_name(answer_target(settings->answer.output.out));
	bool google = settings->format == VECTORS_GOOGLE,
	     is_ranged = settings->vector_type == CODE_INT8 || settings->vector_type == CODE_UINT8;
	TRY(options_require(options, "model", "for instance: bertc embed --model FOLDER sentences.txt"));
	TRY(saved_model_check(options, settings->answer.model));
	TRY(text_arguments_check(options, "bertc embed --model FOLDER"));
	if (settings->format == VECTORS_NPY && !answer_target(settings->answer.output.out)) {
		status = error_set(ERR_USAGE,
				   "--format npy needs --out FILE, since the number of rows is at the beginning of the file");
		error_hint("name a file, or print --format tsv");
	} else if (google && (settings->pooling || options_given(options, "normalize") || settings->truncate_dim > 0)) {
		status = error_set(ERR_USAGE,
				   "--format google prints the rows of all tokens: nothing is pooled, normalized, or truncated");
	} else if (google && settings->vector_type != CODE_FLOAT32) {
		status = error_set(ERR_USAGE, "--format google writes numbers as they are, not as --vector_type says");
	} else if (settings->calibration_vectors && !is_ranged) {
		status = error_set(ERR_USAGE, "--calibration_vectors only applies to --vector_type int8 and uint8");
	} else if (is_ranged && !settings->calibration_vectors) {
		status = error_set(ERR_USAGE, "--vector_type int8 and uint8 need --calibration_vectors, which show the ranges of "
					      "numbers");
		error_hint("make them of some texts first: bertc embed --model FOLDER some.txt --out some.npy");
	} else if (google && settings->answer.long_texts == LONG_WINDOWS) {
		status = error_set(ERR_USAGE, "--format google takes no text in windows");
	} else if (settings->pooling == NAMED_POOLER && settings->layers) {
		status = error_set(ERR_USAGE, "--pooling pooler reads the last layer: --layers cannot be chosen");
	} else if (settings->prompt && settings->prompt_name) {
		status = error_set(ERR_USAGE, "--prompt and --prompt_name both set a prompt");
	}
	return options_blame(options, status);
}

/* The prompt to put before each text, or NULL. */
static enum status choose_prompt(const struct embed *embed, const char **out)
{
	const struct embed_settings *settings = embed->settings;
	const struct sentence_folder *folder = &embed->folder;
	int32_t number = folder->default_prompt;
	*out = settings->prompt;
	if (settings->prompt_name) {
		number = sentence_folder_prompt(folder, settings->prompt_name);
		if (number < 0) {
			struct buffer names = {0};
			for (int32_t i = 0; i < folder->prompt_count; i++)
				buffer_format(&names, "%s%s", i > 0 ? ", " : "", folder->prompts[i].name);
			enum status status = error_set(ERR_USAGE, "--prompt_name %s: the folder has no prompt of that name",
						       settings->prompt_name);
			error_hint("it has: %s", names.size > 0 ? buffer_string(&names) : "none at all");
			buffer_release(&names);
			return status;
		}
	}
	if (!*out && number >= 0)
		*out = folder->prompts[number].text;
	if (*out && !(*out)[0])
		*out = NULL;
	return OK;
}

/* Chooses how rows become a vector: as the options say, else as the folder says, else their mean. */
static enum status choose_pooling(struct embed *embed, const struct options *options)
{
	const struct embed_settings *settings = embed->settings;
	const struct sentence_folder *folder = &embed->folder;
	if (!settings->pooling && folder->found && folder->pooling == 0 && embed->format != VECTORS_GOOGLE)
		return error_hinted(error_set(ERR_USAGE, "'%s' pools nothing: it is a cross-encoder, which scores pairs",
					      settings->answer.model),
				    "score pairs with bertc predict, or choose with --pooling what becomes a text's vector");
	embed->wish.answer = embed->format == VECTORS_GOOGLE ? ENCODER_ROWS : ENCODER_VECTORS;
	static const unsigned modes[] = {
		[NAMED_MEAN] = POOLING_MEAN,
		[NAMED_CLS] = POOLING_CLS,
		[NAMED_MAX] = POOLING_MAX,
		[NAMED_MEAN_SQRT] = POOLING_MEAN_SQRT,
		[NAMED_WEIGHTED_MEAN] = POOLING_WEIGHTED_MEAN,
		[NAMED_LAST] = POOLING_LAST,
		[NAMED_SPLADE] = POOLING_SPLADE,
	};
	embed->wish.pooling = settings->pooling ? modes[settings->pooling] : folder->found ? folder->pooling : POOLING_MEAN;
	embed->is_sparse = embed->wish.pooling == POOLING_SPLADE && embed->format != VECTORS_GOOGLE;
	if (settings->pooling == NAMED_POOLER || embed->is_sparse)
		embed->wish.answer = ENCODER_HEAD;
	if (!embed->is_sparse && settings->max_active_dims > 0)
		return error_set(ERR_USAGE, "--max_active_dims is for weights of words: --pooling splade");
	if (embed->is_sparse && (settings->layers || options_given(options, "normalize") || settings->truncate_dim > 0 ||
				 settings->vector_type != CODE_FLOAT32))
		return error_hinted(error_set(ERR_USAGE, "--pooling splade gives weights of words: --layers, --normalize, "
							 "--truncate_dim, and --vector_type are for vectors"),
				    "--pooling mean takes the mean of a text's rows");
	embed->normalize = options_given(options, "normalize") ? settings->normalize : folder->normalize;
	return OK;
}

static enum status prepare_codes(struct embed *embed)
{
	const struct embed_settings *settings = embed->settings;
	struct npy_file file = {0};
	embed->code_count = vector_code_count(settings->vector_type, embed->dimensions);
	TRY(memory_new(&embed->codes, embed->code_count, sizeof *embed->codes, "vector"));
	if (!settings->calibration_vectors)
		return OK;
	enum status status = npy_file_open(&file, settings->calibration_vectors);
	if (status == OK && file.columns != embed->dimensions)
		status = error_set(ERR_DATA, "the vectors of '%s' have %lld numbers, those of the model %lld",
				   settings->calibration_vectors, (long long)file.columns, (long long)embed->dimensions);
	if (status == OK)
		status = npy_file_check(&file, settings->calibration_vectors);
	if (status == OK)
		status = code_ranges_find(&embed->ranges,
					  &(struct vectors){.values = file.values, .width = file.columns, .count = file.rows});
	npy_file_close(&file);
	return status;
}

static enum status prepare(struct embed *embed, const struct options *options)
{
	struct answer_settings *answer = &((struct embed_settings *)options->settings)->answer;
	const struct embed_settings *settings = embed->settings;
	const char *model = answer->model;
	bool google = settings->format == VECTORS_GOOGLE;
	TRY(sentence_folder_read(&embed->folder, model));
	if (embed->folder.found)
		model = embed->folder.transformer;
	embed->format = settings->format;
	TRY(choose_pooling(embed, options));
	/* As in extract_features.py. */
	int32_t length = google ? 128 : embed->folder.max_seq_length;
	if (google && !answer->pair_separator)
		answer->pair_separator = " ||| ";
	const bool is_sparse = embed->is_sparse, pooler = embed->wish.answer == ENCODER_HEAD && !is_sparse;
	const struct session_heads heads = {.heads = is_sparse ? &model_heads_splade
						     : pooler  ? &model_heads_pooler
							       : &model_heads_encoder,
					    .missing = MISSING_NOTHING};
	if (is_sparse)
		TRY(session_needs_words(model));
	TRY(answer_model_open(&embed->model, answer, model, &heads, length, embed->folder.lowercase, false));
	const struct model_config *config = &embed->model.session.model->config;
	TRY(parse_layers(embed, settings->layers ? settings->layers : google ? "-1,-2,-3,-4" : "-1", config->num_hidden_layers));
	embed->wish.layers = embed->layers;
	embed->wish.layer_count = embed->layer_count;
	embed->width = (int64_t)config->hidden_size * (pooler ? 1 : embed->layer_count * pooling_count(embed->wish.pooling));
	if (is_sparse) {
		embed->width = config->vocab_size;
		embed->normalize = false;
		TRY(memory_new(&embed->words, embed->width, sizeof *embed->words, "words"));
	}
	embed->dimensions = settings->truncate_dim > 0 ? settings->truncate_dim : embed->folder.truncate_dim;
	if (embed->dimensions == 0 || (settings->truncate_dim == 0 && embed->dimensions > embed->width))
		embed->dimensions = embed->width;
	embed->normalized = options_given(options, "normalize") ? embed->dimensions : embed->width;
	if (embed->dimensions > embed->width)
		return error_set(ERR_USAGE, "--truncate_dim %lld: a vector has %lld numbers", (long long)embed->dimensions,
				 (long long)embed->width);
	TRY(memory_new(&embed->vector, embed->width, sizeof *embed->vector, "vector"));
	TRY(prepare_codes(embed));
	struct text_settings *texts = &embed->model.texts;
	texts->strip = google;
	texts->leaves_out_prompt = embed->folder.leaves_out_prompt && !settings->pooling;
	return choose_prompt(embed, &texts->prompt);
}

/* ---- The work ---- */

/* The vector of a text; for several windows their mean, weighted by their numbers of tokens, or the largest weights of words. */
static float *vector_of(struct embed *embed, const struct text_chunk *texts, const struct ready_text *text)
{
	const struct encoder_answers *answers = &embed->answers;
	float *vector = answers->values + answers->starts[text->first];
	if (text->count > 1) {
		double all = 0;
		for (int32_t w = 0; w < text->count; w++)
			all += texts->sequences[text->first + w].count;
		for (int64_t i = 0; i < embed->width; i++) {
			double sum = 0;
			float most = 0;
			for (int32_t w = 0; w < text->count; w++) {
				float number = answers->values[answers->starts[text->first + w] + i];
				sum += (double)number * texts->sequences[text->first + w].count;
				most = number > most ? number : most;
			}
			embed->vector[i] = embed->is_sparse ? most : (float)(sum / all);
		}
		vector = embed->vector;
	}
	if (embed->normalize)
		pooling_normalize(vector, embed->normalized);
	return vector;
}

/* Sets all but the largest weights of words to zero, and lists the words of these. */
static int64_t keep_largest(struct embed *embed, float *vector)
{
	int64_t most = embed->settings->max_active_dims, all = sparse_words(vector, embed->width, embed->width, embed->words);
	for (int64_t i = most; most > 0 && i < all; i++)
		vector[embed->words[i]] = 0;
	return most > 0 && most < all ? most : all;
}

static void put_text(struct embed *embed, const struct text_chunk *texts, int64_t i, int64_t number, struct buffer *out)
{
	const struct ready_text *text = &texts->texts[i];
	const char *id = buffer_string(&texts->ids_text) + text->id;
	if (embed->format == VECTORS_GOOGLE) {
		const struct encoder_text *sequence = &texts->sequences[text->first];
		vector_put_google(out, number, &embed->model.session.tokenizer.vocab, sequence->ids, sequence->count,
				  embed->answers.values + embed->answers.starts[text->first],
				  embed->model.session.model->config.hidden_size, embed->said_layers, embed->layer_count);
		return;
	}
	float *vector = vector_of(embed, texts, text);
	const int64_t word_count = embed->is_sparse ? keep_largest(embed, vector) : 0;
	const bool is_coded = embed->settings->vector_type != CODE_FLOAT32;
	if (is_coded) {
		vector_code(embed->settings->vector_type, &embed->ranges, vector, embed->dimensions, embed->codes);
		vector = embed->codes;
	}
	switch (embed->format) {
	case VECTORS_JSON:
		if (embed->is_sparse) {
			vector_put_weights(out, id, text->id_size, vector, embed->words, word_count,
					   &embed->model.session.tokenizer.vocab);
			return;
		}
		vector_put_json(out, id, text->id_size, vector, embed->code_count);
		return;
	case VECTORS_TSV: vector_put_tsv(out, vector, embed->code_count); return;
	default: (is_coded ? vector_put_bytes : vector_put_binary)(out, vector, embed->code_count); return;
	}
}

/* Texts computed before their answers are written: the rows of all tokens take a lot of memory. */
#define ROWS_AT_A_TIME 64

static enum status answer(void *context, struct line_chunk *chunk, int64_t first, struct buffer *out, int64_t *out_texts)
{
	struct embed *embed = context;
	const struct text_chunk *texts = chunk->own;
	int64_t step = embed->format == VECTORS_GOOGLE ? ROWS_AT_A_TIME : texts->text_count;
	for (int64_t begin = 0; begin < texts->text_count; begin += step) {
		int64_t end = begin + step < texts->text_count ? begin + step : texts->text_count;
		int64_t from = texts->texts[begin].first;
		int64_t to = end < texts->text_count ? texts->texts[end].first : texts->sequence_count;
		TRY(encoder_run(embed->model.encoder, &embed->wish, texts->sequences + from, to - from, &embed->answers));
		struct text_chunk part = *texts;
		part.sequences += from;
		for (int64_t i = begin; i < end; i++) {
			struct ready_text *text = &part.texts[i];
			text->first -= from;
			put_text(embed, &part, i, first + i, out);
			text->first += from;
		}
	}
	text_counts_add(&embed->model.counts, &texts->counts);
	*out_texts = texts->text_count;
	return OK;
}

static enum status begin(void *context, struct buffer *out)
{
	const struct embed *embed = context;
	vector_put_npy_header(out, vector_code_type(embed->settings->vector_type), 0, embed->code_count);
	return OK;
}

static enum status end(void *context, struct buffer *out, struct file_writer *writer, int64_t texts)
{
	const struct embed *embed = context;
	vector_put_npy_header(out, vector_code_type(embed->settings->vector_type), texts, embed->code_count);
	TRY(buffer_status(out));
	TRY(file_writer_patch(writer, 0, out->data, out->size));
	buffer_clear(out);
	return OK;
}

static enum status check_npy_target(const struct embed *embed)
{
	const char *out = answer_target(embed->settings->answer.output.out);
	if (embed->format == VECTORS_NPY && file_exists(out) && !file_is_folder(out) && file_stamp_at(out).inode == 0)
		return error_set(ERR_USAGE, "'%s' is not a seekable file, which --format npy needs", out);
	return OK;
}

static enum status run_embed(struct options *options)
{
	const struct embed_settings *settings = options->settings;
	struct embed embed = {.settings = settings};
	struct answer_job job = answer_model_job(&embed.model, &settings->answer, "embedding", answer);
	enum status status;
	TRY_GOTO(model_files_look(&embed.model.files, settings->answer.model), done);
	TRY_GOTO(prepare(&embed, options), done);
	TRY_GOTO(check_npy_target(&embed), done);
	if (embed.format == VECTORS_NPY) {
		job.begin = begin;
		job.end = end;
	}
	status = answer_model_run(&embed.model, &job, options);
done:
	encoder_answers_release(&embed.answers);
	answer_model_close(&embed.model);
	sentence_folder_release(&embed.folder);
	free(embed.vector);
	free(embed.words);
	free(embed.codes);
	code_ranges_release(&embed.ranges);
	return status;
}

#define FOLDER_WHY "--model names the folder that holds weights, configuration and vocabulary together"

/* Options of extract_features.py. */
/* clang-format off */
static const struct option_foreign foreign[] = {
	VALUE_REFUSED("input_file", "name the file without an option: bertc embed --model FOLDER sentences.txt"),
	VALUE_MEANS("output_file", "out"),
	VALUE_REFUSED("bert_config_file init_checkpoint vocab_file", FOLDER_WHY),
	FLAG_LEFT_OUT("do_lower_case", "the model's folder says whether upper case is kept"),
	VALUE_LEFT_OUT("batch_size", "the result does not depend on how many texts are computed at a time"),
	FLAG_LEFT_OUT("use_one_hot_embeddings", "only a TPU needs it; --device selects cpu or cuda"),
	FLAG_REFUSED("use_tpu", "bertc has no TPU back end; --device selects cpu or cuda"),
	VALUE_LEFT_OUT("master num_tpu_cores", "only a TPU needs it; --device selects cpu or cuda"),
	{0},
};
/* clang-format on */

const struct command command_embed = {
	.text = &embed_text,
	.options = embed_options,
	.foreign = foreign,
	.settings_bytes = sizeof(struct embed_settings),
	.check = check_embed,
	.run = run_embed,
	.prints_out = true,
	.takes_arguments = true,
};
