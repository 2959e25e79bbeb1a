/* The teacher of a fine-tuning run: finding it, checking it against the student, planning its memory, and loading it. */
#ifndef RUN_DISTILLATION_RUN_H
#define RUN_DISTILLATION_RUN_H

#include "run/run.h"
#include "tasks/task.h"
#include "train/distillation.h"
#include "weights/model_files.h"
#include "weights/model_folder.h"

struct distillation_options {
	const char *teacher;                       /* a folder; NULL: there is no teacher */
	double distill_alpha, distill_temperature; /* as in struct distillation_settings */
	const char *distill_layers; /* "uniform", or pairs of a student's and a teacher's layer, "1:3,2:6", 0 being the
				       embeddings; NULL: none */
	double distill_hidden_weight;
};
extern const struct option distillation_rows[];

/* Zero-initialize; released also after a failure. */
struct distillation_run {
	struct distillation_settings settings; /* `layers` is owned by this struct */
	struct layer_pair *pairs;
	struct model_source source;
	struct model_files files;  /* as they were before the first was read */
	struct task_config folder; /* what the teacher's folder says about its head */
	int32_t *class_rows;       /* [labels] rows of its head, in the student's order; NULL: already in that order */
	int32_t class_count;
	struct teacher *teacher; /* NULL: there is no teacher */
	uint64_t hash;           /* of its weights and configuration; set once it is loaded */
};

/* Reads the teacher's folder, except for its weights, and verifies that the teacher has the same task, vocabulary and labels.
 * Sets heads->projection if the student's hidden states need one. Call it after the student's own files are read. Without
 * a teacher, does nothing. */
MUST_USE enum status distillation_run_prepare(struct distillation_run *out, const struct distillation_options *options,
					      const struct run *run, const struct task_state *task, struct model_heads *heads);
size_t distillation_run_bytes(const struct distillation_run *distillation, const struct shape_limits *limits);
double distillation_run_flops(const struct distillation_run *distillation, const struct run *run, const struct model_work *work);
/* Allocates the memory and loads the weights into it. ERR_STATE if a resumed run had other weights. */
MUST_USE enum status distillation_run_allocate(struct distillation_run *distillation, struct run *run,
					       const struct shape_limits *limits);
/* Frees the memory. */
MUST_USE enum status distillation_run_give_back(struct distillation_run *distillation);
/* Wraps *objective, the run's, in one that distills; the new objective owns the old one. */
MUST_USE enum status distillation_run_wrap(const struct distillation_run *distillation, const struct run *run,
					   struct objective **objective);
/* Tells the report about the losses: training is judged by the loss of the labels, which dev sets have as well. */
void distillation_run_report(const struct distillation_run *distillation, struct report_task *report);
void distillation_run_release(struct distillation_run *distillation);

#endif
