/* The options of `bertc pretrain` in the form a run takes them: each function fills one of src/run's structs. Options that were
 * left open stay open. */
#ifndef CMD_PRETRAIN_PRETRAIN_SETTINGS_H
#define CMD_PRETRAIN_PRETRAIN_SETTINGS_H

#include "cmd/pretrain/pretrain_options.h"
#include "run/pretraining_run.h"

/* Inputs that --fresh must not remove; run_folder_settings borrows them. */
struct pretrain_inputs {
	const char *paths[5];
};
struct run_folder_settings pretrain_folder(const struct options *options, struct pretrain_inputs *inputs);

struct pretraining_run_settings pretrain_pretraining(const struct options *options);
/* `phase` are the options of a phase, `options` those of the run. */
struct pretraining_phase pretrain_instances(const struct options *options, const struct options *phase);

#endif
