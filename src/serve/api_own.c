/* Our own formats: filling in blanks, and answering questions from a paragraph. */
#include <string.h>

#include "serve/api.h"

static bool read_fill(struct api_request *request, const struct json *body, const struct api_limits *limits,
		      struct api_error *error)
{
	const struct json *parameters;
	request->top_k = 5;
	return api_read_parameters(request, body, "top_k", &parameters, error) &&
	       api_get_integer(parameters, "top_k", 1, 100, &request->top_k, error) &&
	       api_get_integer(body, "top_k", 1, 100, &request->top_k, error) &&
	       api_read_texts(request, json_member(body, "inputs"), "inputs", limits, error);
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
	if (!api_read_parameters(request, body, NULL, NULL, error))
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

static const struct api_field fill_fields[] = {
	{"inputs", TYPE_TEXTS, "A text with blanks ([MASK], or the mask token of the model), or several."},
	{"top_k", TYPE_INTEGER ",\"maximum\":100", "How many words to return for each blank; otherwise 5."},
	FIELD_MODEL,
	FIELD_PARAMETERS("If it is there, the answer is that of transformers' pipeline; it may hold top_k."),
	{0},
};
const struct api_form own_fill = {
	.style = API_TEI,
	.task = API_FILL,
	.read = read_fill,
	.fields = fill_fields,
	.help = "Words for the blanks of a text",
	.answer = "{\"results\":[{\"text\":\"Paris is the [MASK] of France.\",\"blanks\":[[{\"token\":\"capital\",\"id\":3007,"
		  "\"probability\":0.99}]]}]}",
};

static const struct api_field answer_fields[] = {
	{"question", TYPE_TEXT, "What is asked."},
	{"context", TYPE_TEXT, "The text that may have the answer, of any length."},
	{"inputs", "\"oneOf\":[{" TYPE_OBJECT "},{\"type\":\"array\",\"items\":{" TYPE_OBJECT "}}]",
	 "Several questions, each an object with question and context."},
	FIELD_MODEL,
	FIELD_PARAMETERS("Empty, as clients of huggingface_hub send it."),
	{0},
};
const struct api_form own_answer = {
	.style = API_TEI,
	.task = API_ANSWER,
	.read = read_answer,
	.fields = answer_fields,
	.help = "The part of a text that answers a question",
	.answer = "{\"answer\":\"Le Havre\",\"start\":39,\"end\":47,\"score\":0.91}",
};
