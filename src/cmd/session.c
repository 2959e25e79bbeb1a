#include "cmd/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "train/checkpoint.h"
#include "train/model_folder.h"

enum status device_open(const struct device_settings *settings, struct pool **pool, struct backend **be)
{
	*be = NULL;
	*pool = NULL;
	TRY(pool_create(pool, (int)settings->threads));
	struct backend_settings backend = {.device = settings->device, .pool = *pool};
	if (!settings->precision)
		backend.dtype = backend_best_dtype(settings->device);
	else
		backend.dtype = strcmp(settings->precision, "bf16") == 0 ? DTYPE_BF16 : DTYPE_F32;
	enum status status = backend_open(be, &backend);
	if (status != OK) {
		pool_free(*pool);
		*pool = NULL;
	}
	return status;
}

enum status session_model_folder(const char *folder, char out[PATH_BYTES])
{
	char path[PATH_BYTES];
	bool found = false;
	TRY(path_join(out, folder, "config.json"));
	if (file_exists(out)) {
		snprintf(out, PATH_BYTES, "%.4000s", folder);
		return OK;
	}
	TRY(path_join(out, folder, "final"));
	TRY(path_join(path, out, "config.json"));
	if (file_exists(path))
		return OK;
	if (file_is_folder(folder))
		TRY(checkpoint_latest(folder, out, &found));
	if (found)
		return OK;
	enum status status = error_set(ERR_USAGE, "'%s' is no model folder", folder);
	error_hint("give a folder with config.json and model.safetensors, or the --out folder of a run");
	return status;
}

static enum status session_prepare(struct session *session, const char *folder, int32_t longest)
{
	struct backend *be = session->backend;
	struct model_config config;
	char vocab_path[PATH_BYTES];
	bool found;
	float *slab = NULL;
	TRY(model_folder_config(folder, &config));
	TRY(path_join(vocab_path, folder, "vocab.txt"));
	TRY(vocab_read(&session->vocab, vocab_path));
	session->tokenizer_settings = tokenizer_defaults(false);
	TRY(tokenizer_settings_read(vocab_path, &session->tokenizer_settings, &found));
	if (session->vocab.count > config.vocab_size)
		return error_set(ERR_STATE, "'%s': the vocabulary has %d entries, the model %d rows", folder,
				 session->vocab.count, config.vocab_size);
	TRY(model_create(&session->model, be, &config, HEADS_PRETRAINING));
	TRY(model_allocate(session->model, false));
	struct shape_limits limits = {
		.batch = session->capacity,
		.longest = longest,
		.hidden = config.hidden_size,
		.heads = config.num_attention_heads,
		.intermediate = config.intermediate_size,
		.vocab = config.vocab_size,
	};
	TRY(be->functions->replica_create(be, &session->replica, &limits));
	TRY(memory_new(&slab, session->model->slab_count, sizeof(*slab), "weights"));
	enum status status;
	TRY_GOTO(model_folder_load(folder, session->model, MISSING_NOTHING, slab, NULL), done);
	TRY_GOTO(model_set_weights(session->model, &session->replica, slab), done);
	TRY_GOTO(activations_create(&session->activations, session->model, session->capacity, false), done);
	struct scalars scalars = {.loss_scale = 1.0, .inverse_predictions = 1.0, .inverse_instances = 1.0, .finite = 1};
	be->functions->to_device(be, session->replica.scalars, &scalars, sizeof(scalars));
done:
	free(slab);
	return status;
}

enum status session_open(struct session *session, const char *folder, const struct device_settings *device,
			 struct batch_capacity capacity, int32_t longest)
{
	*session = (struct session){.capacity = capacity};
	TRY(device_open(device, &session->pool, &session->backend));
	enum status status = session_prepare(session, folder, longest);
	if (status != OK)
		session_close(session);
	return status;
}

void session_close(struct session *session)
{
	activations_free(session->activations);
	if (session->replica.backend)
		session->backend->functions->replica_release(&session->replica);
	model_free(session->model);
	vocab_release(&session->vocab);
	if (session->backend)
		backend_close(session->backend);
	pool_free(session->pool);
	*session = (struct session){0};
}
