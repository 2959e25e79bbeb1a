/* The place, name, and initialization of every weight of the model: one table for each part. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/pool.h"
#include "base/rng.h"
#include "model/forms.h"
#include "model/low_rank.h"

/* The sizes of which shapes are made. */
enum size { ONE, VOCAB, POSITIONS, TYPES, EMBEDDING, HIDDEN, THREE_HIDDEN, INTERMEDIATE, GATE, WIDE };

static int64_t size_of(const struct model_config *config, enum size size)
{
	switch (size) {
	case VOCAB: return config->vocab_size;
	case POSITIONS: return config->max_position_embeddings;
	case TYPES: return config->type_vocab_size;
	case EMBEDDING: return model_embedding_size(config);
	case HIDDEN: return config->hidden_size;
	case THREE_HIDDEN: return 3 * (int64_t)config->hidden_size;
	case INTERMEDIATE: return config->intermediate_size;
	case GATE: return model_form_of(config)->gate_apart ? config->intermediate_size : 0;
	case WIDE: return model_wide_size(config) - size_of(config, GATE);
	case ONE: break;
	}
	return 1;
}

/* Each row describes one named tensor. Rows with the same weight form one weight without gaps: key and value follow query, so
 * one product computes all three. */
struct parameter_row {
	const char *name;
	size_t weight; /* offset of its struct weight in the struct of the part */
	enum size rows, columns;
	enum weight_use use;
	enum parameter_init init;
	size_t absence; /* offset in struct model_config of the flag that removes the row; 0: none */
};

#define ALWAYS 0
#define UNLESS(part) offsetof(struct model_config, no_bias.part)
#define IN_MODEL(field) offsetof(struct model, field)
#define IN_LAYER(field) offsetof(struct layer_weights, field)

/* clang-format off */
static const struct parameter_row embedding_rows[] = {
	{"bert.embeddings.word_embeddings.weight", IN_MODEL(word), VOCAB, EMBEDDING, WEIGHT_TIED, INIT_NORMAL, ALWAYS},
	{"bert.embeddings.position_embeddings.weight", IN_MODEL(position), POSITIONS, EMBEDDING,
	 WEIGHT_TABLE, INIT_NORMAL, ALWAYS},
	{"bert.embeddings.token_type_embeddings.weight", IN_MODEL(type), TYPES, EMBEDDING, WEIGHT_TABLE, INIT_NORMAL, ALWAYS},
	{"bert.embeddings.LayerNorm.weight", IN_MODEL(embedding_gamma), ONE, EMBEDDING, WEIGHT_VECTOR, INIT_ONE, ALWAYS},
	{"bert.embeddings.LayerNorm.bias", IN_MODEL(embedding_beta), ONE, EMBEDDING, WEIGHT_VECTOR, INIT_ZERO, UNLESS(norm)},
};

/* Follows embeddings that are narrower than the hidden states. */
static const struct parameter_row projection_rows[] = {
	{"bert.embeddings_project.weight", IN_MODEL(embedding_projection), HIDDEN, EMBEDDING, WEIGHT_HEAD, INIT_NORMAL, ALWAYS},
	{"bert.embeddings_project.bias", IN_MODEL(embedding_projection_bias), ONE, HIDDEN, WEIGHT_VECTOR, INIT_ZERO, ALWAYS},
};

/* Names are preceded by "bert.encoder.layer.<number>.". */
static const struct parameter_row separate_rows[] = {
	{"attention.self.query.weight", IN_LAYER(qkv), HIDDEN, HIDDEN, WEIGHT_LINEAR, INIT_NORMAL, ALWAYS},
	{"attention.self.key.weight", IN_LAYER(qkv), HIDDEN, HIDDEN, WEIGHT_LINEAR, INIT_NORMAL, ALWAYS},
	{"attention.self.value.weight", IN_LAYER(qkv), HIDDEN, HIDDEN, WEIGHT_LINEAR, INIT_NORMAL, ALWAYS},
	{"attention.self.query.bias", IN_LAYER(qkv_bias), ONE, HIDDEN, WEIGHT_VECTOR, INIT_ZERO, UNLESS(attention)},
	{"attention.self.key.bias", IN_LAYER(qkv_bias), ONE, HIDDEN, WEIGHT_VECTOR, INIT_ZERO, UNLESS(attention)},
	{"attention.self.value.bias", IN_LAYER(qkv_bias), ONE, HIDDEN, WEIGHT_VECTOR, INIT_ZERO, UNLESS(attention)},
};

/* The same as one tensor. */
static const struct parameter_row fused_rows[] = {
	{"attention.self.qkv.weight", IN_LAYER(qkv), THREE_HIDDEN, HIDDEN, WEIGHT_LINEAR, INIT_NORMAL, ALWAYS},
	{"attention.self.qkv.bias", IN_LAYER(qkv_bias), ONE, THREE_HIDDEN, WEIGHT_VECTOR, INIT_ZERO, UNLESS(attention)},
};

static const struct parameter_row layer_rows[] = {
	{"attention.output.dense.weight", IN_LAYER(attention_output), HIDDEN, HIDDEN, WEIGHT_LINEAR, INIT_NORMAL, ALWAYS},
	{"attention.output.dense.bias", IN_LAYER(attention_output_bias), ONE, HIDDEN,
	 WEIGHT_VECTOR, INIT_ZERO, UNLESS(attention)},
	{"attention.output.LayerNorm.weight", IN_LAYER(attention_gamma), ONE, HIDDEN, WEIGHT_VECTOR, INIT_ONE, ALWAYS},
	{"attention.output.LayerNorm.bias", IN_LAYER(attention_beta), ONE, HIDDEN, WEIGHT_VECTOR, INIT_ZERO, UNLESS(norm)},
	{"intermediate.gate.weight", IN_LAYER(intermediate), GATE, HIDDEN, WEIGHT_LINEAR, INIT_NORMAL, ALWAYS},
	{"intermediate.dense.weight", IN_LAYER(intermediate), WIDE, HIDDEN, WEIGHT_LINEAR, INIT_NORMAL, ALWAYS},
	{"intermediate.dense.bias", IN_LAYER(intermediate_bias), ONE, WIDE, WEIGHT_VECTOR, INIT_ZERO, UNLESS(feed_forward)},
	{"output.dense.weight", IN_LAYER(output), HIDDEN, INTERMEDIATE, WEIGHT_LINEAR, INIT_NORMAL, ALWAYS},
	{"output.dense.bias", IN_LAYER(output_bias), ONE, HIDDEN, WEIGHT_VECTOR, INIT_ZERO, UNLESS(feed_forward)},
};

/* The norm of the layer's sum: its own, or with pre-norm the next layer's first or the final one. */
static const struct parameter_row norm_rows[] = {
	{"LayerNorm.weight", IN_LAYER(output_gamma), ONE, HIDDEN, WEIGHT_VECTOR, INIT_ONE, ALWAYS},
	{"LayerNorm.bias", IN_LAYER(output_beta), ONE, HIDDEN, WEIGHT_VECTOR, INIT_ZERO, UNLESS(norm)},
};

static const struct parameter_row pooler_rows[] = {
	{"bert.pooler.dense.weight", IN_MODEL(pooler), HIDDEN, HIDDEN, WEIGHT_HEAD, INIT_NORMAL, ALWAYS},
	{"bert.pooler.dense.bias", IN_MODEL(pooler_bias), ONE, HIDDEN, WEIGHT_VECTOR, INIT_ZERO, ALWAYS},
};

/* A head's own layer in the pooler's place. */
static const struct parameter_row dense_rows[] = {
	{"classifier.dense.weight", IN_MODEL(pooler), HIDDEN, HIDDEN, WEIGHT_HEAD, INIT_NORMAL, ALWAYS},
	{"classifier.dense.bias", IN_MODEL(pooler_bias), ONE, HIDDEN, WEIGHT_VECTOR, INIT_ZERO, ALWAYS},
};

static const struct parameter_row transform_rows[] = {
	{"cls.predictions.transform.dense.weight", IN_MODEL(transform), EMBEDDING, HIDDEN, WEIGHT_HEAD, INIT_NORMAL, ALWAYS},
	{"cls.predictions.transform.dense.bias", IN_MODEL(transform_bias), ONE, EMBEDDING,
	 WEIGHT_VECTOR, INIT_ZERO, UNLESS(classifier)},
	{"cls.predictions.transform.LayerNorm.weight", IN_MODEL(transform_gamma), ONE, EMBEDDING,
	 WEIGHT_VECTOR, INIT_ONE, ALWAYS},
	{"cls.predictions.transform.LayerNorm.bias", IN_MODEL(transform_beta), ONE, EMBEDDING,
	 WEIGHT_VECTOR, INIT_ZERO, UNLESS(norm)},
};

/* The output layer's matrix is the word embedding table, unless config.json unties them. */
static const struct parameter_row word_rows[] = {
	{"cls.predictions.decoder.weight", IN_MODEL(decoder), VOCAB, EMBEDDING, WEIGHT_OUTPUT, INIT_NORMAL, ALWAYS},
	{"cls.predictions.bias", IN_MODEL(prediction_bias), ONE, VOCAB, WEIGHT_VECTOR, INIT_ZERO, ALWAYS},
};
/* clang-format on */

#define COUNT(array) ((int)(sizeof array / sizeof((array)[0])))

/* Each tensor begins at a multiple of 256 bytes in fp32 (512 in float64, since offsets in elements are the same on every back
 * end). */
#define ALIGNMENT_ELEMENTS 64

/* Appends a tensor. If it joins, it continues the weight before it. */
static void add_parameter(struct model *model, const struct parameter *like, struct weight *weight, enum weight_use use,
			  bool joins)
{
	struct parameter *parameter = &model->parameters[model->parameter_count++];
	*parameter = *like;
	parameter->count = parameter->rows * parameter->columns;
	parameter->offset = joins ? model->slab_count : round_up(model->slab_count, ALIGNMENT_ELEMENTS);
	parameter->decays = parameter->init == INIT_NORMAL;
	parameter->rate = 1;
	parameter->depth = parameter->layer;
	model->slab_count = parameter->offset + parameter->count;
	model->element_count += parameter->count;

	/* Masters get their addresses once memory is allocated; until then, shapes are enough for planning. */
	struct tensor shape = {.dtype = model->backend->master_dtype};
	if (joins)
		shape = weight->master;
	else
		model->weights[model->weight_count++] = weight;
	bool is_vector = use == WEIGHT_VECTOR;
	shape.rows = is_vector ? 1 : shape.rows + parameter->rows;
	shape.columns = is_vector ? shape.columns + parameter->columns : parameter->columns;
	weight->use = use;
	weight->master = weight->gradient = shape;
}

/* Whether the model lacks a tensor. */
static bool lacks(const struct model_config *config, const struct parameter_row *row)
{
	const struct model_form *form = model_form_of(config);
	if (row->absence && *(const bool *)((const char *)config + row->absence))
		return true;
	return size_of(config, row->rows) == 0 || (row->use == WEIGHT_OUTPUT && !config->untied) ||
	       (row->rows == TYPES && !form->has_types) || (row->rows == POSITIONS && form->positions != POSITIONS_LEARNED);
}

/* Appends the tensors of one part; `owner` is the struct that contains its weights. */
static void add_rows(struct model *model, const struct parameter_row *rows, int count, const char *prefix, int32_t layer,
		     void *owner)
{
	for (int i = 0; i < count; i++) {
		const struct parameter_row *row = &rows[i];
		if (lacks(&model->config, row))
			continue;
		struct parameter parameter = {.rows = size_of(&model->config, row->rows),
					      .columns = size_of(&model->config, row->columns),
					      .init = row->init,
					      .layer = layer};
		int length = snprintf(parameter.name, sizeof parameter.name, "%s%s", prefix, row->name);
		BUG_IF(length < 0 || length >= (int)sizeof parameter.name);
		bool joins = i > 0 && rows[i - 1].weight == row->weight && !lacks(&model->config, &rows[i - 1]);
		bool tied = model_heads_have_words(&model->heads) && !model->config.untied;
		enum weight_use use = row->use == WEIGHT_TIED && !tied ? WEIGHT_TABLE : row->use;
		add_parameter(model, &parameter, (struct weight *)((char *)owner + row->weight), use, joins);
	}
}

static void add_layer(struct model *model, int32_t layer)
{
	const struct model_form *form = model_form_of(&model->config);
	struct layer_weights *weights = &model->layers[layer];
	char prefix[48];
	snprintf(prefix, sizeof prefix, "bert.encoder.layer.%d.", layer);
	if (form->fused)
		add_rows(model, fused_rows, COUNT(fused_rows), prefix, layer, weights);
	else
		add_rows(model, separate_rows, COUNT(separate_rows), prefix, layer, weights);
	add_rows(model, layer_rows, COUNT(layer_rows), prefix, layer, weights);
	if (!form->pre_norm)
		snprintf(prefix, sizeof prefix, "bert.encoder.layer.%d.output.", layer);
	else if (layer + 1 < model->config.num_hidden_layers)
		snprintf(prefix, sizeof prefix, "bert.encoder.layer.%d.input.", layer + 1);
	else
		snprintf(prefix, sizeof prefix, "bert.final.");
	int64_t before = model->parameter_count;
	add_rows(model, norm_rows, COUNT(norm_rows), prefix, layer, weights);
	for (int64_t i = before; i < model->parameter_count && form->pre_norm; i++)
		model->parameters[i].depth = layer + 1;
}

/* Appends the linear layer of a head. */
static void add_head(struct model *model, const struct head *head, struct head_weights *weights)
{
	int64_t inputs = (int64_t)(head->joined > 1 ? head->joined : 1) * model->config.hidden_size;
	struct parameter w = {.rows = head->outputs,
			      .columns = inputs,
			      .init = INIT_NORMAL,
			      .layer = model->config.num_hidden_layers,
			      .training = head->training};
	struct parameter b = {.rows = 1, .columns = head->outputs, .init = INIT_ZERO, .layer = w.layer, .training = w.training};
	snprintf(w.name, sizeof w.name, "%s.weight", head->name);
	snprintf(b.name, sizeof b.name, "%s.bias", head->name);
	add_parameter(model, &w, &weights->w, WEIGHT_HEAD, false);
	add_parameter(model, &b, &weights->b, WEIGHT_VECTOR, false);
}

/* Appends the layer that the heads read through: the pooler, which an encoder may have even if no head reads it, or a layer of
 * the head's own. */
static void add_pooler(struct model *model)
{
	const struct model_heads *heads = &model->heads;
	bool shared = heads->pooler && model_form_of(&model->config)->has_pooler, own = false;
	int32_t layer = model->config.num_hidden_layers;
	for (int h = 0; h < heads->count; h++)
		if (heads->head[h].pooled && !model_head_transforms(&model->config, &heads->head[h])) {
			shared = model_head_form(&model->config, &heads->head[h])->shared;
			own = !shared;
		}
	if (shared)
		add_rows(model, pooler_rows, COUNT(pooler_rows), "", layer, model);
	if (own)
		add_rows(model, dense_rows, COUNT(dense_rows), "", layer, model);
	model->heads.pooler = shared;
}

/* Appends A and B for each matrix that is adapted: after the encoder, of which no parameter is then trained. */
static enum status add_low_rank(struct model *model)
{
	int32_t rank = model->heads.low_rank.rank;
	TRY(low_rank_find(model));
	for (int64_t i = 0; i < model->adapted_count; i++) {
		struct adapted *adapted = &model->adapted[i];
		const struct parameter *base = &model->parameters[adapted->base];
		struct parameter a = {.rows = rank, .columns = base->columns, .init = INIT_UNIFORM, .layer = base->layer};
		struct parameter b = {.rows = base->rows, .columns = rank, .init = INIT_ZERO, .layer = base->layer};
		int stem = (int)strlen(base->name) - (int)strlen(".weight");
		snprintf(a.name, sizeof a.name, "%.*s.lora_A.weight", stem, base->name);
		snprintf(b.name, sizeof b.name, "%.*s.lora_B.weight", stem, base->name);
		adapted->a = model->parameter_count;
		add_parameter(model, &a, &adapted->a_weight, WEIGHT_TABLE, false);
		add_parameter(model, &b, &adapted->b_weight, WEIGHT_TABLE, false);
		for (int64_t p = adapted->a; p < model->parameter_count; p++)
			model->parameters[p].decays = true;
	}
	return OK;
}

/* Appends the linear layer that maps hidden states to a teacher's width. */
static void add_projection(struct model *model)
{
	struct head projection = {.outputs = model->heads.projection, .training = true, .name = "distillation.projection"};
	add_head(model, &projection, &model->projection);
}

/* In FP8, all linear layers of the encoder must have sizes that fit FP8 products. */
static enum status check_fp8(const struct model_config *config)
{
	const struct model_form *form = model_form_of(config);
	if (form->pre_norm || form->gated)
		return error_set(ERR_USAGE, "FP8 is not for the form \"%s\": use --precision bf16", form->model_type);
	bool is_hidden = config->hidden_size % FP8_MULTIPLE != 0;
	if (!is_hidden && config->intermediate_size % FP8_MULTIPLE == 0)
		return OK;
	return error_hinted(error_set(ERR_USAGE, "FP8 needs sizes that are multiples of %d, but '%s' is %d", FP8_MULTIPLE,
				      is_hidden ? "hidden_size" : "intermediate_size",
				      is_hidden ? config->hidden_size : config->intermediate_size),
			    "use --precision bf16");
}

static enum status freeze_encoder(struct model *model)
{
	double *rates;
	TRY(memory_new(&rates, model->parameter_count, sizeof *rates, "learning rates"));
	for (int64_t i = model->adapted[0].a; i < model->parameter_count; i++)
		rates[i] = 1;
	model_set_rates(model, rates);
	free(rates);
	return OK;
}

enum status model_create(struct model **out, struct backend *be, const struct model_config *config,
			 const struct model_heads *heads)
{
	BUG_IF(config->vocab_size < 1);
	if (be->fp8)
		TRY(check_fp8(config));
	int64_t layers = config->num_hidden_layers;
	int64_t most = COUNT(embedding_rows) + COUNT(projection_rows) +
		       layers * (COUNT(separate_rows) + COUNT(layer_rows) + COUNT(norm_rows)) + COUNT(pooler_rows) +
		       COUNT(transform_rows) + COUNT(word_rows) + 2 * BATCH_HEADS + 2;
	if (heads->low_rank.rank > 0)
		most += 2 * layers * (COUNT(separate_rows) + COUNT(layer_rows));
	struct model *model = NULL;
	TRY(memory_new(&model, 1, sizeof *model, "model"));
	model->config = *config;
	model->heads = *heads;
	for (int h = 0; h < heads->count && model_form_of(config)->span_layer; h++)
		if (heads->head[h].loss == LOSS_SEGMENT)
			snprintf(model->heads.head[h].name, sizeof model->heads.head[h].name, "%s",
				 model_form_of(config)->span_layer);
	model->backend = be;
	enum status status;
	TRY_GOTO(memory_new(&model->parameters, most, sizeof *model->parameters, "model parameters"), fail);
	TRY_GOTO(memory_new(&model->weights, most, sizeof *model->weights, "model weights"), fail);
	TRY_GOTO(memory_new(&model->layers, layers, sizeof *model->layers, "model layers"), fail);

	add_rows(model, embedding_rows, COUNT(embedding_rows), "", -1, model);
	if (model_embedding_size(config) != config->hidden_size)
		add_rows(model, projection_rows, COUNT(projection_rows), "", -1, model);
	for (int32_t layer = 0; layer < layers; layer++)
		add_layer(model, layer);
	if (heads->low_rank.rank > 0)
		TRY_GOTO(add_low_rank(model), fail);
	add_pooler(model);
	for (int h = 0; h < heads->count; h++) {
		bool alone = heads->head[h].input == INPUT_ALL_ROWS || heads->head[h].input == INPUT_POOLED_ROWS;
		BUG_IF(alone && heads->count > 1);
		bool has_words = head_has_words(&heads->head[h]);
		if (heads->head[h].loss == LOSS_NONE || (heads->head[h].loss == LOSS_VECTORS && !has_words))
			continue;
		if (has_words || model_head_transforms(config, &heads->head[h]))
			add_rows(model, transform_rows, COUNT(transform_rows), "", (int32_t)layers, model);
		if (has_words && heads->head[h].loss != LOSS_WORDS)
			model->heads.head[h].outputs = config->vocab_size;
		if (has_words)
			add_rows(model, word_rows, COUNT(word_rows), "", (int32_t)layers, model);
		else
			add_head(model, &model->heads.head[h], &model->head_weights[h]);
	}
	if (heads->projection > 0)
		add_projection(model);
	model->slab_count = round_up(model->slab_count, ALIGNMENT_ELEMENTS);
	model->slab = model->gradients = (struct tensor){.dtype = be->master_dtype, .rows = 1, .columns = model->slab_count};
	model->lowest_layer = -1;
	if (heads->low_rank.rank > 0)
		TRY_GOTO(freeze_encoder(model), fail);
	*out = model;
	return OK;

fail:
	model_free(model);
	return status;
}

void model_set_rates(struct model *model, const double *rates)
{
	int64_t first = 0, parameter = 0;
	for (int64_t i = 0; i < model->parameter_count; i++) {
		model->parameters[i].rate = rates[i];
		BUG_IF(rates[i] == 0 && first < i);
		first += rates[i] == 0;
	}
	BUG_IF(first == model->parameter_count);
	model->frozen_weights = 0;
	for (; parameter < first; model->frozen_weights++) {
		struct weight *weight = model->weights[model->frozen_weights];
		weight->gradient = (struct tensor){0};
		for (int64_t left = weight->master.rows * weight->master.columns; left > 0; parameter++)
			left -= model->parameters[parameter].count;
	}
	BUG_IF(parameter != first);
	model->frozen_count = first;
	model->frozen_elements = model->parameters[first].offset;
	model->gradients.columns = model->slab_count - model->frozen_elements;
	model->lowest_layer = model->parameters[first].layer;
}

int64_t model_find_parameter(const struct model *model, const char *name)
{
	for (int64_t i = 0; i < model->parameter_count; i++)
		if (strcmp(model->parameters[i].name, name) == 0)
			return i;
	return -1;
}

void parameter_places(const struct model *model, struct parameter_place *places)
{
	/* Weights and parameters are in the same order. */
	int64_t p = 0;
	for (int64_t i = 0; i < model->weight_count; i++) {
		const struct tensor *shape = &model->weights[i]->master;
		for (int64_t at = 0; at < shape->rows * shape->columns; at += model->parameters[p++].count)
			places[p] = (struct parameter_place){
				.weight = i, .row = model->weights[i]->use == WEIGHT_VECTOR ? at : at / shape->columns};
	}
	BUG_IF(p != model->parameter_count);
}

/* Lays out the compute copies in `arena`, or measures them. */
static void lay_out_copies(const struct model *model, struct arena *arena)
{
	for (int64_t i = 0; i < model->weight_count; i++) {
		struct weight *weight = model->weights[i];
		if (model->shared && model->shared[i]) {
			weight->copy = model->shared[i]->copy;
			continue;
		}
		weight->copy_bytes = (int64_t)model->backend->functions->weight_copy_bytes(model->backend, weight);
		weight->copy = weight->copy_bytes ? arena_take(arena, (size_t)weight->copy_bytes) : NULL;
	}
}

static size_t slab_bytes(const struct model *model)
{
	return (size_t)model->slab_count * dtype_bytes(model->backend->master_dtype);
}

static size_t gradient_bytes(const struct model *model)
{
	return (size_t)model->gradients.columns * dtype_bytes(model->gradients.dtype);
}

static size_t mirror_bytes(const struct model *model)
{
	return (size_t)model->slab_count * dtype_bytes(model->backend->dtype);
}

static size_t copies_bytes(const struct model *model)
{
	size_t bytes = 0;
	for (int64_t i = 0; i < model->weight_count; i++)
		bytes +=
			(size_t)round_up((int64_t)model->backend->functions->weight_copy_bytes(model->backend, model->weights[i]),
					 ARENA_ALIGNMENT);
	return bytes;
}

size_t model_bytes(const struct model *model, bool training)
{
	size_t bytes = slab_bytes(model) + (training ? gradient_bytes(model) + low_rank_bytes(model) : 0);
	if (model->backend->mirrors_masters)
		return bytes + mirror_bytes(model);
	return bytes + copies_bytes(model);
}

/* Gaps between tensors must be zero: norms of whole ranges include them. */
static void zero(struct backend *be, void *device, size_t bytes)
{
	static const unsigned char zeros[1 << 16];
	for (size_t done = 0; done < bytes; done += sizeof zeros) {
		size_t part = bytes - done < sizeof zeros ? bytes - done : sizeof zeros;
		be->functions->to_device(be, (char *)device + done, zeros, part);
	}
}

void model_clear_gradients(const struct model *model, int64_t offset, int64_t count)
{
	size_t element = dtype_bytes(model->gradients.dtype);
	zero(model->backend, (char *)model->gradients.data + (size_t)(offset - model->frozen_elements) * element,
	     (size_t)count * element);
}

void model_clear_unused_gradients(const struct model *model)
{
	int64_t first = model_find_parameter(model, pooler_rows[0].name), last = first + COUNT(pooler_rows) - 1;
	for (int h = 0; h < model->heads.count; h++)
		if (first < 0 || model->heads.head[h].pooled)
			return;
	if (first < 0)
		return;
	const struct parameter *end = &model->parameters[last];
	int64_t offset = model->parameters[first].offset;
	model_clear_gradients(model, offset, end->offset + end->count - offset);
}

/* Allocates compute copies in separate memory, with or without a slab. */
static enum status allocate_copies(struct model *model)
{
	struct arena copies = {0};
	lay_out_copies(model, &copies);
	if (copies.used == 0)
		return OK;
	copies.capacity = copies.used;
	copies.used = 0;
	TRY(model->backend->functions->allocate(model->backend, &model->copies, copies.capacity, "compute copies of weights"));
	copies.base = model->copies;
	lay_out_copies(model, &copies);
	return OK;
}

/* Allocates compute copies, and sets where each weight lies in the slabs. */
static enum status place_weights(struct model *model)
{
	struct backend *be = model->backend;
	if (model->slab.data)
		zero(be, model->slab.data, slab_bytes(model));
	if (model->gradients.data)
		zero(be, model->gradients.data, gradient_bytes(model));

	if (be->mirrors_masters) {
		TRY(be->functions->allocate(be, &model->copies, mirror_bytes(model), "compute copies of weights"));
		model->mirror =
			(struct tensor){.data = model->copies, .dtype = be->dtype, .rows = 1, .columns = model->slab_count};
	} else {
		TRY(allocate_copies(model));
	}

	/* Weights and parameters are in the same order; a joined parameter lies within the weight before it. */
	size_t element = dtype_bytes(be->master_dtype);
	int64_t parameter = 0;
	for (int64_t i = 0; i < model->weight_count; i++) {
		struct weight *weight = model->weights[i];
		size_t offset = (size_t)model->parameters[parameter].offset * element;
		size_t frozen = (size_t)model->frozen_elements * element;
		if (model->slab.data)
			weight->master.data = (char *)model->slab.data + offset;
		if (model->gradients.data && i >= model->frozen_weights)
			weight->gradient.data = (char *)model->gradients.data + offset - frozen;
		if (be->mirrors_masters)
			weight->copy = (char *)model->copies + offset / element * dtype_bytes(be->dtype);
		for (int64_t left = weight->master.rows * weight->master.columns; left > 0; parameter++)
			left -= model->parameters[parameter].count;
	}
	return model->gradients.data ? low_rank_allocate(model) : OK;
}

enum status model_allocate(struct model *model, bool training)
{
	struct backend *be = model->backend;
	TRY(be->functions->allocate(be, &model->slab.data, slab_bytes(model), "weights"));
	if (training)
		TRY(be->functions->allocate(be, &model->gradients.data, gradient_bytes(model), "gradients"));
	return place_weights(model);
}

/* Do forward passes read only the compute copy of a weight? */
static bool is_copied(const struct model *model, const struct weight *weight)
{
	return weight->use == WEIGHT_LINEAR && model->backend->functions->weight_copy_bytes(model->backend, weight) > 0;
}

static int64_t weight_elements(const struct weight *weight)
{
	return weight->master.rows * weight->master.columns;
}

/* Number of elements in the first part of the slab, through which the masters of copied weights pass. */
static int64_t passage_elements(const struct model *model)
{
	int64_t most = 0;
	for (int64_t i = 0; i < model->weight_count; i++)
		if (is_copied(model, model->weights[i]) && weight_elements(model->weights[i]) > most)
			most = weight_elements(model->weights[i]);
	return round_up(most, ALIGNMENT_ELEMENTS);
}

/* Number of slab elements of a model for forward passes; with `place`, also places the masters that stay. */
static int64_t forward_elements(const struct model *model, bool place)
{
	int64_t elements = passage_elements(model);
	for (int64_t i = 0; i < model->weight_count; i++) {
		struct weight *weight = model->weights[i];
		if (is_copied(model, weight))
			continue;
		if (place)
			weight->master.data = (char *)model->slab.data + (size_t)elements * dtype_bytes(model->slab.dtype);
		elements += round_up(weight_elements(weight), ALIGNMENT_ELEMENTS);
	}
	return elements;
}

size_t model_forward_bytes(const struct model *model)
{
	return (size_t)forward_elements(model, false) * dtype_bytes(model->slab.dtype) + copies_bytes(model);
}

enum status model_allocate_forward(struct model *model)
{
	struct backend *be = model->backend;
	size_t bytes = (size_t)forward_elements(model, false) * dtype_bytes(model->slab.dtype);
	model->forward_only = true;
	TRY(be->functions->allocate(be, &model->slab.data, bytes, "weights"));
	forward_elements(model, true);
	return allocate_copies(model);
}

enum status model_allocate_copies(struct model *model)
{
	BUG_IF(!model->backend->functions->weight_pack);
	return place_weights(model);
}

enum status model_allocate_in(struct model *model, void *slab, void *gradients)
{
	model->borrowed = true;
	model->slab.data = slab;
	model->gradients.data = gradients;
	return place_weights(model);
}

void model_free(struct model *model)
{
	if (!model)
		return;
	struct backend *be = model->backend;
	void *device[] = {model->copies, model->slab.data, model->gradients.data};
	for (int i = 0; i < (model->borrowed ? 1 : COUNT(device)); i++)
		if (device[i])
			be->functions->release(be, device[i]);
	low_rank_free(model);
	free(model->shared);
	free(model->parameters);
	free(model->weights);
	free(model->layers);
	free(model);
}

/* Each stream of random numbers serves this many elements, so that any part of any tensor can be drawn separately. */
#define INIT_BLOCK 1024

struct init_task {
	const struct model *model;
	const struct parameter *parameter;
	uint64_t seed;
	float *slab;
};

static void init_block(void *context, int64_t block, int worker)
{
	(void)worker;
	const struct init_task *task = context;
	const struct parameter *parameter = task->parameter;
	uint64_t number = (uint64_t)(parameter - task->model->parameters);
	struct rng rng = rng_start(task->seed, RNG_WEIGHTS, number << 32 | (uint64_t)block);
	int64_t first = block * INIT_BLOCK, left = parameter->count - first;
	int64_t count = left < INIT_BLOCK ? left : INIT_BLOCK;
	double draws[INIT_BLOCK];
	double bound = 1 / sqrt((double)parameter->columns);
	if (parameter->init == INIT_NORMAL)
		rng_truncated_normals(&rng, draws, count);
	for (int64_t i = 0; i < count && parameter->init == INIT_UNIFORM; i++)
		task->slab[parameter->offset + first + i] = (float)(bound * (2 * rng_double(&rng) - 1));
	for (int64_t i = 0; i < count && parameter->init == INIT_NORMAL; i++)
		task->slab[parameter->offset + first + i] = (float)(task->model->config.initializer_range * draws[i]);
}

enum status model_initialize(struct model *model, struct replica *replica, uint64_t seed)
{
	float *slab = NULL;
	TRY(memory_new(&slab, model->slab_count, sizeof *slab, "initial weights"));
	for (int64_t p = 0; p < model->parameter_count; p++) {
		const struct parameter *parameter = &model->parameters[p];
		struct init_task task = {model, parameter, seed, slab};
		int64_t blocks = (parameter->count + INIT_BLOCK - 1) / INIT_BLOCK;
		bool drawn = parameter->init == INIT_NORMAL || parameter->init == INIT_UNIFORM;
		if (drawn && model->backend->pool)
			pool_run(model->backend->pool, blocks, init_block, &task);
		else if (drawn)
			for (int64_t block = 0; block < blocks; block++)
				init_block(&task, block, 0);
		else if (parameter->init == INIT_ONE)
			for (int64_t i = 0; i < parameter->count; i++)
				slab[parameter->offset + i] = 1;
	}
	enum status status = model_set_weights(model, replica, slab);
	free(slab);
	return status;
}

/* Elements converted at a time if the masters are float64. */
#define CONVERT_ELEMENTS 2048

/* Sets masters from floats on the host. */
static void masters_to_device(struct backend *be, void *device, const float *host, int64_t elements)
{
	if (be->master_dtype == DTYPE_F32) {
		be->functions->to_device(be, device, host, (size_t)elements * sizeof(float));
		return;
	}
	double block[CONVERT_ELEMENTS];
	for (int64_t done = 0; done < elements; done += CONVERT_ELEMENTS) {
		int64_t left = elements - done, count = left < CONVERT_ELEMENTS ? left : CONVERT_ELEMENTS;
		for (int64_t i = 0; i < count; i++)
			block[i] = host[done + i];
		be->functions->to_device(be, (double *)device + done, block, (size_t)count * sizeof(double));
	}
}

/* Sets one weight after another; the master of a copied weight exists only until its copy is made. */
static enum status set_forward_weights(struct model *model, struct replica *replica, const float *slab)
{
	struct backend *be = model->backend;
	int64_t parameter = 0;
	for (int64_t i = 0; i < model->weight_count; i++) {
		struct weight *weight = model->weights[i];
		bool copied = is_copied(model, weight);
		const float *from = slab + model->parameters[parameter].offset;
		for (int64_t left = weight_elements(weight); left > 0; parameter++)
			left -= model->parameters[parameter].count;
		if (copied)
			weight->master.data = model->slab.data;
		masters_to_device(be, weight->master.data, from, weight_elements(weight));
		weights_refresh(replica, &weight, 1);
		enum status status = be->functions->synchronize(replica);
		if (copied)
			weight->master.data = NULL;
		TRY(status);
	}
	return OK;
}

enum status model_set_weights(struct model *model, struct replica *replica, const float *slab)
{
	if (model->forward_only)
		return set_forward_weights(model, replica, slab);
	masters_to_device(model->backend, model->slab.data, slab, model->slab_count);
	model_refresh(model, replica);
	return model->backend->functions->synchronize(replica);
}

enum status model_get_weights(struct model *model, float *slab)
{
	struct backend *be = model->backend;
	BUG_IF(model->forward_only);
	if (be->master_dtype == DTYPE_F32) {
		be->functions->to_host(be, slab, model->slab.data, slab_bytes(model));
		return OK;
	}
	double block[CONVERT_ELEMENTS];
	for (int64_t done = 0; done < model->slab_count; done += CONVERT_ELEMENTS) {
		int64_t left = model->slab_count - done, count = left < CONVERT_ELEMENTS ? left : CONVERT_ELEMENTS;
		be->functions->to_host(be, block, (double *)model->slab.data + done, (size_t)count * sizeof(double));
		for (int64_t i = 0; i < count; i++)
			slab[done + i] = (float)block[i];
	}
	return OK;
}

void model_refresh(struct model *model, struct replica *replica)
{
	BUG_IF(model->forward_only);
	weights_refresh(replica, model->weights, model->weight_count);
	low_rank_apply_all(model, replica);
}
