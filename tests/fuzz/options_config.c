/* The command line (each word ends with a NUL) and, for inputs that start with '#', config files. */
#include "base/file.h"
#include "base/option.h"
#include "fuzz.h"

FUZZ_SEEDS(FUZZ_SEED("--integer=3\0--number\0.5\0-f\0--list\0a\0b\0--choice=bc\0"),
	   FUZZ_SEED("--no-flag\0--words=x y\0-i3\0-l\0x\0--\0z\0"),
	   FUZZ_SEED("#{\"integer\": 3, \"list\": [\"a\", \"b\"], \"flag\": false}"),
	   FUZZ_SEED("#integer = 3\n# comment\nnumber=1e-3\nlist = a\nlist = b\n"),
	   FUZZ_SEED("#flag = no\n[part]\ninteger = 1\n[part 2] # last\nlist = a\nlist = b\n"),
	   FUZZ_SEED("#{\"parts\": [{\"integer\": 1}, {\"list\": [\"a\"]}], \"tpu\": true}"),
	   FUZZ_SEED("--part2.integer=3\0--part1.list\0a\0b\0--part1.no_flag\0--tpu\0--loops\0"
		     "3\0--lower\0"))

struct settings {
	int64_t integer;
	double number;
	bool flag;
	const char *text;
	unsigned choice;
	struct option_list list;
};

#define FIELD(name) offsetof(struct settings, name)
static const struct option table[] = {
	{.name = "integer", .letter = 'i', .section = "part", .type = OPTION_INTEGER, .field = FIELD(integer), .range = "1..9"},
	{.name = "number", .type = OPTION_NUMBER, .field = FIELD(number), .range = "..1"},
	{.name = "flag", .letter = 'f', .section = "part", .type = OPTION_FLAG, .field = FIELD(flag), .fallback = "true"},
	{.name = "text", .type = OPTION_TEXT, .field = FIELD(text), .alias = "words t"},
	{.name = "choice", .type = OPTION_CHOICE, .field = FIELD(choice), .range = "a|bc"},
	{.name = "list", .letter = 'l', .section = "part", .type = OPTION_LIST, .field = FIELD(list)},
	{0},
};

static const struct option_foreign foreign[] = {
	{.name = "lower", .kind = FOREIGN_FLAG, .answer = FOREIGN_MEANS, .option = "flag"},
	{.name = "tpu", .kind = FOREIGN_FLAG, .answer = FOREIGN_REFUSED, .why = "none"},
	{.name = "loops", .kind = FOREIGN_VALUE, .answer = FOREIGN_IGNORED, .why = "none"},
	{.name = "resume", .kind = FOREIGN_EITHER, .answer = FOREIGN_IGNORED, .option = "text", .why = "none"},
	{0},
};

/* Derives the options of each section, and of one past the last. */
static void derive_all(const struct options *options)
{
	for (int64_t i = 0; i <= options->section_count; i++) {
		struct settings own = {0};
		struct options section;
		if (options_derive(&section, options, i, &own) == OK)
			options_release(&section);
	}
}

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
			if (!strstr(p, "config")) /* only our own file is read */
				words[word_count++] = p;
		}
	}
	if (options_init(&options, table, &settings) == OK) {
		struct buffer out = {0};
		options.foreign = foreign;
		if (options_parse(&options, word_count, words) == OK) {
			options_print_config(&options, &out);
			derive_all(&options);
		}
		buffer_release(&out);
		options_release(&options);
	}
	free(copy);
	return 0;
}
