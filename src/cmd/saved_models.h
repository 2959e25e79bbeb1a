/* What every command that uses a finished model checks of its command line. */
#ifndef CMD_SAVED_MODELS_H
#define CMD_SAVED_MODELS_H

#include "base/option.h"

/* A model that is not there becomes a problem: these commands take no names of sizes, so what is meant is a folder or a file.
 * NULL is not looked for. */
MUST_USE enum status saved_model_check(struct options *options, const char *model);
/* So does an argument that is a text, not a file; `example` is the command that would answer it. */
MUST_USE enum status text_arguments_check(struct options *options, const char *example);

#endif
