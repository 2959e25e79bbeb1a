/* What `bertc finetune` is to do, and with which files, where other programs' options say it: --do_train, --do_eval,
 * --do_predict, --data_dir. */
#ifndef CMD_FINETUNE_INPUTS_H
#define CMD_FINETUNE_INPUTS_H

#include "base/option.h"

/* What is missing from the options, or contradicts itself, becomes a problem (command.h). */
MUST_USE enum status finetune_check(struct options *options);
/* Settles --task, --train, --dev and --test: files come from --data_dir where they are not named, and sets that are not wanted
 * are forgotten. *out_train false: only to be scored and predicted with. ERR_USAGE: nothing is to be done, or what is to be used
 * is not there. */
MUST_USE enum status finetune_inputs(struct options *options, bool *out_train);
/* Scores the dev sets and predicts the test sets with the model as it is, and writes the results into the run's folder. */
MUST_USE enum status finetune_score(struct options *options);

#endif
