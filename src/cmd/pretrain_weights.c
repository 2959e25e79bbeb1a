/* Memory and weights of `bertc pretrain`. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "cmd/pretrain.h"
#include "train/model_folder.h"

/* --model names a folder to go on from. A size is a size, whatever folders lie about. */
static bool model_is_folder(const char *model)
{
	struct model_config config;
	return model && model_config_named(&config, model) != OK && file_is_folder(model);
}

const char *pretrain_initial_weights(const struct pretrain_settings *settings)
{
	if (settings->init_checkpoint)
		return settings->init_checkpoint;
	return model_is_folder(settings->model) ? settings->model : NULL;
}

static void log_names(const char *what, const struct name_list *names)
{
	for (int64_t i = 0; i < names->count; i++)
		log_note("  %s: %s", what, names->names[i]);
}

/* --init_checkpoint, or --model FOLDER: its weights over the initial ones, with a report of every tensor that is not
 * in both. */
static enum status load_initial_weights(struct pretrain *run)
{
	const struct pretrain_settings *settings = run->settings;
	const char *source = pretrain_initial_weights(settings);
	if (!source)
		return OK;
	float *slab = NULL;
	char folder[PATH_BYTES];
	struct model_folder_report report = {0};
	enum status status;
	TRY_GOTO(session_model_folder(source, folder), done);
	TRY_GOTO(memory_new(&slab, run->model->slab_count, sizeof(*slab), "weights"), done);
	TRY_GOTO(model_get_weights(run->model, slab), done);
	TRY_GOTO(model_folder_load(folder, run->model, MISSING_HEADS, slab, &report), done);
	TRY_GOTO(model_set_weights(run->model, &run->replica, slab), done);
	log_note("initial weights: %" PRId64 " tensors from %s, %" PRId64 " missing, %" PRId64 " unused", report.loaded,
		 folder, report.missing.count, report.unused.count);
	log_names("missing, begins anew", &report.missing);
	log_names("unused", &report.unused);
done:
	model_folder_report_release(&report);
	free(slab);
	return status;
}

enum status pretrain_open_model(struct pretrain *run)
{
	const struct pretrain_settings *settings = run->settings;
	struct backend *be = run->backend;
	struct optimizer_settings optimizer = pretrain_optimizer(settings);
	TRY(model_allocate(run->model, true));
	TRY(be->functions->replica_create(be, &run->replica, &run->limits));
	TRY(activations_create(&run->activations, run->model, run->capacity, true));
	TRY(optimizer_create(&run->optimizer, run->model, &optimizer));
	if (run->resumed) {
		TRY(checkpoint_load(run->checkpoint, run->model, &run->replica, run->optimizer));
		if (run->begins_phase)
			optimizer_restart(run->optimizer);
		return OK;
	}
	TRY(model_initialize(run->model, &run->replica, (uint64_t)settings->seed));
	return load_initial_weights(run);
}
