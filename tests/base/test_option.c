/* Options by command line, config file, and record: values, origins, help, and messages. */
#include "test.h"
#include <locale.h>
#include "base/log.h"
#include "base/option.h"

struct settings {
	bool cased, shuffle;
	int64_t batch, steps, seed;
	double rate, decay;
	const char *out, *model;
	enum { ADAMW, GOOGLE_ADAMW, LAMB } optimizer;
	struct option_list corpus;
};

#define FIELD(name) offsetof(struct settings, name)
static const struct option table[] = {
	{.help = "Data"},
	{.name = "corpus",
	 .type = OPTION_LIST,
	 .field = FIELD(corpus),
	 .role = ROLE_PLACE,
	 .help = "text files",
	 .value_name = "PATH..."},
	{.name = "cased",
	 .type = OPTION_FLAG,
	 .field = FIELD(cased),
	 .fallback = "false",
	 .role = ROLE_RESULT,
	 .help = "keep capitals"},
	{.name = "shuffle",
	 .type = OPTION_FLAG,
	 .field = FIELD(shuffle),
	 .fallback = "true",
	 .role = ROLE_RESULT,
	 .help = "mix the instances"},
	{.help = "Training"},
	{.name = "train_batch_size",
	 .letter = 'b',
	 .type = OPTION_INTEGER,
	 .field = FIELD(batch),
	 .fallback = "256",
	 .range = "1..65536",
	 .role = ROLE_RESULT,
	 .help = "instances an update",
	 .value_name = "N",
	 .alias = "batch bs"},
	{.name = "num_train_steps",
	 .type = OPTION_INTEGER,
	 .field = FIELD(steps),
	 .range = "1..",
	 .role = ROLE_RESULT,
	 .help = "updates. All of them",
	 .value_name = "N",
	 .fallback_text = "from the text's size"},
	{.name = "seed",
	 .type = OPTION_INTEGER,
	 .field = FIELD(seed),
	 .fallback = "1",
	 .range = "0..9223372036854775807",
	 .role = ROLE_RESULT,
	 .help = "seed",
	 .value_name = "N"},
	{.name = "learning_rate",
	 .type = OPTION_NUMBER,
	 .field = FIELD(rate),
	 .fallback = "1e-4",
	 .range = "0..1",
	 .role = ROLE_RESULT,
	 .help = "peak rate",
	 .value_name = "X"},
	{.name = "weight_decay",
	 .type = OPTION_NUMBER,
	 .field = FIELD(decay),
	 .fallback = "0.01",
	 .range = "..1",
	 .role = ROLE_RUN,
	 .help = "decay",
	 .value_name = "X"},
	{.name = "optimizer",
	 .type = OPTION_CHOICE,
	 .field = FIELD(optimizer),
	 .fallback = "adamw",
	 .range = "adamw|google_adamw|lamb",
	 .role = ROLE_RESULT,
	 .help = "the optimizer's name",
	 .value_name = "NAME"},
	{.name = "model",
	 .type = OPTION_TEXT,
	 .field = FIELD(model),
	 .role = ROLE_RESULT,
	 .help = "size or folder",
	 .value_name = "SIZE|FOLDER"},
	{.name = "out",
	 .type = OPTION_TEXT,
	 .field = FIELD(out),
	 .role = ROLE_PLACE,
	 .help = "run folder, \"quoted\" and with a back\\slash",
	 .value_name = "DIR"},
	{0},
};

static struct settings settings;
static struct options options;

static int setup(void **state)
{
	settings = (struct settings){0};
	log_level = LOG_NORMAL;
	return options_init(&options, table, &settings) == OK ? 0 : -1;
}

static int teardown(void **state)
{
	options_release(&options);
	return 0;
}

static void again(void)
{
	teardown(NULL);
	assert_int_equal(setup(NULL), 0);
}

/* Parses words separated by spaces. The words must live as long as the options. */
static enum status parse(const char *line)
{
	static char copy[2 * PATH_BYTES], *words[64];
	int count = 0;
	snprintf(copy, sizeof copy, "%s", line);
	for (char *save, *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
		words[count++] = word;
	return options_parse(&options, count, words);
}

static void write_file(const char *name, const char *text)
{
	assert_ok(file_write(test_path(name), text, strlen(text)));
}

static enum status parse_with_config(const char *text, const char *line)
{
	char words[PATH_BYTES + 100];
	write_file("config", text);
	snprintf(words, sizeof words, "--config %s %s", test_path("config"), line);
	return parse(words);
}

static void defaults(void **state)
{
	struct buffer scratch = {0};
	assert_false(settings.cased);
	assert_true(settings.shuffle);
	assert_int_equal(settings.batch, 256);
	assert_int_equal(settings.steps, 0);
	assert_true(settings.rate == 1e-4);
	assert_int_equal(settings.optimizer, ADAMW);
	assert_null(settings.out);
	assert_int_equal(settings.corpus.count, 0);
	assert_string_equal(options_value(&options, "learning_rate", &scratch), "1e-4"); /* as written, not 0.0001 */
	assert_string_equal(options_value(&options, "model", &scratch), "");
	assert_int_equal(options_origin(&options, "seed"), ORIGIN_DEFAULT);
	assert_false(options_given(&options, "seed"));
	buffer_release(&scratch);
}

static void every_way_to_write_an_option(void **state)
{
	static const char *const ways[] = {"--train_batch_size 8",
					   "--train-batch-size 8",
					   "--train_batch_size=8",
					   "--train-batch_size=8",
					   "--batch 8",
					   "--bs=8",
					   "-b 8",
					   "-b8",
					   "-qb8",
					   "--batch 4 --bs 8",
					   "--batch 4 -b 8"};
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		again();
		assert_ok(parse(ways[i]));
		assert_int_equal(settings.batch, 8);
		assert_int_equal(options_origin(&options, "bs"), ORIGIN_COMMAND);
		assert_true(options_given(&options, "train-batch-size"));
	}
	static const struct {
		const char *words;
		bool cased, shuffle;
		int64_t arguments;
	} flags[] = {{"--cased", true, true, 0},
		     {"--cased true", true, true, 0},
		     {"--cased=yes", true, true, 0},
		     {"--no_shuffle", false, false, 0},
		     {"--no-shuffle --no-cased", false, false, 0},
		     {"--noshuffle --cased", true, false, 0}, /* as in TensorFlow's scripts */
		     {"--shuffle false --cased", true, false, 0},
		     {"--shuffle=0", false, false, 0},
		     {"--cased --no_cased", false, true, 0},
		     {"--cased maybe", true, true, 1}}; /* a flag takes true and false, not just any word */
	for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
		again();
		assert_ok(parse(flags[i].words));
		assert_int_equal(settings.cased, flags[i].cased);
		assert_int_equal(settings.shuffle, flags[i].shuffle);
		assert_int_equal(options.positional.count, flags[i].arguments);
	}
}

static void lists_and_arguments(void **state)
{
	struct buffer scratch = {0};
	assert_error(ERR_USAGE, "--seed must lie in 0..", parse("--seed -5")); /* -5 is a value, though an invalid one */
	again();
	assert_ok(parse("first --corpus a - b --seed 5 --corpus=c second -- --corpus -x"));
	assert_int_equal(settings.corpus.count, 4);
	assert_string_equal(settings.corpus.values[1], "-");
	assert_string_equal(options_value(&options, "corpus", &scratch), "a - b c");
	assert_int_equal(options.positional.count, 4);
	assert_string_equal(options.positional.values[0], "first");
	assert_string_equal(options.positional.values[1], "second");
	assert_string_equal(options.positional.values[2], "--corpus");
	assert_string_equal(options.positional.values[3], "-x");
	buffer_release(&scratch);
}

static void wrong_words_are_explained(void **state)
{
	static const struct {
		const char *words, *message, *hint;
	} rows[] = {
		{"--learning_rate 2", "--learning_rate must lie in 0..1, not '2'", ""},
		{"--learning_rate -0.1", "--learning_rate must lie in 0..1, not '-0.1'", ""},
		{"--learning_rate fast", "--learning_rate must be a number, not 'fast'", ""},
		{"--learning_rate 0x1", "must be a number", ""},
		{"--learning_rate nan", "must be a number", ""},
		{"--learning_rate 1e999", "must be a number", ""},
		{"--learning_rate 0,5", "must be a number", ""},
		{"--learning_rate=", "must be a number", ""},
		{"--weight_decay 1.5", "--weight_decay must be 1 or less, not '1.5'", ""},
		{"--num_train_steps 0", "--num_train_steps must be 1 or more, not '0'", ""},
		{"--num_train_steps 1.5", "--num_train_steps must be a whole number, not '1.5'", ""},
		{"--num_train_steps 1.5e0", "whole number", ""},
		{"--num_train_steps 10K", "whole number", "1000 or 1024"},
		{"--num_train_steps 10m", "whole number", "k, M and G"},
		{"--num_train_steps 1e-1", "whole number", ""},
		{"--num_train_steps 1e30", "whole number", ""},
		{"--num_train_steps 1,000", "whole number", ""},
		{"--num_train_steps k", "whole number", ""},
		{"--num_train_steps 10kk", "whole number", ""},
		{"--seed 9223372036854775808", "whole number", ""},
		{"--optimizer sgd", "--optimizer must be one of adamw|google_adamw|lamb, not 'sgd'", ""},
		{"--optimizer adam", "must be one of", ""},
		{"--optimizer adamw|lamb", "must be one of", ""},
		{"--cased=maybe", "--cased must be true or false, not 'maybe'", ""},
		{"--out", "--out needs a value", ""},
		{"--out --cased", "--out needs a value", "--out=--cased"},
		{"--out -q", "--out needs a value", "--out=-q"},
		{"--corpus", "--corpus needs a value", ""},
		{"--learning_rat 1", "unknown option '--learning_rat'", "did you mean --learning_rate?"},
		{"--Learning-Rate 1", "unknown option '--Learning-Rate'", "did you mean --learning_rate?"},
		{"--train_steps 1", "unknown option '--train_steps'", "did you mean --num_train_steps?"},
		{"--print_confg", "unknown option", "did you mean --print_config?"},
		{"--bach 1", "unknown option '--bach'", "did you mean --batch?"}, /* another name for train_batch_size */
		{"--xyzzy", "unknown option '--xyzzy'", "--help"},
		{"--no_seed", "unknown option '--no_seed'", ""},
		{"--no_cased=true", "unknown option", ""},
		{"-z", "unknown option '-z'", "--help"},
		{"--quiet=1", "--quiet takes no value", ""},
		{"--config absent-file", "'absent-file': cannot open", ""},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		again();
		assert_error(ERR_USAGE, rows[i].message, parse(rows[i].words));
		if (!strstr(error_last()->hint, rows[i].hint))
			fail_msg("%s: hint '%s'", rows[i].words, error_last()->hint);
	}
}

/* Whatever is wrong with one word, the others are still read. */
static void all_problems_are_found(void **state)
{
	assert_error(ERR_USAGE, "unknown option '--modl'", parse("--modl base large --seed x --out --train_batch_size 8"));
	assert_int_equal(options.problem_count, 3);
	assert_string_equal(options.problems[1].message, "--seed must be a whole number, not 'x'");
	assert_null(options.problems[1].hint);
	assert_string_equal(options.problems[2].message, "--out needs a value");
	assert_int_equal(settings.batch, 8);
	assert_int_equal(options.positional.count, 0);
	/* They were given, though incorrectly. */
	assert_ok(options_require(&options, "model", NULL));
	assert_ok(options_require(&options, "out", NULL));
	assert_int_equal(options.problem_count, 3);
	assert_ok(options_require(&options, "num_train_steps", "say how many"));
	assert_string_equal(options.problems[3].message, "--num_train_steps is missing");
	assert_string_equal(options.problems[3].hint, "say how many");
}

/* Whole numbers may be abbreviated; the record has all digits. */
static void short_numbers(void **state)
{
	static const struct {
		const char *text;
		int64_t value;
	} rows[] = {{"1e9", 1000000000}, {"10k", 10000},     {"1.5e6", 1500000}, {"1.5M", 1500000},
		    {"2k", 2000},        {"3G", 3000000000}, {"1E3", 1000},      {"12", 12}};
	struct buffer scratch = {0};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char words[64], digits[32];
		again();
		snprintf(words, sizeof words, "--num_train_steps %s", rows[i].text);
		snprintf(digits, sizeof digits, "%lld", (long long)rows[i].value);
		assert_ok(parse(words));
		assert_int_equal(settings.steps, rows[i].value);
		assert_string_equal(options_value(&options, "num_train_steps", &scratch), digits);
	}
	buffer_release(&scratch);
}

static void common_options(void **state)
{
	assert_ok(parse("--help"));
	assert_true(options.help);
	again();
	assert_ok(parse("-h --print-config -v"));
	assert_true(options.help && options.print_config);
	assert_int_equal(log_level, LOG_VERBOSE);
	assert_ok(parse("-q"));
	assert_int_equal(log_level, LOG_QUIET);
	log_level = LOG_NORMAL;
}

static void config_files(void **state)
{
	static const char *const lines = "# a comment\n\n"
					 "train-batch-size = 32   # after a value\r\n"
					 "learning_rate=3e-4\n"
					 "  cased = true\n"
					 "out = a b#c\n"
					 "model = \" x # \\\"y\\u00e9\"  # quoted\n"
					 "corpus = one\ncorpus = two three\n"
					 "seed = 7";
	static const char *const object = "{\"train-batch-size\": 32, \"learning_rate\": 3e-4, \"cased\": true, "
					  "\"out\": \"a b#c\", \"model\": \" x # \\\"y\xC3\xA9\", "
					  "\"corpus\": [\"one\", \"two three\"], \"seed\": \"7\"}";
	for (int json = 0; json < 2; json++) {
		again();
		assert_ok(parse_with_config(json ? object : lines, ""));
		struct buffer scratch = {0};
		assert_int_equal(settings.batch, 32);
		assert_true(settings.rate == 3e-4 && settings.cased);
		assert_string_equal(options_value(&options, "learning_rate", &scratch), "3e-4");
		assert_string_equal(settings.out, "a b#c");
		assert_string_equal(settings.model, " x # \"y\xC3\xA9");
		assert_int_equal(settings.corpus.count, 2);
		assert_string_equal(settings.corpus.values[1], "two three");
		assert_int_equal(settings.seed, 7);
		assert_int_equal(options_origin(&options, "seed"), ORIGIN_FILE);
		buffer_release(&scratch);
	}
	/* A byte order mark is not part of the first name. */
	again();
	assert_ok(parse_with_config("\xEF\xBB\xBFseed = 4\r\n", ""));
	assert_int_equal(settings.seed, 4);
	again();
	assert_ok(parse_with_config("\xEF\xBB\xBF{\"seed\": 5}", ""));
	assert_int_equal(settings.seed, 5);
	/* The command line takes precedence on either side of --config; lists are replaced, not joined. */
	again();
	assert_ok(parse_with_config("seed = 7\ncorpus = x\ncorpus = y\ntrain_batch_size = 5\n", "--seed 8 --corpus z"));
	assert_int_equal(settings.seed, 8);
	assert_int_equal(settings.corpus.count, 1);
	assert_string_equal(settings.corpus.values[0], "z");
	again();
	char words[PATH_BYTES + 100];
	snprintf(words, sizeof words, "--seed 8 --corpus z --config %s", test_path("config"));
	assert_ok(parse(words));
	assert_int_equal(settings.seed, 8);
	assert_int_equal(settings.corpus.count, 1);
	assert_int_equal(settings.batch, 5);
	/* Of two files the later one counts. */
	again();
	write_file("second", "seed = 9\ncorpus = s\n");
	snprintf(words, sizeof words, "--config %s --config %s", test_path("config"), test_path("second"));
	assert_ok(parse(words));
	assert_int_equal(settings.seed, 9);
	assert_int_equal(settings.batch, 5);
	assert_int_equal(settings.corpus.count, 1);
}

static void wrong_config_files_are_explained(void **state)
{
	static const struct {
		const char *text, *message;
	} rows[] = {
		{"\nlearning_rat = 1\n", "config' line 2: unknown option 'learning_rat'"},
		{"learning_rate = 2\n", "config' line 1: --learning_rate must lie in 0..1, not '2'"},
		{"learning_rate 2\n", "line 1: expected 'name = value'"},
		{"= 2\n", "line 1: expected 'name = value'"},
		{"seed = 1\nlearning_rate = 0.5\nseed = 1\n", "line 3: 'seed' is set a second time"},
		{"seed =\n", "whole number, not ''"},
		{"out = \"x\n", "line 1: quotes are not closed"},
		{"out = \"x\" y\n", "line 1: text after the closing quotes"},
		{"out = \"\\q\"\n", "line 1: 'value': JSON: unknown escape"},
		{"help = true\n", "unknown option 'help'"},
		{"{\"seed\": 1", "config': JSON: text ends early"},
		{"{\"seed\": {}}", "\"seed\" must be a text, a number"},
		{"{\"seed\": [1]}", "\"seed\" must be a text, a number"},
		{"{\"corpus\": [[]]}", "\"corpus\" must be a text, a number"},
		{"{\"out\": \"a\\u0000b\"}", "NUL"},
		{"{\"nonsense\": 1}", "config': unknown option 'nonsense'"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		again();
		enum status status = parse_with_config(rows[i].text, "");
		if ((status != ERR_USAGE && status != ERR_DATA) || !strstr(error_last()->message, rows[i].message))
			fail_msg("%s: %d '%s'", rows[i].text, status, error_last()->message);
	}
	again();
	assert_ok(file_write(test_path("config"), "seed = 1\n\0\n", 11));
	char words[PATH_BYTES + 100];
	snprintf(words, sizeof words, "--config %s", test_path("config"));
	assert_error(ERR_DATA, "NUL", parse(words));
}

/* The output of --print-config gives the same settings when it is read back. */
static void printed_config_is_read_back(void **state)
{
	struct buffer first = {0}, second = {0};
	char words[9][32] = {"--corpus", "a b",     "c#d", "e #f", "--out", " odd \"name\"\n", "--learning_rate=3e-4",
			     "--cased",  "--model="};
	char *pointers[9];
	for (int i = 0; i < 9; i++)
		pointers[i] = words[i];
	assert_ok(options_parse(&options, 9, pointers));
	assert_ok(options_set(&options, "num_train_steps", "1000", ORIGIN_CHOSEN));
	options_print_config(&options, &first);
	assert_non_null(strstr(first.data, "learning_rate = 3e-4  # command line\n"));
	/* What nobody gave follows again. */
	assert_non_null(strstr(first.data, "\n# seed = 1  # default\n"));
	assert_non_null(strstr(first.data, "\n# num_train_steps = 1000  # chosen\n"));
	struct settings before = settings;
	char out[100];
	snprintf(out, sizeof out, "%s", settings.out);
	again();
	assert_ok(parse_with_config(buffer_string(&first), ""));
	assert_true(settings.rate == before.rate && settings.batch == before.batch && settings.cased && settings.steps == 0);
	assert_string_equal(settings.out, out);
	assert_string_equal(settings.model, "");
	assert_int_equal(settings.corpus.count, 3);
	assert_string_equal(settings.corpus.values[0], "a b");
	assert_string_equal(settings.corpus.values[1], "c#d");
	assert_string_equal(settings.corpus.values[2], "e #f");
	options_print_config(&options, &second);
	assert_non_null(strstr(second.data, "learning_rate = 3e-4  # config file\n"));
	buffer_release(&first);
	buffer_release(&second);
}

static void stronger_origins_win(void **state)
{
	static const enum option_origin order[] = {ORIGIN_CHOSEN, ORIGIN_RECIPE, ORIGIN_RESUMED, ORIGIN_FILE, ORIGIN_COMMAND};
	for (int i = 0; i < 5; i++) {
		for (int j = 0; j < 5; j++) {
			again();
			assert_ok(options_set(&options, "seed", "10", order[i]));
			assert_ok(options_set(&options, "seed", "20", order[j]));
			assert_int_equal(settings.seed, order[j] >= order[i] ? 20 : 10);
			assert_int_equal(options_origin(&options, "seed"), order[j] > order[i] ? order[j] : order[i]);
		}
	}
	assert_error(ERR_USAGE, "unknown option 'sed'", options_set(&options, "sed", "1", ORIGIN_CHOSEN));
}

static enum status resume(const char *record)
{
	struct json_document document;
	assert_ok(json_parse(&document, "record", record, strlen(record)));
	enum status status = options_resume(&options, document.root, "run/settings.json", SCOPE_ALL);
	json_release(&document);
	return status;
}

/* A recipe's values give way to anything given or recorded. An option that is missing from the record was not set by the
 * recipe at the time. */
static void recipes(void **state)
{
	static const char text[] = "learning_rate = 3e-4\nseed = 9  # why\nweight_decay = 0.02\n";
	again();
	assert_ok(parse("--seed 5"));
	assert_ok(options_read_recipe(&options, "mine", text));
	assert_true(settings.seed == 5 && settings.rate == 3e-4 && settings.decay == 0.02);
	assert_int_equal(options_origin(&options, "learning_rate"), ORIGIN_RECIPE);
	assert_false(options_given(&options, "learning_rate"));
	assert_ok(resume("{\"weight_decay\": \"0.5\", \"seed\": \"5\"}"));
	assert_true(settings.decay == 0.5 && settings.rate != 3e-4);
	assert_int_equal(options_origin(&options, "learning_rate"), ORIGIN_DEFAULT);
	again();
	assert_ok(options_read_recipe(&options, "mine", "sed = 9\n"));
	assert_error(ERR_USAGE, "line 1: unknown option 'sed'", options_problem_status(&options));
}

static const struct option start_table[] = {
	{.name = "vocab_size",
	 .type = OPTION_INTEGER,
	 .field = offsetof(struct settings, batch),
	 .role = ROLE_START,
	 .value_name = "N",
	 .help = "x"},
	{.name = "initial",
	 .type = OPTION_TEXT,
	 .field = offsetof(struct settings, out),
	 .role = ROLE_ENTRY,
	 .value_name = "PATH",
	 .help = "x"},
	{.name = NULL},
};

/* A command with one option, or none, for a run with this record that has or has not been trained yet. */
static enum status start_again(const char *record, bool trained, const char *name, const char *value)
{
	struct json_document document;
	options_release(&options);
	settings = (struct settings){0};
	assert_ok(options_init(&options, start_table, &settings));
	if (name)
		assert_ok(options_set(&options, name, value, ORIGIN_COMMAND));
	assert_ok(json_parse(&document, "record", record, strlen(record)));
	enum status status = options_resume_start(&options, document.root, "run/settings.json", trained);
	json_release(&document);
	return status;
}

/* Options for the beginning of a run are taken by a run that begins again, and are compared in any case. */
static void beginnings(void **state)
{
	static const char record[] = "{\"vocab_size\":\"500\",\"initial\":\"/a/b\"}", old[] = "{\"seed\":\"1\"}";
	assert_ok(start_again(record, false, NULL, NULL));
	assert_true(settings.batch == 500 && strcmp(settings.out, "/a/b") == 0);
	assert_ok(start_again(record, true, NULL, NULL));
	assert_true(settings.batch == 0 && !settings.out);
	for (int trained = 0; trained < 2; trained++) {
		assert_ok(start_again(record, trained, "vocab_size", "0500"));
		assert_error(ERR_STATE, "--vocab_size is '600', but 'run/settings.json' was made with '500'",
			     start_again(record, trained, "vocab_size", "600"));
		assert_error(ERR_STATE, "was made without it", start_again("{\"initial\":\"/\"}", trained, "vocab_size", "600"));
		assert_ok(start_again(record, trained, "initial", "/c")); /* only the way in, not part of the result */
		assert_ok(start_again(old, trained, "vocab_size", "600"));
	}
	struct buffer written = {0};
	struct json_writer writer = {.out = &written};
	assert_ok(start_again(old, false, "initial", "here"));
	options_write_json(&options, &writer, NULL, SCOPE_ALL);
	assert_non_null(strstr(buffer_string(&written), "\"initial\":\"/")); /* for whatever folder the run begins again in */
	buffer_release(&written);
	again();
}

static void resumed_runs(void **state)
{
	struct buffer record = {0};
	struct json_writer writer = {.out = &record};
	assert_ok(parse("--learning_rate 3e-4 --weight_decay 0.02 --out here --corpus x --batch 32"));
	assert_ok(options_set(&options, "num_train_steps", "1000", ORIGIN_CHOSEN));
	options_write_json(&options, &writer, NULL, SCOPE_ALL);
	/* Neither paths nor choices of the program about how to run are recorded. */
	assert_string_equal(buffer_string(&record), "{\"cased\":\"false\",\"shuffle\":\"true\",\"train_batch_size\":\"32\","
						    "\"num_train_steps\":\"1000\",\"seed\":\"1\",\"learning_rate\":\"3e-4\","
						    "\"weight_decay\":\"0.02\",\"optimizer\":\"adamw\"}");

	again(); /* nothing given: everything comes from the record */
	assert_ok(resume(record.data));
	assert_true(settings.batch == 32 && settings.steps == 1000 && settings.rate == 3e-4 && settings.decay == 0.02);
	assert_int_equal(options_origin(&options, "num_train_steps"), ORIGIN_RESUMED);
	assert_int_equal(options_origin(&options, "out"), ORIGIN_DEFAULT);
	assert_ok(options_set(&options, "num_train_steps", "5", ORIGIN_CHOSEN));
	assert_int_equal(settings.steps, 1000);

	again(); /* the same values written differently; options about how to run may differ */
	assert_ok(parse("--learning_rate 0.0003 --batch 032 --weight_decay 0.5 --no_cased --out there"));
	assert_ok(resume(record.data));
	assert_true(settings.decay == 0.5 && settings.steps == 1000);

	static const struct {
		const char *words, *message;
	} rows[] = {
		{"--learning_rate 1e-3", "--learning_rate is '1e-3', but 'run/settings.json' was made with '3e-4'"},
		{"--cased", "--cased is 'true', but 'run/settings.json' was made with 'false'"},
		{"--optimizer lamb", "--optimizer is 'lamb'"},
		{"--model base", "--model is 'base', but 'run/settings.json' was made without it"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		again();
		assert_ok(parse(rows[i].words));
		assert_error(ERR_STATE, rows[i].message, resume(record.data));
		assert_non_null(strstr(error_last()->hint, "leave --"));
	}
	again(); /* an option that was introduced after the record was written had its default value */
	assert_ok(parse("--optimizer adamw --seed 1"));
	assert_ok(resume("{}"));
	again();
	assert_ok(parse("--seed 2"));
	assert_error(ERR_STATE, "made with '1'", resume("{}"));

	again();
	assert_error(ERR_DATA, "must be an object", resume("[]"));
	assert_error(ERR_DATA, "'run/settings.json': \"seed\" must be a string", resume("{\"seed\": 5}"));
	assert_error(ERR_DATA, "'run/settings.json': --seed must be a whole number", resume("{\"seed\": \"x\"}"));
	buffer_release(&record);
}

static void near_names(void **state)
{
	static const char *const names[] = {"pretrain", "prepare", "evaluate", "train_batch_size"};
	assert_string_equal(nearest_name("pretrian", names, 4), "pretrain");
	assert_string_equal(nearest_name("prepar", names, 4), "prepare");
	assert_string_equal(nearest_name("EVALUATE", names, 4), "evaluate");
	assert_string_equal(nearest_name("batch-size", names, 4), "train_batch_size");
	assert_null(nearest_name("zzzzzz", names, 4));
	assert_null(nearest_name("x", names, 4));
	char longest[300];
	memset(longest, 'a', sizeof longest - 1);
	longest[sizeof longest - 1] = '\0';
	assert_null(nearest_name(longest, names, 4));
	assert_null(nearest_name("", names, 4));
}

static const struct command_text text = {
	.name = "train",
	.synopsis = "--corpus PATH... [options]",
	.summary = "train a model, that's it",
	.description = "First sentence. Second one, which is rather long so that it has to be wrapped at the "
		       "end of the "
		       "line somewhere. Third.\n\n.A paragraph with a \\ and a dot in front.",
	.examples = "bertc train --corpus 'a*'\tall of it\nbertc train --out \"x y\"\n",
};

static void help_has_every_option_and_fits(void **state)
{
	for (int columns = 40; columns < 140; columns += 7) {
		struct buffer out = {0};
		options_help(table, &text, true, columns, &out);
		assert_ok(buffer_status(&out));
		char name[64];
		for (const struct option *row = table; row->name || row->help; row++) {
			snprintf(name, sizeof name, row->name ? "--%s" : "\n%s\n", row->name ? row->name : row->help);
			assert_non_null(strstr(out.data, name));
		}
		assert_true(columns < 100 || strstr(out.data, "(1..65536; default: 256; also --batch, --bs)\n"));
		assert_true(strstr(out.data, "-q, --quiet") && strstr(out.data, "'a*'"));
		int limit = columns < 52 ? 52 : columns > 100 ? 100 : columns;
		for (char *line = out.data, *end; (end = strchr(line, '\n')); line = end + 1) {
			if (end - line > limit && !strstr(line, "Dashes and"))
				fail_msg("%d columns: %.*s", columns, (int)(end - line), line);
		}
		buffer_release(&out);
		if (columns == 40)
			columns = 47; /* then 54, 61, ... */
	}
}

/* The options that most people need come first and only once, in their own order; a group with nothing left has no
 * heading. */
static void common_options_come_first(void **state)
{
	struct command_text own = text;
	struct buffer help = {0}, page = {0};
	own.description = "First words.\n\nMore words.";
	own.common = "out train_batch_size corpus cased shuffle";
	options_help(table, &own, true, 80, &help);
	options_man(table, &own, &page);
	const char *heading = strstr(help.data, "First words.\n\nOptions that most people need\n");
	assert_non_null(heading);
	const char *out = strstr(heading, "--out DIR"), *batch = strstr(heading, "--train_batch_size N");
	const char *more = strstr(heading, "\n\nMore words."), *steps = strstr(heading, "--num_train_steps N");
	assert_true(out && out < batch && batch < more && more < steps);
	assert_null(strstr(batch + 5, "  -b, --train_batch_size"));
	assert_null(strstr(help.data, "\nData\n"));
	assert_non_null(strstr(steps, "\nExit status\n  0   done\n"));
	assert_non_null(strstr(steps, "\n  75  stopped on request"));
	assert_non_null(strstr(page.data, ".Ss Options that most people need\n.Bl -tag -width Ds\n.It Fl \\-out"));
	assert_null(strstr(page.data, ".Ss Data"));
	assert_non_null(strstr(page.data, ".Sh EXIT STATUS"));
	buffer_release(&help);
	buffer_release(&page);
}

static void help_without_a_heading_stands_apart(void **state)
{
	struct buffer out = {0};
	options_help(table + 1, &text, true, 80, &out);
	assert_non_null(strstr(out.data, "front.\n\n  --corpus"));
	buffer_clear(&out);
	options_help(table, &text, true, 80, &out);
	assert_non_null(strstr(out.data, "front.\n\nData\n"));
	buffer_release(&out);
}

static void man_page_passes_lint(void **state)
{
	struct buffer out = {0};
	options_man(table, &text, &out);
	assert_ok(file_write(test_path("train.1"), out.data, out.size));
	char command[PATH_BYTES + 100];
	snprintf(command, sizeof command, "mandoc -T lint '%s' >&2", test_path("train.1"));
	assert_int_equal(system(command), 0);
	assert_non_null(strstr(out.data, ".It Fl b , Fl \\-train_batch_size Ar \"N\"\n"));
	assert_non_null(strstr(out.data, "\n\\&.A paragraph with a \\e and"));
	buffer_release(&out);
}

static void settings_table(void **state)
{
	struct buffer out = {0};
	assert_ok(parse("--learning_rate 3e-4 --corpus a b"));
	options_settings_table(&options, SCOPE_ALL, false, false, &out);
	assert_string_equal(out.data, "  corpus         a b       command line\n"
				      "  learning_rate  3e-4      command line (default: 1e-4)\n");
	buffer_clear(&out);
	options_settings_table(&options, SCOPE_ALL, true, false, &out);
	assert_null(strchr(out.data, '\033'));
	assert_non_null(strstr(out.data, "  learning_rate     3e-4                    command line (default: 1e-4)\n"));
	assert_non_null(strstr(out.data, "  num_train_steps   (from the text's size)  default\n"));
	assert_non_null(strstr(out.data, "  weight_decay      0.01                    default\n"));
	assert_non_null(strstr(out.data, "Training\n"));
	buffer_clear(&out);
	options_settings_table(&options, SCOPE_ALL, true, true, &out);
	assert_non_null(strstr(out.data, "\033[1mTraining\033[0m"));
	buffer_release(&out);
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(defaults),
		T(every_way_to_write_an_option),
		T(lists_and_arguments),
		T(wrong_words_are_explained),
		T(all_problems_are_found),
		T(short_numbers),
		T(common_options),
		T(config_files),
		T(wrong_config_files_are_explained),
		T(printed_config_is_read_back),
		T(stronger_origins_win),
		T(beginnings),
		T(resumed_runs),
		T(recipes),
		T(near_names),
		T(help_has_every_option_and_fits),
		T(common_options_come_first),
		T(help_without_a_heading_stands_apart),
		T(man_page_passes_lint),
		T(settings_table),
	};
	return cmocka_run_group_tests(tests, test_folder_make, test_folder_drop);
}
