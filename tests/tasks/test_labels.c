/* Labels: their order, what is refused, cells with several labels, numbers. */
#include "tasks/labels.h"
#include <math.h>
#include <time.h>
#include "base/log.h"
#include "test.h"

#define LIST(...)                                                                                                                \
	{                                                                                                                        \
		(const char *const[]){__VA_ARGS__}, sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)                       \
	}

static void add_all(struct label_set *set, const char *const *names)
{
	int64_t line = 1;
	*set = (struct label_set){0};
	for (; *names; names++)
		assert_ok(label_set_add(set, *names, "train.tsv", ++line));
}
#define ADD(set, ...) add_all(set, (const char *const[]){__VA_ARGS__, NULL})

/* Adds the labels, orders them, and compares the names in order. */
static void expect_order(const struct label_rules *rules, enum label_order order, const char *expected, const char *const *names)
{
	struct label_set set;
	struct buffer got = {0};
	add_all(&set, names);
	assert_ok(label_set_order(&set, rules));
	for (int64_t i = 0; i < set.count; i++) {
		buffer_format(&got, "%s%s", i ? " " : "", set.labels[i].name);
		assert_int_equal(label_set_find(&set, set.labels[i].name), i);
	}
	assert_string_equal(buffer_string(&got), expected);
	assert_int_equal(set.order, order);
	buffer_release(&got);
	label_set_release(&set);
}
#define EXPECT(order, expected, ...)                                                                                             \
	expect_order(&(struct label_rules){0}, order, expected, (const char *const[]){__VA_ARGS__, NULL})

static void order_follows_the_first_rule_that_fits(void **state)
{
	const char *const seen[] = {"neutral", "entailment", "neutral", "contradiction", NULL};
	struct label_rules rules = {
		.given = LIST("b", "neutral", "entailment", "contradiction"),
		.folder = LIST("entailment", "neutral", "contradiction"),
		.task = LIST("contradiction", "entailment", "neutral"),
		.task_name = "mnli",
	};
	expect_order(&rules, LABELS_GIVEN, "b neutral entailment contradiction", seen);
	rules.given.count = 0;
	expect_order(&rules, LABELS_OF_FOLDER, "entailment neutral contradiction", seen);
	rules.folder.names = (const char *const[]){"entailment", "neutral", "Contradiction"};
	expect_order(&rules, LABELS_OF_TASK, "contradiction entailment neutral", seen);
	rules.folder = (struct label_list)LIST("entailment", "neutral", "contradiction", "other");
	expect_order(&rules, LABELS_OF_TASK, "contradiction entailment neutral", seen);
	rules.task.count = 0;
	expect_order(&rules, LABELS_SORTED, "contradiction entailment neutral", seen);
	EXPECT(LABELS_ASCENDING, "-1 2 10", "10", "-1", "2", "10");
	EXPECT(LABELS_SORTED, "-1 10 2 x", "10", "-1", "2", "x");
	EXPECT(LABELS_SORTED, "B a \xC3\xA9 \xE4\xB8\xAD \xF0\x9F\x98\x80", "\xF0\x9F\x98\x80", "\xE4\xB8\xAD", "a", "\xC3\xA9",
	       "B");
}

static void uses_are_counted(void **state)
{
	struct label_set set;
	struct buffer text = {0};
	ADD(&set, "b", "a", "b", "b");
	assert_ok(label_set_order(&set, &(struct label_rules){.given = LIST("b", "c", "a"), .no_warnings = true}));
	assert_int_equal(set.labels[0].count, 3);
	assert_int_equal(set.labels[1].count, 0);
	assert_int_equal(set.labels[2].line, 3);
	label_set_describe(&set, &text);
	assert_string_equal(buffer_string(&text), "3 labels: b 3, c 0, a 1 (as given by --labels)");
	int64_t id;
	assert_ok(label_set_id(&set, "a", "dev.tsv", 7, &id));
	assert_int_equal(id, 2);
	assert_error(ERR_DATA, "'dev.tsv', line 7: the label 'd' does not occur in training, whose labels are b, c, a",
		     label_set_id(&set, "d", "dev.tsv", 7, &id));
	buffer_release(&text);
	label_set_release(&set);
}

static void bad_sets_are_refused(void **state)
{
	static const struct {
		const char *names[5], *message;
	} cases[] = {
		{{"a", "a"}, "every training example has the label 'a' (from 'train.tsv', line 2 on)"},
		{{"1", "2", "1.0"}, "the labels '1' ('train.tsv', line 2) and '1.0' ('train.tsv', line 4) are the same number"},
		{{"a ", "b", "a"}, "differ in white space alone"},
		{{"+1", "0", "1"}, "are the same number"},
	};
	struct label_set set = {0};
	assert_error(ERR_DATA, "there are no labels", label_set_order(&set, &(struct label_rules){0}));
	assert_error(ERR_DATA, "'train.tsv', line 3: the label is empty", label_set_add(&set, "", "train.tsv", 3));
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		add_all(&set, cases[i].names);
		assert_error(ERR_DATA, cases[i].message, label_set_order(&set, &(struct label_rules){0}));
		label_set_release(&set);
	}
	ADD(&set, "a", "b");
	assert_error(ERR_DATA, "'train.tsv', line 3: the label 'b' is not one of those of --labels (a, c)",
		     label_set_order(&set, &(struct label_rules){.given = LIST("a", "c")}));
	assert_error(ERR_DATA, "the label 'a' is not one of the labels of rte (x, y)",
		     label_set_order(&set, &(struct label_rules){.task = LIST("x", "y"), .task_name = "rte"}));
	label_set_release(&set);
	ADD(&set, "a", "A");
	assert_ok(label_set_order(&set, &(struct label_rules){0})); /* only a warning */
	label_set_release(&set);
	ADD(&set, "O");
	assert_ok(label_set_order(&set, &(struct label_rules){.allow_one = true}));
	label_set_release(&set);
}

static void numbers_are_strict(void **state)
{
	static const char *const wrong[] = {"",     " ",     "x",    "1,5", "nan",  "inf", "-inf", "1e999",
					    "1e39", "-1e16", "0x10", "1 2", "1.5x", "--1", "."};
	double value;
	assert_ok(label_number("3.80", "f", 1, &value));
	assert_near(value, 3.8, 1e-15);
	assert_ok(label_number(" -1e-3 ", "f", 1, &value));
	assert_near(value, -0.001, 1e-18);
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_error(ERR_DATA, "'f', line 9: the label", label_number(wrong[i], "f", 9, &value));
}

/* Expects the labels, separated by '/'. */
static void expect_cell(const char *cell, enum label_cells form, const char *expected)
{
	struct string_store store = {0};
	struct buffer got = {0};
	const char **names;
	int64_t count;
	const struct label_list all = {(const char *const[]){"x", "y", "z"}, 3};
	assert_ok(label_cell_split(cell, form, &all, "f", 3, &store, &names, &count));
	for (int64_t i = 0; i < count; i++)
		buffer_format(&got, "%s%s", i ? "/" : "", names[i]);
	assert_string_equal(buffer_string(&got), expected);
	buffer_release(&got);
	free(names);
	string_store_release(&store);
}

static void refuse_cell(const char *cell, enum label_cells form, const char *message)
{
	struct string_store store = {0};
	const struct label_list none = {.count = 0};
	const char **names;
	int64_t count;
	assert_error(ERR_DATA, message, label_cell_split(cell, form, &none, "f", 3, &store, &names, &count));
	assert_null(names);
	string_store_release(&store);
}

static enum label_cells detected(const char *const *cells, int64_t count)
{
	enum label_cells form;
	assert_ok(label_cells_detect(cells, count, &form));
	return form;
}

/* As Python, pandas, NumPy, R, and people write them. */
static void lists_are_recognized(void **state)
{
	static const struct {
		const char *cell, *labels;
	} lists[] = {
		{"[\"a, b\", 3, \"c\"]", "a, b/3/c"},
		{"[true, 1.5]", "true/1.5"},
		{"['x', 'y']", "x/y"},
		{" [ 'x' , \"it's\",'a\\'b' ] ", "x/it's/a'b"},
		{"[u'x', b'y']", "x/y"},
		{"('x',)", "x"},
		{"{'x', 'y, z'}", "x/y, z"},
		{"['x' 'y z'\n 'a']", "x/y z/a"},
		{"array(['x', 'y'], dtype=object)", "x/y"},
		{"np.array(['x'])", "x"},
		{"[np.str_('x'), np.int64(3)]", "x/3"},
		{"frozenset({'x'})", "x"},
		{"c(\"x\", \"y\")", "x/y"},
		{"[1 20]", "1/20"},
		{"(1, 2)", "1/2"},
		{"[]", ""},
		{"()", ""},
		{"set()", ""},
		{"['x|y', 'a;b']", "x|y/a;b"},
	};
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
		expect_cell(lists[i].cell, CELLS_LIST, lists[i].labels);
		expect_cell(lists[i].cell, CELLS_COMMA, lists[i].labels);
		assert_int_equal(detected(&lists[i].cell, 1), CELLS_LIST);
	}
	expect_cell("['nan', \"None\"]", CELLS_LIST, "nan/None");
	/* Brackets may belong to a name, unless all cells have them. */
	expect_cell("[very bad, good]", CELLS_LIST, "very bad/good");
	expect_cell("[x, y]", CELLS_COMMA, "[x/y]");
	expect_cell("(1)", CELLS_COMMA, "(1)");
	expect_cell("(a), (b)", CELLS_COMMA, "(a)/(b)");
	expect_cell("f(x), {y}", CELLS_COMMA, "f(x)/{y}");
	assert_int_equal(detected((const char *const[]){"[a, b]", "", "[]"}, 3), CELLS_LIST);
	assert_int_equal(detected((const char *const[]){"[a, b]", "c"}, 2), CELLS_COMMA);
	assert_int_equal(detected((const char *const[]){"{x,y}", "{}", "{y}"}, 3), CELLS_LIST); /* PostgreSQL's */
	expect_cell("{x,y}", CELLS_LIST, "x/y");
	refuse_cell("['x', 'y'", CELLS_COMMA, "begins like a list of labels but is not one");
	refuse_cell("['x' ... 'y']", CELLS_LIST, "begins like a list of labels but is not one");
	refuse_cell("[1, 0, 1", CELLS_COMMA, "begins like a list of labels but is not one");
	refuse_cell("[1 0 ... 1]", CELLS_COMMA, "begins like a list of labels but is not one");
	expect_cell("[1] a, [2 b", CELLS_COMMA, "[1] a/[2 b");
	refuse_cell("['x', ['y']]", CELLS_COMMA, "begins like a list of labels but is not one");
	refuse_cell("a", CELLS_LIST, "is not a list of labels, unlike in other rows");
	refuse_cell("[[1]]", CELLS_LIST, "begins like a list of labels but is not one");
	refuse_cell("[['x', 'y']]", CELLS_COMMA, "begins like a list of labels but is not one");
}

static void lists_of_0_and_1_name_no_labels(void **state)
{
	assert_int_equal(detected((const char *const[]){"[1, 0, 1]", "[0, 0, 0]", "[0, 1, 0]"}, 3), CELLS_FLAGS);
	assert_int_equal(detected((const char *const[]){"[1. 0.]", "[0. 1.]"}, 2), CELLS_FLAGS);
	assert_int_equal(detected((const char *const[]){"[True, False]", "[False, False]"}, 2), CELLS_FLAGS);
	/* Names that are numbers. */
	assert_int_equal(detected((const char *const[]){"[1]", "[0]"}, 2), CELLS_LIST);
	assert_int_equal(detected((const char *const[]){"[1]", "[0, 1]"}, 2), CELLS_LIST);
	assert_int_equal(detected((const char *const[]){"[1, 2]", "[0, 1]"}, 2), CELLS_LIST);
	expect_cell("[1, 0, 1]", CELLS_FLAGS, "x/z");
	expect_cell("[0.0, 0, 1e0]", CELLS_FLAGS, "z");
	refuse_cell("[0, 1, 1]", CELLS_FLAGS, "a list of 3 times 0 or 1, but the names of 0 labels");
	refuse_cell("0, 1, 1", CELLS_FLAGS, "is not a list of labels");
}

static void cells_have_several_labels(void **state)
{
	struct string_store store = {0};
	const char **names;
	int64_t count;
	expect_cell("a, b c ,d", CELLS_COMMA, "a/b c/d");
	expect_cell("a,b|c", CELLS_BAR, "a,b/c");
	expect_cell("a;b", CELLS_SEMICOLON, "a/b");
	expect_cell("", CELLS_COMMA, "");
	expect_cell("  ", CELLS_LIST, "");
	refuse_cell("a,,b", CELLS_COMMA, "'f', line 3: one of the labels is empty");
	refuse_cell("a, b ,a", CELLS_COMMA, "'f', line 3: the label 'a' is given twice");
	refuse_cell("[\"a\", \"a\"]", CELLS_LIST, "the label 'a' is given twice");
	assert_int_equal(detected((const char *const[]){"a", "b,c", ""}, 3), CELLS_COMMA);
	assert_int_equal(detected((const char *const[]){"a", "b|c,d", ""}, 3), CELLS_BAR);
	assert_int_equal(detected((const char *const[]){"", "b;c"}, 2), CELLS_SEMICOLON);
	assert_int_equal(detected((const char *const[]){"[\"a\"]", "[]", ""}, 3), CELLS_LIST);
	assert_int_equal(detected((const char *const[]){"[\"a\"]", "[x"}, 2), CELLS_COMMA);
	assert_int_equal(detected(NULL, 0), CELLS_COMMA);

	assert_ok(labels_parse_option("b, a", &store, &names, &count));
	assert_int_equal(count, 2);
	assert_string_equal(names[1], "a");
	free(names);
	assert_error(ERR_USAGE, "one of the labels is empty, or given twice", labels_parse_option("b,b", &store, &names, &count));
	assert_error(ERR_USAGE, "one of the labels is empty", labels_parse_option("b,", &store, &names, &count));
	string_store_release(&store);
}

static void whole_numbers_may_be_amounts(void **state)
{
	struct label_set set = {0};
	for (int i = 0; i < 30; i++) {
		char name[16];
		assert_false(i < 20 && label_set_has_many_numbers(&set));
		assert_true(i < 20 || label_set_has_many_numbers(&set));
		snprintf(name, sizeof name, "%d", i * 3);
		assert_ok(label_set_add(&set, name, "train.tsv", i));
	}
	assert_ok(label_set_add(&set, "none", "train.tsv", 31));
	assert_false(label_set_has_many_numbers(&set));
	label_set_release(&set);
}

/* A configuration may claim a million classes. */
static void large_sets_stay_fast(void **state)
{
	enum { COUNT = 50000 };
	static char texts[COUNT][16];
	static const char *names[COUNT];
	struct label_set set = {0};
	struct label_rules rules = {.given = {names, COUNT}, .no_warnings = true};
	for (int i = 0; i < COUNT; i++) {
		snprintf(texts[i], sizeof texts[i], "LABEL_%d", i);
		names[i] = texts[i];
		assert_ok(label_set_add(&set, names[i], "config.json", 0));
	}
	clock_t began = clock(); /* of the processor, which others may be using too */
	assert_ok(label_set_order(&set, &rules));
	assert_true(clock() - began < SLOWNESS * CLOCKS_PER_SEC);
	label_set_release(&set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_numbers_may_be_amounts),
		cmocka_unit_test(order_follows_the_first_rule_that_fits),
		cmocka_unit_test(uses_are_counted),
		cmocka_unit_test(bad_sets_are_refused),
		cmocka_unit_test(numbers_are_strict),
		cmocka_unit_test(lists_are_recognized),
		cmocka_unit_test(lists_of_0_and_1_name_no_labels),
		cmocka_unit_test(cells_have_several_labels),
		cmocka_unit_test(large_sets_stay_fast),
	};
	log_level = LOG_QUIET;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
