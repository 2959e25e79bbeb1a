/* Turns what was computed for a request into its answer. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "infer/blanks.h"
#include "model/pooling.h"
#include "serve/model_work.h"
#include "text/decode.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

/* The vectors of the request's texts, cut and scaled as it wishes. */
static struct api_vectors take_vectors(struct model_work *work)
{
	const struct api_request *request = work->request;
	int64_t width = text_model_width(&work->model->text);
	struct api_vectors vectors = {.values = work->outputs.values, .count = work->job.count, .width = width};
	if (work->dimensions < width) {
		vectors.width = work->dimensions;
		for (int64_t i = 0; i < vectors.count; i++)
			memmove(work->outputs.values + i * vectors.width, work->outputs.values + i * width,
				(size_t)vectors.width * sizeof(float));
	}
	for (int64_t i = 0; i < vectors.count && request->normalize; i++)
		pooling_normalize(work->outputs.values + i * vectors.width, vectors.width);
	return vectors;
}

static bool write_vectors(struct model_work *work, struct buffer *out)
{
	const struct api_vectors vectors = take_vectors(work);
	if (work->request->style == API_OPENAI)
		openai_write_embeddings(out, work->model->name, &vectors, work->request->base64, work->token_count);
	else
		tei_write_embeddings(out, &vectors);
	return true;
}

/* A list of vectors for each text. */
static bool write_rows(const struct model_work *work, struct buffer *out)
{
	int64_t width = work->model->text.hidden;
	buffer_char(out, '[');
	for (int64_t t = 0; t < work->job.count; t++) {
		if (t > 0)
			buffer_char(out, ',');
		tei_write_embeddings(out, &(struct api_vectors){.values = task_output(&work->outputs, t),
								.count = work->inputs.texts[t].count,
								.width = width});
	}
	buffer_char(out, ']');
	return true;
}

/* The similarities of the first text and each of the others. */
static bool write_similarities(struct model_work *work, struct buffer *out)
{
	struct json_writer writer = {.out = out};
	const struct api_vectors vectors = take_vectors(work);
	json_open(&writer, NULL, '[');
	for (int64_t i = 1; i < vectors.count; i++) {
		double sum = 0;
		for (int64_t k = 0; k < vectors.width; k++)
			sum += (double)vectors.values[k] * vectors.values[i * vectors.width + k];
		json_put_float(&writer, NULL, (float)sum);
	}
	json_close(&writer);
	return true;
}

/* ---- The tokenizer's ---- */

/* A special token has no place in the text. */
static void put_token(struct json_writer *writer, int32_t id, const char *text, size_t size, bool special, int64_t start,
		      int64_t stop)
{
	json_open(writer, NULL, '{');
	json_put_integer(writer, "id", id);
	json_put_text(writer, "text", text, size);
	json_put_bool(writer, "special", special);
	if (special) {
		json_put_null(writer, "start");
		json_put_null(writer, "stop");
	} else {
		json_put_integer(writer, "start", start);
		json_put_integer(writer, "stop", stop);
	}
	json_close(writer);
}

static void put_tokens(const struct model_work *work, const char *text, const struct tokens *tokens, struct json_writer *writer)
{
	const struct vocab *vocab = &work->model->text.session.tokenizer.vocab;
	const struct token_template *template = &vocab->single;
	int32_t marks = work->request->special ? template_size(template) : 0;
	struct utf8_place place = {.text = text};
	json_open(writer, NULL, '[');
	for (int32_t i = 0; i < marks && i < template->before; i++)
		put_token(writer, template->ids[i], vocab->text[template->ids[i]], strlen(vocab->text[template->ids[i]]), true, 0,
			  0);
	for (int64_t i = 0; i < tokens->count; i++) {
		/* A token's bytes may begin or end within a character, which then belongs to it. */
		size_t begin = tokens->begin[i], end = tokens->end[i];
		while (begin > 0 && ((unsigned char)text[begin] & 0xC0) == 0x80)
			begin--;
		while (end > begin && ((unsigned char)text[end] & 0xC0) == 0x80)
			end++;
		int64_t start = (int64_t)utf8_place_at(&place, begin);
		struct utf8_place after = place;
		put_token(writer, tokens->ids[i], text + begin, end - begin, false, start, (int64_t)utf8_place_at(&after, end));
	}
	for (int32_t i = template->before; i < marks; i++)
		put_token(writer, template->ids[i], vocab->text[template->ids[i]], strlen(vocab->text[template->ids[i]]), true, 0,
			  0);
	json_close(writer);
}

static bool write_tokens(const struct model_work *work, struct buffer *out, struct api_error *error)
{
	struct json_writer writer = {.out = out};
	struct tokens tokens = {0};
	enum status status = OK;
	json_open(&writer, NULL, '[');
	for (int64_t t = 0; t < work->request->count && status == OK; t++) {
		const char *text = work->request->inputs[t].text;
		tokens_clear(&tokens);
		status = tokenizer_encode(work->model->text.blanks, text, strlen(text), &tokens);
		if (status == OK)
			put_tokens(work, text, &tokens, &writer);
	}
	json_close(&writer);
	tokens_release(&tokens);
	return status == OK || api_fail_internal(error);
}

static bool write_texts(const struct model_work *work, struct buffer *out)
{
	struct json_writer writer = {.out = out};
	struct buffer text = {0};
	json_open(&writer, NULL, '[');
	for (int64_t t = 0; t < work->request->count; t++) {
		const struct text_input *input = &work->request->inputs[t];
		buffer_clear(&text);
		vocab_decode(&work->model->text.session.tokenizer.vocab, input->ids, input->id_count, !work->request->special,
			     &text);
		json_put_text(&writer, NULL, buffer_string(&text), text.size);
	}
	json_close(&writer);
	out->failed = out->failed || text.failed;
	buffer_release(&text);
	return true;
}

/* ---- Scores ---- */

/* All classes or labels are listed, unless it is up to thresholds which of them are answers. */
static bool is_listed(const struct task_state *state, const float *logits, int32_t label)
{
	if (!task_chooses_answers(state))
		return true;
	return state->task->target == TARGET_CLASS ? task_class(state, logits) == label : task_has_label(state, logits, label);
}

static bool write_scores(struct model_work *work, struct buffer *out, struct api_error *error)
{
	struct json_writer writer = {.out = out};
	int32_t count = work->model->text.task.heads.head[0].outputs;
	struct api_score *scores = NULL;
	double *values = NULL;
	char(*names)[24] = NULL;
	bool nested = work->request->is_list || work->request->in_pipeline; /* pipelines list the answers of a single text, too */
	enum status status;
	TRY_GOTO(memory_new(&scores, count, sizeof *scores, "scores"), done);
	TRY_GOTO(memory_new(&values, count, sizeof *values, "scores"), done);
	TRY_GOTO(memory_new(&names, count, sizeof *names, "scores"), done);
	if (nested)
		json_open(&writer, NULL, '[');
	for (int64_t t = 0; t < work->request->count; t++) {
		const float *logits = task_output(&work->outputs, t);
		int32_t listed = 0;
		text_model_scores(&work->model->text, logits, work->request->raw_scores, values);
		for (int32_t i = 0; i < count; i++)
			if (work->request->raw_scores || is_listed(&work->model->text.task.state, logits, i))
				scores[listed++] = (struct api_score){.label = text_model_label(&work->model->text, i, names[i]),
								      .score = values[i]};
		tei_write_predictions(&writer, scores, listed);
	}
	if (nested)
		json_close(&writer);
done:
	free(scores);
	free(values);
	free(names);
	return status == OK || api_fail_internal(error);
}

static bool write_ranks(struct model_work *work, struct buffer *out, struct api_error *error)
{
	struct api_score *scores;
	if (memory_new(&scores, work->request->count, sizeof *scores, "scores") != OK)
		return api_fail_internal(error);
	for (int64_t t = 0; t < work->request->count; t++) {
		double logit = task_output(&work->outputs, t)[0];
		scores[t].score = work->request->raw_scores ? logit : task_sigmoid(logit);
	}
	const struct text_input *texts = work->request->return_text ? work->request->inputs : NULL;
	if (work->request->style == API_COHERE)
		cohere_write_ranks(out, work->model->name, scores, work->request->count, work->request->top_k, texts,
				   work->token_count);
	else
		tei_write_ranks(out, scores, work->request->count, texts);
	free(scores);
	return true;
}

/* Writes the objects that bertc predict prints, in the form that clients of huggingface_hub expect if one asks. */
static bool write_objects(struct model_work *work, struct buffer *out, struct api_error *error)
{
	const struct task_state *state = &work->model->text.task.state;
	const struct task *task = state->task;
	bool in_pipeline = work->request->in_pipeline && work->request->task == API_PREDICT && task->put_pipeline;
	int64_t count = task_answers(&work->inputs.set);
	if (work->request->is_list)
		buffer_char(out, '[');
	for (int64_t i = 0; i < count; i++) {
		if (i > 0)
			buffer_char(out, ',');
		enum status status =
			(in_pipeline ? task->put_pipeline : task->put)(state, &work->inputs.set, &work->outputs, i, out);
		if (status == ERR_USAGE)
			return api_fail(
				error, FAULT_KIND, "parameters",
				"the model's tags do not mark entities: leave out 'parameters' to get the tag of each word");
		if (status != OK)
			return api_fail_internal(error);
	}
	if (work->request->is_list)
		buffer_char(out, ']');
	return true;
}

/* The words of one blank, as the objects of transformers' fill-mask pipeline: each with the whole text. */
static void put_filled(const struct model_work *work, int64_t t, int32_t blank, int32_t *ids, struct buffer *text,
		       struct json_writer *writer)
{
	const struct vocab *vocab = &work->model->text.session.tokenizer.vocab;
	const struct encoder_text *input = &work->inputs.texts[t];
	int64_t size = (work->outputs.starts[t + 1] - work->outputs.starts[t]) / input->row_count;
	int64_t first = work->outputs.starts[t] + blank * size;
	memcpy(ids, input->ids, (size_t)input->count * sizeof *ids);
	json_open(writer, NULL, '[');
	for (int64_t i = first; i < first + size; i++) {
		ids[input->rows[blank]] = work->words[i];
		json_open(writer, NULL, '{');
		json_put_float(writer, "score", work->outputs.values[i]);
		json_put_integer(writer, "token", work->words[i]);
		buffer_clear(text);
		vocab_decode(vocab, &work->words[i], 1, false, text);
		json_put_text(writer, "token_str", buffer_string(text), text->size);
		buffer_clear(text);
		vocab_decode(vocab, ids, input->count, input->row_count == 1, text);
		json_put_text(writer, "sequence", buffer_string(text), text->size);
		json_close(writer);
	}
	json_close(writer);
}

/* A list of words for a text with one blank; otherwise a list of such lists. */
static bool write_filled(const struct model_work *work, struct buffer *out, struct api_error *error)
{
	struct json_writer writer = {.out = out};
	struct buffer text = {0};
	int32_t *ids;
	if (memory_new(&ids, work->model->text.longest, sizeof *ids, "a text") != OK)
		return api_fail_internal(error);
	if (work->request->is_list)
		json_open(&writer, NULL, '[');
	for (int64_t t = 0; t < work->job.count; t++) {
		int32_t blanks = work->inputs.texts[t].row_count;
		if (blanks > 1)
			json_open(&writer, NULL, '[');
		for (int32_t b = 0; b < blanks; b++)
			put_filled(work, t, b, ids, &text, &writer);
		if (blanks > 1)
			json_close(&writer);
	}
	if (work->request->is_list)
		json_close(&writer);
	out->failed = out->failed || text.failed;
	buffer_release(&text);
	free(ids);
	return true;
}

static bool write_blanks(const struct model_work *work, struct buffer *out)
{
	const struct vocab *vocab = &work->model->text.session.tokenizer.vocab;
	struct json_writer writer = {.out = out};
	json_open(&writer, NULL, '{');
	json_open(&writer, "results", '[');
	for (int64_t t = 0; t < work->job.count; t++) {
		int64_t first = work->outputs.starts[t];
		int32_t blanks = work->inputs.texts[t].row_count;
		blanks_put_json(&writer, work->request->inputs[t].text, vocab, blanks,
				(int32_t)((work->outputs.starts[t + 1] - first) / blanks), work->words + first,
				work->outputs.values + first);
	}
	json_close(&writer);
	json_close(&writer);
	return true;
}

bool model_work_write(struct model_work *work, struct buffer *out, struct api_error *error)
{
	if (work->model->text.has_task)
		windows_pool(&work->model->text.task.state, &work->inputs.set, &work->outputs);
	switch (work->request->task) {
	case API_EMBED: return write_vectors(work, out);
	case API_EMBED_ALL: return write_rows(work, out);
	case API_EMBED_SPARSE:
		tei_write_sparse(out, &(struct api_vectors){.values = work->outputs.values,
							    .count = work->job.count,
							    .width = text_model_width(&work->model->text)});
		return true;
	case API_SIMILARITY: return write_similarities(work, out);
	case API_TOKENIZE: return write_tokens(work, out, error);
	case API_DECODE: return write_texts(work, out);
	case API_RERANK: return write_ranks(work, out, error);
	case API_FILL: return work->request->in_pipeline ? write_filled(work, out, error) : write_blanks(work, out);
	case API_ANSWER: return write_objects(work, out, error);
	case API_PREDICT: break;
	}
	return work->model->text.task.state.task->target != TARGET_PARTS ? write_scores(work, out, error)
									 : write_objects(work, out, error);
}
