/* The table of endpoints, and openapi.json, which is made of it. */
#include "serve/endpoints.h"

#include <string.h>

static const struct endpoint endpoints[] = {
	{"/", GET_PAGE, true, NULL, "A page to try the models by hand"},
	{"/", POST_ANY, false, NULL, "The task of the only model that is served, as that task's own path"},
	{"/docs", GET_DOCS, true, NULL, "A page that lists these endpoints"},
	{"/openapi.json", GET_OPENAPI, true, NULL, "This document"},
	{"/health", GET_HEALTH, true, NULL, "Whether requests are accepted"},
	{"/ping", GET_HEALTH, true, NULL, "The same as /health"},
	{"/info", GET_INFO, false, NULL, "Models and limits"},
	{"/metrics", GET_METRICS, false, NULL, "Counts and times, for Prometheus"},
	{"/v1/models", GET_MODELS, false, NULL, "The models, as OpenAI's API lists them"},
	{"/v1/embeddings", POST_TASK, false, &openai_embed, NULL},
	{"/embeddings", POST_TASK, false, &openai_embed, NULL},
	{"/embed", POST_TASK, false, &tei_embed, NULL},
	{"/embed_all", POST_TASK, false, &tei_embed_all, NULL},
	{"/embed_sparse", POST_TASK, false, &tei_embed_sparse, NULL},
	{"/similarity", POST_TASK, false, &tei_similarity, NULL},
	{"/predict", POST_TASK, false, &tei_predict, NULL},
	{"/rerank", POST_TASK, false, &tei_rerank, NULL},
	{"/v1/rerank", POST_TASK, false, &cohere_rerank, NULL},
	{"/v2/rerank", POST_TASK, false, &cohere_rerank, NULL},
	{"/fill", POST_TASK, false, &own_fill, NULL},
	{"/answer", POST_TASK, false, &own_answer, NULL},
	{"/tokenize", POST_TASK, false, &tei_tokenize, NULL},
	{"/decode", POST_TASK, false, &tei_decode, NULL},
};
#define ENDPOINTS (sizeof endpoints / sizeof *endpoints)

static bool fits_method(const struct endpoint *endpoint, const char *method)
{
	if (endpoint->kind >= POST_TASK)
		return strcmp(method, "POST") == 0;
	return strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
}

const struct endpoint *endpoint_find(const char *path, const char *method, const char **allow)
{
	*allow = NULL;
	for (size_t i = 0; i < ENDPOINTS; i++) {
		if (strcmp(endpoints[i].path, path) != 0)
			continue;
		if (fits_method(&endpoints[i], method))
			return &endpoints[i];
		*allow = *allow ? "GET, HEAD, POST" : endpoints[i].kind >= POST_TASK ? "POST" : "GET, HEAD";
	}
	return NULL;
}

enum api_style endpoint_style(const char *path)
{
	for (size_t i = 0; i < ENDPOINTS; i++)
		if (strcmp(endpoints[i].path, path) == 0 && endpoints[i].form)
			return endpoints[i].form->style;
	return strncmp(path, "/v1/", 4) == 0 ? API_OPENAI : strncmp(path, "/v2/", 4) == 0 ? API_COHERE : API_TEI;
}

/* ---- OpenAPI ---- */

static void put_request(struct json_writer *writer, const struct api_field *fields)
{
	json_open(writer, "requestBody", '{');
	json_put_bool(writer, "required", true);
	json_open(writer, "content", '{');
	json_open(writer, "application/json", '{');
	json_open(writer, "schema", '{');
	json_put_string(writer, "type", "object");
	json_put_bool(writer, "additionalProperties", false);
	json_open(writer, "properties", '{');
	for (; fields->name; fields++) {
		json_open(writer, fields->name, '{');
		json_put_string(writer, "description", fields->help);
		buffer_format(writer->out, ",%s", fields->schema);
		json_close(writer);
	}
	for (int i = 0; i < 5; i++)
		json_close(writer);
}

static void put_endpoint(struct json_writer *writer, const struct endpoint *endpoint)
{
	json_open(writer, endpoint->kind >= POST_TASK ? "post" : "get", '{');
	json_put_string(writer, "summary", endpoint->form ? endpoint->form->help : endpoint->help);
	if (endpoint->is_public)
		json_put_written(writer, "security", "[]");
	if (endpoint->form)
		put_request(writer, endpoint->form->fields);
	json_open(writer, "responses", '{');
	json_open(writer, "200", '{');
	json_put_string(writer, "description", "The answer");
	if (endpoint->form) {
		json_open(writer, "content", '{');
		json_open(writer, "application/json", '{');
		json_put_written(writer, "example", endpoint->form->answer);
		json_close(writer);
		json_close(writer);
	}
	json_close(writer);
	if (endpoint->form)
		json_put_written(writer, "default", "{\"description\":\"An error, which says what is wrong\"}");
	json_close(writer);
	json_close(writer);
}

void endpoints_write_openapi(struct buffer *out)
{
	struct json_writer writer = {.out = out};
	json_open(&writer, NULL, '{');
	json_put_string(&writer, "openapi", "3.1.0");
	json_open(&writer, "info", '{');
	json_put_string(&writer, "title", "bertc serve");
	json_put_string(&writer, "version", VERSION);
	json_close(&writer);
	json_open(&writer, "paths", '{');
	for (size_t i = 0; i < ENDPOINTS; i++) {
		bool same_path = i > 0 && strcmp(endpoints[i - 1].path, endpoints[i].path) == 0;
		if (!same_path)
			json_open(&writer, endpoints[i].path, '{');
		put_endpoint(&writer, &endpoints[i]);
		if (i + 1 == ENDPOINTS || strcmp(endpoints[i + 1].path, endpoints[i].path) != 0)
			json_close(&writer);
	}
	json_close(&writer);
	json_put_written(&writer, "components", "{\"securitySchemes\":{\"key\":{\"type\":\"http\",\"scheme\":\"bearer\"}}}");
	json_put_written(&writer, "security", "[{\"key\":[]},{}]");
	json_close(&writer);
}
