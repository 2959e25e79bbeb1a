/* The option --model, and command-line checks, shared by the commands that use a finished model. */
#ifndef CMD_SAVED_MODELS_H
#define CMD_SAVED_MODELS_H

#include "base/option.h"

extern const struct option saved_model_rows[]; /* whose field is the path itself */

/* Records a problem if the model does not exist: these commands take no size names, so a folder or a file is meant. NULL is not
 * checked. */
MUST_USE enum status saved_model_check(struct options *options, const char *model);
/* Records a problem for an argument that is a text instead of a file; `example` is the command that would answer it. */
MUST_USE enum status text_arguments_check(struct options *options, const char *example);

#endif
