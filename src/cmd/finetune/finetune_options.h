/* The options of `bertc finetune`: its settings, one member for each option, and the table that declares them. */
#ifndef CMD_FINETUNE_FINETUNE_OPTIONS_H
#define CMD_FINETUNE_FINETUNE_OPTIONS_H

#include "cmd/command.h"
#include "run/distillation_run.h"
#include "run/labeled_options.h"
#include "run/training_options.h"

struct finetune_settings {
	struct training_options training; /* first, as run/training_options.h asks */
	struct labeled_options labeled;
	struct distillation_options distillation;
	struct option_list sweep;
};

extern const struct option finetune_options[];
extern const struct option_foreign finetune_foreign[];
extern const struct command_text finetune_text;

#endif
