/* Makes one run into two phases: words first, then pairs. */
#include "cmd/pretrain/pretrain_halves.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/duration.h"
#include "base/file.h"
#include "base/log.h"
#include "model/forms.h"
#include "run/phases.h"
#include "run/pretraining_options.h"

/* New models of this configuration mark the segments of a pair; those of other forms hardly learn to compare (docs/quality.md). A
 * configuration that cannot be read is reported by the run. */
static bool marks_segments(const struct pretraining_options *settings)
{
	const char *form = settings->sizes.form, *model = settings->initial.model;
	struct model_config config;
	int32_t index;
	if (form)
		return model_form_find(form, "--form", &index) != OK || model_form_at(index)->pairs_need_types;
	return !model || model_config_named(&config, model) == OK || model_size_or_folder_config(model, &config) != OK ||
	       model_form_of(&config)->pairs_need_types;
}

enum status halves_settle(struct options *options)
{
	static const char *const decided[] = {"next_sentence", "running_text_share", "init_checkpoint", "input_file",
					      "phase2",        "resume_phase2"};
	const struct pretraining_options *settings = options->settings;
	/* The record of such a run lists its phases, and is read as any other list. */
	bool asked = options_given(options, "end_with_pairs") && !options->from_record, other = options->section_count > 0;
	if (!settings->end_with_pairs)
		return OK;
	if (asked && (other || settings->second.phase2 || options_given(options, "input_file")))
		return error_hinted(error_set(ERR_USAGE, "--end_with_pairs is for runs on text without phases of their own"),
				    "give the last phase --phase2.next_sentence overlap instead");
	for (size_t i = 0; i < sizeof decided / sizeof *decided; i++)
		other = other || options_given(options, decided[i]);
	if (!asked && (other || initial_weights_named(settings->initial.model) || !marks_segments(settings)))
		options_forget(options, "end_with_pairs");
	return OK;
}

static enum status set_half(struct options *options, int half, const char *name, const char *value)
{
	return options_set_section(options, half, name, value, ORIGIN_COMMAND);
}

/* The length of each half, where it was given; the steps of the second include the odd one. */
static enum status split_length(struct options *options, const char *name)
{
	const struct pretraining_options *settings = options->settings;
	const struct length_options *length = &settings->training.length;
	int64_t whole = !strcmp(name, "num_train_steps") ? length->num_train_steps : length->num_train_tokens;
	double seconds;
	char values[2][32];
	if (!options_given(options, name))
		return OK;
	for (int i = 0; i < 2; i++) {
		if (!strcmp(name, "time")) {
			TRY(duration_parse(settings->time, &seconds));
			snprintf(values[i], sizeof values[i], "%.15gs", seconds / 2);
		} else if (!strcmp(name, "num_train_epochs"))
			snprintf(values[i], sizeof values[i], "%.15g", length->num_train_epochs / 2);
		else
			snprintf(values[i], sizeof values[i], "%" PRId64, (whole + i) / 2);
	}
	options_forget(options, name);
	TRY(set_half(options, 0, name, values[0]));
	return set_half(options, 1, name, values[1]);
}

/* One schedule in two parts: the rate rises and stays, then falls. Warm-up takes its share of the whole run. */
static enum status split_schedule(struct options *options)
{
	const struct rate_options *rate = &((const struct pretraining_options *)options->settings)->training.rate;
	bool steps = options_given(options, "num_warmup_steps") || options_is_open(options, &rate->warmup_proportion);
	const char *warmup = steps ? "num_warmup_steps" : "warmup_proportion";
	char share[32];
	snprintf(share, sizeof share, "%.15g", 2 * rate->warmup_proportion < 1 ? 2 * rate->warmup_proportion : 1);
	if (!steps)
		TRY(set_half(options, 0, warmup, share));
	if (options_given(options, "num_decay_steps")) {
		snprintf(share, sizeof share, "%" PRId64, rate->num_decay_steps);
		options_forget(options, "num_decay_steps");
		TRY(set_half(options, 1, "num_decay_steps", share));
	}
	TRY(set_half(options, 0, "schedule", "constant"));
	TRY(set_half(options, 1, "min_warmup_steps", "0"));
	return set_half(options, 1, warmup, "0");
}

enum status halves_split(struct options *options, const struct json *record)
{
	static const char *const lengths[] = {"num_train_steps", "num_train_tokens", "num_train_epochs", "time"};
	const struct pretraining_options *settings = options->settings;
	const struct length_options *length = &settings->training.length;
	bool made_so = !record || phases_are_halves(record);
	int64_t half = length->num_train_steps / 2, warmup = settings->training.rate.num_warmup_steps;
	bool too_short = options_given(options, "num_train_steps") && (half < 1 || half < warmup);
	if (!settings->end_with_pairs || options->section_count > 0 || !made_so)
		return OK;
	if (too_short && options_given(options, "end_with_pairs") && !options->from_record)
		return error_hinted(error_set(ERR_USAGE,
					      "--end_with_pairs: half of the %" PRId64 " steps is less than the warm-up",
					      length->num_train_steps),
				    "give more steps, or a smaller --num_warmup_steps");
	if (too_short) {
		log_note("half of the %" PRId64 " steps is less than the warm-up: the run does not end with pairs",
			 length->num_train_steps);
		options_forget(options, "end_with_pairs");
		return OK;
	}
	TRY(split_schedule(options));
	TRY(set_half(options, 1, "next_sentence", "overlap"));
	TRY(set_half(options, 1, "running_text_share", "0.4"));
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
		TRY(split_length(options, lengths[i]));
	return OK;
}
