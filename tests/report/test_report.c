/* The history of a run, the word frequencies of its text, the sample sentences, and the page: small ones made by hand. */
#include <math.h>
#include "data/unigram.h"
#include "test.h"
#include "report/page.h"

static void write_text(const char *path, const char *text)
{
	assert_ok(file_write(path, text, strlen(text)));
}

static void test_history(void **state)
{
	(void)state;
	const char *path = test_path("metrics.jsonl");
	struct history history = {0};
	assert_ok(history_read(&history, test_path("nowhere.jsonl")));
	assert_int_equal(history.count, 0);
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
	assert_int_equal(history.count, 1);
	assert_near(history.rows[0].value[HISTORY_MLM_LOSS], 8.8, 0);
	assert_true(isnan(history.rows[0].value[HISTORY_GRAD_NORM]));
	/* The evaluation of step 20 was made again after a resume: the later one counts. */
	assert_int_equal(history.evaluation_count, 3);
	assert_int_equal(history.set_count, 2);
	assert_string_equal(history.sets[history.evaluations[1].set], "old");
	assert_near(history.evaluations[1].row.value[HISTORY_MLM_LOSS], 7.5, 0);
	assert_near(history_last_evaluation(&history, history_main_set(&history))->value[HISTORY_MLM_LOSS], 5.4, 0);
	assert_int_equal(history.event_count, 2);
	assert_string_equal(history.events[0].advice, "Lower it.");
	assert_false(history.events[0].over);
	assert_true(history.events[1].over);
	history_release(&history);
}

static void test_long_history_is_thinned(void **state)
{
	(void)state;
	struct history history = {0};
	int64_t steps = (1 << 17) + 10;
	for (int64_t step = 1; step <= steps; step++) {
		struct history_row row;
		for (int c = 0; c < HISTORY_COLUMNS; c++)
			row.value[c] = (double)step;
		row.value[HISTORY_GRAD_NORM] = NAN;
		assert_ok(history_add_row(&history, &row));
	}
	assert_int_equal(history.count, (1 << 16) + 10);
	assert_near(history.rows[0].value[HISTORY_STEP], 2, 0);
	assert_near(history.rows[0].value[HISTORY_MLM_LOSS], 1.5, 0);
	assert_true(isnan(history.rows[0].value[HISTORY_GRAD_NORM]));
	assert_near(history.rows[history.count - 1].value[HISTORY_STEP], (double)steps, 0);
	struct curve curve;
	curve_of_rows(&history, HISTORY_TOKENS, HISTORY_MLM_LOSS, &curve);
	assert_int_equal(curve.count, CURVE_POINTS);
	assert_true(curve.is_mean);
	for (int64_t i = 0; i < curve.count; i++)
		assert_true(curve.low[i] <= curve.y[i] && curve.y[i] <= curve.high[i] && (i == 0 || curve.x[i] > curve.x[i - 1]));
	curve_of_rows(&history, HISTORY_TOKENS, HISTORY_GRAD_NORM, &curve);
	assert_int_equal(curve.count, 0);
	history_release(&history);
}

static void test_unigram(void **state)
{
	(void)state;
	/* Token 7 half of the time, 8 a quarter, 9 and 10 an eighth each: 1.75 bits. */
	static const int32_t ids[] = {7, 7, 7, 7, 8, 8, 9, 10};
	struct shard_writer *writer;
	struct shard_description description = {.vocab_hash = 1};
	struct shard shard;
	struct unigram unigram;
	assert_ok(shard_writer_open(&writer, test_path("frequencies"), 20));
	for (int i = 0; i < 5000; i++)
		assert_ok(shard_writer_sentence(writer, ids, 8));
	assert_ok(shard_writer_end_document(writer));
	assert_ok(shard_writer_commit(writer, &description));
	assert_ok(shard_open(&shard, test_path("frequencies")));
	assert_ok(unigram_measure(&shard, 1, 20, &unigram));
	assert_near(unigram.entropy, 1.75 * log(2), 1e-12);
	assert_near(unigram.frequent_share, 0.5, 0);
	assert_int_equal(unigram.frequent_id, 7);
	assert_int_equal(unigram.counted, 40000);
	assert_error(ERR_DATA, "frequencies", unigram_measure(&shard, 1, 9, &unigram));
	shard_close(&shard);
	assert_ok(unigram_measure(NULL, 0, 20, &unigram));
	assert_true(isnan(unigram.entropy));
}

static void test_unigram_of_static_instances(void **state)
{
	(void)state;
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
	struct unigram unigram;
	assert_ok(static_writer_open(&writer, test_path("instances")));
	for (int i = 0; i < 8; i++) { /* 7 six times, 8 eight times, 9 twice */
		labels[0] = 8;
		labels[1] = i < 6 ? 7 : 9;
		assert_ok(static_writer_add(writer, &instance));
	}
	assert_ok(static_writer_commit(writer, 0));
	assert_ok(static_file_open(&file, test_path("instances")));
	assert_ok(unigram_measure_static(&file, 1, 20, &unigram));
	assert_near(unigram.entropy, 0.5 * log(2) - 0.375 * log(0.375) - 0.125 * log(0.125), 1e-12);
	assert_near(unigram.frequent_share, 0.5, 0);
	assert_int_equal(unigram.frequent_id, 8);
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
	(void)state;
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

/* A page of a run with everything in it, and one of a run that has only begun: no hostile name gets through as markup. */
static void test_page(void **state)
{
	(void)state;
	struct report report = {
		.folder = "runs/<script>alert(1)</script>",
		.facts = {.layers = 2,
			  .hidden = 128,
			  .vocab_size = 1000,
			  .parameters = 123456,
			  .text_tokens = 1e6,
			  .unigram_entropy = 5.5,
			  .frequent_share = 0.06,
			  .frequent_token = "<the>",
			  .next_sentence = true},
		.total_steps = 400,
	};
	struct report_progress progress = {.step = 1, .tokens = 100, .seconds = 1};
	struct report_page page = {.report = &report, .state = &progress, .running = true, .written = "today"};
	struct buffer html = {0};
	diagnosis_start(&report.diagnosis, &(struct diagnosis_facts){.unigram_entropy = 5.5, .vocab_size = 1000});
	report_page_html(&page, &html);
	assert_ok(buffer_status(&html));
	assert_non_null(strstr(buffer_string(&html), "Too early to say"));
	assert_null(strstr(buffer_string(&html), "<script>alert"));
	buffer_clear(&html);

	for (int64_t step = 1; step <= 300; step++) {
		struct findings findings = {0};
		struct history_row row;
		for (int c = 0; c < HISTORY_COLUMNS; c++)
			row.value[c] = c == HISTORY_MLM_LOSS ? 7 - 0.01 * (double)step : (double)step;
		row.value[HISTORY_MLM_ACCURACY] = row.value[HISTORY_NSP_ACCURACY] = 0.2;
		row.value[HISTORY_PHASE] = step < 200 ? 1 : 2;
		row.value[HISTORY_SHARE_OF_GEMM] = NAN;
		assert_ok(history_add_row(&report.history, &row));
		diagnosis_step(&report.diagnosis,
			       &(struct diagnosis_step){.step = step,
							.tokens = step,
							.mlm_loss = row.value[HISTORY_MLM_LOSS],
							.mlm_accuracy = 0.2,
							.grad_norm = 1},
			       &findings);
	}
	struct json_document line;
	static const char evaluation[] =
		"{\"step\":300,\"eval_set\":\"<i>\",\"eval_<i>_mlm_loss\":5.6,\"eval_<i>_mlm_accuracy\":0.2,"
		"\"tokens\":300,\"seconds\":300}";
	assert_ok(json_parse(&line, "line", evaluation, strlen(evaluation)));
	assert_ok(history_add(&report.history, line.root));
	json_release(&line);
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
	assert_null(strstr(text, "nan"));
	assert_non_null(strstr(text, "Loss of next sentences"));
	assert_null(strstr(text, "matrix products\""));
	page.status = OK;
	buffer_clear(&html);
	report_page_html(&page, &html);
	assert_non_null(strstr(buffer_string(&html), "Finished, and it has learned"));
	buffer_release(&html);
	history_release(&report.history);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_history),  cmocka_unit_test(test_long_history_is_thinned),
		cmocka_unit_test(test_unigram),  cmocka_unit_test(test_unigram_of_static_instances),
		cmocka_unit_test(test_spelling), cmocka_unit_test(test_page),
	};
	return cmocka_run_group_tests(tests, test_folder_make, test_folder_drop);
}
