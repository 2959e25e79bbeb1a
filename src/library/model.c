/* Models of the library: infer/text_model.h with a pool of its own and a lock around the computation. Texts are encoded outside
 * the lock, so calls from several threads overlap. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "infer/text_model.h"
#include "library/internal.h"
#include "model/pooling.h"

#define DEFAULT_BATCH_TOKENS 4096
/* Texts encoded before they are computed: bounds memory, and lets calls from other threads run in between. */
#define SLICE_TEXTS 1024

struct bertc_model {
	char *path;
	pid_t process; /* the one in which the pool's threads run */
	struct pool *pool;
	struct text_model text;
	bool is_open;
	pthread_mutex_t lock; /* held while computing */
	struct encoder_answers answers;
};

struct bertc_answers {
	int64_t count, capacity;
	size_t *starts; /* [count]: where each answer, NUL-terminated, begins in `text` */
	struct buffer text;
};

struct bertc_states {
	int64_t count, id_capacity, value_capacity;
	int64_t *starts;
	int32_t *ids;
	float *values;
};

/* ---- Opening ---- */

static enum status check_model_options(const bertc_model_options *options)
{
	TRY(library_not_negative(options->threads, "threads"));
	TRY(library_not_negative(options->max_length, "max_length"));
	TRY(library_not_negative(options->batch_tokens, "batch_tokens"));
	if (options->device && option_word(DEVICE_WORDS, options->device) < 0)
		return error_set(ERR_USAGE, "unknown device '%.40s': use cpu or cuda", options->device);
	if (options->precision && option_word(PRECISION_WORDS, options->precision) < 0)
		return error_set(ERR_USAGE, "unknown precision '%.40s': use fp32, tf32, bf16, fp16, fp8, or int8",
				 options->precision);
	if (options->max_length > 0 && options->max_length < SHORTEST_LENGTH)
		return error_set(ERR_USAGE, "max_length is %d; it must be at least %d", options->max_length, SHORTEST_LENGTH);
	return OK;
}

static enum status open_model(bertc_model *model, const char *path, const bertc_model_options *options)
{
	const struct text_model_settings settings = {
		.device = {.device = options->device ? (unsigned)option_word(DEVICE_WORDS, options->device) : DEVICE_FASTEST,
			   .precision = options->precision ? (unsigned)option_word(PRECISION_WORDS, options->precision)
							   : PRECISION_FASTEST,
			   .threads = options->threads},
		.batch_tokens = options->batch_tokens > 0 ? options->batch_tokens : DEFAULT_BATCH_TOKENS,
		.max_seq_length = options->max_length,
		.no_blanks = true,
		.tool = "the library",
	};
	model->process = getpid();
	model->path = strdup(path);
	if (!model->path)
		return error_set(ERR_RESOURCE, "not enough memory for a model");
	TRY(pool_create_unpinned(&model->pool, options->threads));
	model->is_open = true;
	return text_model_open(&model->text, model->path, model->pool, &settings);
}

static enum status open_at(const char *path, const bertc_model_options *given, bertc_model **out)
{
	bertc_model_options options;
	bertc_model *model;
	TRY(library_given(out, "out"));
	*out = NULL;
	TRY(library_given(path, "path"));
	TRY(library_options(&options, sizeof options, given, "bertc_model_options"));
	TRY(check_model_options(&options));
	TRY(memory_new(&model, 1, sizeof *model, "model"));
	pthread_mutex_init(&model->lock, NULL);
	enum status status = open_model(model, path, &options);
	if (status != OK) {
		/* Closing must not replace the message. */
		const struct error error = *error_last();
		bertc_model_close(model);
		return error_restore(&error);
	}
	*out = model;
	return OK;
}

BERTC_API bertc_status bertc_model_open(const char *path, const bertc_model_options *options, bertc_model **out,
					bertc_error *error)
{
	return library_leave(open_at(path, options, out), error);
}

BERTC_API void bertc_model_close(bertc_model *model)
{
	if (!model)
		return;
	/* In a forked child, the threads that closing would need do not exist, so the memory is left alone. */
	if (model->process != getpid())
		return;
	encoder_answers_release(&model->answers);
	if (model->is_open)
		text_model_close(&model->text);
	pool_free(model->pool);
	pthread_mutex_destroy(&model->lock);
	free(model->path);
	free(model);
}

/* ---- Properties ---- */

BERTC_API const char *bertc_model_task(const bertc_model *model)
{
	return model && model->text.has_task ? model->text.task.state.task->name : NULL;
}

BERTC_API const char *bertc_model_description(const bertc_model *model)
{
	return model ? model->text.session.backend->description : NULL;
}

BERTC_API int32_t bertc_model_max_length(const bertc_model *model)
{
	return model ? model->text.longest : 0;
}

BERTC_API int32_t bertc_model_hidden_size(const bertc_model *model)
{
	return model ? model->text.hidden : 0;
}

BERTC_API int32_t bertc_model_embedding_size(const bertc_model *model)
{
	if (!model || !model->text.makes_vectors)
		return 0;
	int32_t width = (int32_t)text_model_width(&model->text), said = model->text.sentences.truncate_dim;
	return said > 0 && said < width ? said : width;
}

BERTC_API int32_t bertc_model_label_count(const bertc_model *model)
{
	return model && model->text.has_task ? (int32_t)model->text.task.state.labels.count : 0;
}

BERTC_API const char *bertc_model_label(const bertc_model *model, int32_t index)
{
	if (index < 0 || index >= bertc_model_label_count(model))
		return NULL;
	return model->text.task.state.labels.labels[index].name;
}

BERTC_API int32_t bertc_model_score_count(const bertc_model *model)
{
	if (!model || !model->text.has_task || model->text.task.state.task->target == TARGET_PARTS)
		return 0;
	return model->text.task.heads.head[0].outputs;
}

/* ---- Calls ---- */

/* The texts of a slice as inputs, and their encoding. */
struct slice {
	struct text_input inputs[SLICE_TEXTS];
	int64_t count;
	struct encoded_inputs encoded;
};

static enum status check_call(const bertc_model *model, const char *const *texts, const char *const *pairs, int64_t count)
{
	TRY(library_given(model, "model"));
	TRY(library_texts(texts, count, "texts", false));
	TRY(library_texts(pairs, count, "pairs", true));
	if (model->process == getpid())
		return OK;
	return error_hinted(error_set(ERR_STATE, "'%s' was opened before fork(), and its threads are in the parent", model->path),
			    "open the model in the child process");
}

static void fill_slice(struct slice *slice, const char *const *texts, const char *const *pairs, int64_t first, int64_t count)
{
	slice->count = count - first < SLICE_TEXTS ? count - first : SLICE_TEXTS;
	for (int64_t i = 0; i < slice->count; i++)
		slice->inputs[i] = (struct text_input){.text = texts[first + i], .pair = pairs ? pairs[first + i] : NULL};
}

/* An error in a slice numbers texts within the slice; `first` texts came before it. */
static enum status name_text(enum status status, int64_t first)
{
	long long number;
	int size = 0;
	const char *message = error_last()->message;
	if (status != ERR_DATA || sscanf(message, "text %lld%n", &number, &size) != 1)
		return status;
	struct error error = *error_last();
	snprintf(error.message, sizeof error.message, "texts[%lld]%s", number - 1 + first, message + size);
	return error_restore(&error);
}

/* Computes a slice into model->answers. The caller holds the lock, and takes what it needs from there before releasing it. */
static enum status run(bertc_model *model, const struct encoder_wish *wish, const struct encoded_inputs *encoded)
{
	return encoder_run(model->text.encoder, wish, encoded->texts, encoded->count, &model->answers);
}

static enum status check_room(size_t given, int64_t rows, int64_t width)
{
	if (given == (size_t)(rows * width))
		return OK;
	return error_set(ERR_USAGE, "out_size is %zu, and %lld texts give %lld numbers each, %lld in all", given, (long long)rows,
			 (long long)width, (long long)(rows * width));
}

/* ---- Embeddings ---- */

struct embedding {
	struct encoder_wish wish;
	struct encoding_rules rules;
	int64_t width, dimensions; /* values computed, and returned */
	bool normalizes;           /* the returned vectors */
};

static enum status choose_pooling(const bertc_model *model, const char *name, unsigned *out)
{
	*out = model->text.pooling;
	if (!name)
		return OK;
	*out = strcmp(name, "mean") == 0  ? POOLING_MEAN
	       : strcmp(name, "cls") == 0 ? POOLING_CLS
	       : strcmp(name, "max") == 0 ? POOLING_MAX
					  : 0;
	return *out ? OK : error_set(ERR_USAGE, "unknown pooling '%.40s': use mean, cls, or max", name);
}

/* What a model that makes no vectors is for. */
static const char *purpose_of(const bertc_model *model)
{
	return model->text.weighs_words ? "weights of words (SPLADE)" : bertc_model_task(model);
}

static enum status settle_embedding(const bertc_model *model, const bertc_embed_options *options, struct embedding *out)
{
	const struct sentence_folder *folder = &model->text.sentences;
	if (!model->text.makes_vectors)
		return error_set(ERR_USAGE, "'%s' is a model for %s and makes no embeddings", model->path, purpose_of(model));
	if (options->normalize < BERTC_NORMALIZE_AS_IN_FOLDER || options->normalize > BERTC_DO_NOT_NORMALIZE)
		return error_set(ERR_USAGE, "normalize is %d", options->normalize);
	if (options->prompt && options->prompt_name)
		return error_set(ERR_USAGE, "prompt and prompt_name both set a prompt: give one of them");
	/* A pooling that is given replaces the folder's, with whatever that one leaves out. */
	*out = (struct embedding){.wish = {.answer = ENCODER_VECTORS},
				  .rules = {.truncates = !options->refuse_long, .pools_prompt = options->pooling != NULL}};
	TRY(choose_pooling(model, options->pooling, &out->wish.pooling));
	TRY(text_model_prompt(&model->text, options->prompt_name, &out->rules.prompt));
	if (options->prompt)
		out->rules.prompt = options->prompt;
	out->width = (int64_t)model->text.hidden * pooling_count(out->wish.pooling);
	out->wish.normalize = folder->found && folder->normalize && options->normalize == BERTC_NORMALIZE_AS_IN_FOLDER;
	out->normalizes = options->normalize == BERTC_NORMALIZE;
	out->dimensions = options->dimensions > 0 ? options->dimensions : folder->truncate_dim;
	if (out->dimensions == 0 || (options->dimensions == 0 && out->dimensions > out->width))
		out->dimensions = out->width;
	if (options->dimensions < 0 || out->dimensions > out->width)
		return error_set(ERR_USAGE, "dimensions is %d, and an embedding has %lld numbers", options->dimensions,
				 (long long)out->width);
	return OK;
}

static enum status embed_slice(bertc_model *model, const struct embedding *embedding, struct slice *slice, float *out)
{
	enum status status;
	TRY(text_model_encode_vectors(&model->text, slice->inputs, slice->count, &embedding->rules, &slice->encoded));
	pthread_mutex_lock(&model->lock);
	status = run(model, &embedding->wish, &slice->encoded);
	for (int64_t i = 0; i < slice->count && status == OK; i++)
		memcpy(out + i * embedding->dimensions, model->answers.values + model->answers.starts[i],
		       (size_t)embedding->dimensions * sizeof *out);
	pthread_mutex_unlock(&model->lock);
	for (int64_t i = 0; i < slice->count && status == OK && embedding->normalizes; i++)
		pooling_normalize(out + i * embedding->dimensions, embedding->dimensions);
	return status;
}

static enum status embed(bertc_model *model, const char *const *texts, int64_t count, const bertc_embed_options *given,
			 float *out, size_t out_size)
{
	bertc_embed_options options;
	struct embedding embedding;
	struct slice *slice;
	enum status status = OK;
	TRY(check_call(model, texts, NULL, count));
	TRY(library_options(&options, sizeof options, given, "bertc_embed_options"));
	TRY(settle_embedding(model, &options, &embedding));
	TRY(check_room(out_size, count, embedding.dimensions));
	if (count > 0)
		TRY(library_given(out, "out"));
	TRY(memory_new(&slice, 1, sizeof *slice, "texts"));
	for (int64_t first = 0; first < count && status == OK; first += slice->count) {
		fill_slice(slice, texts, NULL, first, count);
		status = name_text(embed_slice(model, &embedding, slice, out + first * embedding.dimensions), first);
		encoded_inputs_release(&model->text, &slice->encoded);
	}
	free(slice);
	return status;
}

BERTC_API bertc_status bertc_model_embed(bertc_model *model, const char *const *texts, int64_t count,
					 const bertc_embed_options *options, float *out, size_t out_size, bertc_error *error)
{
	return library_leave(embed(model, texts, count, options, out, out_size), error);
}

/* ---- Predictions ---- */

static enum status needs_task(const bertc_model *model)
{
	if (model->text.has_task)
		return OK;
	return error_hinted(error_set(ERR_USAGE, "'%s' is not a model for a task", model->path),
			    "train one from it with bertc finetune; a model without a task makes embeddings");
}

/* Receives the model's outputs for a slice, outside the lock; `first` texts came before it. */
struct prediction_taker {
	enum status (*take)(void *context, const struct slice *slice, const struct task_outputs *outputs, int64_t first);
	void *context;
};

static enum status predict_slice(bertc_model *model, const bertc_predict_options *options, struct slice *slice,
				 struct task_outputs *outputs)
{
	const struct encoder_wish wish = {.answer = ENCODER_HEAD};
	const struct encoding_rules rules = {.truncates = !options->refuse_long};
	struct labeled_set *set = &slice->encoded.set.encoded;
	enum status status = OK;
	TRY(text_model_encode_task(&model->text, slice->inputs, slice->count, &rules, &slice->encoded));
	TRY(task_outputs_create(outputs, set, &model->text.task.heads.head[0]));
	if (slice->encoded.count == 0) /* no text contains a word */
		return OK;
	pthread_mutex_lock(&model->lock);
	status = run(model, &wish, &slice->encoded);
	/* The sequences are in the order of the examples. */
	BUG_IF(status == OK && outputs->starts[outputs->count] != model->answers.starts[slice->encoded.count]);
	if (status == OK)
		memcpy(outputs->values, model->answers.values, (size_t)outputs->starts[outputs->count] * sizeof *outputs->values);
	pthread_mutex_unlock(&model->lock);
	if (status == OK)
		windows_pool(&model->text.task.state, &slice->encoded.set, outputs);
	return status;
}

static enum status predict_all(bertc_model *model, const char *const *texts, const char *const *pairs, int64_t count,
			       const bertc_predict_options *options, const struct prediction_taker *taker)
{
	struct slice *slice;
	enum status status = OK;
	TRY(memory_new(&slice, 1, sizeof *slice, "texts"));
	for (int64_t first = 0; first < count && status == OK; first += slice->count) {
		struct task_outputs outputs = {0};
		fill_slice(slice, texts, pairs, first, count);
		status = name_text(predict_slice(model, options, slice, &outputs), first);
		if (status == OK)
			status = taker->take(taker->context, slice, &outputs, first);
		task_outputs_release(&outputs);
		encoded_inputs_release(&model->text, &slice->encoded);
	}
	free(slice);
	return status;
}

struct score_room {
	const bertc_model *model;
	bool raw;
	int64_t width;
	float *out;
	double *row; /* [width] */
};

static enum status take_scores(void *context, const struct slice *slice, const struct task_outputs *outputs, int64_t first)
{
	const struct score_room *room = context;
	for (int64_t i = 0; i < slice->count; i++) {
		text_model_scores(&room->model->text, task_output(outputs, i), room->raw, room->row);
		for (int64_t k = 0; k < room->width; k++)
			room->out[(first + i) * room->width + k] = (float)room->row[k];
	}
	return OK;
}

static enum status score(bertc_model *model, const char *const *texts, const char *const *pairs, int64_t count,
			 const bertc_predict_options *given, float *out, size_t out_size)
{
	bertc_predict_options options;
	struct score_room room = {.model = model, .out = out};
	TRY(check_call(model, texts, pairs, count));
	TRY(library_options(&options, sizeof options, given, "bertc_predict_options"));
	TRY(needs_task(model));
	room.width = bertc_model_score_count(model);
	if (room.width == 0)
		return error_hinted(error_set(ERR_USAGE, "'%s' is a model for %s, which has no scores of a whole text",
					      model->path, bertc_model_task(model)),
				    "call predict for its answer to each text");
	room.raw = options.raw != 0;
	TRY(check_room(out_size, count, room.width));
	if (count > 0)
		TRY(library_given(out, "out"));
	TRY(memory_new(&room.row, room.width, sizeof *room.row, "scores"));
	enum status status = predict_all(model, texts, pairs, count, &options, &(struct prediction_taker){take_scores, &room});
	free(room.row);
	return status;
}

BERTC_API bertc_status bertc_model_scores(bertc_model *model, const char *const *texts, const char *const *pairs, int64_t count,
					  const bertc_predict_options *options, float *out, size_t out_size, bertc_error *error)
{
	return library_leave(score(model, texts, pairs, count, options, out, out_size), error);
}

struct answer_room {
	const bertc_model *model;
	bertc_answers *out;
};

static enum status take_answers(void *context, const struct slice *slice, const struct task_outputs *outputs, int64_t first)
{
	const struct answer_room *room = context;
	const struct task_state *state = &room->model->text.task.state;
	const struct task_set *set = &slice->encoded.set;
	(void)first;
	BUG_IF(task_answers(set) != slice->count);
	for (int64_t i = 0; i < slice->count; i++) {
		TRY(memory_grow(&room->out->starts, &room->out->capacity, room->out->count + 1, sizeof *room->out->starts,
				"answers"));
		room->out->starts[room->out->count++] = room->out->text.size;
		TRY(state->task->put(state, set, outputs, i, &room->out->text));
		buffer_char(&room->out->text, '\0');
	}
	return buffer_status(&room->out->text);
}

static enum status predict(bertc_model *model, const char *const *texts, const char *const *pairs, int64_t count,
			   const bertc_predict_options *given, bertc_answers **out)
{
	bertc_predict_options options;
	struct answer_room room = {.model = model};
	TRY(library_given(out, "out"));
	*out = NULL;
	TRY(check_call(model, texts, pairs, count));
	TRY(library_options(&options, sizeof options, given, "bertc_predict_options"));
	TRY(needs_task(model));
	if (options.raw)
		return error_set(ERR_USAGE, "raw scores are not answers: use bertc_model_scores");
	TRY(memory_new(&room.out, 1, sizeof *room.out, "answers"));
	enum status status = predict_all(model, texts, pairs, count, &options, &(struct prediction_taker){take_answers, &room});
	if (status != OK)
		bertc_answers_free(room.out);
	else
		*out = room.out;
	return status;
}

BERTC_API bertc_status bertc_model_predict(bertc_model *model, const char *const *texts, const char *const *pairs, int64_t count,
					   const bertc_predict_options *options, bertc_answers **out, bertc_error *error)
{
	return library_leave(predict(model, texts, pairs, count, options, out), error);
}

BERTC_API void bertc_answers_free(bertc_answers *answers)
{
	if (!answers)
		return;
	free(answers->starts);
	buffer_release(&answers->text);
	free(answers);
}

BERTC_API int64_t bertc_answers_count(const bertc_answers *answers)
{
	return answers ? answers->count : 0;
}

BERTC_API const char *bertc_answers_json(const bertc_answers *answers, int64_t index)
{
	return answers && index >= 0 && index < answers->count ? answers->text.data + answers->starts[index] : NULL;
}

/* ---- Hidden states ---- */

static enum status encode_slice(bertc_model *model, const struct encoder_wish *wish, const struct encoding_rules *rules,
				struct slice *slice, int64_t first, bertc_states *out)
{
	int64_t hidden = model->text.hidden, at = out->starts[first], count = at;
	enum status status;
	TRY(text_model_encode_vectors(&model->text, slice->inputs, slice->count, rules, &slice->encoded));
	for (int64_t i = 0; i < slice->count; i++)
		count += slice->encoded.texts[i].count;
	TRY(memory_grow(&out->ids, &out->id_capacity, count, sizeof *out->ids, "hidden states"));
	TRY(memory_grow(&out->values, &out->value_capacity, count * hidden, sizeof *out->values, "hidden states"));
	pthread_mutex_lock(&model->lock);
	status = run(model, wish, &slice->encoded);
	if (status == OK)
		memcpy(out->values + at * hidden, model->answers.values, (size_t)((count - at) * hidden) * sizeof *out->values);
	pthread_mutex_unlock(&model->lock);
	for (int64_t i = 0; i < slice->count; i++) {
		const struct encoder_text *text = &slice->encoded.texts[i];
		memcpy(out->ids + at, text->ids, (size_t)text->count * sizeof *out->ids);
		at += text->count;
		out->starts[first + i + 1] = at;
	}
	return status;
}

static enum status encode_all(bertc_model *model, const struct encoder_wish *wish, const struct encoding_rules *rules,
			      const char *const *texts, int64_t count, bertc_states *out)
{
	struct slice *slice;
	enum status status = OK;
	TRY(memory_new(&slice, 1, sizeof *slice, "texts"));
	for (int64_t first = 0; first < count && status == OK; first += slice->count) {
		fill_slice(slice, texts, NULL, first, count);
		status = name_text(encode_slice(model, wish, rules, slice, first, out), first);
		encoded_inputs_release(&model->text, &slice->encoded);
	}
	free(slice);
	return status;
}

static enum status encode(bertc_model *model, const char *const *texts, int64_t count, const bertc_encode_states_options *given,
			  bertc_states **out)
{
	bertc_encode_states_options options;
	bertc_states *states;
	enum status status;
	TRY(library_given(out, "out"));
	*out = NULL;
	TRY(check_call(model, texts, NULL, count));
	TRY(library_options(&options, sizeof options, given, "bertc_encode_states_options"));
	if (!model->text.makes_vectors)
		return error_set(ERR_USAGE, "'%s' is a model for %s; only a model without a task gives hidden states",
				 model->path, purpose_of(model));
	int32_t layers = model->text.session.model->config.num_hidden_layers;
	int32_t layer = options.layer > 0 ? options.layer : options.layer == 0 ? layers : layers + 1 + options.layer;
	if (layer < 0 || layer > layers)
		return error_set(ERR_USAGE, "layer is %d, and the model has %d layers", options.layer, layers);
	const struct encoder_wish wish = {.answer = ENCODER_ROWS, .layers = &layer, .layer_count = 1};
	const struct encoding_rules rules = {.truncates = !options.refuse_long};
	TRY(memory_new(&states, 1, sizeof *states, "hidden states"));
	states->count = count;
	TRY_GOTO(memory_new(&states->starts, count + 1, sizeof *states->starts, "hidden states"), done);
	status = encode_all(model, &wish, &rules, texts, count, states);
done:
	if (status != OK)
		bertc_states_free(states);
	else
		*out = states;
	return status;
}

BERTC_API bertc_status bertc_model_encode(bertc_model *model, const char *const *texts, int64_t count,
					  const bertc_encode_states_options *options, bertc_states **out, bertc_error *error)
{
	return library_leave(encode(model, texts, count, options, out), error);
}

BERTC_API void bertc_states_free(bertc_states *states)
{
	if (!states)
		return;
	free(states->starts);
	free(states->ids);
	free(states->values);
	free(states);
}

BERTC_API int64_t bertc_states_count(const bertc_states *states)
{
	return states ? states->count : 0;
}

BERTC_API const int64_t *bertc_states_starts(const bertc_states *states)
{
	return states ? states->starts : NULL;
}

BERTC_API const int32_t *bertc_states_ids(const bertc_states *states)
{
	return states ? states->ids : NULL;
}

BERTC_API const float *bertc_states_values(const bertc_states *states)
{
	return states ? states->values : NULL;
}
