/* The teacher of a fine-tuning run: found, checked against the student, planned for, and loaded. */
#ifndef RUN_DISTILLATION_RUN_H
#define RUN_DISTILLATION_RUN_H

#include "run/run.h"
#include "tasks/task.h"
#include "train/distillation.h"
#include "weights/model_files.h"
#include "weights/model_folder.h"

/* As given; borrowed. */
struct distillation_options {
	const char *teacher;                      /* a folder; NULL: nobody teaches */
	double alpha, temperature, hidden_weight; /* as struct distillation_settings has them */
	const char *layers; /* "uniform", or "1:3,2:6": student's and teacher's, 0 is the embeddings; NULL: none */
};

/* Zero-initialise; released also after a failure. */
struct distillation_run {
	struct distillation_settings settings; /* layers are its own */
	struct layer_pair *pairs;
	struct model_source source;
	struct model_files files;  /* as they were when the first was read */
	struct task_config folder; /* what the teacher's folder says of its head */
	int32_t *class_rows;       /* [labels] of its head, in the student's order; NULL: as they are */
	int32_t class_count;
	struct teacher *teacher; /* NULL: nobody teaches */
	uint64_t hash;           /* of its weights and configuration; once it is loaded */
};

/* Reads the teacher's folder except for its weights, and verifies that it answers the same task with the same vocabulary and
 * labels. Sets heads->projection if the student's hidden states need one. After the student's own files are read. */
MUST_USE enum status distillation_run_prepare(struct distillation_run *out, const struct distillation_options *options,
					      const struct run *run, const struct task_state *task, struct model_heads *heads);
size_t distillation_run_bytes(const struct distillation_run *distillation, const struct shape_limits *limits);
double distillation_run_flops(const struct distillation_run *distillation, const struct run *run, const struct model_work *work);
/* Takes the memory, and loads the weights into it. Those that a run to be resumed did not have are ERR_STATE. */
MUST_USE enum status distillation_run_allocate(struct distillation_run *distillation, struct run *run,
					       const struct shape_limits *limits);
/* Gives the memory back. */
MUST_USE enum status distillation_run_give_back(struct distillation_run *distillation);
/* The run's objective, which becomes the new one's own. */
MUST_USE enum status distillation_run_wrap(const struct distillation_run *distillation, const struct run *run,
					   struct objective **objective);
/* What the report says of the losses: that of labels, which dev sets have too, is what training is judged by. */
void distillation_run_report(const struct distillation_run *distillation, struct report_task *report);
void distillation_run_release(struct distillation_run *distillation);

#endif
