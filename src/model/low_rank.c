/* Adds products of small matrices to weights, and computes their gradients: on the host, by all threads of the pool. */
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

/* Rows or columns of a task. */
enum { PART = 32 };

/* A matrix on the host, with its A and B: views of the model's buffer. */
struct on_host {
	const struct model *model;
	const struct parameter *base, *a, *b;
	double *w, *a_values, *b_values, *da, *db;
	const struct tensor *from, *to; /* of w; the rows there */
	int64_t from_first, to_first;
	int64_t rank; /* 0: nothing is added to w */
};

static struct on_host on_host(const struct model *model, const struct adapted *adapted)
{
	struct on_host out = {.model = model,
			      .base = &model->parameters[adapted->base],
			      .a = &model->parameters[adapted->a],
			      .b = &model->parameters[adapted->a + 1],
			      .w = model->low_rank_numbers,
			      .rank = model->heads.low_rank.rank};
	out.a_values = out.w + out.base->count;
	out.b_values = out.a_values + out.a->count;
	out.da = out.b_values + out.b->count;
	out.db = out.da + out.a->count;
	get(model->backend, &model->slab, out.a->offset, out.a->count, out.a_values);
	get(model->backend, &model->slab, out.b->offset, out.b->count, out.b_values);
	return out;
}

static int64_t part_end(int64_t part, int64_t count)
{
	return (part + 1) * PART < count ? (part + 1) * PART : count;
}

/* Rows of w + s B A. */
static void sum_rows(void *context, int64_t part, int worker)
{
	const struct on_host *h = context;
	const struct backend *be = h->model->backend;
	int64_t columns = h->base->columns, first = part * PART, rows = part_end(part, h->base->rows) - first;
	double *w = h->w + first * columns;
	(void)worker;
	get(be, h->from, h->from_first + first * columns, rows * columns, w);
	if (h->rank > 0)
		low_rank_add(w, h->a_values, h->b_values + first * h->rank, rows, columns, h->rank,
			     low_rank_scale(&h->model->heads.low_rank));
	put(be, h->to, h->to_first + first * columns, rows * columns, w);
}

/* Rows of db (rows,rank) += s dw A', which also fetches those of dw. Four sums at a time, as each waits for its own last one. */
static void b_gradient(void *context, int64_t part, int worker)
{
	const struct on_host *h = context;
	int64_t columns = h->base->columns, first = part * PART, end = part_end(part, h->base->rows);
	double scale = low_rank_scale(&h->model->heads.low_rank);
	(void)worker;
	get(h->model->backend, h->from, h->from_first + first * columns, (end - first) * columns, h->w + first * columns);
	for (int64_t i = first; i < end; i++)
		for (int64_t k = 0; k < h->rank; k += 4) {
			const double *row = h->w + i * columns, *a[4];
			double sums[4] = {0};
			for (int64_t m = 0; m < 4; m++)
				a[m] = h->a_values + (k + m < h->rank ? k + m : k) * columns;
			for (int64_t j = 0; j < columns; j++)
				for (int m = 0; m < 4; m++)
					sums[m] += row[j] * a[m][j];
			for (int64_t m = 0; m < 4 && k + m < h->rank; m++)
				h->db[i * h->rank + k + m] += scale * sums[m];
		}
}

/* Columns of da (rank,columns) += s B' dw. */
static void a_gradient(void *context, int64_t part, int worker)
{
	const struct on_host *h = context;
	int64_t columns = h->base->columns, first = part * PART, end = part_end(part, columns);
	double scale = low_rank_scale(&h->model->heads.low_rank);
	(void)worker;
	for (int64_t i = 0; i < h->base->rows; i++)
		for (int64_t k = 0; k < h->rank; k++) {
			double factor = scale * h->b_values[i * h->rank + k];
			for (int64_t j = first; j < end; j++)
				h->da[k * columns + j] += factor * h->w[i * columns + j];
		}
}

static void run_parts(const struct on_host *h, int64_t count, pool_task *task)
{
	pool_run(h->model->backend->pool, (count + PART - 1) / PART, task, (void *)(uintptr_t)h);
}

/* Copies the weight as it is in the slab, of which only some rows may be adapted: query and value, but not key. */
static void copy_base(const struct model *model, const struct adapted *adapted)
{
	struct on_host h = on_host(model, adapted);
	for (int64_t row = adapted->row; row > 0; row -= h.base->rows)
		h.base--;
	h.from = &model->slab;
	h.to = &adapted->weight->master;
	h.rank = 0;
	for (int64_t row = 0; row < adapted->weight->master.rows; row += h.base++->rows) {
		h.from_first = h.base->offset;
		h.to_first = row * h.base->columns;
		run_parts(&h, h.base->rows, sum_rows);
	}
}

void low_rank_apply(struct model *model, struct replica *replica, int32_t layer)
{
	for (int64_t i = 0; i < model->adapted_count; i++) {
		const struct adapted *adapted = &model->adapted[i];
		struct weight *weight = adapted->weight;
		if (model->parameters[adapted->base].layer != layer)
			continue;
		if (i == 0 || model->adapted[i - 1].weight != weight)
			copy_base(model, adapted);
		struct on_host h = on_host(model, adapted);
		h.from = &model->slab;
		h.from_first = h.base->offset;
		h.to = &weight->master;
		h.to_first = adapted->row * weight->master.columns;
		run_parts(&h, h.base->rows, sum_rows);
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
	for (int64_t i = 0; i < model->adapted_count; i++) {
		const struct adapted *adapted = &model->adapted[i];
		if (model->parameters[adapted->base].layer != layer)
			continue;
		struct on_host h = on_host(model, adapted);
		h.from = &adapted->weight->gradient;
		h.from_first = adapted->row * h.from->columns;
		int64_t first = h.a->offset - model->frozen_elements, second = h.b->offset - model->frozen_elements;
		if (overwrite) {
			memset(h.da, 0, (size_t)(h.a->count + h.b->count) * sizeof *h.da);
		} else {
			get(model->backend, &model->gradients, first, h.a->count, h.da);
			get(model->backend, &model->gradients, second, h.b->count, h.db);
		}
		run_parts(&h, h.base->rows, b_gradient);
		run_parts(&h, h.base->columns, a_gradient);
		put(model->backend, &model->gradients, first, h.a->count, h.da);
		put(model->backend, &model->gradients, second, h.b->count, h.db);
	}
}
