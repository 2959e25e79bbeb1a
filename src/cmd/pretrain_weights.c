/* Memory and weights of `bertc pretrain`. */
#include "cmd/pretrain.h"

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
	return pretrain_load_initial(run);
}
