/* What all request formats share: errors and their status codes, checked reading of JSON members, and inputs. */
#include "serve/api.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

const char *api_task_name(enum api_task task)
{
	static const char *const names[] = {[API_EMBED] = "embed",       [API_PREDICT] = "predict",
					    [API_RERANK] = "rerank",     [API_FILL] = "fill",
					    [API_ANSWER] = "answer",     [API_SIMILARITY] = "embed",
					    [API_EMBED_ALL] = "embed",   [API_EMBED_SPARSE] = "embed_sparse",
					    [API_TOKENIZE] = "tokenize", [API_DECODE] = "decode"};
	return names[task];
}

/* ---- Errors ---- */

static const struct fault_row {
	int status[2]; /* in most styles, and in that of text-embeddings-inference */
	const char *openai_type, *openai_code, *tei_type;
} faults[] = {
	[FAULT_NONE] = {{200, 200}, "", NULL, ""},
	[FAULT_SYNTAX] = {{400, 400}, "invalid_request_error", NULL, "Validation"},
	[FAULT_HEADERS] = {{400, 400}, "invalid_request_error", NULL, "Validation"},
	[FAULT_HOST] = {{403, 403}, "invalid_request_error", "unknown_host", "Forbidden"},
	[FAULT_FIELD] = {{400, 422}, "invalid_request_error", NULL, "Validation"},
	[FAULT_EMPTY] = {{400, 400}, "invalid_request_error", NULL, "Empty"},
	[FAULT_INPUT] = {{422, 422}, "invalid_request_error", NULL, "Validation"},
	[FAULT_KEY] = {{401, 401}, "invalid_request_error", "invalid_api_key", "Unauthorized"},
	[FAULT_PATH] = {{404, 404}, "invalid_request_error", "unknown_url", "NotFound"},
	[FAULT_MODEL] = {{404, 404}, "invalid_request_error", "model_not_found", "NotFound"},
	[FAULT_KIND] = {{400, 424}, "invalid_request_error", "model_not_supported", "Backend"},
	[FAULT_METHOD] = {{405, 405}, "invalid_request_error", "method_not_allowed", "MethodNotAllowed"},
	[FAULT_BODY] = {{413, 413}, "invalid_request_error", "body_too_large", "Validation"},
	[FAULT_MEDIA_TYPE] = {{415, 415}, "invalid_request_error", "unsupported_media_type", "Validation"},
	[FAULT_BUSY] = {{429, 429}, "requests", "rate_limit_exceeded", "Overloaded"},
	[FAULT_FAILED] = {{500, 500}, "server_error", "internal_error", "Backend"},
	[FAULT_STOPPING] = {{503, 503}, "server_error", "service_unavailable", "Unhealthy"},
};

bool api_fail(struct api_error *out, enum api_fault fault, const char *field, const char *format, ...)
{
	char text[512];
	va_list list;
	va_start(list, format);
	vsnprintf(text, sizeof text, format, list);
	va_end(list);
	*out = (struct api_error){.fault = fault};
	/* The message may quote what a client sent. */
	text_escape(out->message, sizeof out->message, text, false);
	text_escape(out->field, sizeof out->field, field ? field : "", false);
	return false;
}

bool api_fail_internal(struct api_error *out)
{
	return api_fail(out, FAULT_FAILED, NULL, "%s", error_last()->message);
}

int api_status(enum api_fault fault, enum api_style style)
{
	return faults[fault].status[style == API_TEI];
}

void api_write_error(struct buffer *out, enum api_style style, const struct api_error *error)
{
	const struct fault_row *row = &faults[error->fault];
	struct json_writer writer = {.out = out};
	json_open(&writer, NULL, '{');
	if (style == API_TEI) {
		json_put_string(&writer, "error", error->message);
		json_put_string(&writer, "error_type", row->tei_type);
		json_close(&writer);
		return;
	}
	if (style == API_COHERE) { /* Jina AI's clients read "detail" */
		json_put_string(&writer, "message", error->message);
		json_put_string(&writer, "detail", error->message);
		json_close(&writer);
		return;
	}
	json_open(&writer, "error", '{');
	json_put_string(&writer, "message", error->message);
	json_put_string(&writer, "type", row->openai_type);
	if (error->field[0])
		json_put_string(&writer, "param", error->field);
	else
		json_put_null(&writer, "param");
	if (row->openai_code)
		json_put_string(&writer, "code", row->openai_code);
	else
		json_put_null(&writer, "code");
	json_close(&writer);
	json_close(&writer);
}

/* ---- Reading ---- */

static const char *kind_name(const struct json *value)
{
	static const char *const names[] = {"null", "a boolean", "a number", "a string", "a list", "an object"};
	return names[value->kind];
}

static bool wrong_type(const char *field, const char *expected, const struct json *value, struct api_error *error)
{
	return api_fail(error, FAULT_FIELD, field, "'%s' must be %s, not %s", field, expected, kind_name(value));
}

/* Parses the body as an object whose members must all be in `known`. The caller releases the document if this returns true. */
static bool open_body(struct json_document *out, const char *body, size_t size, const struct api_field *known,
		      struct api_error *error)
{
	if (size == 0)
		return api_fail(error, FAULT_SYNTAX, NULL, "the body is empty: a JSON object is expected");
	if (json_parse(out, "the body", body, size) != OK)
		return api_fail(error, error_last()->status == ERR_RESOURCE ? FAULT_FAILED : FAULT_SYNTAX, NULL, "%s",
				error_last()->message);
	bool fine = out->root->kind == JSON_OBJECT;
	if (!fine)
		api_fail(error, FAULT_FIELD, NULL, "the body must be a JSON object, not %s", kind_name(out->root));
	for (const struct json *member = fine ? out->root->first_child : NULL; member && fine; member = member->next) {
		const struct api_field *field = known;
		while (field->name && strcmp(field->name, member->key) != 0)
			field++;
		if (!field->name)
			fine = api_fail(error, FAULT_FIELD, member->key, "unknown field '%.100s'", member->key);
	}
	if (!fine)
		json_release(out);
	return fine;
}

bool api_read(struct api_request *out, const struct api_form *form, const char *body, size_t size,
	      const struct api_limits *limits, struct api_error *error)
{
	struct json_document document;
	*out = (struct api_request){.task = form->task, .style = form->style};
	if (!open_body(&document, body, size, form->fields, error))
		return false;
	bool fine =
		api_get_text(out, document.root, "model", &out->model, error) && form->read(out, document.root, limits, error);
	json_release(&document);
	return fine;
}

/* NULL: absent or null. */
static const struct json *find_member(const struct json *object, const char *key)
{
	const struct json *member = json_member(object, key);
	return member && member->kind != JSON_NULL ? member : NULL;
}

bool api_get_bool(const struct json *object, const char *key, bool *out, struct api_error *error)
{
	const struct json *member = find_member(object, key);
	if (member && member->kind != JSON_BOOL)
		return wrong_type(key, "true or false", member, error);
	if (member)
		*out = member->boolean;
	return true;
}

bool api_get_integer(const struct json *object, const char *key, int64_t min, int64_t max, int64_t *out, struct api_error *error)
{
	const struct json *member = find_member(object, key);
	if (member && (member->kind != JSON_NUMBER || !member->is_integer))
		return wrong_type(key, "a whole number", member, error);
	if (member && (member->integer < min || member->integer > max))
		return api_fail(error, FAULT_FIELD, key, "'%s' must be from %lld to %lld", key, (long long)min, (long long)max);
	if (member)
		*out = member->integer;
	return true;
}

bool api_get_text(struct api_request *request, const struct json *object, const char *key, const char **out,
		  struct api_error *error)
{
	const struct json *member = find_member(object, key);
	if (!member)
		return true;
	if (member->kind != JSON_STRING)
		return wrong_type(key, "a string", member, error);
	if (strlen(member->text) != member->text_size)
		return api_fail(error, FAULT_FIELD, key, "'%s' holds a NUL character", key);
	if (string_store_copy(&request->strings, member->text, member->text_size, out) != OK)
		return api_fail_internal(error);
	return true;
}

bool api_copy_text(struct api_request *request, const struct json *value, const char *field, const char **out,
		   struct api_error *error)
{
	if (value->kind != JSON_STRING)
		return wrong_type(field, "a string", value, error);
	if (value->text_size == 0)
		return api_fail(error, FAULT_EMPTY, field, "'%s' holds an empty text", field);
	if (strlen(value->text) != value->text_size)
		return api_fail(error, FAULT_INPUT, field, "'%s' holds a text with a NUL character", field);
	if (string_store_copy(&request->strings, value->text, value->text_size, out) != OK)
		return api_fail_internal(error);
	return true;
}

struct text_input *api_add_input(struct api_request *request, struct api_error *error)
{
	if (memory_grow(&request->inputs, &request->room, request->count + 1, sizeof *request->inputs, "a request") != OK) {
		api_fail_internal(error);
		return NULL;
	}
	struct text_input *input = &request->inputs[request->count++];
	*input = (struct text_input){0};
	return input;
}

bool api_read_parameters(struct api_request *request, const struct json *body, const char *known, const struct json **out,
			 struct api_error *error)
{
	const struct json *parameters = find_member(body, "parameters");
	if (out)
		*out = parameters;
	if (parameters && parameters->kind != JSON_OBJECT)
		return wrong_type("parameters", "an object", parameters, error);
	for (const struct json *one = parameters ? parameters->first_child : NULL; one; one = one->next)
		if (one->kind != JSON_NULL && !(known && strcmp(one->key, known) == 0))
			return api_fail(error, FAULT_FIELD, one->key, "unknown field '%.100s' in 'parameters'", one->key);
	request->in_pipeline = parameters != NULL;
	return true;
}

bool api_check_count(int64_t count, const char *field, const struct api_limits *limits, struct api_error *error)
{
	if (count == 0)
		return api_fail(error, FAULT_EMPTY, field, "'%s' is empty", field);
	if (count > limits->max_texts)
		return api_fail(error, FAULT_INPUT, field, "'%s' holds %lld texts, and %lld are allowed in a request", field,
				(long long)count, (long long)limits->max_texts);
	return true;
}

bool api_read_texts(struct api_request *request, const struct json *value, const char *field, const struct api_limits *limits,
		    struct api_error *error)
{
	if (!value || value->kind == JSON_NULL)
		return api_fail(error, FAULT_FIELD, field, "'%s' is missing", field);
	request->is_list = value->kind == JSON_ARRAY;
	if (request->is_list && !api_check_count(value->child_count, field, limits, error))
		return false;
	for (const struct json *one = request->is_list ? value->first_child : value; one;
	     one = request->is_list ? one->next : NULL) {
		struct text_input *input = api_add_input(request, error);
		if (!input || !api_copy_text(request, one, field, &input->text, error))
			return false;
	}
	return true;
}

bool api_read_ranking(struct api_request *request, const struct json *query, const struct json *value, const char *field,
		      const struct api_limits *limits, struct api_error *error)
{
	const char *question;
	request->is_list = true;
	if (!query || query->kind == JSON_NULL)
		return api_fail(error, FAULT_FIELD, "query", "'query' is missing");
	if (!value || value->kind != JSON_ARRAY)
		return api_fail(error, FAULT_FIELD, field, "'%s' must be a list of strings", field);
	if (!api_copy_text(request, query, "query", &question, error) ||
	    !api_check_count(value->child_count, field, limits, error))
		return false;
	for (const struct json *one = value->first_child; one; one = one->next) {
		struct text_input *input = api_add_input(request, error);
		/* Cohere's and Jina AI's clients may wrap a text in an object. */
		const struct json *text = request->style == API_COHERE && one->child_count == 1 ? json_member(one, "text") : NULL;
		if (!input || !api_copy_text(request, text ? text : one, field, &input->pair, error))
			return false;
		input->text = question;
	}
	return true;
}

/* Adds a list of ids. Pointers to them are set once all are read, since the array moves as it grows. */
static bool add_ids(struct api_request *request, const struct json *list, const char *field, struct api_error *error)
{
	struct text_input *input = api_add_input(request, error);
	if (!input)
		return false;
	if (memory_grow(&request->ids, &request->id_room, request->id_count + list->child_count, sizeof *request->ids,
			"token ids") != OK)
		return api_fail_internal(error);
	for (const struct json *id = list->first_child; id; id = id->next) {
		if (id->kind != JSON_NUMBER)
			return wrong_type(field, "strings or lists of token ids", id, error);
		if (!id->is_integer || id->integer < 0 || id->integer > INT32_MAX)
			return api_fail(error, FAULT_INPUT, field, "'%s' holds a number that is not a token id", field);
		request->ids[request->id_count++] = (int32_t)id->integer;
	}
	input->id_count = list->child_count;
	return true;
}

static void place_ids(struct api_request *request)
{
	const int32_t *next = request->ids;
	for (int64_t i = 0; i < request->count; i++) {
		if (request->inputs[i].text)
			continue;
		request->inputs[i].ids = next;
		next += request->inputs[i].id_count;
	}
}

static bool add_input(struct api_request *request, const struct json *value, const char *field, struct api_error *error)
{
	if (value->kind == JSON_ARRAY && value->child_count == 0)
		return api_fail(error, FAULT_EMPTY, field, "'%s' holds an empty list", field);
	if (value->kind == JSON_ARRAY)
		return add_ids(request, value, field, error);
	if (value->kind != JSON_STRING)
		return wrong_type(field, "a string, a list of strings, or lists of token ids", value, error);
	struct text_input *input = api_add_input(request, error);
	return input && api_copy_text(request, value, field, &input->text, error);
}

bool api_read_inputs(struct api_request *request, const struct json *value, const char *field, const struct api_limits *limits,
		     struct api_error *error)
{
	if (!value || value->kind == JSON_NULL)
		return api_fail(error, FAULT_FIELD, field, "'%s' is missing", field);
	bool many = value->kind == JSON_ARRAY && !(value->first_child && value->first_child->kind == JSON_NUMBER);
	if (!many) {
		if (!add_input(request, value, field, error))
			return false;
		place_ids(request);
		return true;
	}
	if (!api_check_count(value->child_count, field, limits, error))
		return false;
	for (const struct json *one = value->first_child; one; one = one->next)
		if (!add_input(request, one, field, error))
			return false;
	place_ids(request);
	return true;
}

void api_request_release(struct api_request *request)
{
	string_store_release(&request->strings);
	free(request->inputs);
	free(request->ids);
	*request = (struct api_request){0};
}

/* ---- Writing ---- */

void api_base64(struct buffer *out, const void *bytes, size_t count)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *from = bytes;
	size_t size = (count + 2) / 3 * 4;
	char *to = buffer_room(out, size);
	if (!to)
		return;
	for (size_t i = 0; i < count; i += 3, to += 4) {
		size_t left = count - i;
		uint32_t three = (uint32_t)from[i] << 16 | (left > 1 ? (uint32_t)from[i + 1] << 8 : 0) |
				 (left > 2 ? (uint32_t)from[i + 2] : 0);
		to[0] = letters[three >> 18];
		to[1] = letters[three >> 12 & 63];
		to[2] = left > 1 ? letters[three >> 6 & 63] : '=';
		to[3] = left > 2 ? letters[three & 63] : '=';
	}
	buffer_advance(out, size);
}
