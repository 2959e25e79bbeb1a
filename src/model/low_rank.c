/* Adds products of small matrices to weights, and computes their gradients: on the host, since they are a small part of a step.
 */
#include "model/low_rank.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Elements converted at a time if the masters are not float64. */
#define CONVERT_ELEMENTS 2048

double low_rank_scale(const struct low_rank *low_rank)
{
	return low_rank->alpha / (low_rank->rank_stabilized ? sqrt((double)low_rank->rank) : (double)low_rank->rank);
}

void low_rank_add(double *w, const double *a, const double *b, int64_t rows, int64_t columns, int64_t rank, double scale)
{
	for (int64_t i = 0; i < rows; i++)
		for (int64_t k = 0; k < rank; k++) {
			double factor = scale * b[i * rank + k];
			for (int64_t j = 0; j < columns; j++)
				w[i * columns + j] += factor * a[k * columns + j];
		}
}

/* da (rank,columns) += s B' dw, db (rows,rank) += s dw A' */
static void add_gradients(const double *dw, const double *a, const double *b, int64_t rows, int64_t columns, int64_t rank,
			  double scale, double *da, double *db)
{
	for (int64_t i = 0; i < rows; i++)
		for (int64_t k = 0; k < rank; k++) {
			const double *row = dw + i * columns;
			double factor = scale * b[i * rank + k], sum = 0;
			for (int64_t j = 0; j < columns; j++) {
				da[k * columns + j] += factor * row[j];
				sum += row[j] * a[k * columns + j];
			}
			db[i * rank + k] += scale * sum;
		}
}

/* ---- Between device and host ---- */

static void *at(const struct tensor *tensor, int64_t element)
{
	return (char *)tensor->data + (size_t)element * dtype_bytes(tensor->dtype);
}

static void get(const struct backend *be, const struct tensor *from, int64_t first, int64_t count, double *out)
{
	float block[CONVERT_ELEMENTS];
	if (from->dtype == DTYPE_F64)
		be->functions->to_host((struct backend *)be, out, at(from, first), (size_t)count * sizeof *out);
	for (int64_t done = 0; from->dtype != DTYPE_F64 && done < count; done += CONVERT_ELEMENTS) {
		int64_t part = count - done < CONVERT_ELEMENTS ? count - done : CONVERT_ELEMENTS;
		be->functions->to_host((struct backend *)be, block, at(from, first + done), (size_t)part * sizeof *block);
		for (int64_t i = 0; i < part; i++)
			out[done + i] = block[i];
	}
}

static void put(const struct backend *be, const struct tensor *to, int64_t first, int64_t count, const double *values)
{
	float block[CONVERT_ELEMENTS];
	if (to->dtype == DTYPE_F64)
		be->functions->to_device((struct backend *)be, at(to, first), values, (size_t)count * sizeof *values);
	for (int64_t done = 0; to->dtype != DTYPE_F64 && done < count; done += CONVERT_ELEMENTS) {
		int64_t part = count - done < CONVERT_ELEMENTS ? count - done : CONVERT_ELEMENTS;
		for (int64_t i = 0; i < part; i++)
			block[i] = (float)values[done + i];
		be->functions->to_device((struct backend *)be, at(to, first + done), block, (size_t)part * sizeof *block);
	}
}

/* ---- The parameters ---- */

/* The numbers of a layer's matrices that are targets: bits, in the order of the parameters. */
static int64_t count_targets(const struct model *model)
{
	int64_t count = 0;
	for (uint32_t bits = model->heads.low_rank.targets; bits; bits >>= 1)
		count += bits & 1;
	return count * model->config.num_hidden_layers;
}

enum status low_rank_find(struct model *model)
{
	struct parameter_place *places = NULL;
	int64_t end = model->parameter_count, matrix = 0;
	int32_t layer = -1;
	TRY(memory_new(&model->adapted, count_targets(model), sizeof *model->adapted, "an adapter"));
	TRY(memory_new(&places, model->parameter_count, sizeof *places, "an adapter"));
	parameter_places(model, places);
	for (int64_t i = 0; i < end; i++) {
		const struct parameter *parameter = &model->parameters[i];
		if (parameter->layer < 0 || parameter_rank(parameter) == 1)
			continue;
		matrix = parameter->layer == layer ? matrix + 1 : 0;
		layer = parameter->layer;
		if (model->heads.low_rank.targets >> matrix & 1)
			model->adapted[model->adapted_count++] =
				(struct adapted){.base = i, .weight = model->weights[places[i].weight], .row = places[i].row};
	}
	free(places);
	return OK;
}

/* ---- Memory ---- */

static int64_t weight_elements(const struct weight *weight)
{
	return round_up(weight->master.rows * weight->master.columns, ARENA_ALIGNMENT / (int64_t)sizeof(float));
}

/* Whether only a weight's compute copy is read, and is complete when it has been refreshed: then one buffer serves all sums. */
static bool passes(const struct model *model, const struct weight *weight)
{
	return !model->backend->queues && model->backend->functions->weight_copy_bytes(model->backend, weight) > 0;
}

/* The elements that the sums take; with `data`, places them there. */
static int64_t place_sums(struct model *model, void *data)
{
	int64_t all = 0, passage = 0;
	size_t element = dtype_bytes(model->slab.dtype);
	for (int64_t i = 0; i < model->adapted_count; i++) {
		struct weight *weight = model->adapted[i].weight;
		bool again = i > 0 && model->adapted[i - 1].weight == weight, shared = passes(model, weight);
		if (again)
			continue;
		if (data)
			weight->master.data = (char *)data + (shared ? 0 : (size_t)all * element);
		if (shared && weight_elements(weight) > passage)
			passage = weight_elements(weight);
		all += shared ? 0 : weight_elements(weight);
	}
	BUG_IF(all > 0 && passage > 0);
	return all + passage;
}

static bool is_adapted(const struct model *model, const struct weight *weight)
{
	for (int64_t i = 0; i < model->adapted_count; i++)
		if (model->adapted[i].weight == weight)
			return true;
	return false;
}

/* The elements that the gradients of one layer's frozen weights take; with `data`, places those of every layer there. Matrices
 * that are not adapted need none: linear_bwd does not compute it then. */
static int64_t place_gradients(struct model *model, void *data)
{
	int64_t most = 0, used = 0, parameter = 0;
	int32_t layer = -1;
	for (int64_t w = 0; parameter < model->adapted[0].a; w++) {
		struct weight *weight = model->weights[w];
		used = model->parameters[parameter].layer == layer ? used : 0;
		layer = model->parameters[parameter].layer;
		for (int64_t left = weight->master.rows * weight->master.columns; left > 0; parameter++)
			left -= model->parameters[parameter].count;
		if (layer < 0 || (weight->master.rows > 1 && !is_adapted(model, weight)))
			continue;
		if (data) {
			weight->gradient = weight->master;
			weight->gradient.data = (char *)data + (size_t)used * dtype_bytes(model->slab.dtype);
		}
		used += weight_elements(weight);
		most = used > most ? used : most;
	}
	return most;
}

size_t low_rank_bytes(const struct model *model)
{
	struct model *own = (struct model *)model;
	if (model->adapted_count == 0)
		return 0;
	return (size_t)(place_sums(own, NULL) + place_gradients(own, NULL)) * dtype_bytes(model->slab.dtype);
}

/* Elements of the largest matrix that is adapted, and of its A and B with their gradients. */
static int64_t host_elements(const struct model *model)
{
	int64_t most = 0;
	for (int64_t i = 0; i < model->adapted_count; i++) {
		const struct parameter *base = &model->parameters[model->adapted[i].base];
		int64_t count = base->count + 2 * model->heads.low_rank.rank * (base->rows + base->columns);
		most = count > most ? count : most;
	}
	return most;
}

enum status low_rank_allocate(struct model *model)
{
	struct backend *be = model->backend;
	size_t element = dtype_bytes(model->slab.dtype);
	if (model->adapted_count == 0)
		return OK;
	TRY(be->functions->allocate(be, &model->sums, (size_t)place_sums(model, NULL) * element, "adapted weights"));
	TRY(be->functions->allocate(be, &model->frozen_gradients, (size_t)place_gradients(model, NULL) * element,
				    "gradients of a layer"));
	place_sums(model, model->sums);
	place_gradients(model, model->frozen_gradients);
	return memory_new(&model->low_rank_numbers, host_elements(model), sizeof *model->low_rank_numbers, "adapted weights");
}

void low_rank_free(struct model *model)
{
	if (model->sums)
		model->backend->functions->release(model->backend, model->sums);
	if (model->frozen_gradients)
		model->backend->functions->release(model->backend, model->frozen_gradients);
	free(model->low_rank_numbers);
	free(model->adapted);
}

/* ---- Each step ---- */

/* A matrix on the host, with its A and B: views of the model's buffer. */
struct on_host {
	const struct parameter *base, *a, *b;
	double *w, *a_values, *b_values, *rest;
};

static struct on_host on_host(const struct model *model, const struct adapted *adapted)
{
	struct on_host out = {.base = &model->parameters[adapted->base],
			      .a = &model->parameters[adapted->a],
			      .b = &model->parameters[adapted->a + 1],
			      .w = model->low_rank_numbers};
	out.a_values = out.w + out.base->count;
	out.b_values = out.a_values + out.a->count;
	out.rest = out.b_values + out.b->count;
	get(model->backend, &model->slab, out.a->offset, out.a->count, out.a_values);
	get(model->backend, &model->slab, out.b->offset, out.b->count, out.b_values);
	return out;
}

/* Copies the weight as it is in the slab, of which only some rows may be adapted: query and value, but not key. */
static void copy_base(const struct model *model, const struct adapted *adapted)
{
	const struct parameter *base = &model->parameters[adapted->base];
	for (int64_t row = adapted->row; row > 0; row -= base->rows)
		base--;
	for (int64_t row = 0; row < adapted->weight->master.rows; row += base++->rows) {
		get(model->backend, &model->slab, base->offset, base->count, model->low_rank_numbers);
		put(model->backend, &adapted->weight->master, row * base->columns, base->count, model->low_rank_numbers);
	}
}

void low_rank_apply(struct model *model, struct replica *replica, int32_t layer)
{
	const struct low_rank *low_rank = &model->heads.low_rank;
	for (int64_t i = 0; i < model->adapted_count; i++) {
		const struct adapted *adapted = &model->adapted[i];
		struct weight *weight = adapted->weight;
		if (model->parameters[adapted->base].layer != layer)
			continue;
		if (i == 0 || model->adapted[i - 1].weight != weight)
			copy_base(model, adapted);
		struct on_host host = on_host(model, adapted);
		get(model->backend, &model->slab, host.base->offset, host.base->count, host.w);
		low_rank_add(host.w, host.a_values, host.b_values, host.base->rows, host.base->columns, low_rank->rank,
			     low_rank_scale(low_rank));
		put(model->backend, &weight->master, adapted->row * weight->master.columns, host.base->count, host.w);
		if (i + 1 == model->adapted_count || model->adapted[i + 1].weight != weight)
			weights_refresh(replica, &weight, 1);
	}
}

void low_rank_apply_all(struct model *model, struct replica *replica)
{
	for (int32_t layer = 0; model->adapted_count > 0 && layer < model->config.num_hidden_layers; layer++)
		low_rank_apply(model, replica, layer);
}

void low_rank_backward(const struct model *model, int32_t layer, bool overwrite)
{
	const struct low_rank *low_rank = &model->heads.low_rank;
	for (int64_t i = 0; i < model->adapted_count; i++) {
		const struct adapted *adapted = &model->adapted[i];
		const struct weight *weight = adapted->weight;
		if (model->parameters[adapted->base].layer != layer)
			continue;
		struct on_host host = on_host(model, adapted);
		double *da = host.rest, *db = da + host.a->count;
		get(model->backend, &weight->gradient, adapted->row * weight->gradient.columns, host.base->count, host.w);
		if (overwrite)
			memset(da, 0, (size_t)(host.a->count + host.b->count) * sizeof *da);
		else
			get(model->backend, &model->gradients, host.a->offset - model->frozen_elements, host.a->count, da);
		if (!overwrite)
			get(model->backend, &model->gradients, host.b->offset - model->frozen_elements, host.b->count, db);
		add_gradients(host.w, host.a_values, host.b_values, host.base->rows, host.base->columns, low_rank->rank,
			      low_rank_scale(low_rank), da, db);
		put(model->backend, &model->gradients, host.a->offset - model->frozen_elements, host.a->count, da);
		put(model->backend, &model->gradients, host.b->offset - model->frozen_elements, host.b->count, db);
	}
}
