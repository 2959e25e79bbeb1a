/* Opens a device and a saved model on it, packed for inference. */
#include "infer/encoder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "weights/int8_weights.h"
#include "model/forms.h"
#include "model/waves.h"
#include "tasks/task.h"
#include "weights/model_files.h"
#include "weights/model_folder.h"
#include "weights/shared_weights.h"
#include "backend/open.h"

/* At least so many tokens at a time keep a GPU busy, in whole waves. */
#define GPU_TOKENS 8192

static int64_t usual_tokens(const struct backend *be, const struct model_config *config)
{
	const struct wave_model waves = {
		.processors = be->processors, .hidden = config->hidden_size, .intermediate = config->intermediate_size};
	return be->processors > 0 ? waves_fullest(&waves, GPU_TOKENS) : SESSION_TOKENS;
}

/* Reads the weights from the file, packing them directly if the back end can, otherwise through masters. The next-sentence head
 * is not required: a model with only a masked-word head can still fill blanks. */
static enum status read_weights(struct session *session, const struct model_source *source, enum missing_weights missing)
{
	struct model_folder_report report = {0};
	bool packs = session->backend->functions->weight_pack != NULL;
	float *slab = NULL;
	enum status status;
	if (!packs)
		TRY_GOTO(memory_new(&slab, session->model->slab_count, sizeof *slab, "weights"), done);
	TRY_GOTO(model_folder_load(source->weights, session->model, missing, slab, &report), done);
	session->has_next_sentence = session->model->heads.count > 1 && report.missing.count == 0;
	if (!session->has_next_sentence)
		log_detail("'%s' has no next-sentence head", report.path);
	if (!packs)
		status = model_set_weights(session->model, &session->replica, slab);
done:
	model_folder_report_release(&report);
	free(slab);
	return status;
}

static enum status session_prepare(struct session *session, const char *model, const struct session_heads *heads, int32_t longest)
{
	struct backend *be = session->backend;
	struct model_config config;
	struct model_source source;
	bool in_int8;
	TRY(model_folder_config(model, &config));
	TRY(model_source_find(model, &source));
	TRY(folder_tokenizer_read(&session->tokenizer, &source));
	TRY(folder_tokenizer_fit(&session->tokenizer, model, &config.vocab_size));
	TRY(model_create(&session->model, be, &config, heads->heads));
	TRY(int8_weights_mark(source.weights, session->model, &in_int8));
	memcpy(session->weights, source.weights, PATH_BYTES);
	const struct session *lender = heads->lender;
	bool alike = lender && strcmp(lender->backend->name, be->name) == 0 && lender->backend->dtype == be->dtype &&
		     lender->backend->int8 == be->int8;
	if (alike && be->functions->weight_pack)
		TRY(weights_share(session->model, source.weights, lender->model, lender->weights));
	TRY(be->functions->weight_pack ? model_allocate_copies(session->model) : model_allocate(session->model, false));
	if (session->capacity.tokens == 0)
		session->capacity = encoder_capacity(heads->heads, usual_tokens(be, &config), longest);
	model_heads_make_room(heads->heads, &session->capacity);
	struct shape_limits limits = model_shape_limits(&config, session->capacity, longest, false);
	TRY(be->functions->replica_create(be, &session->replica, &limits));
	TRY(read_weights(session, &source, heads->missing));
	TRY(activations_create(&session->activations, session->model, session->capacity, longest, false));
	struct scalars scalars = {.loss_scale = 1.0, .finite = 1};
	be->functions->to_device(be, session->replica.scalars, &scalars, sizeof scalars);
	return OK;
}

/* Pre-trained models of some forms cannot predict words, unless their architecture says so. */
static enum status check_words(const char *model, const char *architecture)
{
	struct model_config config;
	TRY(model_folder_config(model, &config));
	const struct model_form *form = model_form_of(&config);
	if (form->has_words || (architecture && strcmp(architecture, model_heads_words.architecture) == 0))
		return OK;
	return error_hinted(error_set(ERR_USAGE, "'%s' (%s) has no masked-word head, so it cannot predict words", model,
				      architecture ? architecture : form->model_type),
			    "bertc pretrain --init_checkpoint trains a new one");
}

enum status session_needs_words(const char *model)
{
	struct task_config config;
	enum status status = OK;
	TRY(model_folder_task(model, &config));
	if (config.architecture && task_of_architecture(config.architecture, config.problem_type, config.label_count)) {
		status = error_set(ERR_USAGE, "'%s' is a fine-tuned model (%s) and cannot predict words", model,
				   config.architecture);
		error_hint("use the pre-trained model it was made from, or bertc predict and bertc evaluate --test");
	}
	if (status == OK)
		status = check_words(model, config.architecture);
	task_config_release(&config);
	return status;
}

enum status session_open(struct session *session, const char *model, const struct device_options *device,
			 struct batch_capacity capacity, int32_t longest)
{
	struct model_config config;
	TRY(model_folder_config(model, &config));
	const struct session_heads heads = {.heads = model_heads_of_words(&config), .missing = MISSING_NEXT_SENTENCE};
	return session_open_heads(session, model, device, &heads, capacity, longest);
}

enum status session_open_heads(struct session *session, const char *model, const struct device_options *device,
			       const struct session_heads *heads, struct batch_capacity capacity, int32_t longest)
{
	struct pool *pool;
	*session = (struct session){0};
	TRY(pool_create(&pool, (int)device->threads));
	enum status status = session_open_on(session, pool, model, device, heads, capacity, longest);
	session->borrows_pool = false;
	if (status != OK)
		pool_free(pool);
	else
		session->pool = pool;
	return status;
}

/* Weights stored in int8 are multiplied in int8, unless another precision was requested or the device does not support it. */
static enum status settle_precision(const char *model, struct device_options *settings)
{
	struct model_source source;
	bool in_int8;
	if (settings->precision != PRECISION_FASTEST || strcmp(device_name(settings->device), "cuda") == 0)
		return OK;
	TRY(model_source_find(model, &source));
	TRY(int8_weights_mark(source.weights, NULL, &in_int8));
	if (in_int8)
		settings->precision = PRECISION_INT8;
	return OK;
}

enum status session_open_on(struct session *session, struct pool *pool, const char *model, const struct device_options *device,
			    const struct session_heads *heads, struct batch_capacity capacity, int32_t longest)
{
	*session = (struct session){.pool = pool, .borrows_pool = true, .capacity = capacity};
	struct device_options settings = *device;
	struct model_files files = {0};
	enum status status;
	TRY_GOTO(model_files_look(&files, model), fail);
	TRY_GOTO(settle_precision(model, &settings), fail);
	TRY_GOTO(device_open_on(&settings, true, pool, &session->backend), fail);
	TRY_GOTO(session_prepare(session, model, heads, longest), fail);
	TRY_GOTO(model_files_check(&files, model), fail);
	model_files_release(&files);
	return OK;

fail:
	model_files_release(&files);
	session_close(session);
	return status;
}

void session_close(struct session *session)
{
	activations_free(session->activations);
	if (session->replica.backend)
		session->backend->functions->replica_release(&session->replica);
	model_free(session->model);
	folder_tokenizer_release(&session->tokenizer);
	if (session->backend)
		backend_close(session->backend);
	if (!session->borrows_pool)
		pool_free(session->pool);
	*session = (struct session){0};
}
