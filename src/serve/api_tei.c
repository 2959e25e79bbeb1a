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
	if (request->cut_left && (request->task == API_PREDICT || request->task == API_RERANK))
		return api_fail(error, FAULT_FIELD, "truncation_direction",
				"'truncation_direction' left is for embeddings: other texts lose their end");
	return true;
}

static bool read_embed(struct api_request *request, const struct json *body, const struct api_limits *limits,
		       struct api_error *error)
{
	request->normalize = request->is_list = true;
	return read_truncation(request, body, error) && api_read_parameters(request, body, NULL, NULL, error) &&
	       api_get_bool(body, "normalize", &request->normalize, error) &&
	       api_get_integer(body, "dimensions", 1, INT32_MAX, &request->dimensions, error) &&
	       api_get_text(request, body, "prompt_name", &request->prompt_name, error) &&
	       api_read_inputs(request, json_member(body, "inputs"), "inputs", limits, error);
}

/* {"source_sentence", "sentences"}: the source becomes the first input. */
static bool read_similarity(struct api_request *request, const struct json *body, const struct api_limits *limits,
			    struct api_error *error)
{
	const struct json *inputs = json_member(body, "inputs"), *parameters = json_member(body, "parameters");
	const struct json *source = json_member(inputs, "source_sentence"), *texts = json_member(inputs, "sentences");
	struct text_input *input = api_add_input(request, error);
	request->normalize = true;
	if (!input || (parameters && parameters->kind == JSON_OBJECT && !read_truncation(request, parameters, error)) ||
	    !api_get_text(request, parameters, "prompt_name", &request->prompt_name, error))
		return false;
	if (!source || !texts || inputs->child_count != 2)
		return api_fail(error, FAULT_FIELD, "inputs", "'inputs' must have 'source_sentence' and 'sentences'");
	if (texts->kind != JSON_ARRAY)
		return api_fail(error, FAULT_FIELD, "sentences", "'sentences' must be a list of strings");
	return api_copy_text(request, source, "source_sentence", &input->text, error) &&
	       api_read_texts(request, texts, "sentences", limits, error);
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
	const struct json *inputs = json_member(body, "inputs"), *parameters;
	const char *strategy = NULL;
	if (!read_truncation(request, body, error) ||
	    !api_read_parameters(request, body, "aggregation_strategy", &parameters, error) ||
	    !api_get_text(request, parameters, "aggregation_strategy", &strategy, error) ||
	    !api_get_bool(body, "raw_scores", &request->raw_scores, error))
		return false;
	if (strategy && strcmp(strategy, "first") != 0)
		return api_fail(error, FAULT_FIELD, "aggregation_strategy",
				"'aggregation_strategy' must be first: a word has the tag of its first token");
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
	return read_truncation(request, body, error) && api_read_parameters(request, body, NULL, NULL, error) &&
	       api_get_bool(body, "raw_scores", &request->raw_scores, error) &&
	       api_get_bool(body, "return_text", &request->return_text, error) &&
	       api_read_ranking(request, json_member(body, "query"), json_member(body, "texts"), "texts", limits, error);
}

/* `model` is our extension: it chooses one if several models of the service could answer. */
#define FIELD_INPUTS                                                                                                             \
	{                                                                                                                        \
		"inputs", TYPE_INPUTS, "A text, several texts, or token ids of the model's own tokenizer."                       \
	}
#define FIELD_PROMPT                                                                                                             \
	{                                                                                                                        \
		"prompt_name", TYPE_TEXT, "A prompt of the sentence-transformers folder, put before each text."                  \
	}
#define FIELD_RAW                                                                                                                \
	{                                                                                                                        \
		"raw_scores", TYPE_BOOL, "Return the head's outputs in place of probabilities."                                  \
	}
#define NO_PARAMETERS FIELD_PARAMETERS("Empty, as clients of huggingface_hub send it.")
static const struct api_field embed_fields[] = {
	FIELD_INPUTS,
	{"normalize", TYPE_BOOL, "Scale vectors to length 1; otherwise true."},
	{"dimensions", TYPE_INTEGER, "Shorten vectors to this many numbers before they are normalized."},
	FIELD_PROMPT,
	FIELD_TRUNCATE,
	FIELD_DIRECTION,
	FIELD_MODEL,
	NO_PARAMETERS,
	{0},
};
static const struct api_field all_fields[] = {
	FIELD_INPUTS, FIELD_PROMPT, FIELD_TRUNCATE, FIELD_DIRECTION, FIELD_MODEL, NO_PARAMETERS, {0},
};
static const struct api_field similarity_fields[] = {
	{"inputs", TYPE_OBJECT ",\"properties\":{\"source_sentence\":{" TYPE_TEXT "},\"sentences\":{" TYPE_LIST "}}",
	 "A text, and those to compare it with."},
	FIELD_PARAMETERS("truncate, truncation_direction, and prompt_name, as for /embed."),
	FIELD_MODEL,
	{0},
};
static const struct api_field predict_fields[] = {
	{"inputs", "\"oneOf\":[{" TYPE_TEXT "},{" TYPE_LIST "},{\"type\":\"array\",\"items\":{" TYPE_LIST "}}]",
	 "A text, a pair of texts [\"a\", \"b\"], or several [[\"a\"], [\"b\", \"c\"]]."},
	FIELD_RAW,
	FIELD_TRUNCATE,
	FIELD_DIRECTION,
	FIELD_MODEL,
	FIELD_PARAMETERS("If it is there, models of tags answer with a list of entities, as transformers' pipeline does; "
			 "aggregation_strategy may be first."),
	{0},
};
static const struct api_field rerank_fields[] = {
	{"query", TYPE_TEXT, "What is asked."},
	{"texts", TYPE_LIST, "The texts to sort by how well they answer."},
	FIELD_RAW,
	{"return_text", TYPE_BOOL, "Return the texts, too."},
	FIELD_TRUNCATE,
	FIELD_DIRECTION,
	FIELD_MODEL,
	NO_PARAMETERS,
	{0},
};

#define TEI(of_task, name) .style = API_TEI, .task = of_task, .read = read_##name, .fields = name##_fields
const struct api_form tei_embed = {TEI(API_EMBED, embed), .help = "A vector for each text", .answer = "[[0.01,-0.05]]"};
const struct api_form tei_embed_all = {.style = API_TEI,
				       .task = API_EMBED_ALL,
				       .read = read_embed,
				       .fields = all_fields,
				       .help = "A vector for each token of each text",
				       .answer = "[[[0.01,-0.05],[0.02,0.03]]]"};
const struct api_form tei_embed_sparse = {.style = API_TEI,
					  .task = API_EMBED_SPARSE,
					  .read = read_embed,
					  .fields = all_fields,
					  .help = "Weights of words for each text (SPLADE), by their rows in the vocabulary",
					  .answer = "[[{\"index\":2309,\"value\":1.52},{\"index\":7592,\"value\":0.3}]]"};
const struct api_form tei_similarity = {TEI(API_SIMILARITY, similarity),
					.help = "The cosine similarity of a text and each of several others",
					.answer = "[0.81,0.12]"};
const struct api_form tei_predict = {
	TEI(API_PREDICT, predict), .help = "Classes with their scores, the best first; tags; or rewritten texts",
	.answer = "[{\"score\":0.93,\"label\":\"positive\"},{\"score\":0.07,\"label\":\"negative\"}]"};
const struct api_form tei_rerank = {TEI(API_RERANK, rerank), .help = "Texts sorted by how well they answer a query",
				    .answer = "[{\"index\":1,\"score\":0.98},{\"index\":0,\"score\":0.02}]"};

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

void tei_write_sparse(struct buffer *out, const struct api_vectors *vectors)
{
	struct json_writer writer = {.out = out};
	json_open(&writer, NULL, '[');
	for (int64_t i = 0; i < vectors->count; i++) {
		json_open(&writer, NULL, '[');
		for (int64_t k = 0; k < vectors->width; k++) {
			float value = vectors->values[i * vectors->width + k];
			if (value == 0)
				continue;
			json_open(&writer, NULL, '{');
			json_put_integer(&writer, "index", k);
			json_put_float(&writer, "value", value);
			json_close(&writer);
		}
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

static void sort_ranks(struct api_score *scores, int64_t count, int (*compare)(const void *, const void *))
{
	for (int64_t i = 0; i < count; i++)
		scores[i].index = i;
	qsort(scores, (size_t)count, sizeof *scores, compare);
}

void tei_write_predictions(struct json_writer *writer, struct api_score *scores, int64_t count)
{
	sort_ranks(scores, count, first_index_first);
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
	sort_ranks(scores, count, last_index_first);
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

void cohere_write_ranks(struct buffer *out, const char *model, struct api_score *scores, int64_t count, int64_t top,
			const struct text_input *texts, int64_t tokens)
{
	struct json_writer writer = {.out = out};
	sort_ranks(scores, count, first_index_first);
	json_open(&writer, NULL, '{');
	json_put_string(&writer, "id", "rerank");
	json_put_string(&writer, "model", model);
	json_open(&writer, "results", '[');
	for (int64_t i = 0; i < count && (top == 0 || i < top); i++) {
		json_open(&writer, NULL, '{');
		json_put_integer(&writer, "index", scores[i].index);
		json_put_double(&writer, "relevance_score", scores[i].score);
		if (texts) {
			json_open(&writer, "document", '{');
			json_put_string(&writer, "text", texts[scores[i].index].pair);
			json_close(&writer);
		}
		json_close(&writer);
	}
	json_close(&writer);
	json_open(&writer, "usage", '{');
	json_put_integer(&writer, "total_tokens", tokens);
	json_close(&writer);
	json_close(&writer);
}
