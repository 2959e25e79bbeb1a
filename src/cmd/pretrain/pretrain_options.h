/* The table of the options of `bertc pretrain` (struct pretraining_options), and what its help says. */
#ifndef CMD_PRETRAIN_PRETRAIN_OPTIONS_H
#define CMD_PRETRAIN_PRETRAIN_OPTIONS_H

#include "cmd/command.h"
#include "run/pretraining_options.h"

extern const struct option pretrain_options[];
extern const struct command_text pretrain_text;
extern const struct option_foreign pretrain_foreign[]; /* pretrain_foreign.c */

#endif
