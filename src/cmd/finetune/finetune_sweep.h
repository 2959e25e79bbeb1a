/* `bertc finetune --sweep`: the runs of a sweep, one after another in this process (and its ranks). */
#ifndef CMD_FINETUNE_FINETUNE_SWEEP_H
#define CMD_FINETUNE_FINETUNE_SWEEP_H

#include "cmd/finetune/finetune_run.h"

/* Runs the sweep; `options` are the command's. [all] */
MUST_USE enum status finetune_sweep(struct options *options, struct machine *machine);

#endif
