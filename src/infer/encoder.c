/* Packs texts into batches, runs the model, and puts each text's answer where its caller expects it. */
#include "infer/encoder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "model/forms.h"
#include "model/pooling.h"
#include "weights/finite_values.h"
#include "backend/open.h"

struct encoder {
	struct session *session;
	const struct model *model;
	int32_t longest;
	struct batch_capacity capacity;
	struct batch host, batch;   /* the texts on the host and on the device */
	struct buffer numbers;      /* rows or outputs as copied from the device */
	char keys[1 + BATCH_HEADS]; /* their addresses identify recorded work: vectors, and each head's outputs */
	/* On the device: the losses or probabilities, and the words, of each row that a head reads. */
	double *device_numbers;
	int32_t *device_words;
	int64_t device_count;
};

/* A call and its current batch, texts [first, end). */
struct pass {
	struct encoder *encoder;
	const struct encoder_wish *wish;
	const struct encoder_text *texts;
	struct encoder_answers *out;
	int64_t first, end;
	int32_t words_head;
};

/* A batch of sequences with at least this average length runs out of tokens first; with shorter ones, of sequences. */
#define TOKENS_PER_SEQUENCE 8
/* Tokens quoted from a text that an error names. */
#define QUOTED_TOKENS 8

struct batch_capacity encoder_capacity(const struct model_heads *heads, int64_t tokens, int32_t longest)
{
	if (tokens == 0)
		return (struct batch_capacity){0};
	int64_t room = tokens < longest ? longest : tokens < INT32_MAX / 2 ? tokens : INT32_MAX / 2;
	int64_t sequences = room / TOKENS_PER_SEQUENCE > 0 ? room / TOKENS_PER_SEQUENCE : 1;
	struct batch_capacity capacity = {
		.tokens = (int32_t)room, .sequences = (int32_t)sequences, .examples = (int32_t)sequences};
	for (int h = 0; h < heads->count && h < BATCH_HEADS; h++) {
		int32_t joined = heads->head[h].joined > 1 ? heads->head[h].joined : 1;
		if (heads->head[h].input == INPUT_CHOSEN_ROWS)
			capacity.labels[h] = (struct label_capacity){.count = (int32_t)room, .width = 1, .row_width = joined};
	}
	return capacity;
}

void encoder_texts_of(const struct labeled_set *set, struct encoder_text *out)
{
	const struct labeled_items *items = &set->items[0];
	for (int64_t s = 0; s < set->sequence_count; s++) {
		struct encoder_text *text = &out[s];
		*text = (struct encoder_text){.ids = set->ids + set->sequences[s],
					      .count = (int32_t)(set->sequences[s + 1] - set->sequences[s])};
		text->second = set->seconds[s] < text->count ? set->seconds[s] : 0;
		if (items->row_width > 0) {
			text->rows = items->rows + items->starts[s] * items->row_width;
			text->row_count = (int32_t)((items->starts[s + 1] - items->starts[s]) * items->row_width);
		}
	}
}

enum status encoder_open(struct encoder **out, struct session *session)
{
	struct encoder *encoder;
	const struct model_config *config = &session->model->config;
	enum status status;
	*out = NULL;
	TRY(memory_new(&encoder, 1, sizeof *encoder, "encoder"));
	*encoder = (struct encoder){.session = session, .model = session->model, .capacity = session->capacity};
	encoder->longest =
		model_positions(config) < session->capacity.tokens ? model_positions(config) : session->capacity.tokens;
	TRY_GOTO(batch_create(&encoder->host, &session->capacity), fail);
	*out = encoder;
	return OK;

fail:
	encoder_close(encoder);
	return status;
}

void encoder_close(struct encoder *encoder)
{
	if (!encoder)
		return;
	struct backend *be = encoder->session->backend;
	batch_release(&encoder->host);
	buffer_release(&encoder->numbers);
	be->functions->release(be, encoder->device_numbers);
	be->functions->release(be, encoder->device_words);
	free(encoder);
}

void encoder_answers_release(struct encoder_answers *answers)
{
	free(answers->starts);
	free(answers->values);
	free(answers->words);
	*answers = (struct encoder_answers){0};
}

static int32_t layer_count(const struct encoder_wish *wish)
{
	return wish->layer_count > 0 ? wish->layer_count : 1;
}

static int32_t chosen_layer(const struct pass *pass, int32_t i)
{
	return pass->wish->layer_count > 0 ? pass->wish->layers[i] : pass->encoder->model->config.num_hidden_layers;
}

/* How many numbers a text's answer has. */
static int64_t answer_size(const struct pass *pass, const struct encoder_text *text)
{
	const struct model *model = pass->encoder->model;
	const struct encoder_wish *wish = pass->wish;
	int64_t hidden = model->config.hidden_size;
	switch (wish->answer) {
	case ENCODER_VECTORS: return layer_count(wish) * pooling_count(wish->pooling) * hidden;
	case ENCODER_ROWS: return layer_count(wish) * text->count * hidden;
	case ENCODER_LOSSES: return text->row_count;
	case ENCODER_WORDS: return (int64_t)text->row_count * wish->k;
	case ENCODER_HEAD: break;
	}
	const struct head *head = &model->heads.head[wish->head];
	int64_t outputs = head->loss == LOSS_NONE ? hidden : head->outputs;
	if (head->input == INPUT_ALL_ROWS)
		return text->count * outputs;
	if (head->input == INPUT_FIRST_ROW || head->input == INPUT_POOLED_ROWS)
		return outputs;
	return text->row_count / (head->joined > 1 ? head->joined : 1) * outputs;
}

static bool reads_chosen_rows(const struct pass *pass)
{
	const struct encoder_wish *wish = pass->wish;
	return wish->answer == ENCODER_LOSSES || wish->answer == ENCODER_WORDS ||
	       (wish->answer == ENCODER_HEAD && pass->encoder->model->heads.head[wish->head].input == INPUT_CHOSEN_ROWS);
}

static void check_wish(struct pass *pass)
{
	const struct model *model = pass->encoder->model;
	const struct encoder_wish *wish = pass->wish;
	bool words = wish->answer == ENCODER_LOSSES || wish->answer == ENCODER_WORDS;
	BUG_IF(wish->answer == ENCODER_VECTORS && pooling_count(wish->pooling) == 0);
	BUG_IF(wish->answer == ENCODER_WORDS && (wish->k < 1 || wish->k > model->config.vocab_size));
	for (int32_t i = 0; i < layer_count(wish); i++)
		BUG_IF(chosen_layer(pass, i) < 0 || chosen_layer(pass, i) > model->config.num_hidden_layers);
	while (words && model->heads.head[pass->words_head].loss != LOSS_WORDS) {
		pass->words_head++;
		BUG_IF(pass->words_head == model->heads.count);
	}
	if (!words)
		pass->words_head = wish->head;
	BUG_IF(wish->answer == ENCODER_HEAD && wish->head >= model->heads.count);
}

static enum status check_text(const struct pass *pass, int64_t number)
{
	const struct encoder_text *text = &pass->texts[number];
	const struct encoder *encoder = pass->encoder;
	const struct model_config *config = &encoder->model->config;
	BUG_IF(text->left_out < 0 || text->left_out >= text->count || text->row_count < 0);
	if (text->count > encoder->longest)
		return error_set(ERR_USAGE, "text %lld has %d tokens, but the model takes at most %d", (long long)number + 1,
				 text->count, encoder->longest);
	if (text->second > 0 && !model_takes_pairs(config))
		return error_set(ERR_USAGE, "text %lld is a pair, but the model has one type of segments", (long long)number + 1);
	for (int32_t i = 0; i < text->count; i++)
		if (text->ids[i] < 0 || text->ids[i] >= config->vocab_size)
			return error_set(ERR_USAGE, "text %lld has the token id %d, but the model has %d rows",
					 (long long)number + 1, text->ids[i], config->vocab_size);
	for (int32_t i = 0; reads_chosen_rows(pass) && i < text->row_count; i++)
		BUG_IF(text->rows[i] < 0 || text->rows[i] >= text->count);
	return OK;
}

/* Adds a text to the batch. False: the batch is full. */
static bool add_text(struct pass *pass, const struct encoder_text *text)
{
	struct encoder *encoder = pass->encoder;
	struct batch *batch = &encoder->host;
	struct batch_labels *labels = &batch->labels[pass->words_head];
	int32_t first = batch->token_count, number = batch->sequence_count;
	int32_t rows = reads_chosen_rows(pass) ? text->row_count : 0;
	int32_t joined = labels->row_width > 1 ? labels->row_width : 1;
	if (first + text->count > encoder->capacity.tokens || number == encoder->capacity.sequences)
		return false;
	for (int32_t i = 0; i < text->count; i++) {
		batch->ids[first + i] = text->ids[i];
		batch->types[first + i] = text->second > 0 && i >= text->second;
		batch->positions[first + i] = i;
		batch->token_samples[first + i] = (uint32_t)number;
	}
	for (int32_t i = 0; i < rows; i++) {
		labels->rows[labels->count * joined + i] = first + text->rows[i];
		if (pass->wish->answer == ENCODER_LOSSES) {
			labels->classes[labels->count + i] = text->words[i];
			labels->weights[labels->count + i] = 1;
		}
	}
	labels->count += rows / joined;
	batch->longest = text->count > batch->longest ? text->count : batch->longest;
	batch->samples[number] = (uint32_t)number;
	batch->token_count += text->count;
	batch->sequence_count = batch->example_count = number + 1;
	batch->starts[number + 1] = batch->token_count;
	batch->example_starts[number + 1] = number + 1;
	return true;
}

static void clear_batch(struct batch *batch)
{
	batch->token_count = batch->sequence_count = batch->example_count = batch->longest = 0;
	batch->starts[0] = batch->example_starts[0] = 0;
	for (int h = 0; h < BATCH_HEADS; h++)
		batch->labels[h].count = 0;
}

/* ---- Computing ---- */

static void queue_forward(void *context)
{
	const struct pass *pass = context;
	struct session *session = pass->encoder->session;
	model_forward(session->model, session->activations, &session->replica, &pass->encoder->batch, false);
	if (pass->wish->answer == ENCODER_HEAD)
		model_outputs(session->model, session->activations, &session->replica, &pass->encoder->batch, pass->wish->head);
}

/* Never recorded: the destination and number of its results depend on the wish. */
static void queue_words(const struct pass *pass)
{
	struct encoder *encoder = pass->encoder;
	struct session *session = encoder->session;
	struct replica *replica = &session->replica;
	const struct model *model = session->model;
	const struct batch_labels *labels = &encoder->batch.labels[pass->words_head];
	model_forward(model, session->activations, replica, &encoder->batch, false);
	struct tensor rows = model_prediction_rows(model, session->activations, replica, &encoder->batch);
	if (pass->wish->answer == ENCODER_WORDS)
		vocab_topk(replica, &(struct vocab_topk){.table = model_output_table(model),
							 .bias = &model->prediction_bias,
							 .k = pass->wish->k,
							 .ids = encoder->device_words,
							 .probabilities = encoder->device_numbers,
							 .x = rows});
	else
		vocab_xent(replica,
			   &(struct vocab_xent){.head = pass->words_head,
						.table = model_output_table(model),
						.bias = &model->prediction_bias,
						.labels = labels->classes,
						.weights = labels->weights,
						.loss = &replica->accumulators->value[sum_of_loss(pass->words_head)],
						.correct = &replica->accumulators->value[sum_of_correct(pass->words_head)],
						.losses = encoder->device_numbers,
						.x = rows});
}

/* Copies the first `count` numbers of a tensor to the host. */
static enum status fetch(struct encoder *encoder, const struct tensor *tensor, int64_t count)
{
	struct backend *be = encoder->session->backend;
	size_t bytes = (size_t)count * dtype_bytes(tensor->dtype);
	buffer_clear(&encoder->numbers);
	char *room = buffer_room(&encoder->numbers, bytes);
	TRY(buffer_status(&encoder->numbers));
	be->functions->to_host(be, room, tensor->data, bytes);
	return OK;
}

/* Places the rows of one layer into the answers of the texts. */
struct layer_answer {
	const struct pass *pass;
	enum dtype dtype;
	int32_t place; /* index of the layer among those requested */
};

static void place_rows(void *context, int64_t index, int worker)
{
	(void)worker;
	const struct layer_answer *layer = context;
	const struct pass *pass = layer->pass;
	const struct encoder_wish *wish = pass->wish;
	const struct batch *batch = &pass->encoder->host;
	const struct encoder_text *text = &pass->texts[pass->first + index];
	int64_t hidden = pass->encoder->model->config.hidden_size, first = batch->starts[index];
	const char *from = pass->encoder->numbers.data + (size_t)(first * hidden) * dtype_bytes(layer->dtype);
	float *to = pass->out->values + pass->out->starts[pass->first + index];
	if (wish->answer == ENCODER_ROWS) {
		to += layer->place * text->count * hidden;
		for (int64_t i = 0; i < text->count * hidden; i++)
			to[i] = number_as_float(from, layer->dtype, i);
		return;
	}
	int64_t size = pooling_count(wish->pooling) * hidden;
	to += layer->place * size;
	pooling_apply(wish->pooling, from, layer->dtype, text->count, hidden, text->left_out, to);
	if (wish->normalize)
		pooling_normalize(to, size);
}

static enum status take_layer(struct pass *pass, int32_t layer)
{
	struct encoder *encoder = pass->encoder;
	struct session *session = encoder->session;
	struct tensor rows = activations_hidden(session->activations, layer - 1);
	bool fetched = false;
	for (int32_t i = 0; i < layer_count(pass->wish); i++) {
		if (chosen_layer(pass, i) != layer)
			continue;
		if (!fetched) {
			TRY(session->backend->functions->synchronize(&session->replica));
			TRY(fetch(encoder, &rows, encoder->host.token_count * rows.columns));
		}
		fetched = true;
		struct layer_answer answer = {.pass = pass, .dtype = rows.dtype, .place = i};
		pool_run(session->pool, pass->end - pass->first, place_rows, &answer);
	}
	return OK;
}

/* Computes layer by layer, up to the highest one requested. */
static enum status compute_layers(struct pass *pass)
{
	struct session *session = pass->encoder->session;
	const struct batch *batch = &pass->encoder->batch;
	int32_t highest = 0, last = session->model->config.num_hidden_layers;
	for (int32_t i = 0; i < layer_count(pass->wish); i++)
		highest = chosen_layer(pass, i) > highest ? chosen_layer(pass, i) : highest;
	if (pass->wish->layer_count == 0 || (pass->wish->layer_count == 1 && highest == last)) {
		struct work_key key = work_key(&pass->encoder->keys[0], WORK_PREDICTIONS, batch);
		work_queue(&session->replica, &key, queue_forward, pass);
		return take_layer(pass, last);
	}
	model_embed(session->model, session->activations, &session->replica, batch);
	TRY(take_layer(pass, 0));
	for (int32_t layer = 1; layer <= highest; layer++) {
		model_layers(session->model, session->activations, &session->replica, batch, layer - 1, 1);
		TRY(take_layer(pass, layer));
	}
	return OK;
}

static enum status compute_head(struct pass *pass)
{
	struct encoder *encoder = pass->encoder;
	struct session *session = encoder->session;
	struct work_key key = work_key(&encoder->keys[1 + pass->wish->head], WORK_PREDICTIONS, &encoder->batch);
	work_queue(&session->replica, &key, queue_forward, pass);
	TRY(session->backend->functions->synchronize(&session->replica));
	struct tensor outputs = model_last_outputs(session->activations, pass->wish->head);
	int64_t from = pass->out->starts[pass->first], count = pass->out->starts[pass->end] - from;
	TRY(fetch(encoder, &outputs, count));
	for (int64_t i = 0; i < count; i++)
		pass->out->values[from + i] = number_as_float(encoder->numbers.data, outputs.dtype, i);
	return OK;
}

/* Room on the device for a batch's numbers, allocated when they are first requested. */
static enum status make_room(struct pass *pass)
{
	struct encoder *encoder = pass->encoder;
	struct backend *be = encoder->session->backend;
	int64_t k = pass->wish->answer == ENCODER_WORDS ? pass->wish->k : 1;
	int64_t count = backend_room(be, encoder->capacity).labels[pass->words_head].count * k;
	if (count <= encoder->device_count)
		return OK;
	be->functions->release(be, encoder->device_numbers);
	be->functions->release(be, encoder->device_words);
	encoder->device_numbers = NULL;
	encoder->device_words = NULL;
	encoder->device_count = 0;
	void *numbers, *words;
	TRY(be->functions->allocate(be, &numbers, (size_t)count * sizeof *encoder->device_numbers, "predictions"));
	encoder->device_numbers = numbers;
	TRY(be->functions->allocate(be, &words, (size_t)count * sizeof *encoder->device_words, "predictions"));
	encoder->device_words = words;
	encoder->device_count = count;
	return OK;
}

static enum status compute_words(struct pass *pass)
{
	struct encoder *encoder = pass->encoder;
	struct session *session = encoder->session;
	struct backend *be = session->backend;
	int64_t from = pass->out->starts[pass->first], count = pass->out->starts[pass->end] - from;
	if (count == 0)
		return OK;
	queue_words(pass);
	TRY(be->functions->synchronize(&session->replica));
	struct tensor numbers = {.data = encoder->device_numbers, .dtype = DTYPE_F64};
	TRY(fetch(encoder, &numbers, count));
	for (int64_t i = 0; i < count; i++)
		pass->out->values[from + i] = number_as_float(encoder->numbers.data, DTYPE_F64, i);
	if (pass->wish->answer == ENCODER_WORDS)
		be->functions->to_host(be, pass->out->words + from, encoder->device_words,
				       (size_t)count * sizeof *encoder->device_words);
	return OK;
}

static enum status compute_batch(struct pass *pass)
{
	struct encoder *encoder = pass->encoder;
	struct session *session = encoder->session;
	model_await(session->model);
	session->backend->functions->upload(&session->replica, &encoder->host, &encoder->batch);
	switch (pass->wish->answer) {
	case ENCODER_HEAD: return compute_head(pass);
	case ENCODER_VECTORS:
	case ENCODER_ROWS: return compute_layers(pass);
	default: return compute_words(pass);
	}
}

static enum status lay_out_answers(struct pass *pass, int64_t count)
{
	struct encoder_answers *out = pass->out;
	TRY(memory_grow(&out->starts, &out->starts_capacity, count + 1, sizeof *out->starts, "answers"));
	out->count = count;
	out->starts[0] = 0;
	for (int64_t i = 0; i < count; i++)
		out->starts[i + 1] = out->starts[i] + answer_size(pass, &pass->texts[i]);
	TRY(memory_grow(&out->values, &out->values_capacity, out->starts[count], sizeof *out->values, "answers"));
	if (pass->wish->answer == ENCODER_WORDS)
		TRY(memory_grow(&out->words, &out->words_capacity, out->starts[count], sizeof *out->words, "answers"));
	return OK;
}

/* "'the cat sees ...'": the beginning of a text, as its tokens. */
static void describe_text(const struct vocab *vocab, const struct encoder_text *text, char *out, size_t size)
{
	size_t length = (size_t)snprintf(out, size, "'");
	for (int32_t i = 1; i < text->count - 1 && i <= QUOTED_TOKENS; i++) {
		if (text->ids[i] >= vocab->count) { /* the model may have more rows than the vocabulary has entries */
			snprintf(out, size, "a text of %d tokens", text->count);
			return;
		}
		length += (size_t)snprintf(out + length, size - length, "%s%.40s", i > 1 ? " " : "", vocab->text[text->ids[i]]);
	}
	snprintf(out + length, size - length, "%s'", text->count - 2 > QUOTED_TOKENS ? " ..." : "");
}

enum status encoder_check(const struct encoder *encoder, const struct encoder_text *texts, const struct encoder_answers *answers,
			  int64_t first, int64_t end)
{
	char words[512], what[600];
	const int64_t *starts = answers->starts;
	int64_t bad = first_not_finite(answers->values + starts[first], DTYPE_F32, starts[end] - starts[first]);
	if (bad < 0)
		return OK;
	bad += starts[first];
	while (starts[first + 1] <= bad)
		first++;
	describe_text(&encoder->session->tokenizer.vocab, &texts[first], words, sizeof words);
	snprintf(what, sizeof what, "the model's answer to %s", words);
	return answer_not_finite(what);
}

enum status encoder_run(struct encoder *encoder, const struct encoder_wish *wish, const struct encoder_text *texts, int64_t count,
			struct encoder_answers *out)
{
	struct pass pass = {.encoder = encoder, .wish = wish, .texts = texts, .out = out};
	check_wish(&pass);
	for (int64_t i = 0; i < count; i++)
		TRY(check_text(&pass, i));
	TRY(lay_out_answers(&pass, count));
	if (wish->answer == ENCODER_LOSSES || wish->answer == ENCODER_WORDS)
		TRY(make_room(&pass));
	while (pass.first < count) {
		clear_batch(&encoder->host);
		for (pass.end = pass.first; pass.end < count && add_text(&pass, &texts[pass.end]); pass.end++)
			;
		BUG_IF(pass.end == pass.first);
		TRY(compute_batch(&pass));
		if (!wish->unchecked)
			TRY(encoder_check(encoder, texts, out, pass.first, pass.end));
		pass.first = pass.end;
	}
	return OK;
}
