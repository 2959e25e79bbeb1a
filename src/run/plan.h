/* How much memory and computing a run will need, known before anything is allocated. */
#ifndef RUN_PLAN_H
#define RUN_PLAN_H

#include "backend/backend.h"
#include "base/buffer.h"
#include "model/model.h"

struct memory_plan {
	size_t weights; /* masters, gradients, compute copies */
	size_t moments;
	size_t activations; /* for one micro-batch */
	size_t teacher;     /* everything that distillation adds; 0: there is no teacher */
	size_t workspace;
	size_t batches;       /* read ahead on the host, and answers that are scored */
	size_t pinned;        /* host memory for copies to and from a device */
	size_t checkpoint;    /* host copies while saving */
	size_t average;       /* the mean of the weights, on the host; 0: none is kept */
	size_t communication; /* on a device: allowance for NCCL, numbers in the form they are sent in, rounding up to pages */
	size_t device;        /* the part of the total that is on a device; 0 where memory is the host's */
	size_t total;
	int32_t ranks;         /* all of the above is for one of them */
	double flops_per_step; /* at full length, including a teacher's */
};

/* For the first of `ranks` ranks, which needs the most: the others make no copies for checkpoints. `batch_bytes` is what the
 * batches read ahead take on the host (step_reader_bytes); `narrow`: gradients are sent in 16 bits. */
struct memory_plan plan_training(const struct model *model, const struct shape_limits *limits, int64_t batch_size,
				 int32_t max_seq_length, size_t batch_bytes, int32_t ranks, bool narrow);
/* Adds the mean of the weights, which only the first rank keeps. */
void plan_add_average(struct memory_plan *plan, size_t bytes);
/* Adds a teacher's memory, which is where the model's is, and its FLOPs per step. */
void plan_add_teacher(struct memory_plan *plan, size_t bytes, double flops);
/* FLOPs of a step of full-length sequences, with the usual share of predictions. */
double plan_step_flops(const struct model *model, int64_t batch_size, int32_t length);
void plan_print(const struct memory_plan *plan, const struct model *model, const struct shape_limits *limits, struct buffer *out);
/* Memory that `local_ranks` ranks on one machine take, one of them being the first rank. */
size_t plan_host_bytes(const struct memory_plan *plan, int32_t local_ranks);
/* ERR_RESOURCE if the plan needs more memory than this machine has left, with `local_ranks` ranks on it, one of them the first,
 * or more than this rank's device has left. */
MUST_USE enum status plan_check(const struct memory_plan *plan, struct backend *be, int32_t local_ranks);

#endif
