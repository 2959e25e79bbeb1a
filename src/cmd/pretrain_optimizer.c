/* Optimiser and schedule of a run: what the user left open, and the structs that training takes. */
#include "cmd/pretrain.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/log.h"

/* Options that AdamW has no use for: an error beats silence. All are unset unless someone gave them. */
static const char *const lamb_options[] = {"trust_ratio", "exclude_from_layer_adaptation", "max_trust_ratio",
					   "gradient_normalization", "gradient_averaging"};

static bool is_lamb(const struct pretrain_settings *settings)
{
	return strcmp(settings->optimizer, "lamb") == 0 || strcmp(settings->optimizer, "nvlamb") == 0;
}

static enum status choose_rate(struct pretrain *run, struct pretrain_phase *phase)
{
	int64_t hidden = run->config.hidden_size;
	if (!pretrain_unset(phase->options, "learning_rate"))
		return OK;
	/* You et al. 2020, table 4: 5e-3 at a batch of 32,768, with its square root for others. */
	double rate = is_lamb(run->settings) ? 5e-3 * sqrt((double)phase->settings->train_batch_size / 32768)
		      : hidden < 512         ? 1e-3
		      : hidden < 768         ? 5e-4
		      : hidden < 1024        ? 2e-4
					     : 1e-4;
	/* The published models that went on from a trained one used 2e-5 (Google's advice) to 5e-5 (BioBERT) at these
	 * batches for BERT-base; too high a rate unlearns what is there. */
	if (run->initial.path) {
		rate /= 4;
		log_note("learning rate: %.2g, a quarter of what a new model would begin with, since this one is trained", rate);
	}
	return pretrain_choose(phase->options, "learning_rate", "%.2g", rate);
}

static enum status choose_warmup(struct pretrain_phase *phase)
{
	struct options *options = phase->options;
	const struct pretrain_settings *settings = phase->settings;
	int64_t steps = settings->num_train_steps, tenth = steps / 10 < 10000 ? steps / 10 : 10000;
	if (!pretrain_unset(options, "num_warmup_steps"))
		;
	else if (!pretrain_unset(options, "warmup_proportion"))
		TRY(pretrain_choose(options, "num_warmup_steps", "%.0f", floor(settings->warmup_proportion * (double)steps)));
	else
		TRY(pretrain_choose(options, "num_warmup_steps", "%" PRId64, tenth));
	if (settings->num_warmup_steps > steps)
		return error_set(ERR_USAGE, "--num_warmup_steps %" PRId64 " is more than the %" PRId64 " steps of the run",
				 settings->num_warmup_steps, steps);
	return OK;
}

/* What scale_learning_rate makes of the rates. */
static double rate_scale(const struct pretrain_settings *settings)
{
	double ratio = (double)settings->train_batch_size / (double)settings->learning_rate_batch_size;
	return strcmp(settings->scale_learning_rate, "linear") == 0 ? ratio
	       : strcmp(settings->scale_learning_rate, "sqrt") == 0 ? sqrt(ratio)
								    : 1;
}

static enum status choose_scale(struct pretrain_phase *phase)
{
	struct options *options = phase->options;
	const struct pretrain_settings *settings = phase->settings;
	if (strcmp(settings->scale_learning_rate, "none") == 0) {
		if (pretrain_unset(options, "learning_rate_batch_size"))
			return OK;
		enum status status =
			error_set(ERR_USAGE, "--learning_rate_batch_size has no effect without --scale_learning_rate");
		error_hint("give --scale_learning_rate linear or sqrt");
		return status;
	}
	bool per_device = !pretrain_unset(options, "train_batch_size_per_gpu");
	if (pretrain_unset(options, "learning_rate_batch_size"))
		TRY(pretrain_choose(options, "learning_rate_batch_size", "%" PRId64,
				    per_device ? settings->train_batch_size_per_gpu : 256));
	log_note("learning rate: %g for a batch of %" PRId64 ", %s: %g for %" PRId64, settings->learning_rate,
		 settings->learning_rate_batch_size, settings->scale_learning_rate,
		 settings->learning_rate * rate_scale(settings), settings->train_batch_size);
	return OK;
}

enum status pretrain_choose_schedule(struct pretrain *run, struct pretrain_phase *phase)
{
	bool lamb = is_lamb(run->settings);
	TRY(choose_rate(run, phase));
	TRY(choose_scale(phase));
	TRY(choose_warmup(phase));
	if (pretrain_unset(phase->options, "schedule"))
		TRY(pretrain_choose(phase->options, "schedule", lamb ? "poly" : "linear"));
	if (pretrain_unset(phase->options, "poly_degree"))
		TRY(pretrain_choose(phase->options, "poly_degree", lamb ? "0.5" : "1"));
	if (phase->settings->min_learning_rate > phase->settings->learning_rate)
		return error_set(ERR_USAGE, "--min_learning_rate %g is above --learning_rate %g",
				 phase->settings->min_learning_rate, phase->settings->learning_rate);
	return OK;
}

static enum status check_lamb_options(struct pretrain *run)
{
	for (size_t i = 0; i < sizeof(lamb_options) / sizeof(*lamb_options); i++) {
		if (pretrain_unset(run->options, lamb_options[i]))
			continue;
		enum status status =
			error_set(ERR_USAGE, "--%s has no effect with --optimizer %s", lamb_options[i], run->settings->optimizer);
		error_hint("leave it out, or use --optimizer lamb or nvlamb");
		return status;
	}
	return OK;
}

enum status pretrain_choose_optimizer(struct pretrain *run)
{
	struct options *options = run->options;
	const struct pretrain_settings *settings = run->settings;
	bool lamb = is_lamb(settings);
	if (pretrain_unset(options, "bias_correction"))
		TRY(pretrain_choose(options, "bias_correction", "%s",
				    strcmp(settings->optimizer, "google_adamw") == 0 ? "false" : "true"));
	if (!lamb)
		return check_lamb_options(run);
	if (pretrain_unset(options, "trust_ratio"))
		TRY(pretrain_choose(options, "trust_ratio", strcmp(settings->optimizer, "nvlamb") == 0 ? "all" : "decayed"));
	if (pretrain_unset(options, "gradient_normalization"))
		TRY(pretrain_choose(options, "gradient_normalization", "clip"));
	if (pretrain_unset(options, "gradient_averaging"))
		TRY(pretrain_choose(options, "gradient_averaging", "true"));
	return OK;
}

/* A list of "none" alone is empty. */
static struct name_patterns patterns(const struct option_list *list)
{
	bool none = list->count == 1 && strcmp(list->values[0], "none") == 0;
	return (struct name_patterns){list->values, none ? 0 : list->count};
}

struct optimizer_settings pretrain_optimizer(const struct pretrain_settings *settings)
{
	struct optimizer_settings optimizer = {
		.kind = is_lamb(settings) ? OPTIMIZER_LAMB : OPTIMIZER_ADAMW,
		.beta1 = settings->adam_beta1,
		.beta2 = settings->adam_beta2,
		.epsilon = settings->adam_epsilon,
		.weight_decay = settings->weight_decay,
		.max_grad_norm = settings->max_grad_norm,
		.bias_correction = settings->bias_correction,
		.has_undecayed = settings->exclude_from_weight_decay.count > 0,
		.undecayed = patterns(&settings->exclude_from_weight_decay),
	};
	if (optimizer.kind == OPTIMIZER_LAMB) {
		optimizer.adapts_all = strcmp(settings->trust_ratio, "all") == 0;
		optimizer.unadapted = patterns(&settings->exclude_from_layer_adaptation);
		optimizer.max_trust_ratio = settings->max_trust_ratio;
		optimizer.normalize_gradients = strcmp(settings->gradient_normalization, "always") == 0;
		optimizer.no_gradient_averaging = !settings->gradient_averaging;
	}
	return optimizer;
}

/* In which type gradients travel; COMM_F32: their own. */
enum comm_type pretrain_wire(const struct pretrain_settings *settings)
{
	return settings->allreduce_post_accumulation_fp16   ? COMM_F16
	       : settings->allreduce_post_accumulation_bf16 ? COMM_BF16
							    : COMM_F32;
}

struct schedule pretrain_schedule(const struct pretrain_settings *settings)
{
	double scale = rate_scale(settings);
	struct schedule schedule = {
		.shape = schedule_shape_named(settings->schedule),
		.peak = scale * settings->learning_rate,
		.end = scale * settings->min_learning_rate,
		.warmup_steps = (double)settings->num_warmup_steps,
		.total_steps = settings->num_train_steps,
		.degree = settings->poly_degree,
	};
	/* NVIDIA's compares shares of the run, without rounding them to steps. */
	if (schedule.shape == SCHEDULE_NVIDIA_POLY && settings->warmup_proportion > 0)
		schedule.warmup_steps = settings->warmup_proportion * (double)settings->num_train_steps;
	return schedule;
}
