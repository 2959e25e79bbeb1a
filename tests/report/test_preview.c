/* The parts of a report about a labeled task: their figures against ones worked out by hand, and text that could break a
 * page. */
#include "report/preview.h"
#include <math.h>
#include "test.h"

static struct buffer html;

static const char *text_of(void)
{
	assert_ok(buffer_status(&html));
	return buffer_string(&html);
}

static int count_of(const char *what)
{
	int count = 0;
	for (const char *at = text_of(); (at = strstr(at, what)); at += strlen(what))
		count++;
	return count;
}

static int clear(void **state)
{
	buffer_release(&html);
	return 0;
}

static const char *const labels[] = {"no", "maybe", "<yes>"};
static const int64_t counts[] = {5, 2, 0, 1, 3, 1, 0, 0, 4};
static const struct report_confusion confusion = {3, labels, counts};

static void test_confusion(void **state)
{
	report_confusion_html(&confusion, &html);
	assert_int_equal(count_of("class=\"cell\""), 9);
	assert_non_null(strstr(text_of(), "title=\"no \xE2\x86\x92 maybe: 2 (28.6 %)\""));
	assert_non_null(strstr(text_of(), "title=\"&lt;yes&gt; \xE2\x86\x92 &lt;yes&gt;: 4 (100.0 %)\""));
	assert_null(strstr(text_of(), "<yes>"));
	/* The recall of "no": 5 of 7. */
	assert_non_null(strstr(text_of(), "71.4 %"));
}

static void test_per_label(void **state)
{
	report_confusion_classes_html(&confusion, &html);
	/* no: precision 5/6, recall 5/7, F1 10/13; maybe: 3/5, 3/5, 6/10; yes: 4/5, 4/4, 8/9. */
	assert_non_null(strstr(text_of(), "83.3 %</td><td class=\"n\">71.4 %</td><td class=\"n\">76.9 %"));
	assert_non_null(strstr(text_of(), "60.0 %</td><td class=\"n\">60.0 %</td><td class=\"n\">60.0 %"));
	assert_non_null(strstr(text_of(), "80.0 %</td><td class=\"n\">100.0 %</td><td class=\"n\">88.9 %"));
}

/* A class that is never predicted has no precision; one that never occurs has no recall. */
static void test_undefined_shares(void **state)
{
	const struct report_class classes[] = {{"never predicted", 4, 0, 0}, {"never there", 0, 3, 0}, {"neither", 0, 0, 0}};
	report_classes_html(classes, 3, &html);
	assert_null(strstr(text_of(), "nan"));
	assert_non_null(strstr(text_of(), "<td class=\"n\">\xE2\x80\x93</td><td class=\"n\">0.0 %</td>"));
	assert_non_null(strstr(text_of(), "<td class=\"n\">0.0 %</td><td class=\"n\">\xE2\x80\x93</td>"));
}

/* With many classes: the pairs confused most often, most frequent first, and the classes with the lowest F1 first. */
static void test_many_classes(void **state)
{
	enum { MANY = 30 };
	static char names[MANY][16];
	const char *many[MANY];
	int64_t cells[MANY * MANY] = {0};
	for (int i = 0; i < MANY; i++) {
		snprintf(names[i], sizeof names[i], "class %d.", i);
		many[i] = names[i];
		cells[i * MANY + i] = 10;
	}
	cells[3 * MANY + 4] = 30; /* 3 of 40 */
	cells[7 * MANY + 2] = 40;
	for (int i = 10; i < 29; i++)
		for (int k = 20; k < 29; k++)
			cells[i * MANY + k] += i == k ? 0 : 1;
	report_confusion_html(&(struct report_confusion){MANY, many, cells}, &html);
	assert_int_equal(count_of("class=\"cell\""), 0);
	assert_int_equal(count_of("<tr><td>"), 25);
	const char *first = strstr(text_of(), "class 7."), *second = strstr(text_of(), "class 3.");
	assert_true(first && second && first < second);
	assert_non_null(strstr(second, "75.0 %"));
	buffer_clear(&html);
	report_confusion_classes_html(&(struct report_confusion){MANY, many, cells}, &html);
	assert_true(strstr(text_of(), "class 7.") < strstr(text_of(), "class 0."));
	assert_int_equal(count_of("class=\"meter\""), MANY);
}

/* A file may hold anything: markup, control characters, invalid UTF-8, right-to-left text, endless lines. */
static void test_errors_are_escaped(void **state)
{
	char line[20000];
	memset(line, 'x', sizeof line - 1);
	line[sizeof line - 1] = 0;
	const struct report_error errors[] = {
		{1, "<script>alert(1)</script> & \"so on\"\r\n\t  \x1b[31m\xff\xc3", "</div></body>", "<b>", "\xd7\xa9", 3.25,
		 NULL, 0},
		{2, line, NULL, "a", "b", NAN, NULL, 0},
		{0, "\xc3\xa4\xc3\xa4", NULL, "", "", 1, NULL, 0},
	};
	report_errors_html(errors, 3, 7, 100, &html);
	const char *text = text_of();
	assert_null(strstr(text, "<script"));
	assert_null(strstr(text, "</body>"));
	assert_null(strstr(text, "<b><b>"));
	assert_null(strchr(text, 0x1b));
	assert_non_null(strstr(text, "&lt;script&gt;alert(1)&lt;/script&gt; &amp; &quot;so on&quot; \xEF\xBF\xBD[31m"));
	assert_non_null(strstr(text, "7 of 100 examples are wrong"));
	assert_non_null(strstr(text, "loss 3.250"));
	assert_true(html.size < 4000);
	assert_non_null(strstr(text, "xxx\xE2\x80\xA6</bdi>"));
	assert_non_null(strstr(text, "<bdi>\xc3\xa4\xc3\xa4</bdi>")); /* not cut inside a character */
	assert_null(strstr(text, "nan"));
	assert_int_equal(count_of("<div"), count_of("</div>"));
	assert_int_equal(count_of("<bdi>"), count_of("</bdi>"));
}

/* Right and predicted spans are marked in the text, those that only one side has in another color. */
static void test_spans_are_marked(void **state)
{
	(void)state;
	const struct report_span spans[] = {
		{0, 4, "A<", false, true}, {10, 13, "B", false, false}, {0, 4, "A<", true, true}, {10, 15, "B", true, false}};
	const struct report_error errors[] = {{1, "Anna & in New York", NULL, "x", "y", 1, spans, 4},
					      {2, "t", NULL, "r", "p", 1, NULL, 0}};
	report_errors_html(errors, 2, 2, 9, &html);
	const char *text = text_of();
	assert_non_null(strstr(text,
			       "right:</span><bdi><mark class=\"span\">Anna<sub>A&lt;</sub></mark> &amp; in <mark class=\"span "
			       "odd\">New<sub>B</sub></mark> York</bdi>"));
	assert_non_null(
		strstr(text, "predicted:</span><bdi><mark class=\"span\">Anna<sub>A&lt;</sub></mark> &amp; in <mark class=\"span "
			     "odd\">New Y<sub>B</sub></mark>ork</bdi>"));
	assert_null(strstr(text, "<bdi>x</bdi>"));
	assert_non_null(strstr(text, "<bdi>r</bdi>"));
	assert_int_equal(count_of("<mark"), count_of("</mark>"));
	buffer_clear(&html);
	char line[1000];
	memset(line, 'x', sizeof line - 1);
	line[sizeof line - 1] = 0;
	const struct report_span far[] = {{390, 700, "L", true, false}, {900, 950, "L", true, false}};
	report_errors_html(&(struct report_error){1, line, NULL, "", "", 1, far, 2}, 1, 1, 9, &html);
	assert_int_equal(count_of("<mark"), 1);
	assert_non_null(strstr(text_of(), "xxxxx<sub>L</sub></mark>\xE2\x80\xA6</bdi>"));
}

static void test_scatter(void **state)
{
	const struct report_point points[] = {{0, 1}, {1, 1.5}, {2, 2}, {3, NAN}, {4, 3}};
	report_scatter_html(points, 5, &html);
	assert_int_equal(count_of("class=\"point f1\""), 4);
	assert_non_null(strstr(text_of(), "class=\"level\""));
	assert_null(strstr(text_of(), "nan"));
	buffer_clear(&html);
	report_scatter_html(points, 3, &html);
	assert_non_null(strstr(text_of(), "correlation 1.000"));
	buffer_clear(&html);
	report_scatter_html(points, 0, &html);
	assert_non_null(strstr(text_of(), "nothing measured yet"));
}

static const char *const settings[] = {"learning_rate", "batch", "seed"};
static const char *const values[][3] = {{"1e-4", "16", "1"}, {"1e-4", "16", "2"}, {"3e-5", "16", "1"},
					{"3e-5", "16", "2"}, {"2e-5", "16", "1"}, {"2e-5", "16", "2"}};
static struct report_sweep_run runs[] = {
	{"r1", values[0], 0.71, "finished", true}, {"r2", values[1], 0.91, "finished", true},
	{"r3", values[2], 0.85, "finished", true}, {"r4", values[3], 0.87, "finished", true},
	{"r5", values[4], 0.80, "finished", true}, {"<r6>", values[5], NAN, "failed: <disk>", true},
};

static void test_sweep(void **state)
{
	struct report_sweep sweep = {settings, 3, runs, 6, report_column("accuracy"), "dev set"};
	/* r2 has the highest score, but 3e-5 the better mean. */
	assert_int_equal(report_sweep_best(&sweep), 3);
	report_sweep_page(&sweep, "A <sweep>", &html);
	const char *text = text_of();
	/* Plots of the two settings that vary, with five points each, one of them marked. */
	assert_int_equal(count_of("<svg"), 2);
	assert_int_equal(count_of("class=\"dot f1\""), 8);
	assert_int_equal(count_of("class=\"dot f2\""), 2);
	assert_non_null(strstr(text, "The best is r4: accuracy 87.0 % on the dev set, the best seed of the setting"));
	/* Values in numeric, not alphabetical order. */
	const char *low = strstr(text, ">2e-5</text>"), *high = strstr(text, ">1e-4</text>");
	assert_true(low && high && low < high);
	/* The better setting wins: 3e-5 has mean 0.86, deviation 0.0141. */
	const char *means = strstr(text, "Means over the seeds");
	assert_non_null(means);
	assert_int_equal(count_of("class=\"best\""), 2);
	const char *best = strstr(means, "class=\"best\"");
	assert_non_null(strstr(best, "<bdi>3e-5</bdi>"));
	assert_true(strstr(best, "86.0 %</td><td class=\"n\">1.4 %") < strstr(best, "</tr>"));
	assert_null(strstr(text, "<r6>"));
	assert_null(strstr(text, "<disk>"));
	assert_null(strstr(text, "nan"));
	/* If less is better, the lowest value wins. */
	sweep.measure = report_column("mse");
	assert_int_equal(report_sweep_best(&sweep), 0);
	/* A setting with a failed run comes last, however good its other runs are; one with runs still to come does not. */
	sweep.measure = report_column("accuracy");
	runs[4].score = 0.99;
	assert_int_equal(report_sweep_best(&sweep), 3);
	runs[5].over = false;
	assert_int_equal(report_sweep_best(&sweep), 4);
	struct report_sweep_group *groups;
	int64_t count;
	assert_ok(report_sweep_groups(&sweep, &groups, &count));
	assert_int_equal(count, 3);
	assert_int_equal(groups[0].first, 4);
	assert_int_equal(groups[0].runs, 1);
	assert_true(isnan(groups[0].deviation));
	assert_near(groups[1].mean, 0.86, 1e-12);
	assert_near(groups[1].deviation, 0.0141421356, 1e-9);
	free(groups);
	/* Without seeds the best single run is the best. */
	sweep.setting_count = 2;
	assert_int_equal(report_sweep_best(&sweep), 4);
}

static void test_preview_keeps_the_worst(void **state)
{
	struct task_preview preview = {.labels = labels, .classes = 3};
	task_preview_begin(&preview, 10);
	assert_ok(task_preview_confusion(&preview, counts));
	for (int i = 0; i < 100; i++) {
		char text[32];
		double loss = (i * 37) % 100; /* every loss from 0 to 99, out of order */
		snprintf(text, sizeof text, "text of loss %.0f", loss);
		assert_ok(task_preview_example(
			&preview, &(struct report_error){.text = text, .right = "a", .predicted = "b", .loss = loss}));
		assert_ok(task_preview_example(&preview, NULL));
	}
	assert_int_equal(preview.error_count, PREVIEW_ERRORS);
	for (int i = 0; i < PREVIEW_ERRORS; i++)
		assert_near(preview.errors[i].loss, 99 - i, 0);
	assert_string_equal(preview.errors[3].text, "text of loss 96");
	assert_int_equal(preview.wrong, 100);
	assert_int_equal(preview.examples, 200);
	struct report_preview report = task_preview_of(&preview);
	assert_non_null(report.confusion(report.context, NULL));
	assert_null(report.confusion(report.context, "another set"));
	report.write(report.context, &html);
	assert_non_null(strstr(text_of(), "100 of 200 examples are wrong"));

	for (int i = 0; i < 10 * PREVIEW_POINTS; i++)
		assert_ok(task_preview_point(&preview, (struct report_point){i, i}));
	assert_true(preview.point_count > PREVIEW_POINTS / 2 && preview.point_count <= PREVIEW_POINTS);
	for (int64_t i = 0; i < preview.point_count; i++) /* evenly spaced */
		assert_near(preview.points[i].right, (double)(i * preview.point_stride), 0);

	task_preview_begin(&preview, 20);
	assert_null(report.confusion(report.context, NULL));
	buffer_clear(&html);
	report.write(report.context, &html);
	assert_int_equal(html.size, 0);
	task_preview_release(&preview);
}

/* Ten answers at 90 % of which seven are right, ten at 20 % of which two are. */
static void test_scores(void **state)
{
	struct task_preview preview = {.classes = 0};
	task_preview_begin(&preview, 1);
	report_scores_html(&preview.scores, &html);
	assert_int_equal(html.size, 0);
	for (int i = 0; i < 10; i++) {
		task_preview_score(&preview, 0.9, i < 7);
		task_preview_score(&preview, 0.2, i < 2);
	}
	report_scores_html(&preview.scores, &html);
	assert_non_null(strstr(text_of(), "right: 10.0 %"));
	assert_null(strstr(text_of(), "calibrated"));
	assert_int_equal(count_of("<figure>"), 2);
	preview.scores.temperature = 2;
	score_bins_add(&preview.scores.calibrated, 0.75, true);
	buffer_clear(&html);
	report_scores_html(&preview.scores, &html);
	assert_non_null(strstr(text_of(), "10.0 %, and 25.0 % with a temperature of 2"));
	task_preview_release(&preview);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_confusion, clear),
		cmocka_unit_test_teardown(test_per_label, clear),
		cmocka_unit_test_teardown(test_undefined_shares, clear),
		cmocka_unit_test_teardown(test_many_classes, clear),
		cmocka_unit_test_teardown(test_errors_are_escaped, clear),
		cmocka_unit_test_teardown(test_scores, clear),
		cmocka_unit_test_teardown(test_spans_are_marked, clear),
		cmocka_unit_test_teardown(test_scatter, clear),
		cmocka_unit_test_teardown(test_sweep, clear),
		cmocka_unit_test_teardown(test_preview_keeps_the_worst, clear),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
