/* Encodes a slice of texts, computes it, and takes what is wanted of each. */
#include "infer/text_pass.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/stop.h"
#include "model/pooling.h"

#define SLICE_TEXTS 1024

/* The number of numbers of a vector. */
static int64_t width_of(const struct text_model *model)
{
	int64_t width = text_model_width(model), said = model->sentences.truncate_dim;
	return said > 0 && said < width ? said : width;
}

/* An error numbers texts within the slice, before which there were `first`. */
static enum status name_text(enum status status, int64_t first)
{
	long long number;
	int size = 0;
	if (status != ERR_DATA || sscanf(error_last()->message, "text %lld%n", &number, &size) != 1)
		return status;
	struct error error = *error_last();
	snprintf(error.message, sizeof error.message, "text %lld%s", number + first, error_last()->message + size);
	return error_restore(&error);
}

/* What a pass does with the answers to a slice, whose first text is number `first`. */
typedef enum status slice_taker(const struct text_model *model, const struct encoder_answers *answers, int64_t first,
				int64_t count, void *out);

static enum status run_slice(const struct text_pass *pass, const struct encoder_wish *wish, const struct text_input *inputs,
			     int64_t count, struct encoder_answers *answers)
{
	struct text_model *model = pass->model;
	const struct encoding_rules rules = {.truncates = true, .prompt = pass->prompt && *pass->prompt ? pass->prompt : NULL};
	struct encoded_inputs encoded = {0};
	enum status status = !model->has_task ? text_model_encode_vectors(model, inputs, count, &rules, &encoded)
					      : text_model_encode_task(model, inputs, count, &rules, &encoded);
	if (status == OK)
		status = encoder_run(model->encoder, wish, encoded.texts, encoded.count, answers);
	encoded_inputs_release(model, &encoded);
	return status;
}

static enum status run(const struct text_pass *pass, const struct encoder_wish *wish, const struct text_input *inputs,
		       int64_t count, slice_taker *take, void *out)
{
	struct encoder_answers answers = {0};
	struct progress progress;
	enum status status = OK;
	if (pass->title)
		progress_start(&progress, pass->title, 0, count, "texts");
	for (int64_t first = 0; first < count && status == OK; first += SLICE_TEXTS) {
		int64_t some = count - first < SLICE_TEXTS ? count - first : SLICE_TEXTS;
		status = stop_check();
		if (status == OK)
			status = name_text(run_slice(pass, wish, inputs + first, some, &answers), first);
		if (status == OK)
			status = take(pass->model, &answers, first, some, out);
		if (pass->title)
			progress_update(&progress, first + some, NULL);
	}
	if (pass->title)
		progress_finish(&progress);
	encoder_answers_release(&answers);
	return status;
}

static enum status take_vectors(const struct text_model *model, const struct encoder_answers *answers, int64_t first,
				int64_t count, void *out)
{
	int64_t width = width_of(model);
	for (int64_t i = 0; i < count; i++) {
		float *vector = (float *)out + (first + i) * width;
		memcpy(vector, answers->values + answers->starts[i], (size_t)width * sizeof *vector);
	}
	return OK;
}

static enum status take_weights(const struct text_model *model, const struct encoder_answers *answers, int64_t first,
				int64_t count, void *out)
{
	(void)first;
	for (int64_t i = 0; i < count; i++)
		TRY(sparse_vectors_add(out, answers->values + answers->starts[i], text_model_width(model)));
	return OK;
}

enum status text_vectors_make(struct text_vectors *out, const struct text_pass *pass, const char *const *texts, int64_t count)
{
	const struct text_model *model = pass->model;
	const bool is_sparse = model->weighs_words;
	const struct encoder_wish wish = {.answer = is_sparse ? ENCODER_HEAD : ENCODER_VECTORS,
					  .pooling = model->pooling,
					  .normalize = model->sentences.found && model->sentences.normalize};
	int64_t width = width_of(model);
	struct text_input *inputs;
	if (!is_sparse)
		TRY(memory_new(&out->values, count, (size_t)width * sizeof *out->values, "vectors"));
	TRY(memory_new(&inputs, count, sizeof *inputs, "texts"));
	for (int64_t i = 0; i < count; i++)
		inputs[i].text = texts[i];
	out->vectors = (struct vectors){.values = out->values, .width = width, .count = count};
	enum status status = is_sparse ? run(pass, &wish, inputs, count, take_weights, &out->sparse)
				       : run(pass, &wish, inputs, count, take_vectors, out->values);
	free(inputs);
	return status;
}

enum status text_vectors_map(struct text_vectors *out, const char *path, int64_t rows, const char *what, const int32_t *places,
			     int64_t count)
{
	TRY(npy_file_open(&out->file, path));
	if (out->file.rows != rows)
		return error_hinted(error_set(ERR_DATA, "'%s' has %" PRId64 " vectors, and there are %" PRId64 " %s", path,
					      out->file.rows, rows, what),
				    "make them of the same file: bertc embed --model FOLDER FILE --out vectors.npy");
	out->vectors = (struct vectors){.values = out->file.values, .width = out->file.columns, .count = count, .rows = places};
	return OK;
}

void text_vectors_release(struct text_vectors *vectors)
{
	npy_file_close(&vectors->file);
	sparse_vectors_release(&vectors->sparse);
	free(vectors->values);
	*vectors = (struct text_vectors){.values = NULL};
}

static enum status take_scores(const struct text_model *model, const struct encoder_answers *answers, int64_t first,
			       int64_t count, void *out)
{
	for (int64_t i = 0; i < count; i++)
		text_model_scores(model, answers->values + answers->starts[i], false, (double *)out + first + i);
	return OK;
}

enum status text_pass_scores(const struct text_pass *pass, const struct text_input *pairs, int64_t count, double *out)
{
	const struct encoder_wish wish = {.answer = ENCODER_HEAD};
	return run(pass, &wish, pairs, count, take_scores, out);
}

enum status text_pass_check_reranker(const struct text_model *model, const char *folder)
{
	if (model->has_task && model->task.state.task->input == TASK_INPUT_PAIR && model->task.heads.head[0].outputs == 1)
		return OK;
	return error_hinted(error_set(ERR_USAGE, "'%s' does not give one number for a pair of texts", folder),
			    "a reranker does: bertc finetune --task reranking trains one");
}
