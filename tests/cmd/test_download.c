/* bertc download against a server of our own (--mirror). */
#include <curl/curlver.h>
#include "cmd/small_run.h"

#include "formats/checksum.h"
#include "http_server.h"

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
	assert_ok(file_write(test_path("list"), "1342\n2701,\n", 11));
	assert_program(0, "no checksum", DOWNLOAD("gutenberg --books %s 84"), test_path("list"));
	assert_same_file(test_path("text"), test_path("got/gutenberg/2701.txt"));
	assert_same_file(test_path("text"), test_path("got/gutenberg/84.txt"));
	assert_program(5, "1 of 2 files could not be downloaded",
		       "download --retries 0 --out %s http://127.0.0.1:%d/404/a.txt http://127.0.0.1:%d/plain/b.txt",
		       test_path("got"), http_server.port, http_server.port);
	assert_non_null(strstr(buffer_string(&program_errors), "the server answers 404"));
	assert_same_file(test_path("text"), test_path("got/b.txt")); /* the rest was fetched */
	assert_program(5, "4 of 4 files", DOWNLOAD("squad"));        /* does not match SQuAD's checksums */
}

/* As a stranger might make it: an archive with a single file, which has the same name as a user's file. */
static void test_archives_keep_to_themselves(void **state)
{
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
	assert_program(0, "", "download --list");
	assert_non_null(strstr(buffer_string(&program_output), "glue/MRPC"));
	assert_program(2, "nothing to download", "download");
	assert_program(2, "did you mean wikipedia", DOWNLOAD("wikpedia"));
	assert_program(2, "did you mean vocab/bert-base-uncased?", DOWNLOAD("bert-base-uncased"));
	assert_non_null(strstr(buffer_string(&program_errors), "hf:bert-base-uncased is a model on the Hugging Face Hub"));
	assert_program(2, "is not the name of a model", DOWNLOAD("hf:a/../b"));
	assert_program(2, "needs --books", DOWNLOAD("gutenberg"));
	assert_program(2, "is not the number of a book", DOWNLOAD("gutenberg --books %s"), test_path("text"));
	assert_program(2, "only http", DOWNLOAD("ftp://example.org/x"));
	assert_program(2, "names no file", DOWNLOAD("http://example.org/"));
	assert_program(2, "is not a checksum", DOWNLOAD("http://example.org/x --checksum 12"));
	assert_program(2, "belongs to one address", DOWNLOAD("squad --checksum 12"));
}

/* libcurl is loaded with the first download; without it, the message says what to install. */
static void test_without_libcurl(void **state)
{
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

/* hf:OWNER/NAME stands for the folder in huggingface_hub's cache wherever a model is named, and a run records the folder, whose
 * name is the commit. */
static void test_models_of_the_hub(void **state)
{
	static const char commit[] = "0123456789abcdef0123456789abcdef01234567";
	char cache[1000], snapshot[400];
	struct buffer record = {0};
	assert_int_equal(small_run_files(3), 0);
	snprintf(snapshot, sizeof snapshot, "%s/home/hub/models--some--tiny/snapshots/%s", test_folder, commit);
	assert_program(0, "",
		       "pretrain --corpus %s --model %s --vocab_size 200 --max_seq_length 32 --max_steps 2 --out %s/run "
		       "--train_batch_size 4 --precision fp32 --no_progress",
		       corpus, config, test_folder);
	assert_program(0, "", "embed --model %s/run --max_seq_length 32 %s --out %s", test_folder, corpus, test_path("a.npy"));
	setenv("HF_HOME", test_path("home"), 1);
	setenv("HF_HUB_OFFLINE", "1", 1);
	assert_program(5, "hf:some/rank is not in the cache", "mine --train %s --model %s --reranker hf:some/rank --out %s",
		       corpus, test_folder, test_path("rows"));
	assert_program(5, "hf:some/tiny is not in the cache", "embed --model hf:some/tiny %s --out %s", corpus,
		       test_path("b.npy"));
	assert_ok(folder_make(snapshot));
	snprintf(cache, sizeof cache, "%s/home/hub/models--some--tiny/refs", test_folder);
	assert_ok(folder_make(cache));
	assert_ok(file_write(test_path("home/hub/models--some--tiny/refs/main"), commit, 40));
	snprintf(cache, sizeof cache, "cp %s/run/final/* %s", test_folder, snapshot);
	assert_int_equal(system(cache), 0);
	assert_program(0, commit, "embed --model hf:some/tiny --max_seq_length 32 %s --out %s", corpus, test_path("b.npy"));
	assert_same_file(test_path("a.npy"), test_path("b.npy"));
	assert_program(2, "two models are called 'some/tiny'", "serve --model hf:some/tiny %s", snapshot);
	assert_program(0, commit,
		       "pretrain --corpus %s --init_checkpoint hf:some/tiny --max_seq_length 32 --max_steps 1 --out %s/next "
		       "--train_batch_size 4 --precision fp32 --no_progress",
		       corpus, test_folder);
	assert_ok(file_read(test_path("next/settings.json"), 1 << 20, &record));
	assert_non_null(strstr(buffer_string(&record), commit));
	buffer_release(&record);
	assert_program(2, "huggingface_hub's cache", "download some/other --out %s", test_folder);
	assert_program(2, "HF_ENDPOINT", "download hf:some/other --mirror http://127.0.0.1:1");
	assert_program(2, "unknown option", "embed --model hf:some/other --wrong");
	assert_null(strstr(buffer_string(&program_errors), "cache")); /* nothing is fetched for a wrong command */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wikipedia),
		cmocka_unit_test(test_what_is_gone_is_listed),
		cmocka_unit_test(test_archives_keep_to_themselves),
		cmocka_unit_test(test_names_that_collide),
		cmocka_unit_test(test_wrong_commands),
		cmocka_unit_test(test_models_of_the_hub),
		cmocka_unit_test(test_without_libcurl),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
