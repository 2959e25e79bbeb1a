/* The head of a report: each grade on a run made for it, for pre-training and for labeled tasks; and a resumed run, which
 * is judged as a whole. */
#include "report/verdict.h"
#include <math.h>
#include <stdarg.h>
#include "base/file.h"
#include "report/page.h"
#include "test.h"
#include "train/pretraining_report.h"

#define ENTROPY 6.9

static struct samples no_samples;
static struct vocab vocab;

static struct report_task masked_words(void)
{
	static const struct token_frequencies frequencies = {.entropy = ENTROPY, .frequent_share = 0.06, .frequent_id = 5};
	return pretraining_report(&(struct pretraining_report_facts){.vocab_size = 16000,
								     .frequencies = &frequencies,
								     .vocab = &vocab,
								     .next_sentence = NEXT_SENTENCE_PAIRS,
								     .samples = &no_samples});
}

static int setup(void **state)
{
	static const char *const entries[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the"};
	assert_ok(vocab_from_entries(&vocab, entries, sizeof entries / sizeof *entries));
	return test_folder_make(state);
}

static int teardown(void **state)
{
	vocab_release(&vocab);
	return test_folder_drop(state);
}

static void add_line(struct history *history, const char *format, ...)
{
	char text[512];
	va_list arguments;
	va_start(arguments, format);
	int size = vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	struct json_document line;
	assert_ok(json_parse(&line, "line", text, (size_t)size));
	assert_ok(history_add(history, line.root));
	json_release(&line);
}

/* A run of `steps` steps of 1000 tokens; loss and accuracy depend on the base-2 logarithm of the step. */
struct made {
	int steps, evaluate_every; /* 0: never */
	double first, doubling;    /* loss = first - doubling * log2(step), at least 0.01 */
	double held_out;           /* difference from the training loss */
	double share;              /* of right answers on held-out examples */
	double nsp;
	double epoch_tokens;
	bool finished;
	int held_out_pairs, held_out_words; /* 0: many */
};

static struct verdict judge(const struct report_task *task, const struct made *made)
{
	struct history history = {0};
	struct diagnosis diagnosis;
	struct verdict verdict;
	bool words = strcmp(task->loss, "mlm_loss") == 0;
	diagnosis_start(&diagnosis, &(struct diagnosis_facts){.task = task});
	for (int step = 1; step <= made->steps; step++) {
		struct findings findings = {0};
		double loss = fmax(made->first - made->doubling * log2(step), 0.01);
		add_line(&history,
			 "{\"step\":%d,\"tokens\":%d,\"seconds\":%d,\"phase\":1,\"loss\":%g,\"%s\":%g,\"nsp_accuracy\":%g}", step,
			 1000 * step, step, loss, words ? "mlm_loss" : "other", loss, made->nsp);
		diagnosis_step(
			&diagnosis,
			&(struct diagnosis_step){.step = step, .tokens = 1000 * step, .loss = loss, .share = NAN, .grad_norm = 1},
			&findings);
		if (made->evaluate_every > 0 && step % made->evaluate_every == 0)
			add_line(&history,
				 "{\"step\":%d,\"tokens\":%d,\"seconds\":%d,\"eval_loss\":%g,\"eval_%s\":%g,\"eval_%s\":%g,"
				 "\"eval_nsp_accuracy\":%g,\"eval_instances\":%d,\"eval_%s\":%d}",
				 step, 1000 * step, step, loss + made->held_out, words ? "mlm_loss" : "other",
				 loss + made->held_out, words ? "mlm_accuracy" : "accuracy", made->share, made->nsp,
				 made->held_out_pairs ? made->held_out_pairs : 10000, words ? "predictions" : "examples",
				 made->held_out_words ? made->held_out_words : 50000);
	}
	report_verdict(&(struct verdict_facts){.diagnosis = &diagnosis,
					       .history = &history,
					       .task = task,
					       .epoch_tokens = made->epoch_tokens,
					       .finished = made->finished},
		       &verdict);
	history_release(&history);
	assert_null(strstr(verdict.text, "nan"));
	assert_null(strstr(verdict.more, "nan"));
	return verdict;
}

static void test_grades(void **state)
{
	const struct report_task task = masked_words();
	struct made made = {.steps = 30, .first = 9.6, .doubling = 0.01, .share = 0.1, .nsp = 0.51, .epoch_tokens = 1e6};
	struct verdict verdict = judge(&task, &made);
	assert_int_equal(verdict.grade, GRADE_EARLY);
	assert_non_null(strstr(verdict.text, "It has taken 30 steps; 64 are needed"));

	made.steps = 400;
	verdict = judge(&task, &made);
	assert_int_equal(verdict.grade, GRADE_NOT_YET);
	assert_int_equal(verdict.color, VERDICT_PLAIN);

	made = (struct made){.steps = 400,
			     .evaluate_every = 20,
			     .first = 9.6,
			     .doubling = 0.4,
			     .share = 0.1,
			     .nsp = 0.51,
			     .epoch_tokens = 1e6};
	verdict = judge(&task, &made); /* 9.6 - 0.4 * log2(400) = 6.142 */
	assert_int_equal(verdict.grade, GRADE_BEGUN);
	assert_string_equal(verdict.headline, "It has begun to learn");
	assert_non_null(strstr(verdict.text, "is 6.142 (perplexity 465.2), 0.76 below what word frequencies alone give (6.900)"));
	assert_non_null(
		strstr(verdict.more, "twice as many steps would lower the held-out loss of masked words by 0.40 at best"));
	assert_non_null(strstr(verdict.more, "It has read 40 % of its text so far"));
	assert_non_null(strstr(verdict.side, "51.0 % right"));
	assert_non_null(strstr(verdict.side, "cannot yet tell"));

	made.doubling = 0.7;
	made.nsp = 0.8;
	made.epoch_tokens = 2e4;
	made.finished = true;
	verdict = judge(&task, &made); /* 3.55 */
	assert_int_equal(verdict.grade, GRADE_LEARNED);
	assert_string_equal(verdict.headline, "Finished: it has learned");
	assert_non_null(strstr(verdict.more, "It has read its text 20 times; beyond about four readings, new text helps more"));
	assert_non_null(strstr(verdict.side, "80.0 % right"));
	assert_null(strstr(verdict.side, "cannot yet tell"));
	made.nsp = 0.99;
	verdict = judge(&task, &made);
	assert_non_null(strstr(verdict.side, "little is left to learn"));

	made = (struct made){
		.steps = 400, .evaluate_every = 20, .first = 4, .doubling = 0.001, .share = 0.3, .nsp = 0.8, .epoch_tokens = 1e7};
	verdict = judge(&task, &made);
	assert_int_equal(verdict.grade, GRADE_LEVEL);
	assert_string_equal(verdict.headline, "It is no longer improving");
	assert_non_null(strstr(verdict.more, "next to nothing"));

	/* Memorized: the two losses are far apart. */
	made.held_out = 1.5;
	verdict = judge(&task, &made);
	assert_non_null(strstr(verdict.more, "more text would help more than more steps"));
}

static void test_labeled_tasks(void **state)
{
	static const char *const labels[] = {"negative", "positive"};
	static const int64_t counts[] = {300, 100};
	struct report_task task;
	report_task_classes(&task, counts, labels, 2);
	task.decides = "accuracy";
	/* Entropy of 3/4 and 1/4: 0.5623 nats. */
	assert_near(task.prior_loss, 0.75 * log(4.0 / 3) + 0.25 * log(4), 1e-12);
	assert_near(task.prior_share, 0.75, 0);
	assert_near(task.chance_loss, log(2), 1e-12);
	assert_string_equal(task.prior_answer, "negative");
	assert_near(report_task_column(&task, "accuracy")->levels[0].value, 0.75, 0);

	struct made made = {.steps = 200, .evaluate_every = 100, .first = 0.56, .doubling = 0, .share = 0.75};
	struct verdict verdict = judge(&task, &made);
	assert_int_equal(verdict.grade, GRADE_NOT_YET);
	assert_non_null(strstr(verdict.text,
			       "On the dev set: accuracy 75.0 %, loss 0.560; always answering the most frequent label "
			       "(\xE2\x80\x9Cnegative\xE2\x80\x9D) would give 75.0 % on the training data."));
	made = (struct made){
		.steps = 200, .evaluate_every = 100, .first = 0.56, .doubling = 0.06, .held_out = 0.1, .share = 0.93};
	verdict = judge(&task, &made);
	assert_int_equal(verdict.grade, GRADE_LEARNED);
	/* A short run is judged by its evaluation, if there is one. */
	made.steps = 20;
	made.evaluate_every = 20;
	verdict = judge(&task, &made);
	assert_int_equal(verdict.grade, GRADE_LEARNED);

	report_task_values(&task, 2.0);
	task.decides = "pearson";
	report_task_add(&task, "pearson");
	assert_near(task.prior_loss, 2, 0);
	made = (struct made){.steps = 200, .evaluate_every = 100, .first = 0.5, .doubling = 0.01};
	verdict = judge(&task, &made);
	assert_int_equal(verdict.grade, GRADE_LEARNED);

	/* For a task without a baseline, only the curve counts. */
	report_task_plain(&task, NAN);
	verdict = judge(&task, &made);
	assert_int_equal(verdict.grade, GRADE_BEGUN);
	made.doubling = 0.03; /* 0.5 to 0.27 */
	verdict = judge(&task, &made);
	assert_int_equal(verdict.grade, GRADE_LEARNED);
	made.doubling = 0;
	verdict = judge(&task, &made);
	assert_int_equal(verdict.grade, GRADE_NOT_YET); /* two evaluations do not make a slope */
	made.evaluate_every = 10;
	verdict = judge(&task, &made);
	assert_int_equal(verdict.grade, GRADE_LEVEL);
}

/* A finished run of `count` evaluations, a hundred steps apart, with these losses and accuracies on the dev set. */
static double words_alone = NAN; /* their accuracy */
static struct verdict judge_course(int64_t apart, const double (*evaluations)[2], int count)
{
	static const char *const labels[] = {"negative", "positive"};
	static const int64_t counts[] = {100, 100};
	struct report_task task;
	struct history history = {0};
	struct diagnosis diagnosis;
	struct verdict verdict;
	report_task_classes(&task, counts, labels, 2);
	task.columns[1].levels[REPORT_ALONE] = (struct report_level){"words alone", words_alone};
	task.decides = "accuracy";
	diagnosis_start(&diagnosis, &(struct diagnosis_facts){.task = &task});
	for (int64_t step = 1; step <= count * apart; step++) {
		struct findings findings = {0};
		double loss = 0.6 - 0.5 * (double)step / (double)(count * apart);
		const double *now = evaluations[(step - 1) / apart];
		add_line(&history, "{\"step\":%d,\"tokens\":%d,\"seconds\":%d,\"phase\":1,\"loss\":%g}", (int)step,
			 (int)(1000 * step), (int)step, loss);
		diagnosis_step(
			&diagnosis,
			&(struct diagnosis_step){.step = step, .tokens = 1000 * step, .loss = loss, .share = NAN, .grad_norm = 1},
			&findings);
		if (step % apart == 0)
			add_line(&history,
				 "{\"step\":%d,\"tokens\":%d,\"seconds\":%d,\"eval_loss\":%g,\"eval_accuracy\":%g,\"eval_"
				 "examples\":1000}",
				 (int)step, (int)(1000 * step), (int)step, now[0], now[1]);
	}
	report_verdict(&(struct verdict_facts){.diagnosis = &diagnosis, .history = &history, .task = &task, .finished = true},
		       &verdict);
	history_release(&history);
	return verdict;
}

/* What a few evaluations say of a fine-tuning that is over. */
static void test_courses(void **state)
{
	(void)state;
	static const double overfitted[][2] = {{0.4, 0.80}, {0.35, 0.86}, {0.5, 0.85}, {0.9, 0.84}};
	struct verdict verdict = judge_course(100, overfitted, 4);
	assert_string_equal(verdict.headline, "Finished: overfitted since step 200");
	assert_int_equal(verdict.color, VERDICT_WARNING);
	assert_non_null(strstr(verdict.more,
			       "At step 200, accuracy on the dev set was 86.0 %; since then it has become 84.0 %, and the "
			       "loss there has risen: more steps would not help."));
	assert_null(strstr(verdict.more, "twice as many steps"));
	/* The loss alone says nothing, nor does a worse score while the loss still falls. */
	static const double surer[][2] = {{0.4, 0.80}, {0.35, 0.86}, {0.5, 0.862}, {0.9, 0.861}};
	assert_string_equal(judge_course(100, surer, 4).headline, "Finished: it has learned");
	static const double scattered[][2] = {{0.4, 0.80}, {0.35, 0.86}, {0.3, 0.85}};
	assert_string_equal(judge_course(100, scattered, 3).headline, "Finished: it has learned");
	/* More steps are no help to a run that has only memorized. */
	static const double memorized[][2] = {{0.7, 0.52}, {0.9, 0.51}, {1.2, 0.51}};
	verdict = judge_course(100, memorized, 3);
	assert_string_equal(verdict.headline, "Finished: it knows its own examples by heart, and no others");
	assert_int_equal(verdict.color, VERDICT_WARNING);
	assert_non_null(strstr(verdict.more, "more labeled examples would help more than more steps"));
	assert_null(strstr(verdict.more, "It needs more steps"));
	static const double improving[][2] = {{0.6, 0.60}, {0.5, 0.70}, {0.4, 0.76}};
	verdict = judge_course(100, improving, 3);
	assert_string_equal(verdict.headline, "Finished after too few updates: it was still improving");
	assert_int_equal(verdict.color, VERDICT_WARNING);
	assert_non_null(strstr(verdict.more, "From step 200 to the last, accuracy on the dev set went from 70.0 % to 76.0 %"));
	verdict = judge_course(400, improving, 3);
	assert_string_equal(verdict.headline, "Finished: it was still improving");
	assert_int_equal(verdict.color, VERDICT_GOOD);
}

/* Words alone are better than the run, whatever its course; or they are not. */
static void test_words_alone(void **state)
{
	(void)state;
	static const double overfitted[][2] = {{0.4, 0.80}, {0.35, 0.86}, {0.5, 0.85}, {0.9, 0.84}};
	static const double improving[][2] = {{0.6, 0.60}, {0.5, 0.70}, {0.4, 0.76}};
	static const double surer[][2] = {{0.4, 0.80}, {0.35, 0.86}, {0.5, 0.862}, {0.9, 0.861}};
	words_alone = 0.9;
	struct verdict verdict = judge_course(100, surer, 4);
	assert_string_equal(verdict.headline, "Finished below words alone");
	assert_int_equal(verdict.color, VERDICT_WARNING);
	assert_non_null(strstr(verdict.text,
			       "accuracy 86.1 %, loss 0.900; always answering the most frequent label "
			       "(\xE2\x80\x9Cnegative\xE2\x80\x9D) would give 50.0 % on the training data; words alone "
			       "give 90.0 %."));
	assert_string_equal(judge_course(100, overfitted, 4).headline, "Finished below words alone: overfitted since step 200");
	verdict = judge_course(100, improving, 3);
	assert_string_equal(verdict.headline, "Finished below words alone after too few updates: it was still improving");
	verdict = judge_course(400, improving, 3);
	assert_string_equal(verdict.headline, "Finished below words alone: it was still improving");
	assert_int_equal(verdict.color, VERDICT_WARNING);
	words_alone = 0.861;
	assert_string_equal(judge_course(100, surer, 4).headline, "Finished: it has learned");
	words_alone = NAN;
}

/* A falling loss is not enough if what counts is no better than doing nothing. */
static void test_baselines(void **state)
{
	static const int64_t counts[] = {50, 25};
	struct report_task task;
	report_task_labels(&task, counts, 2, 100);
	/* Half have the first label, a quarter the second: (0.6931 + 0.5623) / 2. */
	assert_near(task.prior_loss, (log(2) + 0.75 * log(4.0 / 3) + 0.25 * log(4)) / 2, 1e-12);
	task.columns[1].name = task.decides = "accuracy"; /* the runs made here have this column */
	struct made made = {.steps = 200, .evaluate_every = 100, .first = 0.6, .doubling = 0.06, .share = 0};
	struct verdict verdict = judge(&task, &made);
	assert_int_equal(verdict.grade, GRADE_NOT_YET);
	assert_non_null(strstr(verdict.text, "F1 (micro) 0.0 %, loss 0.141; knowing only the frequency of each label gives a "
					     "loss of 0.628."));
	made.share = 0.4;
	verdict = judge(&task, &made);
	assert_int_equal(verdict.grade, GRADE_LEARNED);

	report_task_choices(&task, log(4), 0.25);
	task.decides = "accuracy";
	made = (struct made){.steps = 200, .evaluate_every = 100, .first = 1.38, .doubling = 0.001, .share = 0.26};
	verdict = judge(&task, &made);
	assert_int_equal(verdict.grade, GRADE_NOT_YET);
	assert_non_null(strstr(verdict.text, "always answering at random would give 25.0 % on the training data"));

	report_task_plain(&task, NAN);
	struct report_column *column = report_task_add(&task, "accuracy");
	column->levels[0] = (struct report_level){"copying", 0.5};
	task.decides = "accuracy";
	made = (struct made){.steps = 200, .evaluate_every = 100, .first = 5, .doubling = 0.5, .share = 0.5};
	verdict = judge(&task, &made);
	assert_int_equal(verdict.grade, GRADE_NOT_YET);
	assert_non_null(strstr(verdict.text, "; copying gives 50.0 %."));
	made.finished = true;
	verdict = judge(&task, &made);
	assert_string_equal(verdict.headline, "Finished no better than copying");
	assert_int_equal(verdict.color, VERDICT_WARNING);
	made.share = 0.6;
	made.finished = false;
	verdict = judge(&task, &made);
	assert_int_equal(verdict.grade, GRADE_LEARNED);

	/* A model that knew the task before, and hardly changes. */
	column->levels[0].value = NAN;
	column->levels[REPORT_ALONE] = (struct report_level){"words alone", 0.7};
	made = (struct made){.steps = 10, .evaluate_every = 10, .first = 5, .share = 0.9, .finished = true};
	verdict = judge(&task, &made);
	assert_string_equal(verdict.headline, "Finished: it has begun to learn");
	made.share = 0.7;
	verdict = judge(&task, &made);
	assert_string_equal(verdict.headline, "Finished before it began to learn");
}

/* Only the second half counts, and only the current phase. */
static void test_trend(void **state)
{
	struct history history = {0};
	for (int step = 1; step <= 400; step++) {
		double loss = step <= 100 ? 50 + step : step < 250 ? 30 : 8 - 0.25 * log2(1000.0 * step);
		add_line(&history, "{\"step\":%d,\"tokens\":%d,\"phase\":%d,\"loss\":%.17g}", step, 1000 * step,
			 step <= 100 ? 1 : 2, loss);
	}
	struct trend trend = report_trend(&history, HISTORY_LOSS, -1);
	assert_int_equal(trend.points, 151); /* from step 250 on */
	assert_near(trend.doubling, -0.25, 1e-9);
	assert_near(trend.error, 0, 1e-6);
	assert_true(isnan(report_trend(&history, history_column(&history, "nothing"), -1).doubling));
	assert_true(isnan(report_trend(&history, HISTORY_LOSS, 0).doubling));
	history_release(&history);
}

/* One process of a run: steps from `first` + 1 to `last`, of which every tenth is logged. Writes the page. */
static void train(const char *folder, int first, int last)
{
	char metrics[PATH_BYTES];
	assert_ok(path_join(metrics, folder, "metrics.jsonl"));
	struct report report = {
		.folder = folder, .metrics_path = metrics, .task = masked_words(), .facts = {.epoch_tokens = 1e6}};
	struct report_progress progress = {.step = first, .tokens = 1000 * first, .seconds = first, .phase = 1};
	assert_ok(report_start(&report, &progress));
	assert_int_equal(report.diagnosis.step, first); /* what was logged before has been read */
	report_phase(&report, &(struct report_phase){.count = 1, .log_steps = 10, .total_steps = 200, .peak_rate = 1e-3},
		     &progress);
	for (int step = first + 1; step <= last; step++) {
		struct measures measures = {0};
		double loss = 9.6 - 0.5 * log2(step);
		measures_add(&measures, &(struct measure){"loss", "loss", UNIT_NATS, DIRECTION_LOWER, loss + 0.7});
		measures_add(&measures, &(struct measure){"mlm_loss", NULL, UNIT_NATS, DIRECTION_LOWER, loss});
		progress = (struct report_progress){.step = step, .tokens = 1000 * step, .seconds = step, .phase = 1};
		assert_ok(report_step(&report, &(struct step_report){
						       .state = &progress,
						       .metrics = &measures,
						       .learning_rate = 1e-3,
						       .grad_norm = 1,
						       .seconds = 1,
						       .token_count = 1000,
					       }));
	}
	report_finish(&report, &progress, last == 200 ? OK : STOPPED);
}

static int count_of(const char *text, const char *what)
{
	int count = 0;
	for (const char *at = text; (at = strstr(at, what)); at += strlen(what))
		count++;
	return count;
}

/* Means are over the last steps, or over the last rows where few steps are logged. */
static void test_recent(void **state)
{
	struct history dense = {0}, sparse = {0};
	for (int step = 1; step <= 300; step++)
		add_line(&dense, "{\"step\":%d,\"loss\":%d}", step, step <= 236 ? 9 : 1);
	for (int step = 100; step <= 1000; step += 100)
		add_line(&sparse, "{\"step\":%d,\"loss\":%d}", step, step <= 500 ? 9 : 2);
	assert_near(report_recent(&dense, HISTORY_LOSS, 64), 1, 0);
	assert_near(report_recent(&sparse, HISTORY_LOSS, 64), 2, 0);
	history_release(&dense);
	history_release(&sparse);
}

/* Stopped at step 190 and resumed: the verdict is about 200 steps, not about ten, and the break is marked. */
static void test_a_resumed_run_is_judged_whole(void **state)
{
	struct buffer page = {0}, metrics = {0};
	const char *folder = test_path("run");
	char own[PATH_BYTES];
	snprintf(own, sizeof own, "%s", folder);
	assert_ok(folder_make(own));
	train(own, 0, 195);
	train(own, 190, 200);
	train(own, 200, 200); /* the finished run is started again: nothing is logged, the page stays */
	assert_ok(file_read(test_path("run/report.html"), 1 << 24, &page));
	const char *text = buffer_string(&page);
	assert_non_null(strstr(text, "Finished: it has begun to learn"));
	assert_null(strstr(text, "are needed for a judgment"));
	assert_int_equal(count_of(text, "class=\"resumed\""), 3 * 4); /* four charts, three axes */
	assert_ok(file_read(test_path("run/metrics.jsonl"), 1 << 24, &metrics));
	text = buffer_string(&metrics);
	assert_int_equal(count_of(text, "\"event\":\"resumed\""), 1);
	assert_non_null(strstr(text, "{\"step\":190,\"phase\":1,\"event\":\"resumed\",\"text\":\"Resumed after step 190.\","
				     "\"tokens\":190000,"));
	assert_int_equal(count_of(text, "\"mlm_loss\""), 21); /* step 1, and every tenth, once each */
	buffer_release(&page);
	buffer_release(&metrics);
}

/* Each stage of training has its own sentences, which depend on the text's frequencies; a run in trouble and an early one
 * have none. */
static void what_is_normal(void **state)
{
	static const struct {
		double loss;
		const char *part;
	} rows[] = {{6.95, "A few hundred steps"},
		    {6.81, "A few hundred steps"},
		    {6.7, "the plateau on which"},
		    {5.8, "the plateau on which"},
		    {5.6, "behind it"},
		    {2.1, "behind it"},
		    {1.5, "look at the held-out loss"}};
	struct report_task task = masked_words();
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct verdict verdict =
			judge(&task, &(struct made){.steps = 200, .first = rows[i].loss, .share = 0.2, .nsp = 0.8});
		if (!strstr(verdict.stage, rows[i].part))
			fail_msg("%g: '%s', not '%s'", rows[i].loss, verdict.stage, rows[i].part);
	}
	struct verdict early = judge(&task, &(struct made){.steps = 3, .first = 9.5, .nsp = 0.5});
	assert_string_equal(early.stage, "");
}

/* A score on few examples proves little, and the page says so. */
static void test_small_held_out_sets(void **state)
{
	const struct report_task task = masked_words();
	struct made made = {
		.steps = 400, .evaluate_every = 20, .first = 9.6, .doubling = 0.5, .share = 0.2, .nsp = 0.7, .epoch_tokens = 1e6};
	struct verdict verdict = judge(&task, &made);
	assert_non_null(strstr(verdict.side, "70.0 % right on the held-out text"));
	assert_non_null(strstr(verdict.side, "It is learning to tell them apart."));
	assert_null(strstr(verdict.text, "rough"));
	made.held_out_pairs = 10;
	made.held_out_words = 43;
	verdict = judge(&task, &made);
	assert_non_null(strstr(verdict.side, "With only 10 held-out pairs, that may be chance."));
	assert_non_null(strstr(verdict.text, "The held-out text has only 43 masked words, so its figures are rough."));
	made.nsp = 0.95; /* beyond two standard errors */
	verdict = judge(&task, &made);
	assert_non_null(strstr(verdict.side, "It is learning to tell them apart."));

	static const int64_t counts[] = {50, 50};
	struct report_task classes;
	report_task_classes(&classes, counts, NULL, 2);
	made.held_out_words = 40;
	made.first = 0.69;
	made.doubling = 0.05;
	verdict = judge(&classes, &made);
	assert_non_null(strstr(verdict.text, "The dev set has only 40 examples, so its figures are rough."));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_grades),
		cmocka_unit_test(test_labeled_tasks),
		cmocka_unit_test(test_courses),
		cmocka_unit_test(test_words_alone),
		cmocka_unit_test(test_baselines),
		cmocka_unit_test(what_is_normal),
		cmocka_unit_test(test_trend),
		cmocka_unit_test(test_recent),
		cmocka_unit_test(test_a_resumed_run_is_judged_whole),
		cmocka_unit_test(test_small_held_out_sets),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
