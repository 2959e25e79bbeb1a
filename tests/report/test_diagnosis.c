/* Each rule on a series that it is made for, and all rules on healthy series. A series is a made-up run: loss and accuracy
 * as functions of the step, with the noise of real batches. */
#include <math.h>
#include "base/rng.h"
#include "test.h"
#include "report/diagnosis.h"
#include "report/verdict.h"

#define ENTROPY 6.9
#define GUESSING 9.68 /* ln 16,000 */
#define TOKENS 8192   /* per step */

/* The task of the series: masked words, judged as in pre-training. */
static struct report_task task_of(double entropy, double frequent)
{
	struct report_task task = {
		.words = {.subject = "masked words",
			  .data = "text",
			  .held_out = "held-out text",
			  .prior = "word frequencies",
			  .frequent = "the most frequent word",
			  .warmup = "--num_warmup_steps",
			  .length = "--num_train_steps",
			  .usual_rates = "1e-4 to 1e-3",
			  .check_data = "Otherwise look at the text.",
			  .remedy = "more text"},
		.loss = "mlm_loss",
		.share = "mlm_accuracy",
		.chance_loss = log(16000),
		.prior_loss = entropy,
		.prior_share = frequent,
		.scale = 1,
		.least_tokens = 1e6,
		.spike_floor = NAN,
		.judges_repeats = true,
	};
	report_task_add(&task, "mlm_loss");
	return task;
}

struct series {
	int64_t steps, warmup;
	double peak, noise;
	double (*loss)(int64_t step);
	double (*accuracy)(int64_t step);
	double (*norm)(int64_t step);     /* NULL: 2 */
	double (*held_out)(int64_t step); /* every 100 steps; NULL: none */
	double epoch_tokens;
	double seconds, waited; /* per step */
	uint64_t seed;
};

/* How often each kind was found, and at which step first. */
struct outcome {
	int found[FINDING_KINDS], over[FINDING_KINDS];
	int64_t first[FINDING_KINDS];
	int gravest; /* of the findings */
};

/* A text that did not fit would stop in the middle of a word. */
static bool ends_with_a_sentence(const char *text)
{
	size_t size = strlen(text);
	return size > 0 && text[size - 1] == '.';
}

static void take(struct outcome *outcome, const struct findings *findings, int64_t step)
{
	for (int i = 0; i < findings->count; i++) {
		const struct finding *finding = &findings->item[i];
		assert_true(finding->text[0] >= 'A' && finding->text[0] <= 'Z');
		assert_non_null(strchr(finding->text, '.'));
		if (finding->over) {
			outcome->over[finding->kind]++;
			continue;
		}
		if (outcome->found[finding->kind]++ == 0)
			outcome->first[finding->kind] = step;
		assert_true(ends_with_a_sentence(finding->advice));
	}
}

/* A draw with standard deviation 1, close enough to a normal one. */
static double noise(struct rng *rng)
{
	double sum = 0;
	for (int i = 0; i < 12; i++)
		sum += rng_double(rng);
	return sum - 6;
}

static void run_from(struct diagnosis *diagnosis, const struct series *series, int64_t first, struct outcome *outcome)
{
	for (int64_t step = first; step <= series->steps; step++) {
		struct rng rng = rng_start(series->seed + 5, RNG_TEST, (uint64_t)step);
		double rate = step <= series->warmup ? series->peak * (double)step / (double)series->warmup
						     : series->peak * (1 - 0.9 * (double)step / (double)series->steps);
		struct findings findings = {0};
		diagnosis_step(diagnosis,
			       &(struct diagnosis_step){
				       .step = step,
				       .tokens = step * TOKENS,
				       .loss = series->loss(step) + series->noise * noise(&rng),
				       .share = series->accuracy(step) + 0.01 * noise(&rng),
				       .grad_norm = (series->norm ? series->norm(step) : 2) * exp(0.3 * noise(&rng)),
				       .learning_rate = rate,
				       .seconds = series->seconds * (1 + 0.1 * fabs(noise(&rng))),
				       .waited = series->waited,
			       },
			       &findings);
		if (series->held_out && step % 100 == 0)
			diagnosis_evaluation(diagnosis,
					     &(struct diagnosis_evaluation){.step = step,
									    .loss = series->held_out(step),
									    .score = series->held_out(step)},
					     &findings);
		take(outcome, &findings, step);
	}
	outcome->gravest = diagnosis_gravest(diagnosis, true);
}

static struct outcome run(const struct series *series)
{
	struct diagnosis diagnosis;
	struct outcome outcome = {0};
	struct report_task task = task_of(ENTROPY, 0.06);
	diagnosis_start(
		&diagnosis,
		&(struct diagnosis_facts){.task = &task, .epoch_tokens = series->epoch_tokens > 0 ? series->epoch_tokens : 1e8});
	diagnosis_plan(&diagnosis, series->steps, series->peak);
	run_from(&diagnosis, series, 1, &outcome);
	return outcome;
}

static void assert_only(const struct outcome *outcome, enum finding_kind kind, int also)
{
	for (int k = 0; k < FINDING_KINDS; k++)
		if ((k == (int)kind) != (outcome->found[k] > 0) && k != also)
			fail_msg("%s: found %d times, first at step %lld", finding_names[k], outcome->found[k],
				 (long long)outcome->first[k]);
}

/* From guessing by word frequencies to 1.5 below that: as in a real run of a small model. */
static double healthy_loss(int64_t step)
{
	double s = (double)step;
	return s < 250 ? GUESSING - (GUESSING - ENTROPY) * s / 250 : ENTROPY - 1.5 * (1 - exp(-(s - 250) / 1200));
}
static double healthy_accuracy(int64_t step)
{
	return step < 100 ? 0.04 : 0.06 + 0.2 * (1 - exp(-(double)(step - 100) / 1200));
}
static double healthy_held_out(int64_t step)
{
	return healthy_loss(step) + 0.1;
}
static double healthy_norm(int64_t step)
{
	return step < 200 ? 1 : 3.5;
}

static const struct series healthy = {
	.steps = 4000,
	.warmup = 400,
	.peak = 1e-3,
	.noise = 0.1,
	.loss = healthy_loss,
	.accuracy = healthy_accuracy,
	.norm = healthy_norm,
	.held_out = healthy_held_out,
	.seconds = 0.5,
};

static void test_healthy(void **state)
{
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct series series = healthy;
		series.seed = 1000 * seed;
		series.noise = seed % 2 ? 0.1 : 0.4; /* also with the noise of tiny batches */
		struct outcome outcome = run(&series);
		assert_only(&outcome, FINDING_KINDS, -1);
		assert_int_equal(outcome.gravest, -1);
	}
}

/* At the small rates of a long warm-up, a model may take thousands of steps to learn the word frequencies; that is not a
 * plateau. */
static double slow_start_loss(int64_t step)
{
	double s = (double)step;
	return s < 500    ? GUESSING - (GUESSING - ENTROPY - 0.2) * s / 500
	       : s < 4000 ? ENTROPY + 0.2
			  : ENTROPY + 0.2 - 2 * (1 - exp(-(s - 4000) / 3000));
}
static double slow_start_accuracy(int64_t step)
{
	return step < 4000 ? 0.06 : 0.06 + 0.3 * (1 - exp(-(double)(step - 4000) / 3000));
}
static void test_long_warmup(void **state)
{
	struct series series = healthy;
	series.steps = 40000;
	series.warmup = 10000;
	series.loss = slow_start_loss;
	series.accuracy = slow_start_accuracy;
	series.held_out = NULL;
	struct outcome outcome = run(&series);
	assert_only(&outcome, FINDING_KINDS, -1);
}

static double stuck_loss(int64_t step)
{
	return step < 250 ? healthy_loss(step) : ENTROPY + 0.03;
}
static double stuck_accuracy(int64_t step)
{
	(void)step;
	return 0.055;
}
static void test_stuck(void **state)
{
	struct series series = healthy;
	series.loss = stuck_loss;
	series.accuracy = stuck_accuracy;
	series.held_out = NULL;
	struct outcome outcome = run(&series);
	assert_only(&outcome, FINDING_STUCK, -1);
	assert_int_equal(outcome.found[FINDING_STUCK], 1);
	assert_true(outcome.first[FINDING_STUCK] < 1000);
	assert_int_equal(outcome.gravest, FINDING_STUCK);
}

/* At a rate that is far too high the loss wanders above the level of word frequencies, and is stuck all the same. */
static double wandering_loss(int64_t step)
{
	return step < 200 ? healthy_loss(step) : ENTROPY + 0.35 + 0.25 * sin((double)step / 90);
}
static void test_stuck_and_wandering(void **state)
{
	struct series series = healthy;
	series.loss = wandering_loss;
	series.accuracy = stuck_accuracy;
	series.held_out = NULL;
	struct outcome outcome = run(&series);
	assert_true(outcome.found[FINDING_STUCK] == 1);
	assert_int_equal(outcome.found[FINDING_SLOW], 0);
	assert_true(outcome.first[FINDING_STUCK] < 1200);
}

/* Stuck for a while, then improving: the finding is withdrawn. */
static double late_loss(int64_t step)
{
	return step < 1500 ? stuck_loss(step) : ENTROPY - 1.5 * (1 - exp(-(double)(step - 1500) / 600));
}
static double late_accuracy(int64_t step)
{
	return step < 1500 ? 0.055 : 0.2;
}
static void test_stuck_no_longer(void **state)
{
	struct series series = healthy;
	series.loss = late_loss;
	series.accuracy = late_accuracy;
	series.held_out = NULL;
	struct outcome outcome = run(&series);
	assert_only(&outcome, FINDING_STUCK, -1);
	assert_int_equal(outcome.over[FINDING_STUCK], 1);
	assert_int_equal(outcome.gravest, -1);
}

static double frozen_loss(int64_t step)
{
	return GUESSING - 1e-5 * (double)step;
}
static double no_accuracy(int64_t step)
{
	(void)step;
	return 0;
}
static void test_learning_rate_too_low(void **state)
{
	struct series series = healthy;
	series.loss = frozen_loss;
	series.accuracy = no_accuracy;
	series.held_out = NULL;
	series.peak = 1e-9;
	struct outcome outcome = run(&series);
	assert_only(&outcome, FINDING_SLOW, -1);
	assert_true(outcome.first[FINDING_SLOW] < 1000);
	assert_int_equal(outcome.gravest, FINDING_SLOW);
}

static double diverging_loss(int64_t step)
{
	return step < 1000 ? healthy_loss(step) : healthy_loss(1000) + 0.01 * (double)(step - 1000);
}
static double growing_norm(int64_t step)
{
	return step < 1000 ? 2 : fmin(2 * exp(0.02 * (double)(step - 1000)), 1e6);
}
static void test_diverged(void **state)
{
	struct series series = healthy;
	series.steps = 1300;
	series.loss = diverging_loss;
	series.norm = growing_norm;
	series.held_out = NULL;
	struct outcome outcome = run(&series);
	assert_int_equal(outcome.found[FINDING_DIVERGED], 1);
	assert_int_equal(outcome.found[FINDING_RISING], 1);
	assert_int_equal(outcome.found[FINDING_UNSTABLE], 1);
	/* First the warning, then the worse finding. */
	assert_true(outcome.first[FINDING_RISING] < outcome.first[FINDING_DIVERGED]);
	assert_true(outcome.first[FINDING_UNSTABLE] < outcome.first[FINDING_DIVERGED]);
	assert_true(outcome.first[FINDING_DIVERGED] < 1200);
	assert_int_equal(outcome.gravest, FINDING_DIVERGED);
}

/* The beginning of fine-tuning: the loss falls while gradients grow; then both stay level, with the loss a little above
 * its minimum. */
static double settling_loss(int64_t step)
{
	return healthy_loss(step < 1000 ? step : 1000) + (step < 1100 ? 0 : 0.15);
}
static double settling_norm(int64_t step)
{
	return step < 1000 ? 0.9 * exp(0.004 * (double)step) : 0.9 * exp(4.0);
}
static void test_gradients_that_grow_while_the_loss_falls(void **state)
{
	struct series series = healthy;
	series.steps = 1300;
	series.loss = settling_loss;
	series.norm = settling_norm;
	series.held_out = NULL;
	struct outcome outcome = run(&series);
	assert_int_equal(outcome.found[FINDING_UNSTABLE], 0);
}

static double exploding_loss(int64_t step)
{
	return step < 10 ? GUESSING : 60;
}
static void test_worse_than_guessing(void **state)
{
	struct series series = healthy;
	series.steps = 200;
	series.loss = exploding_loss;
	series.accuracy = no_accuracy;
	series.held_out = NULL;
	struct outcome outcome = run(&series);
	assert_only(&outcome, FINDING_DIVERGED, -1);
	assert_true(outcome.first[FINDING_DIVERGED] <= 64);
}

static double spiking_loss(int64_t step)
{
	return healthy_loss(step) + (step >= 2000 && step < 2005 ? 3 : 0) + (step == 3000 ? 2 : 0);
}
static void test_spike(void **state)
{
	struct series series = healthy;
	series.loss = spiking_loss;
	struct outcome outcome = run(&series);
	assert_only(&outcome, FINDING_SPIKE, -1);
	assert_int_equal(outcome.found[FINDING_SPIKE], 2);
	assert_int_equal(outcome.over[FINDING_SPIKE], 2);
	assert_int_equal(outcome.first[FINDING_SPIKE], 2000);
	assert_int_equal(outcome.gravest, -1);
}

static double memorising_loss(int64_t step)
{
	return healthy_loss(step) - (step > 1000 ? 0.001 * (double)(step - 1000) : 0);
}
static double overfitted(int64_t step)
{
	return step < 1500 ? healthy_loss(step) : healthy_loss(1500) + 0.0004 * (double)(step - 1500);
}
static void test_overfitting(void **state)
{
	struct series series = healthy;
	series.loss = memorising_loss;
	series.held_out = overfitted;
	series.epoch_tokens = 1e6;
	struct outcome outcome = run(&series);
	assert_only(&outcome, FINDING_OVERFITTING, FINDING_REPEATED);
	assert_true(outcome.first[FINDING_OVERFITTING] <= 2100);
	/* At least five hundredths of the loss must be at stake, and the text must have been read four times. */
	assert_int_equal(outcome.found[FINDING_REPEATED], 1);
	assert_int_equal(outcome.gravest, FINDING_OVERFITTING);
}

static void test_little_text(void **state)
{
	struct series series = healthy;
	series.epoch_tokens = 200000; /* read 164 times */
	struct outcome outcome = run(&series);
	assert_only(&outcome, FINDING_REPEATED, -1);
	assert_int_equal(outcome.first[FINDING_REPEATED], 1);
}

static void test_waiting_for_data(void **state)
{
	struct series series = healthy;
	series.waited = 0.1;
	struct outcome outcome = run(&series);
	assert_only(&outcome, FINDING_WAITING, -1);
	assert_int_equal(outcome.found[FINDING_WAITING], 1);
}

static void test_slower(void **state)
{
	struct series series = healthy;
	struct diagnosis diagnosis;
	struct outcome outcome = {0};
	struct report_task task = task_of(NAN, NAN);
	diagnosis_start(&diagnosis, &(struct diagnosis_facts){.task = &task});
	diagnosis_plan(&diagnosis, 4000, 1e-3);
	series.steps = 1000;
	run_from(&diagnosis, &series, 1, &outcome);
	assert_only(&outcome, FINDING_KINDS, -1);
	series.steps = 2000;
	series.seconds = 1.5;
	run_from(&diagnosis, &series, 1001, &outcome);
	assert_only(&outcome, FINDING_SLOWER, -1);
	series.steps = 3000;
	series.seconds = 0.5;
	run_from(&diagnosis, &series, 2001, &outcome);
	assert_int_equal(outcome.found[FINDING_SLOWER], 1);
	assert_int_equal(outcome.over[FINDING_SLOWER], 1);
}

static void test_not_finite(void **state)
{
	struct diagnosis diagnosis;
	struct outcome outcome = {0};
	struct report_task task = task_of(ENTROPY, NAN);
	diagnosis_start(&diagnosis, &(struct diagnosis_facts){.task = &task});
	diagnosis_plan(&diagnosis, 4000, 1e-3);
	run_from(&diagnosis, &healthy, 1, &outcome);
	struct findings findings = {0};
	diagnosis_step(&diagnosis,
		       &(struct diagnosis_step){
			       .step = 4001, .tokens = 4001 * TOKENS, .loss = NAN, .grad_norm = INFINITY, .skipped_steps = 1},
		       &findings);
	take(&outcome, &findings, 4001);
	assert_int_equal(outcome.found[FINDING_NON_FINITE], 1);
	assert_int_equal(outcome.found[FINDING_DIVERGED], 0);
	assert_int_equal(diagnosis_gravest(&diagnosis, false), -1);
}

/* A longer phase begins with a higher loss, and that is not alarming. */
static double second_phase_loss(int64_t step)
{
	return step <= 2000 ? healthy_loss(step) : healthy_loss(2000) + 0.8 - 0.0005 * (double)(step - 2000);
}
static void test_phase(void **state)
{
	struct series series = healthy;
	struct diagnosis diagnosis;
	struct outcome outcome = {0};
	series.loss = second_phase_loss;
	series.steps = 2000;
	struct report_task task = task_of(ENTROPY, NAN);
	diagnosis_start(&diagnosis, &(struct diagnosis_facts){.task = &task});
	diagnosis_plan(&diagnosis, 4000, 1e-3);
	run_from(&diagnosis, &series, 1, &outcome);
	diagnosis_phase(&diagnosis, 2000);
	series.steps = 3000;
	run_from(&diagnosis, &series, 2001, &outcome);
	assert_only(&outcome, FINDING_KINDS, -1);
}

/* What was reported before a stop is not reported again after it. */
static void test_resumed(void **state)
{
	struct series series = healthy;
	struct diagnosis diagnosis;
	struct outcome outcome = {0};
	series.loss = stuck_loss;
	series.accuracy = stuck_accuracy;
	series.held_out = NULL;
	struct report_task task = task_of(ENTROPY, 0.06);
	diagnosis_start(&diagnosis, &(struct diagnosis_facts){.task = &task});
	for (int64_t step = 10; step <= 2000; step += 10) {
		struct rng rng = rng_start(1, RNG_TEST, (uint64_t)step);
		diagnosis_replay_step(&diagnosis, &(struct diagnosis_step){.step = step,
									   .tokens = step * TOKENS,
									   .loss = stuck_loss(step) + 0.1 * noise(&rng),
									   .share = 0.055,
									   .grad_norm = 2});
	}
	diagnosis_replay_finding(&diagnosis, "stuck", false);
	diagnosis_replay_finding(&diagnosis, "phase", false);
	diagnosis_plan(&diagnosis, 4000, 1e-3);
	run_from(&diagnosis, &series, 2001, &outcome);
	assert_only(&outcome, FINDING_KINDS, -1);
	assert_int_equal(outcome.gravest, FINDING_STUCK);
}

/* Without knowledge of the text, the rules about it stay silent. */
static void test_unknown_text(void **state)
{
	struct series series = healthy;
	struct diagnosis diagnosis;
	struct outcome outcome = {0};
	series.loss = frozen_loss;
	series.accuracy = no_accuracy;
	series.held_out = NULL;
	struct report_task task = task_of(NAN, NAN);
	diagnosis_start(&diagnosis, &(struct diagnosis_facts){.task = &task, .epoch_tokens = NAN});
	diagnosis_plan(&diagnosis, 4000, 1e-3);
	run_from(&diagnosis, &series, 1, &outcome);
	assert_only(&outcome, FINDING_KINDS, -1);
}

/* The whole dev set gets a single label: found at once, withdrawn when it is over, with advice that fits the learning
 * rate. */
static void test_collapsed(void **state)
{
	static const char *const labels[] = {"negative", "positive"};
	static const int64_t train_counts[] = {50, 50};
	struct report_task task;
	struct diagnosis diagnosis;
	struct findings findings = {0};
	report_task_classes(&task, train_counts, labels, 2);
	task.decides = "accuracy";
	diagnosis_start(&diagnosis, &(struct diagnosis_facts){.task = &task});
	diagnosis_plan(&diagnosis, 300, 1e-4);
	const struct report_confusion collapsed = {2, labels, (const int64_t[]){0, 60, 0, 40}};
	const struct report_confusion healthy_one = {2, labels, (const int64_t[]){50, 10, 5, 35}};
	const struct report_confusion one_label = {2, labels, (const int64_t[]){0, 0, 0, 40}};
	const struct report_confusion tiny = {2, labels, (const int64_t[]){0, 3, 0, 4}};
	const struct report_confusion rare = {2, labels, (const int64_t[]){97, 0, 3, 0}};
	struct diagnosis_evaluation evaluation = {.step = 100, .loss = 0.69, .score = 0.4, .examples = 100};
	const struct report_confusion *const quiet[] = {&healthy_one, &one_label, &tiny, NULL};
	for (int i = 0; i < 4; i++) {
		evaluation.confusion = quiet[i];
		diagnosis_evaluation(&diagnosis, &evaluation, &findings);
		assert_int_equal(findings.count, 0);
	}
	evaluation.confusion = &collapsed;
	diagnosis_evaluation(&diagnosis, &evaluation, &findings);
	diagnosis_evaluation(&diagnosis, &evaluation, &findings);
	assert_int_equal(findings.count, 1); /* once */
	assert_int_equal(findings.item[0].kind, FINDING_COLLAPSED);
	assert_non_null(strstr(findings.item[0].text, "The model has collapsed"));
	assert_non_null(strstr(findings.item[0].text, "\xE2\x80\x9Cpositive\xE2\x80\x9D for all 100 examples of the dev set"));
	assert_non_null(strstr(findings.item[0].advice, "lower --learning_rate"));
	assert_non_null(strstr(findings.item[0].advice, "--warmup_proportion"));
	assert_int_equal(diagnosis_gravest(&diagnosis, true), FINDING_COLLAPSED);
	findings.count = 0;
	evaluation.confusion = &healthy_one;
	diagnosis_evaluation(&diagnosis, &evaluation, &findings);
	assert_int_equal(findings.count, 1);
	assert_true(findings.item[0].over);
	assert_int_equal(diagnosis_gravest(&diagnosis, true), -1);

	findings.count = 0;
	evaluation.confusion = &rare;
	diagnosis_evaluation(&diagnosis, &evaluation, &findings);
	assert_non_null(strstr(findings.item[0].advice, "--class_weights balanced"));
	diagnosis_start(&diagnosis, &(struct diagnosis_facts){.task = &task});
	diagnosis_plan(&diagnosis, 300, 1e-9);
	findings.count = 0;
	evaluation.confusion = &collapsed;
	diagnosis_evaluation(&diagnosis, &evaluation, &findings);
	assert_non_null(strstr(findings.item[0].advice, "Raise --learning_rate"));

	/* After only a few steps: nothing has been lost that was there before. */
	diagnosis_start(&diagnosis, &(struct diagnosis_facts){.task = &task});
	diagnosis_plan(&diagnosis, 300, 1e-4);
	findings.count = 0;
	diagnosis_evaluation(&diagnosis, &evaluation, &findings);
	assert_non_null(strstr(findings.item[0].text, "has not begun to tell the labels apart"));
	assert_non_null(strstr(findings.item[0].advice, "more steps (--num_train_epochs), a higher --learning_rate"));
	assert_true(ends_with_a_sentence(findings.item[0].advice));
}

/* A fine-tuning run of a few epochs, judged by a measure: its values at five evaluations of 1000 examples, 200 steps
 * apart, while the training loss falls from 0.7 to 0.1. DIRECTION_NONE: only what the table of columns knows about the
 * measure is known. */
static struct outcome fine_tune_by(const char *measure, enum measure_direction direction, const double values[5],
				   double noise_of_loss, double odd_loss)
{
	static const int64_t counts[] = {50, 50};
	struct report_task task;
	struct diagnosis diagnosis;
	struct outcome outcome = {0};
	report_task_classes(&task, counts, NULL, 2);
	task.decides = measure;
	if (direction != DIRECTION_NONE)
		report_task_add(&task, measure)->direction = direction;
	diagnosis_start(&diagnosis, &(struct diagnosis_facts){.task = &task});
	diagnosis_plan(&diagnosis, 1000, 2e-5);
	for (int64_t step = 1; step <= 1000; step++) {
		struct findings findings = {0};
		struct rng rng = rng_start(7, RNG_TEST, (uint64_t)step);
		double loss = step == 900 ? odd_loss : 0.7 * exp(-(double)step / 400) + 0.05;
		diagnosis_step(&diagnosis,
			       &(struct diagnosis_step){.step = step,
							.tokens = step * 600,
							.loss = fabs(loss + noise_of_loss * noise(&rng)),
							.share = NAN,
							.grad_norm = 3 * exp(0.3 * noise(&rng)),
							.learning_rate = 2e-5},
			       &findings);
		if (step % 200 == 0)
			diagnosis_evaluation(
				&diagnosis,
				&(struct diagnosis_evaluation){
					.step = step, .loss = 0.5, .score = values[step / 200 - 1], .examples = 1000},
				&findings);
		take(&outcome, &findings, step);
	}
	outcome.gravest = diagnosis_gravest(&diagnosis, true);
	return outcome;
}

static struct outcome fine_tune(const double accuracy[5], double noise_of_loss, double odd_loss)
{
	return fine_tune_by("accuracy", DIRECTION_NONE, accuracy, noise_of_loss, odd_loss);
}

/* A labeled task that a model knows too little for: its loss stays at that of the labels' frequency. */
static void test_stuck_fine_tuning(void **state)
{
	static const int64_t counts[] = {50, 50};
	struct report_task task;
	struct diagnosis diagnosis;
	struct findings findings = {0};
	report_task_classes(&task, counts, NULL, 2);
	diagnosis_start(&diagnosis, &(struct diagnosis_facts){.task = &task});
	diagnosis_plan(&diagnosis, 1000, 2e-5);
	for (int64_t step = 1; step <= 1000 && findings.count == 0; step++)
		diagnosis_step(&diagnosis,
			       &(struct diagnosis_step){.step = step,
							.tokens = step * 600,
							.loss = 0.69,
							.share = NAN,
							.grad_norm = 1,
							.learning_rate = 2e-5},
			       &findings);
	assert_int_equal(findings.count, 1);
	assert_int_equal(findings.item[0].kind, FINDING_STUCK);
	assert_non_null(strstr(findings.item[0].advice, "pre-trained on too little text"));
	assert_non_null(strstr(findings.item[0].advice, "(it peaks at 2e-05; 1e-5 to 5e-5 is usual)"));
	assert_true(ends_with_a_sentence(findings.item[0].advice));
}

/* A measure that is not in the table of columns is judged by its own direction, or not at all. */
static void test_unknown_measure(void **state)
{
	const double rising[] = {0.5, 0.6, 0.7, 0.8, 0.9}, falling[] = {0.9, 0.8, 0.7, 0.6, 0.5};
	struct outcome outcome = fine_tune_by("f1_of_ours", DIRECTION_NONE, rising, 0.15, 0.1);
	assert_only(&outcome, FINDING_KINDS, -1);
	outcome = fine_tune_by("f1_of_ours", DIRECTION_NONE, falling, 0.15, 0.1);
	assert_only(&outcome, FINDING_KINDS, -1);
	outcome = fine_tune_by("f1_of_ours", DIRECTION_HIGHER, rising, 0.15, 0.1);
	assert_only(&outcome, FINDING_KINDS, -1);
	outcome = fine_tune_by("f1_of_ours", DIRECTION_HIGHER, falling, 0.15, 0.1);
	assert_only(&outcome, FINDING_OVERFITTING, -1);
	outcome = fine_tune_by("errors", DIRECTION_LOWER, rising, 0.15, 0.1);
	assert_only(&outcome, FINDING_OVERFITTING, -1);
}

/* The dev loss may rise while the accuracy does not fall: this is not overfitting of what counts, and neither are random
 * changes. */
static void test_fine_tuning(void **state)
{
	const double rising[] = {0.80, 0.84, 0.86, 0.87, 0.88}, wavering[] = {0.80, 0.86, 0.85, 0.855, 0.85};
	const double falling[] = {0.80, 0.88, 0.83, 0.82, 0.81};
	struct outcome outcome = fine_tune(rising, 0.15, 0.1);
	assert_only(&outcome, FINDING_KINDS, -1);
	outcome = fine_tune(wavering, 0.15, 0.1);
	assert_only(&outcome, FINDING_KINDS, -1);
	outcome = fine_tune(falling, 0.15, 0.1);
	assert_only(&outcome, FINDING_OVERFITTING, -1);
	assert_int_equal(outcome.first[FINDING_OVERFITTING], 1000);
	/* Late in fine-tuning a single mislabeled example makes a batch stand out. Only a loss worse than that of knowing
	 * nothing is a spike. */
	outcome = fine_tune(rising, 0.01, 0.65);
	assert_only(&outcome, FINDING_KINDS, -1);
	outcome = fine_tune(rising, 0.01, 2);
	assert_only(&outcome, FINDING_SPIKE, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_healthy),
		cmocka_unit_test(test_long_warmup),
		cmocka_unit_test(test_stuck),
		cmocka_unit_test(test_stuck_and_wandering),
		cmocka_unit_test(test_stuck_no_longer),
		cmocka_unit_test(test_learning_rate_too_low),
		cmocka_unit_test(test_diverged),
		cmocka_unit_test(test_gradients_that_grow_while_the_loss_falls),
		cmocka_unit_test(test_worse_than_guessing),
		cmocka_unit_test(test_spike),
		cmocka_unit_test(test_overfitting),
		cmocka_unit_test(test_little_text),
		cmocka_unit_test(test_waiting_for_data),
		cmocka_unit_test(test_slower),
		cmocka_unit_test(test_not_finite),
		cmocka_unit_test(test_phase),
		cmocka_unit_test(test_resumed),
		cmocka_unit_test(test_unknown_text),
		cmocka_unit_test(test_collapsed),
		cmocka_unit_test(test_fine_tuning),
		cmocka_unit_test(test_stuck_fine_tuning),
		cmocka_unit_test(test_unknown_measure),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
