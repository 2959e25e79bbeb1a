/* The command line (words end with NUL) and, for inputs that start with '#', config files. */
#include "base/file.h"
#include "base/option.h"
#include "fuzz.h"

FUZZ_SEEDS(FUZZ_SEED("--integer=3\0--number\0.5\0-f\0--list\0a\0b\0--choice=bc\0"),
           FUZZ_SEED("--no-flag\0--words=x y\0-i3\0-l\0x\0--\0z\0"),
           FUZZ_SEED("#{\"integer\": 3, \"list\": [\"a\", \"b\"], \"flag\": false}"),
           FUZZ_SEED("#integer = 3\n# comment\nnumber=1e-3\nlist = a\nlist = b\n"))

struct settings {
	int64_t integer;
	double number;
	bool flag;
	const char *text, *choice;
	struct option_list list;
};

#define FIELD(name) offsetof(struct settings, name)
static const struct option table[] = {
        {.name = "integer", .letter = 'i', .type = OPTION_INTEGER, .field = FIELD(integer), .range = "1..9"},
        {.name = "number", .type = OPTION_NUMBER, .field = FIELD(number), .range = "..1"},
        {.name = "flag", .letter = 'f', .type = OPTION_FLAG, .field = FIELD(flag), .fallback = "true"},
        {.name = "text", .type = OPTION_TEXT, .field = FIELD(text), .alias = "words t"},
        {.name = "choice", .type = OPTION_CHOICE, .field = FIELD(choice), .range = "a|bc"},
        {.name = "list", .letter = 'l', .type = OPTION_LIST, .field = FIELD(list)},
        {0},
};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	struct settings settings = {0};
	struct options options;
	char *copy = malloc(count + 1), *words[16], *end = copy + count, config[300];
	int word_count = 0;
	memcpy(copy, bytes, count);
	*end = '\0';
	if (count && *copy == '#') {
		snprintf(config, sizeof config, "--config=%s", fuzz_file("config", bytes + 1, count - 1));
		words[word_count++] = config;
	} else {
		for (char *p = copy; word_count < 16 && p < end; p += strlen(p) + 1) {
			if (!strstr(p, "config")) /* no file but ours is read */
				words[word_count++] = p;
		}
	}
	if (options_init(&options, table, &settings) == OK) {
		struct buffer out = {0};
		if (options_parse(&options, word_count, words) == OK)
			options_print_config(&options, &out);
		buffer_release(&out);
		options_release(&options);
	}
	free(copy);
	return 0;
}
