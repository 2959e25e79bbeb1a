/* Passes weights on to a slab or straight to the back end, a parameter at a time. */
#include "weights/weight_target.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum status weight_target_open(struct weight_target *out, const struct model *model, float *slab)
{
	int64_t vectors = 0;
	enum status status = OK;
	*out = (struct weight_target){.model = model, .slab = slab};
	if (slab)
		return OK;
	TRY_GOTO(memory_new(&out->places, model->parameter_count, sizeof *out->places, "places of weights"), failed);
	TRY_GOTO(memory_new(&out->packed, model->parameter_count, sizeof *out->packed, "places of weights"), failed);
	TRY_GOTO(memory_new(&out->vector_starts, model->parameter_count, sizeof *out->vector_starts, "places of weights"),
		 failed);
	parameter_places(model, out->places);
	for (int64_t p = 0; p < model->parameter_count; p++) {
		out->vector_starts[p] = vectors;
		vectors += parameter_rank(&model->parameters[p]) == 1 ? model->parameters[p].count : 0;
	}
	TRY_GOTO(memory_new(&out->vectors, vectors, sizeof *out->vectors, "biases and norms"), failed);
	return OK;
failed:
	weight_target_close(out);
	return status;
}

void weight_target_close(struct weight_target *target)
{
	free(target->places);
	free(target->packed);
	free(target->vector_starts);
	free(target->vectors);
	free(target->matrix);
	*target = (struct weight_target){.model = NULL};
}

static bool is_matrix(const struct weight_target *target, int64_t parameter)
{
	return parameter_rank(&target->model->parameters[parameter]) == 2;
}

enum status weight_target_values(struct weight_target *target, int64_t parameter, float **out)
{
	const struct parameter *p = &target->model->parameters[parameter];
	if (target->slab) {
		*out = target->slab + p->offset;
	} else if (!is_matrix(target, parameter)) {
		*out = target->vectors + target->vector_starts[parameter];
	} else {
		TRY(memory_grow(&target->matrix, &target->matrix_capacity, p->count, sizeof *target->matrix, "a weight"));
		memset(target->matrix, 0, (size_t)p->count * sizeof *target->matrix);
		*out = target->matrix;
	}
	return OK;
}

/* Whether the weight is in memory already, as another model's. */
static bool is_shared(const struct weight_target *target, int64_t parameter)
{
	const struct model *model = target->model;
	return model->shared && model->shared[target->places[parameter].weight];
}

static void pack(struct weight_target *target, int64_t parameter, enum dtype dtype, const void *data, const float *scales)
{
	const struct parameter *p = &target->model->parameters[parameter];
	struct backend *be = target->model->backend;
	const struct parameter_place *place = &target->places[parameter];
	target->packed[parameter] = true;
	if (is_shared(target, parameter))
		return;
	be->functions->weight_pack(
		be, target->model->weights[place->weight],
		&(struct weight_rows){.first = place->row, .count = p->rows, .dtype = dtype, .data = data, .scales = scales});
}

void weight_target_put(struct weight_target *target, int64_t parameter, const float *values)
{
	if (!target->slab && is_matrix(target, parameter))
		pack(target, parameter, DTYPE_F32, values, NULL);
}

static bool dtype_of(const struct stored_tensor *tensor, enum dtype *out)
{
	switch (tensor->dtype) {
	case ST_F32: *out = DTYPE_F32; return true;
	case ST_F16: *out = DTYPE_F16; return true;
	case ST_BF16: *out = DTYPE_BF16; return true;
	case ST_I8: *out = DTYPE_S8; return tensor->row_scales != NULL;
	default: return false;
	}
}

bool weight_target_takes(const struct weight_target *target, int64_t parameter, const struct stored_tensor *tensor)
{
	const struct parameter *p = &target->model->parameters[parameter];
	enum dtype dtype;
	return !target->slab && is_matrix(target, parameter) && dtype_of(tensor, &dtype) && stored_tensor_is_packed(tensor) &&
	       tensor->shape[0] == p->rows && (uintptr_t)tensor->data % (uintptr_t)dtype_element_bytes(tensor->dtype) == 0;
}

enum status weight_target_take(struct weight_target *target, int64_t parameter, const struct stored_tensor *tensor)
{
	enum dtype dtype = DTYPE_F32;
	float *scales = NULL;
	BUG_IF(!dtype_of(tensor, &dtype));
	if (tensor->row_scales) { /* they may be unaligned */
		TRY(memory_new(&scales, tensor->shape[0], sizeof *scales, "scales of a weight"));
		memcpy(scales, tensor->row_scales, (size_t)tensor->shape[0] * sizeof *scales);
	}
	pack(target, parameter, dtype, tensor->data, scales);
	free(scales);
	return OK;
}

/* A weight may consist of several consecutive parameters. */
static void pack_vectors(struct weight_target *target)
{
	struct backend *be = target->model->backend;
	for (int64_t p = 0; p < target->model->parameter_count; p++) {
		const struct parameter_place *place = &target->places[p];
		if (!is_matrix(target, p) && place->row == 0 && !is_shared(target, p))
			be->functions->weight_pack(be, target->model->weights[place->weight],
						   &(struct weight_rows){.count = 1,
									 .dtype = DTYPE_F32,
									 .data = target->vectors + target->vector_starts[p]});
	}
}

enum status weight_target_finish(struct weight_target *target)
{
	float *zeros;
	if (target->slab)
		return OK;
	pack_vectors(target);
	for (int64_t p = 0; p < target->model->parameter_count; p++) {
		if (!is_matrix(target, p) || target->packed[p])
			continue;
		TRY(weight_target_values(target, p, &zeros));
		weight_target_put(target, p, zeros);
	}
	return OK;
}
