/* Ticks and numbers as a person would choose them; drawings of any numbers are well-formed and stay within their frame. */
#include <ctype.h>
#include <math.h>
#include "formats/chart.h"
#include "test.h"

static void assert_ticks(double low, double high, const struct chart_axis *axis, const char *expected)
{
	double ticks[CHART_TICKS];
	char text[256] = "", number[CHART_NUMBER_BYTES];
	int count = chart_ticks(low, high, axis, 5, ticks);
	for (int i = 0; i < count; i++) {
		double step = count > 1 && !axis->logarithmic ? ticks[1] - ticks[0] : 0;
		snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? "|" : "",
			 chart_number(number, ticks[i], axis->number, step));
	}
	assert_string_equal(text, expected);
}

static void test_ticks(void **state)
{
	struct chart_axis plain = {0}, share = {.number = CHART_SHARE}, count = {.number = CHART_COUNT};
	struct chart_axis duration = {.number = CHART_DURATION}, power = {.number = CHART_POWER};
	struct chart_axis logarithmic = {.number = CHART_POWER, .logarithmic = true};
	assert_ticks(0, 10, &plain, "0|2|4|6|8|10");
	assert_ticks(6.03, 9.9, &plain, "7|8|9");
	assert_ticks(6.1, 6.24, &plain, "6.10|6.15|6.20");
	assert_ticks(-0.31, 0.4, &plain, "-0.2|0.0|0.2|0.4");
	assert_ticks(0, 0.17, &share, "0 %|5 %|10 %|15 %");
	assert_ticks(0, 0.0042, &share, "0.0 %|0.1 %|0.2 %|0.3 %|0.4 %");
	assert_ticks(0, 29767757, &count, "0|10 M|20 M");
	assert_ticks(0, 1200000, &count, "0|500 k|1 M");
	assert_ticks(0, 900, &count, "0|200|400|600|800");
	assert_ticks(0, 21000, &count, "0|5 k|10 k|15 k|20 k");
	assert_ticks(0, 4000, &count, "0|1 k|2 k|3 k|4 k");
	assert_ticks(0, 1793, &duration, "0|10 min|20 min");
	assert_ticks(0, 86400, &duration, "0|6 h|12 h|18 h|24 h");
	assert_ticks(0, 86400 * 9, &duration, "0|2 d|4 d|6 d|8 d");
	assert_ticks(0, 1e-3, &power, "0|2e-4|4e-4|6e-4|8e-4|1e-3");
	assert_ticks(0, 0.021, &power, "0|5e-3|1e-2|1.5e-2|2e-2");
	assert_ticks(0.8, 11, &logarithmic, "1|2|5|10");
	assert_ticks(1e-3, 1e4, &logarithmic, "1e-3|0.1|10|1000");
	/* An empty range has no ticks. */
	assert_ticks(1, 1, &plain, "");
	assert_ticks(NAN, 1, &plain, "");
	assert_ticks(-1, 1, &logarithmic, "");
}

static void test_numbers(void **state)
{
	char out[CHART_NUMBER_BYTES];
	assert_string_equal(chart_number(out, 0.1234, CHART_SHARE, 0), "12.3 %");
	assert_string_equal(chart_number(out, 7535746, CHART_COUNT, 0), "7.54 M");
	assert_string_equal(chart_number(out, 16000, CHART_COUNT, 0), "16 k");
	assert_string_equal(chart_number(out, 999, CHART_COUNT, 0), "999");
	assert_string_equal(chart_number(out, 4.5e9, CHART_COUNT, 0), "4.5 G");
	assert_string_equal(chart_number(out, 2.5e-6, CHART_POWER, 0), "2.5e-6");
	assert_string_equal(chart_number(out, 7200, CHART_DURATION, 0), "2 h");
	assert_string_equal(chart_number(out, 6.14967, CHART_PLAIN, 0), "6.15");
	assert_string_equal(chart_number(out, -0.5, CHART_PLAIN, 0.5), "-0.5");
}

static void test_text(void **state)
{
	struct buffer out = {0};
	html_text(&out, "<b a=\"1\">&\x01 caf\xC3\xA9 \xFF\xE4\xBD\xA0\xC0\xAF\xED\xA0\x80\xE4\xBD");
	assert_string_equal(
		buffer_string(&out),
		"&lt;b a=&quot;1&quot;&gt;&amp;\xEF\xBF\xBD caf\xC3\xA9 \xEF\xBF\xBD\xE4\xBD\xA0\xEF\xBF\xBD\xEF\xBF\xBD"
		"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
	buffer_release(&out);
}

/* Every element is closed, in order; no number in the drawing is NaN or infinite. */
static void assert_sound(struct buffer *html)
{
	char open[64][16];
	int depth = 0;
	const char *text = buffer_string(html);
	assert_null(strstr(text, "nan"));
	assert_null(strstr(text, "inf\""));
	assert_null(strstr(text, "inf "));
	for (const char *p = strchr(text, '<'); p; p = strchr(p + 1, '<')) {
		const char *end = strchr(p, '>');
		assert_non_null(end);
		char name[16] = "";
		bool closing = p[1] == '/';
		const char *from = p + 1 + closing;
		for (int i = 0; i < 15 && (isalnum((unsigned char)from[i])); i++) {
			name[i] = from[i];
			name[i + 1] = 0;
		}
		if (closing) {
			assert_true(depth > 0);
			assert_string_equal(open[--depth], name);
		} else if (end[-1] != '/') {
			assert_true(depth < 64);
			strcpy(open[depth++], name);
		}
	}
	assert_int_equal(depth, 0);
	buffer_release(html);
}

static void test_any_numbers(void **state)
{
	static const double edges[] = {0, 1, -1, 1e-300, 1e300, NAN, INFINITY, -INFINITY, 3.5, 3.5000001, 1e9, -1e-9};
	enum { EDGES = sizeof edges / sizeof *edges };
	for (int a = 0; a < EDGES; a++)
		for (int b = 0; b < EDGES; b++)
			for (int logarithmic = 0; logarithmic < 2; logarithmic++)
				for (int points = 1; points <= 3; points++) {
					double x[3] = {0, 1e6, 2e6}, y[3] = {edges[a], edges[b], edges[a]}, low[3], high[3];
					for (int i = 0; i < 3; i++) {
						low[i] = y[i] - 1;
						high[i] = y[i] + 1;
					}
					struct chart chart = {
						.title = "<title>",
						.description = "\"quoted\"",
						.x = {.label = "x"},
						.y = {.label = "y", .logarithmic = logarithmic, .from_zero = points == 2}};
					chart_add_series(&chart, (struct chart_series){.label = "a <b>",
										       .color = 1,
										       .x = x,
										       .y = y,
										       .low = low,
										       .high = high,
										       .count = points});
					chart_add_level(&chart, edges[b], "level");
					chart_add_mark(&chart, CHART_MARK_TROUBLE, edges[a], "trouble & strife");
					chart_add_mark(&chart, CHART_MARK_SAVED, 1e6, "saved");
					chart_add_mark(&chart, CHART_MARK_PHASE, 5e5, "phase 2");
					struct buffer out = {0};
					chart_svg(&chart, &out);
					assert_ok(buffer_status(&out));
					assert_sound(&out);
				}
}

static void test_curve_lies_in_the_frame(void **state)
{
	double x[5] = {0, 1, 2, 3, 4}, y[5] = {9.7, 7, 6.9, 6.5, 6.1};
	struct chart chart = {.title = "Loss", .x = {.label = "tokens"}, .y = {.label = "nats"}};
	chart_add_series(&chart, (struct chart_series){.label = "training", .color = 1, .x = x, .y = y, .count = 5});
	chart_add_series(&chart,
			 (struct chart_series){.label = "held out", .color = 2, .dots = true, .x = x, .y = y, .count = 5});
	struct buffer out = {0};
	chart_svg(&chart, &out);
	const char *box = strstr(buffer_string(&out), "data-box=\"");
	double left, right, bottom, top, px, py;
	assert_non_null(box);
	assert_int_equal(sscanf(box, "data-box=\"%lf %lf %lf %lf", &left, &right, &bottom, &top), 4);
	const char *path = strstr(strstr(buffer_string(&out), "class=\"curve"), " d=\"") + 4;
	for (int i = 0; i < 5; i++) {
		int used;
		assert_int_equal(sscanf(path, "%*c%lf %lf%n", &px, &py, &used), 2);
		assert_near(px, left + (right - left) * i / 4, 0.06);
		assert_true(py <= bottom && py >= top);
		path += used;
	}
	/* A name at the end of each curve, without overlaps, and dots where requested. */
	assert_non_null(strstr(buffer_string(&out), ">training</text>"));
	const char *circle = buffer_string(&out);
	int circles = 0;
	while ((circle = strstr(circle + 1, "<circle")))
		circles++;
	assert_int_equal(circles, 5);
	assert_sound(&out);
}

static void test_nothing_to_draw(void **state)
{
	struct chart chart = {.title = "Loss", .x = {.label = "x"}, .y = {.label = "y"}};
	struct buffer out = {0};
	chart_svg(&chart, &out);
	assert_non_null(strstr(buffer_string(&out), "nothing measured yet"));
	assert_sound(&out);
	struct chart_bars bars = {.title = "Lengths", .x = {.label = "x"}, .y = {.label = "y"}, .width = 4};
	chart_bars_svg(&bars, &out);
	assert_non_null(strstr(buffer_string(&out), "nothing measured yet"));
	assert_sound(&out);
	double values[3] = {0.25, 0, 0.75};
	bars.values = values;
	bars.count = 3;
	chart_bars_svg(&bars, &out);
	assert_non_null(strstr(buffer_string(&out), "8 to 11"));
	assert_sound(&out);
}

static void test_page(void **state)
{
	struct buffer out = {0};
	html_begin(&out, "a <run>");
	html_end(&out);
	const char *text = buffer_string(&out);
	assert_non_null(strstr(text, "<title>a &lt;run&gt;</title>"));
	/* Nothing is loaded from a network. */
	assert_null(strstr(text, "src="));
	assert_null(strstr(text, "href="));
	assert_null(strstr(text, "url("));
	assert_null(strstr(text, "@import"));
	buffer_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ticks),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_any_numbers),
		cmocka_unit_test(test_curve_lies_in_the_frame),
		cmocka_unit_test(test_nothing_to_draw),
		cmocka_unit_test(test_page),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
