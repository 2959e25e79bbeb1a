/* The JSON reader against valid, damaged, and hostile text, and the writer against the reader. */
#include "test.h"
#include <float.h>
#include <locale.h>
#include <math.h>
#include "base/json.h"
#include "base/rng.h"

static enum status parse(struct json_document *out, const char *text)
{
	return json_parse(out, "t.json", text, strlen(text));
}

static void values_of_all_kinds(void **state)
{
	struct json_document document;
	assert_ok(parse(&document, " {\"a\": [1, -2.5, true, false, null, \"x\"], \"b\" : {}, \"c\":[]}\r\n\t"));
	const struct json *root = document.root, *a = json_member(root, "a");
	assert_int_equal(root->kind, JSON_OBJECT);
	assert_int_equal(root->child_count, 3);
	assert_int_equal(a->child_count, 6);
	const struct json *item = a->first_child;
	assert_true(item->kind == JSON_NUMBER && item->is_integer && item->integer == 1 && item->number == 1);
	item = item->next;
	assert_true(item->kind == JSON_NUMBER && !item->is_integer && item->number == -2.5);
	assert_string_equal(item->text, "-2.5");
	item = item->next;
	assert_true(item->kind == JSON_BOOL && item->boolean);
	item = item->next;
	assert_true(item->kind == JSON_BOOL && !item->boolean);
	item = item->next;
	assert_int_equal(item->kind, JSON_NULL);
	item = item->next;
	assert_true(item->kind == JSON_STRING && item->text_size == 1 && !item->next);
	assert_string_equal(item->text, "x");
	assert_int_equal(json_member(root, "b")->child_count, 0);
	assert_null(json_member(root, "d"));
	assert_null(json_member(a, "a"));
	assert_null(json_member(NULL, "a"));
	json_release(&document);
	json_release(&document);
}

static void strings_and_escapes(void **state)
{
	struct json_document document;
	assert_ok(parse(&document, "[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\", \"\\u0041\\u00e9\\u20ac\\ud83d\\uDE00\", "
				   "\"a\\u0000b\", \"\xC3\xA9\xF0\x9F\x98\x80\"]"));
	const struct json *item = document.root->first_child;
	assert_string_equal(item->text, "\"\\/\b\f\n\r\t");
	item = item->next;
	assert_string_equal(item->text, "A\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
	item = item->next;
	assert_int_equal(item->text_size, 3);
	assert_memory_equal(item->text, "a\0b", 4);
	item = item->next;
	assert_string_equal(item->text, "\xC3\xA9\xF0\x9F\x98\x80");
	json_release(&document);
}

/* What must be refused, with the byte that the message must name (-1: any). */
static const struct {
	const char *text;
	int at;
	const char *reason;
} attacks[] = {
	{"", 0, "ends early"},
	{" ", 1, "ends early"},
	{"\xEF\xBB\xBF{}", 0, "byte order mark"},
	{"{", 1, "expected a key"},
	{"[", 1, "ends early"},
	{"[1", 2, "ends early"},
	{"[1,", 3, "ends early"},
	{"[1,]", 3, "unexpected character"},
	{"[,1]", 1, "unexpected character"},
	{"[1 2]", 3, "expected ','"},
	{"[1}", 2, "expected ','"},
	{"{\"a\"}", 4, "expected ':'"},
	{"{\"a\":}", 5, "unexpected character"},
	{"{\"a\":1,}", 7, "expected a key"},
	{"{a:1}", 1, "expected a key"},
	{"{'a':1}", 1, "expected a key"},
	{"{1:1}", 1, "expected a key"},
	{"{\"a\":1 \"b\":2}", 7, "expected ','"},
	{"{\"a\":1,\"a\":2}", 0, "twice"},
	{"{\"b\":1,\"a\":1,\"c\":0,\"\\u0061\":2}", 0, "twice"},
	{"{\"a\\u0000\":1}", 1, "NUL"},
	{"1 2", 2, "more text"},
	{"{} x", 3, "more text"},
	{"nul", 0, "unexpected character"},
	{"nulll", 4, "more text"},
	{"True", 0, "unexpected character"},
	{"NaN", 0, "NaN is not a number"},
	{"Infinity", 0, "Infinity is not a number"},
	{"-Infinity", 0, "Infinity is not a number"},
	{"+1", 0, "unexpected character"},
	{"-", 0, "unexpected character"},
	{"01", 0, "leading zero"},
	{"-01", 0, "leading zero"},
	{"1.", 0, "after the point"},
	{".5", 0, "unexpected character"},
	{"1e", 0, "exponent"},
	{"1e+", 0, "exponent"},
	{"0x10", 1, "more text"},
	{"1e999", 0, "too large"},
	{"-1e999", 0, "too large"},
	{"\"abc", 0, "without an end"},
	{"\"abc\\\"", 0, "without an end"},
	{"\"\\", 0, "without an end"},
	{"\"a\nb\"", 2, "control character"},
	{"\"a\tb\"", 2, "control character"},
	{"\"\\x\"", 1, "unknown escape"},
	{"\"\\u12\"", 1, "hexadecimal"},
	{"\"\\u12G4\"", 1, "hexadecimal"},
	{"\"\\u\"", 1, "hexadecimal"},
	{"\"\\ud800\"", 1, "surrogate"},
	{"\"\\udc00\"", 1, "surrogate"},
	{"\"\\ud800\\u0041\"", 1, "surrogate"},
	{"\"\\ud800x\"", 1, "surrogate"},
	{"\"\x80\"", 1, "UTF-8"},
	{"\"\xC0\x80\"", 1, "UTF-8"},
	{"\"\xC3\"", 1, "UTF-8"},
	{"\"\xE0\x80\x80\"", 1, "UTF-8"},
	{"\"\xED\xA0\x80\"", 1, "UTF-8"},
	{"\"\xF4\x90\x80\x80\"", 1, "UTF-8"},
	{"\"\xF8\x88\x80\x80\x80\"", 1, "UTF-8"},
	{"\"\xFF\"", 1, "UTF-8"},
	{"[\xC3\xA9]", 1, "unexpected character"},
	{"/* c */ 1", 0, "unexpected character"},
	{"1 // c", 2, "more text"},
	{"\v1", 0, "unexpected character"},
};

static void attacks_are_refused(void **state)
{
	for (size_t i = 0; i < sizeof attacks / sizeof *attacks; i++) {
		struct json_document document;
		char where[64];
		enum status status = parse(&document, attacks[i].text);
		snprintf(where, sizeof where, "byte %d", attacks[i].at);
		const char *message = error_last()->message;
		size_t place = strlen(message) - strlen(where);
		if (status != ERR_DATA || !strstr(message, attacks[i].reason) || strcmp(message + place, where) != 0 ||
		    strncmp(message, "'t.json'", 8) != 0)
			fail_msg("%s: status %d '%s'", attacks[i].text, status, status == OK ? "" : message);
		assert_null(document.memory);
	}
	/* A NUL does not end the text. */
	struct json_document document;
	assert_error(ERR_DATA, "more text", json_parse(&document, "t", "1\0", 2));
	assert_error(ERR_DATA, "control character", json_parse(&document, "t", "\"\0\"", 3));
}

static void depth_is_bounded(void **state)
{
	struct json_document document;
	char text[1000];
	for (int depth = 60; depth < 70; depth++) {
		memset(text, '[', (size_t)depth);
		memset(text + depth, ']', (size_t)depth);
		text[2 * depth] = '\0';
		if (depth <= 64) {
			assert_ok(parse(&document, text));
			json_release(&document);
		} else {
			assert_error(ERR_DATA, "64 deep", parse(&document, text));
		}
	}
	size_t size = 10 << 20;
	char *bomb = malloc(size);
	memset(bomb, '[', size);
	assert_error(ERR_DATA, "64 deep", json_parse(&document, "bomb", bomb, size));
	free(bomb);
}

static void integers_are_exact_or_none(void **state)
{
	static const struct {
		const char *text;
		bool is_integer;
		int64_t value;
	} rows[] = {
		{"0", true, 0},
		{"-0", true, 0},
		{"9223372036854775807", true, INT64_MAX},
		{"-9223372036854775808", true, INT64_MIN},
		{"9223372036854775808", false, 0},
		{"-9223372036854775809", false, 0},
		{"123456789012345678901234567890", false, 0},
		{"1.0", false, 0},
		{"1e3", false, 0},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct json_document document;
		assert_ok(parse(&document, rows[i].text));
		assert_int_equal(document.root->is_integer, rows[i].is_integer);
		assert_true(document.root->integer == rows[i].value);
		assert_true(document.root->number == strtod(rows[i].text, NULL));
		assert_string_equal(document.root->text, rows[i].text);
		json_release(&document);
	}
}

static void typed_members(void **state)
{
	struct json_document document;
	assert_ok(parse(&document, "{\"i\": 5, \"f\": 0.5, \"b\": true, \"s\": \"x\", \"n\": null, \"z\": \"a\\u0000\"}"));
	const struct json *root = document.root;
	int64_t i = -1;
	double f = -1;
	bool b = false;
	const char *s = "unset";
	assert_ok(json_get_integer(root, "t", "i", 0, 5, &i));
	assert_int_equal(i, 5);
	assert_ok(json_get_integer(root, "t", "absent", 0, 5, &i));
	assert_int_equal(i, 5);
	assert_error(ERR_DATA, "'t': \"i\" must be an integer in 0..4, not 5", json_get_integer(root, "t", "i", 0, 4, &i));
	assert_error(ERR_DATA, "not 0.5", json_get_integer(root, "t", "f", 0, 4, &i));
	assert_error(ERR_DATA, "integer", json_get_integer(root, "t", "s", 0, 4, &i));
	assert_error(ERR_DATA, "integer", json_get_integer(root, "t", "n", 0, 4, &i));
	assert_ok(json_get_number(root, "t", "i", &f));
	assert_true(f == 5);
	assert_ok(json_get_number(root, "t", "f", &f));
	assert_true(f == 0.5);
	assert_error(ERR_DATA, "\"b\" must be a number", json_get_number(root, "t", "b", &f));
	assert_ok(json_get_bool(root, "t", "b", &b));
	assert_true(b);
	assert_error(ERR_DATA, "true or false", json_get_bool(root, "t", "i", &b));
	assert_ok(json_get_string(root, "t", "s", &s));
	assert_string_equal(s, "x");
	assert_error(ERR_DATA, "string", json_get_string(root, "t", "i", &s));
	assert_error(ERR_DATA, "string", json_get_string(root, "t", "z", &s)); /* it would end early */
	json_release(&document);
}

static void large_objects_stay_fast(void **state)
{
	struct buffer text = {0};
	buffer_char(&text, '{');
	for (int i = 0; i < 200000; i++)
		buffer_format(&text, "%s\"key%d\":%d", i ? "," : "", i, i);
	buffer_char(&text, '}');
	struct json_document document;
	assert_ok(json_parse(&document, "t", text.data, text.size));
	assert_int_equal(document.root->child_count, 200000);
	assert_int_equal(json_member(document.root, "key199999")->integer, 199999);
	json_release(&document);
	text.data[text.size - 1] = ',';
	buffer_text(&text, "\"key77\":0}");
	assert_error(ERR_DATA, "\"key77\" twice", json_parse(&document, "t", text.data, text.size));
	buffer_release(&text);
}

static void files_have_a_limit(void **state)
{
	struct json_document document;
	assert_ok(file_write(test_path("a.json"), "{\"a\":1}", 7));
	assert_ok(json_read(&document, test_path("a.json"), 7));
	json_release(&document);
	assert_error(ERR_DATA, "a.json", json_read(&document, test_path("a.json"), 6));
	assert_error(ERR_USAGE, "b.json", json_read(&document, test_path("b.json"), 6));
}

static void writer_makes_what_reader_reads(void **state)
{
	struct buffer out = {0};
	struct json_writer writer = {.out = &out};
	json_open(&writer, NULL, '{');
	json_put_integer(&writer, "i", INT64_MIN);
	json_put_string(&writer, "s", "a\"\\\n\t\x01\x7F\xC3\xA9\xE2\x80\xAE\xF0\x9F\x98\x80");
	json_put_text(&writer, "t", "\0\xFFz", 3);
	json_put_bool(&writer, "b", true);
	json_put_null(&writer, "n");
	json_put_written(&writer, "w", "{\"a\": [1]}");
	json_open(&writer, "l", '[');
	json_close(&writer);
	json_open(&writer, "m", '[');
	json_put_double(&writer, NULL, 0.1);
	json_put_float(&writer, NULL, 0.1f);
	json_put_double(&writer, NULL, NAN);
	json_put_double(&writer, NULL, 3);
	json_put_double(&writer, NULL, 20);
	json_put_float(&writer, NULL, 1e15f);
	json_put_double(&writer, NULL, 1e16);
	json_put_double(&writer, NULL, 2e-5);
	json_put_double(&writer, NULL, -INFINITY);
	json_close(&writer);
	json_close(&writer);
	assert_string_equal(buffer_string(&out),
			    "{\"i\":-9223372036854775808,\"s\":\"a\\\"\\\\\\n\\t\\u0001\\u007f\xC3\xA9\\u202e\xF0\x9F\x98\x80\","
			    "\"t\":\"\\u0000\xEF\xBF\xBDz\",\"b\":true,\"n\":null,\"w\":{\"a\": "
			    "[1]},\"l\":[],\"m\":[0.1,0.1,null,3.0,20.0,1000000000000000.0,1e+16,2e-05,null]}");
	struct json_document document;
	assert_ok(parse(&document, buffer_string(&out)));
	json_release(&document);

	buffer_clear(&out);
	writer = (struct json_writer){.out = &out, .indent = 2};
	json_open(&writer, NULL, '{');
	json_put_integer(&writer, "a", 1);
	json_open(&writer, "b", '[');
	json_put_integer(&writer, NULL, 2);
	json_put_integer(&writer, NULL, 3);
	json_close(&writer);
	json_close(&writer);
	assert_string_equal(buffer_string(&out), "{\n  \"a\": 1,\n  \"b\": [\n    2,\n    3\n  ]\n}");
	buffer_release(&out);
}

/* Every finite number is read back as the same bits, from the fewest digits, even in a locale with a decimal comma. */
static void numbers_come_back(void **state)
{
	static const double special[] = {0, -0.0, 1, 1e22, 1e23, 5e-324, DBL_MIN, DBL_MAX, 0.1, 1.0 / 3, 123456789.123, 3e-4};
	struct rng rng = rng_start(5, RNG_TEST, 0);
	struct buffer out = {0};
	bool comma = setlocale(LC_ALL, "de_DE.UTF-8") != NULL; /* where it is installed */
	for (int i = 0; i < 20000; i++) {
		double value;
		uint64_t bits = (uint64_t)rng_u32(&rng) << 32 | rng_u32(&rng);
		memcpy(&value, &bits, sizeof value);
		if (i < (int)(sizeof special / sizeof *special))
			value = special[i];
		if (!isfinite(value))
			continue;
		float narrow = (float)value;
		struct json_document document;
		buffer_clear(&out);
		struct json_writer writer = {.out = &out};
		json_open(&writer, NULL, '[');
		json_put_double(&writer, NULL, value);
		json_put_float(&writer, NULL, isfinite(narrow) ? narrow : 0.25f);
		json_close(&writer);
		assert_ok(parse(&document, buffer_string(&out)));
		const struct json *wide = document.root->first_child;
		assert_memory_equal(&wide->number, &value, sizeof value);
		assert_true(!isfinite(narrow) || (float)wide->next->number == narrow);
		assert_true(wide->next->text_size <= 19); /* nine digits, padded with zeros below 1e16 */
		json_release(&document);
	}
	if (comma)
		setlocale(LC_ALL, "C");
	buffer_clear(&out);
	struct json_writer writer = {.out = &out};
	json_put_double(&writer, NULL, 3e-4);
	assert_string_equal(buffer_string(&out), "0.0003");
	buffer_release(&out);
}

/* By the definition, slowly: the smallest number of digits that reads back as the same value; without an exponent from
 * 1e-4 to 1e16. */
static void assert_fewest_digits(float value, struct buffer *out)
{
	struct json_writer writer = {.out = out};
	char expected[48];
	for (int digits = 1; digits <= 9; digits++) {
		snprintf(expected, sizeof expected, "%.*g", digits, (double)value);
		if (strtof(expected, NULL) == value)
			break;
	}
	double shortest = strtod(expected, NULL), size = fabs(shortest);
	if (size >= 1e-4 && size < 1e16) {
		int decimals = 0;
		while (decimals < 14 &&
		       (snprintf(expected, sizeof expected, "%.*f", decimals, shortest), strtod(expected, NULL) != shortest))
			decimals++;
	}
	if (!strpbrk(expected, ".e"))
		strncat(expected, ".0", 3);
	buffer_clear(out);
	json_put_float(&writer, NULL, value);
	assert_string_equal(buffer_string(out), expected);
}

static void floats_have_the_fewest_digits(void **state)
{
	static const float edges[] = {0,           -0.0f,       1e-9f,       9.9999e-10f, 1e-4f,      9.9999e-5f,
				      1e8f,        99999992.0f, 16777216.0f, 33554432.0f, 8388608.5f, 67108864.0f,
				      67108868.0f, FLT_MIN,     FLT_MAX,     1e-45f,      100.0f,     -0.3f};
	struct buffer out = {0};
	uint64_t random = 1;
	for (size_t i = 0; i < sizeof edges / sizeof *edges; i++)
		assert_fewest_digits(edges[i], &out);
	for (int i = 0; i < 40000; i++) {
		float value;
		random = random * 6364136223846793005u + 1442695040888963407u;
		uint32_t bits = (uint32_t)(random >> 32);
		if (i % 4 == 0) /* powers of two, whose two neighbors are not equally far away */
			bits &= 0xff800000u;
		if (i % 2 == 0) /* of common magnitudes */
			bits = (bits & 0x807fffffu) | (90 + (bits >> 23) % 70) << 23;
		memcpy(&value, &bits, sizeof value);
		if (isfinite(value))
			assert_fewest_digits(value, &out);
	}
	buffer_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_of_all_kinds),
		cmocka_unit_test(strings_and_escapes),
		cmocka_unit_test(attacks_are_refused),
		cmocka_unit_test(depth_is_bounded),
		cmocka_unit_test(integers_are_exact_or_none),
		cmocka_unit_test(typed_members),
		cmocka_unit_test(large_objects_stay_fast),
		cmocka_unit_test(files_have_a_limit),
		cmocka_unit_test(writer_makes_what_reader_reads),
		cmocka_unit_test(floats_have_the_fewest_digits),
		cmocka_unit_test(numbers_come_back),
	};
	return cmocka_run_group_tests(tests, test_folder_make, test_folder_drop);
}
