/* The format of Cohere's rerank API, versions 1 and 2 (https://docs.cohere.com/reference/rerank), which Jina AI and others share.
 */
#include "serve/api.h"

static bool read_rerank(struct api_request *request, const struct json *body, const struct api_limits *limits,
			struct api_error *error)
{
	return api_get_integer(body, "top_n", 1, INT32_MAX, &request->top_k, error) &&
	       api_get_bool(body, "return_documents", &request->return_text, error) &&
	       api_read_ranking(request, json_member(body, "query"), json_member(body, "documents"), "documents", limits, error);
}

/* The last three tune what happens to documents of thousands of tokens, and in what order requests are served. */
static const struct api_field rerank_fields[] = {
	{"query", TYPE_TEXT, "What is asked."},
	{"documents", "\"type\":\"array\",\"items\":{\"oneOf\":[{" TYPE_TEXT "},{" TYPE_OBJECT "}]}",
	 "Texts, or objects {\"text\"}, to sort by how well they answer."},
	{"top_n", TYPE_INTEGER, "How many of the best to return; otherwise all."},
	{"return_documents", TYPE_BOOL, "Return the texts, too."},
	FIELD_MODEL,
	{"max_tokens_per_doc", TYPE_INTEGER, "Has no effect: texts are cut to what the model takes."},
	{"max_chunks_per_doc", TYPE_INTEGER, "Has no effect: a text is one chunk."},
	{"priority", "\"type\":\"integer\"", "Has no effect."},
	{0},
};
const struct api_form cohere_rerank = {
	.style = API_COHERE,
	.task = API_RERANK,
	.read = read_rerank,
	.fields = rerank_fields,
	.help = "Texts sorted by how well they answer a query, as Cohere's and Jina AI's APIs have it",
	.answer = "{\"id\":\"rerank\",\"model\":\"cross\",\"results\":[{\"index\":1,\"relevance_score\":0.98}],"
		  "\"usage\":{\"total_tokens\":40}}",
};
