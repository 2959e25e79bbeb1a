/* bertc extract as scripts see it: every kind of input and output file, and every kind of damage. */
#include <bzlib.h>
#include <unistd.h>
#include "cmd/program.h"

#define PAGE(title, text) "<page><title>" title "</title><ns>0</ns><revision><text>" text "</text></revision></page>\n"
#define DUMP(pages)                                                                                                              \
	"<mediawiki>\n<siteinfo><namespaces><namespace "                                                                         \
	"key=\"6\">File</namespace></namespaces></siteinfo>\n" pages "</mediawiki>\n"

static int set_up(void **state)
{
	return test_folder_make(state);
}

static const char *put(const char *name, const char *bytes)
{
	const char *path = test_path(name);
	assert_ok(file_write(path, bytes, strlen(bytes)));
	return path;
}

/* The file must give this text, whatever the number of threads. */
static void gives(const char *path, const char *options, const char *text)
{
	for (int threads = 1; threads <= 3; threads += 2) {
		if (program("extract %s --out - --threads %d %s", path, threads, options) != 0)
			fail_msg("%s", buffer_string(&program_errors));
		assert_string_equal(buffer_string(&program_output), text);
	}
}

static void test_each_kind(void **state)
{
	gives(put("dump.xml", DUMP(PAGE("A", "'''A''' is [[b]]. It is {{c}}.\n\n* x\n") PAGE("C", "#REDIRECT [[A]]")
					   PAGE("D", "D is here."))),
	      "", "A is b.\nIt is.\n\nD is here.\n");
	assert_non_null(strstr(buffer_string(&program_errors), "read as wiki_xml"));
	gives(put("cirrus.json", "{\"index\":{\"_id\":\"1\"}}\n{\"namespace\":0,\"title\":\"A\",\"text\":\"One is. Two "
				 "is.\"}\n"
				 "{\"index\":{\"_id\":\"2\"}}\n{\"namespace\":4,\"title\":\"B\",\"text\":\"No.\"}\n"),
	      "", "One is.\nTwo is.\n");
	gives(put("doc.txt", "<doc id=\"1\" url=\"u\" title=\"A\">\nA\n\nOne is. Two is.\n\nThree &lt; four.\n\n</doc>\n"
			     "<doc id=\"2\" url=\"u\" title=\"B\">\nB\n\nLast.\n</doc>\n"),
	      "", "One is.\nTwo is.\nThree < four.\n\nLast.\n");
	gives(put("lines.jsonl", "{\"text\": \"One is. Two is.\\n\\nThree.\", \"title\": \"T\"}\n{\"text\": \"T\\nFour.\", "
				 "\"title\": \"T\"}\n"),
	      "", "One is.\nTwo is.\nThree.\n\nFour.\n");
	gives(put("key.jsonl", "{\"a\": {\"b\": \"One is.\"}}\n{\"a\": {\"c\": \"No.\"}}\n{\"a\": {\"b\": "
			       "\"Two is.\"}}\n"),
	      "--text_key a.b", "One is.\n\nTwo is.\n");
	gives(put("crawl.wet", "WARC/1.0\r\nWARC-Type: conversion\r\nContent-Length: 48\r\n\r\nHome\nAbout us\nThis is "
			       "prose. So is this.\nContact\r\n\r\n"),
	      "", "This is prose.\nSo is this.\n");
	gives(put("text.txt", "One is. Two is.\nThree is. Four is.\n\nFive is. Six.\n"), "",
	      "One is.\nTwo is.\nThree is.\nFour is.\n\nFive is.\nSix.\n");
	gives(put("array.json", "[{\"text\": \"One.\"},\n {\"text\": \"Two.\"}]\n"), "", "One.\n\nTwo.\n");
	gives(put("wrapped.jsonl", "{\"text\": \"It was the best of times, it was the worst of times, it was "
				   "the age of\\nwisdom, it was the age "
				   "of foolishness, it was the epoch of belief, it\\nwas the epoch of "
				   "incredulity. It was the season of Light, it "
				   "was the\\nseason of Darkness.\\n\"}\n"),
	      "",
	      "It was the best of times, it was the worst of times, it was the age of wisdom, it was the age "
	      "of foolishness, it "
	      "was the epoch of belief, it was the epoch of incredulity.\nIt was the season of Light, it was "
	      "the season of "
	      "Darkness.\n");
}

static const char book[] = "\xef\xbb\xbfThe Project Gutenberg eBook of A Book\r\n\r\nThis eBook is for the "
			   "use of anyone anywhere in the United\r\n"
			   "States.\r\n\r\n*** START OF THE PROJECT GUTENBERG EBOOK A BOOK "
			   "***\r\n\r\nProduced by A. Person and\r\nothers.\r\n\r\n"
			   "[Illustration: A ship\r\nat sea.]\r\n\r\n"
			   "It was the _best_ of times, it was the worst of times, it was the age\r\nof "
			   "wisdom, it was the age of foolishness, "
			   "it was the epoch of\r\nbelief, it was the epoch of incredulity. It was the "
			   "season of Light, it\r\nwas the season of "
			   "Darkness.\r\n\r\n"
			   "*** END OF THE PROJECT GUTENBERG EBOOK A BOOK ***\r\n\r\nUpdated editions will "
			   "replace the previous one.\r\n";

static void test_gutenberg(void **state)
{
	static const char text[] = "It was the best of times, it was the worst of times, it was the age of wisdom, it was the "
				   "age "
				   "of foolishness, it was the epoch of belief, it was the epoch of incredulity.\nIt was the "
				   "season of Light, it was the season of Darkness.\n";
	gives(put("book.txt", book), "", text);
	assert_non_null(strstr(buffer_string(&program_errors), "read as gutenberg"));
	/* An equals sign by itself is no mark. */
	gives(put("formula.txt",
		  "*** START OF THE PROJECT GUTENBERG EBOOK A ***\n\nHere E = m, _this_ is =bold=, and a_b.\n\nThe end.\n"),
	      "--text_form paragraphs", "Here E = m, this is bold, and a_b.\n\nThe end.\n");
	/* Read as plain text, the license is text. */
	gives(test_path("book.txt"), "--input_form text --text_form documents -q",
	      "The Project Gutenberg eBook of A Book\n\nThis eBook is for the use of anyone anywhere in the "
	      "United\n\nStates.\n\n*** START OF THE PROJECT GUTENBERG EBOOK A BOOK ***\n\nProduced by A. "
	      "Person and\n\nothers.\n\n[Illustration: A ship\n\nat sea.]\n\nIt was the _best_ of times, it "
	      "was the worst of times, it was the age\n\nof wisdom, it was the age of foolishness, it was "
	      "the epoch of\n\nbelief, it was the epoch of incredulity.\nIt was the season of Light, "
	      "it\n\nwas the season of Darkness.\n\n*** END OF THE PROJECT GUTENBERG EBOOK A BOOK "
	      "***\n\nUpdated editions will replace the previous one.\n");
}

/* Many pages, many bzip2 streams: the same text in order on any number of threads. */
static void test_large_dump(void **state)
{
	struct buffer text = {0}, expected = {0};
	FILE *file = fopen(test_path("dump.xml.bz2"), "wb");
	for (int i = 0; i < 3000; i++) {
		buffer_clear(&text);
		if (i == 0)
			buffer_text(&text, "<mediawiki>");
		buffer_format(&text, PAGE("P%d", "Page %d is [[link|here]]. "), i, i);
		text.size -= strlen("</text></revision></page>\n");
		for (int k = 0; k < i % 50; k++) {
			buffer_format(&text, "It says %d. ", k * i);
		}
		buffer_text(&text, "</text></revision></page>\n");
		if (i == 2999)
			buffer_text(&text, "</mediawiki>");
		unsigned size = (unsigned)text.size + 1000;
		char *packed = malloc(size);
		assert_int_equal(BZ2_bzBuffToBuffCompress(packed, &size, text.data, (unsigned)text.size, 1, 0, 0), BZ_OK);
		assert_int_equal(fwrite(packed, 1, size, file), size);
		free(packed);
		buffer_format(&expected, "%sPage %d is here.\n", i ? "\n" : "", i);
		for (int k = 0; k < i % 50; k++)
			buffer_format(&expected, "It says %d.\n", k * i);
	}
	assert_int_equal(fclose(file), 0);
	gives(test_path("dump.xml.bz2"), "-q", buffer_string(&expected));
	buffer_release(&text);
	buffer_release(&expected);
}

static void test_standard_streams_and_folders(void **state)
{
	assert_ok(folder_make(test_path("mixed")));
	put("mixed/1.jsonl", "{\"text\": \"One.\"}\n");
	put("mixed/2.txt", "Two is. And more.\n\nThree is. And more.\n");
	put("mixed/3.xml", DUMP(PAGE("A", "Four is.")));
	gives(test_path("mixed"), "-q", "One.\n\nTwo is.\nAnd more.\n\nThree is.\nAnd more.\n\nFour is.\n");
	assert_program(0, "", "extract - --out %s <%s", test_path("out"), test_path("mixed/1.jsonl"));
	assert_program(0, "", "extract '%s/*.jsonl' --out %s", test_path("mixed"), test_path("out"));
	struct buffer out = {0};
	assert_ok(file_read(test_path("out"), 100, &out));
	assert_string_equal(buffer_string(&out), "One.\n");
	buffer_release(&out);
}

static void test_damage(void **state)
{
	char out[PATH_BYTES];
	snprintf(out, sizeof out, "%s", test_path("damaged.txt"));
	put("bad.jsonl", "{\"text\": \"One.\"}\n{\"text\": \"Two.\n{\"text\": \"Three.\"}\n");
	put("bad.xml", "<mediawiki>" PAGE("A", "One.") PAGE("B", "Two <x>") PAGE("C", "Three.") "</mediawiki>");
	put("cut.xml", "<mediawiki>" PAGE("A", "One.") "<page><title>B</title><revision><text>Tw");
	static const char gzip[] = "\x1f\x8b\x08\0\0\0\0\0\0\0\x4b";
	static const char stored[] = "\x1f\x8b\x08\0\0\0\0\0\0\0\0\x0b\0\xf4\xffOne.\n\nTwo.\n";
	assert_ok(file_write(test_path("cut.gz"), gzip, sizeof gzip - 1));
	assert_ok(file_write(test_path("cut2.gz"), stored, sizeof stored - 1));
	static const struct {
		const char *name, *words, *kept;
	} files[] = {{"bad.jsonl", "line 2, at byte 31", "One.\n\nThree.\n"},
		     {"bad.xml", "damaged XML at byte", "One.\n\nThree.\n"},
		     {"cut.xml", "truncated XML at byte", "One.\n"},
		     {"cut.gz", "truncated gzip data", ""},
		     {"cut2.gz", "truncated gzip data", "One.\n\nTwo.\n"}};
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		assert_program(ERR_DATA, files[i].words, "extract %s --out %s", test_path(files[i].name), out);
		assert_non_null(strstr(buffer_string(&program_errors), files[i].name));
		assert_non_null(strstr(buffer_string(&program_errors), "hint:"));
		assert_false(file_exists(out));
		assert_program(0, "1 damaged place skipped", "extract %s --out - --on_bad_record skip", test_path(files[i].name));
		assert_string_equal(buffer_string(&program_output), files[i].kept);
	}
	assert_said("extracting compressed text: 26 bytes");
	put("good.jsonl", "{\"text\": \"One.\"}\n");
	assert_program(0, "extracting: 17 bytes", "extract %s --out -", test_path("good.jsonl"));
	/* On a full disk, nothing half-written is left behind. */
	assert_program(ERR_RESOURCE, "No space left", "extract %s --out /dev/full", test_path("good.jsonl"));
	assert_int_equal(setenv("BERTC_FAULT", "write:1:ENOSPC", 1), 0);
	assert_program(ERR_RESOURCE, "No space left", "extract %s --out %s", test_path("good.jsonl"), out);
	assert_int_equal(unsetenv("BERTC_FAULT"), 0);
	assert_false(file_exists(out));
}

/* The log says how each file was read: for the first of many files and for each new form; the rest are counted. */
static void test_files_are_listed(void **state)
{
	char name[32];
	assert_ok(folder_make(test_path("listed")));
	for (int i = 0; i < 25; i++) {
		snprintf(name, sizeof name, "listed/%02d.txt", i);
		put(name, "One sentence.\nAnother one.\n");
	}
	put("listed/99.jsonl", "{\"text\": \"One more.\"}\n");
	assert_program(OK, "", "extract %s/listed --out -", test_folder);
	assert_said("/listed/00.txt' read as sentences");
	assert_said("/listed/19.txt' read as sentences");
	assert_said("/listed/99.jsonl' read as json");
	assert_said("5 more files read as sentences (--verbose lists each)");
	assert_null(strstr(buffer_string(&program_errors), "/listed/20.txt'"));
	assert_program(OK, "/listed/20.txt' read as sentences", "extract --verbose %s/listed --out -", test_folder);
	/* Tables, and WikiText's headings, are text only if that is requested. */
	put("listed/table.csv", "id,text\n1,One sentence.\n2,\"Another, longer one.\"\n3,Three.\n");
	assert_program(OK, "table.csv' looks like a table (CSV, columns 1 id, 2 text)", "extract %s/listed/table.csv --out -",
		       test_folder);
	assert_program(OK, "", "extract --input_form text %s/listed/table.csv --out -", test_folder);
	assert_null(strstr(buffer_string(&program_errors), "looks like a table"));
}

static void test_refused(void **state)
{
	put("keys.jsonl", "{\"paragraph\": \"One.\"}\n");
	assert_program(ERR_DATA, "\"paragraph\"", "extract %s --out -", test_path("keys.jsonl"));
	assert_program(ERR_DATA, "has a text under \"x\"", "extract %s --out - --text_key x", test_path("keys.jsonl"));
	assert_said("the keys with text are \"paragraph\"");
	put("html.warc", "WARC/1.0\r\nWARC-Type: response\r\nContent-Length: 45\r\n\r\nHTTP/1.1 200 OK\r\nContent-Type: "
			 "text/html\r\n\r\n<\r\n\r\n");
	assert_program(ERR_DATA, "WET files", "extract %s --out -", test_path("html.warc"));
	put("page.html", "\n<!DOCTYPE html><html><p>One.</p></html>\n");
	assert_program(ERR_DATA, "an HTML page", "extract %s --out -", test_path("page.html"));
	assert_program(0, "", "extract %s --out - --input_form text", test_path("page.html"));
	assert_program(ERR_USAGE, "no file given", "extract --out -");
	assert_program(ERR_USAGE, "--out is missing", "extract %s", test_path("keys.jsonl"));
	assert_program(ERR_USAGE, "No such file", "extract %s/none --out -", test_folder);
	assert_program(ERR_USAGE, "input_form", "extract x --out - --input_form pdf");
}

/* The commands that train read the same files. */
static void test_other_commands(void **state)
{
	put("small.xml", DUMP(PAGE("A", "The cat is here. The cat is there.") PAGE("B", "A cat is a [[cat]].")));
	assert_program(0, "", "vocab --corpus %s --vocab_size 60 --min_frequency 1 --out %s", test_path("small.xml"),
		       test_path("vocab.txt"));
	assert_program(0, "2 documents", "prepare --corpus %s --vocab_file %s --out %s", test_path("small.xml"),
		       test_path("vocab.txt"), test_path("shard"));
	struct buffer json = {0};
	assert_ok(file_read(test_path("shard.json"), 4096, &json));
	assert_non_null(strstr(buffer_string(&json), "wiki_xml"));
	buffer_release(&json);
}

/* `bertc extract ... | head` gets what it wants: that is not a failure to report. */
static void test_a_reader_that_leaves(void **state)
{
	struct buffer text = {0}, said = {0};
	for (int i = 0; i < 100000; i++)
		buffer_text(&text, "One more sentence is here.\n");
	const char *path = test_path("many.txt"), *errors = test_path("many.errors");
	assert_ok(file_write(path, text.data, text.size));
	assert_int_equal(program("extract %s --out - 2>%s | head -n 1", path, errors), 0);
	assert_string_equal(buffer_string(&program_output), "One more sentence is here.\n");
	assert_ok(file_read(errors, 1 << 20, &said));
	assert_null(strstr(buffer_string(&said), "standard output"));
	buffer_release(&text);
	buffer_release(&said);
}

/* Output that would replace the input, or would be read by the next call. */
static void test_input_is_not_overwritten(void **state)
{
	static const char sentence[] = "The cat is here. The cat is there.\n";
	struct buffer text = {0};
	assert_ok(folder_make(test_path("texts")));
	put("texts/one.txt", sentence);
	assert_int_equal(symlink("texts/one.txt", test_path("link.txt")), 0);
	assert_int_equal(link(test_path("texts/one.txt"), test_path("hard.txt")), 0);
	assert_program(ERR_USAGE, "is the same file as", "extract %s/texts/one.txt --out %s/texts/one.txt", test_folder,
		       test_folder);
	assert_program(ERR_USAGE, "is the same file as", "extract %s/link.txt --out %s/texts/one.txt", test_folder, test_folder);
	assert_program(ERR_USAGE, "is the same file as --corpus", "vocab --overwrite --corpus %s/texts/one.txt --out %s/hard.txt",
		       test_folder, test_folder);
	assert_program(0, "1 document", "extract %s/texts --out %s/texts/all.txt", test_folder, test_folder);
	assert_program(ERR_USAGE, "all.txt' is one of the files to read", "extract %s/texts --out %s/texts/all.txt", test_folder,
		       test_folder);
	assert_program(ERR_USAGE, "all.txt' is one of the files to read",
		       "vocab --overwrite --corpus '%s/texts/*.txt' --out %s/texts/all.txt", test_folder, test_folder);
	assert_program(
		ERR_USAGE, "is the same file as",
		"instances --corpus %s/texts/one.txt --vocab_file %s/vocab.txt --format instances --out %s/new %s/hard.txt",
		test_folder, test_folder, test_folder, test_folder);
	assert_program(
		ERR_USAGE, "is the same file as",
		"instances --corpus %s/texts/one.txt --vocab_file %s/vocab.txt --format instances --out %s/new,%s/hard.txt",
		test_folder, test_folder, test_folder, test_folder);
	assert_ok(file_read(test_path("texts/one.txt"), 4096, &text));
	assert_string_equal(buffer_string(&text), sentence);
	/* Shards have names of their own, with the ending of the files that they are made from. */
	static const char *const names[] = {"named.json", "named.held_out.bin"};
	for (int i = 0; i < 2; i++) {
		put(names[i], sentence);
		assert_program(ERR_USAGE, "was not made by bertc",
			       "prepare --corpus %s/%s --input_form text --held_out_fraction 0.5 --vocab_file %s/vocab.txt --out "
			       "%s/named",
			       test_folder, names[i], test_folder, test_folder);
		assert_ok(file_read(test_path(names[i]), 4096, &text));
		assert_string_equal(buffer_string(&text), sentence);
	}
	buffer_release(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_kind),
		cmocka_unit_test(test_gutenberg),
		cmocka_unit_test(test_large_dump),
		cmocka_unit_test(test_standard_streams_and_folders),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_files_are_listed),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_other_commands),
		cmocka_unit_test(test_a_reader_that_leaves),
		cmocka_unit_test(test_input_is_not_overwritten),
	};
	return cmocka_run_group_tests(tests, set_up, program_teardown);
}
