/* OpenAI's API for embeddings and models: https://platform.openai.com/docs/api-reference/embeddings */
#include <string.h>

#include "serve/api.h"

static bool read_embed(struct api_request *request, const struct json *body, const struct api_limits *limits,
		       struct api_error *error)
{
	const char *format = NULL;
	request->is_list = request->normalize = true;
	if (!api_get_text(request, body, "encoding_format", &format, error) ||
	    !api_get_integer(body, "dimensions", 1, INT32_MAX, &request->dimensions, error) ||
	    !api_read_inputs(request, json_member(body, "input"), "input", limits, error))
		return false;
	request->base64 = format && strcmp(format, "base64") == 0;
	if (format && !request->base64 && strcmp(format, "float") != 0)
		return api_fail(error, FAULT_FIELD, "encoding_format", "'encoding_format' must be float or base64");
	return true;
}

/* `user` identifies end users for OpenAI's abuse monitoring; it is accepted and ignored. */
static const struct api_field embed_fields[] = {
	{"input", TYPE_INPUTS, "A text, several texts, or token ids of the model's own tokenizer."},
	FIELD_MODEL,
	{"encoding_format", TYPE_TEXT ",\"enum\":[\"float\",\"base64\"]", "How vectors are written; otherwise float."},
	{"dimensions", TYPE_INTEGER, "Shorten vectors to this many numbers before they are normalized."},
	{"user", TYPE_TEXT, "Has no effect."},
	{0},
};

const struct api_form openai_embed = {
	.style = API_OPENAI,
	.task = API_EMBED,
	.read = read_embed,
	.fields = embed_fields,
	.help = "Embeddings, as OpenAI's API has them",
	.answer = "{\"object\":\"list\",\"data\":[{\"object\":\"embedding\",\"index\":0,\"embedding\":[0.01,-0.05]}],"
		  "\"model\":\"search\",\"usage\":{\"prompt_tokens\":4,\"total_tokens\":4}}",
};

void openai_write_embeddings(struct buffer *out, const char *model, const struct api_vectors *vectors, bool base64,
			     int64_t tokens)
{
	struct json_writer writer = {.out = out};
	struct buffer text = {0};
	json_open(&writer, NULL, '{');
	json_put_string(&writer, "object", "list");
	json_open(&writer, "data", '[');
	for (int64_t i = 0; i < vectors->count; i++) {
		const float *values = vectors->values + i * vectors->width;
		json_open(&writer, NULL, '{');
		json_put_string(&writer, "object", "embedding");
		json_put_integer(&writer, "index", i);
		if (base64) {
			/* Little-endian float32, which is how the numbers are stored in memory. */
			buffer_clear(&text);
			api_base64(&text, values, (size_t)vectors->width * sizeof *values);
			json_put_text(&writer, "embedding", buffer_string(&text), text.size);
		} else {
			json_open(&writer, "embedding", '[');
			for (int64_t k = 0; k < vectors->width; k++)
				json_put_float(&writer, NULL, values[k]);
			json_close(&writer);
		}
		json_close(&writer);
	}
	json_close(&writer);
	json_put_string(&writer, "model", model);
	json_open(&writer, "usage", '{');
	json_put_integer(&writer, "prompt_tokens", tokens);
	json_put_integer(&writer, "total_tokens", tokens);
	json_close(&writer);
	json_close(&writer);
	out->failed = out->failed || text.failed;
	buffer_release(&text);
}

void openai_write_models(struct buffer *out, const char *const *names, int64_t count, int64_t created)
{
	struct json_writer writer = {.out = out};
	json_open(&writer, NULL, '{');
	json_put_string(&writer, "object", "list");
	json_open(&writer, "data", '[');
	for (int64_t i = 0; i < count; i++) {
		json_open(&writer, NULL, '{');
		json_put_string(&writer, "id", names[i]);
		json_put_string(&writer, "object", "model");
		json_put_integer(&writer, "created", created);
		json_put_string(&writer, "owned_by", "bertc");
		json_close(&writer);
	}
	json_close(&writer);
	json_close(&writer);
}
