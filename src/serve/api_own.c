/* Our own formats: filling in blanks, and answering questions from a paragraph. */
#include <string.h>

#include "serve/api.h"

static bool read_fill(struct api_request *request, const struct json *body, const struct api_limits *limits,
		      struct api_error *error)
{
	const struct json *inputs = json_member(body, "inputs"), *parameters;
	request->top_k = 5;
	request->is_list = inputs && inputs->kind == JSON_ARRAY;
	if (!api_read_parameters(body, "top_k", &parameters, error) ||
	    !api_get_integer(parameters, "top_k", 1, 100, &request->top_k, error) ||
	    !api_get_integer(body, "top_k", 1, 100, &request->top_k, error))
		return false;
	if (!inputs || inputs->kind == JSON_NULL)
		return api_fail(error, FAULT_FIELD, "inputs", "'inputs' is missing");
	if (request->is_list && !api_check_count(inputs->child_count, "inputs", limits, error))
		return false;
	for (const struct json *one = request->is_list ? inputs->first_child : inputs; one;
	     one = request->is_list ? one->next : NULL) {
		struct text_input *input = api_add_input(request, error);
		if (!input || !api_copy_text(request, one, "inputs", &input->text, error))
			return false;
	}
	return true;
}

/* {"question", "context"} */
static bool read_question(struct api_request *request, const struct json *object, struct api_error *error)
{
	const struct json *question = json_member(object, "question"), *context = json_member(object, "context");
	if (!question || !context)
		return api_fail(error, FAULT_FIELD, question ? "context" : "question", "'%s' is missing",
				question ? "context" : "question");
	struct text_input *input = api_add_input(request, error);
	return input && api_copy_text(request, question, "question", &input->text, error) &&
	       api_copy_text(request, context, "context", &input->pair, error);
}

static bool read_question_in_list(struct api_request *request, const struct json *object, struct api_error *error)
{
	if (object->kind != JSON_OBJECT)
		return api_fail(error, FAULT_FIELD, "inputs", "'inputs' must hold objects with 'question' and 'context'");
	for (const struct json *member = object->first_child; member; member = member->next)
		if (strcmp(member->key, "question") != 0 && strcmp(member->key, "context") != 0)
			return api_fail(error, FAULT_FIELD, "inputs", "unknown field '%.100s' in 'inputs'", member->key);
	return read_question(request, object, error);
}

static bool read_answer(struct api_request *request, const struct json *body, const struct api_limits *limits,
			struct api_error *error)
{
	const struct json *inputs = json_member(body, "inputs");
	if (!api_read_parameters(body, NULL, NULL, error))
		return false;
	if (!inputs)
		return read_question(request, body, error);
	if (json_member(body, "question") || json_member(body, "context"))
		return api_fail(error, FAULT_FIELD, "inputs", "'inputs' takes the place of 'question' and 'context'");
	if (inputs->kind != JSON_ARRAY)
		return read_question_in_list(request, inputs, error);
	request->is_list = true;
	if (!api_check_count(inputs->child_count, "inputs", limits, error))
		return false;
	for (const struct json *one = inputs->first_child; one; one = one->next)
		if (!read_question_in_list(request, one, error))
			return false;
	return true;
}

bool api_read_own(struct api_request *out, enum api_task task, const char *body, size_t size, const struct api_limits *limits,
		  struct api_error *error)
{
	static const char *const fill[] = {"inputs", "top_k", "model", "parameters", NULL};
	static const char *const answer[] = {"question", "context", "inputs", "model", "parameters", NULL};
	struct json_document document;
	*out = (struct api_request){.task = task, .style = API_TEI};
	if (!api_open(&document, body, size, task == API_FILL ? fill : answer, error))
		return false;
	bool fine = api_get_text(out, document.root, "model", &out->model, error);
	if (fine && task == API_FILL)
		fine = read_fill(out, document.root, limits, error);
	else if (fine)
		fine = read_answer(out, document.root, limits, error);
	json_release(&document);
	return fine;
}
