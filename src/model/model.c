/* The encoder, forward and backward side by side: BERT's (Devlin et al. 2019; post-LN as in Vaswani et al. 2017), and with
 * pre-norm, rotary positions, windows, and a gated feed-forward part ModernBERT's (Warner et al. 2024). The heads are in heads.c,
 * the places of weights in parameters.c, and what forward saves in activations.c. */
#include "model/activations.h"
#include "model/forms.h"
#include "model/low_rank.h"

/* The places with dropout, each with masks of its own. Layer -1 is the embeddings. */
enum dropout_place {
	DROPOUT_EMBEDDINGS = 0,
	DROPOUT_PROBABILITIES = 0,
	DROPOUT_ATTENTION = 1,
	DROPOUT_OUTPUT = 2,
	DROPOUT_INNER = 3,
};

static enum dropout_kind kind_at(const struct model_form *form, int32_t layer, enum dropout_place place)
{
	if (layer < 0)
		return form->embedding_dropout;
	switch (place) {
	case DROPOUT_ATTENTION: return form->attention_output_dropout;
	case DROPOUT_OUTPUT: return form->output_dropout;
	case DROPOUT_INNER: return form->inner_dropout;
	default: return DROPS_ATTENTION;
	}
}

static struct dropout dropout_at(const struct activations *a, int32_t layer, enum dropout_place place)
{
	const struct model_config *config = &a->model->config;
	const double probabilities[] = {
		[DROPS_HIDDEN] = config->hidden_dropout_prob,
		[DROPS_ATTENTION] = config->attention_probs_dropout_prob,
		[DROPS_EMBEDDINGS] = config->embedding_dropout,
		[DROPS_NOTHING] = 0,
	};
	double p = probabilities[kind_at(model_form_of(config), layer, place)];
	return (struct dropout){.p = a->dropout ? p : 0, .site = (uint32_t)(layer + 1) * 4 + (uint32_t)place};
}

static struct tensor layer_input(const struct activations *a, int32_t layer)
{
	return layer > 0 ? a->layers[layer - 1].y : a->embedded;
}

struct tensor activations_output(const struct activations *a)
{
	return layer_input(a, a->model->config.num_hidden_layers);
}

/* With pre-norm: the residual stream as a layer finds it. */
static struct tensor stream_of(const struct activations *a, int32_t layer)
{
	return layer > 0 ? a->layers[layer - 1].output_sum : a->embedded;
}

/* Whether a layer's hidden states, as transformers gives them, are its y: with pre-norm they are those of the stream, normed
 * after the last layer only. */
static bool is_normed(const struct activations *a, int32_t layer)
{
	const struct model_config *config = &a->model->config;
	return !model_form_of(config)->pre_norm || layer < 0 || layer + 1 == config->num_hidden_layers;
}

struct tensor activations_hidden(const struct activations *a, int32_t layer)
{
	return is_normed(a, layer) ? layer_input(a, layer + 1) : a->layers[layer].output_sum;
}

static int32_t window_of(const struct model_config *config, int32_t layer)
{
	return model_layer_is_global(config, layer) ? 0 : config->attention.window;
}

static void rotate(const struct model *model, struct replica *replica, const struct batch *batch, int32_t layer, bool back,
		   struct tensor qkv)
{
	const struct model_config *config = &model->config;
	bool is_global = model_layer_is_global(config, layer);
	if (model_form_of(config)->positions == POSITIONS_ROTARY)
		rotary(replica, &(struct rotary){.batch = batch,
						 .heads = config->num_attention_heads,
						 .base = is_global ? config->attention.global_base : config->attention.local_base,
						 .back = back,
						 .qkv = qkv});
}

static void feed_forward(const struct model *model, const struct activations *a, struct replica *replica,
			 const struct batch *batch, int32_t number)
{
	const struct layer_weights *w = &model->layers[number];
	const struct layer_activations *layer = &a->layers[number];
	if (!model_form_of(&model->config)->gated) {
		linear_gelu_fwd(replica, &(struct linear_gelu_fwd){.w = &w->intermediate,
								   .b = weight_of(&w->intermediate_bias),
								   .activation = model->config.hidden_act,
								   .x = layer->attention_norm,
								   .pre = layer->pre,
								   .y = layer->gelu});
		return;
	}
	linear_fwd(replica, &(struct linear_fwd){.w = &w->intermediate,
						 .b = weight_of(&w->intermediate_bias),
						 .x = layer->attention_norm,
						 .y = layer->pre});
	gated_fwd(replica, &(struct gated_fwd){.batch = batch,
					       .activation = model->config.hidden_act,
					       .dropout = dropout_at(a, number, DROPOUT_INNER),
					       .pre = layer->pre,
					       .y = layer->gelu});
}

/* Post-norm: y1 = LN(x + dropout(attention(x))), y = LN(y1 + dropout(feed_forward(y1))).
 * Pre-norm, with the stream s, of which x is the norm: s1 = s + dropout(attention(x)), s2 = s1 + feed_forward(LN(s1)), y =
 * LN(s2); y's norm is that of the next layer's attention, or the final one. The first layer has none: x is s. */
static void layer_forward(const struct model *model, struct activations *a, struct replica *replica, const struct batch *batch,
			  int32_t number)
{
	const struct model_config *config = &model->config;
	const struct layer_weights *w = &model->layers[number];
	struct layer_activations *layer = &a->layers[number];
	bool pre_norm = model_form_of(config)->pre_norm;
	struct tensor x = layer_input(a, number);

	linear_fwd(replica, &(struct linear_fwd){.w = &w->qkv, .b = weight_of(&w->qkv_bias), .x = x, .y = layer->qkv});
	rotate(model, replica, batch, number, false, layer->qkv);
	attention_fwd(replica, &(struct attention_fwd){.batch = batch,
						       .heads = config->num_attention_heads,
						       .window = window_of(config, number),
						       .dropout = dropout_at(a, number, DROPOUT_PROBABILITIES),
						       .qkv = layer->qkv,
						       .y = layer->attention,
						       .lse = layer->lse});
	linear_norm_fwd(replica, &(struct linear_norm_fwd){.batch = batch,
							   .w = &w->attention_output,
							   .b = weight_of(&w->attention_output_bias),
							   .gamma = &w->attention_gamma,
							   .beta = weight_of(&w->attention_beta),
							   .epsilon = config->layer_norm_eps,
							   .dropout = dropout_at(a, number, DROPOUT_ATTENTION),
							   .x = layer->attention,
							   .residual = pre_norm ? stream_of(a, number) : x,
							   .sum = layer->attention_sum,
							   .mean = layer->attention_mean,
							   .rstd = layer->attention_rstd,
							   .y = layer->attention_norm});
	feed_forward(model, a, replica, batch, number);
	linear_norm_fwd(replica, &(struct linear_norm_fwd){.batch = batch,
							   .w = &w->output,
							   .b = weight_of(&w->output_bias),
							   .gamma = &w->output_gamma,
							   .beta = weight_of(&w->output_beta),
							   .epsilon = config->layer_norm_eps,
							   .dropout = dropout_at(a, number, DROPOUT_OUTPUT),
							   .x = layer->gelu,
							   .residual = pre_norm ? layer->attention_sum : layer->attention_norm,
							   .sum = layer->output_sum,
							   .mean = layer->output_mean,
							   .rstd = layer->output_rstd,
							   .y = layer->y});
}

/* Leaves the gradient of the first product in a->pre_gradient. */
static void feed_forward_backward(const struct model *model, struct activations *a, struct replica *replica,
				  const struct batch *batch, int32_t number, struct tensor branch, bool overwrite)
{
	const struct layer_weights *w = &model->layers[number];
	const struct layer_activations *layer = &a->layers[number];
	bool gated = model_form_of(&model->config)->gated;
	linear_bwd(replica, &(struct linear_bwd){.w = &w->output,
						 .producer_bias = gated ? NULL : weight_of(&w->intermediate_bias),
						 .pre_activation = gated ? ACTIVATION_NONE : model->config.hidden_act,
						 .overwrite = overwrite,
						 .dy = branch,
						 .x = layer->gelu,
						 .pre = gated ? (struct tensor){0} : layer->pre,
						 .dx = gated ? a->gelu_gradient : a->pre_gradient});
	if (gated)
		gated_bwd(replica, &(struct gated_bwd){.batch = batch,
						       .activation = model->config.hidden_act,
						       .dropout = dropout_at(a, number, DROPOUT_INNER),
						       .dy = a->gelu_gradient,
						       .pre = layer->pre,
						       .dpre = a->pre_gradient});
}

/* The same in reverse. a->gradient comes in as the gradient of the layer's y and leaves as that of its x. Each norm turns it
 * into the gradient of the residual sum; the sum's other term, the branch, gets this gradient through the dropout mask, and
 * the branch's first product adds its own contribution. With pre-norm, the sum's gradient stays in a->stream_gradient, to which
 * each norm adds its input's; the first layer's input is the stream, and gets it all. Of the lowest layer that learns, the last
 * norm may be all that does. */
static void layer_backward(const struct model *model, struct activations *a, struct replica *replica, const struct batch *batch,
			   int32_t number, bool overwrite)
{
	const struct model_config *config = &model->config;
	const struct layer_weights *w = &model->layers[number];
	const struct layer_activations *layer = &a->layers[number];
	struct dropout output_dropout = dropout_at(a, number, DROPOUT_OUTPUT);
	struct dropout attention_dropout = dropout_at(a, number, DROPOUT_ATTENTION);
	bool pre_norm = model_form_of(config)->pre_norm, rotary = model_form_of(config)->positions == POSITIONS_ROTARY;
	bool is_last = number + 1 == config->num_hidden_layers, is_lowest = number == model->lowest_layer;
	struct tensor none = {0}, residual = pre_norm ? a->stream_gradient : a->gradient;
	/* without a mask, the branch's gradient equals the residual's: one buffer */
	struct tensor output_branch = a->branch_gradient, branch = a->branch_gradient;
	if (output_dropout.p == 0)
		output_branch.data = residual.data;
	if (attention_dropout.p == 0)
		branch.data = residual.data;

	norm_bwd(replica, &(struct norm_bwd){.batch = batch,
					     .gamma = &w->output_gamma,
					     .beta = weight_of(&w->output_beta),
					     .bias = learning(&w->output_bias),
					     .dropout = output_dropout,
					     .overwrite = overwrite,
					     .dy = a->gradient,
					     .sum = layer->output_sum,
					     .mean = layer->output_mean,
					     .rstd = layer->output_rstd,
					     .add = pre_norm && !is_last ? a->stream_gradient : none,
					     .dresidual = residual,
					     .dx = output_branch});
	if (!learning(&w->output) && model->adapted_count == 0)
		return;
	feed_forward_backward(model, a, replica, batch, number, output_branch, overwrite);
	linear_bwd(replica, &(struct linear_bwd){.w = &w->intermediate,
						 .b = model_form_of(config)->gated ? weight_of(&w->intermediate_bias) : NULL,
						 .overwrite = overwrite,
						 .dy = a->pre_gradient,
						 .x = layer->attention_norm,
						 .add = pre_norm ? none : a->gradient,
						 .dx = a->gradient});
	norm_bwd(replica, &(struct norm_bwd){.batch = batch,
					     .gamma = &w->attention_gamma,
					     .beta = weight_of(&w->attention_beta),
					     .bias = weight_of(&w->attention_output_bias),
					     .dropout = attention_dropout,
					     .overwrite = overwrite,
					     .dy = a->gradient,
					     .sum = layer->attention_sum,
					     .mean = layer->attention_mean,
					     .rstd = layer->attention_rstd,
					     .add = pre_norm ? a->stream_gradient : none,
					     .dresidual = residual,
					     .dx = branch});
	linear_bwd(replica, &(struct linear_bwd){.w = &w->attention_output,
						 .overwrite = overwrite,
						 .dy = branch,
						 .x = layer->attention,
						 .dx = a->attention_gradient});
	attention_bwd(replica, &(struct attention_bwd){.batch = batch,
						       .heads = config->num_attention_heads,
						       .window = window_of(config, number),
						       .dropout = dropout_at(a, number, DROPOUT_PROBABILITIES),
						       .overwrite = overwrite,
						       .bias = rotary ? NULL : weight_of(&w->qkv_bias),
						       .dy = a->attention_gradient,
						       .qkv = layer->qkv,
						       .y = layer->attention,
						       .lse = layer->lse,
						       .dqkv = a->qkv_gradient});
	rotate(model, replica, batch, number, true, a->qkv_gradient);
	linear_bwd(replica, &(struct linear_bwd){.w = &w->qkv,
						 .b = rotary ? weight_of(&w->qkv_bias) : NULL,
						 .overwrite = overwrite,
						 .dy = a->qkv_gradient,
						 .x = layer_input(a, number),
						 .add = is_lowest     ? none
							: !pre_norm   ? a->gradient
							: number == 0 ? a->stream_gradient
								      : none,
						 .dx = is_lowest ? none : a->gradient});
}

static void await_layer(const struct model *model, int32_t layer)
{
	if (model->before_layer)
		model->before_layer(model->before_context, layer);
}

void model_await(const struct model *model)
{
	for (int32_t layer = -1; layer <= model->config.num_hidden_layers; layer++)
		await_layer(model, layer);
}

static void tap_forward(const struct activations *a, int32_t layer)
{
	if (a->taps)
		a->taps->forward(a->taps->context, layer, activations_hidden(a, layer));
}

static void tap_backward(const struct activations *a, int32_t layer)
{
	if (a->taps)
		a->taps->backward(a->taps->context, layer, is_normed(a, layer) ? a->gradient : a->stream_gradient);
}

/* The table of positions, from the row of a text's first token on. */
static struct weight positions_of(const struct model *model)
{
	struct weight table = model->position;
	int64_t first = model_first_position(&model->config);
	size_t skipped = (size_t)(first * table.master.columns);
	struct tensor *tensors[] = {&table.master, &table.gradient};
	for (int i = 0; i < 2; i++) {
		tensors[i]->rows -= first;
		if (tensors[i]->data)
			tensors[i]->data = (char *)tensors[i]->data + skipped * dtype_bytes(tensors[i]->dtype);
	}
	table.first_row = first;
	return table;
}

/* The batch with the types that the model has. */
static struct batch typed(const struct activations *a, const struct batch *batch)
{
	struct batch own = *batch;
	if (a->one_type)
		own.types = a->one_type;
	return own;
}

static void embed(const struct model *model, struct activations *a, struct replica *replica, const struct batch *batch,
		  bool dropout)
{
	activations_fit(a, batch);
	a->dropout = dropout;
	await_layer(model, -1);
	struct weight position = positions_of(model);
	struct batch own = typed(a, batch);
	bool narrow = model->embedding_projection.master.rows > 0;
	embed_fwd(replica, &(struct embed_fwd){.batch = &own,
					       .word = &model->word,
					       .position = weight_of(&position),
					       .type = weight_of(&model->type),
					       .gamma = &model->embedding_gamma,
					       .beta = weight_of(&model->embedding_beta),
					       .epsilon = model->config.layer_norm_eps,
					       .dropout = dropout_at(a, -1, DROPOUT_EMBEDDINGS),
					       .sum = a->embedding_sum,
					       .mean = a->embedding_mean,
					       .rstd = a->embedding_rstd,
					       .y = narrow ? a->narrow : a->embedded});
	if (narrow)
		linear_fwd(replica, &(struct linear_fwd){.w = &model->embedding_projection,
							 .b = &model->embedding_projection_bias,
							 .x = a->narrow,
							 .y = a->embedded});
	tap_forward(a, -1);
}

static void layers_forward(const struct model *model, struct activations *a, struct replica *replica, const struct batch *batch,
			   int32_t first, int32_t count)
{
	for (int32_t layer = first; layer < first + count; layer++) {
		await_layer(model, layer);
		layer_forward(model, a, replica, batch, layer);
		tap_forward(a, layer);
	}
}

void model_forward(const struct model *model, struct activations *a, struct replica *replica, const struct batch *batch,
		   bool dropout)
{
	int32_t layers = model->config.num_hidden_layers;
	embed(model, a, replica, batch, dropout);
	layers_forward(model, a, replica, batch, 0, layers);
	await_layer(model, layers); /* for the heads that follow */
}

void model_embed(const struct model *model, struct activations *a, struct replica *replica, const struct batch *batch)
{
	BUG_IF(a->training);
	embed(model, a, replica, batch, false);
}

void model_layers(const struct model *model, struct activations *a, struct replica *replica, const struct batch *batch,
		  int32_t first, int32_t count)
{
	BUG_IF(a->training || a->dropout);
	layers_forward(model, a, replica, batch, first, count);
}

void model_backward(const struct model *model, struct activations *a, struct replica *replica, const struct batch *batch,
		    bool overwrite, void (*layer_done)(void *context, int32_t layer), void *context)
{
	BUG_IF(!a->training);
	if (layer_done)
		layer_done(context, model->config.num_hidden_layers);
	for (int32_t layer = model->config.num_hidden_layers - 1; layer >= 0 && layer >= model->lowest_layer; layer--) {
		tap_backward(a, layer);
		layer_backward(model, a, replica, batch, layer, overwrite || model->adapted_count > 0);
		low_rank_backward(model, layer, overwrite);
		if (layer_done)
			layer_done(context, layer);
	}
	if (model->lowest_layer >= 0)
		return;
	tap_backward(a, -1);
	struct weight position = positions_of(model);
	struct batch own = typed(a, batch);
	bool narrow = model->embedding_projection.master.rows > 0;
	if (narrow)
		linear_bwd(replica, &(struct linear_bwd){.w = &model->embedding_projection,
							 .b = &model->embedding_projection_bias,
							 .overwrite = overwrite,
							 .dy = a->gradient,
							 .x = a->narrow,
							 .dx = a->narrow_gradient});
	embed_bwd(replica, &(struct embed_bwd){.batch = &own,
					       .word = &model->word,
					       .position = weight_of(&position),
					       .type = weight_of(&model->type),
					       .gamma = &model->embedding_gamma,
					       .beta = weight_of(&model->embedding_beta),
					       .dropout = dropout_at(a, -1, DROPOUT_EMBEDDINGS),
					       .overwrite = overwrite,
					       /* a tied output layer has already written the table's gradient */
					       .overwrite_word = overwrite && model->word.use != WEIGHT_TIED,
					       .dy = narrow ? a->narrow_gradient : a->gradient,
					       .sum = a->embedding_sum,
					       .mean = a->embedding_mean,
					       .rstd = a->embedding_rstd});
	if (layer_done)
		layer_done(context, -1);
}

void model_gradients(const struct model *model, struct activations *activations, struct replica *replica,
		     const struct batch *batch, bool overwrite, void (*layer_done)(void *context, int32_t layer), void *context)
{
	model_forward(model, activations, replica, batch, true);
	model_losses(model, activations, replica, batch, true, overwrite);
	model_backward(model, activations, replica, batch, overwrite, layer_done, context);
}
