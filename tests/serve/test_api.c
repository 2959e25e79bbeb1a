/* The formats of requests and answers, as bytes in and out. */
#include "serve/api.h"
#include "test.h"

static const struct api_limits limits = {.max_texts = 3};
static struct api_request request;
static struct api_error error;

static bool openai(const char *body)
{
	api_request_release(&request);
	return api_read(&request, &openai_embed, body, strlen(body), &limits, &error);
}

static bool tei(enum api_task task, const char *body)
{
	static const struct api_form *const forms[] = {
		[API_EMBED] = &tei_embed,         [API_PREDICT] = &tei_predict,           [API_RERANK] = &tei_rerank,
		[API_EMBED_ALL] = &tei_embed_all, [API_EMBED_SPARSE] = &tei_embed_sparse, [API_TOKENIZE] = &tei_tokenize,
		[API_DECODE] = &tei_decode,       [API_SIMILARITY] = &tei_similarity,
	};
	api_request_release(&request);
	return api_read(&request, forms[task], body, strlen(body), &limits, &error);
}

static bool own(enum api_task task, const char *body)
{
	api_request_release(&request);
	return api_read(&request, task == API_FILL ? &own_fill : &own_answer, body, strlen(body), &limits, &error);
}

/* The last request must have been refused for this reason, with `part` in the message. */
static void assert_refused(bool accepted, enum api_fault fault, const char *part)
{
	if (accepted || error.fault != fault || !strstr(error.message, part))
		fail_msg("accepted %d, fault %d, '%s'; expected %d, '%s'", accepted, (int)error.fault, error.message, (int)fault,
			 part);
}

static int release(void **state)
{
	api_request_release(&request);
	return 0;
}

static void embeddings_of_openai(void **state)
{
	assert_true(openai("{\"input\": \"caf\\u00e9\", \"model\": \"m\", \"user\": \"u\"}"));
	assert_int_equal(request.count, 1);
	assert_string_equal(request.inputs[0].text, "caf\xC3\xA9");
	assert_string_equal(request.model, "m");
	assert_true(request.normalize && !request.base64 && request.dimensions == 0);
	assert_true(openai("{\"input\": [\"a\", \"b\"], \"encoding_format\": \"base64\", \"dimensions\": 8, \"user\": null}"));
	assert_int_equal(request.count, 2);
	assert_string_equal(request.inputs[1].text, "b");
	assert_true(request.base64 && request.dimensions == 8 && !request.model);
}

static void token_ids_are_taken(void **state)
{
	assert_true(openai("{\"input\": [2, 7, 3]}"));
	assert_int_equal(request.count, 1);
	assert_int_equal(request.inputs[0].id_count, 3);
	assert_int_equal(request.inputs[0].ids[1], 7);
	assert_true(tei(API_EMBED, "{\"inputs\": [[2, 5], \"a\", [2, 6, 3]]}"));
	assert_int_equal(request.count, 3);
	assert_int_equal(request.inputs[0].ids[1], 5);
	assert_null(request.inputs[1].ids);
	assert_string_equal(request.inputs[1].text, "a");
	assert_int_equal(request.inputs[2].ids[1], 6);
	assert_refused(openai("{\"input\": [2, -1]}"), FAULT_INPUT, "not a token id");
	assert_refused(openai("{\"input\": [2, 1.5]}"), FAULT_INPUT, "not a token id");
	assert_refused(openai("{\"input\": [2, \"a\"]}"), FAULT_FIELD, "not a string");
	assert_refused(openai("{\"input\": [[2, 5000000000]]}"), FAULT_INPUT, "not a token id");
}

static void what_is_wrong_with_a_request_is_named(void **state)
{
	assert_refused(openai(""), FAULT_SYNTAX, "empty");
	assert_refused(openai("{\"input\": \"a\""), FAULT_SYNTAX, "byte");
	assert_refused(openai("{\"input\": \"a\"} x"), FAULT_SYNTAX, "byte");
	assert_refused(openai("{\"input\": \"\xFF\"}"), FAULT_SYNTAX, "UTF-8");
	assert_refused(openai("{\"input\": \"a\", \"input\": \"b\"}"), FAULT_SYNTAX, "input");
	assert_refused(openai("[]"), FAULT_FIELD, "object, not a list");
	assert_refused(openai("{\"inputs\": \"a\"}"), FAULT_FIELD, "unknown field 'inputs'");
	assert_string_equal(error.field, "inputs");
	assert_refused(openai("{\"model\": \"m\"}"), FAULT_FIELD, "'input' is missing");
	assert_refused(openai("{\"input\": null}"), FAULT_FIELD, "'input' is missing");
	assert_refused(openai("{\"input\": {}}"), FAULT_FIELD, "not an object");
	assert_refused(openai("{\"input\": [\"a\", true]}"), FAULT_FIELD, "not a boolean");
	assert_refused(openai("{\"input\": \"a\", \"model\": 3}"), FAULT_FIELD, "'model' must be a string, not a number");
	assert_refused(openai("{\"input\": \"a\", \"dimensions\": 0}"), FAULT_FIELD, "'dimensions' must be from 1");
	assert_refused(openai("{\"input\": \"a\", \"dimensions\": 1.5}"), FAULT_FIELD, "whole number");
	assert_refused(openai("{\"input\": \"a\", \"encoding_format\": \"hex\"}"), FAULT_FIELD, "float or base64");
	assert_refused(openai("{\"input\": \"\"}"), FAULT_EMPTY, "empty text");
	assert_refused(openai("{\"input\": []}"), FAULT_EMPTY, "'input' is empty");
	assert_refused(openai("{\"input\": [[]]}"), FAULT_EMPTY, "empty list");
	assert_refused(openai("{\"input\": \"a\\u0000b\"}"), FAULT_INPUT, "NUL");
	assert_refused(openai("{\"input\": \"a\", \"model\": \"a\\u0000b\"}"), FAULT_FIELD, "NUL");
	assert_refused(openai("{\"input\": [\"a\", \"b\", \"c\", \"d\"]}"), FAULT_INPUT, "4 texts, and 3 are allowed");
	/* A client's control characters are not passed on to readers of the message. */
	assert_refused(openai("{\"\\u001b[2J\": 1}"), FAULT_FIELD, "unknown field '\\x1b[2J'");
	char deep[400];
	memset(deep, '[', sizeof deep);
	deep[sizeof deep - 1] = '\0';
	assert_refused(openai(deep), FAULT_SYNTAX, "deep");
}

static void embeddings_of_tei(void **state)
{
	assert_true(tei(API_EMBED, "{\"inputs\": \"a\"}"));
	assert_true(request.normalize && request.is_list && request.truncate == AS_SET && !request.cut_left);
	assert_true(tei(API_EMBED, "{\"inputs\": [\"a\"], \"truncate\": false, \"normalize\": false, \"truncation_direction\": "
				   "\"Left\", \"prompt_name\": \"query\", \"dimensions\": 4, \"model\": \"m\"}"));
	assert_true(!request.normalize && request.truncate == NO && request.cut_left && request.dimensions == 4);
	assert_string_equal(request.prompt_name, "query");
	assert_true(tei(API_EMBED,
			"{\"inputs\": [\"a\"], \"truncate\": true, \"truncation_direction\": \"right\", \"normalize\": "
			"null, \"prompt_name\": null}"));
	assert_true(request.normalize && request.truncate == YES && !request.cut_left && !request.prompt_name);
	assert_refused(tei(API_EMBED, "{\"inputs\": \"a\", \"truncation_direction\": \"up\"}"), FAULT_FIELD, "left or right");
	assert_refused(tei(API_EMBED, "{\"inputs\": \"a\", \"truncate\": 1}"), FAULT_FIELD, "'truncate' must be true or false");
	assert_refused(tei(API_EMBED, "{\"input\": \"a\"}"), FAULT_FIELD, "unknown field 'input'");
}

static void predictions_of_tei(void **state)
{
	assert_true(tei(API_PREDICT, "{\"inputs\": \"a\"}"));
	assert_true(request.count == 1 && !request.is_list && !request.inputs[0].pair);
	assert_true(tei(API_PREDICT, "{\"inputs\": [\"a\"], \"raw_scores\": true}"));
	assert_true(request.count == 1 && !request.is_list && !request.inputs[0].pair && request.raw_scores);
	assert_true(tei(API_PREDICT, "{\"inputs\": [\"a\", \"b\"]}"));
	assert_true(request.count == 1 && !request.is_list);
	assert_string_equal(request.inputs[0].pair, "b");
	assert_true(tei(API_PREDICT, "{\"inputs\": [[\"a\"], [\"b\", \"c\"]]}"));
	assert_true(request.count == 2 && request.is_list && !request.inputs[0].pair);
	assert_string_equal(request.inputs[1].text, "b");
	assert_string_equal(request.inputs[1].pair, "c");
	assert_refused(tei(API_PREDICT, "{\"inputs\": [\"a\", \"b\", \"c\"]}"), FAULT_FIELD, "[[\"a\"], [\"b\"]]");
	assert_refused(tei(API_PREDICT, "{\"inputs\": []}"), FAULT_EMPTY, "empty");
	assert_refused(tei(API_PREDICT, "{\"inputs\": [[]]}"), FAULT_EMPTY, "empty");
	assert_refused(tei(API_PREDICT, "{\"inputs\": [[\"a\"], \"b\"]}"), FAULT_FIELD, "both lists and other");
	assert_refused(tei(API_PREDICT, "{\"inputs\": [\"a\", \"\"]}"), FAULT_EMPTY, "empty text");
	assert_refused(tei(API_PREDICT, "{\"inputs\": 3}"), FAULT_FIELD, "not a number");
	assert_refused(tei(API_PREDICT, "{\"inputs\": [[\"a\"], [\"a\"], [\"a\"], [\"a\"]]}"), FAULT_INPUT, "3 are allowed");
	assert_refused(tei(API_PREDICT, "{\"inputs\": \"a\", \"truncation_direction\": \"left\"}"), FAULT_FIELD, "embeddings");
}

static void rankings_of_tei(void **state)
{
	assert_true(tei(API_RERANK, "{\"query\": \"q\", \"texts\": [\"a\", \"b\"], \"return_text\": true}"));
	assert_true(request.count == 2 && request.return_text && !request.raw_scores);
	assert_string_equal(request.inputs[1].text, "q");
	assert_string_equal(request.inputs[1].pair, "b");
	assert_refused(tei(API_RERANK, "{\"query\": \"q\"}"), FAULT_FIELD, "'texts' must be a list");
	assert_refused(tei(API_RERANK, "{\"texts\": [\"a\"]}"), FAULT_FIELD, "'query' is missing");
	assert_refused(tei(API_RERANK, "{\"query\": \"\", \"texts\": [\"a\"]}"), FAULT_EMPTY, "'query'");
	assert_refused(tei(API_RERANK, "{\"query\": \"q\", \"texts\": []}"), FAULT_EMPTY, "'texts' is empty");
	assert_refused(tei(API_RERANK, "{\"query\": \"q\", \"texts\": [[\"a\"]]}"), FAULT_FIELD, "not a list");
}

static bool cohere(const char *body)
{
	api_request_release(&request);
	return api_read(&request, &cohere_rerank, body, strlen(body), &limits, &error);
}

static void rankings_of_cohere(void **state)
{
	assert_true(cohere("{\"query\": \"q\", \"documents\": [\"a\", {\"text\": \"b\"}], \"top_n\": 1, \"model\": \"m\", "
			   "\"return_documents\": true, \"max_tokens_per_doc\": 4096}"));
	assert_true(request.count == 2 && request.top_k == 1 && request.return_text && request.style == API_COHERE);
	assert_string_equal(request.inputs[1].text, "q");
	assert_string_equal(request.inputs[1].pair, "b");
	assert_refused(cohere("{\"query\": \"q\"}"), FAULT_FIELD, "'documents' must be a list");
	assert_refused(cohere("{\"documents\": [\"a\"]}"), FAULT_FIELD, "'query' is missing");
	assert_refused(cohere("{\"query\": \"q\", \"documents\": [{\"title\": \"b\"}]}"), FAULT_FIELD, "not an object");
	assert_refused(cohere("{\"query\": \"q\", \"documents\": [\"a\"], \"top_n\": 0}"), FAULT_FIELD, "'top_n' must be from 1");
	assert_refused(cohere("{\"query\": \"q\", \"documents\": [\"a\"], \"rank_fields\": []}"), FAULT_FIELD, "'rank_fields'");
	assert_refused(tei(API_RERANK, "{\"query\": \"q\", \"texts\": [{\"text\": \"b\"}]}"), FAULT_FIELD, "not an object");
}

static void tokens_and_similarities(void **state)
{
	assert_true(tei(API_TOKENIZE, "{\"inputs\": [\"a\", \"b\"], \"add_special_tokens\": false}"));
	assert_true(request.count == 2 && !request.special);
	assert_refused(tei(API_TOKENIZE, "{\"inputs\": [[1, 2]]}"), FAULT_FIELD, "not a list");
	assert_true(tei(API_DECODE, "{\"ids\": [2, 7]}"));
	assert_true(request.count == 1 && request.inputs[0].id_count == 2 && !request.special);
	assert_true(tei(API_DECODE, "{\"ids\": [[2], [7, 3]], \"skip_special_tokens\": false}"));
	assert_true(request.count == 2 && request.inputs[1].ids[1] == 3 && request.special);
	assert_refused(tei(API_DECODE, "{\"ids\": 7}"), FAULT_FIELD, "list of token ids");
	assert_refused(tei(API_DECODE, "{\"ids\": \"a\"}"), FAULT_FIELD, "not strings");
	assert_true(tei(API_SIMILARITY, "{\"inputs\": {\"source_sentence\": \"a\", \"sentences\": [\"b\", \"c\", \"d\"]}, "
					"\"parameters\": {\"truncate\": false, \"prompt_name\": \"query\"}}"));
	assert_true(request.count == 4 && request.truncate == NO);
	assert_string_equal(request.inputs[0].text, "a");
	assert_string_equal(request.inputs[3].text, "d");
	assert_string_equal(request.prompt_name, "query");
	assert_refused(tei(API_SIMILARITY, "{\"inputs\": \"a\"}"), FAULT_FIELD, "'source_sentence' and 'sentences'");
	assert_refused(tei(API_SIMILARITY, "{\"inputs\": {\"source_sentence\": \"a\", \"sentences\": \"b\"}}"), FAULT_FIELD,
		       "'sentences' must be a list");
	assert_refused(tei(API_SIMILARITY, "{\"inputs\": {\"source_sentence\": \"a\", \"sentences\": []}}"), FAULT_EMPTY,
		       "'sentences' is empty");
	assert_refused(tei(API_EMBED_ALL, "{\"inputs\": \"a\", \"normalize\": true}"), FAULT_FIELD, "'normalize'");
}

static void blanks_and_questions(void **state)
{
	assert_true(own(API_FILL, "{\"inputs\": \"a [MASK]\"}"));
	assert_true(request.count == 1 && request.top_k == 5 && !request.is_list);
	assert_true(own(API_FILL, "{\"inputs\": [\"a [MASK]\", \"b\"], \"top_k\": 2}"));
	assert_true(request.count == 2 && request.top_k == 2 && request.is_list);
	assert_refused(own(API_FILL, "{\"inputs\": \"a\", \"top_k\": 101}"), FAULT_FIELD, "from 1 to 100");
	assert_refused(own(API_FILL, "{\"inputs\": [1]}"), FAULT_FIELD, "not a number");
	assert_refused(own(API_FILL, "{}"), FAULT_FIELD, "'inputs' is missing");
	assert_true(own(API_ANSWER, "{\"question\": \"q\", \"context\": \"c\", \"model\": \"m\"}"));
	assert_true(request.count == 1 && !request.is_list);
	assert_string_equal(request.inputs[0].pair, "c");
	assert_true(own(API_ANSWER, "{\"inputs\": {\"question\": \"q\", \"context\": \"c\"}}"));
	assert_true(request.count == 1 && !request.is_list);
	assert_true(own(API_ANSWER, "{\"inputs\": [{\"question\": \"q\", \"context\": \"c\"}, {\"context\": \"d\", \"question\": "
				    "\"p\"}]}"));
	assert_true(request.count == 2 && request.is_list);
	assert_string_equal(request.inputs[1].text, "p");
	assert_refused(own(API_ANSWER, "{\"question\": \"q\"}"), FAULT_FIELD, "'context' is missing");
	assert_refused(own(API_ANSWER, "{\"inputs\": [\"q\"]}"), FAULT_FIELD, "objects with 'question'");
	assert_refused(own(API_ANSWER, "{\"inputs\": {\"question\": \"q\", \"text\": \"c\"}}"), FAULT_FIELD,
		       "unknown field 'text'");
	assert_refused(own(API_ANSWER, "{\"inputs\": [], \"question\": \"q\"}"), FAULT_FIELD, "the place of");
}

static void parameters_of_huggingface_hub(void **state)
{
	assert_true(tei(API_PREDICT, "{\"inputs\": \"a\", \"parameters\": {}}"));
	assert_true(tei(API_EMBED, "{\"inputs\": \"a\", \"parameters\": {\"top_k\": null}}"));
	assert_true(own(API_FILL, "{\"inputs\": \"a\"}"));
	assert_true(!request.in_pipeline);
	assert_true(own(API_FILL, "{\"inputs\": \"a\", \"parameters\": {\"top_k\": 3}}"));
	assert_true(request.top_k == 3 && request.in_pipeline);
	assert_true(tei(API_PREDICT, "{\"inputs\": \"a\", \"parameters\": {\"aggregation_strategy\": \"first\"}}"));
	assert_refused(tei(API_PREDICT, "{\"inputs\": \"a\", \"parameters\": {\"aggregation_strategy\": \"max\"}}"), FAULT_FIELD,
		       "must be first");
	assert_true(own(API_ANSWER, "{\"inputs\": {\"question\": \"q\", \"context\": \"c\"}, \"parameters\": null}"));
	assert_refused(tei(API_PREDICT, "{\"inputs\": \"a\", \"parameters\": {\"top_k\": 3}}"), FAULT_FIELD,
		       "unknown field 'top_k' in 'parameters'");
	assert_refused(tei(API_PREDICT, "{\"inputs\": \"a\", \"parameters\": []}"), FAULT_FIELD, "an object, not a list");
}

static void assert_text(struct buffer *out, const char *expected)
{
	assert_ok(buffer_status(out));
	assert_string_equal(buffer_string(out), expected);
	buffer_release(out);
}

static void answers_are_written(void **state)
{
	const float values[] = {0.25f, -1, 3e-8f, 0.1f};
	const struct api_vectors vectors = {.values = values, .count = 2, .width = 2};
	const char *const names[] = {"a", "b"};
	struct buffer out = {0};
	openai_write_embeddings(&out, "m", &vectors, false, 9);
	assert_text(&out, "{\"object\":\"list\",\"data\":[{\"object\":\"embedding\",\"index\":0,\"embedding\":[0.25,-1.0]},"
			  "{\"object\":\"embedding\",\"index\":1,\"embedding\":[3e-08,0.1]}],\"model\":\"m\","
			  "\"usage\":{\"prompt_tokens\":9,\"total_tokens\":9}}");
	openai_write_embeddings(&out, "m", &vectors, true, 9);
	/* python3 -c "import base64, struct; print(base64.b64encode(struct.pack('<2f', 0.25, -1)))" */
	assert_text(&out, "{\"object\":\"list\",\"data\":[{\"object\":\"embedding\",\"index\":0,\"embedding\":\"AACAPgAAgL8=\"},"
			  "{\"object\":\"embedding\",\"index\":1,\"embedding\":\"WdkAM83MzD0=\"}],\"model\":\"m\","
			  "\"usage\":{\"prompt_tokens\":9,\"total_tokens\":9}}");
	tei_write_embeddings(&out, &vectors);
	assert_text(&out, "[[0.25,-1.0],[3e-08,0.1]]");
	openai_write_models(&out, names, 2, 7);
	assert_text(&out,
		    "{\"object\":\"list\",\"data\":[{\"id\":\"a\",\"object\":\"model\",\"created\":7,\"owned_by\":\"bertc\"},"
		    "{\"id\":\"b\",\"object\":\"model\",\"created\":7,\"owned_by\":\"bertc\"}]}");
}

static void scores_are_sorted(void **state)
{
	struct api_score scores[] = {{"x", 0.25, 0}, {"y", 0.5, 0}, {"z", 0.25, 0}};
	const struct text_input texts[] = {{.pair = "a"}, {.pair = "b"}, {.pair = "c"}};
	struct buffer out = {0};
	struct json_writer writer = {.out = &out};
	tei_write_predictions(&writer, scores, 3);
	assert_text(&out, "[{\"score\":0.5,\"label\":\"y\"},{\"score\":0.25,\"label\":\"x\"},{\"score\":0.25,\"label\":\"z\"}]");
	struct api_score ranks[] = {{NULL, 0.25, 0}, {NULL, 0.5, 0}, {NULL, 0.25, 0}};
	tei_write_ranks(&out, ranks, 3, texts);
	assert_text(&out, "[{\"index\":1,\"text\":\"b\",\"score\":0.5},{\"index\":2,\"text\":\"c\",\"score\":0.25},"
			  "{\"index\":0,\"text\":\"a\",\"score\":0.25}]");
	struct api_score best[] = {{NULL, 0.25, 0}, {NULL, 0.5, 0}, {NULL, 0.25, 0}};
	cohere_write_ranks(&out, "m", best, 3, 2, texts, 9);
	assert_text(
		&out,
		"{\"id\":\"rerank\",\"model\":\"m\",\"results\":[{\"index\":1,\"relevance_score\":0.5,\"document\":{\"text\":"
		"\"b\"}},{\"index\":0,\"relevance_score\":0.25,\"document\":{\"text\":\"a\"}}],\"usage\":{\"total_tokens\":9}}");
	struct api_score again[] = {{NULL, 1, 0}};
	tei_write_ranks(&out, again, 1, NULL);
	assert_text(&out, "[{\"index\":0,\"score\":1.0}]");
}

static void errors_have_the_form_of_their_family(void **state)
{
	struct buffer out = {0};
	api_fail(&error, FAULT_MODEL, "model", "no model '%s'", "x");
	api_write_error(&out, API_OPENAI, &error);
	assert_text(&out, "{\"error\":{\"message\":\"no model 'x'\",\"type\":\"invalid_request_error\",\"param\":\"model\","
			  "\"code\":\"model_not_found\"}}");
	api_fail(&error, FAULT_SYNTAX, NULL, "bad");
	api_write_error(&out, API_OPENAI, &error);
	assert_text(&out, "{\"error\":{\"message\":\"bad\",\"type\":\"invalid_request_error\",\"param\":null,\"code\":null}}");
	api_fail(&error, FAULT_BUSY, NULL, "busy");
	api_write_error(&out, API_TEI, &error);
	assert_text(&out, "{\"error\":\"busy\",\"error_type\":\"Overloaded\"}");
	api_write_error(&out, API_COHERE, &error);
	assert_text(&out, "{\"message\":\"busy\",\"detail\":\"busy\"}");
	assert_int_equal(api_status(FAULT_FIELD, API_COHERE), 400);
	assert_int_equal(api_status(FAULT_BUSY, API_TEI), 429);
	assert_int_equal(api_status(FAULT_FIELD, API_OPENAI), 400);
	assert_int_equal(api_status(FAULT_FIELD, API_TEI), 422);
}

/* RFC 4648, section 10. */
static void base64_is_the_standard_one(void **state)
{
	static const char *const cases[][2] = {{"", ""},
					       {"f", "Zg=="},
					       {"fo", "Zm8="},
					       {"foo", "Zm9v"},
					       {"foob", "Zm9vYg=="},
					       {"fooba", "Zm9vYmE="},
					       {"foobar", "Zm9vYmFy"}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct buffer out = {0};
		api_base64(&out, cases[i][0], strlen(cases[i][0]));
		assert_text(&out, cases[i][1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(embeddings_of_openai),
		cmocka_unit_test(token_ids_are_taken),
		cmocka_unit_test(what_is_wrong_with_a_request_is_named),
		cmocka_unit_test(embeddings_of_tei),
		cmocka_unit_test(predictions_of_tei),
		cmocka_unit_test(rankings_of_tei),
		cmocka_unit_test(rankings_of_cohere),
		cmocka_unit_test(tokens_and_similarities),
		cmocka_unit_test(blanks_and_questions),
		cmocka_unit_test(parameters_of_huggingface_hub),
		cmocka_unit_test(answers_are_written),
		cmocka_unit_test(scores_are_sorted),
		cmocka_unit_test(errors_have_the_form_of_their_family),
		cmocka_unit_test(base64_is_the_standard_one),
	};
	return cmocka_run_group_tests(tests, NULL, release);
}
