/* Finds temperatures and thresholds on a dev set, and answers by them. */
#include "tasks/calibration.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "tasks/task.h"

#define ROW(member, value) OPTION_ROW(struct calibration_options, member, ROLE_RUN, value)

/* clang-format off */
const struct option calibration_rows[] = {
	{ROW(calibrate, NULL), .fallback = "false",
	 .help = "find, on the first set, the temperature that calibrates the probabilities of classes or labels (of answers "
	 "given with 90 %, 90 % are right), and record it with the model"},
	{ROW(thresholds, "f1|P"),
	 .help = "choose, on the first set, the probability that each label must reach: for the best F1 (several labels, or two "
	 "classes), or for a precision P from 0 to 1; and record them with the model"},
	{ROW(min_score, "P"), .range = "0..1", .fallback_text = "0",
	 .help = "give no answer whose probability is below this"},
	{0},
};
/* clang-format on */

void calibration_release(struct calibration *calibration)
{
	free(calibration->thresholds);
	*calibration = (struct calibration){0};
}

static bool has_classes(const struct task_state *state)
{
	return state->task->target == TARGET_CLASS;
}

/* The precision that thresholds are chosen for; 0: F1. */
static enum status read_aim(const char *text, double *out)
{
	char *end;
	*out = strcmp(text, "f1") == 0 ? 0 : strtod(text, &end);
	if (strcmp(text, "f1") == 0 || (end != text && !*end && *out > 0 && *out <= 1))
		return OK;
	return error_hinted(error_set(ERR_USAGE, "--thresholds %.40s: neither f1 nor a precision above 0 and up to 1", text),
			    "--thresholds f1, or for instance --thresholds 0.95");
}

enum status calibration_check(const struct calibration_options *options, const struct task_state *state)
{
	double aim;
	const char *given = options->calibrate       ? "calibrate"
			    : options->thresholds    ? "thresholds"
			    : options->min_score > 0 ? "min_score"
						     : NULL;
	if (given && !state->task->calibrates)
		return error_set(ERR_USAGE, "--%s is for tasks that answer with classes or labels, not for %s", given,
				 state->task->name);
	return options->thresholds ? read_aim(options->thresholds, &aim) : OK;
}

/* ---- Answers ---- */

static double temperature_of(const struct task_state *state)
{
	return state->calibration.temperature > 0 ? state->calibration.temperature : 1;
}

static void find_shares(const struct task_state *state, const float *logits, double temperature, double *out)
{
	int64_t count = state->labels.count;
	double largest = logits[task_best(logits, count)], sum = 0;
	for (int64_t i = 0; i < count; i++)
		sum += out[i] =
			has_classes(state) ? exp((logits[i] - largest) / temperature) : task_sigmoid(logits[i] / temperature);
	for (int64_t i = 0; i < count && has_classes(state); i++)
		out[i] /= sum;
}

void task_shares(const struct task_state *state, const float *logits, double *out)
{
	find_shares(state, logits, temperature_of(state), out);
}

/* The probability of one class. */
static double class_share(const struct task_state *state, const float *logits, int64_t class_id, double temperature)
{
	double sum = 0;
	for (int64_t i = 0; i < state->labels.count; i++)
		sum += exp(((double)logits[i] - (double)logits[class_id]) / temperature);
	return 1 / sum;
}

bool task_chooses_answers(const struct task_state *state)
{
	return state->calibration.thresholds || state->calibration.min_score > 0;
}

int32_t task_class(const struct task_state *state, const float *logits)
{
	const struct calibration *own = &state->calibration;
	int32_t best = task_best(logits, state->labels.count);
	if (!task_chooses_answers(state))
		return best;
	if (own->divides)
		best = class_share(state, logits, 1, temperature_of(state)) >= own->thresholds[1];
	double score = class_share(state, logits, best, temperature_of(state));
	bool reached = !own->thresholds || own->divides || score >= own->thresholds[best];
	return reached && score >= own->min_score ? best : -1;
}

bool task_has_label(const struct task_state *state, const float *logits, int64_t label)
{
	const struct calibration *own = &state->calibration;
	double score = task_sigmoid(logits[label] / temperature_of(state));
	return (own->thresholds ? score >= own->thresholds[label] : logits[label] > 0) && score >= own->min_score;
}

/* ---- The temperature ---- */

/* The examples of a set, and what the model says about them. */
struct answers {
	const struct task_state *state;
	const struct task_set *set;
	const struct task_outputs *outputs;
	double *shares; /* [labels] scratch space */
};

static bool is_gold(const struct answers *answers, int64_t example, int64_t label)
{
	const struct labeled_items *gold = &answers->set->encoded.items[0];
	example = task_example_of(answers->set, example);
	return has_classes(answers->state) ? gold->classes[example] == label
					   : gold->numbers[example * answers->state->labels.count + label] > 0.5f;
}

static bool is_known(const struct answers *answers, int64_t example)
{
	return !has_classes(answers->state) ||
	       answers->set->encoded.items[0].classes[task_example_of(answers->set, example)] >= 0;
}

/* The mean loss at a temperature, and its first and second derivative by 1 / temperature, in which it is convex. */
struct slope {
	double loss, first, second;
};

static struct slope slope_at(const struct answers *answers, double temperature)
{
	struct slope sum = {0};
	int64_t labels = answers->state->labels.count, count = 0;
	for (int64_t i = 0; i < answers->outputs->count; i++) {
		const float *logits = task_output(answers->outputs, i);
		double mean = 0, squares = 0;
		int32_t best = task_best(logits, labels);
		if (!is_known(answers, i))
			continue;
		count++;
		find_shares(answers->state, logits, temperature, answers->shares);
		for (int64_t k = 0; k < labels; k++) {
			double share = answers->shares[k], logit = logits[k];
			bool gold = is_gold(answers, i, k);
			if (!has_classes(answers->state)) {
				sum.loss += log1p(exp((gold ? -logit : logit) / temperature)) / (double)labels;
				sum.first += (share - gold) * logit / (double)labels;
				sum.second += share * (1 - share) * logit * logit / (double)labels;
				continue;
			}
			mean += share * logit;
			squares += share * logit * logit;
			if (gold) {
				sum.loss -= log(answers->shares[best]) + (logit - (double)logits[best]) / temperature;
				sum.first -= logit;
			}
		}
		if (has_classes(answers->state)) {
			sum.first += mean;
			sum.second += squares - mean * mean;
		}
	}
	return (struct slope){sum.loss / (double)count, sum.first / (double)count, sum.second / (double)count};
}

static enum status answers_open(struct answers *out, const struct task_state *state, const struct task_set *set,
				const struct task_outputs *outputs)
{
	*out = (struct answers){.state = state, .set = set, .outputs = outputs};
	return memory_new(&out->shares, state->labels.count, sizeof *out->shares, "probabilities");
}

/* Temperatures beyond these mean that the loss has no minimum. */
#define HOTTEST 100.0

enum status calibration_temperature(const struct task_state *state, const struct task_set *set,
				    const struct task_outputs *outputs, double *out)
{
	struct answers answers;
	double low = 1 / HOTTEST, high = HOTTEST, at = 1; /* of 1 / temperature */
	TRY(answers_open(&answers, state, set, outputs));
	*out = 0;
	/* Newton's method between bounds on which the slope has different signs. */
	if (slope_at(&answers, 1 / low).first < 0 && slope_at(&answers, 1 / high).first > 0) {
		for (int i = 0; i < 200 && high - low > 1e-12 * high; i++) {
			struct slope slope = slope_at(&answers, 1 / at);
			*(slope.first > 0 ? &high : &low) = at;
			double next = at - slope.first / slope.second;
			if (fabs(next - at) < 1e-13 * at)
				break;
			at = next > low && next < high ? next : sqrt(low * high);
		}
		*out = 1 / at;
	}
	free(answers.shares);
	return OK;
}

/* ---- Thresholds ---- */

/* A probability, and whether what it stands for is right. */
struct scored {
	double score;
	bool right;
};

static int by_score(const void *a, const void *b)
{
	double x = ((const struct scored *)a)->score, y = ((const struct scored *)b)->score;
	return (x < y) - (x > y);
}

/* The threshold with the best F1 or, of those with at least the precision `aim`, with the most answers; it lies halfway between
 * two scores, so that rounding does not move an answer. INFINITY: the precision is not reached. */
static double choose_threshold(struct scored *scored, int64_t count, double aim)
{
	double best = 0, threshold = INFINITY;
	int64_t all = 0, right = 0;
	qsort(scored, (size_t)count, sizeof *scored, by_score);
	for (int64_t i = 0; i < count; i++)
		all += scored[i].right;
	for (int64_t i = 0; i < count; i++) {
		double below = i + 1 < count ? scored[i + 1].score : 0, answered = (double)(i + 1);
		right += scored[i].right;
		if (below == scored[i].score)
			continue;
		double f1 = 2 * (double)right / (answered + (double)all);
		if (aim > 0 ? (double)right / answered >= aim : f1 > best) {
			threshold = (scored[i].score + below) / 2;
			best = f1;
		}
	}
	return threshold;
}

/* With fewer examples of a label, its threshold depends on single ones. */
#define LABEL_LEAST 10
/* Thresholds that are logged. */
#define LOGGED_MOST 20

static void log_thresholds(const struct task_state *state, const char *aim, int64_t rare)
{
	const struct calibration *own = &state->calibration;
	struct buffer text = {0};
	int64_t never = 0;
	for (int64_t k = own->divides ? 1 : 0; k < own->count; k++) {
		const char *name = state->labels.labels[k].name;
		never += isinf(own->thresholds[k]);
		if (k < LOGGED_MOST && isinf(own->thresholds[k]))
			buffer_format(&text, "%s%s never", text.size > 0 ? ", " : "", name);
		else if (k < LOGGED_MOST)
			buffer_format(&text, "%s%s %.4f", text.size > 0 ? ", " : "", name, own->thresholds[k]);
		else if (k == LOGGED_MOST)
			buffer_text(&text, ", ...");
	}
	log_note("probabilities to be reached, chosen for %s%s: %s", strcmp(aim, "f1") == 0 ? "the best F1" : "a precision of ",
		 strcmp(aim, "f1") == 0 ? "" : aim, buffer_string(&text));
	if (never > 0)
		log_warning("%lld of the labels do not reach a precision of %s, whatever the threshold: they are never answers",
			    (long long)never, aim);
	if (rare > 0)
		log_warning("%lld of the labels have fewer than %d examples in the set: their thresholds mean little",
			    (long long)rare, LABEL_LEAST);
	buffer_release(&text);
}

static enum status find_thresholds(struct task_state *state, const struct answers *answers, const char *text)
{
	struct calibration *own = &state->calibration;
	int64_t labels = state->labels.count, count = answers->outputs->count, rare = 0;
	struct scored *scored = NULL;
	double aim;
	TRY(read_aim(text, &aim));
	own->divides = has_classes(state) && aim == 0;
	if (own->divides && labels != 2)
		return error_hinted(error_set(ERR_USAGE,
					      "--thresholds f1 is for several labels or for two classes, and there "
					      "are %lld classes",
					      (long long)labels),
				    "with more than two classes the most probable one is the answer; a precision, such as "
				    "--thresholds 0.95, leaves out those that are too uncertain");
	free(own->thresholds);
	own->thresholds = NULL;
	TRY(memory_new(&own->thresholds, labels, sizeof *own->thresholds, "thresholds"));
	own->count = labels;
	TRY(memory_new(&scored, count, sizeof *scored, "thresholds"));
	for (int64_t k = own->divides ? 1 : 0; k < labels; k++) {
		int64_t used = 0, right = 0;
		for (int64_t i = 0; i < count; i++) {
			const float *logits = task_output(answers->outputs, i);
			/* Of classes only the most probable one can be an answer. */
			bool counts = !has_classes(state) || own->divides || task_best(logits, labels) == k;
			if (!is_known(answers, i))
				continue;
			right += is_gold(answers, i, k);
			if (!counts)
				continue;
			task_shares(state, logits, answers->shares);
			scored[used++] = (struct scored){answers->shares[k], is_gold(answers, i, k)};
		}
		own->thresholds[k] = choose_threshold(scored, used, aim);
		rare += right < LABEL_LEAST;
		if (aim == 0 && right == 0) /* any threshold has the F1 0 */
			own->thresholds[k] = 0.5;
	}
	free(scored);
	log_thresholds(state, text, rare);
	return OK;
}

bool calibration_tunes(const struct task_state *state)
{
	const struct calibration_options *options = state->settings.calibration;
	return options && (options->calibrate || options->thresholds || options->min_score > 0);
}

static void add_to_bins(void *context, double score, bool right)
{
	score_bins_add(context, score, right);
}

static double error_at(const struct task_state *state, const struct task_set *set, const struct task_outputs *outputs,
		       double temperature)
{
	struct score_bins bins = {0};
	if (calibration_examine(state, set, outputs, temperature, add_to_bins, &bins) != OK)
		return NAN;
	return score_bins_error(&bins);
}

static void log_temperature(const struct task_state *state, const struct answers *answers, const struct task_set *set)
{
	double found = state->calibration.temperature;
	if (found > 0)
		log_note("temperature %.4f: the loss was %.4f and is %.4f, the calibration error was %.4f and is %.4f", found,
			 slope_at(answers, 1).loss, slope_at(answers, found).loss, error_at(state, set, answers->outputs, 1),
			 error_at(state, set, answers->outputs, found));
	else
		log_warning(
			"no temperature has the lowest loss on this set, since all its answers are right or none of them says "
			"anything: probabilities stay as they are");
}

enum status calibration_tune(struct task_state *state, const struct task_set *set, const struct task_outputs *outputs)
{
	const struct calibration_options *options = state->settings.calibration;
	struct answers answers;
	enum status status = OK;
	calibration_release(&state->calibration);
	state->calibration.min_score = options->min_score;
	if (!set || !(options->calibrate || options->thresholds))
		return OK;
	TRY(answers_open(&answers, state, set, outputs));
	if (options->calibrate)
		status = calibration_temperature(state, set, outputs, &state->calibration.temperature);
	if (status == OK && options->calibrate)
		log_temperature(state, &answers, set);
	if (status == OK && options->thresholds)
		status = find_thresholds(state, &answers, options->thresholds);
	free(answers.shares);
	return status;
}

/* ---- Measures ---- */

enum status calibration_examine(const struct task_state *state, const struct task_set *set, const struct task_outputs *outputs,
				double temperature, void (*take)(void *context, double score, bool right), void *context)
{
	struct answers answers;
	int64_t labels = state->labels.count;
	TRY(answers_open(&answers, state, set, outputs));
	for (int64_t i = 0; i < outputs->count; i++) {
		const float *logits = task_output(outputs, i);
		int64_t first = !has_classes(state) ? 0 : labels == 2 ? 1 : task_best(logits, labels);
		int64_t end = has_classes(state) ? first + 1 : labels;
		if (!is_known(&answers, i))
			continue;
		find_shares(state, logits, temperature, answers.shares);
		for (int64_t k = first; k < end; k++)
			take(context, answers.shares[k], is_gold(&answers, i, k));
	}
	free(answers.shares);
	return OK;
}

static void count_answers(const struct answers *answers, double *known, double *answered, double *right)
{
	*known = *answered = *right = 0;
	for (int64_t i = 0; i < answers->outputs->count; i++) {
		if (!is_known(answers, i))
			continue;
		int32_t answer = task_class(answers->state, task_output(answers->outputs, i));
		*known += 1;
		*answered += answer >= 0;
		*right += answer >= 0 && is_gold(answers, i, answer);
	}
}

enum status calibration_measures(const struct task_state *state, const struct task_set *set, const struct task_outputs *outputs,
				 struct measures *out)
{
	const struct calibration *own = &state->calibration;
	struct answers answers;
	if (own->temperature == 0 && !task_chooses_answers(state))
		return OK;
	TRY(answers_open(&answers, state, set, outputs));
	if (has_classes(state) && task_chooses_answers(state)) {
		double known, answered, right;
		count_answers(&answers, &known, &answered, &right);
		measures_add(out, &(struct measure){"coverage", NULL, UNIT_SHARE, DIRECTION_HIGHER, answered / known});
		measures_add(out, &(struct measure){"answered_accuracy", NULL, UNIT_SHARE, DIRECTION_HIGHER, right / answered});
	}
	double temperature = temperature_of(state);
	measures_add(out, &(struct measure){"calibrated_loss", NULL, UNIT_NATS, DIRECTION_LOWER,
					    slope_at(&answers, temperature).loss});
	measures_add(out, &(struct measure){"calibration_error", NULL, UNIT_SHARE, DIRECTION_LOWER,
					    error_at(state, set, outputs, temperature)});
	free(answers.shares);
	return OK;
}

/* ---- The record ---- */

void calibration_put_record(const struct calibration *calibration, struct json_writer *writer)
{
	if (calibration->temperature == 0 && calibration->min_score == 0 && !calibration->thresholds)
		return;
	json_open(writer, "calibration", '{');
	if (calibration->temperature > 0)
		json_put_double(writer, "temperature", calibration->temperature);
	if (calibration->min_score > 0)
		json_put_double(writer, "min_score", calibration->min_score);
	if (calibration->thresholds) {
		json_put_bool(writer, "divides", calibration->divides);
		json_open(writer, "thresholds", '[');
		for (int64_t i = 0; i < calibration->count; i++)
			json_put_double(writer, NULL, calibration->thresholds[i]); /* null: never */
		json_close(writer);
	}
	json_close(writer);
}

static enum status read_thresholds(const struct json *thresholds, const char *name, struct calibration *out)
{
	TRY(memory_new(&out->thresholds, thresholds->child_count, sizeof *out->thresholds, "thresholds"));
	for (const struct json *child = thresholds->first_child; child; child = child->next) {
		bool is_share = child->kind == JSON_NUMBER && child->number >= 0 && child->number <= 1;
		if (!is_share && child->kind != JSON_NULL)
			return error_set(ERR_DATA, "'%s': \"thresholds\" are not probabilities", name);
		out->thresholds[out->count++] = is_share ? child->number : INFINITY;
	}
	return OK;
}

enum status calibration_read_record(const struct json *record, const char *name, struct calibration *out)
{
	const struct json *calibration = json_member(record, "calibration");
	if (!calibration)
		return OK;
	calibration_release(out);
	TRY(json_get_number(calibration, name, "temperature", &out->temperature));
	TRY(json_get_number(calibration, name, "min_score", &out->min_score));
	TRY(json_get_bool(calibration, name, "divides", &out->divides));
	const struct json *thresholds = json_member(calibration, "thresholds");
	if (!(out->temperature >= 0 && isfinite(out->temperature) && out->min_score >= 0 && out->min_score <= 1))
		return error_set(ERR_DATA, "'%s': \"calibration\": \"temperature\" or \"min_score\" is out of range", name);
	return thresholds ? read_thresholds(thresholds, name, out) : OK;
}

enum status calibration_fits(const struct task_state *state)
{
	const struct calibration *own = &state->calibration;
	if (!own->thresholds || (own->count == state->labels.count && (!own->divides || own->count == 2)))
		return OK;
	return error_set(ERR_DATA, "the calibration is for %lld labels, and the model has %lld", (long long)own->count,
			 (long long)state->labels.count);
}
