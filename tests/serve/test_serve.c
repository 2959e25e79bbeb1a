/* bertc serve as clients use it: models of every kind on one server, the same answers whatever else is being served,
 * refusals, keys, deadlines, limits, damage, and its end. */
#include <pthread.h>
#include <sys/stat.h>
#include <sys/un.h>
#include "cmd/program.h"
#include "formats/safetensors.h"
#include "infer/small_model.h"
#include "serve/server.h"
#include "weights/sentence_folder.h"

static void make_model(const char *name, const struct model_heads *heads, const char *problem, const char *const *labels,
		       int32_t count)
{
	struct task_config task = {0};
	assert_ok(task_config_make(&task, heads->architecture, problem, labels, count));
	small_model_write(test_path(name), heads, &task, NULL, NULL);
	task_config_release(&task);
}

static void make_task_model(const char *name, const char *architecture, const struct head *head, const char *problem,
			    const char *const *labels)
{
	struct model_heads heads = {.count = 1, .pooler = head->pooled, .head = {*head}};
	snprintf(heads.architecture, sizeof heads.architecture, "%s", architecture);
	make_model(name, &heads, problem, labels, labels ? head->outputs : 0);
}

static const struct head spans = {
	.input = INPUT_ALL_ROWS, .outputs = 2, .loss = LOSS_SEGMENT, .coefficient = 1, .name = "qa_outputs"};

static int setup(void **state)
{
	static const char *const moods[] = {"bad", "so-so", "good"}, *const one[] = {"LABEL_0"},
				 *const tags[] = {"O", "B-X", "I-X"};
	const struct head classes = {.pooled = true, .outputs = 3, .loss = LOSS_CLASSES, .coefficient = 1, .name = "classifier"};
	const struct head number = {.pooled = true, .outputs = 1, .loss = LOSS_SQUARED, .coefficient = 1, .name = "classifier"};
	const struct head words = {
		.input = INPUT_CHOSEN_ROWS, .outputs = 3, .loss = LOSS_CLASSES, .coefficient = 1, .name = "classifier"};
	if (test_folder_make(state) != 0)
		return -1;
	small_model_make(test_path("words"), &model_heads_pretraining, NULL, NULL);
	make_task_model("mood", "BertForSequenceClassification", &classes, "single_label_classification", moods);
	make_task_model("rank", "BertForSequenceClassification", &number, "regression", one);
	make_task_model("cross", "BertForSequenceClassification", &number, NULL, one);
	make_task_model("tags", "BertForTokenClassification", &words, NULL, tags);
	make_task_model("squad", "BertForQuestionAnswering", &spans, NULL, NULL);
	return 0;
}

/* A server for all models, in fp32 so that it runs on any machine. */
static void start(struct server *server, const char *more)
{
	char arguments[2000];
	snprintf(arguments, sizeof arguments,
		 "--model %s/words %s/mood %s/rank tagger=%s/tags %s/squad --threads 2 --precision fp32 %s", test_folder,
		 test_folder, test_folder, test_folder, test_folder, more);
	server_start(server, arguments);
}

static void start_one(struct server *server, const char *model, const char *more)
{
	char arguments[1000];
	snprintf(arguments, sizeof arguments, "--model %s --threads 2 --precision fp32 %s", test_path(model), more);
	server_start(server, arguments);
}

static void every_model_answers(void **state)
{
	struct server server;
	start(&server, "");
	assert_string_equal(ask(&server, 200, "/health", NULL), "");
	assert_answer(&server, 200, "/", NULL, "<!DOCTYPE html>");
	assert_answer(&server, 200, "/v1/models", NULL, "{\"id\":\"tagger\",\"object\":\"model\"");
	assert_answer(&server, 200, "/info", NULL, "\"id2label\":{\"0\":\"bad\",\"1\":\"so-so\",\"2\":\"good\"}");
	assert_answer(&server, 200, "/embed", "{\"inputs\": \"waa wab\"}", "[[");
	assert_answer(&server, 200, "/v1/embeddings", "{\"input\": [\"waa wab\", [2, 9, 3]], \"model\": \"words\"}",
		      "\"usage\":{\"prompt_tokens\":7,\"total_tokens\":7}");
	assert_answer(&server, 200, "/predict", "{\"inputs\": \"waa wab\", \"model\": \"mood\"}", "\"label\":\"so-so\"");
	assert_answer(&server, 200, "/predict", "{\"inputs\": [[\"waa\"], [\"wab\", \"wac\"]], \"model\": \"mood\"}", "}],[{");
	assert_answer(&server, 200, "/predict", "{\"inputs\": \"waa wab\", \"model\": \"tagger\"}", "\"entities\":[");
	assert_answer(&server, 200, "/rerank", "{\"query\": \"waa\", \"texts\": [\"wab\", \"wac\"]}", "\"index\":");
	assert_answer(&server, 200, "/fill", "{\"inputs\": \"waa [MASK].\", \"top_k\": 2}", "\"probability\":");
	assert_answer(&server, 200, "/answer", "{\"question\": \"waa\", \"context\": \"wab wac. wad\"}", "{\"answer\":\"");
	assert_answer(&server, 200, "/metrics", NULL, "te_predict_success 3\n");
	server_stop(&server);
}

/* Formats of other services, of which the clients' own tests are elsewhere. */
static void other_dialects(void **state)
{
	struct server server;
	start(&server, "");
	assert_answer(&server, 200, "/v2/rerank", "{\"query\": \"waa\", \"documents\": [\"wab\", \"wac\"], \"top_n\": 1}",
		      "\"model\":\"rank\",\"results\":[{\"index\":");
	assert_null(strstr(
		ask(&server, 200, "/v1/rerank", "{\"query\": \"waa\", \"documents\": [\"wab\", \"wac\"], \"top_n\": 1}"), "},{"));
	assert_answer(&server, 400, "/v1/rerank", "{\"query\": \"waa\"}", "{\"message\":\"'documents' must be");
	assert_answer(&server, 404, "/v2/rerank", "{\"query\": \"a\", \"documents\": [\"a\"], \"model\": \"none\"}",
		      "{\"message\":");
	assert_answer(&server, 405, "/v2/rerank", NULL, "{\"message\":");
	/* Any model has a tokenizer. */
	assert_string_equal(ask(&server, 200, "/tokenize", "{\"inputs\": \"\u00a0wai [MASK]\", \"model\": \"mood\"}"),
			    "[[{\"id\":2,\"text\":\"[CLS]\",\"special\":true,\"start\":null,\"stop\":null},"
			    "{\"id\":8,\"text\":\"wai\",\"special\":false,\"start\":1,\"stop\":4},"
			    "{\"id\":4,\"text\":\"[MASK]\",\"special\":false,\"start\":5,\"stop\":11},"
			    "{\"id\":3,\"text\":\"[SEP]\",\"special\":true,\"start\":null,\"stop\":null}]]");
	assert_string_equal(ask(&server, 200, "/tokenize",
				"{\"inputs\": [\"wai\", \" \"], \"add_special_tokens\": false, \"model\": \"tagger\"}"),
			    "[[{\"id\":8,\"text\":\"wai\",\"special\":false,\"start\":0,\"stop\":3}],[]]");
	assert_answer(&server, 422, "/tokenize", "{\"inputs\": \"waa\"}", "several models can tokenize");
	assert_string_equal(ask(&server, 200, "/decode", "{\"ids\": [[2, 8, 9, 3], [8]], \"model\": \"words\"}"),
			    "[\"wai waj\",\"wai\"]");
	assert_string_equal(
		ask(&server, 200, "/decode", "{\"ids\": [2, 8], \"skip_special_tokens\": false, \"model\": \"words\"}"),
		"[\"[CLS] wai\"]");
	assert_answer(&server, 200, "/similarity",
		      "{\"inputs\": {\"source_sentence\": \"waa wab\", \"sentences\": [\"waa wab\", \"wac\"]}}", "[1.0,");
	assert_answer(&server, 424, "/similarity",
		      "{\"inputs\": {\"source_sentence\": \"a\", \"sentences\": [\"b\"]}, \"model\": \"mood\"}",
		      "the model 'mood' cannot embed");
	server_stop(&server);
}

/* The mean of a text's rows is its vector. */
static void vectors_of_all_tokens(void **state)
{
	struct server server;
	struct json_document rows, vector;
	start_one(&server, "words", "");
	const char *body = ask(&server, 200, "/embed_all", "{\"inputs\": [\"waa wab\", \"wac\"]}");
	assert_ok(json_parse(&rows, "rows", body, strlen(body)));
	body = ask(&server, 200, "/embed", "{\"inputs\": \"waa wab\", \"normalize\": false}");
	assert_ok(json_parse(&vector, "vector", body, strlen(body)));
	const struct json *first = rows.root->first_child, *mean = vector.root->first_child->first_child;
	assert_int_equal(rows.root->child_count, 2);
	assert_int_equal(first->child_count, 4);
	assert_int_equal(first->next->child_count, 3);
	for (int64_t k = 0; mean; k++, mean = mean->next) {
		double sum = 0;
		for (const struct json *row = first->first_child; row; row = row->next) {
			const struct json *value = row->first_child;
			for (int64_t i = 0; i < k; i++)
				value = value->next;
			sum += value->number;
		}
		assert_float_equal(sum / 4, mean->number, 1e-5);
	}
	json_release(&rows);
	json_release(&vector);
	assert_answer(&server, 422, "/embed_all", "{\"inputs\": \"a\", \"dimensions\": 8}", "'dimensions'");
	server_stop(&server);
}

/* huggingface_hub sends "parameters", and expects what transformers' pipelines return. */
static void answers_of_pipelines(void **state)
{
	struct server server;
	start(&server, "");
	assert_ok(file_write(test_path("line.txt"), "wac wab waa\n", 12));
	assert_int_equal(
		program("predict --precision fp32 --format pipeline --model %s/tags %s/line.txt", test_folder, test_folder), 0);
	program_output.data[strcspn(program_output.data, "\n")] = '\0';
	assert_string_equal(ask(&server, 200, "/predict",
				"{\"inputs\": \"wac wab waa\", \"model\": \"tagger\", \"parameters\": {\"aggregation_strategy\": "
				"\"first\"}}"),
			    program_output.data);
	const char *filled = ask(&server, 200, "/fill", "{\"inputs\": \"wai [MASK].\", \"parameters\": {\"top_k\": 2}}");
	assert_int_equal(strncmp(filled, "[{\"score\":", 10), 0);
	if (!strstr(filled, "\"sequence\":\"wai "))
		fail_msg("%s", filled);
	assert_answer(&server, 200, "/fill", "{\"inputs\": \"wai [MASK] [MASK]\", \"parameters\": {}}",
		      "\"sequence\":\"[CLS] wai ");
	server_stop(&server);
}

static void pages_of_allowed_origins(void **state)
{
	struct server server;
	struct answer answer = {0};
	const char *preflight = "OPTIONS /embed HTTP/1.1\r\nHost: localhost\r\nOrigin: %s\r\n\r\n";
	static const char *const origins[] = {"https://app.example", "https://other.example"};
	start_one(&server, "words", "--cors_origin https://app.example");
	for (int i = 0; i < 2; i++) {
		char text[200];
		int client = client_open(&server);
		snprintf(text, sizeof text, preflight, origins[i]);
		assert_true(client_send(client, text, strlen(text)));
		client_read(client, &answer);
		assert_int_equal(answer.status, i == 0 ? 204 : 405);
		assert_int_equal(strstr(buffer_string(&answer.head), "Access-Control-Allow-Headers: ") != NULL, i == 0);
		/* An error, too, can be read. */
		snprintf(text, sizeof text, "Origin: %s\r\n", origins[i]);
		assert_true(client_ask(client, "/embed", text, "{}"));
		client_read(client, &answer);
		assert_int_equal(answer.status, 422);
		assert_int_equal(strstr(buffer_string(&answer.head), "Access-Control-Allow-Origin: https://app.example\r\n") !=
					 NULL,
				 i == 0);
		close(client);
	}
	server_stop(&server);
	answer_release(&answer);
	assert_int_equal(program("serve --model %s --cors_origin https://app.example/", test_path("words")), 2);
}

/* Every path of openapi.json is there; the page reads no other files. */
static void endpoints_describe_themselves(void **state)
{
	struct server server;
	struct json_document document;
	start_one(&server, "words", "");
	const char *text = ask(&server, 200, "/openapi.json", NULL);
	assert_ok(json_parse(&document, "openapi.json", text, strlen(text)));
	const struct json *paths = json_member(document.root, "paths");
	assert_true(paths && paths->child_count > 15);
	for (const struct json *path = paths->first_child; path; path = path->next) {
		int status;
		ask_with(&server, path->key, "", json_member(path, "post") ? "{" : NULL, &status);
		assert_int_equal(status, json_member(path, "post") ? 400 : 200);
	}
	json_release(&document);
	text = ask(&server, 200, "/docs", NULL);
	assert_true(strstr(text, "openapi.json") && !strstr(text, "http://") && !strstr(text, "https://"));
	server_stop(&server);
}

/* The same request alone and together with others: the same bytes. */
struct crowd {
	const struct server *server;
	struct buffer *expected;
	int first;
};
#define REQUESTS 24

static void write_request(struct buffer *out, const char **path, int number)
{
	buffer_clear(out);
	*path = number % 3 == 0 ? "/predict" : number % 3 == 1 ? "/embed" : "/rerank";
	buffer_text(out, number % 3 == 2 ? "{\"query\": \"waa wab\", \"texts\": [\"waa" : "{\"inputs\": [\"waa");
	for (int i = 0; i < number * 5 % 17; i++)
		buffer_format(out, " w%c%c", 'a' + i % 2, 'a' + (i * number) % 20);
	buffer_text(out, number % 2 ? "\", \"wab\"]" : "\"]");
	buffer_text(out, number % 3 == 0 ? ", \"model\": \"mood\"}" : "}");
}

static void *ask_all(void *context)
{
	const struct crowd *crowd = context;
	struct buffer request = {0};
	struct answer answer = {0};
	int client = client_open(crowd->server);
	for (int i = 0; i < 3 * REQUESTS; i++) {
		const char *path;
		int number = (crowd->first + i) % REQUESTS;
		write_request(&request, &path, number);
		assert_true(client_ask(client, path, "", buffer_string(&request)));
		client_read(client, &answer);
		assert_int_equal(answer.status, 200);
		assert_string_equal(buffer_string(&answer.body), buffer_string(&crowd->expected[number]));
	}
	close(client);
	buffer_release(&request);
	answer_release(&answer);
	return NULL;
}

static void answers_do_not_depend_on_company(void **state)
{
	struct server server;
	struct buffer expected[REQUESTS] = {{0}}, request = {0};
	struct crowd crowd[8];
	pthread_t threads[8];
	start(&server, "--max_batch_tokens 200 --max_wait_ms 1");
	for (int i = 0; i < REQUESTS; i++) {
		const char *path;
		write_request(&request, &path, i);
		buffer_text(&expected[i], ask(&server, 200, path, buffer_string(&request)));
	}
	for (int t = 0; t < 8; t++) {
		crowd[t] = (struct crowd){&server, expected, 5 * t};
		assert_int_equal(pthread_create(&threads[t], NULL, ask_all, &crowd[t]), 0);
	}
	for (int t = 0; t < 8; t++)
		pthread_join(threads[t], NULL);
	server_stop(&server);
	for (int i = 0; i < REQUESTS; i++)
		buffer_release(&expected[i]);
	buffer_release(&request);
}

/* The number after `name` in JSON, in its original spelling. */
static void number_of(const char *json, const char *name, char out[40])
{
	const char *at = strstr(json, name);
	if (!at)
		fail_msg("no %s in %s", name, json);
	at += strlen(name);
	snprintf(out, 40, "%.*s", (int)strcspn(at, ",}"), at);
}

static void answers_are_those_of_predict(void **state)
{
	struct server server;
	char own[40], predicted[40];
	start(&server, "");
	assert_ok(file_write(test_path("line.txt"), "wac wab waa\n", 12));
	assert_int_equal(program("predict --precision fp32 --model %s/mood %s/line.txt", test_folder, test_folder), 0);
	number_of(ask(&server, 200, "/predict", "{\"inputs\": \"wac wab waa\", \"model\": \"mood\", \"raw_scores\": false}"),
		  "{\"score\":", own);
	const char *label =
		strstr(ask(&server, 200, "/predict", "{\"inputs\": \"wac wab waa\", \"model\": \"mood\"}"), "\"label\":");
	char name[60];
	snprintf(name, sizeof name, "%.*s:", (int)strcspn(label + 8, "}"), label + 8);
	number_of(buffer_string(&program_output), name, predicted);
	assert_string_equal(own, predicted);
	assert_int_equal(program("predict --precision fp32 --model %s/rank %s/line.txt", test_folder, test_folder), 0);
	number_of(buffer_string(&program_output), "\"value\":", predicted);
	number_of(ask(&server, 200, "/predict", "{\"inputs\": \"wac wab waa\", \"model\": \"rank\"}"), "{\"score\":", own);
	assert_string_equal(own, predicted);
	server_stop(&server);
	start_one(&server, "cross", "");
	assert_ok(file_write(test_path("pair.tsv"), "wac wab\twaa\n", 12));
	assert_int_equal(program("predict --precision fp32 --model %s/cross %s/pair.tsv", test_folder, test_folder), 0);
	number_of(buffer_string(&program_output), "\"score\":", predicted);
	number_of(ask(&server, 200, "/predict", "{\"inputs\": [\"wac wab\", \"waa\"]}"), "{\"score\":", own);
	assert_string_equal(own, predicted);
	number_of(ask(&server, 200, "/rerank", "{\"query\": \"wac wab\", \"texts\": [\"waa\"]}"), "\"score\":", own);
	assert_string_equal(own, predicted);
	server_stop(&server);
	start(&server, "");
	assert_int_equal(program("predict --precision fp32 --model %s/tags %s/line.txt", test_folder, test_folder), 0);
	buffer_text(&program_output, "");
	program_output.data[strcspn(program_output.data, "\n")] = '\0';
	assert_string_equal(ask(&server, 200, "/predict", "{\"inputs\": \"wac wab waa\", \"model\": \"tagger\"}"),
			    program_output.data);
	server_stop(&server);
}

/* The log line of a request may be written a moment after its answer. */
static void assert_says(const struct server *server, const char *text)
{
	for (int i = 0; i < 250 && !strstr(server_said(server), text); i++)
		clock_pause(0.02);
	if (!strstr(server_said(server), text))
		fail_msg("no '%s' in: %s", text, server_said(server));
}

static void what_cannot_be_answered_is_refused(void **state)
{
	static const struct {
		int status;
		const char *path, *body, *part;
	} cases[] = {
		{404, "/nothing", NULL, "there is nothing at /nothing"},
		{404, "/%1b%5b2J%00", "{}", "\\\\x1b[2J"},
		{405, "/embed", NULL, "takes POST, not GET"},
		{405, "/embeddings", NULL, "\"message\":"},
		{405, "/health", "{}", "takes GET, HEAD, not POST"},
		{400, "/embed", "{\"inputs\": ", "byte"},
		{400, "/embed", "{\"inputs\": \"\"}", "\"error_type\":\"Empty\""},
		{422, "/embed", "{\"inputs\": 1}", "\"error_type\":\"Validation\""},
		{422, "/embed", "{\"inputs\": \"a\", \"colour\": 1}", "unknown field 'colour'"},
		{400, "/v1/embeddings", "{\"input\": \"a\", \"colour\": 1}", "\"param\":\"colour\""},
		{422, "/embed", "{\"inputs\": [[2, 60, 3]]}", "60 entries"},
		{422, "/v1/embeddings", "{\"input\": [[2, 60, 3]]}", "\"param\":\"input\""},
		{422, "/embed", "{\"inputs\": [[9, 9]]}", "from [CLS] (2) to [SEP] (3)"},
		{422, "/embed", "{\"inputs\": \"a\", \"dimensions\": 33}", "have 32"},
		{422, "/embed", "{\"inputs\": \"a\", \"prompt_name\": \"query\"}", "no prompt 'query'"},
		{422, "/embed", "{\"inputs\": [\"a\", \"b\", \"c\", \"d\", \"e\"]}", "4 are allowed"},
		{422, "/predict", "{\"inputs\": \"a\"}", "name one in 'model': mood, rank, tagger"},
		{422, "/predict", "{\"inputs\": [\"a\", \"b\"], \"model\": \"tagger\"}", "single texts, not for pairs"},
		{424, "/predict", "{\"inputs\": \"a\", \"model\": \"words\"}", "\"error_type\":\"Backend\""},
		{404, "/predict", "{\"inputs\": \"a\", \"model\": \"none\"}", "no model 'none'"},
		{404, "/v1/embeddings", "{\"input\": \"a\", \"model\": \"none\"}", "\"code\":\"model_not_found\""},
		{422, "/fill", "{\"inputs\": \"waa\"}", "no [MASK]"},
		{400, "/answer", "{\"question\": \"waa\", \"context\": \" \"}", "holds no words"},
		{400, "/predict", "{\"inputs\": \" \", \"model\": \"tagger\"}", "\"error_type\":\"Empty\""},
		{404, "/", "{\"inputs\": \"a\"}", "several models"},
	};
	struct server server;
	struct buffer large = {0};
	start(&server, "--max_client_batch_size 4 --max_body_bytes 5000 -v");
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_answer(&server, cases[i].status, cases[i].path, cases[i].body, cases[i].part);
	/* A text longer than the model's 48 positions. */
	buffer_text(&large, "{\"truncate\": false, \"inputs\": \"");
	for (int i = 0; i < 60; i++)
		buffer_text(&large, "waa ");
	buffer_text(&large, "\"}");
	assert_answer(&server, 422, "/embed", large.data, "has 62 tokens, but the model takes at most 48");
	memcpy(large.data + 13, "true ", 5);
	assert_answer(&server, 200, "/embed", large.data, "[[");
	/* A question that leaves no room for the text. */
	struct buffer question = {0};
	buffer_text(&question, "{\"context\": \"waa\", \"question\": \"");
	for (int i = 0; i < 60; i++)
		buffer_text(&question, "waa ");
	buffer_text(&question, "\"}");
	assert_answer(&server, 422, "/answer", question.data, "question 'waa waa waa");
	buffer_release(&question);
	/* Too large by its declared length, and by what is actually sent. */
	while (large.size < 6000)
		buffer_text(&large, "  ");
	assert_answer(&server, 413, "/embed", large.data, "larger than 5000 bytes");
	int client = client_open(&server);
	struct answer answer = {0};
	const char *chunked = "POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: "
			      "chunked\r\n\r\n1770\r\n";
	assert_true(client_send(client, chunked, strlen(chunked)) && client_send(client, large.data, 6000) &&
		    client_send(client, "\r\n0\r\n\r\n", 7));
	client_read(client, &answer);
	assert_int_equal(answer.status, 413);
	close(client);
	/* Of another type than JSON, as a form on another site could send it. */
	client = client_open(&server);
	const char *form = "POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: "
			   "15\r\n\r\n{\"inputs\": \"a\"}";
	assert_true(client_send(client, form, strlen(form)));
	client_read(client, &answer);
	assert_int_equal(answer.status, 415);
	close(client);
	/* Without a type: from a page of another site, which the browser names, or from a program. */
	static const char *const origins[] = {"Origin: http://elsewhere.example\r\n", ""};
	for (int i = 0; i < 2; i++) {
		char untyped[256];
		snprintf(untyped, sizeof untyped,
			 "POST /embed HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: 15\r\n\r\n{\"inputs\": \"a\"}",
			 origins[i]);
		client = client_open(&server);
		assert_true(client_send(client, untyped, strlen(untyped)));
		client_read(client, &answer);
		assert_int_equal(answer.status, i == 0 ? 415 : 200);
		close(client);
	}
	assert_says(&server, "POST /embed 415");
	assert_says(&server, "127.0.0.1 POST /\\x1b[2J\\x01 404");
	server_stop(&server);
	buffer_release(&large);
	answer_release(&answer);
}

static void keys_let_in(void **state)
{
	struct server server;
	char more[200];
	int status;
	assert_ok(file_write(test_path("keys"), "one\ntwo\n", 8));
	assert_int_equal(chmod(test_path("keys"), 0600), 0);
	snprintf(more, sizeof more, "--api_key_file %s", test_path("keys"));
	start_one(&server, "words", more);
	ask(&server, 200, "/health", NULL);
	ask(&server, 200, "/", NULL);
	assert_answer(&server, 401, "/v1/embeddings", "{\"input\": \"a\"}", "\"code\":\"invalid_api_key\"");
	assert_answer(&server, 401, "/info", NULL, "\"error_type\":\"Unauthorized\"");
	assert_answer(&server, 404, "/nothing", "{\"input\": \"a\"}", "nothing at /nothing");
	ask_with(&server, "/v1/embeddings", "Authorization: Bearer three\r\n", "{\"input\": \"a\"}", &status);
	assert_int_equal(status, 401);
	ask_with(&server, "/v1/embeddings", "Authorization: Bearer two\r\n", "{\"input\": \"a\"}", &status);
	assert_int_equal(status, 200);
	server_stop(&server);
}

static double until_closed(int client)
{
	double began = clock_seconds();
	char byte;
	while (recv(client, &byte, 1, 0) > 0) {
	}
	close(client);
	return clock_seconds() - began;
}

static void slow_clients_are_cut_off(void **state)
{
	struct server server;
	struct answer answer = {0};
	start_one(&server, "words", "--request_timeout 0.7");
	const char *begun =
		"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{\"inp";
	int idle = client_open(&server), head = client_open(&server), body = client_open(&server), used = client_open(&server);
	assert_true(client_send(head, begun, 20) && client_send(body, begun, strlen(begun)));
	assert_true(client_ask(used, "/embed", "", "{\"inputs\": \"waa\"}"));
	client_read(used, &answer);
	assert_int_equal(answer.status, 200);
	/* Sending a byte now and then does not help. */
	for (int i = 0; i < 4; i++) {
		clock_pause(0.1);
		assert_true(client_send(head, "x", 1) && client_send(body, "x", 1));
	}
	assert_true(until_closed(head) < 3 && until_closed(body) < 3 && until_closed(idle) < 3 && until_closed(used) < 3);
	ask(&server, 200, "/embed", "{\"inputs\": \"waa\"}");
	server_stop(&server);
	answer_release(&answer);
}

/* What proxies and servers read in two ways is refused, and nothing in it is answered as another request. */
static void requests_that_could_be_read_in_two_ways(void **state)
{
	/* "\\0" stands for a NUL. */
	static const char *const headers[] = {
		"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
		"Transfer-Encoding: chunked\r\nContent-Length: 90\r\n",
		"Content-Length: 19\r\nContent-Length: 4\r\n",
		"Content-Length: 19\r\nContent-Length: 19\r\n",
		"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
		"Transfer-Encoding: xchunked\r\nContent-Length: 19\r\n",
		"Transfer-Encoding: gzip, chunked\r\n",
		"Transfer-Encoding: identity\r\n",
		"Content-Length: 19\r\nHost: localhost\r\n",
		"X: a\rContent-Length: 4\r\nContent-Length: 19\r\n",
		"Transfer-Encoding : chunked\r\n",
		"Content-Length: 19\r\nX: a\\0b\r\n",
		"Content-Length: 19\r\nX: \\0b\r\n",
		"Content-Length: 19\r\nX: a\\0\r\n",
		"X: a\\0b\r\nContent-Length: 19\r\n",
		"Content-Length: 19\\0\r\n",
	};
	struct server server;
	struct answer answer = {0};
	start_one(&server, "words", "");
	for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
		struct buffer text = {0};
		char more;
		buffer_format(&text,
			      "POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n%s\r\n"
			      "13\r\n{\"inputs\": \"waa\"}  \r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n",
			      headers[i]);
		char *escape = strstr(text.data, "\\0");
		if (escape) {
			*escape = '\0';
			memmove(escape + 1, escape + 2, (size_t)(text.data + text.size - (escape + 2)));
			text.size--;
		}
		int client = client_open(&server);
		client_send(client, text.data, text.size);
		client_read(client, &answer);
		if (answer.status != 400)
			fail_msg("%s: status %d", headers[i], answer.status);
		/* Closed: by an end or by a reset, since what was sent on is not read. */
		assert_true(recv(client, &more, 1, 0) <= 0);
		close(client);
		buffer_release(&text);
	}
	static const char target[] = "GET /health\0x HTTP/1.1\r\nHost: localhost\r\n\r\n",
			  query[] = "GET /health?x\0 HTTP/1.1\r\nHost: localhost\r\n\r\n";
	for (int i = 0; i < 2; i++) {
		int client = client_open(&server);
		client_send(client, i ? query : target, i ? sizeof query - 1 : sizeof target - 1);
		client_read(client, &answer);
		assert_int_equal(answer.status, 400);
		close(client);
	}
	answer_release(&answer);
	server_stop(&server);
}

/* A page whose name leads to this machine must not reach a service without keys. */
static void names_under_which_it_is_asked(void **state)
{
	static const struct {
		const char *host;
		int status, allowed;
	} cases[] = {{"localhost", 200, 200},
		     {"LOCALHOST:1", 200, 200},
		     {"127.0.0.1:8080", 200, 200},
		     {"[::1]", 200, 200},
		     {"evil.example", 403, 403},
		     {"localhost.evil.example", 403, 403},
		     {"127.0.0.1.nip.io", 403, 403},
		     {"", 403, 403},
		     {"bert.example.org", 403, 200},
		     {"bert.example.org:443", 403, 200},
		     {"localhost:80:90", 403, 403},
		     {"localhost:evil", 403, 403},
		     {"[::1]evil", 403, 403},
		     {"user@localhost", 403, 403},
		     {"1", 403, 403}};
	static const struct {
		const char *target, *host;
		int status;
	} targets[] = {{"http://localhost/info", "evil.example", 200},
		       {"http://evil.example/info", "localhost", 403},
		       {"http://localhost:80", "localhost", 200},
		       {"/info", "localhost\r\nAuthorization: Bearer a\r\nAuthorization: Bearer b", 400},
		       {"/info", "localhost\r\nContent-Type: text/plain\r\nContent-Type: application/json", 400},
		       {"/info%00x", "localhost", 404}};
	static const char *const never[] = {"'*'", ".example.org", "a.example,b.example", "https://a.example", "::1", "''"};
	for (size_t i = 0; i < sizeof never / sizeof *never; i++)
		if (program("serve --model %s --api_key_file none --allowed_hosts %s", test_path("words"), never[i]) != 2)
			fail_msg("--allowed_hosts %s is taken", never[i]);
	for (int allowed = 0; allowed < 2; allowed++) {
		struct server server;
		struct answer answer = {0};
		start_one(&server, "words", allowed ? "--allowed_hosts bert.example.org:443" : "");
		for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
			char text[200];
			snprintf(text, sizeof text, "GET /info HTTP/1.1\r\nHost: %s\r\n\r\n", cases[i].host);
			int client = client_open(&server);
			client_send(client, text, strlen(text));
			client_read(client, &answer);
			if (answer.status != (allowed ? cases[i].allowed : cases[i].status))
				fail_msg("Host '%s': status %d", cases[i].host, answer.status);
			if (answer.status == 403)
				assert_non_null(strstr(buffer_string(&answer.body), "--allowed_hosts"));
			close(client);
		}
		for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
			char text[200];
			snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", targets[i].target, targets[i].host);
			int client = client_open(&server);
			client_send(client, text, strlen(text));
			client_read(client, &answer);
			if (answer.status != targets[i].status)
				fail_msg("%s: status %d", targets[i].target, answer.status);
			close(client);
		}
		answer_release(&answer);
		server_stop(&server);
	}
}

/* After SIGTERM, while a request is still being answered, new ones get 503. */
static void a_stopping_service_says_so(void **state)
{
	struct server server;
	struct answer answer = {0};
	start_one(&server, "words", "--max_wait_ms 1500");
	int busy = client_open(&server), begun = client_open(&server);
	assert_true(client_ask(busy, "/embed", "", "{\"inputs\": \"waa\"}"));
	const char *part =
		"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 17\r\n\r\n{";
	assert_true(client_send(begun, part, strlen(part)));
	clock_pause(0.3);
	assert_int_equal(kill(server.process, SIGTERM), 0);
	clock_pause(0.3);
	int late = client_open(&server);
	assert_true(client_ask(late, "/embed", "", "{\"inputs\": \"waa\"}"));
	client_read(late, &answer);
	assert_int_equal(answer.status, 503);
	assert_true(client_send(begun, "\"inputs\": \"waa\"}", 16));
	client_read(begun, &answer);
	assert_int_equal(answer.status, 503);
	client_read(busy, &answer);
	assert_int_equal(answer.status, 200);
	close(late);
	close(begun);
	close(busy);
	answer_release(&answer);
	assert_int_equal(server_wait(&server), 0);
}

static void rude_clients_do_no_harm(void **state)
{
	static const char *const rude[] = {
		"",
		"\r\n\r\n",
		"GARBAGE\r\n\r\n",
		"POST\r\n\r\n",
		"GET / HTTP/9.9\r\n\r\n",
		"\x16\x03\x01\x02",
		"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
		"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n{}",
		"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{\"in",
		"POST /embed HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
		"17\r\n\r\n{\"inputs\": "
		"\"waa\"}",
	};
	struct server server;
	start_one(&server, "words", "");
	for (int round = 0; round < 5; round++) {
		for (size_t i = 0; i < sizeof rude / sizeof *rude; i++) {
			int client = client_open(&server);
			client_send(client, rude[i], strlen(rude[i]));
			if (round % 2) { /* hang up with a reset */
				struct linger linger = {.l_onoff = 1};
				setsockopt(client, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
			}
			close(client);
		}
	}
	assert_answer(&server, 200, "/embed", "{\"inputs\": \"waa\"}", "[[");
	server_stop(&server);
}

/* The server is suspended meanwhile, so that it finds the beginning of each request and the end of its connection at the
 * same time. */
static void who_hangs_up_leaves_room_for_others(void **state)
{
	const char *begun = "POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{\"inp";
	struct server server;
	start_one(&server, "words", "--max_connections 8 --request_timeout 60");
	for (int round = 0; round < 3; round++) {
		assert_int_equal(kill(server.process, SIGSTOP), 0);
		for (size_t i = 0; i < 20; i++) {
			int client = client_open(&server);
			assert_true(client_send(client, begun, i % 2 ? strlen(begun) : i + 1));
			close(client);
		}
		assert_int_equal(kill(server.process, SIGCONT), 0);
	}
	double began = clock_seconds();
	assert_answer(&server, 200, "/embed", "{\"inputs\": \"waa\"}", "[[");
	assert_true(clock_seconds() - began < 30);
	server_stop(&server);
}

static void a_full_service_says_when_to_come_back(void **state)
{
	struct server server;
	struct answer answer = {0};
	start_one(&server, "words", "--max_concurrent_requests 1 --max_wait_ms 1000");
	int first = client_open(&server), second = client_open(&server);
	assert_true(client_ask(first, "/embed", "", "{\"inputs\": \"waa\"}"));
	clock_pause(0.3);
	/* Its body is not even read. */
	assert_true(client_ask(second, "/embed", "", "{"));
	client_read(second, &answer);
	assert_int_equal(answer.status, 429);
	assert_non_null(strcasestr(buffer_string(&answer.head), "\r\nRetry-After: 1\r\n"));
	assert_non_null(strstr(buffer_string(&answer.body), "\"error_type\":\"Overloaded\""));
	client_read(first, &answer);
	assert_int_equal(answer.status, 200);
	close(first);
	close(second);
	server_stop(&server);
	answer_release(&answer);
}

/* Each of many blanks gets many words. */
static void no_answer_has_too_many_words(void **state)
{
	struct server server;
	struct buffer body = {0};
	start_one(&server, "words", "");
	for (int texts = 24; texts <= 26; texts += 2) {
		buffer_clear(&body);
		buffer_text(&body, "{\"top_k\": 100, \"inputs\": [");
		for (int i = 0; i < texts; i++) {
			buffer_text(&body, i > 0 ? ", \"" : "\"");
			for (int k = 0; k < 40; k++)
				buffer_text(&body, "[MASK]");
			buffer_char(&body, '"');
		}
		buffer_text(&body, "]}");
		if (texts == 24)
			assert_answer(&server, 200, "/fill", buffer_string(&body), "\"probability\":");
		else
			assert_answer(&server, 422, "/fill", buffer_string(&body),
				      "the 1040 blanks of the request with 100 words for each come to more than 100000 words");
	}
	server_stop(&server);
	buffer_release(&body);
}

/* A request that is too large is refused by its length, and while the queue is full requests are not examined. */
static void large_requests_cost_nothing(void **state)
{
	struct server server;
	struct answer answer = {0};
	struct buffer words = {0}, body = {0};
	start(&server, "--max_queue_tokens 64 --max_body_bytes 1024 --max_wait_ms 1000");
	buffer_text(&words, "waa");
	for (int i = 0; i < 99; i++)
		buffer_text(&words, " waa");
	/* A truncated text counts as what is left of it, a passage read in windows with all its words. */
	buffer_format(&body, "{\"inputs\": \"%s\", \"model\": \"tagger\"}", buffer_string(&words));
	assert_answer(&server, 422, "/predict", buffer_string(&body),
		      "comes to at least 100 tokens, and this service takes 64 at a time");
	buffer_clear(&body);
	buffer_format(&body, "{\"query\": \"%s\", \"texts\": [\"a\"", buffer_string(&words));
	for (int i = 0; i < 12; i++)
		buffer_text(&body, ", \"a\"");
	buffer_text(&body, "]}");
	assert_answer(&server, 422, "/rerank", buffer_string(&body),
		      "more than 4096 bytes, a query counted with each of its texts");
	/* Where words do not show the length, tokens do: 32 words of 3 pieces. */
	buffer_clear(&words);
	for (int i = 0; i < 32; i++)
		buffer_text(&words, " a,a");
	buffer_clear(&body);
	buffer_format(&body, "{\"inputs\": \"%s\", \"model\": \"tagger\"}", buffer_string(&words));
	assert_answer(&server, 422, "/predict", buffer_string(&body), "this service takes 64 at a time");
	/* 16 texts of 4 tokens fill the queue. */
	buffer_clear(&body);
	buffer_text(&body, "{\"model\": \"words\", \"inputs\": [\"a a\"");
	for (int i = 0; i < 15; i++)
		buffer_text(&body, ", \"a a\"");
	buffer_text(&body, "]}");
	int first = client_open(&server), second = client_open(&server);
	assert_true(client_ask(first, "/embed", "", buffer_string(&body)));
	clock_pause(0.3);
	assert_true(client_ask(second, "/embed", "", "{"));
	client_read(second, &answer);
	assert_int_equal(answer.status, 429);
	client_read(first, &answer);
	assert_int_equal(answer.status, 200);
	close(first);
	close(second);
	server_stop(&server);
	buffer_release(&words);
	buffer_release(&body);
	answer_release(&answer);
}

static void what_was_taken_is_answered_before_the_end(void **state)
{
	struct server server;
	struct answer answer = {0};
	start_one(&server, "words", "--max_wait_ms 1000");
	int first = client_open(&server), second = client_open(&server);
	assert_true(client_ask(second, "/health", "", NULL));
	client_read(second, &answer);
	assert_true(client_ask(first, "/embed", "", "{\"inputs\": \"waa\"}"));
	clock_pause(0.3);
	assert_int_equal(kill(server.process, SIGTERM), 0);
	clock_pause(0.3);
	/* Clients that are still connected are told that the server is stopping. */
	assert_true(client_ask(second, "/embed", "", "{\"inputs\": \"waa\"}"));
	client_read(second, &answer);
	assert_int_equal(answer.status, 503);
	client_read(first, &answer);
	assert_int_equal(answer.status, 200);
	assert_int_equal(server_wait(&server), 0);
	close(first);
	close(second);
	answer_release(&answer);
}

static void bad_starts_are_refused(void **state)
{
	struct server server;
	struct buffer weights = {0};
	char path[PATH_BYTES];
	start_one(&server, "words", "");
	assert_program(5, "another program uses this port", "serve --model %s --listen 127.0.0.1:%d", test_path("words"),
		       server.port);
	server_stop(&server);
	assert_program(2, "--model is missing", "serve");
	assert_program(2, "not an address and a port", "serve --listen nowhere --model %s", test_path("words"));
	assert_program(2, "two models are called 'a/b'", "serve --model a/b=%s a/b=%s", test_path("words"), test_path("mood"));
	assert_program(2, "none", "serve --model %s", test_path("none"));
	small_model_make(test_path("damaged"), &model_heads_pretraining, NULL, NULL);
	snprintf(path, sizeof path, "%s/damaged/model.safetensors", test_folder);
	assert_ok(file_read(path, 1 << 24, &weights));
	weights.data[weights.size - 5] ^= 1;
	assert_ok(file_write(path, weights.data, weights.size));
	assert_program(3, "damaged", "serve --model %s --listen 127.0.0.1:0", test_path("damaged"));
	buffer_release(&weights);
}

static void make_sentences(const char *name, const struct sentence_folder *about)
{
	struct folder_files files = {0};
	small_model_make(test_path(name), &model_heads_pretraining, NULL, NULL);
	assert_ok(sentence_folder_write(test_path(name), about, SMALL_HIDDEN, &files));
	free(files.files);
}

/* The width of vectors, what is left of a prompt truncated on the left, and a folder without vectors. */
static void sentence_folders_decide(void **state)
{
	static const char transformer[] = "[{\"path\": \"\", \"type\": \"sentence_transformers.models.Transformer\"}]";
	struct sentence_prompt prompts[] = {{(char *)(uintptr_t) "query", (char *)(uintptr_t) "waz way wax "},
					    {(char *)(uintptr_t) "short", (char *)(uintptr_t) "wax "}};
	struct sentence_folder about = {.pooling = POOLING_MEAN,
					.leaves_out_prompt = true,
					.max_seq_length = 10,
					.truncate_dim = 3,
					.prompts = prompts,
					.prompt_count = 2,
					.default_prompt = -1};
	struct server server;
	struct buffer shorter = {0}, longer = {0};
	int numbers = 1;
	char path[PATH_BYTES];
	make_sentences("sentences", &about);
	start_one(&server, "sentences", "");
	const char *answer = ask(&server, 200, "/embed", "{\"inputs\": \"waa\"}");
	for (const char *at = answer; *at; at++)
		numbers += *at == ',';
	assert_int_equal(numbers, 3);
	assert_answer(&server, 200, "/embed", "{\"inputs\": \"waa\", \"dimensions\": 5}", "[[");
	/* The prompt is truncated to its last word, as if it had no others. */
	buffer_text(&longer, ask(&server, 200, "/embed",
				 "{\"inputs\": \"waa wab wac wad wae waf wag\", \"prompt_name\": \"query\", \"truncate\": true, "
				 "\"truncation_direction\": \"left\"}"));
	buffer_text(&shorter,
		    ask(&server, 200, "/embed", "{\"inputs\": \"waa wab wac wad wae waf wag\", \"prompt_name\": \"short\"}"));
	assert_string_equal(buffer_string(&longer), buffer_string(&shorter));
	server_stop(&server);
	snprintf(path, sizeof path, "%s/sentences/modules.json", test_folder);
	assert_ok(file_write(path, transformer, strlen(transformer)));
	snprintf(path, sizeof path, "%s/sentences/MANIFEST.json", test_folder);
	assert_int_equal(unlink(path), 0);
	assert_program(2, "pools nothing", "serve --model %s --listen 127.0.0.1:0", test_path("sentences"));
	buffer_release(&shorter);
	buffer_release(&longer);
}

/* Weights of words, as text-embeddings-inference gives them; and nothing else. */
static void words_are_weighed(void **state)
{
	struct sentence_folder about = {.pooling = POOLING_SPLADE, .default_prompt = -1};
	struct server server;
	make_sentences("sparse", &about);
	start_one(&server, "sparse", "");
	assert_answer(&server, 200, "/embed_sparse", "{\"inputs\": [\"waa wab\", \"wac\"]}", "[[{\"index\":");
	assert_answer(&server, 200, "/embed_sparse", "{\"inputs\": \"waa wab\"}", "\"value\":");
	assert_answer(&server, 200, "/info", NULL, "\"model_type\":{\"embedding\":{\"pooling\":\"splade\"}}");
	assert_answer(&server, 200, "/openapi.json", NULL, "\"/embed_sparse\"");
	assert_answer(&server, 424, "/embed", "{\"inputs\": \"waa\"}", "no model here can embed");
	server_stop(&server);
}

/* A text to be rewritten comes with the preceding context, or alone. */
static void texts_are_rewritten(void **state)
{
	const struct head edits = {.input = INPUT_ALL_ROWS,
				   .outputs = 2 + 4 * 64,
				   .loss = LOSS_POINTERS,
				   .classes = 2,
				   .pointers = 2,
				   .coefficient = 1,
				   .name = "edits"};
	struct server server;
	make_task_model("rewriter", "BertForTextRewriting", &edits, NULL, NULL);
	start_one(&server, "rewriter", "");
	assert_answer(&server, 200, "/predict", "{\"inputs\": \"waa wab\"}", "{\"text\":\"");
	assert_answer(&server, 200, "/predict", "{\"inputs\": [[\"waa wab\", \"wac wad\"], [\"wab\"]]}", "\"edits\":[");
	server_stop(&server);
}

/* transformers leaves out the names of two classes that nobody has named. */
static void classes_without_names_are_numbered(void **state)
{
	static const char *const names[] = {"LABEL_0", "LABEL_1"};
	const struct head head = {.pooled = true, .outputs = 2, .loss = LOSS_CLASSES, .coefficient = 1, .name = "classifier"};
	struct server server;
	struct buffer config = {0};
	char path[PATH_BYTES];
	make_task_model("nameless", "BertForSequenceClassification", &head, NULL, names);
	snprintf(path, sizeof path, "%s/nameless/config.json", test_folder);
	assert_ok(file_read(path, 1 << 20, &config));
	memcpy(strstr(config.data, "id2label"), "id2other", 8);
	memcpy(strstr(config.data, "label2id"), "other2id", 8);
	assert_ok(file_write(path, config.data, config.size));
	snprintf(path, sizeof path, "%s/nameless/MANIFEST.json", test_folder);
	assert_int_equal(unlink(path), 0);
	start_one(&server, "nameless", "");
	assert_answer(&server, 200, "/predict", "{\"inputs\": \"waa wab\"}", "\"label\":\"LABEL_1\"");
	server_stop(&server);
	buffer_release(&config);
}

/* With a least probability, as an option or in the folder, only answers are listed. */
static void only_answers_are_listed(void **state)
{
	struct server server;
	start_one(&server, "mood", "--min_score 1");
	assert_string_equal(ask(&server, 200, "/predict", "{\"inputs\": \"wac wab\"}"), "[]");
	assert_answer(&server, 200, "/predict", "{\"inputs\": \"wac wab\", \"raw_scores\": true}", "},{");
	server_stop(&server);
	put_file("moods.tsv", "text\tlabel\nwac wab\tbad\nwaa\tgood\nwab\tso-so\n");
	assert_int_equal(program("evaluate --model %s/mood --test %s/moods.tsv --calibrate --min_score 1 --precision fp32",
				 test_folder, test_folder),
			 0);
	start_one(&server, "mood", "");
	assert_string_equal(ask(&server, 200, "/predict", "{\"inputs\": \"wac wab\"}"), "[]");
	assert_string_equal(ask(&server, 200, "/predict", "{\"inputs\": \"wac wab\", \"parameters\": {}}"), "[[]]");
	assert_string_equal(ask(&server, 200, "/", "{\"inputs\": [[\"wac wab\"], [\"waa\"]], \"parameters\": {}}"), "[[],[]]");
	server_stop(&server);
	start_one(&server, "mood", "--min_score 0");
	assert_answer(&server, 200, "/predict", "{\"inputs\": \"wac wab\"}", "},{");
	server_stop(&server);
}

/* What systemd waits for: a datagram once requests are answered, and another when the service stops. */
static void the_supervisor_is_told(void **state)
{
	struct server server;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct timeval patience = {.tv_sec = 30};
	char said[64] = "";
	(void)state;
	snprintf(address.sun_path, sizeof address.sun_path, "%s/notify", test_folder);
	int supervisor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(supervisor, (struct sockaddr *)&address, sizeof address), 0);
	assert_int_equal(setsockopt(supervisor, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
	setenv("NOTIFY_SOCKET", address.sun_path, 1);
	start_one(&server, "mood", "");
	unsetenv("NOTIFY_SOCKET");
	assert_true(recv(supervisor, said, sizeof said - 1, 0) > 0);
	assert_string_equal(said, "READY=1");
	server_stop(&server);
	ssize_t size = recv(supervisor, said, sizeof said - 1, 0);
	assert_true(size > 0);
	said[size] = 0;
	assert_string_equal(said, "STOPPING=1");
	close(supervisor);
}

/* A folder that is rewritten while it is served. */
static void a_served_model_stays_as_it_was_loaded(void **state)
{
	struct server server;
	struct buffer before = {0}, about = {0};
	small_model_make(test_path("swapped"), &model_heads_pretraining, NULL, NULL);
	start_one(&server, "swapped", "");
	buffer_text(&before, ask(&server, 200, "/embed", "{\"inputs\": \"waa\"}"));
	buffer_text(&about, ask(&server, 200, "/info", NULL));
	assert_non_null(strstr(buffer_string(&about), "\"model_sha\":\""));
	assert_ok(folder_remove(test_path("swapped")));
	assert_ok(folder_make(test_path("swapped")));
	assert_string_equal(ask(&server, 200, "/embed", "{\"inputs\": \"waa\"}"), buffer_string(&before));
	assert_string_equal(ask(&server, 200, "/info", NULL), buffer_string(&about));
	/* The only model answers POST / as well. */
	assert_string_equal(ask(&server, 200, "/", "{\"inputs\": \"waa\"}"), buffer_string(&before));
	server_stop(&server);
	buffer_release(&before);
	buffer_release(&about);
}

/* A word whose embedding leaves the range of numbers: texts with it get no answer, other texts in the batch do. */
static void an_answer_that_is_no_number_fails_its_request_alone(void **state)
{
	static const char bad[] = "{\"inputs\": \"waz\"}", good[] = "{\"inputs\": \"wab\"}";
	struct server server;
	struct buffer before = {0};
	struct safetensors weights;
	struct answer answer = {0};
	char path[PATH_BYTES];
	float row[SMALL_HIDDEN];
	small_model_make(test_path("huge"), &model_heads_pretraining, NULL, NULL);
	assert_int_equal(unlink(test_path("huge/MANIFEST.json")), 0);
	snprintf(path, sizeof path, "%s", test_path("huge/model.safetensors"));
	assert_ok(safetensors_open(&weights, path));
	const struct safetensors_entry *words = safetensors_find(&weights, "bert.embeddings.word_embeddings.weight");
	long offset = (long)((const unsigned char *)words->data - weights.map.data) + 25 * (long)sizeof row; /* waz */
	safetensors_close(&weights);
	for (int i = 0; i < SMALL_HIDDEN; i++)
		row[i] = 3e38f;
	FILE *stream = fopen(path, "r+b");
	assert_true(stream && fseek(stream, offset, SEEK_SET) == 0 && fwrite(row, sizeof row, 1, stream) == 1 &&
		    fclose(stream) == 0);
	start_one(&server, "huge", "--max_wait_ms 300");
	buffer_text(&before, ask(&server, 200, "/embed", good));
	assert_answer(&server, 500, "/embed", bad, "the model's answer to 'waz' is not finite");
	int one = client_open(&server), other = client_open(&server);
	assert_true(client_ask(one, "/embed", "", bad) && client_ask(other, "/embed", "", good));
	client_read(one, &answer);
	assert_int_equal(answer.status, 500);
	client_read(other, &answer);
	assert_int_equal(answer.status, 200);
	assert_string_equal(buffer_string(&answer.body), buffer_string(&before));
	close(one);
	close(other);
	server_stop(&server);
	answer_release(&answer);
	buffer_release(&before);
}

/* A model with one segment type may not say that it takes no pairs: a pair is refused without harm to others in its batch. */
static void a_pair_fails_its_request_alone(void **state)
{
	static const char *const moods[] = {"bad", "so-so", "good"}, *const one[] = {"LABEL_0"};
	const struct head classes = {.pooled = true, .outputs = 3, .loss = LOSS_CLASSES, .coefficient = 1, .name = "classifier"};
	const struct head number = {.pooled = true, .outputs = 1, .loss = LOSS_SQUARED, .coefficient = 1, .name = "classifier"};
	const char *refusal = "has one segment type";
	char arguments[1000];
	struct server server;
	struct answer answer = {0};
	small_segment_types = 1;
	make_task_model("one_mood", "BertForSequenceClassification", &classes, "single_label_classification", moods);
	make_task_model("one_rank", "BertForSequenceClassification", &number, NULL, one);
	make_task_model("one_squad", "BertForQuestionAnswering", &spans, NULL, NULL);
	small_segment_types = 2;
	snprintf(arguments, sizeof arguments,
		 "--model %s/one_mood %s/one_rank %s/one_squad --threads 2 --precision fp32 --max_wait_ms 500", test_folder,
		 test_folder, test_folder);
	server_start(&server, arguments);
	int single = client_open(&server), pair = client_open(&server);
	assert_true(client_ask(single, "/predict", "", "{\"inputs\": \"waa\", \"model\": \"one_mood\"}") &&
		    client_ask(pair, "/predict", "", "{\"inputs\": [[\"waa\", \"wab\"]], \"model\": \"one_mood\"}"));
	client_read(pair, &answer);
	assert_int_equal(answer.status, 422);
	assert_non_null(strstr(buffer_string(&answer.body), refusal));
	client_read(single, &answer);
	assert_int_equal(answer.status, 200);
	assert_answer(&server, 422, "/rerank", "{\"query\": \"waa\", \"texts\": [\"wab\"], \"model\": \"one_rank\"}", refusal);
	assert_answer(&server, 422, "/answer", "{\"question\": \"waa\", \"context\": \"wab\"}", refusal);
	close(single);
	close(pair);
	server_stop(&server);
	answer_release(&answer);
}

/* A question is not cut where nothing may be cut. */
static void long_questions(void **state)
{
	static const char record[] = "{\"task\": \"squad\", \"max_seq_length\": 32, \"squad\": {\"max_query_length\": 4}}";
	char arguments[400];
	struct server server;
	make_task_model("brief", "BertForQuestionAnswering", &spans, NULL, NULL);
	assert_ok(file_write(test_path("brief/bertc_task.json"), record, strlen(record)));
	snprintf(arguments, sizeof arguments, "--model %s/brief --threads 1 --auto_truncate false", test_folder);
	server_start(&server, arguments);
	assert_answer(&server, 200, "/answer", "{\"question\": \"waa wab wac wad\", \"context\": \"wab\"}", "\"answer\"");
	assert_answer(&server, 422, "/answer", "{\"question\": \"waa wab wac wad waa\", \"context\": \"wab\"}", "questions");
	server_stop(&server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_model_answers),
		cmocka_unit_test(other_dialects),
		cmocka_unit_test(vectors_of_all_tokens),
		cmocka_unit_test(answers_of_pipelines),
		cmocka_unit_test(pages_of_allowed_origins),
		cmocka_unit_test(endpoints_describe_themselves),
		cmocka_unit_test(answers_do_not_depend_on_company),
		cmocka_unit_test(answers_are_those_of_predict),
		cmocka_unit_test(what_cannot_be_answered_is_refused),
		cmocka_unit_test(keys_let_in),
		cmocka_unit_test(slow_clients_are_cut_off),
		cmocka_unit_test(requests_that_could_be_read_in_two_ways),
		cmocka_unit_test(names_under_which_it_is_asked),
		cmocka_unit_test(a_stopping_service_says_so),
		cmocka_unit_test(rude_clients_do_no_harm),
		cmocka_unit_test(who_hangs_up_leaves_room_for_others),
		cmocka_unit_test(a_full_service_says_when_to_come_back),
		cmocka_unit_test(no_answer_has_too_many_words),
		cmocka_unit_test(large_requests_cost_nothing),
		cmocka_unit_test(what_was_taken_is_answered_before_the_end),
		cmocka_unit_test(bad_starts_are_refused),
		cmocka_unit_test(sentence_folders_decide),
		cmocka_unit_test(classes_without_names_are_numbered),
		cmocka_unit_test(only_answers_are_listed),
		cmocka_unit_test(words_are_weighed),
		cmocka_unit_test(texts_are_rewritten),
		cmocka_unit_test(the_supervisor_is_told),
		cmocka_unit_test(a_served_model_stays_as_it_was_loaded),
		cmocka_unit_test(an_answer_that_is_no_number_fails_its_request_alone),
		cmocka_unit_test(a_pair_fails_its_request_alone),
		cmocka_unit_test(long_questions),
	};
	return cmocka_run_group_tests(tests, setup, program_teardown);
}
