/* Turns what was computed for a request into its answer. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "infer/blanks.h"
#include "model/pooling.h"
#include "serve/model_work.h"

static bool write_vectors(struct model_work *work, struct buffer *out, struct api_error *error)
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
	if (request->style == API_OPENAI)
		openai_write_embeddings(out, work->model->name, &vectors, request->base64, work->token_count);
	else
		tei_write_embeddings(out, &vectors);
	(void)error;
	return true;
}

static bool write_scores(struct model_work *work, struct buffer *out, struct api_error *error)
{
	struct json_writer writer = {.out = out};
	int32_t count = work->model->text.task.heads.head[0].outputs;
	struct api_score *scores = NULL;
	double *values = NULL;
	char(*names)[24] = NULL;
	enum status status;
	TRY_GOTO(memory_new(&scores, count, sizeof *scores, "scores"), done);
	TRY_GOTO(memory_new(&values, count, sizeof *values, "scores"), done);
	TRY_GOTO(memory_new(&names, count, sizeof *names, "scores"), done);
	if (work->request->is_list)
		json_open(&writer, NULL, '[');
	for (int64_t t = 0; t < work->request->count; t++) {
		text_model_scores(&work->model->text, task_output(&work->outputs, t), work->request->raw_scores, values);
		for (int32_t i = 0; i < count; i++)
			scores[i] = (struct api_score){.label = text_model_label(&work->model->text, i, names[i]),
						       .score = values[i]};
		tei_write_predictions(&writer, scores, count);
	}
	if (work->request->is_list)
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
	tei_write_ranks(out, scores, work->request->count, work->request->return_text ? work->request->inputs : NULL);
	free(scores);
	return true;
}

/* Writes the objects that bertc predict prints. */
static bool write_objects(struct model_work *work, struct buffer *out, struct api_error *error)
{
	const struct task_state *state = &work->model->text.task.state;
	int64_t count = task_answers(&work->inputs.set);
	if (work->request->is_list)
		buffer_char(out, '[');
	for (int64_t i = 0; i < count; i++) {
		if (i > 0)
			buffer_char(out, ',');
		if (state->task->put(state, &work->inputs.set, &work->outputs, i, out) != OK)
			return api_fail_internal(error);
	}
	if (work->request->is_list)
		buffer_char(out, ']');
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
	switch (work->request->task) {
	case API_EMBED: return write_vectors(work, out, error);
	case API_RERANK: return write_ranks(work, out, error);
	case API_FILL: return write_blanks(work, out);
	case API_ANSWER: return write_objects(work, out, error);
	case API_PREDICT: break;
	}
	return work->model->text.task.state.task->target != TARGET_PARTS ? write_scores(work, out, error)
									 : write_objects(work, out, error);
}
