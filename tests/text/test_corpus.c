/* Formats recognized and read, documents and their hashes, odd bytes, and every kind of input that is refused. */
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/buffer.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/rng.h"
#include "text/corpus.h"
#include "test.h"

static int set_up(void **state)
{
	log_level = LOG_QUIET;
	return test_folder_make(state);
}

/* Writes a file in the folder; returns its path. */
static const char *put(const char *name, const char *bytes, size_t size)
{
	static char path[256];
	snprintf(path, sizeof path, "%s/%s", test_folder, name);
	FILE *file = fopen(path, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
	return path;
}

static const char *put_text(const char *name, const char *text)
{
	return put(name, text, strlen(text));
}

/* All documents as text: sentences end with '|', documents with a newline. */
static enum status read_corpus(const char *pattern, enum text_form form, int threads, struct buffer *out,
			       struct corpus_counts *counts)
{
	struct corpus *corpus;
	const struct document *document = NULL;

	buffer_clear(out);
	enum status status =
		corpus_open(&corpus, &pattern, 1, &(struct corpus_settings){.input.text_form = form, .threads = threads});
	if (status != OK)
		return status;
	while ((status = corpus_next(corpus, &document)) == OK && document) {
		assert_true(document->sentence_count > 0);
		assert_int_equal(document->hash, hash64(document->text, document->text_size));
		size_t at = 0;
		for (int64_t i = 0; i < document->sentence_count; i++) {
			assert_int_equal(document->sentences[i].begin, at);
			buffer_append(out, document->text + at, document->sentences[i].end - at);
			buffer_char(out, '|');
			at = document->sentences[i].end + 1;
		}
		assert_int_equal(at, document->text_size + 1);
		buffer_char(out, '\n');
	}
	*counts = *corpus_counts(corpus);
	if (status == OK)
		assert_int_equal(corpus_done_bytes(corpus), corpus_total_bytes(corpus));
	corpus_close(corpus);
	return status;
}

static void reads(const char *path, enum text_form form, const char *expected)
{
	struct buffer got = {0};
	struct corpus_counts counts;
	if (read_corpus(path, form, 0, &got, &counts) != OK)
		fail_msg("%s", error_last()->message);
	assert_string_equal(buffer_string(&got), expected);
	buffer_release(&got);
}

static void test_each_form(void **state)
{
	reads(put_text("s", "One is here.\nTwo e.g. This\n\n\nThree.\n"), TEXT_FORM_SENTENCES,
	      "One is here.|Two e.g. This|\nThree.|\n");
	reads(put_text("p", "One is. Two is.\nThree.\n \t\nFour. Five.\n"), TEXT_FORM_PARAGRAPHS,
	      "One is.|Two is.|Three.|\nFour.|Five.|\n");
	reads(put_text("d", "One. Two.\n\nThree. Four.\nFive."), TEXT_FORM_DOCUMENTS, "One.|Two.|\nThree.|Four.|\nFive.|\n");
	reads(put_text("w", "  One is broken\nhere. Two is well-\nknown here. Three\n\nFour. Five--\nSix\n\n\n"),
	      TEXT_FORM_WRAPPED, "One is broken here.|Two is well-known here.|Three|Four.|Five--Six|\n");
	/* Korean has spaces between words, other than Chinese and Japanese. */
	reads(put_text("w", "한국어는 그곳에서\n말한다. 日本語は\n行を続ける。中文\nword\n\n\n"), TEXT_FORM_WRAPPED,
	      "한국어는 그곳에서 말한다.|日本語は行を続ける。|中文 word|\n");
	reads(put_text("w", "The end\nof one.\n\n\nGoes on.\n\n \n\n\nChapter\ntwo.\n\n\n\n"), TEXT_FORM_WRAPPED,
	      "The end of one.|Goes on.|\nChapter two.|\n");
	reads(put_text("w", "春眠不觉晓，处\n处闻啼鸟。夜来\n风雨声。\n"), TEXT_FORM_WRAPPED,
	      "春眠不觉晓，处处闻啼鸟。|夜来风雨声。|\n");
}

static void test_line_ends_and_odd_bytes(void **state)
{
	struct buffer got = {0};
	struct corpus_counts counts;

	reads(put_text("m", "One.\rTwo.\r\rThree.\r"), TEXT_FORM_SENTENCES, "One.|Two.|\nThree.|\n");
	reads(put_text("r", "\xef\xbb\xbfOne.\r\nTwo.\r\n\r\nThree.\r\n"), TEXT_FORM_SENTENCES, "One.|Two.|\nThree.|\n");
	reads(put_text("c", "O\x01n\x7f"
			    "e.\n\x0c\nTwo.\n"),
	      TEXT_FORM_SENTENCES,
	      "O\x01n\x7f"
	      "e.|\nTwo.|\n");
	reads(put_text("u", "\xe3\x80\x80"
			    "One.\xc2\xa0\n\xe3\x80\x80\nTwo.\n"),
	      TEXT_FORM_SENTENCES, "One.|\nTwo.|\n");

	/* A stray NUL and invalid UTF-8 are counted and kept if there is enough text around them. */
	struct buffer text = {0};
	for (int i = 0; i < 1000; i++)
		buffer_text(&text, "A line of text.\n");
	buffer_append(&text, "x\0y \xff\xfe \xe4\xb8 z\n", 12);
	assert_int_equal(read_corpus(put("n", text.data, text.size), TEXT_FORM_SENTENCES, 0, &got, &counts), OK);
	assert_int_equal(counts.nul_bytes, 1);
	assert_int_equal(counts.invalid_utf8_bytes, 4);
	assert_int_equal(counts.lines, 1001);
	assert_int_equal(counts.bytes, text.size);
	assert_int_equal(counts.sentences, 1001);
	assert_memory_equal(got.data + got.size - 13, "x\0y \xff\xfe \xe4\xb8 z|\n", 13);
	buffer_release(&text);
	buffer_release(&got);
}

static const struct {
	const char *name, *text;
	int repeat;
	int64_t files;
	enum text_form form;
} forms[] = {
	{"sentences", "This is a sentence of some length, as it were.\nA second follows it here.\n\nAnd one more.\n", 50, 1,
	 TEXT_FORM_SENTENCES},
	{"sentences, no blank line", "This is a sentence of some length.\nA second follows it here.\n", 50, 1,
	 TEXT_FORM_SENTENCES},
	{"sentences, some lines with two", "One is here.\nTwo is.\nThree.\nFour.\nFive.\nSix.\nSeven.\nEight. Nine.\n\n", 50, 1,
	 TEXT_FORM_SENTENCES},
	{"paragraphs", "A heading\nThis is one. This is two. This three.\n\nHere it goes on. It does. Truly.\n\n", 50, 1,
	 TEXT_FORM_PARAGRAPHS},
	{"documents", "This is one. This is two. This three.\nHere it goes on. It does. Truly it does go on.\n", 50, 1,
	 TEXT_FORM_DOCUMENTS},
	{"one line", "This is one. This is two. This three.", 1, 1, TEXT_FORM_DOCUMENTS},
	{"wrapped",
	 "It was the best of times, it was the worst of times, it was the age of\n"
	 "wisdom, it was the age of foolishness, it was the epoch of belief, it\n"
	 "was the epoch of incredulity. It was the season of Light, it was the\n"
	 "season of Darkness.\n\n",
	 10, 1, TEXT_FORM_WRAPPED},
	{"wrapped by hand",
	 "  These lines were filled once and then edited, so that some\n"
	 "of them are shorter\n"
	 "than the width would allow, as in most licences, e.g. where a\n"
	 "word was taken out. The next one fits again, nearly to its end\n"
	 "as it should.\n\n  TITLE OF A SECTION\n\n",
	 10, 1, TEXT_FORM_WRAPPED},
	{"wrapped Chinese",
	 "第一条为了发展教育事业提高全民族的素质促进社会主义物质文明和精神文\n"
	 "明建设根据宪法制定本法。第二条在中华人民共和国境内的各级各类教育适\n"
	 "用本法。第三条国家坚持。\n\n",
	 10, 1, TEXT_FORM_WRAPPED},
	{"words", "apple\nbanana\ncherry\ndate\nelderberry\n", 100, 1, TEXT_FORM_SENTENCES},
	{"verse",
	 "Shall I compare thee to a summer's day?\nThou art more lovely and more temperate:\n"
	 "Rough winds do shake the darling buds of May,\nAnd summer's lease hath all too short a date.\n\n",
	 20, 1, TEXT_FORM_SENTENCES},
	{"Chinese sentences", "尉迟敬德，朔州善阳人。\n隋炀帝大业末年，在高阳参军。\n\n刘武周起兵。\n", 50, 1,
	 TEXT_FORM_SENTENCES},
	{"Chinese paragraphs", "他来了。我走了。你好吗？\n今天好。明天也好。\n\n", 50, 1, TEXT_FORM_PARAGRAPHS},
	{"paragraphs apart, one file", "This is one. This is two. This three.\n\n", 50, 1, TEXT_FORM_PARAGRAPHS},
	{"paragraphs apart, many files", "This is one. This is two. This three.\n\n", 50, 8, TEXT_FORM_WRAPPED},
	{"paragraphs, many files", "This is one. This is two. This three.\n", 50, 8, TEXT_FORM_PARAGRAPHS},
	{"nothing", " \n\n", 3, 1, TEXT_FORM_SENTENCES},
};

static void test_detection(void **state)
{
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		struct buffer text = {0};
		enum text_form form;
		char reason[TEXT_FORM_REASON_BYTES];
		for (int k = 0; k < forms[i].repeat; k++)
			buffer_text(&text, forms[i].text);
		assert_int_equal(text_form_detect(text.data, text.size, true, forms[i].files, &form, reason), OK);
		if (form != forms[i].form)
			fail_msg("%s: found %s (%s)", forms[i].name, text_form_names[form], reason);
		assert_true(strlen(reason) > 0);
		buffer_release(&text);
	}
}

static void test_files_folders_and_documents(void **state)
{
	struct buffer got = {0};
	struct corpus_counts counts;
	char path[128];

	snprintf(path, sizeof path, "%s/many", test_folder);
	assert_int_equal(folder_make(path), OK);
	put_text("many/b.txt", "Second file. It is short.");
	put_text("many/a.txt", "First file.\nOf two lines.\n\nIts second document.\n");
	put_text("many/empty.txt", "");
	put_text("many/blank.txt", "\n \n\n");
	assert_int_equal(read_corpus(path, TEXT_FORM_AUTO, 0, &got, &counts), OK);
	assert_string_equal(buffer_string(&got),
			    "First file.|Of two lines.|\nIts second document.|\nSecond file.|It is short.|\n");
	assert_int_equal(counts.files, 4);
	assert_int_equal(counts.empty_files, 2);
	assert_int_equal(counts.documents, 3);
	assert_int_equal(counts.sentences, 5);
	buffer_release(&got);
}

/* A crawl contains pictures among its texts. */
static void test_binary_records(void **state)
{
	struct buffer file = {0};
	buffer_text(&file, "WARC/1.0\r\nWARC-Type: response\r\nContent-Length: 40\r\n\r\n");
	buffer_append(&file, (const char[40]){"HTTP/1.0 200\r\nContent-Type: image\r\n\r\n"}, 40);
	buffer_text(&file, "\r\n\r\nWARC/1.0\r\nWARC-Type: response\r\nContent-Length: 3000\r\n\r\n");
	for (int i = 0; i < 3000; i++)
		buffer_char(&file, '\0');
	buffer_text(&file, "\r\n\r\nWARC/1.0\r\nWARC-Type: conversion\r\nContent-Length: 19\r\n\r\n"
			   "This is its text.\n\n\r\n\r\n");
	assert_int_equal(file.size > 3000, true);
	reads(put("crawl", file.data, file.size), TEXT_FORM_AUTO, "This is its text.|\n");
	buffer_release(&file);
}

static void test_same_document_same_hash(void **state)
{
	uint64_t hashes[3];
	const char *paths[3];
	char names[3][256];

	strcpy(names[0], put_text("h1", "One here. Two there.\n"));
	strcpy(names[1], put_text("h2", "One here.\r\nTwo there.\r\n"));
	strcpy(names[2], put_text("h3", "One here. Two elsewhere.\n"));
	for (int i = 0; i < 3; i++) {
		struct corpus *corpus;
		const struct document *document;
		paths[i] = names[i];
		assert_int_equal(corpus_open(&corpus, &paths[i], 1, NULL), OK);
		assert_int_equal(corpus_next(corpus, &document), OK);
		hashes[i] = document->hash;
		assert_string_equal(document->path, names[i]);
		corpus_close(corpus);
	}
	assert_int_equal(hashes[0], hashes[1]);
	assert_int_not_equal(hashes[0], hashes[2]);
}

static void test_fingerprint_follows_files(void **state)
{
	struct corpus *corpus;
	const char *path = put_text("f", "Text.");
	assert_int_equal(corpus_open(&corpus, &path, 1, NULL), OK);
	uint64_t first = corpus_fingerprint(corpus);
	corpus_close(corpus);
	assert_int_equal(corpus_open(&corpus, &path, 1, NULL), OK);
	assert_int_equal(corpus_fingerprint(corpus), first);
	corpus_close(corpus);
	path = put_text("f", "Text!!");
	assert_int_equal(corpus_open(&corpus, &path, 1, NULL), OK);
	assert_int_not_equal(corpus_fingerprint(corpus), first);
	corpus_close(corpus);
}

static uint64_t fingerprint_of(const char *path)
{
	struct corpus *corpus;
	assert_int_equal(corpus_open(&corpus, &path, 1, NULL), OK);
	uint64_t fingerprint = corpus_fingerprint(corpus);
	corpus_close(corpus);
	return fingerprint;
}

/* A folder may be moved, and a link to it lead elsewhere; shards that earlier versions made are still of their text. */
static void test_fingerprint_ignores_folders(void **state)
{
	char path[PATH_BYTES];
	assert_ok(folder_make(test_path("old")));
	assert_ok(file_write(test_path("old/t"), "Text.", 5));
	assert_int_equal(symlink("old", test_path("link")), 0);
	snprintf(path, sizeof path, "%s", test_path("link/t"));
	const uint64_t before = fingerprint_of(path);
	assert_true(fingerprint_of(test_path("old/t")) == before);
	assert_int_equal(rename(test_path("old"), test_path("new")), 0);
	assert_int_equal(unlink(test_path("link")), 0);
	assert_int_equal(symlink("new", test_path("link")), 0);
	assert_true(fingerprint_of(path) == before);

	struct stat info;
	assert_int_equal(stat(path, &info), 0);

	/* An archive may give files of one name and size the same time. */
	assert_ok(folder_make(test_path("other")));
	assert_ok(file_write(test_path("other/t"), "Test.", 5));
	assert_int_equal(utimensat(AT_FDCWD, test_path("other/t"), (struct timespec[]){info.st_mtim, info.st_mtim}, 0), 0);
	assert_true(fingerprint_of(test_path("other/t")) != before);
}

/* Files must not change from when the corpus is opened until its last document has been delivered; otherwise there is an
 * error instead of an end. */
static void test_changed_while_read(void **state)
{
	static const struct {
		const char *change; /* a command, in the folder */
		const char *words;
	} cases[] = {
		{"true", NULL},
		{"truncate -s 3000000 b", "/b' was cut short while"},
		{"echo more >>b", "/b' grew while"},
		{"cp b c && mv c b", "/b' was replaced by another file while the corpus was read"},
		{"cp -p a c && mv c a", "/a' was replaced by another file while the corpus was read"}, /* read to its end */
		{"echo more >>a", "/a' grew while the corpus was read"},
		{"touch -d 2001-02-03 a", "/a' was written to while the corpus was read"},
		{"rm a", "/a' was removed while the corpus was read"},
	};
	struct buffer text = {0};
	for (int i = 0; i < 1000000; i++)
		buffer_format(&text, "%d\n%s", i, i % 100 == 99 ? "\n" : "");
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		for (int threads = 1; threads <= 3; threads += 2) {
			char a[256], b[256], command[512];
			const char *patterns[] = {a, b};
			struct corpus *corpus;
			const struct document *document;
			snprintf(a, sizeof a, "%s", put_text("a", "One.\nTwo.\n"));
			snprintf(b, sizeof b, "%s", put("b", text.data, text.size));
			assert_ok(corpus_open(
				&corpus, patterns, 2,
				&(struct corpus_settings){.input.text_form = TEXT_FORM_SENTENCES, .threads = threads}));
			for (int k = 0; k < 2; k++) /* the second document is from the second file */
				assert_ok(corpus_next(corpus, &document));
			snprintf(command, sizeof command, "cd %s && %s", test_folder, cases[i].change);
			assert_int_equal(system(command), 0);
			enum status status;
			while ((status = corpus_next(corpus, &document)) == OK && document)
				;
			if (cases[i].words)
				assert_error(ERR_STATE, cases[i].words, status);
			else
				assert_ok(status);
			corpus_close(corpus);
		}
	}
	buffer_release(&text);
}

static void refuses(const char *path, enum status expected, const char *words)
{
	struct buffer got = {0};
	struct corpus_counts counts;
	enum status status = read_corpus(path, TEXT_FORM_AUTO, 0, &got, &counts);
	if (status != expected || !strstr(error_last()->message, words) || !strstr(error_last()->message, path))
		fail_msg("'%s': status %d, \"%s\"", path, (int)status, status == OK ? "" : error_last()->message);
	buffer_release(&got);
}

static void accepts(const char *path, int64_t invalid)
{
	struct buffer got = {0};
	struct corpus_counts counts;
	assert_ok(read_corpus(path, TEXT_FORM_AUTO, 0, &got, &counts));
	assert_int_equal(counts.invalid_utf8_bytes, invalid);
	buffer_release(&got);
}

/* Letters of another encoding are told from damage to UTF-8. */
static void test_encodings(void **state)
{
	static const char english[] = "This text has none of them, however long it may be, and that is that.\n";
	struct buffer text = {0};
	refuses(put_text("de", "Er tr\xe4gt f\xfcr sie den Koffer \xfc"
			       "ber die Stra\xdf"
			       "e zum Bahnhof, wo sie wartet.\n"),
		ERR_DATA, "4 of its first 72 bytes, most of them letters of another encoding, the first at byte 5");
	assert_non_null(strstr(error_last()->hint, "-f LATIN1"));
	refuses(put_text("fr", "L\x92\xe9t\xe9 est pass\xe9, les \xe9l\xe8ves sont rentr\xe9s \xe0 l\x92\xe9"
			       "cole, et l\x92"
			       "on n\x92"
			       "en parle plus; quant aux autres, ils sont partis depuis longtemps sans rien dire.\n"),
		ERR_DATA, "letters of another encoding");
	assert_non_null(strstr(error_last()->hint, "-f CP1252"));
	/* A few letters in a long text are damage. */
	for (int i = 0; i < 5000; i++)
		buffer_text(&text, i % 1000 == 0 ? "A caf\xe9 in Paris.\n" : english);
	accepts(put("few", text.data, text.size), 5);

	/* Up to three bytes anywhere; UTF-8 with damage; bytes that are no letters. */
	accepts(put_text("three", "A caf\xe9 or a r\xe9sum\xe9.\nThis is a line.\n"), 3);
	buffer_clear(&text);
	for (int i = 0; i < 40; i++)
		buffer_text(&text, "Fl\xc3\xbcgel und Fl\xc3\xb6te.\n");
	buffer_text(&text, "Fl\xc3gel, Fl\xc3te, Fl\xc3gel, Fl\xc3te und Fl\xc3gel.\n");
	accepts(put("damaged", text.data, text.size), 5);
	buffer_clear(&text);
	for (int i = 0; i < 20; i++)
		buffer_text(&text, english);
	buffer_text(&text, "\x89\xf7 \xee\xfa (\xb3\xfe) \x90.\xab 7\xd0"
			   "9 \x8d\n");
	accepts(put("garbage", text.data, text.size), 10);
	buffer_release(&text);
}

static void test_refused(void **state)
{
	char path[128];
	struct buffer bytes = {0};

	for (int i = 0; i < 5000; i++)
		buffer_char(&bytes, (char)(i * 7 % 256));
	refuses(put("binary", bytes.data, bytes.size), ERR_DATA, "NUL at byte 0");
	buffer_clear(&bytes);
	for (const char *c = "This would be text in another encoding."; *c; c++)
		buffer_append(&bytes, (const char[]){*c, 0}, 2);
	refuses(put("utf16", bytes.data, bytes.size), ERR_DATA, "NUL at byte 1");
	assert_non_null(strstr(error_last()->hint, "UTF-16"));
	refuses(put_text("gbk", "Some \xc4\xe3\xba\xc3\xa3\xac\xca\xc0\xbd\xe7\n"), ERR_DATA, "not UTF-8");
	assert_non_null(strstr(error_last()->hint, "iconv"));
	refuses(put("broken", "\x1f\x8b\x08\0\0\0\0\0\0\0\x4b", 11), ERR_DATA, "truncated gzip data: the file ends at byte 11");

	refuses(put_text("arc", "filedesc://crawl.arc.gz 0.0.0.0 20140126 text/plain 76\n1 0 InternetArchive\n"), ERR_DATA,
		"an ARC file");

	snprintf(path, sizeof path, "%s/no-such-file", test_folder);
	refuses(path, ERR_USAGE, "no-such-file");
	snprintf(path, sizeof path, "%s/nothing", test_folder);
	assert_int_equal(folder_make(path), OK);
	refuses(path, ERR_USAGE, "nothing");
	snprintf(path, sizeof path, "%s/*.nope", test_folder);
	refuses(path, ERR_USAGE, "nope");
	struct corpus *corpus;
	assert_int_equal(corpus_open(&corpus, NULL, 0, NULL), ERR_USAGE);
	buffer_release(&bytes);
}

/* The superuser may read anything, so a child gives up that privilege first. */
static void test_unreadable_file(void **state)
{
	const char *path = put_text("secret", "Text.");
	assert_int_equal(chmod(path, 0), 0);
	assert_int_equal(chmod(test_folder, 0755), 0);
	pid_t child = fork();
	if (child == 0) {
		struct corpus *corpus;
		if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
			_exit(2);
		enum status status = corpus_open(&corpus, &path, 1, NULL);
		_exit(status == ERR_RESOURCE && strstr(error_last()->message, path) ? 0 : 1);
	}
	int result;
	assert_int_equal(waitpid(child, &result, 0), child);
	assert_true(WIFEXITED(result));
	assert_int_equal(WEXITSTATUS(result), 0);
}

/* Writes `megabytes` of repeated `text`, without a newline. */
static const char *put_large(const char *name, const char *text, int megabytes)
{
	struct buffer block = {0};
	static char path[256];
	while (block.size < 1 << 20)
		buffer_text(&block, text);
	snprintf(path, sizeof path, "%s/%s", test_folder, name);
	FILE *file = fopen(path, "wb");
	for (int i = 0; i < megabytes; i++)
		assert_int_equal(fwrite(block.data, 1, block.size, file), block.size);
	assert_int_equal(fclose(file), 0);
	buffer_release(&block);
	return path;
}

static void test_huge_lines(void **state)
{
	struct corpus *corpus;
	const struct document *document;

	/* Running text: no sentence is cut, but the document is, after 16 MiB. */
	const char *path = put_large("huge", "Every sentence of this line is whole. ", 100);
	assert_int_equal(corpus_open(&corpus, &path, 1, NULL), OK);
	int64_t documents = 0;
	while (corpus_next(corpus, &document) == OK && document) {
		documents++;
		assert_true(document->text_size < (18 << 20));
		for (int64_t i = 0; i < document->sentence_count; i++)
			assert_int_equal(document->sentences[i].end - document->sentences[i].begin, 37);
	}
	assert_int_equal(documents, 7);
	assert_int_equal(corpus_counts(corpus)->document_cuts, 6);
	assert_int_equal(corpus_counts(corpus)->sentence_cuts, 0);
	assert_int_equal(corpus_counts(corpus)->lines, 1);
	corpus_close(corpus);

	/* Without any punctuation: pieces of at most 64 KiB, and no character is cut. */
	path = put_large("letters", "\xe4\xb8\xad", 3);
	assert_int_equal(corpus_open(&corpus, &path, 1, NULL), OK);
	size_t total = 0;
	while (corpus_next(corpus, &document) == OK && document)
		for (int64_t i = 0; i < document->sentence_count; i++) {
			size_t size = document->sentences[i].end - document->sentences[i].begin;
			assert_true(size <= 64 << 10 && size % 3 == 0);
			total += size;
		}
	assert_int_equal(total, file_size(path));
	assert_int_equal(corpus_counts(corpus)->invalid_utf8_bytes, 0);
	assert_true(corpus_counts(corpus)->sentence_cuts > 40);
	struct buffer odd = {0};
	corpus_describe_oddities(corpus, &odd);
	assert_non_null(strstr(buffer_string(&odd), "cuts in sentences"));
	buffer_release(&odd);
	corpus_close(corpus);
	corpus_close(NULL);
}

/* A record of ideographs that is divided between two of them, wherever the pieces that are read end. */
static void test_huge_record(void **state)
{
	struct buffer text = {0};
	struct corpus *corpus;
	const struct document *document;
	const char *path = test_path("ideographs.json");
	(void)state;
	buffer_text(&text, "{\"text\": \"a");
	for (int i = 0; i < 17 << 20; i += 3)
		buffer_text(&text, "\xe4\xb8\xad");
	buffer_text(&text, "\"}");
	assert_ok(file_write(path, text.data, text.size));
	buffer_release(&text);
	assert_ok(corpus_open(&corpus, &path, 1, &(struct corpus_settings){.quiet = true}));
	while (corpus_next(corpus, &document) == OK && document)
		;
	assert_true(corpus_counts(corpus)->document_cuts > 0);
	assert_int_equal(corpus_counts(corpus)->invalid_utf8_bytes, 0);
	corpus_close(corpus);
}

/* A sentence with what separates it from the one before: a space or line end, a blank line (`paragraph`), or the end of
 * its document. */
static void add_sentence(enum text_form form, int64_t number, bool paragraph, bool document, struct buffer *text,
			 struct buffer *expected)
{
	bool first = text->size == 0, wrapped = form == TEXT_FORM_WRAPPED;
	if (document && !first)
		buffer_char(expected, '\n');
	if (document)
		buffer_text(text, first ? "" : wrapped ? "\n\n\n\n" : "\n\n");
	else
		buffer_text(text, paragraph && wrapped                                  ? "\n\n"
				  : paragraph || wrapped || form == TEXT_FORM_SENTENCES ? "\n"
											: " ");
	buffer_format(text, "This is sentence%snumber %lld.", wrapped ? "\n" : " ", (long long)number);
	buffer_format(expected, "This is sentence number %lld.|", (long long)number);
}

/* Megabytes in which documents, paragraphs and lines of all sizes lie across the places where text is split for threads;
 * then a document longer than several of these parts. */
static void test_long_text(void **state)
{
	static const enum text_form three[] = {TEXT_FORM_SENTENCES, TEXT_FORM_PARAGRAPHS, TEXT_FORM_WRAPPED};
	struct buffer text = {0}, expected = {0}, got = {0};
	struct corpus_counts counts;
	for (int f = 0; f < 3; f++) {
		struct rng rng = rng_start(7, RNG_TEST, (uint64_t)f);
		int64_t documents = 0, number = 0;
		bool mixed = true;
		buffer_clear(&text);
		buffer_clear(&expected);
		for (; text.size < 9 << 20; number++) {
			mixed = text.size < 5 << 20;
			bool document = number == 0 || (mixed && rng_below(&rng, 1000) == 0);
			bool paragraph = !document && mixed && rng_below(&rng, 20) == 0;
			documents += document;
			add_sentence(three[f], number, paragraph, document, &text, &expected);
		}
		buffer_char(&text, '\n');
		buffer_char(&expected, '\n');
		const char *path = put("long", text.data, text.size);
		for (int threads = 1; threads <= 3; threads++) {
			assert_ok(read_corpus(path, three[f], threads, &got, &counts));
			assert_int_equal(got.size, expected.size);
			assert_memory_equal(got.data, expected.data, got.size);
			assert_int_equal(counts.documents, documents);
			assert_int_equal(counts.sentences, number);
			assert_int_equal(counts.bytes, text.size);
		}
	}
	buffer_release(&text);
	buffer_release(&expected);
	buffer_release(&got);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_form),
		cmocka_unit_test(test_line_ends_and_odd_bytes),
		cmocka_unit_test(test_detection),
		cmocka_unit_test(test_files_folders_and_documents),
		cmocka_unit_test(test_binary_records),
		cmocka_unit_test(test_same_document_same_hash),
		cmocka_unit_test(test_fingerprint_follows_files),
		cmocka_unit_test(test_fingerprint_ignores_folders),
		cmocka_unit_test(test_changed_while_read),
		cmocka_unit_test(test_encodings),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_unreadable_file),
		cmocka_unit_test(test_huge_lines),
		cmocka_unit_test(test_huge_record),
		cmocka_unit_test(test_long_text),
	};
	return cmocka_run_group_tests(tests, set_up, test_folder_drop);
}
