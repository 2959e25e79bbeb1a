/* Bodies of requests to bertc serve, in every form. Accepted requests keep to the limits and to what the forms promise;
 * refusals say why, and the error is JSON in every style. */
#include "fuzz.h"
#include "serve/api.h"

FUZZ_SEEDS(FUZZ_SEED("e{\"input\": [\"a\", [2, 7, 3]], \"model\": \"m\", \"encoding_format\": \"base64\", \"dimensions\": 8, "
		     "\"user\": \"u\"}"),
	   FUZZ_SEED("t{\"inputs\": \"a\", \"truncate\": false, \"truncation_direction\": \"left\", \"normalize\": true, "
		     "\"prompt_name\": \"q\"}"),
	   FUZZ_SEED("p{\"inputs\": [[\"a\"], [\"b\", \"c\"]], \"raw_scores\": true}"),
	   FUZZ_SEED("p{\"inputs\": [\"a\", \"b\"]}"),
	   FUZZ_SEED("r{\"query\": \"q\", \"texts\": [\"a\", \"b\"], \"return_text\": true}"),
	   FUZZ_SEED("f{\"inputs\": [\"a [MASK]\"], \"top_k\": 3}"),
	   FUZZ_SEED("s{\"inputs\": {\"source_sentence\": \"a\", \"sentences\": [\"b\"]}, \"parameters\": {\"truncate\": true}}"),
	   FUZZ_SEED("k{\"inputs\": [\"a\"], \"add_special_tokens\": false}"),
	   FUZZ_SEED("d{\"ids\": [[2, 7, 3]], \"skip_special_tokens\": false}"),
	   FUZZ_SEED("c{\"query\": \"q\", \"documents\": [\"a\", {\"text\": \"b\"}], \"top_n\": 1}"),
	   FUZZ_SEED("a{\"inputs\": [{\"question\": \"q\", \"context\": \"c\"}]}"),
	   FUZZ_SEED("a{\"question\": \"q\", \"context\": \"c\"}"))

static void check_request(const struct api_request *request, const struct api_limits *limits)
{
	BUG_IF(request->count < 1 || request->count > limits->max_texts + (request->task == API_SIMILARITY));
	for (int64_t i = 0; i < request->count; i++) {
		const struct text_input *input = &request->inputs[i];
		BUG_IF((input->text != NULL) == (input->ids != NULL));
		BUG_IF(input->text && !input->text[0]);
		bool takes_ids = request->task == API_EMBED || request->task == API_EMBED_ALL ||
				 request->task == API_EMBED_SPARSE || request->task == API_DECODE;
		BUG_IF(input->ids && (!takes_ids || input->id_count < 1));
		for (int64_t k = 0; k < input->id_count; k++)
			BUG_IF(input->ids[k] < 0);
		BUG_IF((request->task == API_RERANK || request->task == API_ANSWER) && !(input->pair && input->pair[0]));
	}
	BUG_IF(request->dimensions < 0 || (request->task == API_FILL && (request->top_k < 1 || request->top_k > 100)));
}

static void check_error(const struct api_error *error)
{
	BUG_IF(error->fault == FAULT_NONE || error->fault == FAULT_FAILED || !error->message[0]);
	for (enum api_style style = API_OPENAI; style <= API_COHERE; style++) {
		struct buffer out = {0};
		struct json_document document;
		api_write_error(&out, style, error);
		BUG_IF(api_status(error->fault, style) < 400);
		BUG_IF(json_parse(&document, "error", buffer_string(&out), out.size) != OK);
		json_release(&document);
		buffer_release(&out);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	const struct api_limits limits = {.max_texts = 4};
	struct api_request request = {0};
	struct api_error error = {0};
	bool accepted;
	if (count == 0)
		return 0;
	char *body = fuzz_copy(bytes + 1, count - 1);
	static const struct {
		char letter;
		const struct api_form *form;
	} forms[] = {{'e', &openai_embed}, {'t', &tei_embed},      {'p', &tei_predict},   {'r', &tei_rerank},
		     {'f', &own_fill},     {'s', &tei_similarity}, {'v', &tei_embed_all}, {'k', &tei_tokenize},
		     {'d', &tei_decode},   {'c', &cohere_rerank},  {0, &own_answer}};
	size_t form = 0;
	while (forms[form].letter && forms[form].letter != (char)bytes[0])
		form++;
	accepted = api_read(&request, forms[form].form, body, count - 1, &limits, &error);
	if (accepted)
		check_request(&request, &limits);
	else
		check_error(&error);
	api_request_release(&request);
	free(body);
	return 0;
}
