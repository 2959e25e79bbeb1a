/* bertc tokenize as scripts see it: lines, separators, formats, streams, exit codes. */
#include "test.h"
#include <sys/wait.h>
#include <sys/resource.h>
#include <zlib.h>
#include "base/buffer.h"

#define VOCAB "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nun\n##aff\n##able\nA\na\n.\n\xC3\xA9\n[\n]\nmask\n"

static struct buffer out;

static void put(const char *name, const char *bytes, size_t size)
{
	assert_ok(file_write(test_path(name), bytes, size));
}

static int set_up(void **state)
{
	if (test_folder_make(state) != 0)
		return -1;
	put("vocab.txt", VOCAB, strlen(VOCAB));
	return 0;
}

static int tear_down(void **state)
{
	buffer_release(&out);
	return test_folder_drop(state);
}

/* Runs "cd folder; [input |] bertc tokenize ..."; standard output goes to `out`, errors to the file "log". */
static int run(const char *input, const char *arguments)
{
	const char *bertc = getenv("BERTC");
	char command[1024], absolute[PATH_BYTES], bytes[4096];
	size_t count;

	assert_non_null(realpath(bertc ? bertc : "build/bertc", absolute));
	snprintf(command, sizeof command, "cd %s; %s%s %.500s tokenize %s 2>log", test_folder, input ? input : "",
		 input ? " |" : "", absolute, arguments);
	FILE *pipe = popen(command, "r");
	assert_non_null(pipe);
	buffer_clear(&out);
	while ((count = fread(bytes, 1, sizeof bytes, pipe)) > 0)
		buffer_append(&out, bytes, count);
	int status = pclose(pipe);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static bool log_has(const char *text, struct buffer *log)
{
	buffer_clear(log);
	assert_ok(file_read(test_path("log"), 1 << 20, log));
	return strstr(buffer_string(log), text) != NULL;
}

static void assert_log_has(const char *text)
{
	struct buffer log = {0};
	if (!log_has(text, &log))
		fail_msg("'%s' is not in '%s'", text, buffer_string(&log));
	buffer_release(&log);
}

static void assert_log_lacks(const char *text)
{
	struct buffer log = {0};
	if (log_has(text, &log))
		fail_msg("'%s' is in '%s'", text, buffer_string(&log));
	buffer_release(&log);
}

static void assert_out(const char *expected)
{
	assert_string_equal(buffer_string(&out), expected);
}

static void test_formats(void **state)
{
	put("text", "Unaffable.\n\n  [MASK]\xC3\x89 zz\n", 26);
	assert_int_equal(run(NULL, "--vocab_file vocab.txt text"), 0);
	assert_out("5 6 7 10\n\n4 1 1\n");
	assert_int_equal(run(NULL, "--vocab_file vocab.txt --format tokens text"), 0);
	assert_out("un ##aff ##able .\n\n[MASK] [UNK] [UNK]\n");
	assert_int_equal(run(NULL, "--vocab_file vocab.txt --format offsets --threads 2 text"), 0);
	assert_out("0:2 2:5 5:9 9:10\n\n2:8 8:10 11:13\n");
	assert_int_equal(run(NULL, "--vocab_file vocab.txt --cased --format tokens text"), 0);
	assert_out("[UNK] .\n\n[MASK] [UNK] [UNK]\n");
	assert_int_equal(run(NULL, "--vocab_file vocab.txt --compat google --format tokens text"), 0);
	assert_out("un ##aff ##able .\n\n[ mask ] [UNK] [UNK]\n");
}

/* Its NULs would be dropped as control characters are, and the rest could look like text. */
static void test_utf16(void **state)
{
	put("text", "u\0n\0a\0f\0f\0a\0b\0l\0e\0.\0\n\0", 22);
	assert_int_equal(run(NULL, "--vocab_file vocab.txt text"), ERR_DATA);
	assert_log_has("looks like UTF-16");
	put("text", "un\0 un\n", 7);
	assert_int_equal(run(NULL, "--vocab_file vocab.txt --format tokens text"), 0);
	assert_out("un un\n");
}

/* A line ends at \n only, the last one needs none, and empty input gives empty output. */
static void test_lines(void **state)
{
	assert_int_equal(run("printf 'a\\r a\\014a\\342\\200\\250a\\n\\na'", "--vocab_file vocab.txt"), 0);
	assert_out("9 1 9\n\n9\n");
	assert_int_equal(run("printf ''", "--vocab_file vocab.txt -"), 0);
	assert_out("");
	assert_int_equal(run("printf '\\n\\n'", "--vocab_file vocab.txt -"), 0);
	assert_out("\n\n");
	put("text", "a", 1);
	assert_int_equal(run("printf 'un'", "--vocab_file vocab.txt text - text"), 0);
	assert_out("9\n5\n9\n");
	assert_int_equal(run("printf 'a\\377\\200a\\0a\\n'", "--vocab_file vocab.txt"), 0);
	assert_out("1\n");
	assert_log_has("not UTF-8 were left out: 2");

	/* A missing file is reported before anything is printed. */
	for (int decode = 0; decode < 2; decode++) {
		assert_int_equal(
			run(NULL, decode ? "--vocab_file vocab.txt --decode text none" : "--vocab_file vocab.txt text none"), 2);
		assert_int_equal(out.size, 0);
		assert_log_has("cannot open 'none'");
	}
}

/* A line of any length takes little memory: it is cut where no token is split. */
static void test_endless_lines(void **state)
{
	static const struct {
		const char *part, *ids;
	} cases[] = {{"a\tun\t", "9 5 "}, {"\xE4\xBB\x8A\xE5\xA4\xA9", "1 1 "}, {"un,a.", "5 1 9 10 "}};
	struct rusage before, after;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct buffer text = {0}, ids = {0};
		for (int k = 0; k < 1 << 20; k++) {
			buffer_text(&text, cases[i].part);
			buffer_text(&ids, cases[i].ids);
		}
		ids.data[ids.size - 1] = '\n';
		put("text", text.data, text.size);
		assert_int_equal(run(NULL, "--vocab_file vocab.txt --threads 2 text"), 0);
		assert_true(out.size == ids.size && memcmp(out.data, ids.data, ids.size) == 0);
		buffer_release(&text);
		buffer_release(&ids);
	}
	struct buffer text = {0};
	char *line = buffer_room(&text, 40 << 20);
	assert_non_null(line);
	memset(line, '\t', 40 << 20);
	for (size_t i = 0; i < 40 << 20; i += 2)
		line[i] = 'a';
	buffer_advance(&text, 40 << 20);
	put("text", text.data, text.size);
	getrusage(RUSAGE_CHILDREN, &before);
	assert_int_equal(run(NULL, "--vocab_file vocab.txt --threads 2 text"), 0);
	getrusage(RUSAGE_CHILDREN, &after);
#ifndef __SANITIZE_ADDRESS__
	assert_true(after.ru_maxrss < before.ru_maxrss + (100 << 10));
#endif
	memset(text.data, 'a', text.size);
	put("text", text.data, text.size);
	assert_int_equal(run(NULL, "--vocab_file vocab.txt --threads 2 text"), 3);
	assert_log_has("is this text?");
	buffer_release(&text);
}

/* Long lines are not cut within added tokens. */
static void test_endless_lines_with_added_tokens(void **state)
{
	static const char json[] =
		"{\"added_tokens\": [{\"id\": 5, \"content\": \"%s\", \"normalized\": true}], "
		"\"normalizer\": {\"type\": \"BertNormalizer\", \"lowercase\": true}, \"pre_tokenizer\": {\"type\": "
		"\"BertPreTokenizer\"}, \"post_processor\": {\"type\": \"BertProcessing\", \"sep\": [\"[SEP]\", 3], \"cls\": "
		"[\"[CLS]\", 2]}, \"model\": {\"type\": \"WordPiece\", \"vocab\": "
		"{\"[PAD]\": 0, \"[UNK]\": 1, \"[CLS]\": 2, \"[SEP]\": 3, \"[MASK]\": 4}}}";
	static const struct {
		const char *token;
		size_t bytes;
		int code;
	} cases[] = {{"A.B", 20 << 20, 0}, {"a b", 1 << 20, 0}, {"a b", 40 << 20, 3}};
	assert_ok(folder_make(test_path("added")));
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct buffer text = {0};
		char file[1000];
		snprintf(file, sizeof file, json, cases[i].token);
		put("added/tokenizer.json", file, strlen(file));
		int64_t count = 0;
		for (; text.size < cases[i].bytes; count++)
			buffer_format(&text, "%s ", cases[i].token);
		put("text", text.data, text.size);
		assert_int_equal(run(NULL, "--vocab_file added/tokenizer.json --threads 2 text"), cases[i].code);
		if (cases[i].code != 0) {
			assert_log_has("added tokens of several words");
		} else {
			assert_int_equal(out.size, 2 * count);
			for (int64_t k = 0; k < count; k++)
				assert_int_equal(out.data[2 * k], '5');
		}
		buffer_release(&text);
	}
}

/* Text of more than one block, with lines longer than a part and longer than a block; also compressed. */
static void test_long_text(void **state)
{
	struct buffer text = {0}, ids = {0};

	for (int line = 0; line < 2; line++) {
		for (int i = 0; i < 900000; i++) {
			buffer_text(&text, i % 5 ? "a un " : "unaffable. ");
			buffer_text(&ids, i % 5 ? "9 5 " : "5 6 7 10 ");
		}
		ids.data[ids.size - 1] = '\n';
		text.data[text.size - 1] = '\n';
	}
	for (int line = 0; line < 40000; line++) {
		buffer_text(&text, line % 3 ? "  a\n" : "unaffable a un\n");
		buffer_text(&ids, line % 3 ? "9\n" : "5 6 7 9 5\n");
	}
	put("text", text.data, text.size);
	assert_int_equal(run(NULL, "--vocab_file vocab.txt --threads 1 text"), 0);
	assert_true(out.size == ids.size && memcmp(out.data, ids.data, ids.size) == 0);
	gzFile packed = gzopen(test_path("text.gz"), "wb1");
	assert_int_equal(gzwrite(packed, text.data, (unsigned)text.size), text.size);
	assert_int_equal(gzclose(packed), Z_OK);
	assert_int_equal(run(NULL, "--vocab_file vocab.txt --threads 3 text.gz"), 0);
	assert_true(out.size == ids.size && memcmp(out.data, ids.data, ids.size) == 0);
	assert_int_equal(run("cat text", "--vocab_file vocab.txt"), 0);
	assert_true(out.size == ids.size && memcmp(out.data, ids.data, ids.size) == 0);

	/* Offsets count from the beginning of the line, however it was cut. */
	assert_int_equal(run(NULL, "--vocab_file vocab.txt --format offsets text"), 0);
	size_t end = 0;
	char *p = out.data;
	while (*p != '\n') {
		size_t begin = strtoul(p, &p, 10);
		assert_true(*p == ':' && begin >= end && text.data[begin] != ' ');
		end = strtoul(p + 1, &p, 10);
		assert_true(end > begin && text.data[end - 1] != ' ');
		p += *p == ' ';
	}
	assert_int_equal(text.data[end], '\n');
	buffer_release(&text);
	buffer_release(&ids);
}

static void test_settings_file(void **state)
{
	put("text", "A\n", 2);
	assert_int_equal(run(NULL, "--vocab_file vocab.txt text"), 0);
	assert_log_has("has many entries in upper case, but text is lower-cased");
	assert_int_equal(run(NULL, "--vocab_file vocab.txt --no_cased text"), 0);
	assert_log_lacks("upper case");
	put("tokenizer_config.json", "{\"do_lower_case\": false}", 24);
	assert_int_equal(run(NULL, "--vocab_file vocab.txt text"), 0);
	assert_out("8\n");
	assert_int_equal(run(NULL, "--vocab_file vocab.txt --cased text"), 0);
	assert_int_equal(run(NULL, "--vocab_file vocab.txt --no_cased text"), ERR_STATE);
	assert_log_has("contradicts the settings of the tokenizer");
	put("tokenizer_config.json", "{\"do_lower_case\": true}", 23);
	assert_int_equal(run(NULL, "--vocab_file vocab.txt text"), 0);
	assert_out("9\n");
	assert_int_equal(run(NULL, "--vocab_file vocab.txt --cased text"), ERR_STATE);
	put("tokenizer_config.json", "{", 1);
	assert_int_equal(run(NULL, "--vocab_file vocab.txt text"), ERR_DATA);
	assert_int_equal(remove(test_path("tokenizer_config.json")), 0);
}

static void test_decode(void **state)
{
	put("ids", "5 6 7 10\n\n4 9\t12\r\n6 5\n", 22);
	assert_int_equal(run(NULL, "--vocab_file vocab.txt --decode ids"), 0);
	assert_out("unaffable.\n\n[MASK] a [\n##aff un\n");
	assert_int_equal(run("echo 8 14", "--vocab_file vocab.txt --decode -"), 0);
	assert_out("A mask\n");
	assert_int_equal(run("echo 5; echo 5 15", "--vocab_file vocab.txt --decode"), ERR_DATA);
	assert_int_equal(run("printf '5\\n5 15\\n'", "--vocab_file vocab.txt --decode"), ERR_DATA);
	assert_log_has("line 2: '15' is not an id below 15");
	assert_int_equal(run("echo 99999999999999999999", "--vocab_file vocab.txt --decode"), ERR_DATA);
	assert_int_equal(run("echo un", "--vocab_file vocab.txt --decode"), ERR_DATA);
	assert_int_equal(run("echo 5", "--vocab_file vocab.txt --decode --format tokens"), ERR_USAGE);
}

/* A writer that waits for the ids of a short line gets them: the second line is written after the first answer. */
static void test_waiting_writer(void **state)
{
	assert_int_equal(
		run("mkfifo q; (printf 'un\\n'; timeout 20 cat q || echo too late)",
		    "--vocab_file vocab.txt --threads 2 | (read ids; echo $ids; (echo a | timeout 30 tee q >/dev/null) & cat)"),
		0);
	assert_out("5\n9\n");
}

static void test_refused(void **state)
{
	assert_int_equal(run(NULL, "text"), ERR_USAGE);
	assert_log_has("--vocab_file");
	assert_int_equal(run(NULL, "--vocab_file nowhere.txt text"), ERR_USAGE);
	assert_log_has("nowhere.txt");
	assert_int_equal(run(NULL, "--vocab_file vocab.txt nowhere"), ERR_USAGE);
	assert_int_equal(run(NULL, "--vocab_file vocab.txt --format words text"), ERR_USAGE);
	assert_int_equal(run(NULL, "--vocab_file text text"), ERR_DATA);
	assert_out("");
	put("broken.gz", "\x1F\x8B\x08\0\0\0\0\0\0\3xxxx", 14);
	assert_int_equal(run(NULL, "--vocab_file vocab.txt broken.gz"), ERR_DATA);
	assert_int_equal(run(NULL, "--vocab_file vocab.txt text >/dev/full"), ERR_RESOURCE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_formats),       cmocka_unit_test(test_utf16),
		cmocka_unit_test(test_lines),         cmocka_unit_test(test_long_text),
		cmocka_unit_test(test_endless_lines), cmocka_unit_test(test_endless_lines_with_added_tokens),
		cmocka_unit_test(test_settings_file), cmocka_unit_test(test_waiting_writer),
		cmocka_unit_test(test_refused),       cmocka_unit_test(test_decode),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
