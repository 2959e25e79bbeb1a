/* Groups of options: rows beside a struct, spliced into tables; choices as values of an enum; where a value comes from. */
#include "test.h"
#include "base/log.h"
#include "base/option.h"

enum shape { SHAPE_OPEN, SHAPE_ROUND, SHAPE_SQUARE };

struct cake_options {
	int64_t layers;
	double sugar, height;
	unsigned filling; /* 0: jam, 1: cream */
	enum shape shape;
	bool candles;
	const char *name;
	struct option_list guests;
};

#define ROW(member, role, value) OPTION_ROW(struct cake_options, member, role, value)
static const struct option cake_rows[] = {
	{ROW(layers, ROLE_RESULT, "N"), .section = "phase", .range = "1..", .fallback = "2", .help = "layers of dough"},
	{ROW(sugar, ROLE_RESULT, "X"), .help = "share of sugar", .rare = true},
	{ROW(height, ROLE_RESULT, "X"), .fallback = "1", .help = "how high it is"},
	{ROW(filling, ROLE_RESULT, "WHAT"), .range = "jam|cream", .fallback = "cream", .help = "what is between"},
	{ROW(shape, ROLE_RESULT, "HOW"), .range = "|round|square", .help = "of the cake"},
	{ROW(candles, ROLE_RUN, NULL), .fallback = "false", .help = "put candles on it"},
	{ROW(name, ROLE_RUN, "TEXT"), .help = "written on it"},
	{ROW(guests, ROLE_RUN, "NAME..."), .help = "who eats it"},
	{0},
};

struct party {
	bool music;
	struct cake_options cake, small;
};

static const struct option table[] = {
	{.help = "Cakes"},
	{.group = cake_rows, .field = offsetof(struct party, cake)},
	{.reworded = true, .name = "layers", .fallback = "3", .help = "floors"},
	{.reworded = true, .name = "height", .fallback_text = "what the oven allows"},
	{.name = "music", .type = OPTION_FLAG, .field = offsetof(struct party, music), .help = "play"},
	{0},
};

static struct party party;
static struct options options;

static enum status parse(int count, const char *one, const char *other)
{
	char *words[] = {(char *)(uintptr_t)one, (char *)(uintptr_t)other};
	return options_parse(&options, count, words);
}

static int setup(void **state)
{
	party = (struct party){0};
	log_level = LOG_NORMAL;
	return options_init(&options, table, &party) == OK ? 0 : -1;
}

static int teardown(void **state)
{
	options_release(&options);
	return 0;
}

static void a_group_fills_its_struct(void **state)
{
	assert_int_equal(party.cake.layers, 3); /* this table's own default */
	assert_int_equal(party.cake.filling, 1);
	assert_int_equal(party.cake.shape, SHAPE_OPEN);
	assert_ok(parse(2, "--shape", "square"));
	assert_ok(parse(2, "--guests", "Ann"));
	assert_int_equal(party.cake.shape, SHAPE_SQUARE);
	assert_string_equal(party.cake.guests.values[0], "Ann");
	assert_string_equal(options.table[1].help, "floors");
	assert_true(party.cake.height == 0 && options_is_open(&options, &party.cake.height)); /* words in place of a value */
	assert_string_equal(options.section_name, "phase");
}

static void a_word_must_be_one_of_the_list(void **state)
{
	assert_error(ERR_USAGE, "--shape must be one of round|square, not ''", parse(1, "--shape=", NULL));
	assert_error(ERR_USAGE, "--filling must be one of jam|cream, not 'x'", parse(1, "--filling=x", NULL));
}

static void where_a_value_comes_from_is_known(void **state)
{
	struct cake_options *cake = &party.cake;
	assert_true(options_is_open(&options, &cake->shape) && options_is_open(&options, &cake->guests));
	assert_false(options_is_open(&options, &cake->layers));
	assert_ok(parse(2, "--sugar", "0"));
	assert_false(options_is_open(&options, &cake->sugar));
	assert_int_equal(options_origin_of(&options, &cake->sugar), ORIGIN_COMMAND);
	assert_string_equal(options_text_of(&options, &cake->filling), "cream");
}

static void a_choice_replaces_a_default_and_nothing_given(void **state)
{
	struct cake_options *cake = &party.cake;
	assert_ok(options_choose_integer(&options, &cake->layers, 5));
	assert_ok(options_choose_integer(&options, &cake->layers, 4));
	assert_int_equal(cake->layers, 4);
	assert_int_equal(options_origin_of(&options, &cake->layers), ORIGIN_CHOSEN);
	assert_ok(options_choose_number(&options, &cake->sugar, 1.0 / 3, 2));
	assert_true(cake->sugar == 0.33);
	assert_ok(options_choose(&options, &cake->shape, "round"));
	assert_int_equal(cake->shape, SHAPE_ROUND);
	assert_ok(parse(2, "--layers", "7"));
	assert_ok(options_choose_integer(&options, &cake->layers, 1));
	assert_int_equal(cake->layers, 7);
}

static void what_is_given_overrides_what_is_known(void **state)
{
	struct cake_options known = {.layers = 9, .sugar = 0.5, .filling = 1, .shape = SHAPE_SQUARE, .name = "known"};
	assert_ok(parse(2, "--sugar", "0"));
	assert_ok(parse(2, "--filling", "jam"));
	options_copy_given(&options, &party.cake, sizeof party.cake, &known);
	assert_int_equal(known.layers, 3); /* a default counts as well */
	assert_near(known.sugar, 0, 0);
	assert_int_equal(known.filling, 0);
	assert_int_equal(known.shape, SHAPE_SQUARE);
	assert_string_equal(known.name, "known");
}

/* A second struct of the same kind may take some of the rows, in an order of its own and without sections. */
static void part_of_a_group(void **state)
{
	static const struct option part[] = {
		{.group = cake_rows, .only = "candles layers", .field = offsetof(struct party, small), .unsectioned = true},
		{.group = cake_rows,
		 .except = "layers candles guests",
		 .field = offsetof(struct party, cake),
		 .fallback_text = "plain",
		 .shown = true},
		{0},
	};
	struct party own = {0};
	struct options few;
	assert_ok(options_init(&few, part, &own));
	assert_int_equal(few.count, 7);
	assert_string_equal(few.table[0].name, "candles");
	assert_string_equal(few.table[2].name, "sugar");
	assert_string_equal(few.table[2].fallback_text, "plain");
	assert_false(few.table[2].rare);
	assert_string_equal(few.table[6].name, "name");
	assert_int_equal(own.small.layers, 2);
	assert_null(few.section_name);
	options_release(&few);
}

static void short_help_leaves_out_what_is_rare(void **state)
{
	static const struct command_text text = {.name = "bake", .synopsis = "", .summary = "bake"};
	struct buffer out = {0};
	options_help(options.table, &text, false, 80, &out);
	assert_null(strstr(out.data, "--sugar"));
	assert_non_null(strstr(out.data, "1 more option that few people need: bertc help bake all\n"));
	buffer_clear(&out);
	options_help(options.table, &text, true, 80, &out);
	assert_non_null(strstr(out.data, "--sugar"));
	assert_non_null(strstr(out.data, "of the cake (one of round, square)"));
	assert_null(strstr(out.data, "more option"));
	buffer_release(&out);
	assert_ok(parse(2, "--help", "all"));
	assert_true(options.help && options.help_all);
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_group_fills_its_struct),
		T(a_word_must_be_one_of_the_list),
		T(where_a_value_comes_from_is_known),
		T(what_is_given_overrides_what_is_known),
		T(a_choice_replaces_a_default_and_nothing_given),
		T(part_of_a_group),
		T(short_help_leaves_out_what_is_rare),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
