/* Models from the Hugging Face Hub, against a server of our own that answers as the Hub does: a list of files, redirects of large
 * files to another host, ETags, hashes, and refusals. */
#include "test.h"

#include <sys/stat.h>
#include "base/file.h"
#include "formats/checksum.h"
#include "formats/hub.h"
#include "http_server.h"

#define COMMIT "0123456789abcdef0123456789abcdef01234567"
#define OTHER_COMMIT "fedcba9876543210fedcba9876543210fedcba98"
#define SNAPSHOTS "hub/models--some--tiny/snapshots/"

/* A file of the repository; large ones are kept elsewhere and known by their SHA-256. */
static struct {
	const char *name, *body;
	bool large;
	char hash[CHECKSUM_BYTES];
} files[] = {
	{"config.json", "{\"model_type\": \"bert\"}\n", false, ""},
	{"README.md", "not needed\n", false, ""},
	{"vocab.txt", "[PAD]\n[UNK]\n", false, ""},
	{"../evil", "not needed\n", false, ""},
	{"1_Pooling/config.json", "{}\n", false, ""},
	{"onnx/model.onnx", "not needed\n", true, ""},
	{"pytorch_model.bin", "a pickle\n", true, ""},
	{"model.safetensors", "weights, as far as this server knows\n", true, ""},
	{"bertc_task.json", "{\"task\": \"tagging\"}\n", false, ""},
	{"sentence_roberta_config.json", "{\"max_seq_length\": 128}\n", false, ""},
};
#define FILE_COUNT (sizeof files / sizeof *files)

static const struct fetch_settings settings = {.stall_seconds = 1, .pause_seconds = 0.01, .retries = 2};
static const char *commit, *token;             /* what "main" is; the token that is asked for, or NULL */
static const char *status_of_all;              /* "429 Wait": the answer to everything, once; or NULL */
static bool lies, breaks_off, without_tensors; /* about hashes; in the middle of the weights; a repository of pickles */
static bool token_leaked;                      /* another host was sent it */
static _Atomic int lists, bodies;              /* of the server, too, which is a thread */

static void send_text(int client, const char *head_lines, const char *body, size_t first, size_t size)
{
	char head[512];
	snprintf(head, sizeof head, "HTTP/1.1 %s\r\n%sContent-Length: %zu\r\nConnection: close\r\n\r\n",
		 first > 0 ? "206 Partial Content" : "200 OK", head_lines, strlen(body) - first);
	http_send(client, head, strlen(head));
	http_send(client, body + first, size);
}

static void send_list(int client)
{
	struct buffer text = {0};
	char line[512];
	snprintf(line, sizeof line, "{\"sha\": \"%s\", \"siblings\": [", commit);
	buffer_append(&text, line, strlen(line));
	bool first = true;
	for (size_t i = 0; i < FILE_COUNT; i++) {
		char hash[80];
		if (without_tensors && strcmp(files[i].name, "model.safetensors") == 0)
			continue;
		snprintf(hash, sizeof hash, "%s", strchr(files[i].hash, ':') + 1);
		if (lies && files[i].large)
			hash[0] = hash[0] == '0' ? '1' : '0';
		int used = snprintf(line, sizeof line, "%s{\"rfilename\": \"%s\", \"size\": %zu, ", first ? "" : ", ",
				    files[i].name, strlen(files[i].body));
		snprintf(line + used, sizeof line - (size_t)used,
			 files[i].large ? "\"blobId\": \"0\", \"lfs\": {\"sha256\": \"%s\"}}" : "\"blobId\": \"%s\"}", hash);
		buffer_append(&text, line, strlen(line));
		first = false;
	}
	buffer_append(&text, "]}", 2);
	send_text(client, "", buffer_string(&text), 0, text.size);
	buffer_release(&text);
	lists++;
}

static bool answer(int client, const char *path, const char *request)
{
	char wanted[512], head[512];
	const char *credentials = strcasestr(request, "\r\nAuthorization: Bearer ");
	if (status_of_all) {
		snprintf(head, sizeof head, "HTTP/1.1 %s\r\nRetry-After: 0\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
			 status_of_all);
		if (strncmp(status_of_all, "429", 3) == 0)
			status_of_all = NULL;
		http_send(client, head, strlen(head));
		return true;
	}
	if (strncmp(path, "/cdn/", 5) == 0) {
		token_leaked = token_leaked || credentials;
	} else if (token && (!credentials || strncmp(credentials + 24, token, strlen(token)) != 0)) {
		http_send_status(client, "401 Unauthorized");
		return true;
	}
	if (strcmp(path, "/api/models/some/tiny/revision/main?blobs=true") == 0 ||
	    strcmp(path, "/api/models/some/tiny/revision/refs%2Fpr%2F1?blobs=true") == 0) {
		send_list(client);
		return true;
	}
	for (size_t i = 0; i < FILE_COUNT; i++) {
		snprintf(wanted, sizeof wanted, "/some/tiny/resolve/%s/%s", commit, files[i].name);
		if (files[i].large && strcmp(path, wanted) == 0) {
			snprintf(head, sizeof head,
				 "HTTP/1.1 302 Found\r\nLocation: http://localhost:%d/cdn/%zu\r\nX-Linked-Size: %zu\r\n"
				 "Content-Length: 0\r\nConnection: close\r\n\r\n",
				 http_server.port, i, strlen(files[i].body));
			http_send(client, head, strlen(head));
			return true;
		}
		snprintf(head, sizeof head, "/cdn/%zu", i);
		if (strcmp(path, files[i].large ? head : wanted) != 0)
			continue;
		const char *range = strcasestr(request, "\r\nRange: bytes=");
		size_t size = strlen(files[i].body), first = range ? strtoul(range + 15, NULL, 10) : 0;
		char lines[256];
		int used = snprintf(lines, sizeof lines, "ETag: \"%s\"\r\n", files[i].hash);
		if (first > 0)
			snprintf(lines + used, sizeof lines - (size_t)used, "Content-Range: bytes %zu-%zu/%zu\r\n", first,
				 size - 1, size);
		send_text(client, lines, files[i].body, first, breaks_off && files[i].large && !first ? size / 2 : size - first);
		bodies++;
		return true;
	}
	http_send_status(client, "404 Not Found");
	return true;
}

static int setup(void **state)
{
	char url[64];
	if (test_folder_make(state) != 0 || http_server_start("", 0) != 0)
		return -1;
	http_server.answer = answer;
	for (size_t i = 0; i < FILE_COUNT; i++) {
		const char *like = files[i].large ? "sha256:" : "git:";
		char zeros[CHECKSUM_BYTES];
		snprintf(zeros, sizeof zeros, "%s%0*d", like, files[i].large ? 64 : 40, 0);
		if (file_write(test_path("body"), files[i].body, strlen(files[i].body)) != OK ||
		    checksum_file(test_path("body"), zeros, files[i].hash) != OK)
			return -1;
	}
	snprintf(url, sizeof url, "http://127.0.0.1:%d/", http_server.port);
	unsetenv("HF_HUB_CACHE");
	unsetenv("HF_TOKEN");
	return setenv("HF_ENDPOINT", url, 1);
}

static int teardown(void **state)
{
	http_server_stop();
	return test_folder_drop(state);
}

/* An empty cache, and a server that behaves. */
static int begin(void **state)
{
	commit = COMMIT;
	token = status_of_all = NULL;
	lies = breaks_off = token_leaked = without_tensors = false;
	lists = bodies = 0;
	unsetenv("HF_HUB_OFFLINE");
	unsetenv("HF_TOKEN");
	return folder_remove(test_path("hub")) == OK ? setenv("HF_HOME", test_folder, 1) : -1;
}

static void assert_content(const char *path, const char *expected)
{
	struct buffer text = {0};
	assert_ok(file_read(test_path(path), 4096, &text));
	assert_string_equal(buffer_string(&text), expected);
	buffer_release(&text);
}

static void test_layout(void **state)
{
	char folder[PATH_BYTES];
	struct stat facts;
	assert_ok(hub_fetch("some/tiny", false, &settings, folder));
	assert_string_equal(folder, test_path(SNAPSHOTS COMMIT));
	char name[64];
	assert_true(hub_name_of(folder, name, sizeof name));
	assert_string_equal(name, "some/tiny");
	assert_true(hub_name_of("/x/models--bert-base-uncased/snapshots/1/model.safetensors", name, sizeof name));
	assert_string_equal(name, "bert-base-uncased");
	assert_false(hub_name_of("/x/models--some--tiny/blobs", name, sizeof name));
	assert_content("hub/models--some--tiny/refs/main", COMMIT);
	assert_content(SNAPSHOTS COMMIT "/config.json", files[0].body);
	assert_content(SNAPSHOTS COMMIT "/1_Pooling/config.json", files[4].body);
	assert_content(SNAPSHOTS COMMIT "/model.safetensors", files[7].body);
	assert_content(SNAPSHOTS COMMIT "/bertc_task.json", files[8].body);
	assert_content(SNAPSHOTS COMMIT "/sentence_roberta_config.json", files[9].body);
	assert_int_equal(lstat(test_path(SNAPSHOTS COMMIT "/1_Pooling/config.json"), &facts), 0);
	assert_true(S_ISLNK(facts.st_mode));
	assert_false(file_exists(test_path(SNAPSHOTS COMMIT "/README.md")));
	assert_false(file_exists(test_path(SNAPSHOTS COMMIT "/pytorch_model.bin"))); /* there are safetensors */
	assert_true(file_exists(test_path("hub/models--some--tiny/.no_exist/" COMMIT "/tokenizer.json")));
	/* What `git hash-object config.json` prints. */
	assert_true(file_exists(test_path("hub/models--some--tiny/blobs/dc1fb7b6703fe03317c1a080b523bf475f3d4818")));
	struct name_list blobs = {0};
	assert_ok(folder_list(test_path("hub/models--some--tiny/blobs"), &blobs));
	assert_int_equal(blobs.count, 6); /* and no records or parts beside them */
	name_list_release(&blobs);

	/* What is whole is used without asking, also when the branch has moved; an update follows it. */
	assert_int_equal(lists, 1);
	commit = OTHER_COMMIT;
	assert_ok(hub_fetch("some/tiny", false, &settings, folder));
	assert_string_equal(folder, test_path(SNAPSHOTS COMMIT));
	assert_int_equal(lists, 1);
	bodies = 0;
	assert_ok(hub_fetch("some/tiny", true, &settings, folder));
	assert_string_equal(folder, test_path(SNAPSHOTS OTHER_COMMIT));
	assert_int_equal(bodies, 0); /* the same files: nothing is fetched twice */
	assert_ok(hub_fetch("some/tiny@" COMMIT, false, &settings, folder));
	assert_string_equal(folder, test_path(SNAPSHOTS COMMIT));
	assert_ok(hub_fetch("some/tiny@refs/pr/1", false, &settings, folder));
	assert_content("hub/models--some--tiny/refs/refs/pr/1", OTHER_COMMIT);
}

static void test_files_left_by_others(void **state)
{
	char folder[PATH_BYTES];
	/* Another program fetched the weights and the configuration, but not how texts are pooled. */
	assert_ok(folder_make(test_path(SNAPSHOTS COMMIT)));
	assert_ok(folder_make(test_path("hub/models--some--tiny/refs")));
	assert_ok(file_write(test_path("hub/models--some--tiny/refs/main"), COMMIT, 40));
	assert_ok(file_write(test_path(SNAPSHOTS COMMIT "/config.json"), "{}", 2));
	assert_ok(file_write(test_path(SNAPSHOTS COMMIT "/model.safetensors"), "x", 1));
	setenv("HF_HUB_OFFLINE", "1", 1);
	assert_ok(hub_fetch("some/tiny", true, &settings, folder));
	assert_int_equal(lists, 0);
	unsetenv("HF_HUB_OFFLINE");
	assert_ok(hub_fetch("some/tiny", false, &settings, folder));
	assert_int_equal(lists, 1);
	assert_content(SNAPSHOTS COMMIT "/1_Pooling/config.json", files[4].body);
	setenv("HF_HUB_OFFLINE", "1", 1);
	assert_error(ERR_RESOURCE, "HF_HUB_OFFLINE is set", hub_fetch("other", false, &settings, folder));
	assert_non_null(strstr(error_last()->hint, "`bertc download hf:other`"));
}

static void test_refusals(void **state)
{
	char folder[PATH_BYTES];
	assert_error(ERR_USAGE, "there is no such model or no revision 'main'",
		     hub_fetch("some/missing", false, &settings, folder));
	assert_error(ERR_USAGE, "no revision 'v2'", hub_fetch("some/tiny@v2", false, &settings, folder));
	status_of_all = "403 Forbidden";
	assert_error(ERR_RESOURCE, "access is restricted", hub_fetch("some/tiny", false, &settings, folder));
	status_of_all = "429 Wait";
	assert_ok(hub_fetch("some/tiny", false, &settings, folder));
	status_of_all = "500 Down";
	assert_error(ERR_RESOURCE, "the server answers 500", hub_fetch("some/tiny", true, &settings, folder));
	status_of_all = NULL;
	token = "hf_secret";
	assert_error(ERR_USAGE, "or it is private", hub_fetch("some/tiny", true, &settings, folder));
	setenv("HF_TOKEN", "hf_secret", 1);
	assert_ok(folder_remove(test_path("hub")));
	assert_ok(hub_fetch("some/tiny", false, &settings, folder));
	assert_false(token_leaked); /* to the host that large files are redirected to */
	setenv("HF_TOKEN", "hf_secret\r\nX: y", 1);
	assert_error(ERR_USAGE, "HF_TOKEN is not a token", hub_fetch("some/tiny", true, &settings, folder));
}

static void test_what_arrives_is_checked(void **state)
{
	char folder[PATH_BYTES];
	lies = true;
	assert_error(ERR_RESOURCE, "its checksum is sha256:", hub_fetch("some/tiny", false, &settings, folder));
	assert_false(file_exists(test_path(SNAPSHOTS COMMIT "/model.safetensors")));
	assert_false(file_exists(test_path("hub/models--some--tiny/refs/main")));
	lies = false;
	breaks_off = true; /* and is resumed where it broke off */
	bodies = 0;
	assert_ok(hub_fetch("some/tiny", false, &settings, folder));
	assert_content(SNAPSHOTS COMMIT "/model.safetensors", files[7].body);
	commit = "main";
	assert_error(ERR_DATA, "does not answer as the Hugging Face Hub does", hub_fetch("some/tiny", true, &settings, folder));
}

static void test_pickles_if_nothing_else(void **state)
{
	char folder[PATH_BYTES];
	without_tensors = true;
	assert_ok(hub_fetch("some/tiny", false, &settings, folder));
	assert_content(SNAPSHOTS COMMIT "/pytorch_model.bin", files[6].body);
}

static void test_names(void **state)
{
	char folder[PATH_BYTES];
	static const char *const right[] = {"a/b", "bert-base-uncased", "A.b_c/d-e.f@refs/pr/3", "a/b@v1.0"};
	static const char *const wrong[] = {"",     "/a",     "a/",       "a/../b",   "a/b/c", "../a", "a/.b",     "a--b/c",
					    "a/b@", "a/b@/x", "a/b@../x", "a/b@x//y", "a b/c", "-a/b", "a/b@x/.y", "a/b.@x"};
	for (size_t i = 0; i < sizeof right / sizeof *right; i++)
		assert_true(hub_is_name(right[i]));
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_false(hub_is_name(wrong[i]));
	assert_error(ERR_USAGE, "is not the name of a model", hub_fetch("a/../../b", false, &settings, folder));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_layout, begin),
		cmocka_unit_test_setup(test_files_left_by_others, begin),
		cmocka_unit_test_setup(test_refusals, begin),
		cmocka_unit_test_setup(test_what_arrives_is_checked, begin),
		cmocka_unit_test_setup(test_pickles_if_nothing_else, begin),
		cmocka_unit_test(test_names),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
