#include "report/diagnosis.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "formats/chart.h"
#include "base/error.h"

/* Thresholds; docs/reliability.md, "Sick runs", has the reasons. */
#define MEAN_STEPS 64   /* the window of means */
#define SPIKE_STEPS 128 /* losses a spike is judged against */
#define SPIKE_LEAST 32  /* fewer are no ground to judge on */
#define SPIKE_DEVIATIONS 6.0
#define SPIKE_NATS 0.3
#define SPIKE_LASTS 32 /* a spike this long is a new level, not a spike */
#define RISE_NATS 0.25 /* of the mean above its best */
#define DIVERGED_NATS 1.0
#define ABOVE_GUESSING_NATS 0.5
#define NORM_GROWTH 5.0
#define STUCK_BELOW 0.1     /* this far below the unigram entropy a run has left it behind */
#define STUCK_ABOVE 0.5     /* this near it a run has learned frequencies */
#define STUCK_ACCURACY 0.03 /* above that of the most frequent token */
#define STUCK_TOKENS 1e6
#define STILL_FALLING 0.05 /* nats over half the span */
#define OVERFIT_NATS 0.05
#define OVERFIT_TIMES 3
#define REPEATED_EPOCHS 4.0
#define REPEATED_NATS 0.5
#define PLANNED_EPOCHS 100.0
#define SPAN_SECONDS 20.0 /* of training, for rates */
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
	[FINDING_OVERFITTING] = "overfitting",
	[FINDING_REPEATED] = "repeated_data",
	[FINDING_WAITING] = "waiting_for_data",
	[FINDING_SLOWER] = "slower",
	[FINDING_NON_FINITE] = "non_finite",
};

const enum finding_weight finding_weights[FINDING_KINDS] = {
	[FINDING_SPIKE] = FINDING_NOTE,          [FINDING_DIVERGED] = FINDING_SERIOUS,   [FINDING_RISING] = FINDING_WARNING,
	[FINDING_UNSTABLE] = FINDING_WARNING,    [FINDING_STUCK] = FINDING_SERIOUS,      [FINDING_SLOW] = FINDING_SERIOUS,
	[FINDING_OVERFITTING] = FINDING_WARNING, [FINDING_REPEATED] = FINDING_WARNING,   [FINDING_WAITING] = FINDING_NOTE,
	[FINDING_SLOWER] = FINDING_NOTE,         [FINDING_NON_FINITE] = FINDING_WARNING,
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

/* Begins a finding, or returns NULL if it is said already. */
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

/* Ends one that was said. */
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
	window_clear(&diagnosis->accuracy, MEAN_STEPS);
	window_clear(&diagnosis->log_norm, MEAN_STEPS);
	window_clear(&diagnosis->recent, SPIKE_STEPS);
	window_clear(&diagnosis->rates, WINDOW_MOST);
	diagnosis->first_step = step;
	diagnosis->first_loss = diagnosis->best_loss = diagnosis->best_norm = NAN;
	diagnosis->above = 0;
	diagnosis->was_frequencies = false;
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
		diagnosis->sets[i].loss = diagnosis->sets[i].early_gap = NAN;
}

void diagnosis_phase(struct diagnosis *diagnosis, int64_t step)
{
	levels_clear(diagnosis, step);
	for (int i = 0; i < DIAGNOSIS_SETS; i++) {
		diagnosis->sets[i].loss = NAN;
		diagnosis->sets[i].above = 0;
	}
	diagnosis->active[FINDING_SPIKE] = diagnosis->active[FINDING_RISING] = false;
	diagnosis->active[FINDING_UNSTABLE] = diagnosis->active[FINDING_SLOWER] = false;
}

void diagnosis_plan(struct diagnosis *diagnosis, int64_t total_steps, double peak_rate)
{
	diagnosis->facts.total_steps = total_steps;
	diagnosis->facts.peak_rate = peak_rate;
}

/* A loss far above those before it. Spikes stay out of what the next ones are judged against. */
static void look_for_spike(struct diagnosis *diagnosis, const struct diagnosis_step *step, struct findings *out)
{
	struct window *recent = &diagnosis->recent;
	double mean = window_mean(recent), deviation = window_deviation(recent), above = step->mlm_loss - mean;
	bool spike = recent->count >= SPIKE_LEAST && above > fmax(SPIKE_DEVIATIONS * deviation, SPIKE_NATS);
	if (!spike) {
		window_add(recent, step->mlm_loss);
		if (diagnosis->above > 0 && diagnosis->active[FINDING_SPIKE])
			end(diagnosis, out, FINDING_SPIKE, "The loss is back at %.3f, %" PRId64 " steps after the spike.",
			    step->mlm_loss, step->step - diagnosis->spike_step);
		diagnosis->above = 0;
		return;
	}
	if (diagnosis->above++ == 0) {
		diagnosis->spike_step = step->step;
		struct finding *finding = begin(diagnosis, out, FINDING_SPIKE);
		if (finding) {
			SAY(finding, text, "The loss jumped to %.3f; the %d steps before lay at %.3f, deviation %.3f.",
			    step->mlm_loss, recent->count, mean, deviation);
			SAY(finding, advice,
			    "A single spike heals by itself. If they return, lower the learning rate "
			    "(--learning_rate) or clip harder (--max_grad_norm).");
		}
	}
	if (diagnosis->above >= SPIKE_LASTS) {
		/* It stays up there: a new level, which the rules about rising judge. */
		window_clear(recent, SPIKE_STEPS);
		diagnosis->above = 0;
		diagnosis->active[FINDING_SPIKE] = false;
	}
}

static double larger(double a, double b)
{
	return a > b ? a : b; /* b if a is NaN */
}

/* The mean has risen above its best. */
static void look_for_rise(struct diagnosis *diagnosis, const struct diagnosis_step *step, struct findings *out)
{
	if (!full(&diagnosis->loss))
		return;
	double mean = window_mean(&diagnosis->loss);
	double noise = 5 * window_deviation(&diagnosis->loss) / sqrt(MEAN_STEPS);
	double guessing = larger(diagnosis->first_loss, log(diagnosis->facts.vocab_size)) + ABOVE_GUESSING_NATS;
	double rise = mean - diagnosis->best_loss;
	bool worse_than_guessing = mean > guessing;
	if (worse_than_guessing || rise > DIVERGED_NATS + noise) {
		struct finding *finding = begin(diagnosis, out, FINDING_DIVERGED);
		if (!finding)
			return;
		diagnosis->active[FINDING_RISING] = true; /* said by this */
		if (worse_than_guessing)
			SAY(finding, text, "The run has diverged: the loss is %.2f; guessing at random would give %.2f.", mean,
			    log(diagnosis->facts.vocab_size));
		else
			SAY(finding, text, "The run has diverged: the loss is %.2f and was %.2f at step %" PRId64 ".", mean,
			    diagnosis->best_loss, diagnosis->best_step);
		SAY(finding, advice,
		    "%s with a --learning_rate three to ten times lower (it is %.3g), or a longer warm-up (--num_warmup_steps).",
		    worse_than_guessing ? "Start again" : "Go back to a checkpoint from before, or start again,",
		    step->learning_rate);
		return;
	}
	if (rise > RISE_NATS + noise) {
		struct finding *finding = begin(diagnosis, out, FINDING_RISING);
		if (!finding)
			return;
		SAY(finding, text, "The loss is rising: %.3f over the last %d steps, %.3f at step %" PRId64 ".", mean, MEAN_STEPS,
		    diagnosis->best_loss, diagnosis->best_step);
		SAY(finding, advice,
		    "The learning rate (%.3g) is too high for this model and batch: lower --learning_rate, or warm up longer "
		    "(--num_warmup_steps).",
		    step->learning_rate);
		return;
	}
	if (rise < RISE_NATS / 2) {
		if (diagnosis->active[FINDING_DIVERGED])
			diagnosis->active[FINDING_RISING] = false;
		end(diagnosis, out, FINDING_DIVERGED, "The loss is back at %.3f.", mean);
		end(diagnosis, out, FINDING_RISING, "The loss is back at %.3f.", mean);
	}
}

/* Gradients grow while nothing is gained: the step before a divergence. */
static void look_at_norm(struct diagnosis *diagnosis, const struct diagnosis_step *step, struct findings *out)
{
	if (!full(&diagnosis->log_norm))
		return;
	double norm = exp(window_mean(&diagnosis->log_norm)), mean = window_mean(&diagnosis->loss);
	bool warm = step->learning_rate > 0.9 * diagnosis->facts.peak_rate || !isnan(diagnosis->best_norm);
	if (warm && !(norm > diagnosis->best_norm))
		diagnosis->best_norm = norm;
	if (norm > NORM_GROWTH * diagnosis->best_norm && mean > diagnosis->best_loss + RISE_NATS / 4) {
		struct finding *finding = begin(diagnosis, out, FINDING_UNSTABLE);
		if (!finding)
			return;
		SAY(finding, text, "Gradients grow: their norm is %.3g and was %.3g, and the loss (%.3f) does not fall.", norm,
		    diagnosis->best_norm, mean);
		SAY(finding, advice, "Often the last sign before a run diverges: lower --learning_rate (it is %.3g).",
		    step->learning_rate);
	} else if (norm < NORM_GROWTH / 2 * diagnosis->best_norm) {
		end(diagnosis, out, FINDING_UNSTABLE, "Gradients are back to a norm of %.3g.", norm);
	}
}

/* Steps at the full learning rate without progress after which a run is called stuck or slow. */
static double patience(const struct diagnosis *diagnosis)
{
	double total = (double)diagnosis->facts.total_steps;
	if (total < 2000)
		return larger(total / 5, 100);
	return total < 8000 ? 400 : total > 40000 ? 2000 : total / 20;
}

/* Progress against the unigram entropy. Steps count by their share of the peak learning rate: a long warm-up is no
 * plateau. */
static void look_for_progress(struct diagnosis *diagnosis, const struct diagnosis_step *step, double steps, double tokens,
			      struct findings *out)
{
	const struct diagnosis_facts *facts = &diagnosis->facts;
	if (!full(&diagnosis->loss) || isnan(facts->unigram_entropy) || diagnosis->active[FINDING_DIVERGED])
		return;
	double mean = window_mean(&diagnosis->loss), accuracy = window_mean(&diagnosis->accuracy);
	if (mean < facts->unigram_entropy - STUCK_BELOW || accuracy > facts->frequent_accuracy + STUCK_ACCURACY) {
		end(diagnosis, out, FINDING_STUCK, "The loss (%.3f) has left the level of word frequencies.", mean);
		end(diagnosis, out, FINDING_SLOW, "The loss (%.3f) is below the level of word frequencies.", mean);
		diagnosis->counted_steps = diagnosis->counted_tokens = 0;
		diagnosis->half_loss = NAN;
		return;
	}
	/* Coming near is progress, and counts from there; wandering about the border afterwards is none. */
	if (!diagnosis->was_frequencies && mean < facts->unigram_entropy + STUCK_ABOVE) {
		diagnosis->was_frequencies = true;
		diagnosis->counted_steps = diagnosis->counted_tokens = 0;
		diagnosis->half_loss = NAN;
	}
	double weight = facts->peak_rate > 0 ? fmin(step->learning_rate / facts->peak_rate, 1) : 1;
	diagnosis->counted_steps += weight * steps;
	diagnosis->counted_tokens += weight * tokens;
	double share = fmin(diagnosis->counted_steps / patience(diagnosis), diagnosis->counted_tokens / STUCK_TOKENS);
	if (isnan(diagnosis->half_loss) && share >= 0.5)
		diagnosis->half_loss = diagnosis->best_loss;
	if (share < 1)
		return;
	/* The lowest means are compared: at too high a rate the level wanders, and a way down is no progress. */
	if (diagnosis->half_loss - diagnosis->best_loss > STILL_FALLING) {
		diagnosis->counted_steps /= 2;
		diagnosis->counted_tokens /= 2;
		diagnosis->half_loss = diagnosis->best_loss;
		return;
	}
	char count[CHART_NUMBER_BYTES];
	chart_number(count, (double)step->tokens, CHART_COUNT, 0);
	bool moved = mean < diagnosis->first_loss - STILL_FALLING * 4;
	struct finding *finding = begin(diagnosis, out, diagnosis->was_frequencies || moved ? FINDING_STUCK : FINDING_SLOW);
	if (!finding)
		return;
	if (finding->kind == FINDING_SLOW) {
		SAY(finding, text,
		    "The loss hardly moves: %.3f after %s tokens, %.3f at the start. Word frequencies alone give %.3f and are "
		    "learned within the first million tokens at a fitting rate.",
		    mean, count, diagnosis->first_loss, facts->unigram_entropy);
		SAY(finding, advice,
		    "The learning rate (%.3g) is far too low, or the weights do not change: a --learning_rate of 1e-4 to 1e-3 is "
		    "usual.",
		    step->learning_rate);
		return;
	}
	SAY(finding, text,
	    "The run is stuck: the loss stays at %.3f after %s tokens. Knowing nothing but word frequencies gives %.3f; "
	    "the accuracy, %.1f %%, is near that of always saying the most frequent word, %.1f %%.",
	    mean, count, facts->unigram_entropy, 100 * accuracy, 100 * facts->frequent_accuracy);
	SAY(finding, advice,
	    "Most often the learning rate (%.3g) is too high or the warm-up too short: start again with a third to a tenth of "
	    "--learning_rate. "
	    "Otherwise look at the text: lines that repeat, shuffled words, a vocabulary of another language.",
	    facts->peak_rate);
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
		SAY(finding, text, "The processors wait for data %.0f %% of the time.", 100 * share);
		SAY(finding, advice, "Put the shards on a faster disk, or leave a core free for reading (--threads).");
	} else if (share < WAITING_SHARE / 2) {
		end(diagnosis, out, FINDING_WAITING, "Data comes fast enough again (%.0f %% waiting).", 100 * share);
	}
	diagnosis->slow_spans = rate < SLOWER_SHARE * usual ? diagnosis->slow_spans + 1 : 0;
	if (diagnosis->slow_spans >= SLOWER_SPANS && (finding = begin(diagnosis, out, FINDING_SLOWER))) {
		SAY(finding, text, "Training has become slower: %.0f tokens/s, %.0f before.", rate, usual);
		SAY(finding, advice, "Look for other programs on this machine, heat, or a full memory.");
	} else if (rate > 0.8 * usual) {
		end(diagnosis, out, FINDING_SLOWER, "The speed is back at %.0f tokens/s.", rate);
	}
	if (diagnosis->slow_spans == 0)
		window_add(&diagnosis->rates, rate);
	diagnosis->span_seconds = diagnosis->span_waited = 0;
	diagnosis->span_steps = diagnosis->span_tokens = 0;
}

/* The means with this step in them. Means take in spikes; steps whose loss is not finite changed no weight and are the
 * guard's affair. */
static void take_in(struct diagnosis *diagnosis, const struct diagnosis_step *step)
{
	if (isfinite(step->mlm_loss)) {
		if (isnan(diagnosis->first_loss))
			diagnosis->first_loss = step->mlm_loss;
		window_add(&diagnosis->loss, step->mlm_loss);
		window_add(&diagnosis->accuracy, step->mlm_accuracy);
	}
	if (isfinite(step->grad_norm) && step->grad_norm > 0)
		window_add(&diagnosis->log_norm, log(step->grad_norm));
	double mean = window_mean(&diagnosis->loss);
	if (full(&diagnosis->loss) && !(mean >= diagnosis->best_loss)) {
		diagnosis->best_loss = mean;
		diagnosis->best_step = step->step;
	}
	diagnosis->step = step->step;
	diagnosis->tokens = step->tokens;
}

void diagnosis_step(struct diagnosis *diagnosis, const struct diagnosis_step *step, struct findings *out)
{
	double steps = (double)(step->step - diagnosis->step), tokens = (double)(step->tokens - diagnosis->tokens);
	double epoch = diagnosis->facts.epoch_tokens;
	double planned = epoch > 0 ? tokens / steps * (double)diagnosis->facts.total_steps / epoch : 0;
	struct finding *finding;
	if (diagnosis->step == 0 && planned > PLANNED_EPOCHS && (finding = begin(diagnosis, out, FINDING_REPEATED))) {
		SAY(finding, text, "There is little text for so long a run: it will be read %.0f times.", planned);
		SAY(finding, advice, "Models gain little beyond some 40 readings: give more text, or fewer --num_train_steps.");
	}
	if (step->skipped_steps > diagnosis->skipped_steps && (finding = begin(diagnosis, out, FINDING_NON_FINITE))) {
		SAY(finding, text, "A gradient was not finite; the update was left out and the weights are as they were.");
		SAY(finding, advice, "Once is harmless. Three in a row end the run: lower --learning_rate then.");
	}
	diagnosis->skipped_steps = step->skipped_steps;
	take_in(diagnosis, step);
	if (isfinite(step->mlm_loss))
		look_for_spike(diagnosis, step, out);
	look_for_rise(diagnosis, step, out);
	look_at_norm(diagnosis, step, out);
	look_for_progress(diagnosis, step, steps, tokens, out);
	look_at_speed(diagnosis, step, tokens, out);
}

void diagnosis_evaluation(struct diagnosis *diagnosis, int set, const char *name, int64_t step, double mlm_loss,
			  struct findings *out)
{
	if (set >= DIAGNOSIS_SETS || !isfinite(mlm_loss))
		return;
	double train = window_mean(&diagnosis->loss), epoch = diagnosis->facts.epoch_tokens;
	double epochs = epoch > 0 ? (double)diagnosis->tokens / epoch : 0;
	bool named = name && *name;
	if (!(mlm_loss >= diagnosis->sets[set].loss)) {
		diagnosis->sets[set].loss = mlm_loss;
		diagnosis->sets[set].train_loss = train;
		diagnosis->sets[set].step = step;
		diagnosis->sets[set].above = 0;
		if (set == diagnosis->overfitting_set)
			end(diagnosis, out, FINDING_OVERFITTING, "The held-out loss (%.3f) is at its best again.", mlm_loss);
	} else if (mlm_loss > diagnosis->sets[set].loss + OVERFIT_NATS) {
		diagnosis->sets[set].above++;
	} else {
		diagnosis->sets[set].above = 0;
	}
	struct finding *finding;
	if (diagnosis->sets[set].above >= OVERFIT_TIMES && train < diagnosis->sets[set].train_loss - OVERFIT_NATS &&
	    (finding = begin(diagnosis, out, FINDING_OVERFITTING))) {
		diagnosis->overfitting_set = set;
		SAY(finding, text,
		    "%s%.48s%s rises while training loss falls: %.3f now, %.3f at step %" PRId64
		    "; training %.3f now, %.3f then.",
		    named ? "The loss on '" : "The held-out loss", named ? name : "", named ? "'" : "", mlm_loss,
		    diagnosis->sets[set].loss, diagnosis->sets[set].step, train, diagnosis->sets[set].train_loss);
		SAY(finding, advice, "%sThe checkpoint of that step is the better model; more text or fewer steps would help.",
		    named ? "It is over-fitting, or forgetting if that is other text than it trains on. " : "");
	}
	if (named)
		return;
	double gap = mlm_loss - train;
	if (epochs < 1 && epoch > 0 && full(&diagnosis->loss))
		diagnosis->sets[set].early_gap = gap;
	double usual = isnan(diagnosis->sets[set].early_gap) ? 0 : diagnosis->sets[set].early_gap;
	if (epochs >= REPEATED_EPOCHS && gap - usual > REPEATED_NATS && full(&diagnosis->loss) &&
	    (finding = begin(diagnosis, out, FINDING_REPEATED))) {
		SAY(finding, text,
		    "It learns its text by heart: training loss %.3f, held-out %.3f, after reading the text %.1f times.", train,
		    mlm_loss, epochs);
		SAY(finding, advice,
		    "The text is small for this model and length of run: more text, a smaller model, or more dropout.");
	}
}

void diagnosis_replay_step(struct diagnosis *diagnosis, const struct diagnosis_step *step)
{
	take_in(diagnosis, step);
	diagnosis->skipped_steps = step->skipped_steps;
	if (isfinite(step->mlm_loss))
		window_add(&diagnosis->recent, step->mlm_loss);
}

void diagnosis_replay_finding(struct diagnosis *diagnosis, const char *name, bool over)
{
	for (int kind = 0; kind < FINDING_KINDS; kind++)
		if (strcmp(finding_names[kind], name) == 0) {
			diagnosis->active[kind] = !over;
			diagnosis->said[kind] += !over;
		}
}

void diagnosis_verdict(const struct diagnosis *diagnosis, bool finished, struct verdict *out)
{
	/* The first that holds, gravest first. */
	static const struct {
		enum finding_kind kind;
		enum verdict_colour colour;
		const char *headline;
	} order[] = {
		{FINDING_DIVERGED, VERDICT_BAD, "This run has diverged"},
		{FINDING_SLOW, VERDICT_BAD, "This run is not learning"},
		{FINDING_STUCK, VERDICT_BAD, "This run is stuck"},
		{FINDING_RISING, VERDICT_WARNING, "The loss is rising"},
		{FINDING_UNSTABLE, VERDICT_WARNING, "Gradients are growing"},
		{FINDING_OVERFITTING, VERDICT_WARNING, "This run is over-fitting"},
		{FINDING_REPEATED, VERDICT_WARNING, "There is too little text"},
		{FINDING_WAITING, VERDICT_WARNING, "Learning, but waiting for data"},
		{FINDING_SLOWER, VERDICT_WARNING, "Learning, but slower than before"},
	};
	*out = (struct verdict){.colour = VERDICT_PLAIN, .finding = -1};
	const struct diagnosis_facts *facts = &diagnosis->facts;
	double mean = window_mean(&diagnosis->loss), entropy = facts->unigram_entropy;
	for (size_t i = 0; i < sizeof order / sizeof *order; i++)
		if (diagnosis->active[order[i].kind] &&
		    !(finished && (order[i].kind == FINDING_WAITING || order[i].kind == FINDING_SLOWER))) {
			out->colour = order[i].colour;
			out->finding = (int)order[i].kind;
			SAY(out, headline, "%s", order[i].headline);
			return;
		}
	if (diagnosis->loss.count < MEAN_STEPS) {
		SAY(out, headline, finished ? "Finished" : "Too early to say");
		SAY(out, text, "Fewer than %d steps have been seen.", MEAN_STEPS);
		return;
	}
	out->colour = VERDICT_GOOD;
	SAY(out, headline, finished ? "Finished, and it has learned" : "Learning");
	if (isnan(entropy)) {
		SAY(out, text, "The training loss of masked words is %.3f, over the last %d steps.", mean, MEAN_STEPS);
	} else if (mean > entropy - STUCK_BELOW) {
		out->colour = VERDICT_PLAIN;
		SAY(out, headline, finished ? "Finished too early" : "At the beginning");
		SAY(out, text, "The loss of masked words, %.3f, is not yet below what word frequencies alone give, %.3f. %s",
		    mean, entropy, finished ? "It needs more steps." : "That is normal for the first steps.");
	} else {
		SAY(out, text,
		    "The loss of masked words is %.3f: %.2f below what word frequencies alone give (%.3f), so each right word is "
		    "%.1f times as probable as its frequency makes it.",
		    mean, entropy - mean, entropy, exp(entropy - mean));
	}
}
