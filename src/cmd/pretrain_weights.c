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

/* What a rank takes for itself. */
static enum status allocate_own(struct pretrain *run)
{
	struct backend *be = run->backend;
	struct optimizer_settings optimizer = pretrain_optimizer(run->settings);
	TRY(be->functions->replica_create(be, &run->replica, &run->limits));
	TRY(activations_create(&run->activations, run->model, run->capacity, true));
	return optimizer_create(&run->optimizer, run->model, run->comm, &optimizer);
}

enum status pretrain_allocate(struct pretrain *run)
{
	TRY(ranks_agree(run->comm, allocate_model(run)));
	return ranks_agree(run->comm, allocate_own(run));
}

void pretrain_release_memory(struct pretrain *run)
{
	optimizer_free(run->optimizer);
	activations_free(run->activations);
	if (run->replica.backend)
		run->backend->functions->replica_release(&run->replica);
	model_free(run->model);
	for (int i = 0; i < 2 && run->comm; i++) {
		comm_release(run->comm, run->slabs[i]);
		run->slabs[i] = NULL;
	}
	run->optimizer = NULL;
	run->activations = NULL;
	run->replica = (struct replica){0};
	run->model = NULL;
}

enum status pretrain_load_weights(struct pretrain *run)
{
	if (run->resumed) {
		TRY(checkpoint_load(run->checkpoint, run->model, &run->replica, run->optimizer));
		if (run->begins_phase)
			optimizer_restart(run->optimizer);
		return OK;
	}
	TRY(model_initialize(run->model, &run->replica, (uint64_t)run->settings->seed));
	return pretrain_load_initial(run);
}
