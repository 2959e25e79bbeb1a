/* Keeps the running mean of the weights on the first rank, and puts it in their place at the end of a phase. */
#include "train/average.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "train/ranks.h"

/* Elements copied through the host at a time. */
#define PIECE ((int64_t)1 << 17)

size_t average_bytes(const struct model *model)
{
	return (size_t)model->slab_count * dtype_bytes(model->slab.dtype);
}

enum status average_open(struct average *average, struct model *model, struct comm *comm)
{
	*average = (struct average){.model = model, .comm = comm};
	if (!is_first_rank(comm))
		return OK;
	return memory_new(&average->mean, model->slab_count, dtype_bytes(model->slab.dtype), "mean of the weights");
}

void average_release(struct average *average)
{
	free(average->mean);
	*average = (struct average){0};
}

bool average_is_due(double share, int64_t steps, double place, int64_t taken)
{
	double length = share * (double)steps, inside = place - ((double)steps - length);
	/* An integer that rounding has made slightly smaller still counts as that integer. */
	return inside > 0 && floor(AVERAGE_SNAPSHOTS * inside / length + 1e-6) > (double)taken;
}

/* Updates the mean of `taken` values to that of `taken` + 1, for doubles ... */
static void add_doubles(double *mean, const double *values, int64_t count, int64_t taken)
{
	for (int64_t i = 0; i < count; i++)
		mean[i] += (values[i] - mean[i]) / (double)(taken + 1);
}

/* ... and for floats, computed in double, since the errors of many additions in float would add up. */
static void add_floats(float *mean, const float *values, int64_t count, int64_t taken)
{
	for (int64_t i = 0; i < count; i++)
		mean[i] = (float)((double)mean[i] + ((double)values[i] - (double)mean[i]) / (double)(taken + 1));
}

static enum status add(struct average *average, int64_t taken)
{
	const struct model *model = average->model;
	struct backend *be = model->backend;
	size_t element = dtype_bytes(model->slab.dtype);
	void *piece;
	if (!average->mean)
		return OK;
	TRY(memory_new(&piece, PIECE, element, "a piece of the weights"));
	for (int64_t done = 0; done < model->slab_count; done += PIECE) {
		int64_t left = model->slab_count - done, count = left < PIECE ? left : PIECE;
		be->functions->to_host(be, piece, (const char *)model->slab.data + (size_t)done * element,
				       (size_t)count * element);
		if (model->slab.dtype == DTYPE_F64)
			add_doubles((double *)average->mean + done, piece, count, taken);
		else
			add_floats((float *)average->mean + done, piece, count, taken);
	}
	free(piece);
	return OK;
}

enum status average_add(struct average *average, int64_t taken)
{
	BUG_IF(average->model->slab.dtype != DTYPE_F32 && average->model->slab.dtype != DTYPE_F64);
	return ranks_agree(average->comm, add(average, taken));
}

enum status average_use(struct average *average, struct replica *replica)
{
	struct model *model = average->model;
	struct backend *be = model->backend;
	size_t element = dtype_bytes(model->slab.dtype);
	void *piece = NULL;
	enum status status = memory_new(&piece, PIECE, element, "a piece of the weights");
	TRY_GOTO(ranks_agree(average->comm, status), done);
	for (int64_t done = 0; done < model->slab_count; done += PIECE) {
		int64_t left = model->slab_count - done, count = left < PIECE ? left : PIECE;
		size_t bytes = (size_t)count * element;
		void *from = average->mean ? (char *)average->mean + (size_t)done * element : piece;
		if (ranks_count(average->comm) > 1)
			TRY_GOTO(comm_broadcast(average->comm, from, bytes, 0), done);
		be->functions->to_device(be, (char *)model->slab.data + (size_t)done * element, from, bytes);
	}
	model_refresh(model, replica);
	status = be->functions->synchronize(replica);
done:
	free(piece);
	return status;
}
