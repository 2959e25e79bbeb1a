/* Sets embeddings and the query and key weights of some heads, so that they look at a neighbor: with learned positions, by what
 * the embeddings say of the position; with rotary ones, by turning a number that all embeddings have in common. */
#include "model/neighbor_attention.h"

#include <math.h>
#include <stdio.h>

#include "model/forms.h"

/* Standard deviation of the positions as a multiple of the other embeddings': in the sum that the embeddings' LayerNorm
 * scales, positions then make up two thirds of the variance. */
#define POSITION_SCALE 2.0
/* The score of the position that a head looks at, while the other scores are about 0: among 128 tokens it gets some 90 % of
 * the attention, among 512 some 75 %. */
#define PEAK_SCORE 8.0
#define POSITION_SHARE (2 / 3.0)
#define FREQUENCY_POWER 1.5
/* With rotary positions: column 0 of all word embeddings, as a multiple of the others' deviation and of the root of the hidden
 * size. All other columns together keep four fifths of the variance, and logits do not change, as the output layer is tied. */
#define CONSTANT_SHARE 0.5
#define DRAWN_VARIANCE 0.774 /* of the others: a normal distribution cut off at two deviations */
/* The score is higher, since no pair turns by more than a radian per position: its neighbors get nearly as much. */
#define ROTARY_PEAK_SCORE 15.0

/* Radians per position of a sine-cosine pair. The pairs cover all frequencies up to pi, so the product of two positions is
 * large only if they are the same. They are not evenly spaced, since with equal steps, distant positions would become similar
 * again. */
static double frequency(int64_t pair, int64_t pairs)
{
	return M_PI * pow(((double)pair + 0.5) / (double)pairs, FREQUENCY_POWER);
}

static float *parameter_values(const struct model *model, float *slab, const char *name)
{
	int64_t number = model_find_parameter(model, name);
	BUG_IF(number < 0);
	return slab + model->parameters[number].offset;
}

static void set_positions(const struct model_config *config, float *positions)
{
	int64_t hidden = config->hidden_size, pairs = hidden / 2;
	double amplitude = POSITION_SCALE * config->initializer_range * sqrt(2);
	for (int64_t i = 0; i < config->max_position_embeddings; i++)
		for (int64_t pair = 0; pair < pairs; pair++) {
			double angle = frequency(pair, pairs) * (double)i;
			positions[i * hidden + 2 * pair] = (float)(amplitude * sin(angle));
			positions[i * hidden + 2 * pair + 1] = (float)(amplitude * cos(angle));
		}
}

int32_t neighbor_offset(int32_t layer, int32_t head, int32_t heads)
{
	int32_t looking = heads / 2, number = looking == 1 ? layer % 2 : head, distance = number / 2 + 1;
	if (head >= looking)
		return 0;
	return number % 2 ? distance : -distance;
}

/* Each head uses every heads-th pair: the key extracts the pair, the query the pair rotated by the head's offset. */
static void set_layer(const struct model_config *config, int32_t layer, float *query, float *key)
{
	int64_t hidden = config->hidden_size, heads = config->num_attention_heads, width = hidden / heads, pairs = hidden / 2;
	/* the sum of `width` products of pairs' halves, each POSITION_SHARE on average, divided by sqrt(width) as in attention */
	double scale = sqrt(PEAK_SCORE / (POSITION_SHARE * sqrt((double)width)));
	for (int64_t head = 0; head < heads / 2; head++)
		for (int64_t i = 0; i < width / 2; i++) {
			int64_t pair = head + heads * i, row = head * width + 2 * i;
			double turn = frequency(pair, pairs) * neighbor_offset(layer, (int32_t)head, (int32_t)heads);
			float cosine = (float)(scale * cos(turn)), sine = (float)(scale * sin(turn));
			float *first = query + row * hidden + 2 * pair, *second = first + hidden;
			first[0] += cosine;
			first[1] += sine;
			second[0] -= sine;
			second[1] += cosine;
			key[row * hidden + 2 * pair] += (float)scale;
			key[(row + 1) * hidden + 2 * pair + 1] += (float)scale;
		}
}

/* The key is the constant in all pairs, the query the same turned by the head's offset: their score is largest at the offset.
 * Pairs weigh as much as they turn, which lets the score fall off without rising again. */
static void set_rotary_layer(const struct model_config *config, int32_t layer, float *query, float *key)
{
	bool is_global = model_layer_is_global(config, layer);
	int64_t hidden = config->hidden_size, heads = config->num_attention_heads, width = hidden / heads;
	double constant = CONSTANT_SHARE * sqrt((double)hidden) / sqrt(DRAWN_VARIANCE + CONSTANT_SHARE * CONSTANT_SHARE), sum = 0;
	float frequencies[ROTARY_LIMIT / 2];
	rotary_frequencies(is_global ? config->attention.global_base : config->attention.local_base, (int32_t)width, frequencies);
	for (int64_t pair = 0; pair < width / 2; pair++)
		sum += (double)frequencies[pair];
	for (int64_t head = 0; head < heads / 2; head++)
		for (int64_t pair = 0; pair < width / 2; pair++) {
			double turn = (double)frequencies[pair] * neighbor_offset(layer, (int32_t)head, (int32_t)heads);
			double square = ROTARY_PEAK_SCORE * sqrt((double)width) * (double)frequencies[pair] / sum;
			double scale = sqrt(square) / constant;
			int64_t first = (head * width + pair) * hidden, second = first + width / 2 * hidden;
			query[first] += (float)(scale * cos(turn));
			query[second] += (float)(scale * sin(turn));
			key[first] += (float)scale;
		}
}

static void set_rotary(const struct model *model, float *slab)
{
	const struct model_config *config = &model->config;
	float *words = parameter_values(model, slab, "bert.embeddings.word_embeddings.weight");
	int64_t hidden = config->hidden_size;
	char name[128];
	for (int64_t i = 0; i < config->vocab_size; i++)
		words[i * hidden] = (float)(CONSTANT_SHARE * sqrt((double)hidden) * config->initializer_range);
	for (int32_t layer = 0; layer < config->num_hidden_layers; layer++) {
		snprintf(name, sizeof name, "bert.encoder.layer.%d.attention.self.qkv.weight", layer);
		float *query = parameter_values(model, slab, name);
		set_rotary_layer(config, layer, query, query + hidden * hidden);
	}
}

bool neighbor_attention_fits(const struct model_config *config)
{
	return model_embedding_size(config) == config->hidden_size;
}

void neighbor_attention_set(const struct model *model, float *slab)
{
	const struct model_config *config = &model->config;
	char query[128], key[128];
	if (model_form_of(config)->positions == POSITIONS_ROTARY) {
		set_rotary(model, slab);
		return;
	}
	set_positions(config, parameter_values(model, slab, "bert.embeddings.position_embeddings.weight"));
	for (int32_t layer = 0; layer < config->num_hidden_layers; layer++) {
		snprintf(query, sizeof query, "bert.encoder.layer.%d.attention.self.query.weight", layer);
		snprintf(key, sizeof key, "bert.encoder.layer.%d.attention.self.key.weight", layer);
		set_layer(config, layer, parameter_values(model, slab, query), parameter_values(model, slab, key));
	}
}
