/* Lays out in one block what forward leaves for backward: per layer for training, shared by all layers for evaluation. */
#include <stdlib.h>
#include "model/activations.h"
#include "model/forms.h"
#include "backend/open.h"

/* Hands out tensors. The same code measures (arena without a base), places tensors, and later gives them the shapes of a
 * batch: the addresses depend on the capacity only. */
struct layout {
	struct arena arena;
	struct backend *backend;
	bool twins;             /* for the operands of the encoder's products */
	size_t kept;            /* bytes of lse's twin; 0: none */
	int64_t capacity, rows; /* for the kind of rows being laid out: tokens, predictions, or sequences */
};

static void *take(struct layout *layout, int64_t columns, enum dtype dtype)
{
	int64_t rows = round_up(layout->capacity > 0 ? layout->capacity : 1, ROW_MULTIPLE);
	return arena_take(&layout->arena, (size_t)rows * (size_t)columns * dtype_bytes(dtype));
}

/* Adds a twin to the tensor if the encoder's products have twins: for an input x, or for a gradient dy. */
static struct tensor with_twin(struct layout *layout, struct tensor tensor, bool gradient)
{
	if (layout->twins)
		tensor.twin = arena_take(&layout->arena, layout->backend->functions->twin_bytes(layout->backend, layout->capacity,
												tensor.columns, gradient));
	return tensor;
}

/* (rows, columns), in the activations' type. */
static struct tensor matrix(struct layout *layout, int64_t columns)
{
	return (struct tensor){.data = take(layout, columns, layout->backend->dtype),
			       .dtype = layout->backend->dtype,
			       .rows = layout->rows,
			       .columns = columns};
}

/* (lines, rows): numbers per row, in the masters' type. */
static struct tensor statistic(struct layout *layout, int64_t lines)
{
	return (struct tensor){.data = take(layout, lines, layout->backend->master_dtype),
			       .dtype = layout->backend->master_dtype,
			       .rows = lines,
			       .columns = layout->rows};
}

/* (rows, columns), in the masters' type: vectors whose products enter a loss. */
static struct tensor vectors(struct layout *layout, int64_t columns)
{
	return (struct tensor){.data = take(layout, columns, layout->backend->master_dtype),
			       .dtype = layout->backend->master_dtype,
			       .rows = layout->rows,
			       .columns = columns};
}

/* The same memory with another width. */
static struct tensor with_columns(struct tensor tensor, int64_t columns)
{
	tensor.columns = columns;
	return tensor;
}

static struct tensor without_data(struct tensor tensor)
{
	tensor.data = NULL;
	return tensor;
}

/* An input of a product that backward reads again: with a twin, which is then all that backward reads, it is in a place shared
 * by all layers. */
static struct tensor saved_input(struct layout *layout, int64_t columns, struct tensor shared)
{
	return layout->twins ? with_twin(layout, shared, false) : matrix(layout, columns);
}

/* `shared`: the places shared by all layers. */
static void lay_out_layer(struct layer_activations *layer, struct layout *layout, const struct model_config *config,
			  const struct layer_activations *shared)
{
	layer->qkv = matrix(layout, 3 * config->hidden_size);
	layer->attention = with_twin(layout, matrix(layout, config->hidden_size), false);
	layer->lse = statistic(layout, config->num_attention_heads);
	if (layout->kept > 0)
		layer->lse.twin = arena_take(&layout->arena, layout->kept);
	layer->attention_sum = matrix(layout, config->hidden_size);
	layer->attention_mean = statistic(layout, 1);
	layer->attention_rstd = statistic(layout, 1);
	layer->attention_norm = saved_input(layout, config->hidden_size, shared->attention_norm);
	layer->pre = matrix(layout, model_wide_size(config));
	layer->gelu = saved_input(layout, config->intermediate_size, shared->gelu);
	layer->output_sum = matrix(layout, config->hidden_size);
	layer->output_mean = statistic(layout, 1);
	layer->output_rstd = statistic(layout, 1);
	layer->y = saved_input(layout, config->hidden_size, shared->y);
}

/* One layer's buffers, used by all layers of an evaluation, and in training by those that have no backward pass; tensors that
 * only backward would read are left out. */
static void lay_out_shared_layer(struct layer_activations *layer, struct layout *layout, const struct model_config *config,
				 struct tensor embedded)
{
	const struct model_form *form = model_form_of(config);
	layer->qkv = matrix(layout, 3 * config->hidden_size);
	layer->attention = with_twin(layout, matrix(layout, config->hidden_size), false);
	layer->attention_norm = with_twin(layout, matrix(layout, config->hidden_size), false);
	layer->gelu = with_twin(layout, matrix(layout, config->intermediate_size), false);
	layer->attention_mean = layer->output_mean = statistic(layout, 1);
	layer->attention_rstd = layer->output_rstd = statistic(layout, 1);
	layer->y = embedded;
	layer->lse = (struct tensor){
		.dtype = layout->backend->master_dtype, .rows = config->num_attention_heads, .columns = layout->rows};
	layer->attention_sum = layer->output_sum = without_data(layer->y);
	layer->pre = without_data(layer->gelu);
	if (form->pre_norm) {
		layer->attention_sum = matrix(layout, config->hidden_size);
		layer->output_sum = matrix(layout, config->hidden_size);
	}
	if (form->gated)
		layer->pre = matrix(layout, model_wide_size(config));
}

static void lay_out_encoder(struct activations *a, struct layout *layout, const struct model_config *config)
{
	const struct model_form *form = model_form_of(config);
	int64_t width = model_embedding_size(config);
	struct tensor y = with_twin(layout, matrix(layout, config->hidden_size), false);
	a->embedded = y;
	if (width != config->hidden_size) {
		a->embedded = matrix(layout, config->hidden_size); /* which layers do not reuse, since nothing writes its twin */
		a->narrow = matrix(layout, width);
	}
	a->embedding_mean = statistic(layout, 1);
	a->embedding_rstd = statistic(layout, 1);
	struct layer_activations layer = {0}, shared = {0};
	int32_t lowest = a->training ? a->model->lowest_layer : config->num_hidden_layers;
	if (lowest > 0)
		lay_out_shared_layer(&layer, layout, config, y);
	if (a->training && layout->twins) {
		shared.attention_norm = matrix(layout, config->hidden_size);
		shared.gelu = matrix(layout, config->intermediate_size);
		shared.y = y;
	}
	for (int32_t l = 0; l < config->num_hidden_layers; l++) {
		if (l >= lowest)
			lay_out_layer(&layer, layout, config, &shared);
		if (a->layers)
			a->layers[l] = layer;
	}
	if (form->has_types && config->type_vocab_size < 2)
		a->one_type = take(layout, 1, DTYPE_F32); /* memory is zeroed when it is allocated */
	a->embedding_sum =
		a->training ? matrix(layout, width) : with_columns(layer.attention, width); /* nothing writes its twin */
	if (!a->training)
		return;
	if (width != config->hidden_size)
		a->narrow_gradient = matrix(layout, width);
	int64_t wide = 3 * config->hidden_size;
	if (wide < model_wide_size(config))
		wide = model_wide_size(config);
	struct tensor widest = matrix(layout, wide);
	a->pre_gradient = with_twin(layout, with_columns(widest, model_wide_size(config)), true);
	if (form->pre_norm)
		a->stream_gradient = matrix(layout, config->hidden_size);
	if (form->gated)
		a->gelu_gradient = matrix(layout, config->intermediate_size);
	a->qkv_gradient = with_twin(layout, with_columns(widest, 3 * config->hidden_size), true);
	a->gradient = matrix(layout, config->hidden_size);
	a->branch_gradient = with_twin(layout, matrix(layout, config->hidden_size), true);
	a->attention_gradient = matrix(layout, config->hidden_size);
}

static void lay_out_mlm_head(struct activations *a, struct layout *layout, int64_t hidden, int64_t width)
{
	a->masked = matrix(layout, hidden);
	a->transform_gelu = matrix(layout, width);
	a->transform_mean = statistic(layout, 1);
	a->transform_rstd = statistic(layout, 1);
	a->transformed = matrix(layout, width);
	if (!a->training) {
		a->transform_pre = a->transform_sum = without_data(a->transformed);
		return;
	}
	a->transform_pre = matrix(layout, width);
	a->transform_sum = matrix(layout, width);
	a->masked_gradient = matrix(layout, hidden > width ? hidden : width);
	a->transformed_gradient = with_columns(a->masked_gradient, width);
	a->masked_gradient.columns = hidden;
	a->transform_gradient = matrix(layout, width);
}

/* Number of items of a head in a batch of these sizes: as many as chosen, sequences, or tokens. */
static int64_t head_items(const struct head *head, int64_t tokens, int64_t sequences, int64_t labels)
{
	bool each = head->input == INPUT_FIRST_ROW || head->input == INPUT_POOLED_ROWS;
	return head->input == INPUT_ALL_ROWS ? tokens : each ? sequences : labels;
}

/* A head that reads through the transform of the masked-word head, whose tensors it takes. */
static void lay_out_transformed_head(struct head_activations *head, struct layout *layout, struct activations *a,
				     const struct head *what, struct tensor encoded, bool training)
{
	int64_t hidden = a->model->config.hidden_size;
	lay_out_mlm_head(a, layout, hidden, hidden);
	if (what->input == INPUT_ALL_ROWS)
		a->masked = encoded;
	if (what->input == INPUT_ALL_ROWS && training)
		a->masked_gradient = a->transformed_gradient = a->gradient;
	head->rows = a->masked;
	head->pooled = a->transformed;
	head->dropped = training && what->drops ? matrix(layout, hidden) : head->pooled;
	head->logits = matrix(layout, what->outputs);
	if (!training)
		return;
	head->logits_gradient = matrix(layout, what->outputs);
	head->input_gradient = a->transformed_gradient;
	head->rows_gradient = a->masked_gradient;
}

static void lay_out_head(struct head_activations *head, struct layout *layout, struct activations *a, const struct model *model,
			 const struct head *what, struct tensor encoded, struct tensor gradient, bool training)
{
	bool all = what->input == INPUT_ALL_ROWS, drops = training && what->drops;
	if (what->input == INPUT_POOLED_ROWS) {
		head->logits = vectors(layout, model->config.hidden_size);
		if (training)
			head->logits_gradient = vectors(layout, model->config.hidden_size);
		return;
	}
	int64_t width = (int64_t)(what->joined > 1 ? what->joined : 1) * model->config.hidden_size;
	if (model_head_transforms(&model->config, what)) {
		lay_out_transformed_head(head, layout, a, what, encoded, training);
		return;
	}
	head->rows = all ? encoded : matrix(layout, width);
	head->pooled = what->pooled ? matrix(layout, width) : head->rows;
	if (what->pooled && activation_is_gelu(model_head_form(&model->config, what)->activation))
		head->pre = training ? matrix(layout, width) : without_data(head->pooled);
	head->dropped = drops ? matrix(layout, width) : head->pooled;
	head->logits = what->loss == LOSS_NONE ? head->dropped : matrix(layout, what->outputs);
	if (!training)
		return;
	head->logits_gradient = matrix(layout, what->outputs);
	head->input_gradient = all ? gradient : matrix(layout, width);
	head->rows_gradient = what->pooled ? matrix(layout, width) : head->input_gradient;
}

/* Weights over the vocabulary: the transform of the masked-word head reads all rows. */
static void lay_out_splade_head(struct activations *a, struct layout *layout, const struct head *what, int64_t tokens)
{
	const struct model_config *config = &a->model->config;
	a->heads[0].logits = vectors(layout, what->outputs);
	if (a->training) {
		a->heads[0].logits_gradient = vectors(layout, what->outputs);
		a->heads[0].chosen = take(layout, what->outputs, DTYPE_F32); /* numbers of the same size */
	}
	layout->capacity = a->capacity.tokens;
	layout->rows = tokens;
	lay_out_mlm_head(a, layout, config->hidden_size, model_embedding_size(config));
	a->masked = a->layers ? activations_output(a) : (struct tensor){0};
	a->masked_gradient = a->gradient;
}

/* Lays out everything from `base` on (NULL: only measures), with shapes for these numbers of tokens, sequences, and labels;
 * returns the bytes used. */
static size_t lay_out(struct activations *a, void *base, int64_t tokens, int64_t sequences, const int64_t labels[BATCH_HEADS])
{
	const struct model *model = a->model;
	struct layout layout = {.arena = {.base = base, .capacity = SIZE_MAX},
				.backend = model->backend,
				.twins = model->backend->functions->twin_bytes &&
					 (a->training ? model->backend->fp8 : model->backend->int8)};
	if (a->training && model->backend->functions->kept_bytes && model->config.attention_probs_dropout_prob > 0)
		layout.kept = model->backend->functions->kept_bytes(model->backend, model->config.num_attention_heads,
								    model->config.hidden_size / model->config.num_attention_heads,
								    a->longest, &a->capacity);
	layout.capacity = a->capacity.tokens;
	layout.rows = tokens;
	lay_out_encoder(a, &layout, &model->config);
	for (int h = 0; h < model->heads.count; h++) {
		const struct head *head = &model->heads.head[h];
		layout.capacity = head_items(head, a->capacity.tokens, a->capacity.sequences, a->capacity.labels[h].count);
		layout.rows = head_items(head, tokens, sequences, labels[h]);
		if (head->loss == LOSS_WORDS)
			lay_out_mlm_head(a, &layout, model->config.hidden_size, model_embedding_size(&model->config));
		else if (head->pooling == POOLING_SPLADE)
			lay_out_splade_head(a, &layout, head, tokens);
		else
			lay_out_head(&a->heads[h], &layout, a, model, head,
				     a->layers ? activations_output(a) : (struct tensor){0}, a->gradient, a->training);
		if (a->training && head->positive_weights)
			a->heads[h].positive_weights = arena_take(&layout.arena, (size_t)head->outputs * sizeof(float));
		if (head->loss == LOSS_POINTERS) {
			layout.capacity = a->capacity.labels[h].count;
			layout.rows = labels[h];
			a->heads[h].lse = statistic(&layout, head->pointers);
		}
	}
	return layout.arena.used;
}

size_t activations_bytes(const struct model *model, struct batch_capacity capacity, int32_t longest, bool training)
{
	struct activations measured = {
		.model = model, .capacity = backend_room(model->backend, capacity), .longest = longest, .training = training};
	static const int64_t none[BATCH_HEADS];
	return lay_out(&measured, NULL, 0, 0, none);
}

enum status activations_create(struct activations **out, const struct model *model, struct batch_capacity capacity,
			       int32_t longest, bool training)
{
	struct backend *be = model->backend;
	struct activations *a = NULL;
	TRY(memory_new(&a, 1, sizeof *a, "activations"));
	*a = (struct activations){
		.model = model, .capacity = backend_room(be, capacity), .longest = longest, .training = training};
	enum status status;
	TRY_GOTO(memory_new(&a->layers, model->config.num_hidden_layers, sizeof *a->layers, "activations"), fail);
	TRY_GOTO(be->functions->allocate(be, &a->memory, activations_bytes(model, capacity, longest, training), "activations"),
		 fail);
	int64_t labels[BATCH_HEADS];
	for (int h = 0; h < BATCH_HEADS; h++)
		labels[h] = a->capacity.labels[h].count;
	lay_out(a, a->memory, a->capacity.tokens, a->capacity.sequences, labels);
	for (int h = 0; h < model->heads.count; h++)
		if (a->heads[h].positive_weights)
			be->functions->to_device(be, a->heads[h].positive_weights, model->heads.head[h].positive_weights,
						 (size_t)model->heads.head[h].outputs * sizeof(float));
	*out = a;
	return OK;

fail:
	activations_free(a);
	return status;
}

void activations_free(struct activations *a)
{
	if (!a)
		return;
	if (a->memory)
		a->model->backend->functions->release(a->model->backend, a->memory);
	free(a->layers);
	free(a);
}

void activations_tap(struct activations *a, const struct layer_taps *taps)
{
	a->taps = taps;
}

void activations_fit(struct activations *a, const struct batch *batch)
{
	int64_t labels[BATCH_HEADS];
	/* Only what backward needs depends on the length of sequences, and a back end may round the longest one up. */
	BUG_IF(!batch_fits(batch, &a->capacity) || (a->training && batch->longest > a->longest));
	for (int h = 0; h < BATCH_HEADS; h++)
		labels[h] = batch->labels[h].count;
	lay_out(a, a->memory, batch->token_count, batch->sequence_count, labels);
}

struct shape_limits model_shape_limits(const struct model_config *config, struct batch_capacity capacity, int32_t longest,
				       bool training)
{
	return (struct shape_limits){
		.batch = capacity,
		.longest = longest,
		.hidden = config->hidden_size,
		.heads = config->num_attention_heads,
		.intermediate = model_wide_size(config),
		.vocab = config->vocab_size,
		.embedding = model_embedding_size(config),
		.training = training,
	};
}
