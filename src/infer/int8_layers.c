/* Tries each linear layer in int8 and measures what that changes in the encoder's output. */
#include "infer/int8_layers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/rng.h"
#include "formats/text_file.h"
#include "infer/encoder.h"
#include "model/forms.h"
#include "weights/int8_weights.h"
#include "backend/open.h"

/* Maximum tokens of all texts together, and of one text; more would hardly change a layer's error. */
#define TOKENS_MOST 512
#define TEXT_MOST 128
/* Length limits of random sequences. */
#define DRAWN_LEAST 16
#define DRAWN_MOST 64
#define TEXTS_MOST (TOKENS_MOST / 2)

struct trial {
	const struct saved_model *saved;
	struct session session;
	struct encoder *encoder;
	struct parameter_place *places; /* for the session's model */
	int32_t *ids;                   /* [TOKENS_MOST] for all texts */
	struct encoder_text texts[TEXTS_MOST];
	int64_t text_count, token_count;
	struct encoder_answers reference, answers;
};

/* ---- Texts ---- */

static int32_t longest_text(const struct trial *trial)
{
	int32_t positions = model_positions(&trial->saved->config);
	return positions < TEXT_MOST ? positions : TEXT_MOST;
}

/* Adds a text as the model reads it. False: no room left. */
static bool add_text(struct trial *trial, const int32_t *ids, int64_t count)
{
	const struct vocab *vocab = &trial->saved->tokenizer.vocab;
	int32_t special = template_size(&vocab->single);
	int64_t most = longest_text(trial) - special;
	count = count < most ? count : most;
	if (trial->text_count == TEXTS_MOST || trial->token_count + count + special > TOKENS_MOST)
		return false;
	int32_t *to = trial->ids + trial->token_count;
	trial->texts[trial->text_count++] = (struct encoder_text){.ids = to, .count = (int32_t)count + special};
	trial->token_count += template_join(&vocab->single, ids, count, NULL, 0, to);
	return true;
}

static void draw_texts(struct trial *trial)
{
	const struct vocab *vocab = &trial->saved->tokenizer.vocab;
	int32_t ids[DRAWN_MOST];
	for (uint64_t text = 0;; text++) {
		struct rng rng = rng_start(0, RNG_CALIBRATION, text);
		int64_t count = DRAWN_LEAST + rng_below(&rng, DRAWN_MOST - DRAWN_LEAST);
		for (int64_t i = 0; i < count; i++)
			ids[i] = (int32_t)rng_below(&rng, (uint32_t)vocab->count);
		if (!add_text(trial, ids, count))
			return;
	}
}

static enum status read_texts(struct trial *trial, const char *path)
{
	struct tokenizer *tokenizer = NULL;
	struct tokens tokens = {0};
	struct text_file file = {0};
	bool more = true;
	enum status status;
	TRY_GOTO(text_file_read(&file, path, TEXT_FILE_LIMIT), done);
	TRY_GOTO(tokenizer_open(&tokenizer, &trial->saved->tokenizer.vocab, &trial->saved->tokenizer.settings), done);
	for (const char *line = file.text.data, *end = line + file.text.size; more && line < end;) {
		const char *newline = memchr(line, '\n', (size_t)(end - line));
		size_t size = (size_t)((newline ? newline : end) - line);
		tokens_clear(&tokens);
		TRY_GOTO(tokenizer_encode(tokenizer, line, size, &tokens), done);
		if (tokens.count > 0)
			more = add_text(trial, tokens.ids, tokens.count);
		line += size + 1;
	}
	if (trial->text_count == 0)
		status = error_set(ERR_DATA, "--calibrate '%s': there is no text in it", path);
done:
	tokenizer_close(tokenizer);
	tokens_release(&tokens);
	text_file_release(&file);
	return status;
}

/* ---- The model ---- */

/* Opens the encoder with fp32 activations and with room for every weight in either fp32 or int8. */
static enum status open_session(struct trial *trial, int64_t threads)
{
	struct session *session = &trial->session;
	const struct saved_model *saved = trial->saved;
	struct backend_settings settings = {.device = "cpu", .dtype = DTYPE_F32, .inference = true, .int8 = true};
	struct model_config config = saved->config;
	struct scalars scalars = {.loss_scale = 1.0, .finite = 1};
	TRY(pool_create(&session->pool, (int)threads));
	settings.pool = session->pool;
	TRY(backend_open(&session->backend, &settings));
	struct backend *be = session->backend;
	session->capacity = encoder_capacity(&model_heads_none, TOKENS_MOST, longest_text(trial));
	TRY(model_create(&session->model, be, &config, &model_heads_none));
	for (int64_t i = 0; i < session->model->weight_count; i++)
		session->model->weights[i]->unquantized = true;
	TRY(model_allocate_copies(session->model));
	struct shape_limits limits = model_shape_limits(&config, session->capacity, longest_text(trial), false);
	TRY(be->functions->replica_create(be, &session->replica, &limits));
	TRY(model_folder_load(saved->source.weights, session->model, MISSING_HEADS, NULL, NULL));
	TRY(activations_create(&session->activations, session->model, session->capacity, model_positions(&session->model->config),
			       false));
	be->functions->to_device(be, session->replica.scalars, &scalars, sizeof scalars);
	return encoder_open(&trial->encoder, session);
}

/* Repacks a weight, in int8 or in fp32. Its parameters are contiguous in the slab. */
static void set_weight(struct trial *trial, int64_t number, bool in_int8)
{
	struct backend *be = trial->session.backend;
	const struct model *model = trial->session.model;
	struct weight *weight = model->weights[number];
	int64_t p = 0;
	while (trial->places[p].weight != number)
		p++;
	int64_t ours = model_find_parameter(trial->saved->model, model->parameters[p].name);
	weight->unquantized = !in_int8;
	be->functions->weight_pack(
		be, weight,
		&(struct weight_rows){.count = weight->master.rows,
				      .dtype = DTYPE_F32,
				      .data = trial->saved->slab + trial->saved->model->parameters[ours].offset});
}

/* Non-finite numbers are an error for the original model, but may result from int8. */
static enum status run_encoder(struct trial *trial, struct encoder_answers *out)
{
	const struct encoder_wish wish = {.answer = ENCODER_ROWS, .unchecked = out != &trial->reference};
	return encoder_run(trial->encoder, &wish, trial->texts, trial->text_count, out);
}

/* Relative error of the answers against the reference. */
static double error_of(const struct trial *trial)
{
	double change = 0, size = 0;
	for (int64_t i = 0; i < trial->reference.starts[trial->text_count]; i++) {
		double expected = trial->reference.values[i], difference = trial->answers.values[i] - expected;
		change += difference * difference;
		size += expected * expected;
	}
	return size > 0 ? sqrt(change / size) : 0;
}

/* NaN counts as worst. */
static bool is_worse(double error, double than)
{
	return isnan(error) ? !isnan(than) : error > than;
}

/* Keeps the layers with the largest errors in bf16 until the root of the sum of the others' squared errors is within the limit. A
 * non-finite error counts as the largest. */
static void keep_worst(struct int8_layers *layers)
{
	for (;;) {
		double squares = 0;
		int64_t worst = -1;
		for (int64_t i = 0; i < layers->count; i++) {
			if (layers->kept[i] || !layers->fits[i])
				continue;
			squares += layers->errors[i] * layers->errors[i];
			if (worst < 0 || is_worse(layers->errors[i], layers->errors[worst]))
				worst = i;
		}
		if (worst < 0 || squares <= INT8_ERROR_MOST * INT8_ERROR_MOST)
			return;
		layers->kept[worst] = true;
		layers->kept_count++;
	}
}

static enum status try_layers(struct trial *trial, struct int8_layers *out)
{
	const struct model *model = trial->session.model;
	TRY(run_encoder(trial, &trial->reference));
	for (int64_t i = 0; i < model->weight_count; i++) {
		out->fits[i] = int8_weight_fits(model->weights[i]);
		if (!out->fits[i])
			continue;
		set_weight(trial, i, true);
		TRY(run_encoder(trial, &trial->answers));
		set_weight(trial, i, false);
		out->errors[i] = error_of(trial);
		out->tried++;
	}
	keep_worst(out);
	for (int64_t i = 0; i < model->weight_count; i++)
		if (out->fits[i] && !out->kept[i])
			set_weight(trial, i, true);
	TRY(run_encoder(trial, &trial->answers));
	out->error = error_of(trial);
	out->tokens = trial->token_count;
	return OK;
}

static void close_trial(struct trial *trial)
{
	encoder_answers_release(&trial->reference);
	encoder_answers_release(&trial->answers);
	encoder_close(trial->encoder);
	session_close(&trial->session);
	free(trial->places);
	free(trial->ids);
	free(trial);
}

enum status int8_layers_choose(struct int8_layers *out, const struct saved_model *saved, const char *calibrate, int64_t threads)
{
	struct trial *trial = NULL;
	enum status status;
	/* The encoder's weights come first in both models, so their numbers agree. */
	*out = (struct int8_layers){.count = saved->model->weight_count};
	TRY(memory_new(&trial, 1, sizeof *trial, "texts"));
	trial->saved = saved;
	TRY_GOTO(memory_new(&out->kept, out->count, sizeof *out->kept, "layers"), done);
	TRY_GOTO(memory_new(&out->fits, out->count, sizeof *out->fits, "layers"), done);
	TRY_GOTO(memory_new(&out->errors, out->count, sizeof *out->errors, "layers"), done);
	TRY_GOTO(memory_new(&trial->ids, TOKENS_MOST, sizeof *trial->ids, "texts"), done);
	if (calibrate)
		TRY_GOTO(read_texts(trial, calibrate), done);
	else
		draw_texts(trial);
	TRY_GOTO(open_session(trial, threads), done);
	TRY_GOTO(memory_new(&trial->places, trial->session.model->parameter_count, sizeof *trial->places, "layers"), done);
	parameter_places(trial->session.model, trial->places);
	status = try_layers(trial, out);
done:
	close_trial(trial);
	return status;
}

void int8_layers_release(struct int8_layers *layers)
{
	free(layers->fits);
	free(layers->kept);
	free(layers->errors);
	*layers = (struct int8_layers){.count = 0};
}
