#include "train/optimizer.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"

size_t optimizer_bytes(const struct model *model)
{
	return 2 * round_up((int64_t)((size_t)model->slab_count * dtype_bytes(model->backend->master_dtype)),
			    ARENA_ALIGNMENT);
}

/* Slab order alternates weights and vectors; neighbours that decay alike become one range. The alignment gaps
 * between them hold zeros in weights, gradients and moments, and stay zero. */
static void ranges_build(struct optimizer *optimizer)
{
	const struct model *model = optimizer->model;
	for (int64_t i = 0; i < model->parameter_count; i++) {
		const struct parameter *parameter = &model->parameters[i];
		struct optimizer_range *last =
			optimizer->range_count > 0 ? &optimizer->ranges[optimizer->range_count - 1] : NULL;
		if (last && last->decays == parameter->decays)
			last->count = parameter->offset + parameter->count - last->offset;
		else
			optimizer->ranges[optimizer->range_count++] = (struct optimizer_range){
				parameter->offset, parameter->count, parameter->decays};
	}
}

enum status optimizer_create(struct optimizer **out, struct model *model, const struct optimizer_settings *settings)
{
	*out = NULL;
	struct optimizer *optimizer;
	TRY(memory_new(&optimizer, 1, sizeof(*optimizer), "optimiser"));
	optimizer->settings = *settings;
	optimizer->model = model;
	struct backend *be = model->backend;
	size_t bytes = (size_t)model->slab_count * dtype_bytes(be->master_dtype);
	struct tensor moment = {.dtype = be->master_dtype, .rows = 1, .columns = model->slab_count};
	optimizer->m = optimizer->v = moment;
	enum status status;
	TRY_GOTO(memory_new(&optimizer->ranges, model->parameter_count, sizeof(*optimizer->ranges), "optimiser"),
		 failed);
	TRY_GOTO(be->functions->allocate(be, &optimizer->m.data, bytes, "first moments"), failed);
	TRY_GOTO(be->functions->allocate(be, &optimizer->v.data, bytes, "second moments"), failed);
	ranges_build(optimizer);
	*out = optimizer;
	return OK;
failed:
	optimizer_free(optimizer);
	return status;
}

void optimizer_free(struct optimizer *optimizer)
{
	if (!optimizer)
		return;
	struct backend *be = optimizer->model->backend;
	be->functions->release(be, optimizer->m.data);
	be->functions->release(be, optimizer->v.data);
	free(optimizer->ranges);
	free(optimizer);
}

void optimizer_prepare(const struct optimizer *optimizer, struct scalars *scalars)
{
	const struct optimizer_settings *settings = &optimizer->settings;
	double t = (double)(optimizer->update_count + 1);
	bool corrected = settings->kind == OPTIMIZER_ADAMW;
	scalars->bias_correction1 = corrected ? 1.0 - pow(settings->beta1, t) : 1.0;
	scalars->bias_correction2 = corrected ? 1.0 - pow(settings->beta2, t) : 1.0;
	scalars->max_grad_norm = settings->max_grad_norm;
}

static struct tensor slice(struct tensor slab, const struct optimizer_range *range)
{
	slab.data = (char *)slab.data + (size_t)range->offset * dtype_bytes(slab.dtype);
	slab.columns = range->count;
	return slab;
}

void optimizer_update(struct optimizer *optimizer, struct replica *replica)
{
	const struct optimizer_settings *settings = &optimizer->settings;
	struct model *model = optimizer->model;
	sumsq_finite(replica, &(struct sumsq_finite){.range = model->gradients});
	for (int64_t i = 0; i < optimizer->range_count; i++) {
		const struct optimizer_range *range = &optimizer->ranges[i];
		adamw(replica, &(struct adamw){
				       .beta1 = settings->beta1,
				       .beta2 = settings->beta2,
				       .epsilon = settings->epsilon,
				       .weight_decay = range->decays ? settings->weight_decay : 0.0,
				       .w = slice(model->slab, range),
				       .m = slice(optimizer->m, range),
				       .v = slice(optimizer->v, range),
				       .g = slice(model->gradients, range),
			       });
	}
	model_refresh(model, replica);
}
