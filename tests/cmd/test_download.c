/* bertc download against a server of our own (--mirror). */
#include <curl/curlver.h>
#include "program.h"

#include "cmd/download_sources.h"
#include "formats/checksum.h"
#include "http_server.h"
#include "weights/published.h"

static const char text[] = "a dump, or a book, as far as this server knows\n";
static char sums[256];

static int setup(void **state)
{
	char sum[CHECKSUM_BYTES];
	if (test_folder_make(state) != 0 || http_server_start(text, sizeof text - 1) != 0 ||
	    file_write(test_path("text"), text, sizeof text - 1) != OK || checksum_file(test_path("text"), "sha1:", sum) != OK)
		return -1;
	snprintf(sums, sizeof sums, "%s  xxwiki-20260101-pages-articles-multistream.xml.bz2\n", sum + 5);
	return 0;
}

static int teardown(void **state)
{
	http_server_stop();
	return test_folder_drop(state);
}

#define DOWNLOAD(arguments)                                                                                                      \
	"download --retries 1 --pause_seconds 0.01 --stall_seconds 1 --mirror http://127.0.0.1:%d/plain --out %s " arguments,    \
		http_server.port, test_path("got")

static void test_wikipedia(void **state)
{
	(void)state;
	http_server.extra_path = "/plain/xxwiki/latest/xxwiki-latest-sha1sums.txt";
	http_server.extra_body = sums;
	assert_program(0, "checksum right", DOWNLOAD("wikipedia --language xx"));
	assert_non_null(strstr(buffer_string(&program_errors), "xml.bz2: 47 bytes in "));
	assert_non_null(strstr(buffer_string(&program_output), "xxwiki-latest-pages-articles-multistream.xml.bz2\n"));
	assert_same_file(test_path("text"), test_path("got/wikipedia/xxwiki-latest-pages-articles-multistream.xml.bz2"));
	assert_program(0, "was there", DOWNLOAD("wikipedia --language xx"));
	assert_program(0, "was there", DOWNLOAD("wikipedia wikipedia --language xx"));
	sums[0] = sums[0] == '0' ? '1' : '0'; /* the dump has changed */
	assert_program(5, "published is", DOWNLOAD("wikipedia --language xx"));
	assert_program(2, "--date", DOWNLOAD("wikipedia --date ../x"));
}

static void test_what_is_gone_is_listed(void **state)
{
	(void)state;
	assert_ok(file_write(test_path("list"), "1342\n2701,\n", 11));
	assert_program(0, "no checksum", DOWNLOAD("gutenberg --books %s 84"), test_path("list"));
	assert_same_file(test_path("text"), test_path("got/gutenberg/2701.txt"));
	assert_same_file(test_path("text"), test_path("got/gutenberg/84.txt"));
	assert_program(5, "1 of 2 files could not be had",
		       "download --retries 0 --out %s http://127.0.0.1:%d/404/a.txt http://127.0.0.1:%d/plain/b.txt",
		       test_path("got"), http_server.port, http_server.port);
	assert_non_null(strstr(buffer_string(&program_errors), "the server answers 404"));
	assert_same_file(test_path("text"), test_path("got/b.txt")); /* the rest was fetched */
	assert_program(5, "4 of 4 files", DOWNLOAD("squad"));        /* does not match SQuAD's checksums */
}

/* As a stranger might make it: an archive with a single file, which has the same name as a user's file. */
static void test_archives_keep_to_themselves(void **state)
{
	(void)state;
	char tar[600];
	http_server.extra_path = NULL;
	snprintf(tar, sizeof tar,
		 "mkdir -p %s/own && cd %s/own && printf stranger >file.txt && tar cf ../set.tar file.txt && cd .. && rm -r own",
		 test_folder, test_folder);
	assert_int_equal(system(tar), 0);
	struct buffer archive = {0};
	assert_ok(file_read(test_path("set.tar"), 1 << 20, &archive));
	const char *body = http_server.body;
	size_t size = http_server.size;
	http_server.body = (const char *)archive.data;
	http_server.size = archive.size;
	assert_ok(folder_make(test_path("home")));
	assert_ok(file_write(test_path("home/file.txt"), "mine", 4));
#define HOME(arguments)                                                                                                          \
	"download --retries 0 --out %s http://127.0.0.1:%d/plain/set.tar " arguments, test_path("home"), http_server.port
	assert_program(0, "unpacked in", HOME(""));
	assert_int_equal(file_size(test_path("home/file.txt")), 4);
	assert_int_equal(file_size(test_path("home/set/file.txt")), 8);
	assert_ok(folder_remove(test_path("home/set"))); /* as if killed before unpacking */
	assert_program(0, "unpacked in", HOME(""));
	assert_ok(file_write(test_path("home/set/file.txt"), "mine", 4));
	assert_program(0, "was there", HOME(""));
	assert_int_equal(file_size(test_path("home/set/file.txt")), 4);
	assert_int_equal(remove(test_path("home/set.tar")), 0);
	assert_program(4, "exists already", HOME(""));
	assert_program(0, "", HOME("--no_unpack"));
	http_server.body = body;
	http_server.size = size;
	buffer_release(&archive);
}

static void test_names_that_collide(void **state)
{
	(void)state;
	assert_program(2, "would both become", DOWNLOAD("http://a.org/x/corpus.txt http://b.org/y/corpus.txt"));
	assert_false(file_exists(test_path("got/corpus.txt")));
	assert_program(0, "", DOWNLOAD("http://a.org/x/corpus.txt http://a.org/x/corpus.txt"));
	assert_program(0, "was there", DOWNLOAD("http://a.org/x/corpus.txt"));
	/* Before anything of the list is fetched. */
	assert_program(4, "was downloaded from http://a.org/x/corpus.txt, not from http://b.org/y/corpus.txt",
		       DOWNLOAD("http://a.org/x/first.txt http://b.org/y/corpus.txt"));
	assert_false(file_exists(test_path("got/first.txt")));
}

static void test_wrong_commands(void **state)
{
	(void)state;
	assert_program(0, "", "download --list");
	assert_non_null(strstr(buffer_string(&program_output), "glue/MRPC"));
	assert_program(2, "nothing to download", "download");
	assert_program(2, "did you mean wikipedia", DOWNLOAD("wikpedia"));
	assert_program(
		2, "did you mean google/uncased_L-12_H-768_A-12, the model, or its vocabulary alone, vocab/bert-base-uncased?",
		DOWNLOAD("bert-base-uncased"));
	assert_program(2, "did you mean google/cased_L-24_H-1024_A-16, the model? ", DOWNLOAD("google-bert/bert-large-cased"));
	assert_program(2, "needs --books", DOWNLOAD("gutenberg"));
	assert_program(2, "is not the number of a book", DOWNLOAD("gutenberg --books %s"), test_path("text"));
	assert_program(2, "only http", DOWNLOAD("ftp://example.org/x"));
	assert_program(2, "names no file", DOWNLOAD("http://example.org/"));
	assert_program(2, "is not a checksum", DOWNLOAD("http://example.org/x --checksum 12"));
	assert_program(2, "belongs to one address", DOWNLOAD("squad --checksum 12"));
}

/* Every source that a name on the Hub stands for exists. */
static void test_published_names(void **state)
{
	static const char *const names[] = {
		"bert-base-uncased",
		"google-bert/bert-large-uncased",
		"bert-base-cased",
		"bert-large-cased",
		"bert-base-multilingual-cased",
		"bert-base-chinese",
		"bert-large-uncased-whole-word-masking",
		"bert-large-cased-whole-word-masking",
		"google/bert_uncased_L-2_H-128_A-2",
		"google/bert_uncased_L-4_H-256_A-4",
		"google/bert_uncased_L-4_H-512_A-8",
		"google/bert_uncased_L-8_H-512_A-8",
	};
	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const char *name = published_source(names[i]);
		const struct download_source *source = download_sources;
		while (name && source->name && strcmp(source->name, name) != 0)
			source++;
		if (!name || !source->name)
			fail_msg("%s: no source", names[i]);
	}
	assert_null(published_source("roberta-base"));
}

/* libcurl is loaded with the first download; without it, the message says what to install. */
static void test_without_libcurl(void **state)
{
	(void)state;
	libraries_hidden((const char *const[]){"libcurl.so.4", "libcurl-gnutls.so.4", NULL});
	assert_program(5, "libcurl is not installed on this machine", "download --out %s http://127.0.0.1:%d/plain/new.txt",
		       test_path("got"), http_server.port);
	assert_said("install libcurl (the package libcurl4 of Debian and Ubuntu");
	assert_false(file_exists(test_path("got/new.txt")));
	assert_program(0, "", "version");
	assert_non_null(
		strstr(buffer_string(&program_output), "  libcurl: not usable here: install libcurl (the package libcurl4"));
	libraries_shown();
	assert_program(0, "", "version");
	assert_non_null(strstr(buffer_string(&program_output), "  libcurl " LIBCURL_VERSION "\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wikipedia),
		cmocka_unit_test(test_what_is_gone_is_listed),
		cmocka_unit_test(test_archives_keep_to_themselves),
		cmocka_unit_test(test_names_that_collide),
		cmocka_unit_test(test_wrong_commands),
		cmocka_unit_test(test_published_names),
		cmocka_unit_test(test_without_libcurl),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
