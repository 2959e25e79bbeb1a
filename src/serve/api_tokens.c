/* Requests to text-embeddings-inference's tokenizer: the tokens of texts, and the texts of token ids. */
#include "serve/api.h"

static bool read_tokenize(struct api_request *request, const struct json *body, const struct api_limits *limits,
			  struct api_error *error)
{
	request->special = true;
	return api_get_bool(body, "add_special_tokens", &request->special, error) &&
	       api_read_texts(request, json_member(body, "inputs"), "inputs", limits, error);
}

static bool read_decode(struct api_request *request, const struct json *body, const struct api_limits *limits,
			struct api_error *error)
{
	const struct json *ids = json_member(body, "ids");
	bool skips = true;
	if (ids && ids->kind == JSON_NUMBER)
		return api_fail(error, FAULT_FIELD, "ids", "'ids' must be a list of token ids, or a list of such lists");
	if (!api_get_bool(body, "skip_special_tokens", &skips, error) || !api_read_inputs(request, ids, "ids", limits, error))
		return false;
	request->special = !skips;
	for (int64_t i = 0; i < request->count; i++)
		if (request->inputs[i].text)
			return api_fail(error, FAULT_FIELD, "ids", "'ids' must hold token ids, not strings");
	return true;
}

static const struct api_field tokenize_fields[] = {
	{"inputs", TYPE_TEXTS, "A text, or several."},
	{"add_special_tokens", TYPE_BOOL, "Whether to add those of the model, such as [CLS] and [SEP]; otherwise true."},
	FIELD_MODEL,
	{0},
};
const struct api_form tei_tokenize = {
	.style = API_TEI,
	.task = API_TOKENIZE,
	.read = read_tokenize,
	.fields = tokenize_fields,
	.help = "The tokens of texts, with their places in code points",
	.answer = "[[{\"id\":101,\"text\":\"[CLS]\",\"special\":true,\"start\":null,\"stop\":null},"
		  "{\"id\":7592,\"text\":\"Hello\",\"special\":false,\"start\":0,\"stop\":5}]]",
};

static const struct api_field decode_fields[] = {
	{"ids", "\"oneOf\":[{" TYPE_IDS "},{\"type\":\"array\",\"items\":{" TYPE_IDS "}}]",
	 "The tokens of a text, or of several."},
	{"skip_special_tokens", TYPE_BOOL, "Whether to leave out tokens such as [CLS]; otherwise true."},
	FIELD_MODEL,
	{0},
};
const struct api_form tei_decode = {
	.style = API_TEI,
	.task = API_DECODE,
	.read = read_decode,
	.fields = decode_fields,
	.help = "The texts of token ids",
	.answer = "[\"hello\"]",
};
