/* Recipes: named sets of settings that `--recipe NAME` places between an option's default and everything the user gives. A recipe
 * is a config file, recipes/NAME.conf of the source tree, whose text is part of the program. */
#ifndef CMD_RECIPES_H
#define CMD_RECIPES_H

#include "base/option.h"

/* Reads the recipe that the option `recipe` names, if it was given or chosen. */
MUST_USE enum status recipes_read(struct options *options);

#endif
