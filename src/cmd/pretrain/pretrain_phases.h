/* The phases of `bertc pretrain`: the options of each, from the config file, the command line, and the record of the checkpoint
 * that a run resumes from. A phase that is over stays as it was; the current one and later ones are compared with their record;
 * more phases may be added at the end. */
#ifndef CMD_PRETRAIN_PRETRAIN_PHASES_H
#define CMD_PRETRAIN_PRETRAIN_PHASES_H

#include "cmd/pretrain/pretrain_options.h"
#include "run/run_folder.h"

/* Zero-initialize; close even after a failure. */
struct pretrain_phases {
	struct options **options; /* [count]: of a single phase the run's, else `own` */
	struct options *own;      /* [count] */
	int64_t count;
};

/* Takes over what `start` records into `options` and those of the phases. --phase2 moves `start` on to a phase of its own. */
MUST_USE enum status pretrain_phases_open(struct pretrain_phases *out, struct options *options, struct run_start *start);
void pretrain_phases_close(struct pretrain_phases *phases);

#endif
