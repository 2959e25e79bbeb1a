/* Memory and weights of `bertc pretrain`. */
#include "cmd/pretrain.h"

/* Weights and gradients of many ranks lie where ranks reach each other's. */
static enum status allocate_model(struct pretrain *run)
{
	if (ranks_count(run->comm) == 1)
		return model_allocate(run->model, true);
	size_t bytes = (size_t)run->model->slab_count * dtype_bytes(run->model->slab.dtype);
	TRY(comm_allocate(run->comm, &run->slabs[0], bytes, "weights"));
	TRY(comm_allocate(run->comm, &run->slabs[1], bytes, "gradients"));
	return model_allocate_in(run->model, run->slabs[0], run->slabs[1]);
}

enum status pretrain_open_model(struct pretrain *run)
{
	const struct pretrain_settings *settings = run->settings;
	struct backend *be = run->backend;
	struct optimizer_settings optimizer = pretrain_optimizer(settings);
	TRY(allocate_model(run));
	TRY(be->functions->replica_create(be, &run->replica, &run->limits));
	TRY(activations_create(&run->activations, run->model, run->capacity, true));
	TRY(optimizer_create(&run->optimizer, run->model, run->comm, &optimizer));
	if (run->resumed) {
		TRY(checkpoint_load(run->checkpoint, run->model, &run->replica, run->optimizer));
		if (run->begins_phase)
			optimizer_restart(run->optimizer);
		return OK;
	}
	TRY(model_initialize(run->model, &run->replica, (uint64_t)settings->seed));
	return pretrain_load_initial(run);
}
