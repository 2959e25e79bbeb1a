/* The formats of text-embeddings-inference: https://huggingface.github.io/text-embeddings-inference */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "serve/api.h"

/* ---- Requests ---- */

static bool read_truncation(struct api_request *request, const struct json *body, struct api_error *error)
{
	const char *direction = NULL;
	const struct json *truncate = json_member(body, "truncate");
	bool cut = false;
	if (!api_get_bool(body, "truncate", &cut, error) ||
	    !api_get_text(request, body, "truncation_direction", &direction, error))
		return false;
	if (truncate && truncate->kind == JSON_BOOL)
		request->truncate = cut ? YES : NO;
	request->cut_left = direction && strcasecmp(direction, "left") == 0;
	if (direction && !request->cut_left && strcasecmp(direction, "right") != 0)
		return api_fail(error, FAULT_FIELD, "truncation_direction", "'truncation_direction' must be left or right");
	if (request->cut_left && request->task != API_EMBED)
		return api_fail(error, FAULT_FIELD, "truncation_direction",
				"'truncation_direction' left is for embeddings: other texts lose their end");
	return true;
}

static bool read_embed(struct api_request *request, const struct json *body, const struct api_limits *limits,
		       struct api_error *error)
{
	request->normalize = request->is_list = true;
	return api_get_bool(body, "normalize", &request->normalize, error) &&
	       api_get_integer(body, "dimensions", 1, INT32_MAX, &request->dimensions, error) &&
	       api_get_text(request, body, "prompt_name", &request->prompt_name, error) &&
	       api_read_inputs(request, json_member(body, "inputs"), "inputs", limits, error);
}

/* A text or a pair: ["a"] or ["a", "b"]. */
static bool read_pair(struct api_request *request, const struct json *list, struct api_error *error)
{
	const struct json *first = list->first_child;
	if (!first)
		return api_fail(error, FAULT_EMPTY, "inputs", "'inputs' holds an empty list");
	if (list->child_count > 2)
		return api_fail(error, FAULT_FIELD, "inputs",
				"'inputs' holds a list of %lld texts, where one is a text and two are a pair: several texts are "
				"[[\"a\"], [\"b\"]]",
				(long long)list->child_count);
	struct text_input *input = api_add_input(request, error);
	return input && api_copy_text(request, first, "inputs", &input->text, error) &&
	       (!first->next || api_copy_text(request, first->next, "inputs", &input->pair, error));
}

/* "a" and ["a"] are single texts, ["a", "b"] is a pair, and [["a"], ["b", "c"]] is a list of a text and a pair. */
static bool read_predict(struct api_request *request, const struct json *body, const struct api_limits *limits,
			 struct api_error *error)
{
	const struct json *inputs = json_member(body, "inputs");
	if (!api_get_bool(body, "raw_scores", &request->raw_scores, error))
		return false;
	if (!inputs || inputs->kind == JSON_NULL)
		return api_fail(error, FAULT_FIELD, "inputs", "'inputs' is missing");
	if (inputs->kind != JSON_ARRAY) {
		struct text_input *input = api_add_input(request, error);
		return input && api_copy_text(request, inputs, "inputs", &input->text, error);
	}
	request->is_list = inputs->first_child && inputs->first_child->kind == JSON_ARRAY;
	if (!request->is_list)
		return read_pair(request, inputs, error);
	if (!api_check_count(inputs->child_count, "inputs", limits, error))
		return false;
	for (const struct json *one = inputs->first_child; one; one = one->next) {
		if (one->kind != JSON_ARRAY)
			return api_fail(error, FAULT_FIELD, "inputs", "'inputs' holds both lists and other values");
		if (!read_pair(request, one, error))
			return false;
	}
	return true;
}

static bool read_rerank(struct api_request *request, const struct json *body, const struct api_limits *limits,
			struct api_error *error)
{
	const struct json *query = json_member(body, "query"), *texts = json_member(body, "texts");
	const char *question;
	request->is_list = true;
	if (!api_get_bool(body, "raw_scores", &request->raw_scores, error) ||
	    !api_get_bool(body, "return_text", &request->return_text, error))
		return false;
	if (!query || query->kind == JSON_NULL)
		return api_fail(error, FAULT_FIELD, "query", "'query' is missing");
	if (!texts || texts->kind != JSON_ARRAY)
		return api_fail(error, FAULT_FIELD, "texts", "'texts' must be a list of strings");
	if (!api_copy_text(request, query, "query", &question, error) ||
	    !api_check_count(texts->child_count, "texts", limits, error))
		return false;
	for (const struct json *one = texts->first_child; one; one = one->next) {
		struct text_input *input = api_add_input(request, error);
		if (!input || !api_copy_text(request, one, "texts", &input->pair, error))
			return false;
		input->text = question;
	}
	return true;
}

bool api_read_tei(struct api_request *out, enum api_task task, const char *body, size_t size, const struct api_limits *limits,
		  struct api_error *error)
{
	/* `model` is our extension: it chooses one if several models of the service could answer. */
	static const char *const embed[] = {"inputs",     "truncate", "truncation_direction", "prompt_name", "normalize",
					    "dimensions", "model",    "parameters",           NULL};
	static const char *const predict[] = {"inputs",     "truncate", "truncation_direction", "raw_scores", "model",
					      "parameters", NULL};
	static const char *const rerank[] = {
		"query", "texts", "truncate", "truncation_direction", "raw_scores", "return_text", "model", "parameters", NULL};
	const char *const *known = task == API_EMBED ? embed : task == API_PREDICT ? predict : rerank;
	struct json_document document;
	*out = (struct api_request){.task = task, .style = API_TEI};
	if (!api_open(&document, body, size, known, error))
		return false;
	bool fine = api_get_text(out, document.root, "model", &out->model, error) && read_truncation(out, document.root, error) &&
		    api_read_parameters(document.root, NULL, NULL, error);
	if (fine && task == API_EMBED)
		fine = read_embed(out, document.root, limits, error);
	else if (fine && task == API_PREDICT)
		fine = read_predict(out, document.root, limits, error);
	else if (fine)
		fine = read_rerank(out, document.root, limits, error);
	json_release(&document);
	return fine;
}

/* ---- Answers ---- */

void tei_write_embeddings(struct buffer *out, const struct api_vectors *vectors)
{
	struct json_writer writer = {.out = out};
	json_open(&writer, NULL, '[');
	for (int64_t i = 0; i < vectors->count; i++) {
		json_open(&writer, NULL, '[');
		for (int64_t k = 0; k < vectors->width; k++)
			json_put_float(&writer, NULL, vectors->values[i * vectors->width + k]);
		json_close(&writer);
	}
	json_close(&writer);
}

static int by_score(const struct api_score *a, const struct api_score *b)
{
	return a->score > b->score ? -1 : a->score < b->score;
}

static int first_index_first(const void *a, const void *b)
{
	const struct api_score *one = a, *other = b;
	int order = by_score(one, other);
	return order != 0 ? order : one->index < other->index ? -1 : 1;
}

static int last_index_first(const void *a, const void *b)
{
	const struct api_score *one = a, *other = b;
	int order = by_score(one, other);
	return order != 0 ? order : one->index > other->index ? -1 : 1;
}

void tei_write_predictions(struct json_writer *writer, struct api_score *scores, int64_t count)
{
	for (int64_t i = 0; i < count; i++)
		scores[i].index = i;
	qsort(scores, (size_t)count, sizeof *scores, first_index_first);
	json_open(writer, NULL, '[');
	for (int64_t i = 0; i < count; i++) {
		json_open(writer, NULL, '{');
		json_put_double(writer, "score", scores[i].score);
		json_put_string(writer, "label", scores[i].label);
		json_close(writer);
	}
	json_close(writer);
}

void tei_write_ranks(struct buffer *out, struct api_score *scores, int64_t count, const struct text_input *texts)
{
	struct json_writer writer = {.out = out};
	for (int64_t i = 0; i < count; i++)
		scores[i].index = i;
	qsort(scores, (size_t)count, sizeof *scores, last_index_first);
	json_open(&writer, NULL, '[');
	for (int64_t i = 0; i < count; i++) {
		json_open(&writer, NULL, '{');
		json_put_integer(&writer, "index", scores[i].index);
		if (texts)
			json_put_string(&writer, "text", texts[scores[i].index].pair);
		json_put_double(&writer, "score", scores[i].score);
		json_close(&writer);
	}
	json_close(&writer);
}
