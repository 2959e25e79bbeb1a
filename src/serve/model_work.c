/* Finds a request's model, encodes the inputs within limits, and decodes the outputs. */
#include "serve/model_work.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* ---- Finding a request's model ---- */

static void list_names(const struct models *models, int task, struct buffer *out)
{
	for (int i = 0; i < models->count; i++)
		if (task < 0 || model_can(&models->models[i], (enum api_task)task))
			buffer_format(out, "%s%s", out->size > 0 ? ", " : "", models->models[i].name);
}

static struct served_model *named_model(const struct models *models, const struct api_request *request, struct api_error *error)
{
	struct buffer names = {0};
	for (int i = 0; i < models->count; i++) {
		struct served_model *model = &models->models[i];
		if (strcmp(model->name, request->model) != 0)
			continue;
		if (model_can(model, request->task))
			return model;
		api_fail(error, FAULT_KIND, "model", "the model '%s' cannot %s", model->name, api_task_name(request->task));
		return NULL;
	}
	list_names(models, -1, &names);
	api_fail(error, FAULT_MODEL, "model", "there is no model '%.100s' here; this server has %s", request->model,
		 buffer_string(&names));
	buffer_release(&names);
	return NULL;
}

/* If the request names no model, exactly one must be able to answer: a guess might not be what the client means. */
static struct served_model *only_model(const struct models *models, enum api_task task, struct api_error *error)
{
	struct served_model *found = NULL;
	struct buffer names = {0};
	for (int i = 0; i < models->count; i++) {
		struct served_model *model = &models->models[i];
		if (!model_can(model, task))
			continue;
		if (found) {
			list_names(models, task, &names);
			api_fail(error, FAULT_FIELD, "model", "several models can %s: name one in 'model': %s",
				 api_task_name(task), buffer_string(&names));
			buffer_release(&names);
			return NULL;
		}
		found = model;
	}
	if (!found)
		api_fail(error, FAULT_KIND, "model", "no model here can %s", api_task_name(task));
	return found;
}

/* ---- Encoding ---- */

/* What the request calls its inputs. */
static const char *inputs_of(const struct api_request *request)
{
	return request->style == API_OPENAI ? "input" : request->style == API_COHERE ? "documents" : "inputs";
}

/* Distinguishes errors in the client's inputs from our own. */
static bool fail_encoding(const struct api_request *request, enum status status, struct api_error *error)
{
	if (status == ERR_DATA || status == ERR_USAGE)
		return api_fail(error, FAULT_INPUT, inputs_of(request), "%s", error_last()->message);
	return api_fail_internal(error);
}

/* Encodes a request for vectors or blanks. */
static bool encode_texts(struct model_work *work, bool truncates, struct api_error *error)
{
	const struct api_request *request = work->request;
	const struct text_model *model = &work->model->text;
	struct encoding_rules rules = {.truncates = truncates, .cuts_left = request->cut_left};
	enum status status;
	if (request->task == API_FILL) {
		status = text_model_encode_blanks(model, request->inputs, request->count, &work->inputs);
	} else {
		status = text_model_prompt(model, request->prompt_name, &rules.prompt);
		if (status != OK)
			return api_fail(error, FAULT_FIELD, "prompt_name", "%s", error_last()->message);
		status = text_model_encode_vectors(model, request->inputs, request->count, &rules, &work->inputs);
	}
	return status == OK || fail_encoding(request, status, error);
}

static bool encode_task(struct model_work *work, bool truncates, struct api_error *error)
{
	const struct api_request *request = work->request;
	struct text_model *model = &work->model->text;
	const struct encoding_rules rules = {.truncates = truncates};
	enum status status = text_model_encode_task(model, request->inputs, request->count, &rules, &work->inputs);
	if (status != OK)
		return fail_encoding(request, status, error);
	/* There is nothing to compute, and the batcher takes no empty jobs. */
	if (work->inputs.count == 0)
		return api_fail(error, FAULT_EMPTY, request->task == API_ANSWER ? "context" : inputs_of(request),
				"there is nothing to answer: the text holds no words");
	status = task_outputs_create(&work->outputs, &work->inputs.set.encoded, &model->task.heads.head[0]);
	return status == OK || api_fail_internal(error);
}

/* The dimensions are those requested, otherwise those of the sentence-transformers folder if the vectors have as many. */
static bool find_dimensions(struct model_work *work, struct api_error *error)
{
	int64_t width = text_model_width(&work->model->text);
	if (work->request->dimensions > width)
		return api_fail(error, FAULT_FIELD, "dimensions", "'dimensions' is %lld, and the model's embeddings have %lld",
				(long long)work->request->dimensions, (long long)width);
	int64_t said = work->model->text.sentences.truncate_dim;
	work->dimensions = work->request->dimensions > 0 ? work->request->dimensions : said > 0 && said < width ? said : width;
	return true;
}

/* A lower bound on the tokens of a text: each word is at least one. */
static int64_t least_tokens(const char *text)
{
	int64_t count = 0;
	bool in_word = false;
	for (; text && *text; text++) {
		bool is_space = strchr(" \t\r\n", *text) != NULL;
		count += !is_space && !in_word;
		in_word = !is_space;
	}
	return count;
}

static bool too_many_tokens(const struct api_request *request, int64_t tokens, const char *more, const struct work_limits *limits,
			    struct api_error *error)
{
	return api_fail(error, FAULT_INPUT, inputs_of(request),
			"the request comes to %s%lld tokens, and this service takes %lld at a time: send it in parts", more,
			(long long)tokens, (long long)limits->tokens);
}

/* Checks the size before anything is tokenized. */
static bool check_size(const struct model_work *work, const struct work_limits *limits, struct api_error *error)
{
	const struct api_request *request = work->request;
	const struct text_model *model = &work->model->text;
	int64_t bytes = 0, tokens = 0;
	for (int64_t i = 0; i < request->count; i++) {
		const struct text_input *input = &request->inputs[i];
		bytes += (input->text ? (int64_t)strlen(input->text) : 0) + (input->pair ? (int64_t)strlen(input->pair) : 0);
		if (bytes > limits->bytes)
			return api_fail(
				error, FAULT_INPUT, inputs_of(request),
				"the texts come to more than %lld bytes, a query counted with each of its texts: send them in "
				"parts, or a shorter query",
				(long long)limits->bytes);
		int64_t least = input->ids ? input->id_count : least_tokens(input->text) + least_tokens(input->pair);
		tokens += least < model->longest || text_model_takes_windows(model) ? least : model->longest;
	}
	return tokens <= limits->tokens || too_many_tokens(request, tokens, "at least ", limits, error);
}

/* The words that a request's blanks may get in all: each is some 70 bytes of the answer. */
#define FILLED_MOST 100000

static bool check_blanks(const struct model_work *work, struct api_error *error)
{
	const struct api_request *request = work->request;
	int64_t blanks = 0;
	for (int64_t i = 0; i < work->inputs.count; i++)
		blanks += work->inputs.texts[i].row_count;
	if (request->task != API_FILL || blanks * request->top_k <= FILLED_MOST)
		return true;
	return api_fail(
		error, FAULT_INPUT, inputs_of(request),
		"the %lld blanks of the request with %lld words for each come to more than %d words: send it in parts, or a "
		"smaller 'top_k'",
		(long long)blanks, (long long)request->top_k, FILLED_MOST);
}

/* The numbers that the vectors of a request's tokens, or the weights of words of its texts, may have in all: they are kept until
 * they are sent. */
#define NUMBERS_MOST 8000000

static bool check_numbers(const struct model_work *work, struct api_error *error)
{
	const struct text_model *model = &work->model->text;
	enum api_task task = work->request->task;
	int64_t numbers = task == API_EMBED_ALL      ? work->token_count * model->hidden
			  : task == API_EMBED_SPARSE ? work->job.count * text_model_width(model)
						     : 0;
	if (numbers <= NUMBERS_MOST)
		return true;
	return api_fail(error, FAULT_INPUT, inputs_of(work->request),
			"the answer to the request's %lld texts would have more than %d numbers: send them in parts",
			(long long)work->job.count, NUMBERS_MOST);
}

bool model_work_make(struct model_work *out, const struct models *models, const struct api_request *request, bool truncates,
		     const struct work_limits *limits, struct api_error *error)
{
	*out = (struct model_work){.request = request};
	out->model = request->model ? named_model(models, request, error) : only_model(models, request->task, error);
	if (!out->model)
		return false;
	if (request->truncate != AS_SET)
		truncates = request->truncate == YES;
	bool of_task = out->model->text.has_task;
	if ((request->task == API_EMBED || request->task == API_SIMILARITY) && !find_dimensions(out, error))
		return false;
	if (!check_size(out, limits, error))
		return false;
	if (request->task == API_TOKENIZE || request->task == API_DECODE)
		return true;
	if (!(of_task ? encode_task(out, truncates, error) : encode_texts(out, truncates, error)))
		return false;
	if (!check_blanks(out, error))
		return false;
	out->job.count = out->inputs.count;
	if (memory_new(&out->tokens, out->job.count, sizeof *out->tokens, "a request") != OK)
		return api_fail_internal(error);
	for (int64_t i = 0; i < out->job.count; i++) {
		out->tokens[i] = out->inputs.texts[i].count;
		out->token_count += out->inputs.texts[i].count;
	}
	if (out->token_count > limits->tokens)
		return too_many_tokens(request, out->token_count, "", limits, error);
	if (!check_numbers(out, error))
		return false;
	out->job.tokens = out->tokens;
	int lane = request->task == API_FILL ? 1 : request->task == API_EMBED_ALL ? 2 : 0;
	out->job.model = (int)(out->model - models->models) * MODEL_LANES + lane;
	return true;
}

void model_work_release(struct model_work *work)
{
	if (work->model)
		encoded_inputs_release(&work->model->text, &work->inputs);
	task_outputs_release(&work->outputs);
	free(work->words);
	free(work->tokens);
	*work = (struct model_work){0};
}

/* ---- Computing ---- */

static const struct model_work *work_of(const struct batch_part *part)
{
	return (const struct model_work *)part->job;
}

/* One wish that covers all parts. */
static struct encoder_wish wish_of(const struct served_model *model, const struct batch_part *parts, int64_t count)
{
	if (model->text.has_task || model->text.weighs_words)
		return (struct encoder_wish){.answer = ENCODER_HEAD};
	if (work_of(&parts[0])->request->task == API_EMBED_ALL)
		return (struct encoder_wish){.answer = ENCODER_ROWS};
	if (work_of(&parts[0])->request->task != API_FILL)
		return (struct encoder_wish){.answer = ENCODER_VECTORS, .pooling = model->text.pooling};
	struct encoder_wish wish = {.answer = ENCODER_WORDS};
	for (int64_t i = 0; i < count; i++)
		if (work_of(&parts[i])->request->top_k > wish.k)
			wish.k = (int32_t)work_of(&parts[i])->request->top_k;
	if (wish.k > model->text.session.tokenizer.vocab.count)
		wish.k = model->text.session.tokenizer.vocab.count;
	return wish;
}

/* Places the results of one text; for each row, only as many of the `k` computed as this request asks for. */
static void place_words(struct model_work *work, int64_t text, const struct encoder_answers *answers, int64_t answer, int32_t k)
{
	int64_t from = answers->starts[answer], to = work->outputs.starts[text];
	int32_t own = (int32_t)(work->outputs.starts[text + 1] - to) / work->inputs.texts[text].row_count;
	for (int32_t row = 0; row < work->inputs.texts[text].row_count; row++) {
		memcpy(work->outputs.values + to + (int64_t)row * own, answers->values + from + (int64_t)row * k,
		       (size_t)own * sizeof(float));
		memcpy(work->words + to + (int64_t)row * own, answers->words + from + (int64_t)row * k,
		       (size_t)own * sizeof(int32_t));
	}
}

/* How many numbers the model computes for a text. */
static int64_t output_size(const struct model_work *work, const struct encoder_text *text)
{
	const struct text_model *model = &work->model->text;
	int64_t vocab = model->session.tokenizer.vocab.count, k = work->request->top_k;
	switch (work->request->task) {
	case API_FILL: return text->row_count * (k < vocab ? k : vocab);
	case API_EMBED_ALL: return (int64_t)text->count * model->hidden;
	default: return text_model_width(model);
	}
}

/* Makes room for the results of a request's texts; for tasks, it exists already. */
static enum status make_outputs(struct model_work *work)
{
	const struct api_request *request = work->request;
	struct task_outputs *outputs = &work->outputs;
	if (outputs->starts)
		return OK;
	TRY(memory_new(&outputs->starts, work->job.count + 1, sizeof *outputs->starts, "answers"));
	for (int64_t i = 0; i < work->job.count; i++)
		outputs->starts[i + 1] = outputs->starts[i] + output_size(work, &work->inputs.texts[i]);
	outputs->count = work->job.count;
	if (request->task == API_FILL)
		TRY(memory_new(&work->words, outputs->starts[outputs->count], sizeof *work->words, "answers"));
	return memory_new(&outputs->values, outputs->starts[outputs->count], sizeof *outputs->values, "answers");
}

static void place_part(const struct batch_part *part, const struct encoder_answers *answers, int64_t first, int32_t k)
{
	struct model_work *work = (struct model_work *)part->job;
	for (int64_t i = 0; i < part->count; i++) {
		int64_t text = part->first + i, to = work->outputs.starts[text], size = work->outputs.starts[text + 1] - to;
		if (work->words) {
			place_words(work, text, answers, first + i, k);
			continue;
		}
		BUG_IF(answers->starts[first + i + 1] - answers->starts[first + i] != size);
		memcpy(work->outputs.values + to, answers->values + answers->starts[first + i], (size_t)size * sizeof(float));
	}
}

enum status models_compute(void *context, int lane, const struct batch_part *parts, int64_t part_count)
{
	struct models *models = context;
	const struct served_model *model = &models->models[lane / MODEL_LANES];
	int64_t count = 0, first = 0;
	for (int64_t p = 0; p < part_count; p++)
		count += parts[p].count;
	TRY(memory_grow(&models->texts, &models->text_capacity, count, sizeof *models->texts, "a batch"));
	for (int64_t p = 0; p < part_count; p++) {
		struct model_work *work = (struct model_work *)parts[p].job;
		TRY(make_outputs(work));
		memcpy(models->texts + first, work->inputs.texts + parts[p].first,
		       (size_t)parts[p].count * sizeof *models->texts);
		first += parts[p].count;
	}
	struct encoder_wish wish = wish_of(model, parts, part_count);
	wish.unchecked = true;
	TRY(encoder_run(model->text.encoder, &wish, models->texts, count, &models->answers));
	first = 0;
	for (int64_t p = 0; p < part_count; p++) {
		/* A non-finite answer fails its own request, not the others in the batch. */
		if (encoder_check(model->text.encoder, models->texts, &models->answers, first, first + parts[p].count) != OK)
			parts[p].job->error = *error_last();
		place_part(&parts[p], &models->answers, first, wish.k);
		first += parts[p].count;
	}
	return OK;
}
