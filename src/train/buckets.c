/* Lays out the buckets of the parameter slab and each rank's share of them. */
#include "train/buckets.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/numbers.h"

static int64_t bucket_count(const struct model *model)
{
	return model->config.num_hidden_layers + 2;
}

/* Sets the buckets' ranges, tensors, and weights; a bucket begins where the layer changes. */
static void lay_out(struct bucket *items, const struct model *model)
{
	for (int64_t i = model->frozen_count; i < model->parameter_count; i++) {
		const struct parameter *parameter = &model->parameters[i];
		struct bucket *bucket = &items[parameter->layer + 1];
		if (bucket->tensor_count++ == 0) {
			bucket->offset = parameter->offset;
			bucket->first_tensor = i;
		}
		int64_t next = i + 1 < model->parameter_count ? model->parameters[i + 1].offset : model->slab_count;
		bucket->count = next - bucket->offset;
	}
	int64_t parameter = model->frozen_count;
	for (int64_t w = model->frozen_weights; w < model->weight_count; w++) {
		struct bucket *bucket = &items[model->parameters[parameter].layer + 1];
		if (bucket->weight_count++ == 0)
			bucket->first_weight = w;
		for (int64_t left = model->weights[w]->master.rows * model->weights[w]->master.columns; left > 0; parameter++)
			left -= model->parameters[parameter].count;
	}
}

/* The parts of a run of vectors that the ranks own. */
static enum status add_pieces(struct buckets *buckets, const struct model *model, struct bucket *bucket, int64_t begin,
			      int64_t end)
{
	for (int32_t rank = 0; rank < buckets->ranks; rank++) {
		int64_t first = larger(begin, bucket->offset + comm_share(buckets->comm, bucket->count, rank));
		int64_t last = smaller(end, bucket->offset + comm_share(buckets->comm, bucket->count, rank + 1));
		if (first >= last)
			continue;
		TRY(memory_grow(&buckets->pieces, &buckets->piece_capacity, buckets->piece_count + 1, sizeof *buckets->pieces,
				"buckets"));
		buckets->pieces[buckets->piece_count++] =
			(struct comm_piece){.data = (float *)model->slab.data + first, .count = last - first, .rank = rank};
		bucket->piece_count++;
	}
	return OK;
}

/* Encoder layers, of which operations read the masters of vectors, and of matrices only the copies, are gathered in 16 bits if
 * the update writes the copies. Adapters change matrices after the update. */
static enum status narrow_bucket(struct buckets *buckets, const struct model *model, struct bucket *bucket)
{
	int64_t parameter = bucket->first_tensor, end = bucket->first_weight + bucket->weight_count, run = -1;
	bucket->narrow = true;
	bucket->first_piece = buckets->piece_count;
	for (int64_t w = bucket->first_weight; w < end; w++) {
		int64_t offset = model->parameters[parameter].offset;
		bool vector = model->weights[w]->use == WEIGHT_VECTOR;
		if (vector && run < 0)
			run = offset;
		if (!vector && run >= 0)
			TRY(add_pieces(buckets, model, bucket, run, offset));
		if (!vector)
			run = -1;
		for (int64_t left = model->weights[w]->master.rows * model->weights[w]->master.columns; left > 0; parameter++)
			left -= model->parameters[parameter].count;
	}
	return run < 0 ? OK : add_pieces(buckets, model, bucket, run, bucket->offset + bucket->count);
}

enum status buckets_create(struct buckets *out, const struct model *model, struct comm *comm)
{
	*out = (struct buckets){.comm = comm, .ranks = 1, .count = bucket_count(model)};
	if (comm) {
		out->rank = comm_place(comm)->rank;
		out->ranks = comm_place(comm)->size;
	}
	TRY(memory_new(&out->items, out->count, sizeof *out->items, "buckets"));
	lay_out(out->items, model);
	for (int64_t i = 0; i < out->count; i++) {
		struct bucket *bucket = &out->items[i];
		int64_t first = 0, end = bucket->count;
		if (out->ranks > 1) {
			first = comm_share(comm, bucket->count, out->rank);
			end = comm_share(comm, bucket->count, out->rank + 1);
		}
		bucket->own_offset = bucket->offset + first;
		bucket->own_count = end - first;
		bucket->moments = out->own_elements;
		out->own_elements += bucket->own_count;
		if (out->ranks > 1 && i > 0 && i + 1 < out->count && bucket->count > 0 && model->mirror.data &&
		    model->adapted_count == 0)
			TRY(narrow_bucket(out, model, bucket));
	}
	return OK;
}

void buckets_release(struct buckets *buckets)
{
	free(buckets->items);
	free(buckets->pieces);
	*buckets = (struct buckets){0};
}

/* Calls `add` with the number of elements of each bucket. */
static int64_t over_buckets(const struct model *model, int32_t ranks,
			    int64_t (*add)(int64_t so_far, int64_t count, int32_t ranks))
{
	int64_t result = 0, begin = model->frozen_elements;
	for (int64_t i = model->frozen_count; i < model->parameter_count; i++) {
		bool last = i + 1 == model->parameter_count;
		if (!last && model->parameters[i + 1].layer == model->parameters[i].layer)
			continue;
		int64_t end = last ? model->slab_count : model->parameters[i + 1].offset;
		result = add(result, end - begin, ranks);
		begin = end;
	}
	return result;
}

static int64_t add_last_share(int64_t so_far, int64_t count, int32_t ranks)
{
	int64_t share = count / (64 * (int64_t)ranks) * 64; /* as in comm_share() */
	return so_far + count - (ranks - 1) * share;
}

static int64_t larger_of(int64_t so_far, int64_t count, int32_t ranks)
{
	(void)ranks;
	return count > so_far ? count : so_far;
}

int64_t buckets_own_most(const struct model *model, int32_t ranks)
{
	return ranks <= 1 ? model->gradients.columns : over_buckets(model, ranks, add_last_share);
}

int64_t buckets_longest(const struct model *model)
{
	return over_buckets(model, 1, larger_of);
}

struct tensor buckets_gradients(const struct model *model, int64_t offset, int64_t count)
{
	struct tensor part = model->gradients;
	if (part.data)
		part.data = (char *)part.data + (size_t)(offset - model->frozen_elements) * dtype_bytes(part.dtype);
	part.columns = count;
	return part;
}

enum comm_type buckets_type(const struct model *model)
{
	return model->slab.dtype == DTYPE_F64 ? COMM_F64 : COMM_F32;
}
