#include "run/recipe.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/log.h"

bool recipe_is_lamb(const struct recipe *recipe)
{
	return strcmp(recipe->optimizer, "lamb") == 0 || strcmp(recipe->optimizer, "nvlamb") == 0;
}

/* ---- The optimizer ---- */

/* Refuses options that AdamW does not use: an error is better than ignoring them. */
static enum status refuse_lamb_options(const struct recipe *recipe)
{
	const struct {
		const char *name;
		bool given;
	} options[] = {
		{"trust_ratio", recipe->trust_ratio != NULL},
		{"exclude_from_layer_adaptation", recipe->unadapted.count > 0},
		{"max_trust_ratio", recipe->max_trust_ratio >= 0},
		{"gradient_normalization", recipe->gradient_normalization != NULL},
		{"gradient_averaging", recipe->gradient_averaging >= 0},
	};
	for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
		if (!options[i].given)
			continue;
		enum status status =
			error_set(ERR_USAGE, "--%s has no effect with --optimizer %s", options[i].name, recipe->optimizer);
		error_hint("leave it out, or use --optimizer lamb or nvlamb");
		return status;
	}
	return OK;
}

static enum status choose_name(const char **out, const char *name, const char *value, struct choices *choices)
{
	if (*out)
		return OK;
	*out = value;
	return choose_text(choices, name, value);
}

enum status recipe_choose(struct recipe *recipe, struct choices *choices)
{
	if (recipe->bias_correction < 0)
		TRY(choose_flag(choices, "bias_correction", strcmp(recipe->optimizer, "google_adamw") != 0,
				&recipe->bias_correction));
	if (!recipe_is_lamb(recipe))
		return refuse_lamb_options(recipe);
	TRY(choose_name(&recipe->trust_ratio, "trust_ratio", strcmp(recipe->optimizer, "nvlamb") == 0 ? "all" : "decayed",
			choices));
	TRY(choose_name(&recipe->gradient_normalization, "gradient_normalization", "clip", choices));
	if (recipe->gradient_averaging < 0)
		TRY(choose_flag(choices, "gradient_averaging", true, &recipe->gradient_averaging));
	return OK;
}

/* A list that contains only "none" is empty. */
static struct name_patterns patterns(const struct option_list *list)
{
	bool none = list->count == 1 && strcmp(list->values[0], "none") == 0;
	return (struct name_patterns){list->values, none ? 0 : list->count};
}

struct optimizer_settings recipe_optimizer(const struct recipe *recipe)
{
	struct optimizer_settings optimizer = {
		.kind = recipe_is_lamb(recipe) ? OPTIMIZER_LAMB : OPTIMIZER_ADAMW,
		.beta1 = recipe->beta1,
		.beta2 = recipe->beta2,
		.epsilon = recipe->epsilon,
		.weight_decay = recipe->weight_decay,
		.max_grad_norm = recipe->max_grad_norm,
		.bias_correction = recipe->bias_correction == 1,
		.has_undecayed = recipe->undecayed.count > 0,
		.undecayed = patterns(&recipe->undecayed),
	};
	if (optimizer.kind == OPTIMIZER_LAMB) {
		optimizer.adapts_all = strcmp(recipe->trust_ratio, "all") == 0;
		optimizer.unadapted = patterns(&recipe->unadapted);
		optimizer.max_trust_ratio = recipe->max_trust_ratio > 0 ? recipe->max_trust_ratio : 0;
		optimizer.normalize_gradients = strcmp(recipe->gradient_normalization, "always") == 0;
		optimizer.no_gradient_averaging = recipe->gradient_averaging == 0;
	}
	return optimizer;
}

/* ---- The schedule ---- */

/* min_warmup_steps is for this many layers. */
#define USUAL_LAYERS 4

/* The fewest steps of warm-up for the model, however short the run. */
static int64_t least_warmup(const struct rate_settings *rate)
{
	double least = (double)rate->min_warmup_steps * (double)rate->new_layers / USUAL_LAYERS;
	if (rate->new_layers == 0)
		return rate->min_warmup_steps;
	return least < 1e15 ? (int64_t)least : (int64_t)1e15;
}

/* The rate of a new model rises no faster in a run that is too short for its warm-up. */
static enum status choose_rate(struct rate_settings *rate, int64_t steps, struct choices *choices)
{
	double least = (double)least_warmup(rate), longest = (double)steps / 3;
	bool shortened = rate->new_layers > 0 && rate->warmup_steps < 0 && longest < least;
	double share = shortened ? longest / least : 1;
	if (rate->learning_rate >= 0)
		return OK;
	return choose_number(choices, "learning_rate", rate->usual_learning_rate * share, 2, &rate->learning_rate);
}

static enum status choose_warmup(struct rate_settings *rate, int64_t steps, struct choices *choices)
{
	int64_t tenth = steps / 10 < 10000 ? steps / 10 : 10000;
	int64_t wanted = rate->warmup_proportion >= 0 ? (int64_t)floor(rate->warmup_proportion * (double)steps) : tenth;
	int64_t least = least_warmup(rate) < steps / 3 ? least_warmup(rate) : steps / 3;
	if (rate->warmup_steps < 0)
		TRY(choose_integer(choices, "num_warmup_steps", wanted > least ? wanted : least, &rate->warmup_steps));
	if (rate->warmup_steps > steps)
		return error_set(ERR_USAGE, "--num_warmup_steps %" PRId64 " is more than the %" PRId64 " steps of the run",
				 rate->warmup_steps, steps);
	return OK;
}

/* The factor that `scale` applies to the rates. */
static double scale_of(const struct rate_settings *rate, int64_t batch_size)
{
	double ratio = (double)batch_size / (double)rate->scale_batch_size;
	return strcmp(rate->scale, "linear") == 0 ? ratio : strcmp(rate->scale, "sqrt") == 0 ? sqrt(ratio) : 1;
}

static enum status choose_scale(struct rate_settings *rate, struct rate_batch batch, struct choices *choices)
{
	if (strcmp(rate->scale, "none") == 0) {
		if (rate->scale_batch_size == 0)
			return OK;
		enum status status =
			error_set(ERR_USAGE, "--learning_rate_batch_size has no effect without --scale_learning_rate");
		error_hint("give --scale_learning_rate linear or sqrt");
		return status;
	}
	if (rate->scale_batch_size == 0)
		TRY(choose_integer(choices, "learning_rate_batch_size", batch.per_device > 0 ? batch.per_device : 256,
				   &rate->scale_batch_size));
	log_note("learning rate: %g for a batch of %" PRId64 ", %s: %g for %" PRId64, rate->learning_rate, rate->scale_batch_size,
		 rate->scale, rate->learning_rate * scale_of(rate, batch.size), batch.size);
	return OK;
}

/* Defaults to the last fifth, as in MiniCPM and others. */
static enum status choose_decay(struct rate_settings *rate, int64_t steps, struct choices *choices)
{
	enum status status;
	if (strcmp(rate->schedule, "wsd") != 0) {
		if (rate->decay_steps <= 0)
			return OK;
		status = error_set(ERR_USAGE, "--num_decay_steps has no effect with --schedule %s", rate->schedule);
		error_hint("leave it out, or use --schedule wsd");
		return status;
	}
	int64_t fifth = steps < 5 ? 1 : steps / 5, rest = steps - rate->warmup_steps;
	if (rate->decay_steps <= 0)
		TRY(choose_integer(choices, "num_decay_steps", fifth < rest ? fifth : rest, &rate->decay_steps));
	if (rate->decay_steps > rest)
		return error_set(ERR_USAGE, "--num_decay_steps %" PRId64 " is more than the %" PRId64 " steps after the warm-up",
				 rate->decay_steps, rest);
	return OK;
}

enum status rate_choose(struct rate_settings *rate, const struct recipe *recipe, int64_t steps, struct rate_batch batch,
			struct choices *choices)
{
	bool lamb = recipe_is_lamb(recipe);
	TRY(choose_rate(rate, steps, choices));
	TRY(choose_scale(rate, batch, choices));
	TRY(choose_warmup(rate, steps, choices));
	TRY(choose_name(&rate->schedule, "schedule", lamb ? "poly" : "linear", choices));
	if (rate->poly_degree < 0)
		TRY(choose_number(choices, "poly_degree", lamb ? 0.5 : 1, 6, &rate->poly_degree));
	TRY(choose_decay(rate, steps, choices));
	if (rate->min_learning_rate > rate->learning_rate)
		return error_set(ERR_USAGE, "--min_learning_rate %g is above --learning_rate %g", rate->min_learning_rate,
				 rate->learning_rate);
	return OK;
}

struct schedule rate_schedule(const struct rate_settings *rate, int64_t steps, int64_t batch_size)
{
	double scale = scale_of(rate, batch_size);
	struct schedule schedule = {
		.shape = schedule_shape_named(rate->schedule),
		.peak = scale * rate->learning_rate,
		.end = scale * rate->min_learning_rate,
		.warmup_steps = (double)rate->warmup_steps,
		.total_steps = steps,
		.degree = rate->poly_degree,
		.decay_steps = rate->decay_steps,
	};
	/* NVIDIA's schedule compares fractions of the run, without rounding them to steps. */
	if (schedule.shape == SCHEDULE_NVIDIA_POLY && rate->warmup_proportion > 0)
		schedule.warmup_steps = fmax(schedule.warmup_steps, rate->warmup_proportion * (double)steps);
	return schedule;
}
