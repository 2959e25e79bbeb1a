/* Chooses the optimizer settings, learning rate, and schedule that were left open. */
#include "run/recipe.h"

#include <inttypes.h>
#include <math.h>

#include "base/log.h"

/* ---- The optimizer ---- */

/* Refuses options that AdamW does not use: an error is better than ignoring them. */
static enum status refuse_lamb_options(const struct options *options, const struct optimizer_options *optimizer)
{
	static const char *const names[] = {"trust_ratio", "exclude_from_layer_adaptation", "max_trust_ratio",
					    "gradient_normalization", "gradient_averaging"};
	const void *const fields[] = {&optimizer->trust_ratio, &optimizer->exclude_from_layer_adaptation,
				      &optimizer->max_trust_ratio, &optimizer->gradient_normalization,
				      &optimizer->gradient_averaging};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		if (options_is_open(options, fields[i]))
			continue;
		return error_hinted(error_set(ERR_USAGE, "--%s has no effect with --optimizer %s", names[i],
					      options_text_of(options, &optimizer->optimizer)),
				    "leave it out, or use --optimizer lamb or nvlamb");
	}
	return OK;
}

static enum status choose(struct options *options, const void *field, const char *value)
{
	return options_is_open(options, field) ? options_choose(options, field, value) : OK;
}

enum status recipe_choose(struct options *options, const struct optimizer_options *optimizer)
{
	bool corrects = optimizer->optimizer != OPTIMIZER_GOOGLE_ADAMW;
	TRY(choose(options, &optimizer->bias_correction, corrects ? "true" : "false"));
	if (!optimizer_is_lamb(optimizer))
		return refuse_lamb_options(options, optimizer);
	TRY(choose(options, &optimizer->trust_ratio, optimizer->optimizer == OPTIMIZER_NVLAMB ? "all" : "decayed"));
	TRY(choose(options, &optimizer->gradient_normalization, "clip"));
	return choose(options, &optimizer->gradient_averaging, "true");
}

/* ---- The schedule ---- */

/* min_warmup_steps is for this many layers. */
#define USUAL_LAYERS 4

/* The fewest steps of warm-up for the model, however short the run. */
static int64_t least_warmup(const struct rate_options *rate, const struct rate_facts *facts)
{
	double least = (double)rate->min_warmup_steps * (double)facts->new_layers / USUAL_LAYERS;
	if (facts->new_layers == 0)
		return rate->min_warmup_steps;
	return least < 1e15 ? (int64_t)least : (int64_t)1e15;
}

/* The rate of a new model rises no faster in a run that is too short for its warm-up. */
static enum status choose_rate(struct options *phase, const struct rate_options *rate, const struct rate_facts *facts)
{
	double least = (double)least_warmup(rate, facts), longest = (double)facts->steps / 3;
	bool open = options_is_open(phase, &rate->num_warmup_steps), shortened = facts->new_layers > 0 && open && longest < least;
	double share = shortened ? longest / least : 1;
	if (!options_is_open(phase, &rate->learning_rate))
		return OK;
	return options_choose_number(phase, &rate->learning_rate, facts->usual_learning_rate * share, 2);
}

static enum status choose_warmup(struct options *phase, const struct rate_options *rate, const struct rate_facts *facts)
{
	int64_t steps = facts->steps, tenth = steps / 10 < 10000 ? steps / 10 : 10000;
	bool proportional = !options_is_open(phase, &rate->warmup_proportion);
	int64_t wanted = proportional ? (int64_t)floor(rate->warmup_proportion * (double)steps) : tenth;
	int64_t least = least_warmup(rate, facts) < steps / 3 ? least_warmup(rate, facts) : steps / 3;
	if (options_is_open(phase, &rate->num_warmup_steps))
		TRY(options_choose_integer(phase, &rate->num_warmup_steps, wanted > least ? wanted : least));
	if (rate->num_warmup_steps > steps)
		return error_set(ERR_USAGE, "--num_warmup_steps %" PRId64 " is more than the %" PRId64 " steps of the run",
				 rate->num_warmup_steps, steps);
	return OK;
}

/* The factor that scale_learning_rate applies to the rates. */
static double scale_of(const struct rate_options *rate, int64_t batch_size)
{
	double ratio = (double)batch_size / (double)rate->learning_rate_batch_size;
	return rate->scale_learning_rate == SCALE_LINEAR ? ratio : rate->scale_learning_rate == SCALE_SQRT ? sqrt(ratio) : 1;
}

static enum status choose_scale(struct options *phase, const struct rate_options *rate, const struct rate_facts *facts)
{
	const int64_t *meant_for = &rate->learning_rate_batch_size;
	if (rate->scale_learning_rate == SCALE_NONE) {
		if (options_is_open(phase, meant_for))
			return OK;
		return error_hinted(
			error_set(ERR_USAGE, "--learning_rate_batch_size has no effect without --scale_learning_rate"),
			"give --scale_learning_rate linear or sqrt");
	}
	if (options_is_open(phase, meant_for))
		TRY(options_choose_integer(phase, meant_for, facts->batch_size_per_gpu > 0 ? facts->batch_size_per_gpu : 256));
	log_note("learning rate: %g for a batch of %" PRId64 ", %s: %g for %" PRId64, rate->learning_rate, *meant_for,
		 options_text_of(phase, &rate->scale_learning_rate), rate->learning_rate * scale_of(rate, facts->batch_size),
		 facts->batch_size);
	return OK;
}

/* Defaults to the last fifth, as in MiniCPM and others. */
static enum status choose_decay(struct options *phase, const struct rate_options *rate, int64_t steps)
{
	bool open = options_is_open(phase, &rate->num_decay_steps);
	if (rate->schedule != SCHEDULE_WSD) {
		if (open)
			return OK;
		return error_hinted(error_set(ERR_USAGE, "--num_decay_steps has no effect with --schedule %s",
					      options_text_of(phase, &rate->schedule)),
				    "leave it out, or use --schedule wsd");
	}
	int64_t fifth = steps < 5 ? 1 : steps / 5, rest = steps - rate->num_warmup_steps;
	if (rest < 1)
		return error_hinted(error_set(ERR_USAGE,
					      "--num_warmup_steps %" PRId64 " leaves no step for the decay of --schedule wsd",
					      rate->num_warmup_steps),
				    "give fewer of them, or a longer run");
	if (open)
		TRY(options_choose_integer(phase, &rate->num_decay_steps, fifth < rest ? fifth : rest));
	if (rate->num_decay_steps > rest)
		return error_set(ERR_USAGE, "--num_decay_steps %" PRId64 " is more than the %" PRId64 " steps after the warm-up",
				 rate->num_decay_steps, rest);
	return OK;
}

enum status rate_choose(struct options *phase, const struct rate_options *rate, const struct optimizer_options *optimizer,
			const struct rate_facts *facts)
{
	bool lamb = optimizer_is_lamb(optimizer);
	TRY(choose_rate(phase, rate, facts));
	TRY(choose_scale(phase, rate, facts));
	TRY(choose_warmup(phase, rate, facts));
	TRY(choose(phase, &rate->schedule, lamb ? "poly" : "linear"));
	TRY(choose(phase, &rate->poly_degree, lamb ? "0.5" : "1"));
	TRY(choose_decay(phase, rate, facts->steps));
	if (rate->learning_rate < 1e-12) /* what is added to a weight is less than half of its last bit */
		log_warning("--learning_rate %g: the weights stay as they are", rate->learning_rate);
	if (rate->min_learning_rate > rate->learning_rate)
		return error_set(ERR_USAGE, "--min_learning_rate %g is above --learning_rate %g", rate->min_learning_rate,
				 rate->learning_rate);
	return OK;
}

struct schedule rate_schedule(const struct rate_options *rate, int64_t steps, int64_t batch_size)
{
	double scale = scale_of(rate, batch_size);
	struct schedule schedule = {
		.shape = rate->schedule,
		.peak = scale * rate->learning_rate,
		.end = scale * rate->min_learning_rate,
		.warmup_steps = (double)rate->num_warmup_steps,
		.total_steps = steps,
		.degree = rate->poly_degree,
		.decay_steps = rate->num_decay_steps,
	};
	/* NVIDIA's schedule compares fractions of the run, without rounding them to steps. */
	if (schedule.shape == SCHEDULE_NVIDIA_POLY && rate->warmup_proportion > 0)
		schedule.warmup_steps = fmax(schedule.warmup_steps, rate->warmup_proportion * (double)steps);
	return schedule;
}
