#include "serve/model_work.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "model/pooling.h"

/* ---- A request finds its model ---- */

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
	api_fail(error, FAULT_MODEL, "model", "there is no model '%.100s' here: there is %s", request->model,
		 buffer_string(&names));
	buffer_release(&names);
	return NULL;
}

/* Without a name only one model may be able to answer: a guess could be another than the client means. */
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

static bool too_long(int64_t number, int64_t tokens, int32_t longest, struct api_error *error)
{
	return api_fail(error, FAULT_INPUT, "inputs", "text %lld has %lld tokens, and the model takes %d", (long long)number + 1,
			(long long)tokens, longest);
}

static bool make_room(struct model_work *work, int64_t count, struct api_error *error)
{
	if (memory_new(&work->texts, count, sizeof(*work->texts), "a request") != OK ||
	    memory_new(&work->tokens, count, sizeof(*work->tokens), "a request") != OK)
		return api_fail_internal(error);
	work->job.count = count;
	return true;
}

/* Ids of a client are ids of this model, and complete: those of another's tokenizer would pass for a text nobody has written. */
static bool check_ids(const struct model_work *work, const struct api_input *input, int64_t number, struct api_error *error)
{
	const struct served_model *model = work->model;
	const struct vocab *vocab = &model->session.tokenizer.vocab;
	if (input->id_count > model->longest)
		return too_long(number, input->id_count, model->longest, error);
	for (int64_t i = 0; i < input->id_count; i++)
		if (input->ids[i] >= vocab->count)
			return api_fail(error, FAULT_INPUT, "inputs",
					"text %lld has a token id %d, and the vocabulary has %d entries", (long long)number + 1,
					input->ids[i], vocab->count);
	if (input->id_count < 2 || input->ids[0] != vocab->cls || input->ids[input->id_count - 1] != vocab->sep)
		return api_fail(error, FAULT_INPUT, "inputs",
				"text %lld: token ids must be those of this model's own tokenizer, from [CLS] (%d) to [SEP] (%d)",
				(long long)number + 1, vocab->cls, vocab->sep);
	return true;
}

/* Where the tokens of all texts lie: in one block, which is complete before pointers into it are made. */
struct id_block {
	int32_t *ids;
	int64_t count, capacity;
};

static bool append_ids(struct id_block *block, const int32_t *ids, int64_t count, struct api_error *error)
{
	if (memory_grow(&block->ids, &block->capacity, block->count + count, sizeof(*block->ids), "a request's tokens") != OK)
		return api_fail_internal(error);
	memcpy(block->ids + block->count, ids, (size_t)count * sizeof(*ids));
	block->count += count;
	return true;
}

/* [CLS] tokens [SEP], cut to the model's length if that is allowed. */
static bool append_text(struct id_block *block, const struct model_work *work, const int32_t *ids, int64_t count, int64_t number,
			bool truncates, struct api_error *error)
{
	const struct served_model *model = work->model;
	const struct vocab *vocab = &model->session.tokenizer.vocab;
	int64_t room = model->longest - 2, cut = count > room ? count - room : 0;
	if (cut > 0 && !truncates)
		return too_long(number, count + 2, model->longest, error);
	if (work->request->cut_left)
		ids += cut;
	return append_ids(block, &vocab->cls, 1, error) && append_ids(block, ids, count - cut, error) &&
	       append_ids(block, &vocab->sep, 1, error);
}

/* The prompt of the request, or the folder's own; NULL: none. */
static bool find_prompt(const struct model_work *work, const char **out, struct api_error *error)
{
	const struct sentence_folder *sentences = &work->model->sentences;
	const char *name = work->request->prompt_name;
	int32_t prompt = sentences->found ? sentences->default_prompt : -1;
	if (name)
		prompt = sentences->found ? sentence_folder_prompt(sentences, name) : -1;
	if (name && prompt < 0)
		return api_fail(error, FAULT_FIELD, "prompt_name", "the model '%s' has no prompt '%.100s'", work->model->name,
				name);
	*out = prompt >= 0 ? sentences->prompts[prompt].text : NULL;
	return true;
}

static bool encode_vector(struct model_work *work, struct id_block *block, int64_t number, const char *prompt, bool truncates,
			  struct tokens *tokens, struct api_error *error)
{
	const struct served_model *model = work->model;
	const struct api_input *input = &work->request->inputs[number];
	struct encoder_text *text = &work->texts[number];
	struct buffer joined = {0};
	int64_t before = block->count;
	if (input->ids) {
		if (!check_ids(work, input, number, error) || !append_ids(block, input->ids, input->id_count, error))
			return false;
		text->count = (int32_t)(block->count - before);
		return true;
	}
	if (prompt && model->sentences.leaves_out_prompt) {
		tokens_clear(tokens);
		if (tokenizer_encode(model->plain, prompt, strlen(prompt), tokens) != OK)
			return api_fail_internal(error);
		text->left_out = (int32_t)tokens->count + 1;
	}
	buffer_text(&joined, prompt ? prompt : "");
	buffer_text(&joined, input->text);
	tokens_clear(tokens);
	enum status status = buffer_status(&joined);
	if (status == OK)
		status = tokenizer_encode(model->plain, joined.data, joined.size, tokens);
	buffer_release(&joined);
	if (status != OK)
		return api_fail_internal(error);
	if (!append_text(block, work, tokens->ids, tokens->count, number, truncates, error))
		return false;
	text->count = (int32_t)(block->count - before);
	/* What is cut on the left is of the prompt first. */
	int64_t cut = tokens->count + 2 - text->count;
	if (work->request->cut_left && text->left_out > 1 && cut > 0)
		text->left_out = text->left_out - 1 > cut ? text->left_out - (int32_t)cut : 1;
	/* A prompt that fills the text leaves nothing but [SEP] to pool. */
	if (text->left_out >= text->count)
		text->left_out = text->count - 1;
	return true;
}

static bool encode_blanks(struct model_work *work, struct id_block *block, struct id_block *rows, int64_t number,
			  struct tokens *tokens, struct api_error *error)
{
	const struct served_model *model = work->model;
	const char *words = work->request->inputs[number].text;
	struct encoder_text *text = &work->texts[number];
	tokens_clear(tokens);
	if (tokenizer_encode(model->blanks, words, strlen(words), tokens) != OK)
		return api_fail_internal(error);
	/* What would be cut might be the blank. */
	if (!append_text(block, work, tokens->ids, tokens->count, number, false, error))
		return false;
	text->count = (int32_t)tokens->count + 2;
	for (int32_t i = 0; i < tokens->count; i++) {
		int32_t row = i + 1;
		if (tokens->ids[i] != model->session.tokenizer.vocab.mask)
			continue;
		if (!append_ids(rows, &row, 1, error))
			return false;
		text->row_count++;
	}
	return text->row_count > 0 || api_fail(error, FAULT_INPUT, "inputs", "text %lld has no [MASK]", (long long)number + 1);
}

/* Texts point into the blocks, which the work then owns. */
static void take_blocks(struct model_work *work, const struct id_block *block, const struct id_block *rows)
{
	const int32_t *ids = block->ids, *row = rows->ids;
	work->ids = block->ids;
	work->rows = rows->ids;
	for (int64_t i = 0; i < work->job.count; i++) {
		struct encoder_text *text = &work->texts[i];
		text->ids = ids;
		ids += text->count;
		text->rows = text->row_count > 0 ? row : NULL;
		row += text->row_count;
	}
}

/* For vectors and blanks. */
static bool encode_texts(struct model_work *work, bool truncates, struct api_error *error)
{
	struct id_block block = {0}, rows = {0};
	struct tokens tokens = {0};
	const char *prompt = NULL;
	bool fills = work->request->task == API_FILL;
	bool fine = make_room(work, work->request->count, error) && (fills || find_prompt(work, &prompt, error));
	for (int64_t i = 0; i < work->request->count && fine; i++)
		fine = fills ? encode_blanks(work, &block, &rows, i, &tokens, error)
			     : encode_vector(work, &block, i, prompt, truncates, &tokens, error);
	take_blocks(work, &block, &rows);
	tokens_release(&tokens);
	return fine;
}

/* What the model was trained on, one text or two, is what it can be asked about; of models from elsewhere it is not known. */
static bool check_pairs(const struct model_work *work, struct api_error *error)
{
	const struct task_state *state = &work->model->task.state;
	const struct column_choice *trained = &state->settings.trained;
	const struct layout *layout = state->settings.layout;
	bool of_words = state->task->target == TARGET_PARTS && state->task->input == TASK_INPUT_TEXT;
	bool known = of_words || trained->text || layout;
	bool paired = !of_words && (trained->pair || (layout && layout->pair[0]));
	if (!known || work->request->task == API_ANSWER)
		return true;
	for (int64_t i = 0; i < work->request->count; i++)
		if ((work->request->inputs[i].pair != NULL) != paired)
			return api_fail(error, FAULT_INPUT, "inputs", "text %lld: the model '%s' is for %s", (long long)i + 1,
					work->model->name, paired ? "pairs of texts" : "single texts, not for pairs");
	return true;
}

/* Texts point into the set. */
static bool encode_task(struct model_work *work, bool truncates, struct api_error *error)
{
	const struct api_request *request = work->request;
	struct task_session *session = &work->model->task;
	struct task_state *state = &session->state;
	const struct labelled_set *set = &work->set.encoded;
	struct task_text *texts;
	if (!check_pairs(work, error))
		return false;
	if (memory_new(&texts, request->count, sizeof(*texts), "a request") != OK)
		return api_fail_internal(error);
	for (int64_t i = 0; i < request->count; i++)
		texts[i] = (struct task_text){request->inputs[i].text, request->inputs[i].pair};
	enum status status = state->task->take(state, &work->set, texts, request->count);
	free(texts);
	if (status == OK)
		status = state->task->encode(state, &work->set);
	/* A question that leaves no room for its text is the client's, too. */
	if (status == ERR_DATA || status == ERR_USAGE)
		return api_fail(error, FAULT_INPUT, "inputs", "%s", error_last()->message);
	/* Nothing to compute, which the batcher does not take. */
	if (status == OK && set->sequence_count == 0)
		return api_fail(error, FAULT_EMPTY, request->task == API_ANSWER ? "context" : "inputs",
				"there is nothing to answer: the text holds no words");
	if (status == OK)
		status = task_outputs_create(&work->outputs, set, &session->heads.head[0]);
	if (status != OK)
		return api_fail_internal(error);
	if (work->set.cut_count > 0 && !truncates)
		return api_fail(error, FAULT_INPUT, "inputs",
				"%lld of the texts have more tokens than the %d that the model takes",
				(long long)work->set.cut_count, work->model->longest);
	if (!make_room(work, set->sequence_count, error))
		return false;
	encoder_texts_of(set, work->texts);
	return true;
}

/* As asked for, or as the sentence-transformers folder says where it can be had. */
static bool find_dimensions(struct model_work *work, struct api_error *error)
{
	int64_t width = (int64_t)work->model->hidden * pooling_count(work->model->pooling);
	if (work->request->dimensions > width)
		return api_fail(error, FAULT_FIELD, "dimensions", "'dimensions' is %lld, and the model's embeddings have %lld",
				(long long)work->request->dimensions, (long long)width);
	int64_t said = work->model->sentences.truncate_dim;
	work->dimensions = work->request->dimensions > 0 ? work->request->dimensions : said > 0 && said < width ? said : width;
	return true;
}

bool model_work_make(struct model_work *out, const struct models *models, const struct api_request *request, bool truncates,
		     struct api_error *error)
{
	*out = (struct model_work){.request = request};
	out->model = request->model ? named_model(models, request, error) : only_model(models, request->task, error);
	if (!out->model)
		return false;
	if (request->truncate != AS_SET)
		truncates = request->truncate == YES;
	bool of_task = out->model->has_task;
	if (request->task == API_EMBED && !find_dimensions(out, error))
		return false;
	if (!(of_task ? encode_task(out, truncates, error) : encode_texts(out, truncates, error)))
		return false;
	for (int64_t i = 0; i < out->job.count; i++) {
		out->tokens[i] = out->texts[i].count;
		out->token_count += out->texts[i].count;
	}
	out->job.tokens = out->tokens;
	out->job.model = (int)(out->model - models->models) * MODEL_LANES + (request->task == API_FILL);
	return true;
}

void model_work_release(struct model_work *work)
{
	if (work->model && work->model->has_task)
		task_set_release(&work->model->task.state, &work->set);
	task_outputs_release(&work->outputs);
	free(work->words);
	free(work->texts);
	free(work->tokens);
	free(work->ids);
	free(work->rows);
	*work = (struct model_work){0};
}

/* ---- Computing ---- */

static const struct model_work *work_of(const struct batch_part *part)
{
	return (const struct model_work *)part->job;
}

/* The wish that all parts share. */
static struct encoder_wish wish_of(const struct served_model *model, const struct batch_part *parts, int64_t count)
{
	if (model->has_task)
		return (struct encoder_wish){.answer = ENCODER_HEAD};
	if (work_of(&parts[0])->request->task != API_FILL)
		return (struct encoder_wish){.answer = ENCODER_VECTORS, .pooling = model->pooling};
	struct encoder_wish wish = {.answer = ENCODER_WORDS};
	for (int64_t i = 0; i < count; i++)
		if (work_of(&parts[i])->request->top_k > wish.k)
			wish.k = (int32_t)work_of(&parts[i])->request->top_k;
	if (wish.k > model->session.tokenizer.vocab.count)
		wish.k = model->session.tokenizer.vocab.count;
	return wish;
}

/* Numbers of one text, for each row as many as this request asks for of the `k` there are. */
static void place_words(struct model_work *work, int64_t text, const struct encoder_answers *answers, int64_t answer, int32_t k)
{
	int64_t from = answers->starts[answer], to = work->outputs.starts[text];
	int32_t own = (int32_t)(work->outputs.starts[text + 1] - to) / work->texts[text].row_count;
	for (int32_t row = 0; row < work->texts[text].row_count; row++) {
		memcpy(work->outputs.values + to + (int64_t)row * own, answers->values + from + (int64_t)row * k,
		       (size_t)own * sizeof(float));
		memcpy(work->words + to + (int64_t)row * own, answers->words + from + (int64_t)row * k,
		       (size_t)own * sizeof(int32_t));
	}
}

/* Room for what the texts of a request will give; that of tasks is there. */
static enum status make_outputs(struct model_work *work)
{
	const struct api_request *request = work->request;
	const struct served_model *model = work->model;
	struct task_outputs *outputs = &work->outputs;
	int64_t vocab = model->session.tokenizer.vocab.count, k = request->top_k < vocab ? request->top_k : vocab;
	if (outputs->starts)
		return OK;
	TRY(memory_new(&outputs->starts, work->job.count + 1, sizeof(*outputs->starts), "answers"));
	for (int64_t i = 0; i < work->job.count; i++)
		outputs->starts[i + 1] =
			outputs->starts[i] + (request->task == API_FILL ? work->texts[i].row_count * k
									: (int64_t)model->hidden * pooling_count(model->pooling));
	outputs->count = work->job.count;
	if (request->task == API_FILL)
		TRY(memory_new(&work->words, outputs->starts[outputs->count], sizeof(*work->words), "answers"));
	return memory_new(&outputs->values, outputs->starts[outputs->count], sizeof(*outputs->values), "answers");
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
	TRY(memory_grow(&models->texts, &models->text_capacity, count, sizeof(*models->texts), "a batch"));
	for (int64_t p = 0; p < part_count; p++) {
		struct model_work *work = (struct model_work *)parts[p].job;
		TRY(make_outputs(work));
		memcpy(models->texts + first, work->texts + parts[p].first, (size_t)parts[p].count * sizeof(*models->texts));
		first += parts[p].count;
	}
	const struct encoder_wish wish = wish_of(model, parts, part_count);
	TRY(encoder_run(model->encoder, &wish, models->texts, count, &models->answers));
	first = 0;
	for (int64_t p = 0; p < part_count; p++) {
		place_part(&parts[p], &models->answers, first, wish.k);
		first += parts[p].count;
	}
	return OK;
}
