/* Builds the ONNX graph of a model, layer by layer. */
#include "weights/onnx_model.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "formats/onnx_file.h"
#include "model/forms.h"
#include "weights/weight_names.h"

/* What is needed to pool rows into one vector per text; made when first needed. */
struct pooling {
	struct onnx_value hidden, mask; /* mask (batch, sequence, 1) */
	struct onnx_value rows;         /* the sequence axis, as a list */
	struct onnx_value numbers;      /* see token_numbers() */
};

/* What layers of one kind, global or local, share; made when first needed. */
struct layer_kind {
	const char *name;
	struct onnx_value mask;     /* added to scores */
	struct onnx_value cos, sin; /* of rotary positions (sequence, columns of a head) */
	float frequencies[ROTARY_LIMIT / 2];
};

struct builder {
	struct onnx_graph graph;
	const struct onnx_model_content *content;
	const struct model *model;
	struct onnx_value input_ids, attention_mask, token_type_ids;
	struct onnx_value hidden_shape; /* [0, 0, H] */
	struct onnx_value heads_shape;  /* [0, 0, A, D]; if query, key, and value are one tensor, [0, 0, 3A, D] */
	struct onnx_value first, half, one, root_half, lowest, score_scale;
	struct onnx_value rows; /* 0, 1, 2, ...: as many as the input is long */
	struct layer_kind kinds[2];
	struct pooling pooling;
	char value_name[128];
};

#define VALUES(...)                                                                                                              \
	(const struct onnx_value[]){__VA_ARGS__},                                                                                \
		(int)(sizeof((const struct onnx_value[]){__VA_ARGS__}) / sizeof(struct onnx_value))

/* ---- Inputs and outputs ---- */

static void add_facts(struct onnx_tensor_facts *facts, const char *name, bool is_integer, int rank, const int64_t *shape)
{
	*facts = (struct onnx_tensor_facts){.is_integer = is_integer, .rank = rank};
	snprintf(facts->name, sizeof facts->name, "%s", name);
	memcpy(facts->shape, shape, (size_t)rank * sizeof *shape);
}

/* The head that determines what the graph is for; NULL: just an encoder. */
static const struct head *main_head(const struct model *model)
{
	return model->heads.count > 0 && model->heads.head[0].loss != LOSS_NONE ? &model->heads.head[0] : NULL;
}

/* Whether the model chooses among sequences, which are side by side in the input. */
static bool has_choices(const struct model *model)
{
	return model->heads.count > 0 && model->heads.head[0].loss == LOSS_GROUP;
}

/* Whether the segments of a pair differ for the model, so that it has an input that tells them apart. */
static bool reads_types(const struct model *model)
{
	return model_form_of(&model->config)->pairs_need_types || model->config.type_vocab_size >= 2;
}

static bool joins_rows(const struct head *head)
{
	return head->input == INPUT_CHOSEN_ROWS && head->joined > 1;
}

static int64_t pooled_width(const struct onnx_model_content *content)
{
	return (int64_t)pooling_count(content->pooling) * content->model->config.hidden_size;
}

static bool truncates(const struct onnx_model_content *content)
{
	return content->truncate_dim > 0 && content->truncate_dim < pooled_width(content);
}

static void describe_outputs(const struct onnx_model_content *content, struct onnx_model_facts *out)
{
	const struct model *model = content->model;
	const struct head *head = main_head(model);
	int64_t hidden = model->config.hidden_size;
	struct onnx_tensor_facts *outputs = out->outputs;
	int n = 0;
	if (!head) {
		add_facts(&outputs[n++], "last_hidden_state", false, 3, (const int64_t[]){-1, -1, hidden});
		if (model->heads.pooler)
			add_facts(&outputs[n++], "pooler_output", false, 2, (const int64_t[]){-1, hidden});
	} else if (head->loss == LOSS_WORDS) {
		add_facts(&outputs[n++], "logits", false, 3, (const int64_t[]){-1, -1, model->config.vocab_size});
		if (model->heads.count > 1)
			add_facts(&outputs[n++], "seq_relationship_logits", false, 2, (const int64_t[]){-1, 2});
	} else if (head->loss == LOSS_SEGMENT) {
		add_facts(&outputs[n++], "start_logits", false, 2, (const int64_t[]){-1, -1});
		add_facts(&outputs[n++], "end_logits", false, 2, (const int64_t[]){-1, -1});
	} else if (has_choices(model)) {
		add_facts(&outputs[n++], "logits", false, 2, (const int64_t[]){-1, -1});
	} else if (head->input == INPUT_FIRST_ROW || joins_rows(head)) {
		add_facts(&outputs[n++], "logits", false, 2, (const int64_t[]){-1, head->outputs});
	} else {
		add_facts(&outputs[n++], "logits", false, 3, (const int64_t[]){-1, -1, head->outputs});
	}
	if (content->pooling)
		add_facts(&outputs[n++], "sentence_embedding", false, 2,
			  (const int64_t[]){-1, truncates(content) ? content->truncate_dim : pooled_width(content)});
	out->output_count = n;
}

void onnx_model_describe(const struct onnx_model_content *content, struct onnx_model_facts *out)
{
	static const char *const names[] = {"input_ids", "attention_mask", "token_type_ids"};
	const struct head *head = main_head(content->model);
	*out = (struct onnx_model_facts){.input_count = reads_types(content->model) ? 3 : 2};
	for (int i = 0; i < out->input_count; i++)
		add_facts(&out->inputs[i], names[i], true, has_choices(content->model) ? 3 : 2, (const int64_t[]){-1, -1, -1});
	if (head && joins_rows(head))
		add_facts(&out->inputs[out->input_count++], "entity_positions", true, 2, (const int64_t[]){-1, head->joined});
	describe_outputs(content, out);
}

/* Dimensions for ONNX, with names for the dynamic ones. */
static void name_dimensions(const struct builder *b, const struct onnx_tensor_facts *facts, struct onnx_dimension out[4])
{
	for (int i = 0; i < 4 && i < facts->rank; i++) {
		out[i] = (struct onnx_dimension){.size = facts->shape[i]};
		if (facts->shape[i] < 0)
			out[i].name = i == 0 ? "batch" : i == 1 && has_choices(b->model) ? "choices" : "sequence";
	}
}

/* ---- Building blocks ---- */

/* A name for a value, valid until the next call. */
static const char *name_of(struct builder *b, const char *format, ...) PRINTF_LIKE(2, 3);
static const char *name_of(struct builder *b, const char *format, ...)
{
	va_list list;
	va_start(list, format);
	int size = vsnprintf(b->value_name, sizeof b->value_name, format, list);
	va_end(list);
	BUG_IF(size >= (int)sizeof b->value_name);
	return b->value_name;
}

static struct onnx_value apply(struct builder *b, const char *operation, const char *name, const struct onnx_value *inputs,
			       int count)
{
	return onnx_node(&b->graph, operation, name, inputs, count, NULL, 0);
}

/* The same with an integer attribute. */
static struct onnx_value apply_with(struct builder *b, const char *operation, const char *name, const char *attribute,
				    int64_t value, const struct onnx_value *inputs, int count)
{
	const struct onnx_attribute attributes[] = {
		{.name = attribute, .kind = ONNX_ATTRIBUTE_INT, .integer = value},
	};
	return onnx_node(&b->graph, operation, name, inputs, count, attributes, 1);
}

static struct onnx_value transpose(struct builder *b, const char *name, struct onnx_value x, const int64_t *order, int rank)
{
	struct onnx_attribute attribute = {.name = "perm", .kind = ONNX_ATTRIBUTE_INTS, .count = rank};
	memcpy(attribute.integers, order, (size_t)rank * sizeof *order);
	return onnx_node(&b->graph, "Transpose", name, &x, 1, &attribute, 1);
}

/* The weight "PREFIX.SUFFIX", or an empty value for a bias that the model lacks; matrices for MatMul, which computes x w, are
 * transposed (`turned`). */
static struct onnx_value parameter(struct builder *b, const char *prefix, const char *suffix, bool turned)
{
	char name[128];
	snprintf(name, sizeof name, "%s%s%s", prefix, *prefix ? "." : "", suffix);
	int64_t number = model_find_parameter(b->model, name);
	BUG_IF(number < 0 && strcmp(suffix, "bias") != 0);
	if (number < 0)
		return (struct onnx_value){""};
	const struct parameter *p = &b->model->parameters[number];
	return onnx_weight(&b->graph, &(struct onnx_weight){.name = name,
							    .rank = parameter_rank(p),
							    .rows = turned ? p->columns : p->rows,
							    .columns = turned ? p->rows : p->columns,
							    .transposed = turned,
							    .numbers = b->content->slab + p->offset});
}

/* The linear layer `layer`: x w' + b. */
static struct onnx_value linear(struct builder *b, const char *layer, struct onnx_value x)
{
	struct onnx_value w = parameter(b, layer, "weight", true), bias = parameter(b, layer, "bias", false);
	struct onnx_value product = apply(b, "MatMul", name_of(b, "/%s/MatMul", layer), VALUES(x, w));
	return !bias.name[0] ? product : apply(b, "Add", name_of(b, "/%s/Add", layer), VALUES(bias, product));
}

static struct onnx_value normalized(struct builder *b, const char *layer, const char *name, struct onnx_value x)
{
	const struct onnx_attribute attributes[] = {
		{.name = "axis", .kind = ONNX_ATTRIBUTE_INT, .integer = -1},
		{.name = "epsilon", .kind = ONNX_ATTRIBUTE_FLOAT, .number = b->model->config.layer_norm_eps},
	};
	struct onnx_value gamma = parameter(b, layer, "weight", false), beta = parameter(b, layer, "bias", false);
	return onnx_node(&b->graph, "LayerNormalization", name, VALUES(x, gamma, beta), attributes, 2);
}

/* Columns, heads, or rows [from, to) of x; `number` tells the parts of one place apart. */
static struct onnx_value slice(struct builder *b, const char *place, int number, struct onnx_value x, int64_t axis, int64_t from,
			       int64_t to)
{
	struct onnx_value start = onnx_integers(&b->graph, name_of(b, "/%s/from_%d", place, number), &from, 1, 1);
	struct onnx_value end = onnx_integers(&b->graph, name_of(b, "/%s/to_%d", place, number), &to, 1, 1);
	struct onnx_value axes = onnx_integers(&b->graph, name_of(b, "/%s/axis_%d", place, number), &axis, 1, 1);
	return apply(b, "Slice", name_of(b, "/%s/part_%d", place, number), VALUES(x, start, end, axes));
}

/* A constant, added when first used, since runtimes warn about unused constants. */
static struct onnx_value number(struct builder *b, struct onnx_value *kept, const char *name, double value)
{
	if (!kept->name[0])
		*kept = onnx_number(&b->graph, name, (float)value);
	return *kept;
}

/* x / 2 (1 + erf(x / sqrt 2)), or x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))); or max(x, 0), or x / (1 + e^-x) */
static struct onnx_value gelu(struct builder *b, enum activation form, const char *place, struct onnx_value x)
{
	struct onnx_value inner;
	if (form == ACTIVATION_RELU)
		return apply(b, "Relu", name_of(b, "/%s/relu", place), VALUES(x));
	if (form == ACTIVATION_SILU) {
		inner = apply(b, "Sigmoid", name_of(b, "/%s/silu/sigmoid", place), VALUES(x));
		return apply(b, "Mul", name_of(b, "/%s/silu", place), VALUES(inner, x));
	}
	if (form == ACTIVATION_GELU_ERF) {
		struct onnx_value root_half = number(b, &b->root_half, "/root_half", sqrt(0.5));
		inner = apply(b, "Mul", name_of(b, "/%s/gelu/scaled", place), VALUES(x, root_half));
		inner = apply(b, "Erf", name_of(b, "/%s/gelu/erf", place), VALUES(inner));
	} else {
		struct onnx_value cubic = onnx_number(&b->graph, name_of(b, "/%s/gelu/cubic", place), 0.044715f);
		struct onnx_value scale = onnx_number(&b->graph, name_of(b, "/%s/gelu/scale", place), (float)sqrt(2 / M_PI));
		inner = apply(b, "Mul", name_of(b, "/%s/gelu/square", place), VALUES(x, x));
		inner = apply(b, "Mul", name_of(b, "/%s/gelu/square_scaled", place), VALUES(inner, cubic));
		inner = apply(b, "Add", name_of(b, "/%s/gelu/factor", place), VALUES(inner, b->one));
		inner = apply(b, "Mul", name_of(b, "/%s/gelu/polynomial", place), VALUES(inner, x));
		inner = apply(b, "Mul", name_of(b, "/%s/gelu/scaled", place), VALUES(inner, scale));
		inner = apply(b, "Tanh", name_of(b, "/%s/gelu/tanh", place), VALUES(inner));
	}
	inner = apply(b, "Add", name_of(b, "/%s/gelu/sum", place), VALUES(inner, b->one));
	inner = apply(b, "Mul", name_of(b, "/%s/gelu/product", place), VALUES(inner, x));
	struct onnx_value half = number(b, &b->half, "/half", 0.5);
	return apply(b, "Mul", name_of(b, "/%s/gelu", place), VALUES(inner, half));
}

/* ---- The encoder ---- */

/* Adds input_ids, attention_mask, and, if it has a meaning, token_type_ids; choices are flattened into a batch of sequences. */
static void add_inputs(struct builder *b, const struct onnx_model_facts *facts)
{
	struct onnx_value *inputs[] = {&b->input_ids, &b->attention_mask, &b->token_type_ids};
	struct onnx_dimension dimensions[4];
	struct onnx_value flat = {""};
	if (has_choices(b->model))
		flat = onnx_integers(&b->graph, "/flat", (const int64_t[]){-1}, 1, 1);
	for (int i = 0; i < (reads_types(b->model) ? 3 : 2); i++) {
		name_dimensions(b, &facts->inputs[i], dimensions);
		*inputs[i] = onnx_input(&b->graph, facts->inputs[i].name, ONNX_INT64, dimensions, facts->inputs[i].rank);
		if (!has_choices(b->model))
			continue;
		struct onnx_value shape =
			apply_with(b, "Shape", name_of(b, "/%s/sequence", facts->inputs[i].name), "start", 2, VALUES(*inputs[i]));
		shape = apply_with(b, "Concat", name_of(b, "/%s/shape", facts->inputs[i].name), "axis", 0, VALUES(flat, shape));
		*inputs[i] = apply(b, "Reshape", name_of(b, "/%s/flat", facts->inputs[i].name), VALUES(*inputs[i], shape));
	}
}

/* What follows the pooler, or a head's own layer in its place. */
static enum activation pooler_activation(const struct model *model)
{
	const struct head *head = main_head(model);
	return head && head->pooled ? model_head_form(&model->config, head)->activation : ACTIVATION_TANH;
}

static void add_constants(struct builder *b)
{
	const struct model_config *config = &b->model->config;
	int64_t hidden = config->hidden_size, heads = config->num_attention_heads;
	b->hidden_shape = onnx_integers(&b->graph, "/hidden_shape", (const int64_t[]){0, 0, hidden}, 3, 1);
	int64_t together = model_form_of(config)->fused ? 3 * heads : heads;
	b->heads_shape = onnx_integers(&b->graph, "/heads_shape", (const int64_t[]){0, 0, together, hidden / heads}, 4, 1);
	b->score_scale = onnx_number(&b->graph, "/score_scale", (float)(1 / sqrt((double)hidden / (double)heads)));
	b->one = onnx_number(&b->graph, "/one", 1);
}

/* The constant 0, which selects the first row; added when first used, too. */
static struct onnx_value first(struct builder *b)
{
	if (!b->first.name[0])
		b->first = onnx_integers(&b->graph, "/first", (const int64_t[]){0}, 1, 0);
	return b->first;
}

/* The rows of the table of positions, as many as the input is long. */
static struct onnx_value positions(struct builder *b)
{
	int32_t first_row = model_first_position(&b->model->config);
	struct onnx_value axis = onnx_integers(&b->graph, "/positions/axis", (const int64_t[]){0}, 1, 1), start = axis;
	struct onnx_value end = apply_with(b, "Shape", "/positions/length", "start", 1, VALUES(b->input_ids));
	if (first_row > 0) {
		start = onnx_integers(&b->graph, "/positions/start", (const int64_t[]){first_row}, 1, 1);
		end = apply(b, "Add", "/positions/end", VALUES(end, start));
	}
	struct onnx_value table = parameter(b, "bert.embeddings", "position_embeddings.weight", false);
	return apply(b, "Slice", "/embeddings/position", VALUES(table, start, end, axis));
}

static struct onnx_value embeddings(struct builder *b)
{
	static const char place[] = "bert.embeddings";
	const struct model_config *config = &b->model->config;
	struct onnx_value sum = apply(b, "Gather", "/embeddings/word",
				      VALUES(parameter(b, place, "word_embeddings.weight", false), b->input_ids));
	if (model_form_of(config)->has_types) {
		struct onnx_value types = reads_types(b->model) ? b->token_type_ids : first(b);
		struct onnx_value type = apply(b, "Gather", "/embeddings/type",
					       VALUES(parameter(b, place, "token_type_embeddings.weight", false), types));
		sum = apply(b, "Add", "/embeddings/word_and_type", VALUES(sum, type));
	}
	if (model_form_of(config)->positions == POSITIONS_LEARNED)
		sum = apply(b, "Add", "/embeddings/sum", VALUES(sum, positions(b)));
	sum = normalized(b, "bert.embeddings.LayerNorm", "/embeddings/LayerNorm", sum);
	return model_embedding_size(config) == config->hidden_size ? sum : linear(b, "bert.embeddings_project", sum);
}

/* The mask to add to scores: 0 for tokens, the lowest float for padding. */
static struct onnx_value score_mask(struct builder *b)
{
	struct onnx_value axes = onnx_integers(&b->graph, "/mask/axes", (const int64_t[]){1, 2}, 2, 1);
	b->lowest = onnx_number(&b->graph, "/mask/lowest", -FLT_MAX);
	struct onnx_value mask = apply_with(b, "Cast", "/mask/float", "to", ONNX_FLOAT, VALUES(b->attention_mask));
	mask = apply(b, "Unsqueeze", "/mask/unsqueezed", VALUES(mask, axes));
	mask = apply(b, "Sub", "/mask/inverted", VALUES(b->one, mask));
	return apply(b, "Mul", "/mask", VALUES(mask, b->lowest));
}

static struct onnx_value row_numbers(struct builder *b)
{
	struct onnx_value none = onnx_integers(&b->graph, "/rows/from", (const int64_t[]){0}, 1, 0);
	struct onnx_value step = onnx_integers(&b->graph, "/rows/step", (const int64_t[]){1}, 1, 0);
	struct onnx_value axis = onnx_integers(&b->graph, "/rows/axis", (const int64_t[]){0}, 1, 1);
	struct onnx_value length = apply_with(b, "Shape", "/rows/length", "start", 1, VALUES(b->input_ids));
	length = apply(b, "Squeeze", "/rows/count", VALUES(length, axis));
	return apply(b, "Range", "/rows", VALUES(none, length, step));
}

/* The same mask, where keys outside a row's window count as padding. No sum of two masks: it would be minus infinity, and a row
 * that sees nothing would be NaN. */
static struct onnx_value window_mask(struct builder *b, struct onnx_value mask)
{
	struct onnx_value window =
		onnx_integers(&b->graph, "/window", (const int64_t[]){b->model->config.attention.window}, 1, 0);
	struct onnx_value first = onnx_integers(&b->graph, "/window/first", (const int64_t[]){0}, 1, 1);
	struct onnx_value second = onnx_integers(&b->graph, "/window/second", (const int64_t[]){1}, 1, 1);
	struct onnx_value keys = apply(b, "Unsqueeze", "/window/keys", VALUES(b->rows, first));
	struct onnx_value queries = apply(b, "Unsqueeze", "/window/queries", VALUES(b->rows, second));
	struct onnx_value away = apply(b, "Sub", "/window/difference", VALUES(keys, queries));
	away = apply(b, "Abs", "/window/distance", VALUES(away));
	away = apply(b, "Greater", "/window/is_outside", VALUES(away, window));
	return apply(b, "Where", "/window/mask", VALUES(away, b->lowest, mask));
}

/* Cosine and sine of each row's angles, of which a head's second half repeats the first. */
static void add_angles(struct builder *b, struct layer_kind *kind, double base)
{
	int32_t columns = b->model->config.hidden_size / b->model->config.num_attention_heads;
	rotary_frequencies(base, columns, kind->frequencies);
	struct onnx_value frequencies =
		onnx_weight(&b->graph, &(struct onnx_weight){.name = name_of(b, "/%s/frequencies", kind->name),
							     .rank = 2,
							     .rows = 1,
							     .columns = columns / 2,
							     .numbers = kind->frequencies});
	struct onnx_value axis = onnx_integers(&b->graph, name_of(b, "/%s/axis", kind->name), (const int64_t[]){1}, 1, 1);
	struct onnx_value rows = apply_with(b, "Cast", name_of(b, "/%s/rows", kind->name), "to", ONNX_FLOAT, VALUES(b->rows));
	rows = apply(b, "Unsqueeze", name_of(b, "/%s/column", kind->name), VALUES(rows, axis));
	struct onnx_value half = apply(b, "Mul", name_of(b, "/%s/angles", kind->name), VALUES(rows, frequencies));
	half = apply_with(b, "Concat", name_of(b, "/%s/angles_twice", kind->name), "axis", 1, VALUES(half, half));
	kind->cos = apply(b, "Cos", name_of(b, "/%s/cos", kind->name), VALUES(half));
	kind->sin = apply(b, "Sin", name_of(b, "/%s/sin", kind->name), VALUES(half));
}

static const struct layer_kind *kind_of(struct builder *b, int32_t layer)
{
	const struct model_config *config = &b->model->config;
	bool is_global = model_layer_is_global(config, layer), rotary = model_form_of(config)->positions == POSITIONS_ROTARY;
	struct layer_kind *kind = &b->kinds[is_global];
	if (kind->name)
		return kind;
	kind->name = is_global ? "global" : "local";
	if ((rotary || !is_global) && !b->rows.name[0])
		b->rows = row_numbers(b);
	kind->mask = is_global ? score_mask(b) : window_mask(b, b->kinds[true].mask); /* layer 0 is global */
	if (rotary)
		add_angles(b, kind, is_global ? config->attention.global_base : config->attention.local_base);
	return kind;
}

/* Turns queries or keys (batch, head, row, column): x cos + (-x2, x1) sin, where x1 and x2 are the halves of x. */
static struct onnx_value rotated(struct builder *b, const char *place, const struct layer_kind *kind, struct onnx_value x)
{
	int64_t columns = b->model->config.hidden_size / b->model->config.num_attention_heads;
	struct onnx_value left = slice(b, place, 0, x, 3, 0, columns / 2), right = slice(b, place, 1, x, 3, columns / 2, columns);
	right = apply(b, "Neg", name_of(b, "/%s/negated", place), VALUES(right));
	struct onnx_value turned = apply_with(b, "Concat", name_of(b, "/%s/swapped", place), "axis", 3, VALUES(right, left));
	turned = apply(b, "Mul", name_of(b, "/%s/sine", place), VALUES(turned, kind->sin));
	x = apply(b, "Mul", name_of(b, "/%s/cosine", place), VALUES(x, kind->cos));
	return apply(b, "Add", name_of(b, "/%s/rotated", place), VALUES(x, turned));
}

/* The query, key, or value of a layer, grouped by head; `order` permutes (batch, row, head, column). */
static struct onnx_value projection(struct builder *b, const char *layer, const char *which, struct onnx_value x,
				    const int64_t order[4])
{
	char place[112];
	snprintf(place, sizeof place, "%s.attention.self.%s", layer, which);
	x = linear(b, place, x);
	x = apply(b, "Reshape", name_of(b, "/%s/heads", place), VALUES(x, b->heads_shape));
	return transpose(b, name_of(b, "/%s/by_head", place), x, order, 4);
}

static const int64_t by_head[] = {0, 2, 1, 3}; /* (batch, row, head, column) to (batch, head, row, column), and back */

/* Query, key (with its last two axes swapped), and value of a layer. */
static void projections(struct builder *b, const char *layer, const struct layer_kind *kind, struct onnx_value x,
			struct onnx_value out[3])
{
	static const int64_t turned[] = {0, 2, 3, 1}, keys[] = {0, 1, 3, 2};
	int64_t heads = b->model->config.num_attention_heads;
	char place[112];
	if (!model_form_of(&b->model->config)->fused) {
		out[0] = projection(b, layer, "query", x, by_head);
		out[1] = projection(b, layer, "key", x, turned);
		out[2] = projection(b, layer, "value", x, by_head);
		return;
	}
	x = projection(b, layer, "qkv", x, by_head);
	for (int i = 0; i < 3; i++) {
		snprintf(place, sizeof place, "%s.attention.self.%s", layer, ((const char *const[]){"query", "key", "value"})[i]);
		out[i] = slice(b, place, 2, x, 1, i * heads, (i + 1) * heads);
		if (i < 2 && kind->cos.name[0])
			out[i] = rotated(b, place, kind, out[i]);
	}
	out[1] = transpose(b, name_of(b, "/%s/keys", layer), out[1], keys, 4);
}

static struct onnx_value attention(struct builder *b, const char *layer, const struct layer_kind *kind, struct onnx_value x)
{
	struct onnx_value parts[3];
	projections(b, layer, kind, x, parts);
	struct onnx_value scores = apply(b, "MatMul", name_of(b, "/%s/scores", layer), VALUES(parts[0], parts[1]));
	scores = apply(b, "Mul", name_of(b, "/%s/scores_scaled", layer), VALUES(scores, b->score_scale));
	scores = apply(b, "Add", name_of(b, "/%s/scores_masked", layer), VALUES(scores, kind->mask));
	scores = apply_with(b, "Softmax", name_of(b, "/%s/probabilities", layer), "axis", -1, VALUES(scores));
	struct onnx_value y = apply(b, "MatMul", name_of(b, "/%s/attention", layer), VALUES(scores, parts[2]));
	y = transpose(b, name_of(b, "/%s/attention_by_row", layer), y, by_head, 4);
	return apply(b, "Reshape", name_of(b, "/%s/attention_joined", layer), VALUES(y, b->hidden_shape));
}

static struct onnx_value feed_forward(struct builder *b, const char *layer, struct onnx_value x)
{
	enum activation activation = b->model->config.hidden_act;
	const struct model_form *form = model_form_of(&b->model->config);
	int64_t inner = b->model->config.intermediate_size;
	struct onnx_value left = x, right;
	char place[112];
	snprintf(place, sizeof place, "%s.intermediate.gate", layer);
	if (form->gate_apart)
		left = linear(b, place, x);
	snprintf(place, sizeof place, "%s.intermediate.dense", layer);
	right = x = linear(b, place, x);
	if (form->gated) {
		if (!form->gate_apart) {
			left = slice(b, place, 0, x, 2, 0, inner);
			right = slice(b, place, 1, x, 2, inner, 2 * inner);
		}
		left = gelu(b, activation, place, left);
		x = apply(b, "Mul", name_of(b, "/%s/gated", place), VALUES(left, right));
	} else {
		x = gelu(b, activation, place, x);
	}
	snprintf(place, sizeof place, "%s.output.dense", layer);
	return linear(b, place, x);
}

/* Adds a branch to the residual stream. */
static struct onnx_value residual(struct builder *b, const char *layer, const char *part, struct onnx_value branch,
				  struct onnx_value x)
{
	return apply(b, "Add", name_of(b, "/%s.%s/residual", layer, part), VALUES(branch, x));
}

/* With pre-norm, `stream` is the sum of which x is the norm; otherwise norms follow the sums, and it is x itself. */
static void layer_output(struct builder *b, int32_t number, struct onnx_value *x, struct onnx_value *stream)
{
	const struct model_config *config = &b->model->config;
	bool pre_norm = model_form_of(config)->pre_norm;
	char layer[64], place[112];
	snprintf(layer, sizeof layer, "bert.encoder.layer.%d", number);
	struct onnx_value y = attention(b, layer, kind_of(b, number), *x);
	snprintf(place, sizeof place, "%s.attention.output.dense", layer);
	*stream = residual(b, layer, "attention.output", linear(b, place, y), *stream);
	snprintf(place, sizeof place, "%s.attention.output.LayerNorm", layer);
	*x = normalized(b, place, name_of(b, "/%s.attention.output", layer), *stream);
	*stream = residual(b, layer, "output", feed_forward(b, layer, *x), pre_norm ? *stream : *x);
	if (!pre_norm)
		snprintf(place, sizeof place, "%s.output.LayerNorm", layer);
	else if (number + 1 < config->num_hidden_layers)
		snprintf(place, sizeof place, "bert.encoder.layer.%d.input.LayerNorm", number + 1);
	else
		snprintf(place, sizeof place, "bert.final.LayerNorm");
	*x = normalized(b, place, name_of(b, "/%s.output", layer), *stream);
	if (!pre_norm)
		*stream = *x;
}

static struct onnx_value encoder(struct builder *b)
{
	struct onnx_value x = embeddings(b), stream = x;
	for (int32_t i = 0; i < b->model->config.num_hidden_layers; i++)
		layer_output(b, i, &x, &stream);
	return x;
}

/* ---- Pooling into one vector per text ---- */

static struct pooling *pooling_of(struct builder *b, struct onnx_value hidden)
{
	struct pooling *p = &b->pooling;
	if (p->mask.name[0])
		return p;
	struct onnx_value last = onnx_integers(&b->graph, "/pooling/columns", (const int64_t[]){2}, 1, 1);
	p->hidden = hidden;
	p->mask = apply_with(b, "Cast", "/pooling/mask_float", "to", ONNX_FLOAT, VALUES(b->attention_mask));
	p->mask = apply(b, "Unsqueeze", "/pooling/mask", VALUES(p->mask, last));
	return p;
}

static struct onnx_value summed(struct builder *b, const char *name, struct onnx_value x, struct onnx_value axes)
{
	return apply_with(b, "ReduceSum", name, "keepdims", 0, VALUES(x, axes));
}

static struct onnx_value pooled_max(struct builder *b, const struct pooling *p)
{
	const struct onnx_attribute attributes[] = {
		{.name = "axes", .kind = ONNX_ATTRIBUTE_INTS, .integers = {1}, .count = 1},
		{.name = "keepdims", .kind = ONNX_ATTRIBUTE_INT, .integer = 0},
	};
	struct onnx_value lowest = onnx_number(&b->graph, "/pooling/lowest", -1e9f);
	struct onnx_value tokens = apply_with(b, "Cast", "/pooling/is_token", "to", ONNX_BOOL, VALUES(p->mask));
	struct onnx_value x = apply(b, "Where", "/pooling/tokens", VALUES(tokens, p->hidden, lowest));
	return onnx_node(&b->graph, "ReduceMax", "/pooling/max", &x, 1, attributes, 2);
}

/* Numbers the tokens of each text from 1, with 0 for padding: (batch, sequence, 1). */
static struct onnx_value token_numbers(struct builder *b, struct pooling *p)
{
	if (!p->numbers.name[0]) {
		struct onnx_value axis = onnx_integers(&b->graph, "/pooling/axis", (const int64_t[]){1}, 1, 0);
		p->numbers = apply(b, "CumSum", "/pooling/counted", VALUES(p->mask, axis));
		p->numbers = apply(b, "Mul", "/pooling/numbers", VALUES(p->numbers, p->mask));
	}
	return p->numbers;
}

static struct onnx_value pooled_last(struct builder *b, struct pooling *p)
{
	struct onnx_value numbers = token_numbers(b, p);
	const struct onnx_attribute attributes[] = {
		{.name = "axis", .kind = ONNX_ATTRIBUTE_INT, .integer = 1},
		{.name = "keepdims", .kind = ONNX_ATTRIBUTE_INT, .integer = 0},
	};
	struct onnx_value last = onnx_node(&b->graph, "ArgMax", "/pooling/last_row", &numbers, 1, attributes, 2);
	return apply_with(b, "GatherND", "/pooling/last", "batch_dims", 1, VALUES(p->hidden, last));
}

/* sum(w x) / sum(w), where w is the mask or the token numbers; `root`: divided by sqrt(sum(w)) instead. */
static struct onnx_value pooled_mean(struct builder *b, struct pooling *p, const char *place, struct onnx_value weights,
				     bool root)
{
	if (!p->rows.name[0])
		p->rows = onnx_integers(&b->graph, "/pooling/rows", (const int64_t[]){1}, 1, 1);
	struct onnx_value sum = apply(b, "Mul", name_of(b, "/pooling/%s/tokens", place), VALUES(p->hidden, weights));
	sum = summed(b, name_of(b, "/pooling/%s/sum", place), sum, p->rows);
	struct onnx_value count = summed(b, name_of(b, "/pooling/%s/count", place), weights, p->rows);
	struct onnx_value least = onnx_number(&b->graph, name_of(b, "/pooling/%s/least", place), 1e-9f);
	count = apply(b, "Max", name_of(b, "/pooling/%s/count_or_least", place), VALUES(count, least));
	if (root)
		count = apply(b, "Sqrt", name_of(b, "/pooling/%s/root", place), VALUES(count));
	return apply(b, "Div", name_of(b, "/pooling/%s", place), VALUES(sum, count));
}

static struct onnx_value pooled(struct builder *b, struct pooling *p, unsigned mode)
{
	switch (mode) {
	case POOLING_MAX: return pooled_max(b, p);
	case POOLING_MEAN: return pooled_mean(b, p, "mean", p->mask, false);
	case POOLING_MEAN_SQRT: return pooled_mean(b, p, "mean_sqrt", p->mask, true);
	case POOLING_WEIGHTED_MEAN: return pooled_mean(b, p, "weighted_mean", token_numbers(b, p), false);
	case POOLING_LAST: return pooled_last(b, p);
	default: return apply_with(b, "Gather", "/pooling/cls", "axis", 1, VALUES(p->hidden, first(b)));
	}
}

/* ---- Heads ---- */

/* Gives a value the name of an output. */
static struct onnx_value named(struct builder *b, const char *name, struct onnx_value x)
{
	return apply(b, "Identity", name, VALUES(x));
}

static struct onnx_value pooler(struct builder *b, struct onnx_value hidden)
{
	struct onnx_value row = apply_with(b, "Gather", "/pooler/first_row", "axis", 1, VALUES(hidden, first(b)));
	row = linear(b, b->model->heads.pooler ? "bert.pooler.dense" : CLASSIFIER_DENSE, row);
	if (pooler_activation(b->model) == ACTIVATION_TANH)
		return apply(b, "Tanh", "/pooler", VALUES(row));
	return gelu(b, pooler_activation(b->model), "pooler", row);
}

static struct onnx_value transformed(struct builder *b, struct onnx_value rows)
{
	struct onnx_value x = linear(b, "cls.predictions.transform.dense", rows);
	x = gelu(b, model_words_activation(&b->model->config), "cls.predictions.transform", x);
	return normalized(b, "cls.predictions.transform.LayerNorm", "/predictions/transformed", x);
}

/* Scores for every vocabulary entry in every row; the matrix may be the word embeddings'. */
static void word_head(struct builder *b, struct onnx_value hidden)
{
	static const int64_t turned[] = {1, 0};
	struct onnx_value x = transformed(b, hidden);
	struct onnx_value table = {WORD_EMBEDDINGS};
	table = b->model->config.untied ? parameter(b, "cls.predictions.decoder", "weight", true)
					: transpose(b, "/predictions/table", table, turned, 2);
	x = apply(b, "MatMul", "/predictions/MatMul", VALUES(x, table));
	apply(b, "Add", "logits", VALUES(x, parameter(b, "cls.predictions", "bias", false)));
}

static void span_head(struct builder *b, const struct head *head, struct onnx_value hidden)
{
	if (model_head_transforms(&b->model->config, head))
		hidden = transformed(b, hidden);
	struct onnx_value x = linear(b, head->name, hidden);
	struct onnx_value second = onnx_integers(&b->graph, "/second", (const int64_t[]){1}, 1, 0);
	apply_with(b, "Gather", "start_logits", "axis", 2, VALUES(x, first(b)));
	apply_with(b, "Gather", "end_logits", "axis", 2, VALUES(x, second));
}

/* The rows at entity_positions, concatenated. */
static struct onnx_value joined_rows(struct builder *b, const struct head *head, const struct onnx_model_facts *facts,
				     struct onnx_value hidden)
{
	struct onnx_dimension dimensions[4];
	const struct onnx_tensor_facts *input = &facts->inputs[facts->input_count - 1];
	name_dimensions(b, input, dimensions);
	struct onnx_value rows = onnx_input(&b->graph, input->name, ONNX_INT64, dimensions, input->rank);
	struct onnx_value axis = onnx_integers(&b->graph, "/entities/axis", (const int64_t[]){2}, 1, 1);
	struct onnx_value shape = onnx_integers(&b->graph, "/entities/shape",
						(const int64_t[]){0, (int64_t)head->joined * b->model->config.hidden_size}, 2, 1);
	rows = apply(b, "Unsqueeze", "/entities/rows", VALUES(rows, axis));
	rows = apply_with(b, "GatherND", "/entities/values", "batch_dims", 1, VALUES(hidden, rows));
	return apply(b, "Reshape", "/entities", VALUES(rows, shape));
}

/* Turns one score per sequence into one row of scores per example. */
static struct onnx_value scores_of_choices(struct builder *b, struct onnx_value x)
{
	const struct onnx_attribute both[] = {{.name = "start", .kind = ONNX_ATTRIBUTE_INT, .integer = 0},
					      {.name = "end", .kind = ONNX_ATTRIBUTE_INT, .integer = 2}};
	struct onnx_value ids = {"input_ids"};
	struct onnx_value shape = onnx_node(&b->graph, "Shape", "/choices/shape", &ids, 1, both, 2);
	return apply(b, "Reshape", "/choices/scores", VALUES(x, shape));
}

static void class_head(struct builder *b, const struct head *head, const struct onnx_model_facts *facts, struct onnx_value hidden,
		       const char *output)
{
	bool transforms = model_head_transforms(&b->model->config, head);
	struct onnx_value x = hidden;
	if (head->pooled && !transforms)
		x = pooler(b, hidden);
	else if (model_head_pools_mean(&b->model->config, head))
		x = pooled_mean(b, pooling_of(b, hidden), "head", b->pooling.mask, false);
	else if (head->input == INPUT_FIRST_ROW)
		x = apply_with(b, "Gather", name_of(b, "/%s/first_row", head->name), "axis", 1, VALUES(hidden, first(b)));
	else if (joins_rows(head))
		x = joined_rows(b, head, facts, hidden);
	if (transforms)
		x = transformed(b, x);
	x = linear(b, head->name, x);
	if (has_choices(b->model))
		x = scores_of_choices(b, x);
	named(b, output, x);
}

static void add_heads(struct builder *b, const struct onnx_model_facts *facts, struct onnx_value hidden)
{
	const struct model *model = b->model;
	const struct head *head = main_head(model);
	if (!head) {
		named(b, "last_hidden_state", hidden);
		if (model->heads.pooler)
			named(b, "pooler_output", pooler(b, hidden));
	} else if (head->loss == LOSS_WORDS) {
		word_head(b, hidden);
		if (model->heads.count > 1)
			class_head(b, &model->heads.head[1], facts, hidden, "seq_relationship_logits");
	} else if (head->loss == LOSS_SEGMENT) {
		span_head(b, head, hidden);
	} else {
		class_head(b, head, facts, hidden, "logits");
	}
}

/* ---- The whole model ---- */

static void add_sentence_embedding(struct builder *b, struct onnx_value hidden)
{
	struct onnx_value parts[POOLING_MODES], x;
	int count = 0;
	for (int m = 0; m < POOLING_MODES; m++)
		if (b->content->pooling >> m & 1)
			parts[count++] = pooled(b, pooling_of(b, hidden), 1u << m);
	x = count == 1 ? parts[0] : apply_with(b, "Concat", "/pooling/joined", "axis", 1, parts, count);
	if (b->content->normalize) {
		const struct onnx_attribute attributes[] = {
			{.name = "axes", .kind = ONNX_ATTRIBUTE_INTS, .integers = {1}, .count = 1},
			{.name = "keepdims", .kind = ONNX_ATTRIBUTE_INT, .integer = 1},
		};
		struct onnx_value least = onnx_number(&b->graph, "/normalize/least", 1e-12f);
		struct onnx_value length = onnx_node(&b->graph, "ReduceL2", "/normalize/length", &x, 1, attributes, 2);
		length = apply(b, "Max", "/normalize/length_or_least", VALUES(length, least));
		x = apply(b, "Div", "/normalize", VALUES(x, length));
	}
	if (truncates(b->content))
		x = slice(b, "sentence_embedding", 0, x, 1, 0, b->content->truncate_dim);
	named(b, "sentence_embedding", x);
}

enum status onnx_model_write(const char *path, const struct onnx_model_content *content, int64_t limit)
{
	struct builder b = {.content = content, .model = content->model};
	struct onnx_model_facts facts;
	struct onnx_dimension dimensions[4];
	onnx_model_describe(content, &facts);
	add_inputs(&b, &facts);
	add_constants(&b);
	struct onnx_value hidden = encoder(&b);
	add_heads(&b, &facts, hidden);
	if (content->pooling)
		add_sentence_embedding(&b, hidden);
	for (int i = 0; i < facts.output_count; i++) {
		struct onnx_value output;
		snprintf(output.name, sizeof output.name, "%s", facts.outputs[i].name);
		name_dimensions(&b, &facts.outputs[i], dimensions);
		onnx_output(&b.graph, &output, ONNX_FLOAT, dimensions, facts.outputs[i].rank);
	}
	enum status status = onnx_graph_write(&b.graph, path, limit);
	onnx_graph_release(&b.graph);
	return status;
}
