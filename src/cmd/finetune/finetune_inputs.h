/* What `bertc finetune` is to do and with which files, as given by other programs' options: --do_train, --do_eval, --do_predict,
 * --data_dir. */
#ifndef CMD_FINETUNE_FINETUNE_INPUTS_H
#define CMD_FINETUNE_FINETUNE_INPUTS_H

#include "base/option.h"

/* Records what is missing from the options, or contradictory, as problems (command.h). */
MUST_USE enum status finetune_check(struct options *options);
/* Settles --task, --train, --dev, and --test: files that are not named are taken from --data_dir, and sets that are not wanted
 * are dropped. *out_train false: the model is only used for evaluation and prediction. ERR_USAGE: there is nothing to do, or
 * something to be used is missing. */
MUST_USE enum status finetune_inputs(struct options *options, bool *out_train);
/* Evaluates the dev sets and predicts the test sets with the model as it is, and writes the results into the run folder. */
MUST_USE enum status finetune_score(struct options *options);

#endif
