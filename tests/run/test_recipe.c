/* The optimizer and schedule of a run: what is chosen for options that are left open, and how the choices are recorded. */
#include "test.h"
#include "run/recipe.h"

struct recipe {
	struct optimizer_options optimizer;
	struct rate_options rate;
};

static const struct option table[] = {
	{.group = optimizer_rows, .field = offsetof(struct recipe, optimizer)},
	{.group = rate_rows, .field = offsetof(struct recipe, rate)},
	{0},
};

static struct recipe recipe;
static struct options options;

/* Begins again with options that are given as "name=value", separated by spaces. */
static void give(const char *line)
{
	char copy[200], *save, *value;
	options_release(&options);
	recipe = (struct recipe){0};
	assert_ok(options_init(&options, table, &recipe));
	snprintf(copy, sizeof copy, "%s", line);
	for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		value = strchr(word, '=');
		*value++ = '\0';
		assert_ok(options_set(&options, word, value, ORIGIN_COMMAND));
	}
}

static int release(void **state)
{
	options_release(&options);
	return 0;
}

/* What was chosen for an option; "": nothing. */
static const char *chosen(const char *name)
{
	int index = options_find(&options, name);
	return options.origin[index] == ORIGIN_CHOSEN ? options.text[index] : "";
}

static enum status choose_rate_of_layers(int64_t steps, int64_t size, int64_t per_gpu, int64_t new_layers)
{
	const struct rate_facts facts = {steps, size, per_gpu, 3.14159e-4, new_layers};
	return rate_choose(&options, &recipe.rate, &recipe.optimizer, &facts);
}

static enum status choose_rate(int64_t steps)
{
	return choose_rate_of_layers(steps, 32, 0, 0);
}

static void optimizers_differ_in_what_is_chosen(void **state)
{
	static const struct {
		const char *optimizer, *bias_correction, *trust_ratio, *normalization, *averaging;
	} cases[] = {
		{"optimizer=adamw", "true", "", "", ""},
		{"optimizer=google_adamw", "false", "", "", ""},
		{"optimizer=lamb", "true", "decayed", "clip", "true"},
		{"optimizer=nvlamb", "true", "all", "clip", "true"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		give(cases[i].optimizer);
		assert_ok(recipe_choose(&options, &recipe.optimizer));
		assert_string_equal(chosen("bias_correction"), cases[i].bias_correction);
		assert_string_equal(chosen("trust_ratio"), cases[i].trust_ratio);
		assert_string_equal(chosen("gradient_normalization"), cases[i].normalization);
		assert_string_equal(chosen("gradient_averaging"), cases[i].averaging);
		assert_int_equal(recipe.optimizer.bias_correction, strcmp(cases[i].bias_correction, "true") == 0);
		assert_int_equal(optimizer_is_lamb(&recipe.optimizer), cases[i].trust_ratio[0] != '\0');
		assert_int_equal(recipe.optimizer.trust_ratio == TRUST_RATIO_ALL, strcmp(cases[i].trust_ratio, "all") == 0);
		assert_true(recipe.optimizer.max_trust_ratio == 0); /* left open: no limit */
	}
}

static void what_was_given_stays(void **state)
{
	give("optimizer=lamb bias_correction=false trust_ratio=all gradient_normalization=always gradient_averaging=false "
	     "max_trust_ratio=10");
	assert_ok(recipe_choose(&options, &recipe.optimizer));
	for (int i = 0; i < options.count; i++)
		assert_int_not_equal(options.origin[i], ORIGIN_CHOSEN);
	assert_false(recipe.optimizer.bias_correction || recipe.optimizer.gradient_averaging);
	assert_int_equal(recipe.optimizer.trust_ratio, TRUST_RATIO_ALL);
	assert_int_equal(recipe.optimizer.gradient_normalization, NORMALIZE_ALWAYS);
	assert_true(recipe.optimizer.max_trust_ratio == 10);
}

static void adamw_refuses_what_is_lambs(void **state)
{
	static const char *const lambs[] = {"trust_ratio=all", "exclude_from_layer_adaptation=LayerNorm", "max_trust_ratio=0",
					    "gradient_normalization=clip", "gradient_averaging=true"};
	for (size_t i = 0; i < sizeof lambs / sizeof *lambs; i++) {
		char named[64];
		snprintf(named, sizeof named, "--%.*s has no effect with --optimizer adamw", (int)strcspn(lambs[i], "="),
			 lambs[i]);
		give(lambs[i]);
		assert_error(ERR_USAGE, named, recipe_choose(&options, &recipe.optimizer));
	}
}

/* A resumed run reads its record: the rate is what the record says, not what was computed before. */
static void a_chosen_rate_is_what_is_recorded(void **state)
{
	give("optimizer=adamw");
	assert_ok(choose_rate(200));
	assert_string_equal(chosen("learning_rate"), "0.00031");
	assert_true(recipe.rate.learning_rate == 0.00031);
	assert_string_equal(chosen("schedule"), "linear");
	assert_string_equal(chosen("poly_degree"), "1");
	assert_string_equal(chosen("num_warmup_steps"), "20");
	struct schedule schedule = rate_schedule(&recipe.rate, 200, 32);
	assert_true(schedule.peak == 0.00031 && schedule.warmup_steps == 20 && schedule.total_steps == 200);

	give("optimizer=lamb learning_rate=4e-3");
	assert_ok(choose_rate(300000));
	assert_string_equal(chosen("learning_rate"), "");
	assert_string_equal(chosen("schedule"), "poly");
	assert_string_equal(chosen("poly_degree"), "0.5");
	assert_string_equal(chosen("num_warmup_steps"), "10000"); /* a tenth, but at most this */
}

static void warmup_as_a_share(void **state)
{
	give("warmup_proportion=0.1 schedule=nvidia_poly");
	assert_ok(choose_rate(95));
	assert_string_equal(chosen("num_warmup_steps"), "9");
	assert_near(rate_schedule(&recipe.rate, 95, 32).warmup_steps, 9.5, 1e-12); /* NVIDIA's code does not round it */
	give("warmup_proportion=0.1 min_warmup_steps=20");
	assert_ok(choose_rate(95));
	assert_int_equal(recipe.rate.num_warmup_steps, 20);
	give("warmup_proportion=0.1 min_warmup_steps=50 schedule=nvidia_poly");
	assert_ok(choose_rate(95));
	assert_int_equal(recipe.rate.num_warmup_steps, 31); /* a third */
	assert_near(rate_schedule(&recipe.rate, 95, 32).warmup_steps, 31, 1e-12);
	give("min_warmup_steps=12");
	assert_ok(choose_rate(95));
	assert_int_equal(recipe.rate.num_warmup_steps, 12); /* a tenth is less */
	give("num_warmup_steps=96");
	assert_error(ERR_USAGE, "--num_warmup_steps 96", choose_rate(95));
	give("num_warmup_steps=95 schedule=wsd");
	assert_error(ERR_USAGE, "--num_warmup_steps 95 leaves no step for the decay", choose_rate(95));
	give("num_warmup_steps=0 min_learning_rate=1");
	assert_error(ERR_USAGE, "--min_learning_rate 1", choose_rate(95));
	/* A run that is too short for a new model's warm-up has a lower rate. */
	give("min_warmup_steps=20");
	assert_ok(choose_rate_of_layers(90, 32, 0, 12));
	assert_int_equal(recipe.rate.num_warmup_steps, 30);
	assert_string_equal(chosen("learning_rate"), "0.00016");
}

static void rates_follow_the_batch(void **state)
{
	static const struct {
		const char *given;
		int64_t per_gpu;
		double peak; /* of 1e-4, with a batch of 1024 */
		const char *chosen;
	} cases[] = {
		{"learning_rate=1e-4", 0, 1e-4, ""},
		{"learning_rate=1e-4 scale_learning_rate=linear", 0, 4e-4, "256"},
		{"learning_rate=1e-4 scale_learning_rate=sqrt", 0, 2e-4, "256"},
		{"learning_rate=1e-4 scale_learning_rate=linear", 64, 16e-4, "64"},
		{"learning_rate=1e-4 scale_learning_rate=linear learning_rate_batch_size=512", 64, 2e-4, ""},
		{"learning_rate=1e-4 scale_learning_rate=sqrt learning_rate_batch_size=64", 0, 4e-4, ""},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		give(cases[i].given);
		assert_ok(choose_rate_of_layers(100, 1024, cases[i].per_gpu, 0));
		assert_string_equal(chosen("learning_rate_batch_size"), cases[i].chosen);
		assert_near(rate_schedule(&recipe.rate, 100, 1024).peak, cases[i].peak, 1e-12);
	}
	give("learning_rate_batch_size=256");
	assert_error(ERR_USAGE, "--learning_rate_batch_size", choose_rate(100));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(optimizers_differ_in_what_is_chosen, release),
		cmocka_unit_test_teardown(what_was_given_stays, release),
		cmocka_unit_test_teardown(adamw_refuses_what_is_lambs, release),
		cmocka_unit_test_teardown(a_chosen_rate_is_what_is_recorded, release),
		cmocka_unit_test_teardown(warmup_as_a_share, release),
		cmocka_unit_test_teardown(rates_follow_the_batch, release),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
