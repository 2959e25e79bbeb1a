/* What the parts of a fine-tuning run share: labeled_run.c up to its training, labeled_results.c after that. */
#ifndef RUN_LABELED_INTERNAL_H
#define RUN_LABELED_INTERNAL_H

#include "run/labeled_run.h"

/* The settings of the run's objective, which also score a set. */
struct labeled_settings labeled_run_settings(struct labeled_run *labeled);
/* Makes what the folders of checkpoints and of the finished model say about the task. */
MUST_USE enum status labeled_run_record(struct labeled_run *labeled);

#endif
