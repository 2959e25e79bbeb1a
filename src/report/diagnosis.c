/* The rules that recognize unhealthy runs, applied to each step and evaluation as it arrives. */
#include "report/diagnosis.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "formats/chart.h"
#include "base/error.h"

/* Thresholds; the section "Unhealthy runs" of docs/reliability.md gives the reasons. Losses are in units of the task's scale:
 * nats per masked word, or multiples of the loss that a labeled task has to overcome. */
#define MEAN_STEPS 64   /* window for means */
#define SPIKE_STEPS 128 /* window of losses that a spike is compared with */
#define SPIKE_LEAST 32  /* minimum number of losses for judging a spike */
#define SPIKE_DEVIATIONS 6.0
#define SPIKE_LOSS 0.3
#define SPIKE_LASTS 32 /* a spike this long is a new level, not a spike */
#define RISE_LOSS 0.25 /* rise of the mean above its best */
#define DIVERGED_LOSS 1.0
#define ABOVE_GUESSING 0.5
#define NORM_GROWTH 5.0
#define STUCK_ABOVE 0.5    /* a run this close to the prior loss has learned frequencies */
#define STILL_FALLING 0.05 /* progress during half of the patience */
#define WORSE_LOSS 0.05    /* rise of an evaluation's loss above its best */
#define WORSE_SHARE 0.005  /* drop of an accuracy or the like below its best, plus two standard errors */
#define WORSE_TIMES 3
#define COLLAPSED_LEAST 10  /* with fewer examples, a single answer may be right */
#define COLLAPSED_RATE 2e-6 /* a peak learning rate below this, a tenth of the usual, is too low, not too high */
#define REPEATED_EPOCHS 4.0
#define REPEATED_LOSS 0.5
#define PLANNED_EPOCHS 100.0
#define SPAN_SECONDS 20.0 /* length of training spans for measuring rates */
#define SPAN_STEPS 32
#define WAITING_SHARE 0.1
#define SLOWER_SHARE 0.5
#define SLOWER_SPANS 3

const char *const finding_names[FINDING_KINDS] = {
	[FINDING_SPIKE] = "spike",
	[FINDING_DIVERGED] = "diverged",
	[FINDING_RISING] = "rising",
	[FINDING_UNSTABLE] = "unstable",
	[FINDING_STUCK] = "stuck",
	[FINDING_SLOW] = "slow_learning",
	[FINDING_COLLAPSED] = "collapsed",
	[FINDING_OVERFITTING] = "overfitting",
	[FINDING_REPEATED] = "repeated_data",
	[FINDING_WAITING] = "waiting_for_data",
	[FINDING_SLOWER] = "slower",
	[FINDING_NON_FINITE] = "non_finite",
};

const enum finding_weight finding_weights[FINDING_KINDS] = {
	[FINDING_SPIKE] = FINDING_NOTE,        [FINDING_DIVERGED] = FINDING_SERIOUS,    [FINDING_RISING] = FINDING_WARNING,
	[FINDING_UNSTABLE] = FINDING_WARNING,  [FINDING_STUCK] = FINDING_SERIOUS,       [FINDING_SLOW] = FINDING_SERIOUS,
	[FINDING_COLLAPSED] = FINDING_SERIOUS, [FINDING_OVERFITTING] = FINDING_WARNING, [FINDING_REPEATED] = FINDING_WARNING,
	[FINDING_WAITING] = FINDING_NOTE,      [FINDING_SLOWER] = FINDING_NOTE,         [FINDING_NON_FINITE] = FINDING_WARNING,
};

static void window_clear(struct window *window, int size)
{
	*window = (struct window){.size = size};
}

static void window_add(struct window *window, double value)
{
	window->value[window->next] = value;
	window->next = (window->next + 1) % window->size;
	if (window->count < window->size)
		window->count++;
}

static double window_mean(const struct window *window)
{
	double sum = 0;
	for (int i = 0; i < window->count; i++)
		sum += window->value[i];
	return window->count ? sum / window->count : NAN;
}

static double window_deviation(const struct window *window)
{
	double mean = window_mean(window), sum = 0;
	for (int i = 0; i < window->count; i++)
		sum += (window->value[i] - mean) * (window->value[i] - mean);
	return window->count > 1 ? sqrt(sum / (window->count - 1)) : 0;
}

static double window_median(const struct window *window)
{
	double sorted[WINDOW_MOST];
	for (int i = 0; i < window->count; i++) {
		int k = i;
		for (; k > 0 && sorted[k - 1] > window->value[i]; k--)
			sorted[k] = sorted[k - 1];
		sorted[k] = window->value[i];
	}
	return window->count ? sorted[window->count / 2] : NAN;
}

static bool full(const struct window *window)
{
	return window->count == window->size;
}

/* Begins a finding. NULL: it was already reported, or there is no room. */
static struct finding *begin(struct diagnosis *diagnosis, struct findings *out, enum finding_kind kind)
{
	if (diagnosis->active[kind] || out->count == FINDINGS_AT_ONCE)
		return NULL;
	diagnosis->active[kind] = true;
	diagnosis->said[kind]++;
	struct finding *finding = &out->item[out->count++];
	*finding = (struct finding){.kind = kind};
	return finding;
}

/* Ends a finding that was reported. */
static void end(struct diagnosis *diagnosis, struct findings *out, enum finding_kind kind, const char *format, ...)
	PRINTF_LIKE(4, 5);
static void end(struct diagnosis *diagnosis, struct findings *out, enum finding_kind kind, const char *format, ...)
{
	if (!diagnosis->active[kind] || out->count == FINDINGS_AT_ONCE)
		return;
	diagnosis->active[kind] = false;
	struct finding *finding = &out->item[out->count++];
	*finding = (struct finding){.kind = kind, .over = true};
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(finding->text, sizeof finding->text, format, arguments);
	va_end(arguments);
}

#define SAY(finding, member, ...) snprintf((finding)->member, sizeof((finding)->member), __VA_ARGS__)

static void levels_clear(struct diagnosis *diagnosis, int64_t step)
{
	window_clear(&diagnosis->loss, MEAN_STEPS);
	window_clear(&diagnosis->trained, MEAN_STEPS);
	window_clear(&diagnosis->share, MEAN_STEPS);
	window_clear(&diagnosis->log_norm, MEAN_STEPS);
	window_clear(&diagnosis->recent, SPIKE_STEPS);
	window_clear(&diagnosis->rates, WINDOW_MOST);
	diagnosis->first_step = step;
	diagnosis->first_loss = diagnosis->best_loss = diagnosis->best_norm = NAN;
	diagnosis->above = 0;
	diagnosis->was_prior = false;
	diagnosis->counted_steps = diagnosis->counted_tokens = 0;
	diagnosis->half_loss = NAN;
	diagnosis->span_seconds = diagnosis->span_waited = 0;
	diagnosis->span_steps = diagnosis->span_tokens = 0;
	diagnosis->slow_spans = 0;
}

void diagnosis_start(struct diagnosis *diagnosis, const struct diagnosis_facts *facts)
{
	*diagnosis = (struct diagnosis){.facts = *facts};
	levels_clear(diagnosis, 0);
	for (int i = 0; i < DIAGNOSIS_SETS; i++)
		diagnosis->sets[i].score = diagnosis->sets[i].early_gap = NAN;
}

void diagnosis_phase(struct diagnosis *diagnosis, int64_t step)
{
	levels_clear(diagnosis, step);
	for (int i = 0; i < DIAGNOSIS_SETS; i++) {
		diagnosis->sets[i].score = NAN;
		diagnosis->sets[i].worse = 0;
	}
	diagnosis->active[FINDING_SPIKE] = diagnosis->active[FINDING_RISING] = false;
	diagnosis->active[FINDING_UNSTABLE] = diagnosis->active[FINDING_SLOWER] = false;
	diagnosis->active[FINDING_OVERFITTING] = false;
}

void diagnosis_plan(struct diagnosis *diagnosis, int64_t total_steps, double peak_rate)
{
	diagnosis->facts.total_steps = total_steps;
	diagnosis->facts.peak_rate = peak_rate;
}

static double scale_of(const struct diagnosis *diagnosis)
{
	return diagnosis->facts.task->scale;
}

/* A loss far above those before it. Spikes are not added to the losses that later ones are compared with. */
static void look_for_spike(struct diagnosis *diagnosis, const struct diagnosis_step *step, struct findings *out)
{
	struct window *recent = &diagnosis->recent;
	double mean = window_mean(recent), deviation = window_deviation(recent), above = step->loss - mean;
	bool spike = recent->count >= SPIKE_LEAST &&
		     above > fmax(SPIKE_DEVIATIONS * deviation, SPIKE_LOSS * scale_of(diagnosis)) &&
		     !(step->loss <= diagnosis->facts.task->spike_floor);
	if (!spike) {
		window_add(recent, step->loss);
		if (diagnosis->above > 0 && diagnosis->active[FINDING_SPIKE])
			end(diagnosis, out, FINDING_SPIKE, "The loss is back at %.3f, %" PRId64 " steps after the spike.",
			    step->loss, step->step - diagnosis->spike_step);
		diagnosis->above = 0;
		return;
	}
	if (diagnosis->above++ == 0) {
		diagnosis->spike_step = step->step;
		struct finding *finding = begin(diagnosis, out, FINDING_SPIKE);
		if (finding) {
			SAY(finding, text,
			    "The loss jumped to %.3f; over the %d steps before, it averaged %.3f (standard deviation %.3f).",
			    step->loss, recent->count, mean, deviation);
			SAY(finding, advice,
			    "The run usually recovers from a single spike. If spikes keep coming, lower the learning rate "
			    "(--learning_rate) or clip gradients harder (--max_grad_norm).");
		}
	}
	if (diagnosis->above >= SPIKE_LASTS) {
		/* The loss stays high: this is a new level, to be judged by the rules about rising losses. */
		window_clear(recent, SPIKE_STEPS);
		diagnosis->above = 0;
		diagnosis->active[FINDING_SPIKE] = false;
	}
}

/* Five standard errors of the mean loss; changes smaller than this are never reported. */
static double noise_of(const struct diagnosis *diagnosis)
{
	return 5 * window_deviation(&diagnosis->loss) / sqrt(MEAN_STEPS);
}

/* Checks whether the mean loss has risen above its best. */
static void look_for_rise(struct diagnosis *diagnosis, const struct diagnosis_step *step, struct findings *out)
{
	if (!full(&diagnosis->loss))
		return;
	const struct report_task *task = diagnosis->facts.task;
	double mean = window_mean(&diagnosis->loss), scale = task->scale;
	double noise = noise_of(diagnosis);
	double rise = mean - diagnosis->best_loss;
	double guessing = isnan(task->chance_loss) ? task->prior_loss : task->chance_loss; /* values have no chance loss */
	bool worse_than_guessing = mean > fmax(diagnosis->first_loss, guessing) + ABOVE_GUESSING * scale;
	if (worse_than_guessing || rise > DIVERGED_LOSS * scale + noise) {
		struct finding *finding = begin(diagnosis, out, FINDING_DIVERGED);
		if (!finding)
			return;
		diagnosis->active[FINDING_RISING] = true; /* covered by this finding */
		if (worse_than_guessing && isfinite(task->chance_loss))
			SAY(finding, text, "The run has diverged: the loss is %.2f; guessing at random would give %.2f.", mean,
			    task->chance_loss);
		else if (worse_than_guessing)
			SAY(finding, text, "The run has diverged: the loss is %.2f; it began at %.2f.", mean,
			    diagnosis->first_loss);
		else
			SAY(finding, text, "The run has diverged: the loss is %.2f; it was %.2f at step %" PRId64 ".", mean,
			    diagnosis->best_loss, diagnosis->best_step);
		SAY(finding, advice,
		    "%s with a --learning_rate three to ten times lower (it is %.3g), or with a longer warm-up (%s).",
		    worse_than_guessing ? "Start again" : "Start again, or from the weights of an earlier checkpoint,",
		    step->learning_rate, task->words.warmup);
		return;
	}
	if (rise > RISE_LOSS * scale + noise) {
		struct finding *finding = begin(diagnosis, out, FINDING_RISING);
		if (!finding)
			return;
		SAY(finding, text,
		    "The loss is rising: it averages %.3f over the last %d steps, and was %.3f at step %" PRId64 ".", mean,
		    MEAN_STEPS, diagnosis->best_loss, diagnosis->best_step);
		SAY(finding, advice,
		    "The learning rate (%.3g) is too high for this model and batch size: lower --learning_rate, or warm up for "
		    "longer (%s).",
		    step->learning_rate, task->words.warmup);
		return;
	}
	if (rise < RISE_LOSS * scale / 2) {
		if (diagnosis->active[FINDING_DIVERGED])
			diagnosis->active[FINDING_RISING] = false;
		end(diagnosis, out, FINDING_DIVERGED, "The loss is back at %.3f.", mean);
		end(diagnosis, out, FINDING_RISING, "The loss is back at %.3f.", mean);
	}
}

/* Growing gradients without progress precede a divergence. Growth is normal while the loss falls, as in fine-tuning, which begins
 * with a head that hardly depends on its input. */
static void look_at_norm(struct diagnosis *diagnosis, const struct diagnosis_step *step, struct findings *out)
{
	if (!full(&diagnosis->log_norm))
		return;
	double norm = exp(window_mean(&diagnosis->log_norm)), mean = window_mean(&diagnosis->loss);
	double rise = mean - diagnosis->best_loss;
	if (norm > NORM_GROWTH * diagnosis->best_norm && rise > RISE_LOSS * scale_of(diagnosis) / 4 + noise_of(diagnosis)) {
		struct finding *finding = begin(diagnosis, out, FINDING_UNSTABLE);
		if (!finding)
			return;
		SAY(finding, text,
		    "Gradients are growing: their norm is %.3g and was %.3g, and the loss (%.3f) is no longer falling.", norm,
		    diagnosis->best_norm, mean);
		SAY(finding, advice, "This is often the last sign before a run diverges: lower --learning_rate (it is %.3g).",
		    step->learning_rate);
	} else if (norm < NORM_GROWTH / 2 * diagnosis->best_norm) {
		end(diagnosis, out, FINDING_UNSTABLE, "Gradients are back to a norm of %.3g.", norm);
	}
}

/* How many steps without progress, at the full learning rate, make a run stuck or slow. */
static double patience(const struct diagnosis *diagnosis)
{
	double total = (double)diagnosis->facts.total_steps;
	if (total < 2000)
		return fmax(total / 5, 100);
	return total < 8000 ? 400 : total > 40000 ? 2000 : total / 20;
}

static void say_slow(const struct diagnosis *diagnosis, const struct diagnosis_step *step, struct finding *finding)
{
	const struct report_task *task = diagnosis->facts.task;
	char count[CHART_NUMBER_BYTES];
	SAY(finding, text,
	    "The loss hardly moves: it is %.3f after %s tokens and was %.3f at the start. Knowing only %s gives %.3f, which a "
	    "run learns first.",
	    window_mean(&diagnosis->loss), chart_number(count, (double)step->tokens, CHART_COUNT, 0), diagnosis->first_loss,
	    task->words.prior, task->prior_loss);
	SAY(finding, advice,
	    "The learning rate (%.3g) is far too low, or the weights do not change: a --learning_rate of %s is usual.",
	    step->learning_rate, task->words.usual_rates);
}

static void say_stuck(const struct diagnosis *diagnosis, const struct diagnosis_step *step, struct finding *finding)
{
	const struct report_task *task = diagnosis->facts.task;
	char count[CHART_NUMBER_BYTES], shares[160] = "";
	double share = window_mean(&diagnosis->share);
	if (isfinite(share) && isfinite(task->prior_share))
		snprintf(shares, sizeof shares, " The accuracy, %.1f %%, is close to that of always answering %s, %.1f %%.",
			 100 * share, task->words.frequent, 100 * task->prior_share);
	SAY(finding, text, "The run is stuck: the loss stays at %.3f after %s tokens; knowing only %s gives %.3f.%s",
	    window_mean(&diagnosis->loss), chart_number(count, (double)step->tokens, CHART_COUNT, 0), task->words.prior,
	    task->prior_loss, shares);
	SAY(finding, advice,
	    "%s with a --learning_rate three to ten times lower (it peaks at %.3g; %s is usual) and a longer warm-up (%s). %s",
	    task->words.why_stuck, diagnosis->facts.peak_rate, task->words.usual_rates, task->words.warmup,
	    task->words.check_data);
}

/* Checks progress against the prior loss. Steps are weighted by their share of the peak learning rate, so that a long warm-up
 * does not count as a plateau. */
static void look_for_progress(struct diagnosis *diagnosis, const struct diagnosis_step *step, double steps, double tokens,
			      struct findings *out)
{
	const struct diagnosis_facts *facts = &diagnosis->facts;
	const struct report_task *task = facts->task;
	if (!full(&diagnosis->loss) || isnan(task->prior_loss) || diagnosis->active[FINDING_DIVERGED])
		return;
	double mean = window_mean(&diagnosis->loss), share = window_mean(&diagnosis->share), scale = task->scale;
	if (mean < task->prior_loss - BEGUN_LOSS * scale || share > task->prior_share + BEGUN_SHARE) {
		end(diagnosis, out, FINDING_STUCK, "The loss (%.3f) is now below that of knowing only %s.", mean,
		    task->words.prior);
		end(diagnosis, out, FINDING_SLOW, "The loss (%.3f) is now below that of knowing only %s.", mean,
		    task->words.prior);
		diagnosis->counted_steps = diagnosis->counted_tokens = 0;
		diagnosis->half_loss = NAN;
		return;
	}
	/* Getting close for the first time is progress and restarts the count; later fluctuations around that level are not. */
	if (!diagnosis->was_prior && mean < task->prior_loss + STUCK_ABOVE * scale) {
		diagnosis->was_prior = true;
		diagnosis->counted_steps = diagnosis->counted_tokens = 0;
		diagnosis->half_loss = NAN;
	}
	double weight = facts->peak_rate > 0 ? fmin(step->learning_rate / facts->peak_rate, 1) : 1;
	diagnosis->counted_steps += weight * steps;
	diagnosis->counted_tokens += weight * tokens;
	double spent = diagnosis->counted_steps / patience(diagnosis);
	if (task->least_tokens > 0)
		spent = fmin(spent, diagnosis->counted_tokens / task->least_tokens);
	if (isnan(diagnosis->half_loss) && spent >= 0.5)
		diagnosis->half_loss = diagnosis->best_loss;
	if (spent < 1)
		return;
	/* Compare the lowest means: with too high a learning rate the level fluctuates, and a fall alone is no progress. */
	if (diagnosis->half_loss - diagnosis->best_loss > STILL_FALLING * scale) {
		diagnosis->counted_steps /= 2;
		diagnosis->counted_tokens /= 2;
		diagnosis->half_loss = diagnosis->best_loss;
		return;
	}
	bool moved = mean < diagnosis->first_loss - STILL_FALLING * 4 * scale;
	struct finding *finding = begin(diagnosis, out, diagnosis->was_prior || moved ? FINDING_STUCK : FINDING_SLOW);
	if (finding)
		(finding->kind == FINDING_SLOW ? say_slow : say_stuck)(diagnosis, step, finding);
}

static void look_at_speed(struct diagnosis *diagnosis, const struct diagnosis_step *step, double tokens, struct findings *out)
{
	if (!(step->seconds > 0))
		return;
	diagnosis->span_seconds += step->seconds;
	diagnosis->span_waited += step->waited;
	diagnosis->span_steps++;
	diagnosis->span_tokens += (int64_t)tokens;
	if (diagnosis->span_seconds < SPAN_SECONDS || diagnosis->span_steps < SPAN_STEPS)
		return;
	double share = diagnosis->span_waited / diagnosis->span_seconds;
	double rate = (double)diagnosis->span_tokens / diagnosis->span_seconds, usual = window_median(&diagnosis->rates);
	struct finding *finding;
	if (share > WAITING_SHARE && (finding = begin(diagnosis, out, FINDING_WAITING))) {
		SAY(finding, text, "Training spends %.0f %% of its time waiting for data.", 100 * share);
		SAY(finding, advice, "Put the data on a faster disk, or leave a core free for reading (--threads).");
	} else if (share < WAITING_SHARE / 2) {
		end(diagnosis, out, FINDING_WAITING, "Data arrives fast enough again (%.0f %% of the time spent waiting).",
		    100 * share);
	}
	diagnosis->slow_spans = rate < SLOWER_SHARE * usual ? diagnosis->slow_spans + 1 : 0;
	if (diagnosis->slow_spans >= SLOWER_SPANS && (finding = begin(diagnosis, out, FINDING_SLOWER))) {
		SAY(finding, text, "Training has slowed down: %.0f tokens/s, %.0f before.", rate, usual);
		SAY(finding, advice, "Look for other programs on this machine, overheating, or memory that has run full.");
	} else if (rate > 0.8 * usual) {
		end(diagnosis, out, FINDING_SLOWER, "The speed is back to %.0f tokens/s.", rate);
	}
	if (diagnosis->slow_spans == 0)
		window_add(&diagnosis->rates, rate);
	diagnosis->span_seconds = diagnosis->span_waited = 0;
	diagnosis->span_steps = diagnosis->span_tokens = 0;
}

/* Updates the means with this step. Spikes are included; steps with a non-finite loss changed no weights and are left to the
 * guard. */
static void take_in(struct diagnosis *diagnosis, const struct diagnosis_step *step)
{
	if (isfinite(step->loss)) {
		if (isnan(diagnosis->first_loss))
			diagnosis->first_loss = step->loss;
		window_add(&diagnosis->loss, step->loss);
		window_add(&diagnosis->trained, step->loss);
		if (isfinite(step->share))
			window_add(&diagnosis->share, step->share);
	}
	if (isfinite(step->grad_norm) && step->grad_norm > 0)
		window_add(&diagnosis->log_norm, log(step->grad_norm));
	double mean = window_mean(&diagnosis->loss);
	if (full(&diagnosis->loss) && !(mean >= diagnosis->best_loss)) {
		diagnosis->best_loss = mean;
		diagnosis->best_step = step->step;
		diagnosis->best_norm = exp(window_mean(&diagnosis->log_norm));
	}
	diagnosis->step = step->step;
	diagnosis->tokens = step->tokens;
}

void diagnosis_step(struct diagnosis *diagnosis, const struct diagnosis_step *step, struct findings *out)
{
	double steps = (double)(step->step - diagnosis->step), tokens = (double)(step->tokens - diagnosis->tokens);
	double epoch = diagnosis->facts.epoch_tokens;
	const struct report_words *words = &diagnosis->facts.task->words;
	double planned = epoch > 0 ? tokens / steps * (double)diagnosis->facts.total_steps / epoch : 0;
	struct finding *finding;
	if (diagnosis->step == 0 && planned > PLANNED_EPOCHS && (finding = begin(diagnosis, out, FINDING_REPEATED))) {
		SAY(finding, text, "There is little %s for a run of this length: it will be read %.0f times.", words->data,
		    planned);
		SAY(finding, advice, "Models gain little beyond some 40 readings: add %s, or lower %s.", words->data,
		    words->length);
	}
	if (step->skipped_steps > diagnosis->skipped_steps && (finding = begin(diagnosis, out, FINDING_NON_FINITE))) {
		SAY(finding, text, "A gradient was not finite; the update was skipped and the weights are unchanged.");
		SAY(finding, advice, "Once is harmless. Three in a row end the run: then lower --learning_rate.");
	}
	diagnosis->skipped_steps = step->skipped_steps;
	take_in(diagnosis, step);
	if (isfinite(step->loss))
		look_for_spike(diagnosis, step, out);
	look_for_rise(diagnosis, step, out);
	look_at_norm(diagnosis, step, out);
	look_for_progress(diagnosis, step, steps, tokens, out);
	look_at_speed(diagnosis, step, tokens, out);
}

/* How much worse a score must be to count as worse. */
static double worse_margin(const struct report_column *column, double score, double examples, double scale)
{
	if (column->unit == UNIT_NATS || column->direction == DIRECTION_LOWER)
		return WORSE_LOSS * scale;
	double whole = column->unit == UNIT_POINTS ? 100 : 1;
	double share = fmin(fmax(score / whole, 0), 1);
	double error = examples > 0 ? sqrt(fmax(share * (1 - share), 0.01) / examples) : 0.01;
	return whole * (WORSE_SHARE + 2 * error);
}

/* Is the set's score getting worse while the training loss falls? */
static bool overfits(const struct diagnosis *diagnosis, int set)
{
	double fall = diagnosis->sets[set].train_loss - window_mean(&diagnosis->trained);
	return diagnosis->sets[set].worse >= WORSE_TIMES && fall > WORSE_LOSS * scale_of(diagnosis);
}

static void look_for_overfitting(struct diagnosis *diagnosis, const struct diagnosis_evaluation *evaluation, struct findings *out)
{
	const struct report_task *task = diagnosis->facts.task;
	const char *decides = task->decides ? task->decides : task->loss;
	const struct report_column *found = report_task_column(task, decides);
	struct report_column column = found ? *found : report_column(decides);
	enum measure_direction direction = column.direction;
	int set = evaluation->set;
	if (direction == DIRECTION_NONE) /* better and worse are undefined */
		return;
	double train = window_mean(&diagnosis->trained), score = evaluation->score, best = diagnosis->sets[set].score;
	double margin = worse_margin(&column, best, evaluation->examples, task->scale);
	bool named = evaluation->name && *evaluation->name, loss = strcmp(decides, task->loss) == 0;
	char now[REPORT_NUMBER_BYTES], then[REPORT_NUMBER_BYTES];
	if (measure_is_better(direction, score, best, 0)) {
		diagnosis->sets[set].score = score;
		diagnosis->sets[set].train_loss = train;
		diagnosis->sets[set].step = evaluation->step;
		diagnosis->sets[set].worse = 0;
		if (set == diagnosis->overfitting_set)
			end(diagnosis, out, FINDING_OVERFITTING, "The held-out %s (%s) is at its best again.", column.heading,
			    report_number(now, score, column.unit));
		return;
	}
	diagnosis->sets[set].worse = measure_is_better(direction, best, score, margin) ? diagnosis->sets[set].worse + 1 : 0;
	struct finding *finding;
	if (!overfits(diagnosis, set) || !(finding = begin(diagnosis, out, FINDING_OVERFITTING)))
		return;
	diagnosis->overfitting_set = set;
	SAY(finding, text,
	    "The %s on %s%.48s%s is getting worse while the training loss falls: %s now, %s at step %" PRId64
	    "; training loss %.3f now, %.3f then.",
	    loss ? "loss" : column.heading, named ? "'" : "the ", named ? evaluation->name : task->words.held_out,
	    named ? "'" : "", report_number(now, score, column.unit), report_number(then, best, column.unit),
	    diagnosis->sets[set].step, train, diagnosis->sets[set].train_loss);
	SAY(finding, advice,
	    "%sThe checkpoint of step %" PRId64 " is the better model (--save_best keeps the best one). What helps: %s.",
	    named && task->judges_repeats ? "If that is other text than the run trains on, the model is forgetting it. " : "",
	    diagnosis->sets[set].step, task->words.remedy);
}

/* Checks whether every held-out example gets the same answer although the right answers differ. */
static void look_for_collapse(struct diagnosis *diagnosis, const struct diagnosis_evaluation *evaluation, struct findings *out)
{
	const struct report_confusion *confusion = evaluation->confusion;
	const struct report_words *words = &diagnosis->facts.task->words;
	if (!confusion || (evaluation->name && *evaluation->name))
		return;
	int64_t total = 0, most_right = 0;
	int32_t predicted = 0, right = 0, only = 0;
	for (int32_t c = 0; c < confusion->classes; c++) {
		int64_t as_right = 0, as_predicted = 0;
		for (int32_t k = 0; k < confusion->classes; k++) {
			as_right += confusion->counts[(int64_t)c * confusion->classes + k];
			as_predicted += confusion->counts[(int64_t)k * confusion->classes + c];
		}
		total += as_right;
		right += as_right > 0;
		most_right = as_right > most_right ? as_right : most_right;
		predicted += as_predicted > 0;
		only = as_predicted > 0 ? c : only;
	}
	if (predicted > 1) {
		if (evaluation->set < DIAGNOSIS_SETS)
			diagnosis->sets[evaluation->set].told_apart = true;
		end(diagnosis, out, FINDING_COLLAPSED, "The model now predicts %d different labels on the %s.", predicted,
		    words->held_out);
		return;
	}
	struct finding *finding;
	if (total < COLLAPSED_LEAST || right < 2 || predicted == 0 || !(finding = begin(diagnosis, out, FINDING_COLLAPSED)))
		return;
	double share = (double)most_right / (double)total;
	bool told_apart = evaluation->set < DIAGNOSIS_SETS && diagnosis->sets[evaluation->set].told_apart;
	SAY(finding, text,
	    "The model %s: it predicts \xE2\x80\x9C%.60s\xE2\x80\x9D for all %" PRId64
	    " examples of the %s, which have %d different labels.",
	    told_apart ? "has collapsed" : "has not begun to tell the labels apart, or has collapsed", confusion->labels[only],
	    total, words->held_out, right);
	if (diagnosis->facts.peak_rate > 0 && diagnosis->facts.peak_rate < COLLAPSED_RATE) {
		SAY(finding, advice, "Raise --learning_rate: it peaks at %.3g, which is too low to learn anything; %s is usual.",
		    diagnosis->facts.peak_rate, words->usual_rates);
		return;
	}
	SAY(finding, advice,
	    "%sry a lower --learning_rate (it peaks at %.3g; %s is usual), a longer warm-up (%s) and another --seed.%s",
	    told_apart ? "T"
		       : "If the training loss has hardly fallen, the model needs more steps (--num_train_epochs), a higher "
			 "--learning_rate, or longer pre-training. Otherwise t",
	    diagnosis->facts.peak_rate, words->usual_rates, words->warmup,
	    share > 0.9 ? " One label is very frequent: --class_weights balanced makes the others count."
			: " If that does not help, check that each label belongs to its text.");
}

void diagnosis_evaluation(struct diagnosis *diagnosis, const struct diagnosis_evaluation *evaluation, struct findings *out)
{
	int set = evaluation->set;
	const struct report_task *task = diagnosis->facts.task;
	look_for_collapse(diagnosis, evaluation, out);
	if (set >= DIAGNOSIS_SETS || !isfinite(evaluation->score))
		return;
	look_for_overfitting(diagnosis, evaluation, out);
	double train = window_mean(&diagnosis->trained), epoch = diagnosis->facts.epoch_tokens;
	double epochs = epoch > 0 ? (double)diagnosis->tokens / epoch : 0;
	double gap = evaluation->loss - train;
	struct finding *finding;
	if ((evaluation->name && *evaluation->name) || !task->judges_repeats)
		return;
	if (epochs < 1 && epoch > 0 && full(&diagnosis->trained))
		diagnosis->sets[set].early_gap = gap;
	double usual = isnan(diagnosis->sets[set].early_gap) ? 0 : diagnosis->sets[set].early_gap;
	if (epochs >= REPEATED_EPOCHS && gap - usual > REPEATED_LOSS * task->scale && full(&diagnosis->trained) &&
	    (finding = begin(diagnosis, out, FINDING_REPEATED))) {
		SAY(finding, text,
		    "The model is learning its %s by heart: the training loss is %.3f and the held-out loss %.3f, after reading "
		    "it %.1f times.",
		    task->words.data, train, evaluation->loss, epochs);
		SAY(finding, advice, "There is too little %s for this model and length of run. What helps: %s.", task->words.data,
		    task->words.remedy);
	}
}

void diagnosis_replay_step(struct diagnosis *diagnosis, const struct diagnosis_step *step)
{
	/* For evaluations, a logged step stands for those since the one before, so that their mean spans as many steps as ever.
	 * The rules about the training loss need values that are independent of each other. */
	int64_t steps = step->step - diagnosis->step;
	for (int64_t i = 1; i < steps && i < MEAN_STEPS && isfinite(step->loss); i++)
		window_add(&diagnosis->trained, step->loss);
	take_in(diagnosis, step);
	diagnosis->skipped_steps = step->skipped_steps;
	if (isfinite(step->loss))
		window_add(&diagnosis->recent, step->loss);
}

void diagnosis_replay_evaluation(struct diagnosis *diagnosis, const struct diagnosis_evaluation *evaluation)
{
	struct findings ignored = {0};
	struct diagnosis before = *diagnosis;
	diagnosis_evaluation(diagnosis, evaluation, &ignored);
	memcpy(diagnosis->active, before.active, sizeof before.active);
	memcpy(diagnosis->said, before.said, sizeof before.said);
}

void diagnosis_replay_finding(struct diagnosis *diagnosis, const char *name, bool over)
{
	for (int kind = 0; kind < FINDING_KINDS; kind++) {
		if (strcmp(finding_names[kind], name) != 0)
			continue;
		diagnosis->active[kind] = !over && kind != FINDING_SPIKE; /* a spike is over when a run resumes */
		diagnosis->said[kind] += !over;
		if (kind == FINDING_DIVERGED)
			diagnosis->active[FINDING_RISING] = !over; /* covered by that finding */
		for (int i = DIAGNOSIS_SETS; kind == FINDING_OVERFITTING && !over && i-- > 0;)
			if (overfits(diagnosis, i))
				diagnosis->overfitting_set = i;
	}
}

int diagnosis_gravest(const struct diagnosis *diagnosis, bool finished)
{
	static const enum finding_kind order[] = {
		FINDING_DIVERGED, FINDING_COLLAPSED,   FINDING_SLOW,     FINDING_STUCK,   FINDING_RISING,
		FINDING_UNSTABLE, FINDING_OVERFITTING, FINDING_REPEATED, FINDING_WAITING, FINDING_SLOWER,
	};
	for (size_t i = 0; i < sizeof order / sizeof *order; i++)
		if (diagnosis->active[order[i]] && !(finished && (order[i] == FINDING_WAITING || order[i] == FINDING_SLOWER)))
			return (int)order[i];
	return -1;
}
