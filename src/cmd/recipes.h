/* Recipes: named sets of settings that `--recipe NAME` places between an option's default and everything the user gives. A recipe
 * is a config file, NAME.conf, in the folder `recipes` of the source tree or of a release, or in share/bertc/recipes. */
#ifndef CMD_RECIPES_H
#define CMD_RECIPES_H

#include "base/option.h"

/* The words of --recipe, in their order. */
enum recipe_name { RECIPE_ORIGINAL, RECIPE_FAST };
#define RECIPE_NAMES "original|fast"

/* The row of the option. `place`: the offset of the name in the command's settings. */
#define RECIPE_OPTION(place)                                                                                                     \
	{                                                                                                                        \
		.name = "recipe", .type = OPTION_CHOICE, .field = place, .range = RECIPE_NAMES, .fallback = "original",          \
		.role = ROLE_RESULT, .value_name = "NAME",                                                                       \
		.help = "settings to begin with: as BERT was published (original), or what has since been found to give a "      \
			"better model in the same time (fast, which --time chooses); any other option takes precedence"          \
	}

/* Reads the recipe that the option `recipe` names, if it was given or chosen. */
MUST_USE enum status recipes_read(struct options *options);

#endif
