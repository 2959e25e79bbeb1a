/* Opens a model folder with the tokenizer and head it needs, and encodes texts for it. */
#include "infer/text_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "model/forms.h"
#include "model/pooling.h"
#include "tasks/record.h"
#include "weights/shared_weights.h"

/* For models without sentence-transformers files. */
#define DEFAULT_POOLING POOLING_MEAN

/* ---- Opening ---- */

static enum status open_session(struct text_model *model, struct pool *pool, const struct text_model_settings *settings,
				const char *folder, const struct model_heads *heads, enum missing_weights missing,
				int32_t longest)
{
	struct session_heads with = {.heads = heads, .missing = missing};
	TRY(model_source_find(folder, &model->source));
	for (int64_t i = 0; i < settings->lender_count && !with.lender; i++) {
		bool same;
		TRY(weights_have_one_base(settings->lenders[i]->source.weights, model->source.weights, &same));
		with.lender = same ? &settings->lenders[i]->session : NULL;
	}
	TRY(session_open_on(&model->session, pool, folder, &settings->device, &with,
			    encoder_capacity(heads, settings->batch_tokens, longest), longest));
	model->is_open = true;
	model->longest = longest;
	model->hidden = model->session.model->config.hidden_size;
	return encoder_open(&model->encoder, &model->session);
}

/* The maximum tokens of a text: as requested, otherwise as the folder says, and within the model's positions. */
static enum status find_longest(const char *folder, int64_t asked, int64_t said, int64_t tokenizer, int32_t *out)
{
	struct model_config config;
	TRY(model_folder_config(folder, &config));
	int64_t longest = model_positions(&config);
	if (longest < SHORTEST_LENGTH)
		return error_set(ERR_USAGE, "'%s' has %lld positions, which leaves no room for a text", folder,
				 (long long)longest);
	if (asked > longest)
		return error_set(ERR_USAGE, "max_seq_length %lld is beyond the %lld positions of '%s'", (long long)asked,
				 (long long)longest, folder);
	if (asked > 0)
		longest = asked;
	else if (said > 0 && said < longest)
		longest = said;
	else if (said <= 0 && tokenizer > 0 && tokenizer < longest)
		longest = tokenizer;
	*out = (int32_t)longest;
	return OK;
}

static enum status open_tokenizers(struct text_model *model)
{
	const struct folder_tokenizer *folder = &model->session.tokenizer;
	struct tokenizer_settings settings = folder->settings;
	settings.special_tokens = false;
	settings.lowercase = settings.lowercase || model->sentences.lowercase;
	TRY(tokenizer_open(&model->plain, &folder->vocab, &settings));
	settings = folder->settings;
	settings.special_tokens = true;
	return tokenizer_open(&model->blanks, &folder->vocab, &settings);
}

static enum status open_task(struct text_model *model, struct pool *pool, const struct text_model_settings *settings,
			     const char *folder)
{
	model->task_settings = (struct task_session_settings){
		.model = folder, .max_seq_length = settings->max_seq_length, .micro_batch_tokens = settings->batch_tokens};
	model->has_task = true;
	TRY(task_session_open(&model->task, &model->task_settings));
	struct task_state *state = &model->task.state;
	if (!state->task->take)
		return error_hinted(error_set(ERR_USAGE, "'%s' is a model for %s, which %s cannot answer", folder,
					      state->task->name, settings->tool),
				    "bertc predict answers files of such texts");
	state->settings.quiet = true;
	if (settings->min_score && state->task->calibrates)
		state->calibration.min_score = *settings->min_score;
	TRY(open_session(model, pool, settings, folder, &model->task.heads, MISSING_NOTHING, state->settings.max_seq_length));
	return open_tokenizers(model);
}

/* Opens a model that has no head, except perhaps the one for masked words. */
static enum status open_encoder(struct text_model *model, const char *given, struct pool *pool,
				const struct text_model_settings *settings, const char *folder, const char *architecture)
{
	struct model_source source;
	struct folder_tokenizer tokenizer;
	struct model_config config;
	int32_t longest = 0;
	enum status status = OK;
	if (model->sentences.found && model->sentences.pooling == 0)
		return error_hinted(error_set(ERR_USAGE, "'%s' pools nothing: it is a cross-encoder, which scores pairs", given),
				    "use a folder with a Pooling module, or one whose weights have a head for pairs");
	bool says_words =
		architecture && (strcmp(architecture, "BertForPreTraining") == 0 || strcmp(architecture, "BertForMaskedLM") == 0);
	bool is_sparse = model->sentences.pooling == POOLING_SPLADE;
	bool has_words = !settings->no_blanks && !is_sparse && (says_words || !architecture);
	TRY(model_folder_config(folder, &config));
	TRY(model_source_find(folder, &source));
	TRY(folder_tokenizer_read(&tokenizer, &source));
	int64_t said = tokenizer.max_length;
	folder_tokenizer_release(&tokenizer);
	TRY(find_longest(folder, settings->max_seq_length, model->sentences.max_seq_length, said, &longest));
	model->pooling = model->sentences.found ? model->sentences.pooling : DEFAULT_POOLING;
	model->makes_vectors = !is_sparse;
	model->weighs_words = is_sparse;
	if (is_sparse) {
		TRY(session_needs_words(folder));
		TRY(open_session(model, pool, settings, folder, &model_heads_splade, MISSING_NOTHING, longest));
		return open_tokenizers(model);
	}
	if (has_words)
		status = open_session(model, pool, settings, folder, model_heads_of_words(&config), MISSING_NEXT_SENTENCE,
				      longest);
	bool lacks_head = status == ERR_STATE || status == ERR_DATA || status == ERR_USAGE;
	if (has_words && lacks_head && !says_words && !model->is_open) {
		log_note("'%s': no masked-word head, so it makes embeddings only (%s)", folder, error_last()->message);
		has_words = false;
	}
	TRY(has_words ? status : open_session(model, pool, settings, folder, &model_heads_encoder, MISSING_NOTHING, longest));
	model->fills_blanks = has_words;
	return open_tokenizers(model);
}

/* Whether the model has a head for a task: bertc's record of the task says so, or else the architecture. */
static enum status find_head(const struct model_source *source, const struct task_config *config, bool *out_found)
{
	char path[PATH_BYTES];
	TRY(model_source_beside(source, TASK_RECORD_FILE, path, out_found));
	if (!*out_found)
		*out_found = task_of_architecture(config->architecture, config->problem_type, config->label_count) != NULL;
	return OK;
}

enum status text_model_open(struct text_model *out, const char *folder, struct pool *pool,
			    const struct text_model_settings *settings)
{
	struct task_config config;
	struct model_source source;
	*out = (struct text_model){0};
	TRY(model_files_look(&out->files, folder));
	TRY(sentence_folder_read(&out->sentences, folder));
	const char *weights = out->sentences.found ? out->sentences.transformer : folder;
	TRY(model_source_find(weights, &source));
	TRY(model_folder_task(weights, &config));
	bool has_head = false, makes_vectors = out->sentences.found && out->sentences.pooling != 0;
	enum status status = find_head(&source, &config, &has_head);
	if (status == OK)
		status = has_head && !makes_vectors ? open_task(out, pool, settings, weights)
						    : open_encoder(out, folder, pool, settings, weights, config.architecture);
	task_config_release(&config);
	return status == OK ? model_files_check(&out->files, folder) : status;
}

void text_model_close(struct text_model *model)
{
	encoder_close(model->encoder);
	tokenizer_close(model->plain);
	tokenizer_close(model->blanks);
	if (model->is_open)
		session_close(&model->session);
	if (model->has_task)
		task_session_close(&model->task);
	sentence_folder_release(&model->sentences);
	model_files_release(&model->files);
	*model = (struct text_model){0};
}

/* ---- Properties ---- */

const char *text_model_label(const struct text_model *model, int64_t index, char room[24])
{
	const struct label_set *labels = &model->task.state.labels;
	if (index < labels->count)
		return labels->labels[index].name;
	snprintf(room, 24, "LABEL_%lld", (long long)index);
	return room;
}

bool text_model_takes_windows(const struct text_model *model)
{
	const struct task *task = model->has_task ? model->task.state.task : NULL;
	return task && (task->has_windows || model->task.state.settings.long_texts > WINDOWS_NONE);
}

int64_t text_model_width(const struct text_model *model)
{
	return model->weighs_words ? model->session.model->config.vocab_size
				   : (int64_t)model->hidden * pooling_count(model->pooling);
}

void text_model_scores(const struct text_model *model, const float *logits, bool raw, double *out)
{
	const struct task_state *state = &model->task.state;
	int32_t count = model->task.heads.head[0].outputs;
	if (!raw && state->labels.count == count &&
	    ((state->task->target == TARGET_CLASS && count > 1) || state->task->target == TARGET_CLASSES)) {
		task_shares(state, logits, out);
		return;
	}
	for (int32_t i = 0; i < count; i++)
		out[i] = raw                                    ? logits[i]
			 : state->task->target == TARGET_NUMBER ? task_score(state, logits[i])
								: task_sigmoid(logits[i]);
}
