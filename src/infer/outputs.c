/* Runs a model over a set of examples, divided among the ranks, and gathers the outputs. */
#include "infer/outputs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/stop.h"
#include "data/step_reader.h"
#include "model/flops.h"
#include "weights/finite_values.h"
#include "backend/open.h"

struct work {
	const struct output_pass *pass;
	struct instances *instances;
	struct task_outputs *out;
	struct batch batch; /* on the device */
	void *raw;          /* outputs of a batch as copied from the device */
	double weight;
	int64_t done;
};

static int32_t ranks_of(const struct output_pass *pass)
{
	return pass->comm ? comm_place(pass->comm)->size : 1;
}

static void queue_batch(void *context)
{
	const struct work *work = context;
	const struct output_pass *pass = work->pass;
	model_forward(pass->model, pass->activations, pass->replica, &work->batch, false);
	model_losses(pass->model, pass->activations, pass->replica, &work->batch, false, false);
}

/* The number within the set of example `e` of a batch. */
static int64_t example_of(const struct work *work, const struct batch *host, int32_t e)
{
	return host->samples[host->example_starts[e]] / (uint32_t)instances_bounds(work->instances)->sequences;
}

/* The number of outputs of a batch, counted here because replaying recorded work does not update the shapes in `activations`. */
static int64_t batch_outputs(const struct work *work, const struct batch *host)
{
	int64_t count = 0;
	for (int32_t e = 0; e < host->example_count; e++) {
		int64_t example = example_of(work, host, e);
		count += work->out->starts[example + 1] - work->out->starts[example];
	}
	return count;
}

/* The outputs of a batch are stored example by example; copies each to its place. */
static void place_outputs(struct work *work, const struct batch *host, enum dtype dtype)
{
	int64_t from = 0;
	for (int32_t e = 0; e < host->example_count; e++) {
		int64_t example = example_of(work, host, e);
		int64_t first = work->out->starts[example], count = work->out->starts[example + 1] - first;
		for (int64_t i = 0; i < count; i++)
			work->out->values[first + i] = number_as_float(work->raw, dtype, from + i);
		from += count;
	}
}

static enum status compute_batch(struct work *work, const struct batch *host)
{
	const struct output_pass *pass = work->pass;
	struct backend *be = pass->replica->backend;
	be->functions->upload(pass->replica, host, &work->batch);
	struct work_key key = work_key(pass->activations, WORK_LOSS, &work->batch);
	work_queue(pass->replica, &key, queue_batch, work);
	TRY(be->functions->synchronize(pass->replica));
	struct tensor outputs = model_last_outputs(pass->activations, 0); /* its row count may be that of an earlier batch */
	be->functions->to_host(be, work->raw, outputs.data, (size_t)batch_outputs(work, host) * dtype_bytes(outputs.dtype));
	place_outputs(work, host, outputs.dtype);
	return OK;
}

/* Agrees among the ranks on whether one has failed or was asked to stop. */
static enum status agree(const struct output_pass *pass, enum status own)
{
	if (own == OK)
		own = stop_check();
	return ranks_of(pass) > 1 ? comm_agree_status(pass->comm, own) : own;
}

static enum status compute_steps(struct work *work, struct step_reader *reader)
{
	const struct step *step = NULL;
	enum status status = OK;
	do {
		if (status == OK)
			status = step_reader_next(reader, &step);
		TRY(agree(work->pass, status));
		if (!step)
			return OK;
		model_await(work->pass->model);
		for (int32_t i = 0; i < step->batch_count && status == OK; i++) {
			const struct batch *host;
			status = step_batch(step, i, &host);
			if (status == OK)
				status = compute_batch(work, host);
		}
		work->weight += step->weights[0];
		work->done += step->example_count;
		if (status == OK && work->pass->progress)
			status = work->pass->progress(work->pass->context, work->done);
	} while (step);
	return OK;
}

/* Numbers exchanged at a time. */
#define PIECE 65536

/* Every rank has the outputs of its own examples and zeros elsewhere, so the sum over ranks has all of them. */
static enum status gather(struct work *work)
{
	double *piece;
	int64_t count = work->out->starts[work->out->count];
	enum status status = OK;
	if (ranks_of(work->pass) == 1)
		return OK;
	TRY(memory_new(&piece, PIECE, sizeof *piece, "outputs of the ranks"));
	for (int64_t first = 0; first < count && status == OK; first += PIECE) {
		int64_t part = count - first < PIECE ? count - first : PIECE;
		for (int64_t i = 0; i < part; i++)
			piece[i] = work->out->values[first + i];
		status = comm_sum(work->pass->comm, piece, part);
		for (int64_t i = 0; i < part && status == OK; i++)
			work->out->values[first + i] = (float)piece[i];
	}
	free(piece);
	return status;
}

static enum status read_loss(struct work *work, double *out_loss)
{
	const struct output_pass *pass = work->pass;
	struct backend *be = pass->replica->backend;
	struct accumulators sums;
	be->functions->to_host(be, &sums, pass->replica->accumulators, sizeof sums);
	double totals[2] = {sums.value[sum_of_loss(0)], work->weight};
	if (ranks_of(pass) > 1)
		TRY(comm_sum(pass->comm, totals, 2));
	if (out_loss)
		*out_loss = totals[1] > 0 ? totals[0] / totals[1] : NAN;
	return OK;
}

/* Checks that the outputs are finite. All ranks have all of them, so all agree. */
static enum status check_outputs(const struct task_outputs *out)
{
	char what[64];
	int64_t bad = first_not_finite(out->values, DTYPE_F32, out->starts[out->count]), example = 0;
	if (bad < 0)
		return OK;
	while (out->starts[example + 1] <= bad)
		example++;
	snprintf(what, sizeof what, "the model's answer to example %lld", (long long)example + 1);
	return answer_not_finite(what);
}

enum status outputs_compute(const struct output_pass *pass, struct instances *instances, struct task_outputs *out,
			    double *out_loss)
{
	const struct head *head = &pass->model->heads.head[0];
	struct backend *be = pass->replica->backend;
	struct work work = {.pass = pass, .instances = instances, .out = out};
	struct step_reader *reader = NULL;
	struct accumulators zero = {0};
	struct batch_capacity room = backend_room(be, pass->capacity);
	int64_t rows = room.tokens > most_labels(&room) ? room.tokens : most_labels(&room);
	struct step_settings steps = {
		.batch_size = (int64_t)pass->capacity.examples * ranks_of(pass),
		.rank = pass->comm ? comm_place(pass->comm)->rank : 0,
		.ranks = ranks_of(pass),
		.linear_work = model_linear_work(&pass->model->config, &pass->model->heads),
		.capacity = pass->capacity,
		.first_step = 1,
		.sample_count = out->count,
	};
	enum status status = memory_new(&work.raw, rows * head->outputs, dtype_bytes(be->master_dtype), "outputs of a batch");
	if (status == OK)
		status = step_reader_open(&reader, instances, &steps);
	TRY_GOTO(agree(pass, status), done);
	be->functions->to_device(be, pass->replica->accumulators, &zero, sizeof zero);
	TRY_GOTO(compute_steps(&work, reader), done);
	TRY_GOTO(gather(&work), done);
	TRY_GOTO(check_outputs(out), done);
	status = read_loss(&work, out_loss);
done:
	step_reader_close(reader);
	free(work.raw);
	return status;
}
