/* Queues the reduction of each bucket from hooks in the backward pass, and waits for all of them. */
#include "train/reduction.h"

static void begin_now(void *context, int32_t layer)
{
	struct reduction *reduction = context;
	const struct bucket *bucket = bucket_of(reduction->buckets, layer);
	struct tensor gradients = buckets_gradients(reduction->model, bucket->offset, bucket->count);
	if (bucket->count > 0)
		reduction->newest = comm_reduce_scatter(reduction->buckets->comm, gradients.data, bucket->count,
							buckets_type(reduction->model), reduction->wire);
}

static void begin_bucket(void *context, int32_t layer)
{
	struct reduction *reduction = context;
	work_hook(reduction->model->backend, begin_now, reduction, layer);
}

enum status reduction_open(struct reduction *out, const struct buckets *buckets, struct model *model, enum comm_type wire)
{
	*out = (struct reduction){.buckets = buckets, .model = model, .wire = wire == COMM_F32 ? buckets_type(model) : wire};
	if (buckets->ranks == 1 || out->wire == buckets_type(model))
		return OK;
	return comm_reserve(buckets->comm, buckets_longest(model), out->wire);
}

struct layer_hook reduction_hook(struct reduction *reduction)
{
	return (struct layer_hook){.done = begin_bucket, .context = reduction};
}

void reduction_begin_all(struct reduction *reduction)
{
	/* In the order of model_backward. */
	for (int32_t layer = reduction->model->config.num_hidden_layers; layer >= -1; layer--)
		begin_bucket(reduction, layer);
}

enum status reduction_finish(struct reduction *reduction)
{
	return reduction->newest ? comm_wait(reduction->buckets->comm, reduction->newest) : OK;
}

void reduction_keep_own(struct reduction *reduction)
{
	for (int64_t i = 0; i < reduction->buckets->count; i++) {
		const struct bucket *bucket = &reduction->buckets->items[i];
		int64_t end = bucket->own_offset + bucket->own_count;
		if (bucket->count == 0)
			continue;
		model_clear_gradients(reduction->model, bucket->offset, bucket->own_offset - bucket->offset);
		model_clear_gradients(reduction->model, end, bucket->offset + bucket->count - end);
	}
}
