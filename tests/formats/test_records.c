/* Files of records: what is read in each format, however its bytes are split, and what is reported about damaged ones. */
#include <time.h>
#include "base/buffer.h"
#include "formats/records.h"
#include "test.h"

/* Records as text: [title] text, with '-' before unwanted ones and '#' where damage was skipped. */
struct reading {
	struct buffer out, text;
	bool skip;
};

static enum status begin(void *context)
{
	struct reading *reading = context;
	buffer_clear(&reading->text);
	return OK;
}

static enum status take(void *context, const char *bytes, size_t size)
{
	struct reading *reading = context;
	buffer_append(&reading->text, bytes, size);
	return OK;
}

static enum status end(void *context, const char *title, bool keep)
{
	struct reading *reading = context;
	buffer_format(&reading->out, "%s[%s] %s|", keep ? "" : "-", title ? title : "",
		      keep ? buffer_string(&reading->text) : "");
	return OK;
}

static enum status damaged(void *context)
{
	struct reading *reading = context;
	buffer_char(&reading->out, '#');
	return reading->skip ? OK : error_last()->status;
}

static enum status name(void *context, int64_t key, const char *text)
{
	struct reading *reading = context;
	buffer_format(&reading->out, "{%d %s}", (int)key, text);
	return OK;
}

static enum status read_all(struct reading *reading, enum record_form form, const char *key, const char *bytes, size_t size,
			    size_t piece)
{
	struct record_settings settings = {form, "file", key};
	struct record_sink sink = {reading, begin, take, end, damaged, name};
	struct records *records;
	enum status status = OK;

	buffer_clear(&reading->out);
	assert_ok(records_open(&records, &settings, &sink));
	for (size_t at = 0; at < size && status == OK; at += piece)
		status = records_feed(records, bytes + at, size - at < piece ? size - at : piece);
	if (status == OK)
		status = records_finish(records);
	records_close(records);
	return status;
}

/* The records must be these, reading in pieces of any size. */
static void reads(enum record_form form, const char *key, const char *bytes, const char *expected)
{
	struct reading reading = {.skip = true};
	static const size_t pieces[] = {1 << 20, 1, 2, 3, 7, 64};
	for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
		assert_ok(read_all(&reading, form, key, bytes, strlen(bytes), pieces[i]));
		if (strcmp(buffer_string(&reading.out), expected) != 0)
			fail_msg("in pieces of %zu: '%s', expected '%s'", pieces[i], buffer_string(&reading.out), expected);
	}
	buffer_release(&reading.out);
	buffer_release(&reading.text);
}

static void refuses(enum record_form form, const char *bytes, const char *words)
{
	struct reading reading = {0};
	assert_error(ERR_DATA, words, read_all(&reading, form, "text", bytes, strlen(bytes), 5));
	assert_true(strlen(error_last()->hint) > 0);
	buffer_release(&reading.out);
	buffer_release(&reading.text);
}

static void test_json(void **state)
{
	reads(RECORDS_JSON, "text", "{\"text\": \"a\\nb\", \"title\": \"T\"}\n{\"id\": 1, \"text\":\"c\"}\n", "[T] a\nb|[] c|");
	reads(RECORDS_JSON, "text", "\xef\xbb\xbf{\"text\": \"\\u00e9\\ud83d\\ude00\\\"\\\\\\/\\b\\f\\r\\t\"}\r\n",
	      "[] é😀\"\\/\b\f\r\t|");
	reads(RECORDS_JSON, "text", "\x1E{\"text\": \"a\"}\n\x1E{\"text\": \"b\"}\n", "[] a|[] b|"); /* a sequence of RFC 7464 */
	reads(RECORDS_JSON, "text", "[{\"text\": \"a\"}, {\"text\": \"b\"}]", "[] a|[] b|");
	refuses(RECORDS_JSON, "[{\"text\": \"a\"},\n", "the list of records has no end");
	refuses(RECORDS_JSON, "[{\"text\": \"a\"}]\n{\"text\": \"b\"}", "something follows the end of the list");
	reads(RECORDS_JSON, "body.text", "{\"text\": \"x\", \"body\": {\"n\": [1, {\"text\": \"y\"}], \"text\": \"a\"}}",
	      "[] a|");
	reads(RECORDS_JSON, "body.text", "{\"body\": \"x\", \"other\": {\"text\": \"y\"}} {\"body.text\": \"b\"}", "-[] |[] b|");
	reads(RECORDS_JSON, "text", "{\"text\": [\"a\", \"b\", 3, [\"x\"]]}{\"text\": null}{\"text\": 5}{}",
	      "[] a\nb|-[] |-[] |-[] |");
	reads(RECORDS_JSON, "text", "{\"meta\": {\"text\": \"no\", \"a\": [true, false, null, -1.5e+3]}, \"text\": \"\"}",
	      "[] |");
	/* A damaged line does not affect the next one. */
	reads(RECORDS_JSON, "text", "{\"text\": \"a\"}\n{\"text\": \"b\n{\"text\": \"c\"}\n{\"text\" \"d\"}\n{\"text\": \"e\"}",
	      "[] a|-[] |#[] c|-[] |#[] e|");
	refuses(RECORDS_JSON, "{\"text\": \"a\"}\n{\"text\": tru}\n", "line 2, at byte 26");
	refuses(RECORDS_JSON, "{\"text\": \"a\nb\"}", "the line ends within a string");
	refuses(RECORDS_JSON, "{\"text\": \"a\x01\"}", "a control character");
	refuses(RECORDS_JSON, "{\"text\": \"\\ud800 \"}", "surrogate");
	refuses(RECORDS_JSON, "{\"text\": \"\\udc00\"}", "surrogate");
	refuses(RECORDS_JSON, "{\"text\": \"\\u12x4\"}", "hexadecimal");
	refuses(RECORDS_JSON, "{\"text\": \"\\q\"}", "unknown escape");
	refuses(RECORDS_JSON, "{\"text\": \"a\", \"text\": \"b\"}", "the text's key occurs twice");
	reads(RECORDS_JSON, "text", "{\"text\": \"a\", \"n\": 1, \"n\": 2, \"m\": {\"text\": \"x\"}}", "[] a|");
	refuses(RECORDS_JSON, "{\"text\" 1}", "':' is missing");
	refuses(RECORDS_JSON, "{\"text\": 1 \"b\": 2}", "',' or '}' is missing");
	refuses(RECORDS_JSON, "{\"text\": \"abc", "the file ends within a record");
	refuses(RECORDS_JSON, "\"text\"", "an object {...} is missing");
	struct buffer deep = {0};
	buffer_text(&deep, "{\"a\": ");
	for (int i = 0; i < 100; i++)
		buffer_char(&deep, '[');
	refuses(RECORDS_JSON, buffer_string(&deep), "64 levels");
	buffer_release(&deep);
}

static void test_text_key(void **state)
{
	const char *key;
	static const char *const found[][2] = {{"{\"id\": 1, \"content\": \"a\"}", "content"},
					       {"{\"body\": \"a\", \"text\": \"b\"}", "text"},
					       {"{\"text\": 3}\n{\"abstract\": \"long text that is cut o", "abstract"}};
	for (size_t i = 0; i < sizeof found / sizeof *found; i++) {
		assert_ok(records_find_text_key("file", found[i][0], strlen(found[i][0]), &key));
		assert_string_equal(key, found[i][1]);
	}
	const char *other = "{\"paragraph\": \"a\", \"n\": {\"text\": \"b\"}}";
	assert_error(ERR_DATA, "text under", records_find_text_key("file", other, strlen(other), &key));
	assert_string_equal(error_last()->hint, "give the key with --text_key; the keys with text are \"paragraph\", \"n.text\"");
	/* Each key once, nested ones by their path; keys that --text_key cannot reach, in a list of objects, are not
	 * listed. */
	struct buffer keys = {0};
	const char *nested = "[{\"id\": \"1\", \"a\": {\"b\": \"x\", \"c\": {\"d\": \"y\"}}, \"o\": [{\"z\": \"no\"}]},\n"
			     "{\"id\": \"2\", \"a\": {\"b\": \"x\"}, \"list\": [\"p\", \"q\"], \"n\": 1}";
	assert_ok(records_list_text_keys("file", nested, strlen(nested), &keys));
	assert_string_equal(buffer_string(&keys), "\"id\", \"a.b\", \"a.c.d\", \"list\"");
	buffer_release(&keys);
}

/* A dictionary of many keys, with a usual one at its end. */
static void test_many_keys(void **state)
{
	struct buffer text = {0};
	const char *key;
	for (int i = 0; i < 80000; i++)
		buffer_format(&text, "%s\"k%d\":\"\"", i ? "," : "{", i);
	buffer_text(&text, ",\"text\":\"a\"}");
	clock_t began = clock(); /* of the processor, which others may be using too */
	assert_ok(records_find_text_key("file", text.data, text.size, &key));
	assert_true(clock() - began < CLOCKS_PER_SEC);
	assert_string_equal(key, "text");
	buffer_release(&text);
}

static void test_cirrus(void **state)
{
	reads(RECORDS_CIRRUS, "text",
	      "{\"index\":{\"_type\":\"page\",\"_id\":\"1\"}}\n{\"namespace\":0,\"title\":\"A\",\"text\":\"a."
	      "\"}\n"
	      "{\"index\":{\"_id\":\"2\"}}\n{\"text\":\"b.\",\"title\":\"Talk:A\",\"namespace\":1}\n",
	      "-[] |[A] a.|-[] |-[Talk:A] |");
}

#define PAGE(title, inner, text) "<page><title>" title "</title>" inner "<revision><text>" text "</text></revision></page>\n"

static void test_wiki_xml(void **state)
{
	reads(RECORDS_WIKI_XML, NULL,
	      "<mediawiki><siteinfo><namespaces><namespace key=\"0\"/><namespace "
	      "key=\"6\">Datei</namespace></namespaces></siteinfo>" PAGE("A", "<ns>0</ns>", "a &lt;b&gt; &amp; &#233;")
		      PAGE("Talk:A", "<ns>1</ns>", "x") PAGE("R", "<ns>0</ns><redirect title=\"A\"/>", "#REDIRECT [[A]]")
			      PAGE("M", "<ns>0</ns>", "<!-- c -->m") "</mediawiki>\n",
	      "{6 Datei}[A] a <b> & é|-[Talk:A] |-[R] |[M] m|");
	/* Part of a dump, and an old one without <ns>; the last of several revisions; other content models. */
	reads(RECORDS_WIKI_XML, NULL,
	      "  " PAGE("A", "", "a") PAGE("Category:A", "", "x") "<page><title>B</title><revision><text>old</text></"
								  "revision><revision><text>new</text></revision></page>"
								  "<page><title>C.css</title><ns>0</ns><revision><model>css</"
								  "model><text>x</text></revision></page>",
	      "[A] a|-[Category:A] |-[] |[B] new|-[C.css] |");
	refuses(RECORDS_WIKI_XML, "<mediawiki>" PAGE("A", "", "a & b"), "damaged XML at byte");
	refuses(RECORDS_WIKI_XML, "<mediawiki>" PAGE("A", "", "a") "<page><title>B</title><revision><text>b", "truncated XML");
	refuses(RECORDS_WIKI_XML, "<mediawiki>" PAGE("A", "", "a"), "within the dump");
	refuses(RECORDS_WIKI_XML, "<mediawiki>" PAGE("A", "", "&bomb;"), "undefined entity");
	/* Damage costs only the page that contains it. What precedes it may or may not have been seen, depending on the
	 * pieces: so in one piece only. */
	struct reading reading = {.skip = true};
	const char *bytes = "<mediawiki>" PAGE("A", "", "a") PAGE("B", "", "b <x> c") PAGE("C", "", "c") "</mediawiki>";
	assert_ok(read_all(&reading, RECORDS_WIKI_XML, NULL, bytes, strlen(bytes), 1));
	assert_string_equal(buffer_string(&reading.out), "[A] a|-[] |#[C] c|");
	/* expat limits the expansion of entities. */
	struct buffer bomb = {0};
	buffer_text(&bomb, "<!DOCTYPE x [<!ENTITY a0 "
			   "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\">");
	for (int i = 1; i < 9; i++) {
		buffer_format(&bomb, "<!ENTITY a%d \"", i);
		for (int k = 0; k < 20; k++)
			buffer_format(&bomb, "&a%d;", i - 1);
		buffer_text(&bomb, "\">");
	}
	buffer_text(&bomb, "]><mediawiki>" PAGE("A", "", "&a8;") "</mediawiki>");
	reading.skip = false;
	assert_int_equal(read_all(&reading, RECORDS_WIKI_XML, NULL, bomb.data, bomb.size, 1 << 16), ERR_DATA);
	assert_non_null(strstr(error_last()->message, "amplification"));
	buffer_release(&bomb);
	buffer_release(&reading.out);
	buffer_release(&reading.text);
}

static void test_wikiextractor(void **state)
{
	reads(RECORDS_WIKIEXTRACTOR, NULL,
	      "<doc id=\"1\" url=\"u?a=1\" title=\"A &amp; B\">\nA & B\n\nText &lt;x&gt; &amp; y "
	      "&z.\n\n</doc>\n\n"
	      "<doc id=\"2\" title=\"C\">\nC\n</doc>\n",
	      "[A &amp; B] A & B\n\nText <x> & y &z.\n\n|[C] C\n|");
	reads(RECORDS_WIKIEXTRACTOR, NULL, "<doc id=\"1\">\na\n<doc id=\"2\">\nb\n</doc>\nstray\n<doc id=\"3\">\nc",
	      "-[] |#[] b\n|#-[] |#");
	refuses(RECORDS_WIKIEXTRACTOR, "<doc id=\"1\">\na\n", "the file ends within a <doc>");
}

#define WARC(type, more, length, content)                                                                                        \
	"WARC/1.0\r\nWARC-Type: " type "\r\n" more "Content-Length: " length "\r\n\r\n" content "\r\n\r\n"

static void test_warc(void **state)
{
	reads(RECORDS_WARC, NULL,
	      WARC("warcinfo", "", "3", "a=b") WARC("conversion", "Content-Type: text/plain\r\n", "6", "Hello\n")
		      WARC("response", "", "53", "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nplain...")
			      WARC("response", "", "45", "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<")
				      WARC("conversion", "", "0", ""),
	      "-[] |[] Hello\n|[] plain...|-[] |[] |");
	reads(RECORDS_WARC, NULL, WARC("conversion", "", "x", "a") WARC("conversion", "", "1", "b"), "#[] b|");
	refuses(RECORDS_WARC, WARC("conversion", "", "100", "a"), "the file ends within it");
	refuses(RECORDS_WARC, "WARC/1.0\r\nWARC-Type: conversion\r\n\r\n", "no Content-Length");
	refuses(RECORDS_WARC, WARC("conversion", "", "1", "abc"), "a record should begin here");
	struct buffer header = {0};
	buffer_text(&header, "WARC/1.0\r\nX: ");
	while (header.size < 100000)
		buffer_char(&header, 'x');
	refuses(RECORDS_WARC, buffer_string(&header), "more than 64 KiB");
	buffer_release(&header);
}

static void test_recognized(void **state)
{
	static const struct {
		const char *beginning;
		int form;
	} files[] = {{"<mediawiki xmlns=\"x\">", RECORDS_WIKI_XML},
		     {"\xef\xbb\xbf<?xml version=\"1.0\"?>\n<mediawiki>", RECORDS_WIKI_XML},
		     {"\n  <page>\n", RECORDS_WIKI_XML},
		     {"<doc id=\"1\" url=", RECORDS_WIKIEXTRACTOR},
		     {"WARC/1.0\r\n", RECORDS_WARC},
		     {"{\"text\": 1}", RECORDS_JSON},
		     {"[ {\"a\":", RECORDS_JSON},
		     {"{ \"index\": {\"_id\"", RECORDS_CIRRUS},
		     {"{{Infobox}}", -1},
		     {"[Illustration]", -1},
		     {"{", -1},
		     {"Text.", -1},
		     {"<html>", -1},
		     {"", -1}};
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		enum record_form form;
		bool known = records_recognize(files[i].beginning, strlen(files[i].beginning), &form);
		if (known != (files[i].form >= 0) || (known && (int)form != files[i].form))
			fail_msg("'%s'", files[i].beginning);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_json),       cmocka_unit_test(test_text_key),      cmocka_unit_test(test_cirrus),
		cmocka_unit_test(test_wiki_xml),   cmocka_unit_test(test_wikiextractor), cmocka_unit_test(test_warc),
		cmocka_unit_test(test_recognized), cmocka_unit_test(test_many_keys),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
