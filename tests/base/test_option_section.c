/* Sections of a run with settings of their own, and option names from other programs. */
#include "test.h"
#include <unistd.h>
#include "base/json.h"
#include "base/option.h"

struct settings {
	bool cased;
	int64_t length, steps;
	double rate;
	const char *model;
	struct option_list files;
};

#define FIELD(name) offsetof(struct settings, name)
static const struct option table[] = {
	{.help = "All"},
	{.name = "cased",
	 .type = OPTION_FLAG,
	 .field = FIELD(cased),
	 .fallback = "false",
	 .role = ROLE_RESULT,
	 .help = "keep capitals"},
	{.name = "model", .type = OPTION_TEXT, .field = FIELD(model), .role = ROLE_RESULT, .help = "size", .value_name = "SIZE"},
	{.help = "Each"},
	{.name = "max_seq_length",
	 .section = "phase",
	 .type = OPTION_INTEGER,
	 .field = FIELD(length),
	 .fallback = "128",
	 .range = "8..512",
	 .role = ROLE_RESULT,
	 .help = "tokens",
	 .value_name = "N"},
	{.name = "num_train_steps",
	 .section = "phase",
	 .type = OPTION_INTEGER,
	 .field = FIELD(steps),
	 .range = "1..",
	 .role = ROLE_RESULT,
	 .help = "updates",
	 .value_name = "N",
	 .alias = "max_steps"},
	{.name = "learning_rate",
	 .section = "phase",
	 .type = OPTION_NUMBER,
	 .field = FIELD(rate),
	 .fallback = "1e-4",
	 .role = ROLE_RESULT,
	 .help = "rate",
	 .value_name = "X"},
	{.name = "files",
	 .section = "phase",
	 .type = OPTION_LIST,
	 .field = FIELD(files),
	 .role = ROLE_SOURCE,
	 .help = "text",
	 .value_name = "PATH..."},
	{0},
};

static const struct option_foreign foreign[] = {
	{.name = "do_lower_case", .kind = FOREIGN_FLAG, .answer = FOREIGN_MEANS, .option = "cased"},
	{.name = "big", .kind = FOREIGN_FLAG, .answer = FOREIGN_MEANS, .option = "model", .value = "large"},
	{.name = "use_tpu", .kind = FOREIGN_FLAG, .answer = FOREIGN_REFUSED, .why = "there is none here"},
	{.name = "iterations_per_loop loops", .kind = FOREIGN_VALUE, .answer = FOREIGN_IGNORED, .why = "no loop"},
	{.name = "resume", .kind = FOREIGN_EITHER, .answer = FOREIGN_IGNORED, .option = "model", .why = "by itself"},
	{0},
};

static struct settings settings, own;
static struct options options, phase;

static int setup(void **state)
{
	settings = (struct settings){0};
	if (options_init(&options, table, &settings) != OK)
		return -1;
	options.foreign = foreign;
	return 0;
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

static enum status parse(const char *line)
{
	static char copy[4 * PATH_BYTES], *words[64];
	int count = 0;
	snprintf(copy, sizeof copy, "%s", line);
	for (char *save, *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
		words[count++] = word;
	return options_parse(&options, count, words);
}

static enum status parse_with_config(const char *text, const char *line)
{
	char words[2 * PATH_BYTES];
	assert_ok(file_write(test_path("config"), text, strlen(text)));
	snprintf(words, sizeof words, "--config %s %s", test_path("config"), line);
	return parse(words);
}

/* Derives the settings of a section into `own`. */
static void derive(int64_t section)
{
	own = (struct settings){0};
	assert_ok(options_derive(&phase, &options, section, &own));
}

static void drop(void)
{
	options_release(&phase);
}

static const char *const two[] = {
	"model = base\nlearning_rate = 3e-4\n[phase]\nmax_seq_length = 128\nmax_steps = 90 # most\n"
	"[phase 2]\nmax_seq_length = 512\nnum_train_steps = 10\nlearning_rate = 1e-5\n",
	"{\"model\": \"base\", \"phases\": [{\"max_seq_length\": 128, \"max_steps\": 90}, "
	"{\"max_seq_length\": 512, \"num_train_steps\": 10, \"learning_rate\": 1e-5}], \"learning_rate\": 3e-4}",
};

static void both_forms_of_a_file(void **state)
{
	for (int form = 0; form < 2; form++) {
		again();
		assert_ok(parse_with_config(two[form], ""));
		assert_int_equal(options.section_count, 2);
		assert_string_equal(settings.model, "base");
		assert_int_equal(settings.length, 128);
		derive(0);
		assert_int_equal(own.length, 128);
		assert_int_equal(own.steps, 90);
		assert_near(own.rate, 3e-4, 0);
		assert_string_equal(own.model, "base");
		assert_int_equal(options_origin(&phase, "max_seq_length"), ORIGIN_FILE);
		drop();
		derive(1);
		assert_int_equal(own.length, 512);
		assert_int_equal(own.steps, 10);
		assert_near(own.rate, 1e-5, 0);
		drop();
		derive(2); /* beyond the last section: the general values */
		assert_int_equal(own.length, 128);
		assert_int_equal(own.steps, 0);
		drop();
	}
}

static void the_stronger_wins(void **state)
{
	/* A general value on the command line overrides the file's own general value; the command line's value for a
	 * section overrides both. */
	assert_ok(parse_with_config(two[0], "--num_train_steps 5 --phase2.max_steps=3 --phase1.learning_rate 0.5 --cased"));
	derive(0);
	assert_int_equal(own.steps, 5);
	assert_near(own.rate, 0.5, 0);
	assert_true(own.cased);
	drop();
	derive(1);
	assert_int_equal(own.steps, 3);
	assert_near(own.rate, 1e-5, 0);
	drop();
	/* A later file's sections replace those of an earlier file, but not those of the command line. */
	again();
	char line[2 * PATH_BYTES + 100];
	assert_ok(file_write(test_path("a"), two[0], strlen(two[0])));
	assert_ok(file_write(test_path("b"), "[phase]\nmax_steps = 7\n", 22));
	snprintf(line, sizeof line, "--phase1.max_seq_length 64 --config %s --config %s", test_path("a"), test_path("b"));
	assert_ok(parse(line));
	assert_int_equal(options.section_count, 1);
	derive(0);
	assert_int_equal(own.steps, 7);
	assert_int_equal(own.length, 64);
	drop();
	/* From the command line alone; lists replace the general list. */
	again();
	assert_ok(parse("--files a b --phase1.files c d --phase1.files e --phase2.learning_rate 1"));
	assert_int_equal(options.section_count, 2);
	derive(0);
	assert_int_equal(own.files.count, 3);
	assert_string_equal(own.files.values[0], "c");
	assert_string_equal(own.files.values[2], "e");
	drop();
	derive(1);
	assert_int_equal(own.files.count, 2);
	assert_string_equal(own.files.values[1], "b");
	drop();
}

static void what_is_wrong_is_said(void **state)
{
	static const struct {
		const char *text, *part;
	} wrong[] = {
		{"[phase]\nmodel = base\n", "line 2: 'model' applies to the whole run"},
		{"[phase]\nmax_seq_length = 4\n", "line 2: --max_seq_length must lie in 8..512, not '4'"},
		{"[phase]\nmax_seq_length = 64\n[phase]\nmax_seq_length = 64\nmax_seq_length = 32\n",
		 "line 5: 'max_seq_length' is set a second time"},
		{"[phase]\nmax_seq_len = 64\n", "line 2: unknown option 'max_seq_len'"},
		{"[phase 2]\nmax_steps = 4\n", "line 1: this is phase 1 of the file, not 2"},
		{"[phases]\n", "line 1: expected '[phase]'"},
		{"[phase] x\n", "line 1: expected '[phase]'"},
		{"{\"phases\": {}}", "\"phases\" must be a list of objects"},
		{"{\"phases\": []}", "\"phases\" must be a list of objects"},
		{"{\"phases\": [{}]}", "that set something"},
		{"{\"phases\": [{\"max_steps\": [1]}]}", "must be a text, a number"},
		{"{\"phases\": [{\"phases\": [{}]}]}", "must be a text, a number"},
	};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		again();
		assert_error(ERR_USAGE, wrong[i].part, parse_with_config(wrong[i].text, ""));
	}
	again();
	assert_error(ERR_USAGE, "applies to the whole run", parse("--phase1.model base"));
	assert_error(ERR_USAGE, "unknown option '--phase1.max_seq'", parse("--phase1.max_seq 1"));
	assert_error(ERR_USAGE, "between 1", parse("--phase0.max_steps 1"));
	assert_error(ERR_USAGE, "between 1", parse("--phase99999999999999999999.max_steps 1"));
	assert_error(ERR_USAGE, "unknown option '--phase.max_steps'", parse("--phase.max_steps 1"));
	assert_error(ERR_USAGE, "needs a value", parse("--phase1.max_steps"));
}

/* What is printed reads back the same. */
static void printed_config_reads_back(void **state)
{
	struct buffer first = {0}, second = {0};
	assert_ok(parse_with_config(two[1], "--phase2.max_steps 11 --phase1.files x --phase1.files y"));
	options_print_config(&options, &first);
	assert_non_null(strstr(buffer_string(&first), "[phase 2]"));
	assert_null(strstr(buffer_string(&first), "num_train_steps = 10 "));
	again();
	assert_ok(parse_with_config(buffer_string(&first), ""));
	derive(0);
	assert_int_equal(own.files.count, 2);
	assert_int_equal(own.steps, 90);
	drop();
	derive(1);
	assert_int_equal(own.steps, 11);
	assert_int_equal(own.length, 512);
	drop();
	buffer_release(&first);
	buffer_release(&second);
}

static void records_by_scope(void **state)
{
	struct buffer text = {0};
	struct json_writer writer = {.out = &text};
	struct json_document document;
	assert_ok(parse("--model base --phase1.max_steps 4 --phase1.files some/file /absolute -"));
	derive(0);
	json_open(&writer, NULL, '{');
	options_write_members(&options, &writer, SCOPE_GENERAL);
	json_open(&writer, "phases", '[');
	options_write_json(&phase, &writer, NULL, SCOPE_SECTION);
	json_close(&writer);
	json_close(&writer);
	drop();
	assert_ok(json_parse(&document, "record", buffer_string(&text), text.size));
	const struct json *section = json_member(document.root, "phases")->first_child;
	assert_non_null(json_member(document.root, "model"));
	assert_null(json_member(document.root, "num_train_steps"));
	assert_null(json_member(section, "model"));
	assert_string_equal(json_member(section, "num_train_steps")->text, "4");
	/* Paths are relative to the root. */
	char folder[PATH_BYTES], wanted[PATH_BYTES + 32];
	assert_non_null(getcwd(folder, sizeof folder));
	snprintf(wanted, sizeof wanted, "%s/some/file", folder);
	const struct json *files = json_member(section, "files");
	assert_string_equal(files->first_child->text, wanted);
	assert_string_equal(files->first_child->next->text, "/absolute");
	assert_string_equal(files->first_child->next->next->text, "-");

	again();
	assert_ok(options_resume(&options, document.root, "record", SCOPE_GENERAL));
	assert_string_equal(settings.model, "base");
	assert_int_equal(settings.steps, 0);
	assert_ok(options_resume(&options, section, "record", SCOPE_SECTION));
	assert_int_equal(settings.steps, 4);
	assert_int_equal(settings.files.count, 3);
	again();
	assert_ok(parse("--max_steps 5 --files other"));
	assert_ok(options_resume(&options, document.root, "record", SCOPE_GENERAL));
	assert_error(ERR_STATE, "--num_train_steps is '5', but 'record' was made with '4'",
		     options_resume(&options, section, "record", SCOPE_SECTION));
	json_release(&document);
	buffer_release(&text);
}

static void tables_and_help(void **state)
{
	struct buffer out = {0};
	static struct settings both[2];
	static struct options sections[2];
	memset(both, 0, sizeof both);
	assert_ok(parse_with_config(two[0], ""));
	for (int i = 0; i < 2; i++)
		assert_ok(options_derive(&sections[i], &options, i, &both[i]));
	options_section_table((const struct options *const[]){&sections[0], &sections[1]}, 2, false, false, &out);
	assert_non_null(strstr(buffer_string(&out), "phase 1  phase 2"));
	assert_non_null(strstr(buffer_string(&out), "max_seq_length   128      512"));
	buffer_clear(&out);
	options_settings_table(&options, SCOPE_GENERAL, true, false, &out);
	assert_non_null(strstr(buffer_string(&out), "model"));
	assert_null(strstr(buffer_string(&out), "max_seq_length"));
	assert_null(strstr(buffer_string(&out), "Each")); /* a group with nothing to show */
	buffer_clear(&out);
	options_help(table, &(struct command_text){.name = "x", .synopsis = "", .summary = ""}, true, 80, &out);
	assert_non_null(strstr(buffer_string(&out), "per phase; also"));
	for (int i = 0; i < 2; i++)
		options_release(&sections[i]);
	buffer_release(&out);
}

static void names_from_other_programs(void **state)
{
	assert_ok(parse("--do_lower_case --iterations_per_loop 100 --loops=5"));
	assert_false(settings.cased);
	assert_ok(parse("--do_lower_case=False"));
	assert_true(settings.cased);
	assert_ok(parse("--do-lower-case True"));
	assert_false(settings.cased);
	assert_ok(parse("--big"));
	assert_string_equal(settings.model, "large");
	assert_ok(parse("--resume --model x"));
	assert_string_equal(settings.model, "x");
	assert_ok(parse("--resume=here"));
	assert_string_equal(settings.model, "here");
	assert_ok(parse("--resume there"));
	assert_string_equal(settings.model, "there");
	assert_error(ERR_USAGE, "bertc has no option --use_tpu", parse("--use_tpu"));
	assert_string_equal(error_last()->hint, "there is none here");
	assert_ok(parse("--use_tpu=false"));
	assert_error(ERR_USAGE, "true or false", parse("--use_tpu=maybe"));
	assert_error(ERR_USAGE, "needs a value", parse("--loops"));
	assert_error(ERR_USAGE, "unknown option '--phase1.loops'", parse("--phase1.loops 1"));
	again();
	assert_ok(parse_with_config("do_lower_case = false\nloops = 3\n", ""));
	assert_true(settings.cased);
	assert_int_equal(options_origin(&options, "cased"), ORIGIN_FILE);
	assert_ok(parse("--do_lower_case"));
	assert_false(settings.cased);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(both_forms_of_a_file, setup, teardown),
		cmocka_unit_test_setup_teardown(the_stronger_wins, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_wrong_is_said, setup, teardown),
		cmocka_unit_test_setup_teardown(printed_config_reads_back, setup, teardown),
		cmocka_unit_test_setup_teardown(records_by_scope, setup, teardown),
		cmocka_unit_test_setup_teardown(tables_and_help, setup, teardown),
		cmocka_unit_test_setup_teardown(names_from_other_programs, setup, teardown),
	};
	return cmocka_run_group_tests_name("option sections", tests, test_folder_make, test_folder_drop);
}
