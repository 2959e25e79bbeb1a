/* Judges the numbers of a step, and keeps what it remembers in checkpoints. */
#include "train/guard.h"

#include <math.h>
#include <string.h>

#include "base/log.h"

/* In a window with hardly any variation, anything would be a spike: the deviation is taken to be at least this share of the
 * mean. */
#define SMALLEST_DEVIATION 1e-3

void guard_start(struct guard_state *state, const struct guard_settings *settings)
{
	if (state->loss_scale <= 0 || !settings->dynamic || !state->dynamic) {
		state->loss_scale = settings->loss_scale;
		state->clean_steps = 0;
	}
	state->dynamic = settings->dynamic;
}

/* By how many standard deviations `value` exceeds the ring's mean; 0 until the ring is full. */
static double deviations(const double *ring, int64_t observed, double value, double *mean)
{
	if (observed < GUARD_WINDOW)
		return 0;
	double sum = 0, squares = 0;
	for (int i = 0; i < GUARD_WINDOW; i++)
		sum += ring[i];
	*mean = sum / GUARD_WINDOW;
	for (int i = 0; i < GUARD_WINDOW; i++)
		squares += (ring[i] - *mean) * (ring[i] - *mean);
	return (value - *mean) / fmax(sqrt(squares / GUARD_WINDOW), SMALLEST_DEVIATION * fabs(*mean) + 1e-300);
}

/* Without a limit, spikes are left to the diagnosis to report (report/diagnosis.h): clipping makes most of them harmless. */
static enum guard_verdict judge_spike(struct guard_state *state, const struct guard_settings *settings,
				      const struct guard_reading *reading)
{
	const struct {
		const char *name;
		double *ring, value;
	} series[] = {{"loss", state->losses, reading->loss}, {"gradient norm", state->norms, reading->grad_norm}};
	enum guard_verdict verdict = GUARD_APPLY;
	for (int i = 0; i < 2; i++) {
		double mean = 0, above = deviations(series[i].ring, state->observed, series[i].value, &mean);
		if (settings->skip_spikes > 0 && above > settings->skip_spikes) {
			log_warning("step %lld: %s %.4g is %.1f standard deviations above the previous %d steps (mean %.4g): "
				    "update skipped",
				    (long long)reading->step, series[i].name, series[i].value, above, GUARD_WINDOW, mean);
			verdict = GUARD_SPIKE;
		}
	}
	/* A spike enters the window, too: if all steps are like it, they are not spikes. */
	for (int i = 0; i < 2; i++)
		series[i].ring[state->observed % GUARD_WINDOW] = series[i].value;
	state->observed++;
	return verdict;
}

/* Reports that gradients overflowed although the loss is finite: the scale was too large. */
static enum status say_overflow(const struct guard_reading *reading)
{
	if (reading->next_loss_scale == reading->loss_scale)
		return error_hinted(error_set(ERR_NUMERIC, "step %lld: gradients overflow even at the smallest loss scale, %g",
					      (long long)reading->step, reading->loss_scale),
				    "the run is diverging; the range of 16-bit numbers is not the cause: start over with a lower "
				    "--learning_rate, or resume from the last checkpoint with --precision bf16");
	log_detail("step %lld: gradients overflow, the loss scale falls to %g", (long long)reading->step,
		   reading->next_loss_scale);
	return OK;
}

static void count_not_finite(struct guard_state *state, int64_t step)
{
	state->skipped_in_row++;
	memmove(state->recent, state->recent + 1, sizeof state->recent - sizeof *state->recent);
	state->recent[GUARD_RECENT - 1] = step;
}

enum status guard_judge(struct guard_state *state, const struct guard_settings *settings, const struct guard_reading *reading,
			enum guard_verdict *out)
{
	bool sound = isfinite(reading->loss);
	state->loss_scale = reading->next_loss_scale;
	state->clean_steps = reading->clean_steps;
	*out = GUARD_NOT_FINITE;
	if (sound && reading->finite && isfinite(reading->grad_norm)) {
		state->skipped_in_row = 0;
		*out = judge_spike(state, settings, reading);
		return OK;
	}
	if (sound && settings->dynamic) {
		*out = GUARD_OVERFLOW;
		return say_overflow(reading);
	}
	count_not_finite(state, reading->step);
	return OK;
}

bool guard_is_exhausted(const struct guard_state *state, int64_t step)
{
	return state->skipped_in_row >= GUARD_IN_ROW || (state->recent[0] > 0 && step - state->recent[0] < GUARD_HORIZON);
}

/* ---- In a checkpoint ---- */

static void write_ring(struct json_writer *writer, const char *key, const double *ring, int64_t observed)
{
	json_open(writer, key, '[');
	for (int64_t i = 0; i < GUARD_WINDOW && i < observed; i++)
		json_put_double(writer, NULL, ring[i]);
	json_close(writer);
}

void guard_write(const struct guard_state *state, struct json_writer *writer, const char *key)
{
	json_open(writer, key, '{');
	json_put_integer(writer, "skipped_in_row", state->skipped_in_row);
	json_open(writer, "recent", '[');
	for (int i = 0; i < GUARD_RECENT; i++)
		json_put_integer(writer, NULL, state->recent[i]);
	json_close(writer);
	json_put_double(writer, "loss_scale", state->loss_scale);
	json_put_integer(writer, "clean_steps", state->clean_steps);
	json_put_bool(writer, "dynamic", state->dynamic);
	json_put_integer(writer, "observed", state->observed);
	write_ring(writer, "losses", state->losses, state->observed);
	write_ring(writer, "norms", state->norms, state->observed);
	json_close(writer);
}

static enum status read_ring(const struct json *object, const char *file, const char *key, int64_t observed, double *ring)
{
	const struct json *array = json_member(object, key);
	int64_t count = observed < GUARD_WINDOW ? observed : GUARD_WINDOW, i = 0;
	if (!array || array->kind != JSON_ARRAY || array->child_count != count)
		return error_set(ERR_DATA, "'%s': \"%s\" must hold %lld numbers", file, key, (long long)count);
	for (const struct json *item = array->first_child; item; item = item->next) {
		if (item->kind != JSON_NUMBER)
			return error_set(ERR_DATA, "'%s': \"%s\" must hold numbers", file, key);
		ring[i++] = item->number;
	}
	return OK;
}

/* Reads the steps of the most recently skipped updates: a full ring, filled up with 0 if there have been fewer. */
static enum status read_recent(const struct json *object, const char *file, int64_t steps, int64_t recent[GUARD_RECENT])
{
	const struct json *array = json_member(object, "recent");
	if (!array || array->kind != JSON_ARRAY || array->child_count != GUARD_RECENT)
		return error_set(ERR_DATA, "'%s': \"recent\" must hold %d steps", file, GUARD_RECENT);
	for (const struct json *item = array->first_child; item; item = item->next) {
		if (item->kind != JSON_NUMBER || !item->is_integer || item->integer < 0 || item->integer > steps)
			return error_set(ERR_DATA, "'%s': \"recent\" must hold steps from 0 to %lld", file, (long long)steps);
		*recent++ = item->integer;
	}
	return OK;
}

enum status guard_read(struct guard_state *out, const struct json *object, const char *file, int64_t steps)
{
	*out = (struct guard_state){.skipped_in_row = -1, .observed = -1, .clean_steps = -1, .loss_scale = -1};
	TRY(json_get_integer(object, file, "skipped_in_row", 0, steps, &out->skipped_in_row));
	TRY(json_get_number(object, file, "loss_scale", &out->loss_scale));
	TRY(json_get_integer(object, file, "clean_steps", 0, steps, &out->clean_steps));
	TRY(json_get_bool(object, file, "dynamic", &out->dynamic));
	TRY(json_get_integer(object, file, "observed", 0, steps, &out->observed));
	if (out->skipped_in_row < 0 || out->clean_steps < 0 || out->observed < 0)
		return error_set(ERR_DATA, "'%s': damaged: \"guard\" is incomplete", file);
	if (!(out->loss_scale > 0))
		return error_set(ERR_DATA, "'%s': damaged: \"loss_scale\" is %g, which no loss can be multiplied by", file,
				 out->loss_scale);
	TRY(read_ring(object, file, "losses", out->observed, out->losses));
	TRY(read_ring(object, file, "norms", out->observed, out->norms));
	return read_recent(object, file, steps, out->recent);
}
