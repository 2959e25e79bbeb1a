/* The optimizer and schedule of a run: what is chosen for options that are left open, and how the choices are recorded. */
#include "test.h"
#include "run/recipe.h"

static const char *chosen(const struct choices *choices, const char *name)
{
	for (int64_t i = 0; i < choices->count; i++)
		if (strcmp(choices->items[i].name, name) == 0)
			return choices->items[i].text;
	return "";
}

static struct recipe open_recipe(const char *optimizer)
{
	return (struct recipe){
		.optimizer = optimizer,
		.beta1 = 0.9,
		.beta2 = 0.999,
		.epsilon = 1e-6,
		.bias_correction = -1,
		.max_trust_ratio = -1,
		.gradient_averaging = -1,
	};
}

static struct rate_settings open_rate(void)
{
	return (struct rate_settings){
		.learning_rate = -1,
		.usual_learning_rate = 3.14159e-4,
		.scale = "none",
		.poly_degree = -1,
		.warmup_proportion = -1,
		.warmup_steps = -1,
	};
}

static void optimizers_differ_in_what_is_chosen(void **state)
{
	(void)state;
	static const struct {
		const char *optimizer, *bias_correction, *trust_ratio, *normalization, *averaging;
	} cases[] = {
		{"adamw", "true", "", "", ""},
		{"google_adamw", "false", "", "", ""},
		{"lamb", "true", "decayed", "clip", "true"},
		{"nvlamb", "true", "all", "clip", "true"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct choices choices = {0};
		struct recipe recipe = open_recipe(cases[i].optimizer);
		assert_ok(recipe_choose(&recipe, &choices));
		assert_string_equal(chosen(&choices, "bias_correction"), cases[i].bias_correction);
		assert_string_equal(chosen(&choices, "trust_ratio"), cases[i].trust_ratio);
		assert_string_equal(chosen(&choices, "gradient_normalization"), cases[i].normalization);
		assert_string_equal(chosen(&choices, "gradient_averaging"), cases[i].averaging);
		struct optimizer_settings settings = recipe_optimizer(&recipe);
		assert_int_equal(settings.bias_correction, strcmp(cases[i].bias_correction, "true") == 0);
		assert_int_equal(settings.kind, cases[i].trust_ratio[0] ? OPTIMIZER_LAMB : OPTIMIZER_ADAMW);
		assert_int_equal(settings.adapts_all, strcmp(cases[i].trust_ratio, "all") == 0);
		assert_true(settings.max_trust_ratio == 0); /* left open: no limit */
		assert_false(settings.no_gradient_averaging);
		assert_false(settings.has_undecayed);
		choices_release(&choices);
	}
}

static void what_was_given_stays(void **state)
{
	(void)state;
	const char *none[] = {"none"};
	struct choices choices = {0};
	struct recipe recipe = open_recipe("lamb");
	recipe.bias_correction = 0;
	recipe.trust_ratio = "all";
	recipe.gradient_normalization = "always";
	recipe.gradient_averaging = 0;
	recipe.max_trust_ratio = 10;
	recipe.undecayed = (struct option_list){none, 1, 1};
	assert_ok(recipe_choose(&recipe, &choices));
	assert_int_equal(choices.count, 0);
	struct optimizer_settings settings = recipe_optimizer(&recipe);
	assert_false(settings.bias_correction);
	assert_true(settings.adapts_all && settings.normalize_gradients && settings.no_gradient_averaging);
	assert_true(settings.max_trust_ratio == 10);
	assert_true(settings.has_undecayed); /* "none": all weights decay */
	assert_int_equal(settings.undecayed.count, 0);
	choices_release(&choices);
}

static void adamw_refuses_what_is_lambs(void **state)
{
	(void)state;
	const char *names[] = {"LayerNorm"};
	struct recipe recipes[5];
	static const char *const options[5] = {"--trust_ratio", "--exclude_from_layer_adaptation", "--max_trust_ratio",
					       "--gradient_normalization", "--gradient_averaging"};
	for (int i = 0; i < 5; i++)
		recipes[i] = open_recipe("adamw");
	recipes[0].trust_ratio = "all";
	recipes[1].unadapted = (struct option_list){names, 1, 1};
	recipes[2].max_trust_ratio = 0;
	recipes[3].gradient_normalization = "clip";
	recipes[4].gradient_averaging = 1;
	for (int i = 0; i < 5; i++) {
		struct choices choices = {0};
		assert_error(ERR_USAGE, options[i], recipe_choose(&recipes[i], &choices));
		choices_release(&choices);
	}
}

/* A resumed run reads its record: the rate is what the record says, not what was computed before. */
static void a_chosen_rate_is_what_is_recorded(void **state)
{
	(void)state;
	struct choices choices = {0};
	struct recipe recipe = open_recipe("adamw");
	struct rate_settings rate = open_rate();
	assert_ok(rate_choose(&rate, &recipe, 200, (struct rate_batch){.size = 32}, &choices));
	assert_string_equal(chosen(&choices, "learning_rate"), "0.00031");
	assert_true(rate.learning_rate == 0.00031);
	assert_string_equal(chosen(&choices, "schedule"), "linear");
	assert_string_equal(chosen(&choices, "poly_degree"), "1");
	assert_string_equal(chosen(&choices, "num_warmup_steps"), "20");
	struct schedule schedule = rate_schedule(&rate, 200, 32);
	assert_true(schedule.peak == 0.00031 && schedule.warmup_steps == 20 && schedule.total_steps == 200);
	choices_release(&choices);

	recipe = open_recipe("lamb");
	rate = open_rate();
	rate.learning_rate = 4e-3;
	assert_ok(rate_choose(&rate, &recipe, 300000, (struct rate_batch){.size = 32}, &choices));
	assert_string_equal(chosen(&choices, "learning_rate"), "");
	assert_string_equal(chosen(&choices, "schedule"), "poly");
	assert_string_equal(chosen(&choices, "poly_degree"), "0.5");
	assert_string_equal(chosen(&choices, "num_warmup_steps"), "10000"); /* a tenth, but at most this */
	choices_release(&choices);
}

static void warmup_as_a_share(void **state)
{
	(void)state;
	struct choices choices = {0};
	const struct recipe recipe = open_recipe("adamw");
	const struct rate_batch batch = {.size = 32};
	struct rate_settings rate = open_rate();
	rate.warmup_proportion = 0.1;
	assert_ok(rate_choose(&rate, &recipe, 95, batch, &choices));
	assert_string_equal(chosen(&choices, "num_warmup_steps"), "9");
	/* NVIDIA's code does not round it. */
	rate.schedule = "nvidia_poly";
	assert_near(rate_schedule(&rate, 95, 32).warmup_steps, 9.5, 1e-12);
	rate.warmup_steps = -1;
	rate.min_warmup_steps = 20;
	assert_ok(rate_choose(&rate, &recipe, 95, batch, &choices));
	assert_int_equal(rate.warmup_steps, 20);
	rate.warmup_steps = -1;
	rate.min_warmup_steps = 50;
	assert_ok(rate_choose(&rate, &recipe, 95, batch, &choices));
	assert_int_equal(rate.warmup_steps, 31);                           /* a third */
	assert_near(rate_schedule(&rate, 95, 32).warmup_steps, 31, 1e-12); /* the same with nvidia_poly */
	rate.warmup_steps = -1;
	rate.warmup_proportion = -1;
	rate.min_warmup_steps = 12;
	assert_ok(rate_choose(&rate, &recipe, 95, batch, &choices));
	assert_int_equal(rate.warmup_steps, 12); /* a tenth is less */
	rate.warmup_steps = 96;
	assert_error(ERR_USAGE, "--num_warmup_steps 96", rate_choose(&rate, &recipe, 95, batch, &choices));
	rate.warmup_steps = 0;
	rate.min_learning_rate = 1;
	assert_error(ERR_USAGE, "--min_learning_rate 1", rate_choose(&rate, &recipe, 95, batch, &choices));
	choices_release(&choices);
}

static void rates_follow_the_batch(void **state)
{
	(void)state;
	static const struct {
		const char *scale;
		int64_t meant, per_device;
		double peak; /* of 1e-4, with a batch of 1024 */
		const char *chosen;
	} cases[] = {
		{"none", 0, 0, 1e-4, ""},       {"linear", 0, 0, 4e-4, "256"}, {"sqrt", 0, 0, 2e-4, "256"},
		{"linear", 0, 64, 16e-4, "64"}, {"linear", 512, 64, 2e-4, ""}, {"sqrt", 64, 0, 4e-4, ""},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct choices choices = {0};
		const struct recipe recipe = open_recipe("adamw");
		struct rate_settings rate = open_rate();
		rate.learning_rate = 1e-4;
		rate.scale = cases[i].scale;
		rate.scale_batch_size = cases[i].meant;
		assert_ok(rate_choose(&rate, &recipe, 100, (struct rate_batch){1024, cases[i].per_device}, &choices));
		assert_string_equal(chosen(&choices, "learning_rate_batch_size"), cases[i].chosen);
		assert_near(rate_schedule(&rate, 100, 1024).peak, cases[i].peak, 1e-12);
		choices_release(&choices);
	}
	struct choices choices = {0};
	const struct recipe recipe = open_recipe("adamw");
	struct rate_settings rate = open_rate();
	rate.scale_batch_size = 256;
	assert_error(ERR_USAGE, "--learning_rate_batch_size",
		     rate_choose(&rate, &recipe, 100, (struct rate_batch){.size = 1024}, &choices));
	choices_release(&choices);
}

/* The last value of a name counts, and is listed once. */
static void choices_replace_each_other(void **state)
{
	(void)state;
	struct choices choices = {0};
	int64_t tokens;
	int flag = -1;
	assert_ok(choose_integer(&choices, "micro_batch_tokens", 8192, &tokens));
	assert_ok(choose_flag(&choices, "cased", false, &flag));
	assert_ok(choose_integer(&choices, "micro_batch_tokens", 4096, &tokens));
	assert_int_equal(choices.count, 2);
	assert_string_equal(chosen(&choices, "micro_batch_tokens"), "4096");
	assert_int_equal(tokens, 4096);
	assert_int_equal(flag, 0);
	choices_release(&choices);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(optimizers_differ_in_what_is_chosen),
		cmocka_unit_test(what_was_given_stays),
		cmocka_unit_test(adamw_refuses_what_is_lambs),
		cmocka_unit_test(a_chosen_rate_is_what_is_recorded),
		cmocka_unit_test(warmup_as_a_share),
		cmocka_unit_test(rates_follow_the_batch),
		cmocka_unit_test(choices_replace_each_other),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
