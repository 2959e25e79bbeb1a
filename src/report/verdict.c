/* Judges a run as a whole and says so in sentences. */
#include "report/verdict.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define RECENT_STEPS 64
#define RECENT_ROWS 5
#define LEARNED_PART (1.0 / 3) /* of the prior loss, or of the way from the prior's share of right answers to 1 */
#define TREND_POINTS 5         /* fewer points say nothing about a slope */
#define LEVEL_LOSS 0.02
#define LEVEL_SHARE 0.005
#define RISEN_LOSS 0.1    /* of the task's scale: a held-out loss that much above its lowest has risen */
#define FEW_UPDATES 1000  /* a labeled task that still improves after fewer was trained too briefly */
#define CHANCE_SHARE 0.03 /* minimum by which a side's score exceeds guessing */
/* With fewer held-out masked words or labeled examples, the report says that figures are rough: at these numbers, a share has a
 * standard error of 1.6 or 5 points. */
#define FEW_WORDS 1000
#define FEW_EXAMPLES 100

#define SAY(verdict, member, ...) snprintf((verdict)->member, sizeof((verdict)->member), __VA_ARGS__)

double report_recent(const struct history *history, int column, int64_t steps)
{
	const struct history_table *table = &history->steps;
	double last = table->count ? history_value(table, table->count - 1, HISTORY_STEP) : 0, sum = 0;
	int count = 0;
	for (int64_t i = table->count; i-- > 0;) {
		double value = history_value(table, i, column);
		if (history_value(table, i, HISTORY_STEP) <= last - (double)steps && table->count - i > RECENT_ROWS)
			break;
		if (isfinite(value)) {
			sum += value;
			count++;
		}
	}
	return count ? sum / count : NAN;
}

struct trend report_trend(const struct history *history, int column, int set)
{
	const struct history_table *steps = &history->steps;
	const struct history_table *table = set >= 0 ? &history->evaluations : steps;
	struct trend trend = {.doubling = NAN, .error = NAN};
	if (steps->count == 0)
		return trend;
	/* Find where the current phase began. */
	double last = history_value(steps, steps->count - 1, HISTORY_STEP), begin = 0;
	double phase = history_value(steps, steps->count - 1, HISTORY_PHASE);
	for (int64_t i = 0; i < steps->count && history_value(steps, i, HISTORY_PHASE) < phase; i++)
		begin = history_value(steps, i, HISTORY_STEP);
	double from = begin + (last - begin) / 2;
	double sum_x = 0, sum_y = 0, sum_xx = 0, sum_xy = 0, sum_yy = 0;
	for (int64_t i = 0; i < table->count; i++) {
		double tokens = history_value(table, i, HISTORY_TOKENS), y = history_value(table, i, column);
		if (history_value(table, i, HISTORY_STEP) < from || !(tokens > 0) || !isfinite(y) ||
		    (set >= 0 && history->evaluation_sets[i] != set))
			continue;
		double x = log2(tokens);
		sum_x += x;
		sum_y += y;
		sum_xx += x * x;
		sum_xy += x * y;
		sum_yy += y * y;
		trend.points++;
	}
	double n = (double)trend.points, spread = sum_xx - sum_x * sum_x / n;
	if (trend.points < TREND_POINTS || !(spread > 1e-9))
		return trend;
	double together = sum_xy - sum_x * sum_y / n;
	double rest = sum_yy - sum_y * sum_y / n - together * together / spread;
	trend.doubling = together / spread;
	trend.error = sqrt(fmax(rest, 0) / (n - 2) / spread);
	return trend;
}

/* How a labeled task's score on the set to judge by has gone. */
enum course { COURSE_OPEN, COURSE_OVERFITTED, COURSE_IMPROVING };
struct point {
	int64_t step;
	double score;
};

/* What the verdict is based on. */
struct standing {
	const struct verdict_facts *facts;
	int set;                       /* the set to judge by */
	int64_t row;                   /* of its last evaluation, -1 = none */
	double train, held_out, level; /* losses; `level` is the held-out loss if known, otherwise the training loss */
	double share;                  /* of right answers, held out if known */
	const struct report_column *decides;
	double score;
	bool is_level;
	struct trend trend; /* of the deciding measure; positive: improving */
	double least;       /* a change of the deciding measure that counts */
	bool below;         /* the deciding score does not beat its baseline */
	bool below_words;   /* words alone are better */
	bool above_words;   /* words alone are worse */
	enum course course;
	struct point best, before; /* of the evaluations: the best one; the last but one */
};

/* Whether the deciding measure is still changing, from the evaluations or, if there are none, from the training loss. */
static void measure_trend(struct standing *standing)
{
	const struct history *history = standing->facts->history;
	const struct report_task *task = standing->facts->task;
	const char *name = task->decides ? task->decides : task->loss;
	const struct report_column *column = standing->decides;
	bool lower = !column || column->direction != DIRECTION_HIGHER;
	standing->trend = report_trend(history, history_column(history, name), standing->set);
	if (standing->row < 0) {
		standing->trend = report_trend(history, history_column(history, task->loss), -1);
		lower = true;
	}
	if (lower)
		standing->trend.doubling = -standing->trend.doubling;
	standing->least = lower ? LEVEL_LOSS * task->scale : column->unit == UNIT_POINTS ? 100 * LEVEL_SHARE : LEVEL_SHARE;
	/* Level means almost no change, and not just points too scattered to tell. */
	standing->is_level = standing->trend.doubling < standing->least &&
			     standing->trend.doubling + standing->trend.error < 2 * standing->least;
}

/* Overfitted: the score was better once, and the held-out loss has risen while the training loss is lower. Improving: the last
 * evaluation is still clearly better than the one before. Pre-training is judged by its trend alone. */
static void find_course(struct standing *standing)
{
	const struct history *history = standing->facts->history;
	const struct report_task *task = standing->facts->task;
	const char *name = task->decides ? task->decides : task->loss;
	int loss = history_column(history, task->loss), column = history_column(history, name);
	double sign = standing->decides && standing->decides->direction == DIRECTION_HIGHER ? 1 : -1, lowest = INFINITY;
	standing->best = standing->before = (struct point){0, NAN};
	for (int64_t i = 0; i <= standing->row && !task->judges_repeats; i++) {
		struct point point = {(int64_t)history_value(&history->evaluations, i, HISTORY_STEP),
				      history_value(&history->evaluations, i, column)};
		if (history->evaluation_sets[i] != standing->set || !isfinite(point.score))
			continue;
		lowest = fmin(lowest, history_value(&history->evaluations, i, loss));
		if (isnan(standing->best.score) || sign * (point.score - standing->best.score) > 0)
			standing->best = point;
		if (i < standing->row)
			standing->before = point;
	}
	bool risen = standing->held_out > lowest + RISEN_LOSS * task->scale && standing->train < standing->held_out;
	if (risen && sign * (standing->best.score - standing->score) > standing->least)
		standing->course = COURSE_OVERFITTED;
	else if (!standing->is_level && sign * (standing->score - standing->before.score) > 2 * standing->least &&
		 standing->best.score == standing->score)
		standing->course = COURSE_IMPROVING;
}

/* Whether the deciding score beats its baseline, such as leaving every text as it is. Losses and shares of right answers are
 * judged by grade(): if one class is very frequent, a model learns a lot before it is right more often. */
static bool beats_baseline(const struct standing *standing)
{
	const struct report_column *column = standing->decides;
	const struct report_task *task = standing->facts->task;
	bool is_share = column && task->share && strcmp(column->name, task->share) == 0;
	bool is_loss = column && strcmp(column->name, task->loss) == 0;
	if (!column || is_share || is_loss || !isfinite(column->levels[0].value) || isnan(standing->score))
		return true;
	return measure_is_better(column->direction, standing->score, column->levels[0].value, 0);
}

static struct standing look(const struct verdict_facts *facts)
{
	const struct history *history = facts->history;
	const struct report_task *task = facts->task;
	struct standing standing = {.facts = facts, .set = history_main_set(history)};
	const char *name = task->decides ? task->decides : task->loss;
	int loss = history_column(history, task->loss), share = task->share ? history_column(history, task->share) : -1;
	standing.row = history_last_evaluation(history, standing.set);
	standing.train = report_recent(history, loss, RECENT_STEPS);
	standing.held_out = standing.share = standing.score = NAN;
	standing.decides = report_task_column(task, name);
	if (standing.row >= 0) {
		standing.held_out = history_value(&history->evaluations, standing.row, loss);
		standing.share = history_value(&history->evaluations, standing.row, share);
		standing.score = history_value(&history->evaluations, standing.row, history_column(history, name));
	}
	standing.level = isfinite(standing.held_out) ? standing.held_out : standing.train;
	if (isnan(standing.share))
		standing.share = report_recent(history, share, RECENT_STEPS);
	measure_trend(&standing);
	find_course(&standing);
	standing.below = !beats_baseline(&standing);
	if (standing.decides && isfinite(standing.decides->levels[REPORT_ALONE].value) && isfinite(standing.score)) {
		double words = standing.decides->levels[REPORT_ALONE].value;
		standing.below_words = measure_is_better(standing.decides->direction, words, standing.score, 0);
		standing.above_words = measure_is_better(standing.decides->direction, standing.score, words, 0);
	}
	return standing;
}

/* Whether the deciding score is better than in the set's first evaluation. */
static bool is_better_than_at_first(const struct standing *standing)
{
	const struct history *history = standing->facts->history;
	const struct report_column *column = standing->decides;
	for (int64_t i = 0; column && i < standing->row; i++)
		if (history->evaluation_sets[i] == standing->set)
			return measure_is_better(column->direction, standing->score,
						 history_value(&history->evaluations, i, history_column(history, column->name)),
						 0);
	return false;
}

/* For tasks without any baseline: compares with how the run began, and with words alone. */
static enum verdict_grade grade_by_beginning(const struct standing *standing)
{
	const struct history *history = standing->facts->history;
	int loss = history_column(history, standing->facts->task->loss);
	double begin = history->steps.count ? history_value(&history->steps, 0, loss) : NAN, gain = begin - standing->train;
	if (standing->is_level)
		return GRADE_LEVEL;
	if (gain < BEGUN_LOSS * begin && !is_better_than_at_first(standing) && !standing->above_words)
		return GRADE_NOT_YET;
	return gain >= LEARNED_PART * begin ? GRADE_LEARNED : GRADE_BEGUN;
}

static enum verdict_grade grade(const struct standing *standing)
{
	const struct report_task *task = standing->facts->task;
	double prior = isfinite(task->prior_loss) ? task->prior_loss : task->chance_loss;
	double gain = prior - standing->level, way = (standing->share - task->prior_share) / (1 - task->prior_share);
	if ((standing->facts->diagnosis->step < RECENT_STEPS && standing->row < 0) || isnan(standing->level))
		return GRADE_EARLY;
	if (standing->below)
		return GRADE_NOT_YET;
	if (isnan(prior))
		return grade_by_beginning(standing);
	if (!(gain > BEGUN_LOSS * task->scale) && !(standing->share > task->prior_share + BEGUN_SHARE))
		return GRADE_NOT_YET;
	if (standing->is_level)
		return GRADE_LEVEL;
	return gain >= LEARNED_PART * prior || way >= LEARNED_PART ? GRADE_LEARNED : GRADE_BEGUN;
}

/* " of masked words", or "" */
static const char *of_subject(char out[64], const struct report_task *task)
{
	snprintf(out, 64, "%s%.50s", *task->words.subject ? " of " : "", task->words.subject);
	return out;
}

static void say_level(const struct standing *standing, struct verdict *out)
{
	const struct report_task *task = standing->facts->task;
	const struct report_column *column = standing->decides;
	char subject[64], number[REPORT_NUMBER_BYTES], perplexity[64] = "", compare[240] = "", alone[96] = "";
	bool held_out = isfinite(standing->held_out);
	double below = task->prior_loss - standing->level;
	of_subject(subject, task);
	if (column && strcmp(column->name, task->loss) != 0 && isfinite(standing->score)) {
		double prior = column->levels[0].value;
		bool is_share = task->share && strcmp(column->name, task->share) == 0;
		if (isfinite(prior) && prior != 0 && !is_share)
			snprintf(compare, sizeof compare, "; %s gives %s", column->levels[0].label,
				 report_number(number, prior, column->unit));
		else if (isfinite(prior) && prior != 0)
			snprintf(compare, sizeof compare, "; always answering %s%s%.60s%s would give %s on the %s",
				 task->words.frequent, task->prior_answer ? " (\xE2\x80\x9C" : "",
				 task->prior_answer ? task->prior_answer : "", task->prior_answer ? "\xE2\x80\x9D)" : "",
				 report_number(number, prior, column->unit), task->words.data);
		else if (isfinite(task->prior_loss))
			snprintf(compare, sizeof compare, "; knowing only %s gives a loss of %.3f", task->words.prior,
				 task->prior_loss);
		const struct report_level *words = &column->levels[REPORT_ALONE];
		char score[REPORT_NUMBER_BYTES];
		if (isfinite(words->value))
			snprintf(alone, sizeof alone, "; %s give %s", words->label,
				 report_number(number, words->value, column->unit));
		SAY(out, text, "On the %s: %s %s, loss %.3f%s%s.", task->words.held_out, column->heading,
		    report_number(score, standing->score, column->unit), standing->held_out, compare, alone);
		return;
	}
	if (*task->words.subject)
		snprintf(perplexity, sizeof perplexity, " (perplexity %.4g)", exp(standing->level));
	if (isnan(task->prior_loss))
		snprintf(compare, sizeof compare, ".");
	else if (below > 0 && task->judges_repeats)
		snprintf(compare, sizeof compare,
			 ", %.2f below what %s alone give (%.3f): the right answer is %.1f times as probable as its frequency "
			 "alone makes it.",
			 below, task->words.prior, task->prior_loss, exp(below));
	else
		snprintf(compare, sizeof compare, "; knowing only %s gives %.3f.", task->words.prior, task->prior_loss);
	SAY(out, text, "The loss%s on the %s is %.3f%s%s", subject, held_out ? task->words.held_out : "batches it trains on",
	    standing->level, perplexity, compare);
}

/* Adds that figures from few examples are rough, however many digits they have. */
static void say_few(const struct standing *standing, struct verdict *out)
{
	static const struct {
		const char *name, *what;
		double enough;
	} counts[] = {{"predictions", "masked words", FEW_WORDS}, {"examples", "examples", FEW_EXAMPLES}};
	const struct history *history = standing->facts->history;
	size_t used = strlen(out->text);
	for (size_t i = 0; standing->row >= 0 && i < sizeof counts / sizeof *counts; i++) {
		double count = history_value(&history->evaluations, standing->row, history_column(history, counts[i].name));
		if (!(count < counts[i].enough))
			continue;
		snprintf(out->text + used, sizeof out->text - used, " The %s has only %.0f %s, so its figures are rough.",
			 standing->facts->task->words.held_out, count, counts[i].what);
		return;
	}
}

static void say_side(const struct standing *standing, struct verdict *out)
{
	const struct report_task *task = standing->facts->task;
	const struct report_side *side = &task->side;
	const struct history *history = standing->facts->history;
	if (!side->subject)
		return;
	int column = history_column(history, side->score);
	double score = standing->row >= 0 ? history_value(&history->evaluations, standing->row, column) : NAN;
	bool held_out = isfinite(score);
	if (!held_out)
		score = report_recent(history, column, RECENT_STEPS);
	if (isnan(score))
		return;
	/* With few held-out pairs, even a share far from guessing may be chance. */
	double pairs = held_out ? history_value(&history->evaluations, standing->row, history_column(history, "instances")) : NAN;
	double doubt = pairs > 0 ? 2 * sqrt(side->chance * (1 - side->chance) / pairs) : 0;
	char few[96];
	snprintf(few, sizeof few, "With only %.0f held-out pairs, that may be chance.", pairs);
	const char *judged = score < side->chance + CHANCE_SHARE ? side->not_yet
			     : score < side->chance + doubt      ? few
			     : score >= 0.98                     ? side->nearly_perfect
								 : "It is learning to tell them apart.";
	char subject[64];
	snprintf(subject, sizeof subject, "%.60s", side->subject);
	if (subject[0] >= 'a' && subject[0] <= 'z')
		subject[0] = (char)(subject[0] - 'a' + 'A');
	SAY(out, side, "%s: %.1f %% right on the %s, where guessing gives %.0f %%. %s", subject, 100 * score,
	    held_out ? task->words.held_out : "batches it trains on", 100 * side->chance, judged);
}

/* Says whether such a loss is normal. */
static void say_stage(const struct standing *standing, struct verdict *out)
{
	const struct report_stage *stages = standing->facts->task->stages;
	for (int i = 0; i < REPORT_STAGES && stages[i].means; i++) {
		if (standing->level > stages[i].loss) {
			SAY(out, stage, "%s", stages[i].means);
			return;
		}
	}
}

/* Estimates from the curve what twice as many steps would change. */
static void say_more_steps(const struct standing *standing, struct verdict *out)
{
	const struct report_task *task = standing->facts->task;
	const struct report_column *column = standing->decides;
	const struct trend *trend = &standing->trend;
	bool higher = column && standing->row >= 0 && column->direction == DIRECTION_HIGHER;
	char number[REPORT_NUMBER_BYTES], subject[64];
	if (isnan(trend->doubling))
		return;
	if (standing->is_level) {
		SAY(out, more,
		    "Over the second half of the run the curve is level: more steps of this kind would bring next to nothing. ");
		return;
	}
	if (trend->doubling < 2 * trend->error)
		return;
	if (higher && column->unit != UNIT_NUMBER)
		SAY(out, more,
		    "Judging by the second half of the run, twice as many steps would raise %s by %.1f points at best. ",
		    column->heading, trend->doubling * (column->unit == UNIT_SHARE ? 100 : 1));
	else if (higher)
		SAY(out, more, "Judging by the second half of the run, twice as many steps would raise %s by %s at best. ",
		    column->heading, report_number(number, trend->doubling, column->unit));
	else
		SAY(out, more,
		    "Judging by the second half of the run, twice as many steps would lower the %sloss%s by %.2f at best. ",
		    standing->row >= 0 ? "held-out " : "", of_subject(subject, task), trend->doubling);
}

/* The same from single evaluations. false: they say nothing. */
static bool say_course(const struct standing *standing, struct verdict *out)
{
	const struct report_column *column = standing->decides;
	const struct report_task *task = standing->facts->task;
	const struct point *point = standing->course == COURSE_OVERFITTED ? &standing->best : &standing->before;
	const char *heading = column ? column->heading : "the loss";
	enum measure_unit unit = column ? column->unit : UNIT_NATS;
	char then[REPORT_NUMBER_BYTES], now[REPORT_NUMBER_BYTES];
	if (standing->course == COURSE_OPEN)
		return false;
	report_number(then, point->score, unit);
	report_number(now, standing->score, unit);
	if (standing->course == COURSE_OVERFITTED)
		SAY(out, more,
		    "At step %" PRId64
		    ", %s on the %s was %s; since then it has become %s, and the loss there has risen: more steps "
		    "would not help. --save_best keeps the best checkpoint. ",
		    point->step, heading, task->words.held_out, then, now);
	else
		SAY(out, more,
		    "From step %" PRId64
		    " to the last, %s on the %s went from %s to %s: it would probably gain from more steps (%s). ",
		    point->step, heading, task->words.held_out, then, now, task->words.length);
	return true;
}

/* Whether the run knows its own examples far better than others. */
static bool knows_its_own(const struct standing *standing)
{
	return standing->held_out - standing->train > 0.5 * standing->facts->task->scale;
}

/* Says whether more data would help more than more steps. */
static void say_more_data(const struct standing *standing, struct verdict *out)
{
	const struct report_task *task = standing->facts->task;
	double tokens = (double)standing->facts->diagnosis->tokens, epoch = standing->facts->epoch_tokens;
	double epochs = epoch > 0 ? tokens / epoch : NAN;
	size_t used = strlen(out->more), room = sizeof out->more - used;
	char *end = out->more + used;
	if (knows_its_own(standing)) {
		snprintf(end, room,
			 "The training loss (%.3f) is far below the held-out loss (%.3f): more %s would help more than more "
			 "steps.",
			 standing->train, standing->held_out, task->judges_repeats ? task->words.data : "labeled examples");
		return;
	}
	if (!task->judges_repeats || isnan(epochs))
		return;
	if (epochs < 1)
		snprintf(end, room, "It has read %.0f %% of its %s so far: there is more to learn from.", 100 * epochs,
			 task->words.data);
	else if (epochs < 4)
		snprintf(end, room,
			 "It has read its %s %.1f times; up to about four readings are nearly as good as new %s, so more steps "
			 "help as much as more %s.",
			 task->words.data, epochs, task->words.data, task->words.data);
	else if (epochs < 40)
		snprintf(end, room,
			 "It has read its %s %.*f times; beyond about four readings, new %s helps more than more steps.",
			 task->words.data, epochs < 10 ? 1 : 0, epochs, task->words.data);
	else
		snprintf(end, room, "It has read its %s %.0f times: only more %s would still help.", task->words.data, epochs,
			 task->words.data);
}

static const struct {
	enum verdict_color color;
	const char *running, *finished;
} grades[] = {
	[GRADE_EARLY] = {VERDICT_PLAIN, "Too early to say", "Finished, too soon to tell what it has learned"},
	[GRADE_NOT_YET] = {VERDICT_PLAIN, "It has not begun to learn yet", "Finished before it began to learn"},
	[GRADE_BEGUN] = {VERDICT_GOOD, "It has begun to learn", "Finished: it has begun to learn"},
	[GRADE_LEARNED] = {VERDICT_GOOD, "It has learned, and is still learning", "Finished: it has learned"},
	[GRADE_LEVEL] = {VERDICT_GOOD, "It is no longer improving", "Finished: it had stopped improving"},
};

static const struct {
	enum verdict_color color;
	const char *headline;
} finding_headlines[FINDING_KINDS] = {
	[FINDING_DIVERGED] = {VERDICT_BAD, "This run has diverged"},
	[FINDING_SLOW] = {VERDICT_BAD, "This run is not learning"},
	[FINDING_STUCK] = {VERDICT_BAD, "This run is stuck"},
	[FINDING_COLLAPSED] = {VERDICT_BAD, "The model gives the same answer to everything"},
	[FINDING_RISING] = {VERDICT_WARNING, "The loss is rising"},
	[FINDING_UNSTABLE] = {VERDICT_WARNING, "Gradients are growing"},
	[FINDING_OVERFITTING] = {VERDICT_WARNING, "This run is overfitting"},
	[FINDING_REPEATED] = {VERDICT_WARNING, "There is too little data"},
	[FINDING_WAITING] = {VERDICT_WARNING, "Learning, but waiting for data"},
	[FINDING_SLOWER] = {VERDICT_WARNING, "Learning, but more slowly than before"},
};

/* A course that says more than the grade. A run that goes on may still improve, so only a finished one was too short. */
static void say_headline(const struct standing *standing, struct verdict *out)
{
	const struct verdict_facts *facts = standing->facts;
	bool healthy = out->finding < 0 || out->finding == FINDING_OVERFITTING, few = facts->diagnosis->step < FEW_UPDATES;
	bool below = standing->below_words && facts->finished;
	const char *finished = below ? "Finished below words alone" : "Finished";
	bool own = knows_its_own(standing);
	if ((standing->below || own) && facts->finished && out->grade == GRADE_NOT_YET && out->finding < 0) {
		out->color = VERDICT_WARNING;
		if (own)
			SAY(out, headline, "Finished: it knows its own examples by heart, and no others");
		else
			SAY(out, headline, "Finished no better than %s", standing->decides->levels[0].label);
	}
	if (out->grade == GRADE_EARLY || out->grade == GRADE_NOT_YET || !healthy)
		return;
	if (below)
		SAY(out, headline, "%s", finished);
	if (standing->course == COURSE_OVERFITTED)
		SAY(out, headline, "%s%sverfitted since step %" PRId64, facts->finished ? finished : "",
		    facts->finished ? ": o" : "O", standing->best.step);
	else if (standing->course == COURSE_IMPROVING && facts->finished)
		SAY(out, headline, "%s%s: it was still improving", finished, few ? " after too few updates" : "");
	if (below || standing->course == COURSE_OVERFITTED)
		out->color = VERDICT_WARNING;
	else if (standing->course == COURSE_IMPROVING && facts->finished)
		out->color = few ? VERDICT_WARNING : VERDICT_GOOD;
}

void report_verdict(const struct verdict_facts *facts, struct verdict *out)
{
	*out = (struct verdict){.finding = diagnosis_gravest(facts->diagnosis, facts->finished)};
	struct standing standing = look(facts);
	out->grade = grade(&standing);
	if (out->finding >= 0) {
		out->color = finding_headlines[out->finding].color;
		SAY(out, headline, "%s", finding_headlines[out->finding].headline);
	} else {
		out->color = grades[out->grade].color;
		SAY(out, headline, "%s", facts->finished ? grades[out->grade].finished : grades[out->grade].running);
	}
	say_headline(&standing, out);
	if (out->grade == GRADE_EARLY) {
		SAY(out, text, "It has taken %" PRId64 " step%s; %d are needed for a judgment.", facts->diagnosis->step,
		    facts->diagnosis->step == 1 ? "" : "s", RECENT_STEPS);
		return;
	}
	say_level(&standing, out);
	say_few(&standing, out);
	say_side(&standing, out);
	if (out->finding >= 0 && out->color == VERDICT_BAD)
		return;
	if (out->finding < 0)
		say_stage(&standing, out);
	if (out->grade == GRADE_NOT_YET && !(facts->finished && knows_its_own(&standing))) {
		SAY(out, more, "%s",
		    facts->finished ? "It needs more steps: start over with more, or start another run from this model."
		    : *out->stage   ? ""
				    : "That is normal at first.");
		return;
	}
	if (!say_course(&standing, out) && out->grade != GRADE_NOT_YET && out->finding != FINDING_OVERFITTING)
		say_more_steps(&standing, out);
	say_more_data(&standing, out);
}
