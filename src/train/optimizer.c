/* Groups the parameters and updates them, each rank its share, then gathers the weights. */
#include "train/optimizer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "model/low_rank.h"

size_t optimizer_bytes(const struct model *model, int32_t ranks)
{
	int64_t moment = buckets_own_most(model, ranks) * (int64_t)dtype_bytes(model->backend->master_dtype);
	int64_t table = model->parameter_count * (int64_t)sizeof(struct lamb_tensor);
	int64_t norms = model->parameter_count * 2 * (int64_t)sizeof(double);
	return 2 * (size_t)round_up(moment, ARENA_ALIGNMENT) +
	       (size_t)(round_up(table, ARENA_ALIGNMENT) + round_up(norms, ARENA_ALIGNMENT));
}

/* Does the name contain one of these? A list that contains only "none" is empty. */
static bool matches(const struct option_list *parts, const char *name)
{
	bool none = parts->count == 1 && strcmp(parts->values[0], "none") == 0;
	for (int64_t i = 0; i < parts->count && !none; i++)
		if (strstr(name, parts->values[i]))
			return true;
	return false;
}

static struct lamb_tensor describe(const struct optimizer_options *options, const struct parameter *parameter)
{
	const struct option_list *undecayed = &options->exclude_from_weight_decay;
	bool decays = undecayed->count > 0 ? !matches(undecayed, parameter->name) : parameter->decays;
	bool all = options->trust_ratio == TRUST_RATIO_ALL;
	double weight_decay = decays ? options->weight_decay : 0.0;
	return (struct lamb_tensor){
		.offset = parameter->offset,
		.count = parameter->count,
		.weight_decay = weight_decay,
		.rate = parameter->rate,
		.adapts = (all || weight_decay > 0) && !matches(&options->exclude_from_layer_adaptation, parameter->name),
	};
}

/* The groups with several ranks: this rank's part of each bucket. A tensor that crosses the border between two shares is cut;
 * a tensor outside this rank's share has no elements here. */
static void groups_of_buckets(struct optimizer *optimizer, struct lamb_tensor *tensors)
{
	const struct model *model = optimizer->model;
	for (int64_t i = 0; i < optimizer->buckets.count; i++) {
		const struct bucket *bucket = &optimizer->buckets.items[i];
		int64_t begin = bucket->own_offset, end = begin + bucket->own_count;
		optimizer->groups[optimizer->group_count++] = (struct optimizer_group){
			.offset = begin,
			.count = bucket->own_count,
			.moments = bucket->moments,
			.first_tensor = bucket->first_tensor,
			.tensor_count = bucket->tensor_count,
			.first_weight = bucket->first_weight,
			.weight_count = bucket->weight_count,
		};
		for (int64_t t = bucket->first_tensor; t < bucket->first_tensor + bucket->tensor_count; t++) {
			struct lamb_tensor tensor = describe(&optimizer->options, &model->parameters[t]);
			int64_t first = larger(tensor.offset, begin), last = smaller(tensor.offset + tensor.count, end);
			optimizer->weight_decay[t] = tensor.weight_decay;
			tensor.offset = first < last ? first - begin : 0;
			tensor.count = first < last ? last - first : 0;
			tensors[t] = tensor;
		}
	}
}

/* Divides the slab into groups of whole weights (query, key, and value are one weight); the offsets of `tensors` become
 * relative to their group. */
static void groups_build(struct optimizer *optimizer, struct lamb_tensor *tensors)
{
	const struct model *model = optimizer->model;
	struct optimizer_group *group = NULL;
	int64_t parameter = model->frozen_count;
	for (int64_t w = model->frozen_weights; w < model->weight_count; w++) {
		int64_t elements = model->weights[w]->master.rows * model->weights[w]->master.columns;
		int64_t offset = model->parameters[parameter].offset;
		if (!group || offset + elements - group->offset > model->backend->update_elements) {
			group = &optimizer->groups[optimizer->group_count++];
			*group = (struct optimizer_group){.offset = offset,
							  .moments = offset - model->frozen_elements,
							  .first_tensor = parameter,
							  .first_weight = w};
		}
		group->count = offset + elements - group->offset;
		group->weight_count++;
		for (; elements > 0; parameter++) {
			struct lamb_tensor *tensor = &tensors[parameter];
			*tensor = describe(&optimizer->options, &model->parameters[parameter]);
			optimizer->weight_decay[parameter] = tensor->weight_decay;
			elements -= tensor->count;
			tensor->offset -= group->offset;
			group->tensor_count++;
		}
	}
}

static void await_now(void *context, int32_t layer)
{
	struct optimizer *optimizer = context;
	const struct bucket *bucket = bucket_of(&optimizer->buckets, layer);
	if (!optimizer->gathers[layer + 1].under_way)
		return;
	optimizer->gathers[layer + 1].under_way = false;
	if (comm_wait(optimizer->buckets.comm, optimizer->gathers[layer + 1].ticket) != OK)
		optimizer->error = *error_last();
	if (!bucket->narrow)
		weights_refresh(optimizer->replica, optimizer->model->weights + bucket->first_weight, bucket->weight_count);
	low_rank_apply(optimizer->model, optimizer->replica, layer);
}

/* Waits for the weights of a layer when they are needed. */
static void await_bucket(void *context, int32_t layer)
{
	struct optimizer *optimizer = context;
	work_hook(optimizer->model->backend, await_now, optimizer, layer);
}

enum status optimizer_create(struct optimizer **out, struct model *model, struct comm *comm,
			     const struct optimizer_options *options)
{
	*out = NULL;
	struct optimizer *optimizer;
	TRY(memory_new(&optimizer, 1, sizeof *optimizer, "optimizer"));
	optimizer->options = *options;
	optimizer->model = model;
	struct backend *be = model->backend;
	int64_t count = model->parameter_count;
	size_t table_bytes = (size_t)count * sizeof(struct lamb_tensor);
	struct lamb_tensor *tensors = NULL;
	void *memory;
	enum status status;
	TRY_GOTO(buckets_create(&optimizer->buckets, model, comm), failed);
	bool shares = optimizer->buckets.ranks > 1;
	struct tensor moment = {.dtype = be->master_dtype, .rows = 1, .columns = optimizer->buckets.own_elements};
	size_t bytes = (size_t)moment.columns * dtype_bytes(moment.dtype);
	optimizer->m = optimizer->v = moment;
	TRY_GOTO(memory_new(&optimizer->gathers, optimizer->buckets.count, sizeof *optimizer->gathers, "optimizer"), failed);
	TRY_GOTO(memory_new(&optimizer->norm_sums, 2 * count, sizeof *optimizer->norm_sums, "optimizer"), failed);
	TRY_GOTO(memory_new(&optimizer->groups, count, sizeof *optimizer->groups, "optimizer"), failed);
	TRY_GOTO(memory_new(&optimizer->weight_decay, count, sizeof *optimizer->weight_decay, "optimizer"), failed);
	TRY_GOTO(memory_new(&optimizer->ranges, count, sizeof *optimizer->ranges, "optimizer"), failed);
	TRY_GOTO(memory_new(&tensors, count, sizeof *tensors, "optimizer"), failed);
	TRY_GOTO(be->functions->allocate(be, &optimizer->m.data, bytes, "first moments"), failed);
	TRY_GOTO(be->functions->allocate(be, &optimizer->v.data, bytes, "second moments"), failed);
	TRY_GOTO(be->functions->allocate(be, &memory, table_bytes, "table of tensors"), failed);
	optimizer->tensors = memory;
	TRY_GOTO(be->functions->allocate(be, &memory, (size_t)count * 2 * sizeof(double), "norms of tensors"), failed);
	optimizer->norms = memory;
	if (shares) {
		groups_of_buckets(optimizer, tensors);
		model->before_layer = await_bucket;
		model->before_context = optimizer;
	} else {
		groups_build(optimizer, tensors);
	}
	be->functions->to_device(be, optimizer->tensors, tensors, table_bytes);
	free(tensors);
	optimizer->options.exclude_from_weight_decay = (struct option_list){0};
	optimizer->options.exclude_from_layer_adaptation = (struct option_list){0};
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
	if (optimizer->model->before_context == optimizer)
		optimizer->model->before_layer = NULL;
	be->functions->release(be, optimizer->m.data);
	be->functions->release(be, optimizer->v.data);
	be->functions->release(be, optimizer->tensors);
	be->functions->release(be, optimizer->norms);
	buckets_release(&optimizer->buckets);
	free(optimizer->groups);
	free(optimizer->weight_decay);
	free(optimizer->ranges);
	free(optimizer->norm_sums);
	free(optimizer->gathers);
	free(optimizer);
}

void optimizer_restart(struct optimizer *optimizer)
{
	optimizer->update_count = 0;
}

void optimizer_prepare(const struct optimizer *optimizer, struct scalars *scalars)
{
	const struct optimizer_options *options = &optimizer->options;
	double t = (double)(optimizer->update_count + 1);
	bool corrected = options->bias_correction;
	scalars->bias_correction1 = corrected ? 1.0 - pow(options->adam_beta1, t) : 1.0;
	scalars->bias_correction2 = corrected ? 1.0 - pow(options->adam_beta2, t) : 1.0;
	scalars->max_grad_norm = options->max_grad_norm;
}

/* A part of a slab; absent if the slab is. */
static struct tensor slice(struct tensor slab, int64_t offset, int64_t count)
{
	if (!slab.data)
		return slab;
	slab.data = (char *)slab.data + (size_t)offset * dtype_bytes(slab.dtype);
	slab.columns = count;
	return slab;
}

/* Adjacent tensors with the same decay and rate form one range: the alignment gaps between them hold zeros in weights, gradients,
 * and moments, and stay zero. */
static void adamw_update(const struct optimizer *optimizer, struct replica *replica, const struct optimizer_group *group)
{
	const struct optimizer_options *options = &optimizer->options;
	const struct model *model = optimizer->model;
	const double *decay = optimizer->weight_decay;
	const struct parameter *parameters = model->parameters;
	int64_t end = group->first_tensor + group->tensor_count, ranges = 0;
	for (int64_t first = group->first_tensor, next; first < end; first = next) {
		next = first + 1;
		while (next < end && decay[next] == decay[first] && parameters[next].rate == parameters[first].rate)
			next++;
		const struct parameter *last = &parameters[next - 1];
		int64_t offset = larger(parameters[first].offset, group->offset);
		int64_t count = smaller(last->offset + last->count, group->offset + group->count) - offset;
		if (count > 0) /* otherwise it belongs to another rank */
			optimizer->ranges[ranges++] =
				(struct decay_range){offset - group->offset, count, decay[first], parameters[first].rate};
	}
	adamw(replica, &(struct adamw){
			       .beta1 = options->adam_beta1,
			       .beta2 = options->adam_beta2,
			       .epsilon = options->adam_epsilon,
			       .ranges = optimizer->ranges,
			       .range_count = ranges,
			       .w = slice(model->slab, group->offset, group->count),
			       .m = slice(optimizer->m, group->moments, group->count),
			       .v = slice(optimizer->v, group->moments, group->count),
			       .g = buckets_gradients(model, group->offset, group->count),
			       .copy = slice(model->mirror, group->offset, group->count),
		       });
}

static void lamb_measure(const struct optimizer *optimizer, struct replica *replica, const struct optimizer_group *group)
{
	const struct optimizer_options *options = &optimizer->options;
	lamb_norms(replica, &(struct lamb_norms){
				    .beta1 = options->adam_beta1,
				    .beta2 = options->adam_beta2,
				    .beta3 = options->gradient_averaging ? 1.0 - options->adam_beta1 : 1.0,
				    .epsilon = options->adam_epsilon,
				    .normalize = options->gradient_normalization == NORMALIZE_ALWAYS,
				    .tensors = optimizer->tensors + group->first_tensor,
				    .tensor_count = group->tensor_count,
				    .w = slice(optimizer->model->slab, group->offset, group->count),
				    .m = slice(optimizer->m, group->moments, group->count),
				    .v = slice(optimizer->v, group->moments, group->count),
				    .g = buckets_gradients(optimizer->model, group->offset, group->count),
				    .norms = optimizer->norms + 2 * group->first_tensor,
			    });
}

static void lamb_update(const struct optimizer *optimizer, struct replica *replica, const struct optimizer_group *group)
{
	lamb_apply(replica, &(struct lamb_apply){
				    .epsilon = optimizer->options.adam_epsilon,
				    .max_trust_ratio = optimizer->options.max_trust_ratio,
				    .tensors = optimizer->tensors + group->first_tensor,
				    .tensor_count = group->tensor_count,
				    .w = slice(optimizer->model->slab, group->offset, group->count),
				    .m = slice(optimizer->m, group->moments, group->count),
				    .v = slice(optimizer->v, group->moments, group->count),
				    .norms = optimizer->norms + 2 * group->first_tensor,
				    .copy = slice(optimizer->model->mirror, group->offset, group->count),
			    });
}

void optimizer_measure(const struct optimizer *optimizer, struct replica *replica)
{
	const struct buckets *buckets = &optimizer->buckets;
	if (buckets->ranks == 1) {
		sumsq_finite(replica, &(struct sumsq_finite){.range = optimizer->model->gradients,
							     .sums = replica->accumulators,
							     .decides = true});
		return;
	}
	bool add = false;
	for (int64_t i = 0; i < buckets->count; i++) {
		const struct bucket *bucket = &buckets->items[i];
		if (bucket->count == 0)
			continue;
		sumsq_finite(replica, &(struct sumsq_finite){
					      .range = buckets_gradients(optimizer->model, bucket->own_offset, bucket->own_count),
					      .add = add,
					      .sums = replica->accumulators,
				      });
		add = true;
	}
}

void optimizer_decide(const struct optimizer *optimizer, struct replica *replica)
{
	sumsq_finite(replica, &(struct sumsq_finite){
				      .range = buckets_gradients(optimizer->model, optimizer->model->frozen_elements, 0),
				      .add = true,
				      .decides = true,
			      });
}

static void update_alone(void *context)
{
	struct optimizer *optimizer = context;
	struct replica *replica = optimizer->replica;
	const struct model *model = optimizer->model;
	for (int64_t i = 0; i < optimizer->group_count; i++) {
		const struct optimizer_group *group = &optimizer->groups[i];
		if (optimizer_is_lamb(&optimizer->options)) {
			lamb_measure(optimizer, replica, group);
			lamb_update(optimizer, replica, group);
		} else {
			adamw_update(optimizer, replica, group);
		}
		if (!model->backend->mirrors_masters)
			weights_refresh(replica, model->weights + group->first_weight, group->weight_count);
	}
	low_rank_apply_all(optimizer->model, replica);
}

/* Norms are taken over whole tensors, whichever ranks hold their elements. */
static enum status lamb_measure_all(struct optimizer *optimizer, struct replica *replica)
{
	struct backend *be = optimizer->model->backend;
	int64_t count = 2 * optimizer->model->parameter_count;
	size_t bytes = (size_t)count * sizeof(double);
	for (int64_t i = 0; i < optimizer->group_count; i++)
		if (optimizer->groups[i].tensor_count > 0)
			lamb_measure(optimizer, replica, &optimizer->groups[i]);
	TRY(comm_settle(optimizer->buckets.comm, 0)); /* the host is about to wait for a device that waits for other ranks */
	be->functions->to_host(be, optimizer->norm_sums, optimizer->norms, bytes);
	TRY(comm_sum(optimizer->buckets.comm, optimizer->norm_sums, count));
	be->functions->to_device(be, optimizer->norms, optimizer->norm_sums, bytes);
	return OK;
}

enum status optimizer_settle(struct optimizer *optimizer)
{
	for (int64_t i = 0; i < optimizer->buckets.count && optimizer->buckets.ranks > 1; i++)
		await_bucket(optimizer, (int32_t)i - 1);
	return optimizer->error.status == OK ? OK : error_restore(&optimizer->error);
}

static comm_ticket gather_masters(const struct optimizer *optimizer, const struct bucket *bucket)
{
	void *masters = slice(optimizer->model->slab, bucket->offset, bucket->count).data;
	return comm_all_gather(optimizer->buckets.comm, masters, bucket->count, buckets_type(optimizer->model));
}

static comm_ticket gather_copies(const struct optimizer *optimizer, const struct bucket *bucket)
{
	struct tensor copies = slice(optimizer->model->mirror, bucket->offset, bucket->count);
	return comm_all_gather_with(optimizer->buckets.comm, copies.data, bucket->count,
				    copies.dtype == DTYPE_BF16 ? COMM_BF16 : COMM_F16,
				    optimizer->buckets.pieces + bucket->first_piece, bucket->piece_count);
}

enum status optimizer_gather_masters(struct optimizer *optimizer)
{
	const struct buckets *buckets = &optimizer->buckets;
	comm_ticket newest = 0;
	TRY(optimizer_settle(optimizer));
	for (int64_t i = 0; i < buckets->count; i++)
		if (buckets->items[i].narrow)
			newest = gather_masters(optimizer, &buckets->items[i]);
	return comm_wait(buckets->comm, newest);
}

/* While one bucket is gathered, the next is updated; then the next step's forward pass begins. */
static enum status update_shares(struct optimizer *optimizer, struct replica *replica)
{
	const struct buckets *buckets = &optimizer->buckets;
	bool lamb = optimizer_is_lamb(&optimizer->options);
	TRY(optimizer_settle(optimizer)); /* a rank without a micro-batch has not waited for the weights */
	if (lamb)
		TRY(lamb_measure_all(optimizer, replica));
	for (int64_t i = 0; i < buckets->count; i++) {
		const struct bucket *bucket = &buckets->items[i];
		if (bucket->count == 0)
			continue;
		(lamb ? lamb_update : adamw_update)(optimizer, replica, &optimizer->groups[i]);
		optimizer->gathers[i].ticket = (bucket->narrow ? gather_copies : gather_masters)(optimizer, bucket);
		optimizer->gathers[i].under_way = true;
	}
	return OK;
}

enum status optimizer_update(struct optimizer *optimizer, struct replica *replica)
{
	struct work_key key = work_key(optimizer, WORK_UPDATE, NULL);
	optimizer->replica = replica;
	if (optimizer->buckets.ranks > 1)
		return update_shares(optimizer, replica);
	work_queue(replica, &key, update_alone, optimizer);
	return OK;
}
