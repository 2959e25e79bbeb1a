#include "train/optimizer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* Elements that LAMB takes at a time: its second pass finds weights and moments (12 bytes each) in the cache. */
#define LAMB_ELEMENTS (1 << 20)

static size_t moment_bytes(const struct model *model)
{
	return (size_t)model->slab_count * dtype_bytes(model->backend->master_dtype);
}

size_t optimizer_bytes(const struct model *model)
{
	int64_t table = model->parameter_count * (int64_t)sizeof(struct lamb_tensor);
	int64_t norms = model->parameter_count * 2 * (int64_t)sizeof(double);
	return 2 * (size_t)round_up((int64_t)moment_bytes(model), ARENA_ALIGNMENT) +
	       (size_t)(round_up(table, ARENA_ALIGNMENT) + round_up(norms, ARENA_ALIGNMENT));
}

static bool matches(const struct name_patterns *patterns, const char *name)
{
	for (int64_t i = 0; i < patterns->count; i++)
		if (strstr(name, patterns->patterns[i]))
			return true;
	return false;
}

static struct lamb_tensor describe(const struct optimizer_settings *settings, const struct parameter *parameter)
{
	bool decays = settings->has_undecayed ? !matches(&settings->undecayed, parameter->name) : parameter->decays;
	double weight_decay = decays ? settings->weight_decay : 0.0;
	return (struct lamb_tensor){
		.offset = parameter->offset,
		.count = parameter->count,
		.weight_decay = weight_decay,
		.adapts = (settings->adapts_all || weight_decay > 0) && !matches(&settings->unadapted, parameter->name),
	};
}

/* Does the tensor belong into the range? Slab order alternates weights and vectors; the alignment gaps between them hold
 * zeros in weights, gradients and moments, and stay zero. */
static bool joins(enum optimizer_kind kind, const struct optimizer_range *range, const struct lamb_tensor *tensor)
{
	if (kind == OPTIMIZER_ADAMW)
		return range->weight_decay == tensor->weight_decay;
	return tensor->offset + tensor->count - range->offset <= LAMB_ELEMENTS;
}

/* Cuts the slab into ranges; offsets of `tensors` become relative to their range. */
static void ranges_build(struct optimizer *optimizer, struct lamb_tensor *tensors)
{
	const struct model *model = optimizer->model;
	struct optimizer_range *last = NULL;
	for (int64_t i = 0; i < model->parameter_count; i++) {
		struct lamb_tensor *tensor = &tensors[i];
		*tensor = describe(&optimizer->settings, &model->parameters[i]);
		if (!last || !joins(optimizer->settings.kind, last, tensor)) {
			last = &optimizer->ranges[optimizer->range_count++];
			*last = (struct optimizer_range){.offset = tensor->offset,
							 .weight_decay = tensor->weight_decay,
							 .first_tensor = i};
		}
		last->count = tensor->offset + tensor->count - last->offset;
		last->tensor_count++;
		tensor->offset -= last->offset;
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
	struct tensor moment = {.dtype = be->master_dtype, .rows = 1, .columns = model->slab_count};
	optimizer->m = optimizer->v = moment;
	int64_t count = model->parameter_count;
	size_t table_bytes = (size_t)count * sizeof(struct lamb_tensor), bytes = moment_bytes(model);
	struct lamb_tensor *tensors = NULL;
	void *memory;
	enum status status;
	TRY_GOTO(memory_new(&optimizer->ranges, count, sizeof(*optimizer->ranges), "optimiser"), failed);
	TRY_GOTO(memory_new(&tensors, count, sizeof(*tensors), "optimiser"), failed);
	TRY_GOTO(be->functions->allocate(be, &optimizer->m.data, bytes, "first moments"), failed);
	TRY_GOTO(be->functions->allocate(be, &optimizer->v.data, bytes, "second moments"), failed);
	TRY_GOTO(be->functions->allocate(be, &memory, table_bytes, "table of tensors"), failed);
	optimizer->tensors = memory;
	TRY_GOTO(be->functions->allocate(be, &memory, (size_t)count * 2 * sizeof(double), "norms of tensors"), failed);
	optimizer->norms = memory;
	ranges_build(optimizer, tensors);
	be->functions->to_device(be, optimizer->tensors, tensors, table_bytes);
	free(tensors);
	optimizer->settings.undecayed = optimizer->settings.unadapted = (struct name_patterns){NULL, 0};
	*out = optimizer;
	return OK;
failed:
	free(tensors);
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
	be->functions->release(be, optimizer->tensors);
	be->functions->release(be, optimizer->norms);
	free(optimizer->ranges);
	free(optimizer);
}

void optimizer_restart(struct optimizer *optimizer)
{
	optimizer->update_count = 0;
}

void optimizer_prepare(const struct optimizer *optimizer, struct scalars *scalars)
{
	const struct optimizer_settings *settings = &optimizer->settings;
	double t = (double)(optimizer->update_count + 1);
	bool corrected = settings->bias_correction;
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

static void adamw_update(const struct optimizer *optimizer, struct replica *replica,
			 const struct optimizer_range *range)
{
	const struct optimizer_settings *settings = &optimizer->settings;
	adamw(replica, &(struct adamw){
			       .beta1 = settings->beta1,
			       .beta2 = settings->beta2,
			       .epsilon = settings->epsilon,
			       .weight_decay = range->weight_decay,
			       .w = slice(optimizer->model->slab, range),
			       .m = slice(optimizer->m, range),
			       .v = slice(optimizer->v, range),
			       .g = slice(optimizer->model->gradients, range),
		       });
}

static void lamb_update(const struct optimizer *optimizer, struct replica *replica, const struct optimizer_range *range)
{
	const struct optimizer_settings *settings = &optimizer->settings;
	struct tensor w = slice(optimizer->model->slab, range);
	struct tensor m = slice(optimizer->m, range), v = slice(optimizer->v, range);
	const struct lamb_tensor *tensors = optimizer->tensors + range->first_tensor;
	double *norms = optimizer->norms + 2 * range->first_tensor;
	lamb_norms(replica, &(struct lamb_norms){
				    .beta1 = settings->beta1,
				    .beta2 = settings->beta2,
				    .beta3 = settings->no_gradient_averaging ? 1.0 : 1.0 - settings->beta1,
				    .epsilon = settings->epsilon,
				    .normalize = settings->normalize_gradients,
				    .tensors = tensors,
				    .tensor_count = range->tensor_count,
				    .w = w,
				    .m = m,
				    .v = v,
				    .g = slice(optimizer->model->gradients, range),
				    .norms = norms,
			    });
	lamb_apply(replica, &(struct lamb_apply){
				    .epsilon = settings->epsilon,
				    .max_trust_ratio = settings->max_trust_ratio,
				    .tensors = tensors,
				    .tensor_count = range->tensor_count,
				    .w = w,
				    .m = m,
				    .v = v,
				    .norms = norms,
			    });
}

void optimizer_measure(const struct optimizer *optimizer, struct replica *replica)
{
	sumsq_finite(replica, &(struct sumsq_finite){.range = optimizer->model->gradients});
}

void optimizer_update(struct optimizer *optimizer, struct replica *replica)
{
	struct model *model = optimizer->model;
	for (int64_t i = 0; i < optimizer->range_count; i++) {
		if (optimizer->settings.kind == OPTIMIZER_LAMB)
			lamb_update(optimizer, replica, &optimizer->ranges[i]);
		else
			adamw_update(optimizer, replica, &optimizer->ranges[i]);
	}
	model_refresh(model, replica);
}
