/* The recipes' texts, which are part of the program, and how one is read into the options. */
#include "cmd/recipes.h"

#include <string.h>

/* The file recipes/NAME.conf as a string. A program that is copied alone has its recipes, and never those of another version.
 * (The symbols are global because arm64's linker takes a place within a section for its beginning.) */
#define RECIPE(name)                                                                                                             \
	extern const char recipe_##name[] __attribute__((visibility("hidden")));                                                 \
	__asm__(".pushsection .rodata\n.global recipe_" #name "\n.hidden recipe_" #name "\n"                                     \
		"recipe_" #name ": .incbin \"recipes/" #name ".conf\"\n.byte 0\n.popsection")
RECIPE(original);
RECIPE(fast);

static const struct {
	const char *name, *text;
} recipes[] = {{"original", recipe_original}, {"fast", recipe_fast}};

enum status recipes_read(struct options *options)
{
	struct buffer scratch = {0};
	enum status status = OK;
	if (options_origin(options, "recipe") == ORIGIN_DEFAULT)
		return OK;
	const char *name = options_value(options, "recipe", &scratch);
	for (size_t i = 0; i < sizeof recipes / sizeof *recipes && status == OK; i++)
		if (strcmp(recipes[i].name, name) == 0)
			status = options_read_recipe(options, recipes[i].name, recipes[i].text);
	buffer_release(&scratch);
	return status;
}
