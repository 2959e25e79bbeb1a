/* bertc vocab as a user runs it: the file it writes, its messages, and every bad input with its exit code. */
#include <unistd.h>
#include "cmd/command.h"
#include "test.h"

static char text_path[128], out_path[128], said_path[128];
static struct buffer said;

static int set_up(void **state)
{
	int failed = test_folder_make(state);
	snprintf(text_path, sizeof text_path, "%s/text", test_folder);
	snprintf(out_path, sizeof out_path, "%s/vocab.txt", test_folder);
	snprintf(said_path, sizeof said_path, "%s/said", test_folder);
	return failed;
}

static int tear_down(void **state)
{
	buffer_release(&said);
	return test_folder_drop(state);
}

static void put(const char *path, const char *bytes, size_t size)
{
	FILE *file = fopen(path, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

/* Runs a command line, with words separated by single spaces; its standard error is left in `said`. */
static int run(const char *line)
{
	char words[512], *argv[32];
	int argc = 0;

	snprintf(words, sizeof words, "%s", line);
	for (char *word = strtok(words, " "); word; word = strtok(NULL, " "))
		argv[argc++] = word;
	argv[argc] = NULL;
	fflush(stderr);
	int saved = dup(STDERR_FILENO);
	assert_non_null(freopen(said_path, "wb", stderr));
	int code = command_main(argc, argv);
	fflush(stderr);
	dup2(saved, STDERR_FILENO);
	close(saved);
	assert_int_equal(file_read(said_path, 1 << 20, &said), OK);
	return code;
}

static void fails(int code, const char *words, const char *format, ...)
{
	char line[512];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(line, sizeof line, format, arguments);
	va_end(arguments);
	int got = run(line);
	if (got != code || !strstr(buffer_string(&said), words))
		fail_msg("'%s': code %d, said \"%s\"", line, got, buffer_string(&said));
}

static void test_good_run(void **state)
{
	struct buffer vocab = {0};
	char line[512];

	static const char text[] = "The cat sat. The cat ran.\nA Cat sat here.\n";

	put(text_path, text, sizeof text - 1);
	snprintf(line, sizeof line, "vocab --corpus %s --vocab_size 60 --threads 2 --out %s", text_path, out_path);
	assert_int_equal(run(line), OK);
	assert_int_equal(file_read(out_path, 1 << 20, &vocab), OK);
	assert_memory_equal(vocab.data, "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n.\n", 33);
	assert_non_null(strstr(vocab.data, "\ncat\n"));
	assert_null(strstr(vocab.data, "\nCat\n"));
	assert_non_null(strstr(said.data, "uncased"));
	assert_non_null(strstr(said.data, "1 file, "));

	strcat(line, " --cased --min_frequency 1");
	assert_int_equal(run(line), ERR_USAGE); /* a vocabulary is not replaced by accident */
	assert_non_null(strstr(said.data, "exists"));
	strcat(line, " --overwrite");
	assert_int_equal(run(line), OK);
	assert_int_equal(file_read(out_path, 1 << 20, &vocab), OK);
	assert_non_null(strstr(vocab.data, "\nCat\n"));
	buffer_release(&vocab);
}

static void test_bad_commands(void **state)
{
	unlink(out_path);
	put(text_path, "Some text here.\n", 16);
	fails(ERR_USAGE, "--corpus is missing", "vocab --out %s", out_path);
	fails(ERR_USAGE, "--out is missing", "vocab --corpus %s", text_path);
	fails(ERR_USAGE, "vocab_size", "vocab --corpus %s --out %s --vocab_size 3", text_path, out_path);
	fails(ERR_USAGE, "text_form", "vocab --corpus %s --out %s --text_form prose", text_path, out_path);
	fails(ERR_USAGE, "no folder", "vocab --corpus %s --out %s/none/vocab.txt", text_path, test_folder);
	fails(ERR_USAGE, "is a folder", "vocab --corpus %s --out %s", text_path, test_folder);
	fails(ERR_USAGE, "standard output", "vocab --corpus %s --out -", text_path);
	fails(ERR_USAGE, "none.txt", "vocab --corpus %s/none.txt --out %s", test_folder, out_path);
	put(test_path("words.txt"), "beta\n alpha\t\r\n\nbeta\n", 20);
	fails(ERR_USAGE, "'beta' occurs twice", "vocab --corpus %s --out %s --user_words %s", text_path, out_path,
	      test_path("words.txt"));
}

/* Whether accents are stripped is not in vocab.txt: without a file that says so, other commands follow --cased. */
static void test_unsaid(void **state)
{
	char line[512];
	put(text_path, "Caf\xc3\xa9 here.\n", 12);
	snprintf(line, sizeof line, "vocab --overwrite --corpus %s --min_frequency 1 --cased --strip_accents --out %s", text_path,
		 out_path);
	assert_int_equal(run(line), OK);
	assert_non_null(strstr(buffer_string(&said), "has {\"do_lower_case\": false, \"strip_accents\": true}"));
	put_file("tokenizer_config.json", "{\"do_lower_case\": false, \"strip_accents\": true}");
	assert_int_equal(run(line), OK);
	assert_null(strstr(buffer_string(&said), "strip_accents"));
	unlink(test_path("tokenizer_config.json"));
	snprintf(line, sizeof line, "vocab --overwrite --corpus %s %s/./text --min_frequency 1 --cased --out %s", text_path,
		 test_folder, out_path);
	assert_int_equal(run(line), OK);
	assert_null(strstr(buffer_string(&said), "strip_accents"));
	assert_non_null(strstr(buffer_string(&said), "text' is read more than once"));
}

static void test_bad_text(void **state)
{
	char path[128];

	unlink(out_path);
	put(text_path, "", 0);
	fails(ERR_DATA, "no words", "vocab --corpus %s --out %s", text_path, out_path);
	put(text_path,
	    "\x7f"
	    "ELF\0\0\0\1\2",
	    9);
	fails(ERR_DATA, "binary", "vocab --corpus %s --out %s", text_path, out_path);
	put(text_path, "\x1f\x8b\x08\0\0\0\0\0\0\0 broken", 17);
	fails(ERR_DATA, "gzip data", "vocab --corpus %s --out %s", text_path, out_path);
	snprintf(path, sizeof path, "%s/empty", test_folder);
	assert_int_equal(folder_make(path), OK);
	fails(ERR_USAGE, "empty", "vocab --corpus %s --out %s", path, out_path);
	assert_false(file_exists(out_path));
}

#define BASE "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\ncat\ngene\nkin\n##ase\n##s\n"

/* Words are ordered by what they save: their count times one less than their number of pieces. "kinases" has three pieces,
 * the others two; two words save the same amount and are ordered by their bytes; \xce\xb2 (beta) was unknown. */
static void test_extend(void **state)
{
	struct buffer vocab = {0};
	char base[128], line[512];
	static const char text[] = "Kinase kinase kinase kinase kinase kinases kinases kinases\n"
				   "genes genes genes genes cats cats cats cats the cat the cat \xce\xb2 \xce\xb2 thes\n";
	snprintf(base, sizeof base, "%s/base.txt", test_folder);
	put(base, BASE, sizeof BASE - 1);
	put(text_path, text, sizeof text - 1);
	snprintf(line, sizeof line, "vocab --overwrite --corpus %s --extend %s --vocab_size 99 --min_frequency 2 --out %s",
		 text_path, base, out_path);
	assert_int_equal(run(line), OK);
	assert_int_equal(file_read(out_path, 1 << 20, &vocab), OK);
	assert_string_equal(buffer_string(&vocab), BASE "kinases\nkinase\ncats\ngenes\n\xce\xb2\n");
	assert_non_null(strstr(buffer_string(&said), "16 entries, of which 5 are new"));
	/* 23 words with 43 tokens, the one with an unknown token counted as one; afterwards only "thes" has two tokens. */
	assert_non_null(strstr(buffer_string(&said), "a word is  1.043 tokens, before 1.870; [UNK] in 0 %, before 8.7 %"));

	snprintf(line, sizeof line, "vocab --overwrite --corpus %s --extend %s --vocab_size 13 --min_frequency 2 --out %s",
		 text_path, base, out_path);
	assert_int_equal(run(line), OK);
	buffer_clear(&vocab);
	assert_int_equal(file_read(out_path, 1 << 20, &vocab), OK);
	assert_string_equal(buffer_string(&vocab), BASE "kinases\nkinase\n");
	buffer_release(&vocab);

	unlink(out_path);
	fails(ERR_DATA, "10 times or more", "vocab --overwrite --corpus %s --extend %s --out %s", text_path, base, out_path);
	fails(ERR_USAGE, "has 11 entries already", "vocab --overwrite --corpus %s --extend %s --vocab_size 11 --out %s",
	      text_path, base, out_path);
	fails(ERR_USAGE, "no effect with --extend", "vocab --overwrite --corpus %s --extend %s --unused 3 --out %s", text_path,
	      base, out_path);
	fails(ERR_USAGE, "no such vocabulary", "vocab --overwrite --corpus %s --extend %s/absent --out %s", text_path,
	      test_folder, out_path);
	assert_false(file_exists(out_path));
}

/* What would give entries that the model's tokenizer never makes. */
static void test_extend_refused(void **state)
{
	static const char json[] =
		"{\"added_tokens\": [{\"id\": 0, \"content\": \"[PAD]\"}, {\"id\": 1, \"content\": \"[UNK]\"}, "
		"{\"id\": 2, \"content\": \"[CLS]\"}, {\"id\": 3, \"content\": \"[SEP]\"}, {\"id\": 4, \"content\": "
		"\"[MASK]\"}], \"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 5}, \"merges\": []}}";
	(void)state;
	assert_ok(folder_make(test_path("modern")));
	put(test_path("modern/tokenizer.json"), json, sizeof json - 1);
	put(text_path, "Cats cats dogs\n", 15);
	unlink(out_path);
	fails(ERR_USAGE, "not a tokenizer of BERT's kind", "vocab --corpus %s --extend %s/modern --min_frequency 1 --out %s",
	      text_path, test_folder, out_path);
	assert_ok(folder_make(test_path("uncased")));
	put(test_path("uncased/vocab.txt"), BASE, sizeof BASE - 1);
	put(test_path("uncased/tokenizer_config.json"), "{\"do_lower_case\": true}", 23);
	fails(ERR_STATE, "--cased true: the files beside",
	      "vocab --corpus %s --extend %s/uncased --cased --min_frequency 1 --out %s", text_path, test_folder, out_path);
	put(test_path("words"), "cats\n\0dogs\n", 11);
	fails(ERR_DATA, "there are NULs in it", "vocab --corpus %s --user_words %s/words --out %s", text_path, test_folder,
	      out_path);
	assert_false(file_exists(out_path));
}

/* Records without the key are no text, which may be a surprise. */
static void test_records_left_out(void **state)
{
	struct buffer text = {0};
	char line[512];
	(void)state;
	for (int i = 0; i < 100; i++)
		buffer_format(&text, "{\"%s\": \"cats and dogs\"}\n", i < 80 ? "text" : "content");
	put(test_path("some.jsonl"), text.data, text.size);
	buffer_release(&text);
	snprintf(line, sizeof line, "vocab --overwrite --corpus %s --out %s", test_path("some.jsonl"), out_path);
	assert_int_equal(run(line), OK);
	assert_non_null(strstr(buffer_string(&said), "20 of its 100 records have no text under \"text\" and are left out"));
	assert_non_null(strstr(buffer_string(&said), "skipped: 20 of 100 records"));
}

/* A folder that is a --vocab_file. */
static void test_bpe(void **state)
{
	const char *folder = test_path("bpe");
	char line[512];
	for (int i = 0; i < 40; i++)
		snprintf(line + 11 * i, sizeof line - 11 * (size_t)i, "cats dogs.\n");
	put(text_path, line, 440);
	fails(OK, "269 entries, not 400", "vocab --corpus %s --type bpe --vocab_size 400 --out %s", text_path, folder);
	static const char *const names[] = {"tokenizer.json", "vocab.json", "merges.txt", "tokenizer_config.json"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char path[PATH_BYTES];
		assert_ok(path_join(path, folder, names[i]));
		assert_true(file_exists(path));
	}
	fails(ERR_USAGE, "not written to standard output", "vocab --corpus %s --type bpe --out -", text_path);
	fails(ERR_USAGE, "has a tokenizer.json", "vocab --corpus %s --type bpe --out %s", text_path, folder);
	assert_int_equal(unlink(test_path("bpe/tokenizer.json")), 0);
	fails(ERR_USAGE, "has a vocab.json", "vocab --corpus %s --type bpe --out %s", text_path, folder);
	fails(OK, "", "vocab --corpus %s --type bpe --out %s --overwrite", text_path, folder);
	fails(OK, "", "prepare --corpus %s --vocab_file %s --out %s/shards", text_path, folder, test_folder);
	fails(ERR_USAGE, "no room", "vocab --corpus %s --type bpe --vocab_size 260 --out %s --overwrite", text_path, folder);
	fails(ERR_USAGE, "--cased has no meaning", "vocab --corpus %s --type bpe --cased --out %s --overwrite", text_path,
	      folder);
	fails(ERR_USAGE, "--extend has no meaning", "vocab --corpus %s --type bpe --extend %s --out %s --overwrite", text_path,
	      text_path, folder);
}

/* Instances need a mask token. */
static void test_no_mask(void **state)
{
	static const char json[] = "{\"added_tokens\": [{\"id\": 0, \"content\": \"<s>\"}, {\"id\": 1, \"content\": \"</s>\"}], "
				   "\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 2}, \"merges\": []}}";
	assert_ok(folder_make(test_path("no_mask")));
	put(test_path("no_mask/tokenizer.json"), json, sizeof json - 1);
	put(text_path, "a a a a.\na a a.\n", 16);
	fails(ERR_DATA, "no mask token, which pre-training needs",
	      "pretrain --corpus %s --vocab_file %s/no_mask --model tiny --out %s/run", text_path, test_folder, test_folder);
	fails(ERR_DATA, "no mask token, which pre-training needs",
	      "instances --corpus %s --vocab_file %s/no_mask --out %s/x.tfrecord", text_path, test_folder, test_folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good_run),       cmocka_unit_test(test_bad_commands),     cmocka_unit_test(test_bad_text),
		cmocka_unit_test(test_extend),         cmocka_unit_test(test_no_mask),          cmocka_unit_test(test_bpe),
		cmocka_unit_test(test_extend_refused), cmocka_unit_test(test_records_left_out), cmocka_unit_test(test_unsaid),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
