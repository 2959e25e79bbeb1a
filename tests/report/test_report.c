/* The history of a run, the word frequencies of its text, the sample sentences, and the page, with small hand-made inputs. */
#include <math.h>
#include <stdarg.h>
#include "base/rng.h"
#include "data/pretraining/token_frequencies.h"
#include "test.h"
#include "report/page.h"
#include "train/pretraining_report.h"

static void write_text(const char *path, const char *text)
{
	assert_ok(file_write(path, text, strlen(text)));
}

static void test_history(void **state)
{
	const char *path = test_path("metrics.jsonl");
	struct history history = {0};
	assert_ok(history_read(&history, test_path("nowhere.jsonl")));
	assert_int_equal(history.steps.count, 0);
	write_text(
		path,
		"{\"step\":1,\"loss\":9.5,\"mlm_loss\":8.8,\"grad_norm\":null,\"tokens\":100,\"seconds\":0.5}\n"
		"{\"step\":10,\"eval_loss\":7,\"eval_mlm_loss\":6.5,\"tokens\":1000,\"seconds\":5,\"eval_seconds\":1}\n"
		"{\"step\":10,\"eval_set\":\"old\",\"eval_old_loss\":8,\"eval_old_mlm_loss\":7.5,\"tokens\":1000,\"seconds\":5}\n"
		"{\"step\":10,\"event\":\"stuck\",\"text\":\"The run is stuck.\",\"advice\":\"Lower "
		"it.\",\"tokens\":1000,\"seconds\":5}\n"
		"what another program wrote\n"
		"{\"step\":20,\"event\":\"stuck\",\"over\":true,\"text\":\"No longer.\",\"tokens\":2000,\"seconds\":10}\n"
		"{\"step\":20,\"eval_loss\":6,\"eval_mlm_loss\":5.5,\"tokens\":2000,\"seconds\":10}\n"
		"{\"step\":20,\"eval_loss\":6,\"eval_mlm_loss\":5.4,\"tokens\":2000,\"seconds\":10}\n"
		"{\"step\":21,\"lo");
	assert_ok(history_read(&history, path));
	int loss = history_column(&history, "mlm_loss");
	const struct history_table *evaluations = &history.evaluations;
	assert_true(loss >= HISTORY_COMMON);
	assert_int_equal(history.steps.count, 1);
	assert_near(history_value(&history.steps, 0, loss), 8.8, 0);
	assert_near(history_value(&history.steps, 0, HISTORY_LOSS), 9.5, 0);
	assert_true(isnan(history_value(&history.steps, 0, HISTORY_GRAD_NORM)));
	assert_true(isnan(history_value(&history.steps, 0, history_column(&history, "no such column"))));
	/* The evaluation of step 20 was repeated after a resume: the later one counts. */
	assert_int_equal(evaluations->count, 3);
	assert_int_equal(history.set_count, 2);
	assert_string_equal(history.sets[history.evaluation_sets[1]], "old");
	assert_near(history_value(evaluations, 1, loss), 7.5, 0);
	assert_near(history_value(evaluations, 1, HISTORY_LOSS), 8, 0);
	assert_near(history_value(evaluations, history_last_evaluation(&history, history_main_set(&history)), loss), 5.4, 0);
	assert_int_equal(history.event_count, 2);
	assert_string_equal(history.events[0].advice, "Lower it.");
	assert_false(history.events[0].over);
	assert_true(history.events[1].over);
	history_release(&history);
}

/* The columns are those found in the lines: of any task, including a set whose name looks like a measure's. */
static void test_history_of_any_task(void **state)
{
	const char *path = test_path("task.jsonl");
	struct history history = {0};
	write_text(
		path,
		"{\"step\":10,\"loss\":0.69,\"learning_rate\":1e-5,\"grad_norm\":2,\"tokens\":100,\"tokens_per_second\":9,"
		"\"seconds\":1}\n"
		"{\"step\":10,\"eval_loss\":0.6,\"eval_accuracy\":0.8,\"eval_f1\":null,\"eval_examples\":50,\"tokens\":100,"
		"\"seconds\":1,\"eval_seconds\":3}\n"
		"{\"step\":10,\"eval_set\":\"f1\",\"eval_f1_loss\":0.7,\"eval_f1_f1_micro\":0.5,\"tokens\":100,\"seconds\":1}\n");
	assert_ok(history_read(&history, path));
	const struct history_table *table = &history.evaluations;
	assert_int_equal(history.steps.count, 1);
	assert_int_equal(table->count, 2);
	assert_near(history_value(table, 0, history_column(&history, "accuracy")), 0.8, 0);
	assert_near(history_value(table, 0, history_column(&history, "examples")), 50, 0);
	assert_near(history_value(table, 0, HISTORY_SECONDS), 1, 0);
	assert_int_equal(history_column(&history, "f1"), -1); /* never a number */
	assert_near(history_value(table, 1, history_column(&history, "f1_micro")), 0.5, 0);
	assert_true(isnan(history_value(table, 0, history_column(&history, "f1_micro"))));
	assert_false(history_has(&history.steps, history_column(&history, "accuracy")));
	assert_true(history_has(table, history_column(&history, "accuracy")));
	history_release(&history);
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

static void test_long_history_is_thinned(void **state)
{
	struct history history = {0};
	int64_t steps = (1 << 17) + 10;
	for (int64_t step = 1; step <= steps; step++)
		add_line(&history, "{\"step\":%lld,\"tokens\":%lld,\"loss\":%lld,\"mlm_loss\":%lld,\"grad_norm\":null}",
			 (long long)step, (long long)step, (long long)step, (long long)step);
	const struct history_table *table = &history.steps;
	int loss = history_column(&history, "mlm_loss");
	assert_int_equal(table->count, (1 << 16) + 10);
	assert_near(history_value(table, 0, HISTORY_STEP), 2, 0);
	assert_near(history_value(table, 0, loss), 1.5, 0);
	assert_true(isnan(history_value(table, 0, HISTORY_GRAD_NORM)));
	assert_near(history_value(table, table->count - 1, HISTORY_STEP), (double)steps, 0);
	struct curve curve;
	curve_of_steps(&history, HISTORY_TOKENS, loss, &curve);
	assert_int_equal(curve.count, CURVE_POINTS);
	assert_true(curve.is_mean);
	for (int64_t i = 0; i < curve.count; i++)
		assert_true(curve.low[i] <= curve.y[i] && curve.y[i] <= curve.high[i] && (i == 0 || curve.x[i] > curve.x[i - 1]));
	curve_of_steps(&history, HISTORY_TOKENS, HISTORY_GRAD_NORM, &curve);
	assert_int_equal(curve.count, 0);
	history_release(&history);
}

/* An endless number of names does not fill the memory. */
static void test_columns_are_bounded(void **state)
{
	struct history history = {0};
	for (int i = 0; i < 500; i++)
		add_line(&history, "{\"step\":%d,\"loss\":1,\"column_%d\":%d}", i, i, i);
	assert_int_equal(history.column_count, HISTORY_COLUMNS);
	assert_int_equal(history.steps.count, 500);
	assert_near(history_value(&history.steps, 3, history_column(&history, "column_3")), 3, 0);
	assert_int_equal(history_column(&history, "column_400"), -1);
	history_release(&history);
}

static void test_token_frequencies(void **state)
{
	/* Token 7 half of the time, 8 a quarter, 9 and 10 an eighth each: 1.75 bits. */
	static const int32_t ids[] = {7, 7, 7, 7, 8, 8, 9, 10};
	struct shard_writer *writer;
	struct shard_description description = {.vocab_hash = 1};
	struct shard shard;
	struct token_frequencies frequencies;
	assert_ok(shard_writer_open(&writer, test_path("frequencies"), 20));
	for (int i = 0; i < 5000; i++)
		assert_ok(shard_writer_sentence(writer, ids, 8));
	assert_ok(shard_writer_end_document(writer));
	assert_ok(shard_writer_commit(writer, &description));
	assert_ok(shard_open(&shard, test_path("frequencies")));
	assert_ok(token_frequencies_measure(&shard, 1, 20, &frequencies));
	assert_near(frequencies.entropy, 1.75 * log(2), 1e-12);
	assert_near(frequencies.frequent_share, 0.5, 0);
	assert_int_equal(frequencies.frequent_id, 7);
	assert_int_equal(frequencies.counted, 40000);
	assert_error(ERR_DATA, "frequencies", token_frequencies_measure(&shard, 1, 9, &frequencies));
	shard_close(&shard);
	assert_ok(token_frequencies_measure(NULL, 0, 20, &frequencies));
	assert_true(isnan(frequencies.entropy));
}

static void test_token_frequencies_of_static_instances(void **state)
{
	int32_t ids[4] = {2, 4, 4, 3}, types[4] = {0}, positions[2] = {1, 2}, labels[2];
	struct instance instance = {.length = 4,
				    .ids = ids,
				    .types = types,
				    .prediction_count = 2,
				    .prediction_positions = positions,
				    .prediction_labels = labels,
				    .next_label = -1};
	struct static_writer *writer;
	struct static_file file;
	struct token_frequencies frequencies;
	assert_ok(static_writer_open(&writer, test_path("instances")));
	for (int i = 0; i < 8; i++) { /* 7 six times, 8 eight times, 9 twice */
		labels[0] = 8;
		labels[1] = i < 6 ? 7 : 9;
		assert_ok(static_writer_add(writer, &instance));
	}
	assert_ok(static_writer_commit(writer, 0));
	assert_ok(static_file_open(&file, test_path("instances")));
	assert_ok(token_frequencies_measure_static(&file, 1, 20, &frequencies));
	assert_near(frequencies.entropy, 0.5 * log(2) - 0.375 * log(0.375) - 0.125 * log(0.125), 1e-12);
	assert_near(frequencies.frequent_share, 0.5, 0);
	assert_int_equal(frequencies.frequent_id, 8);
	static_file_close(&file);
}

struct spelled {
	struct buffer text;
};
static void put(void *context, const char *text, int32_t id, bool glued)
{
	struct spelled *spelled = context;
	(void)id;
	if (!glued)
		buffer_char(&spelled->text, ' ');
	buffer_text(&spelled->text, text);
}

static void test_spelling(void **state)
{
	static const char *const entries[] = {
		"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "play",         "##ing",        ",", "\"",
		"(",     ")",     "it",    "'",     "s",      "\xE4\xBD\xA0", "\xE5\xA5\xBD", "."};
	static const int32_t ids[] = {8, 5, 6, 7, 8, 11, 12, 13, 9, 4, 10, 14, 15, 16};
	struct vocab vocab;
	struct spelled spelled = {0};
	assert_ok(vocab_from_entries(&vocab, entries, sizeof entries / sizeof *entries));
	samples_spell(&vocab, ids, sizeof ids / sizeof *ids, put, &spelled);
	assert_string_equal(buffer_string(&spelled.text), "\"playing,\" it's ([MASK]) \xE4\xBD\xA0\xE5\xA5\xBD.");
	buffer_release(&spelled.text);
	vocab_release(&vocab);
}

/* The tokens of a byte-level tokenizer say themselves which words follow a space. */
static void test_spelling_of_marked_words(void **state)
{
	static const char json[] =
		"{\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": true, "
		"\"use_regex\": true}, \"decoder\": {\"type\": \"ByteLevel\"}, \"model\": {\"type\": \"BPE\", \"merges\": [], "
		"\"vocab\": {\"<s>\": 0, \"\\u0120play\": 1, \"ing\": 2, \".\": 3, \"\\u0120(\": 4, \"a\": 5}}}";
	static const int32_t ids[] = {1, 2, 4, 5, 3};
	struct vocab vocab;
	struct spelled spelled = {0};
	assert_ok(file_write(test_path("tokenizer.json"), json, strlen(json)));
	assert_ok(vocab_read(&vocab, test_path("tokenizer.json")));
	samples_spell(&vocab, ids, sizeof ids / sizeof *ids, put, &spelled);
	assert_string_equal(buffer_string(&spelled.text), "playing (a.");
	buffer_release(&spelled.text);
	vocab_release(&vocab);
}

/* The place of the right word is written as in English: 21st, 22nd, 23rd. */
static void test_places(void **state)
{
	static const char *const entries[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "<i>"};
	static const struct {
		int32_t place;
		const char *text;
	} cases[] = {{6, "word: 6th<"},
		     {11, "word: 11th<"},
		     {12, "word: 12th<"},
		     {13, "word: 13th<"},
		     {21, "word: 21st<"},
		     {22, "word: 22nd<"},
		     {23, "word: 23rd<"},
		     {30, "word: 30th<"},
		     {91, "word: 91st<"},
		     {100, "word: 100th<"},
		     {0, "not among the first 100<"}};
	struct vocab vocab;
	struct sample_evaluation evaluation = {.step = 7};
	struct buffer html = {0};
	assert_ok(vocab_from_entries(&vocab, entries, sizeof entries / sizeof *entries));
	struct samples samples = {
		.sentences = {{.ids = {5, 4}, .count = 2, .blanks = 1, .answers = {6}}},
		.count = 1,
		.predictor = {.vocab = &vocab},
		.evaluations = &evaluation,
		.evaluation_count = 1,
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		evaluation.blanks[0][0].place = cases[i].place;
		buffer_clear(&html);
		samples_html(&samples, &html);
		assert_non_null(strstr(buffer_string(&html), cases[i].text));
		assert_null(strstr(buffer_string(&html), "<i>"));
	}
	buffer_release(&html);
	vocab_release(&vocab);
}

/* The page of a complete run, and that of a run that has only begun: no hostile name gets through as markup. */
static void test_page(void **state)
{
	static const char *const entries[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "<the>"};
	struct vocab vocab;
	struct samples samples = {0};
	struct token_frequencies frequencies = {.entropy = 5.5, .frequent_share = 0.06, .frequent_id = 5};
	assert_ok(vocab_from_entries(&vocab, entries, sizeof entries / sizeof *entries));
	struct report report = {
		.folder = "runs/<script>alert(1)</script>",
		.facts = {.form = "nomic_bert",
			  .layers = 2,
			  .hidden = 128,
			  .vocab_size = 1000,
			  .parameters = 123456,
			  .epoch_tokens = 1e6},
		.task = pretraining_report(&(struct pretraining_report_facts){.vocab_size = 1000,
									      .frequencies = &frequencies,
									      .vocab = &vocab,
									      .next_sentence = NEXT_SENTENCE_PAIRS,
									      .samples = &samples}),
		.total_steps = 400,
	};
	struct report_progress progress = {.step = 1, .tokens = 100, .seconds = 1, .phase = 1};
	struct report_page page = {.report = &report, .state = &progress, .running = true, .written = "today"};
	struct buffer html = {0};
	diagnosis_start(&report.diagnosis, &(struct diagnosis_facts){.task = &report.task});
	report_page_html(&page, &html);
	assert_ok(buffer_status(&html));
	assert_non_null(strstr(buffer_string(&html), "Too early to say"));
	assert_null(strstr(buffer_string(&html), "<script>alert"));
	assert_non_null(strstr(buffer_string(&html), "Encoder of the form nomic_bert, 2 layers of width 128, "));
	buffer_clear(&html);

	for (int step = 1; step <= 300; step++) {
		struct findings findings = {0};
		double loss = 7 - 0.01 * step;
		add_line(&report.history,
			 "{\"step\":%d,\"tokens\":%d,\"seconds\":%d,\"phase\":%d,\"loss\":8,\"mlm_loss\":%g,\"mlm_accuracy\":0.2,"
			 "\"nsp_loss\":0.69,\"nsp_accuracy\":0.51,\"learning_rate\":1,\"grad_norm\":1,\"tokens_per_second\":10}",
			 step, step, step, step < 200 ? 1 : 2, loss);
		diagnosis_step(&report.diagnosis,
			       &(struct diagnosis_step){.step = step, .tokens = step, .loss = loss, .share = 0.2, .grad_norm = 1},
			       &findings);
	}
	add_line(&report.history, "{\"step\":300,\"eval_set\":\"<i>\",\"eval_<i>_mlm_loss\":5.6,\"eval_<i>_mlm_accuracy\":0.2,"
				  "\"tokens\":300,\"seconds\":300}");
	add_line(&report.history, "{\"step\":150,\"event\":\"resumed\",\"text\":\"Resumed after step 150 <u>.\",\"tokens\":150,"
				  "\"seconds\":150}");
	page.running = false;
	page.status = ERR_RESOURCE;
	page.reason = "the disk is full of <b>";
	report_page_html(&page, &html);
	const char *text = buffer_string(&html);
	assert_non_null(strstr(text, "This run ended with an error"));
	assert_non_null(strstr(text, "the disk is full of &lt;b&gt;"));
	assert_non_null(strstr(text, "phase 2"));
	assert_non_null(strstr(text, "&lt;i&gt;"));
	assert_null(strstr(text, "<i>"));
	assert_null(strstr(text, "<u>"));
	assert_null(strstr(text, "nan"));
	assert_non_null(strstr(text, "Loss of next sentences"));
	assert_null(strstr(text, "peak matmul speed\""));
	/* Next-sentence prediction is reported, and the resume is marked on each chart's three axes. */
	assert_non_null(strstr(text, "Next sentences: 51.0 % right"));
	assert_non_null(strstr(text, "It cannot yet tell"));
	assert_non_null(strstr(text, "class=\"resumed\""));
	assert_non_null(strstr(text, "id=\"by-steps\""));
	page.status = OK;
	buffer_clear(&html);
	report_page_html(&page, &html);
	assert_non_null(strstr(buffer_string(&html), "Finished: it has begun to learn"));
	buffer_release(&html);
	history_release(&report.history);
	vocab_release(&vocab);
}

/* Too many evaluations for a table: those that it shows are of every set. */
static void test_evaluations_of_two_sets(void **state)
{
	struct report report = {.folder = "runs/long", .total_steps = 500};
	struct report_progress progress = {.step = 500, .tokens = 500, .seconds = 1, .phase = 1};
	struct report_page page = {.report = &report, .state = &progress, .written = "today"};
	struct buffer html = {0};
	report_task_plain(&report.task, NAN);
	diagnosis_start(&report.diagnosis, &(struct diagnosis_facts){.task = &report.task});
	for (int step = 1; step <= 500; step++) {
		add_line(&report.history, "{\"step\":%d,\"eval_loss\":1,\"tokens\":%d}", step, step);
		add_line(&report.history, "{\"step\":%d,\"eval_set\":\"old\",\"eval_old_loss\":2,\"tokens\":%d}", step, step);
	}
	report_page_html(&page, &html);
	assert_non_null(strstr(buffer_string(&html), "<td>dev set</td>"));
	assert_non_null(strstr(buffer_string(&html), "<td>old</td>"));
	buffer_release(&html);
	history_release(&report.history);
}

/* Steps `first` + 1 to `last` of a run of two phases of 500 steps, with an evaluation after every 20th.
 * Training losses fall throughout; the held-out loss of 'other' rises after step 300, in each phase anew, the main one falls. */
static void train(const char *path, int first, int last, int log_steps)
{
	struct report report = {.metrics_path = path};
	struct report_progress at = {.step = first, .tokens = 10 * first, .seconds = first, .phase = first > 500 ? 2 : 1};
	at.evaluated_step = first;
	assert_ok(report_start(&report, &at));
	for (int step = first + 1; step <= last; step++) {
		struct measures measures = {0};
		int phase = step > 500 ? 2 : 1, own = phase == 1 ? step : step - 500;
		if (step == first + 1 || own == 1)
			report_phase(&report,
				     &(struct report_phase){.count = 2,
							    .begins = phase == 2 && own == 1,
							    .log_steps = log_steps,
							    .total_steps = 1000,
							    .peak_rate = 1e-3},
				     &at);
		at = (struct report_progress){.step = step, .tokens = 10 * step, .seconds = step, .phase = phase};
		struct rng rng = rng_start((uint64_t)step, RNG_TEST, 0);
		double noise = 0.25 * (rng_double(&rng) + rng_double(&rng) - 1);
		measures_add(&measures, &(struct measure){"loss", "loss", UNIT_NATS, DIRECTION_LOWER, 6 - 0.005 * own + noise});
		assert_ok(report_step(
			&report,
			&(struct step_report){
				.state = &at, .metrics = &measures, .learning_rate = 1e-3, .grad_norm = 1, .token_count = 10}));
		if (step % 20 != 0)
			continue;
		for (int set = 0; set < 2; set++) {
			struct measures scores = {0};
			double loss = 6 - 0.004 * own + (set == 1 && own > 300 ? 0.01 * (own - 300) : 0);
			measures_add(&scores, &(struct measure){"loss", "loss", UNIT_NATS, DIRECTION_LOWER, loss});
			assert_ok(report_evaluation(&report, &at, set == 0 ? NULL : "other", &scores, 1));
		}
	}
	report_finish(&report, &at, STOPPED);
}

/* The events of metrics.jsonl, without those that say where the run was resumed. */
static void read_events(const char *path, struct buffer *out)
{
	struct buffer text = {0};
	assert_ok(file_read(path, 1 << 20, &text));
	for (const char *line = buffer_string(&text), *end; (end = strchr(line, '\n')); line = end + 1) {
		struct json_document document;
		assert_ok(json_parse(&document, path, line, (size_t)(end - line)));
		const struct json *event = json_member(document.root, "event");
		if (event && strcmp(event->text, REPORT_RESUMED) != 0)
			buffer_format(out, "%lld %s\n", (long long)json_member(document.root, "step")->integer, event->text);
		json_release(&document);
	}
	buffer_release(&text);
}

/* Wherever a run is interrupted, it reports the same findings at the same steps as an uninterrupted one. */
static void check_resumed_findings(int log_steps)
{
	static const int stops[] = {40, 320, 360, 400, 480, 500, 501, 520, 800, 860, 900};
	struct buffer whole = {0};
	char path[PATH_BYTES], name[32];
	snprintf(name, sizeof name, "whole-%d.jsonl", log_steps);
	snprintf(path, sizeof path, "%s", test_path(name));
	train(path, 0, 1000, log_steps);
	read_events(path, &whole);
	int found = 0;
	for (const char *at = buffer_string(&whole); (at = strstr(at, "overfitting")); at++)
		found++;
	assert_int_equal(found, 2); /* once in each phase */
	for (size_t i = 0; i < sizeof stops / sizeof *stops; i++) {
		struct buffer resumed = {0};
		snprintf(name, sizeof name, "resumed-%d-%d.jsonl", log_steps, stops[i]);
		snprintf(path, sizeof path, "%s", test_path(name));
		train(path, 0, stops[i], log_steps);
		train(path, stops[i], 1000, log_steps);
		read_events(path, &resumed);
		if (log_steps <= 10)
			assert_string_equal(buffer_string(&resumed), buffer_string(&whole));
		else /* too few losses are known for more than that */
			assert_true(!strstr(buffer_string(&resumed), "rising") && !strstr(buffer_string(&resumed), "spike"));
		buffer_release(&resumed);
	}
	buffer_release(&whole);
}

static void test_resumed_findings(void **state)
{
	check_resumed_findings(1);
	check_resumed_findings(10);
	check_resumed_findings(100);
}

/* The means that evaluations are compared with span as many steps after resuming as before, though few steps are logged. */
static void test_resumed_means(void **state)
{
	struct report_task task = {0};
	struct diagnosis live, replayed;
	report_task_plain(&task, NAN);
	diagnosis_start(&live, &(struct diagnosis_facts){.task = &task});
	diagnosis_start(&replayed, &(struct diagnosis_facts){.task = &task});
	for (int step = 1; step <= 700; step++) {
		struct findings findings = {0};
		struct diagnosis_step at = {.step = step, .tokens = step, .loss = 8 - 0.001 * step, .share = NAN, .grad_norm = 1};
		diagnosis_step(&live, &at, &findings);
		if (step % 10 == 0)
			diagnosis_replay_step(&replayed, &at);
	}
	struct diagnosis_evaluation evaluation = {.step = 700, .loss = 7.3, .score = 7.3};
	struct findings findings = {0};
	diagnosis_evaluation(&live, &evaluation, &findings);
	diagnosis_replay_evaluation(&replayed, &evaluation);
	assert_near(replayed.sets[0].train_loss, live.sets[0].train_loss, 0.01);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_history),
		cmocka_unit_test(test_history_of_any_task),
		cmocka_unit_test(test_columns_are_bounded),
		cmocka_unit_test(test_long_history_is_thinned),
		cmocka_unit_test(test_token_frequencies),
		cmocka_unit_test(test_token_frequencies_of_static_instances),
		cmocka_unit_test(test_spelling),
		cmocka_unit_test(test_spelling_of_marked_words),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_page),
		cmocka_unit_test(test_evaluations_of_two_sets),
		cmocka_unit_test(test_resumed_findings),
		cmocka_unit_test(test_resumed_means),
	};
	return cmocka_run_group_tests(tests, test_folder_make, test_folder_drop);
}
