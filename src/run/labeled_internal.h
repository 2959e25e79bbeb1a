/* What the parts of a fine-tuning run share: labeled_run.c up to its training, labeled_recipe.c with what it learns, and
 * labeled_results.c after that. */
#ifndef RUN_LABELED_INTERNAL_H
#define RUN_LABELED_INTERNAL_H

#include "run/labeled_run.h"

/* The settings of the run's objective, which also score a set. */
struct labeled_settings labeled_run_settings(struct labeled_run *labeled);
/* Makes what the folders of checkpoints and of the finished model say about the task. */
MUST_USE enum status labeled_run_record(struct labeled_run *labeled);

/* Models narrower than BERT-base learn with higher rates and, on few examples, for more epochs. */
bool labeled_is_small(const struct model_config *config);
/* Needs the training examples. */
MUST_USE enum status labeled_choose_phase(const struct labeled_run *labeled, struct run_phase *phase);
/* Applies the options of loss and layers to the head and the run. ERR_USAGE: they do not fit this task or model. */
MUST_USE enum status labeled_choose_learning(struct labeled_run *labeled);

#endif
