/* Adds up the memory that a run will need, prints it, and checks that the device and the machine have it. */
#include "run/plan.h"

#include <stdio.h>

#include "base/log.h"
#include "base/memory.h"
#include "comm/comm.h"
#include "model/flops.h"
#include "train/checkpoint.h"
#include "train/optimizer.h"

double plan_step_flops(const struct model *model, int64_t batch_size, int32_t length)
{
	struct model_work work = model_work_of_full((double)batch_size, length);
	return model_work_flops(model, &work);
}

/* Additional memory for several ranks on devices. */
static size_t communication_bytes(const struct model *model, int32_t ranks, bool narrow)
{
	size_t slab = (size_t)model->slab_count * dtype_bytes(model->slab.dtype);
	size_t pages = (slab + COMM_DEVICE_PAGE - 1) / COMM_DEVICE_PAGE * COMM_DEVICE_PAGE;
	if (ranks == 1)
		return 0;
	/* Weights and gradients. */
	return COMM_DEVICE_ALLOWANCE + 2 * (pages - slab) + (narrow ? 2 * (size_t)buckets_longest(model) : 0);
}

struct memory_plan plan_training(const struct model *model, const struct shape_limits *limits, int64_t batch_size,
				 int32_t max_seq_length, size_t batch_bytes, int32_t ranks, bool narrow)
{
	struct backend *be = model->backend;
	struct memory_plan plan = {
		.weights = model_bytes(model, limits->training),
		.moments = limits->training ? optimizer_bytes(model, ranks) : 0,
		.activations = activations_bytes(model, limits->batch, limits->longest, limits->training),
		.workspace = be->functions->workspace_bytes(be, limits),
		.batches = batch_bytes,
		.checkpoint = limits->training ? checkpoint_writer_bytes(model) : 0,
		.ranks = ranks,
		.flops_per_step = plan_step_flops(model, batch_size, max_seq_length),
	};
	if (be->functions->batch_bytes) {
		size_t batches;
		be->functions->batch_bytes(be, limits, &batches, &plan.pinned);
		plan.workspace += batches;
		plan.communication = communication_bytes(model, ranks, narrow);
		plan.device = plan.weights + plan.moments + plan.activations + plan.workspace + plan.communication;
	}
	plan.total = plan.weights + plan.moments + plan.activations + plan.workspace + plan.communication + plan.batches +
		     plan.pinned + plan.checkpoint;
	return plan;
}

void plan_add_teacher(struct memory_plan *plan, size_t bytes, double flops)
{
	plan->flops_per_step += flops;
	plan->teacher += bytes;
	plan->total += bytes;
	if (plan->device > 0)
		plan->device += bytes;
}

void plan_add_average(struct memory_plan *plan, size_t bytes)
{
	plan->average += bytes;
	plan->total += bytes;
}

static void row(struct buffer *out, const char *name, size_t bytes, const char *what)
{
	char size[FORMAT_BYTES];
	buffer_format(out, "  %-13s %10s  %s\n", name, format_size(size, (double)bytes), what);
}

static void device_row(struct buffer *out, const struct memory_plan *plan, struct backend *be)
{
	size_t left, all;
	char has[2][FORMAT_BYTES], note[96] = "";
	if (be->functions->memory_left(be, &left, &all) == OK)
		snprintf(note, sizeof note, "of %s left of %s", format_size(has[0], (double)left),
			 format_size(has[1], (double)all));
	row(out, "on the GPU", plan->device, note);
}

void plan_print(const struct memory_plan *plan, const struct model *model, const struct shape_limits *limits, struct buffer *out)
{
	char count[FORMAT_BYTES], note[96];
	buffer_format(out, "memory plan for %s parameters%s\n", format_count(count, model->element_count),
		      plan->ranks > 1 ? ", of each rank" : "");
	row(out, "weights", plan->weights, "master weights, gradients, compute copies");
	row(out, "moments", plan->moments, plan->ranks > 1 ? "optimizer state, this rank's share" : "of the optimizer");
	snprintf(note, sizeof note, "of %d tokens, %d sequences, %d predictions", limits->batch.tokens, limits->batch.sequences,
		 limits->batch.labels[0].count);
	row(out, "activations", plan->activations, note);
	if (plan->teacher > 0)
		row(out, "teacher", plan->teacher, "its weights and activations, and gradients of hidden states");
	row(out, "workspace", plan->workspace, "of the back end");
	if (plan->communication > 0)
		row(out, "communication", plan->communication, "between ranks: NCCL's own (an allowance) and room for gradients");
	if (plan->device > 0)
		device_row(out, plan, model->backend);
	row(out, "batches", plan->batches, "read ahead, and answers while they are scored");
	if (plan->pinned > 0)
		row(out, "pinned", plan->pinned, "for copies to and from the GPU");
	row(out, "checkpoint", plan->checkpoint,
	    plan->ranks > 1 ? "copies while saving, in the first rank alone" : "copies while saving");
	if (plan->average > 0)
		row(out, "average", plan->average,
		    plan->ranks > 1 ? "mean of the weights, in the first rank alone" : "mean of the weights");
	int64_t left = memory_available();
	char have[FORMAT_BYTES];
	snprintf(note, sizeof note, "%s available", format_size(have, (double)left));
	row(out, plan->device > 0 ? "on the host" : "total", plan->total - plan->device, left > 0 ? note : "");
	buffer_format(out, "  %-13s %10.3g  TFLOP a step of full-length sequences\n", "work", plan->flops_per_step * 1e-12);
}

static enum status check_device(const struct memory_plan *plan, struct backend *be)
{
	size_t left, all;
	char need[FORMAT_BYTES], have[2][FORMAT_BYTES];
	if (plan->device == 0)
		return OK;
	TRY(be->functions->memory_left(be, &left, &all));
	if (plan->device <= left)
		return OK;
	return error_hinted(
		error_set(ERR_RESOURCE, "this run needs %s of GPU memory, but %s of %s are left",
			  format_size(need, (double)plan->device), format_size(have[0], (double)left),
			  format_size(have[1], (double)all)),
		"use a smaller --micro_batch_tokens (auto: what fits), --max_seq_length, or model, or stop other programs on "
		"the GPU (see nvidia-smi)");
}

size_t plan_host_bytes(const struct memory_plan *plan, int32_t local_ranks)
{
	size_t first = plan->total - plan->device;
	return first + (size_t)(local_ranks - 1) * (first - plan->checkpoint - plan->average);
}

enum status plan_check(const struct memory_plan *plan, struct backend *be, int32_t local_ranks)
{
	int64_t left = memory_available();
	size_t total = plan_host_bytes(plan, local_ranks);
	TRY(check_device(plan, be));
	if (left <= 0 || total <= (size_t)left)
		return OK;
	char need[FORMAT_BYTES], have[FORMAT_BYTES], ranks[48] = "";
	if (local_ranks > 1)
		snprintf(ranks, sizeof ranks, " for %d ranks", local_ranks);
	return error_hinted(error_set(ERR_RESOURCE, "this run needs %s of memory%s, but the machine has %s left",
				      format_size(need, (double)total), ranks, format_size(have, (double)left)),
			    "use a smaller --micro_batch_tokens, --max_seq_length, or model");
}
