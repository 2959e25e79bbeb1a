/* Initial weights that make heads attend to neighbors: attention is computed here as in the BERT paper. */
#include "test.h"
#include <math.h>
#include "base/rng.h"
#include "model/forms.h"
#include "model/neighbor_attention.h"

enum { VOCAB = 200 };

static struct model *new_model(const char *form, int32_t hidden, int32_t heads, int32_t positions)
{
	static struct backend be = {.dtype = DTYPE_F32, .master_dtype = DTYPE_F32}; /* a layout needs no device */
	struct model_config config;
	struct model *model;
	assert_int_equal(model_config_named(&config, "tiny"), OK);
	config.vocab_size = VOCAB;
	config.hidden_size = hidden;
	config.num_attention_heads = heads;
	config.max_position_embeddings = positions;
	assert_ok(model_config_take_form(&config, form, 0));
	assert_int_equal(model_create(&model, &be, &config, &model_heads_none), OK);
	return model;
}

/* Like model_initialize(), but a truncated normal of 0.02 everywhere is enough here. */
static float *drawn_slab(const struct model *model)
{
	float *slab = malloc((size_t)model->slab_count * sizeof *slab);
	assert_non_null(slab);
	struct rng rng = rng_start(3, RNG_TEST, 0);
	for (int64_t i = 0; i < model->slab_count; i++)
		slab[i] = (float)(0.02 * rng_truncated_normal(&rng));
	return slab;
}

static const float *values(const struct model *model, const float *slab, const char *name)
{
	int64_t number = model_find_parameter(model, name);
	assert_true(number >= 0);
	return slab + model->parameters[number].offset;
}

/* A random text after the embeddings' LayerNorm, (length, hidden). */
static double *embedded_text(const struct model *model, const float *slab, int32_t length)
{
	int32_t hidden = model->config.hidden_size;
	const float *words = values(model, slab, "bert.embeddings.word_embeddings.weight");
	bool learned = model_form_of(&model->config)->positions == POSITIONS_LEARNED;
	const float *positions = learned ? values(model, slab, "bert.embeddings.position_embeddings.weight") : NULL;
	const float *types = learned ? values(model, slab, "bert.embeddings.token_type_embeddings.weight") : NULL;
	double *text = malloc((size_t)(length * hidden) * sizeof *text);
	assert_non_null(text);
	struct rng rng = rng_start(4, RNG_TEST, 0);
	for (int32_t i = 0; i < length; i++) {
		double *row = text + (int64_t)i * hidden, mean = 0, variance = 0;
		int64_t word = (int64_t)rng_below(&rng, VOCAB);
		for (int32_t j = 0; j < hidden; j++) {
			row[j] = (double)words[word * hidden + j];
			if (learned)
				row[j] += (double)positions[(int64_t)i * hidden + j] + (double)types[j];
			mean += row[j] / hidden;
		}
		for (int32_t j = 0; j < hidden; j++)
			variance += (row[j] - mean) * (row[j] - mean) / hidden;
		for (int32_t j = 0; j < hidden; j++)
			row[j] = (row[j] - mean) / sqrt(variance);
	}
	return text;
}

static void project(const double *row, const float *weight, int32_t hidden, int32_t width, double *out)
{
	for (int32_t k = 0; k < width; k++) {
		out[k] = 0;
		for (int32_t j = 0; j < hidden; j++)
			out[k] += row[j] * (double)weight[(int64_t)k * hidden + j];
	}
}

/* Queries or keys of a head; with rotary positions turned by their position. */
static void turned(const struct model *model, const double *row, const float *weight, int32_t position, int32_t width,
		   double *out)
{
	project(row, weight, model->config.hidden_size, width, out);
	if (model_form_of(&model->config)->positions != POSITIONS_ROTARY)
		return;
	for (int32_t i = 0; i < width / 2; i++) {
		double angle = position * pow(model->config.attention.global_base, -2.0 * i / width);
		double x = out[i], y = out[i + width / 2];
		out[i] = x * cos(angle) - y * sin(angle);
		out[i + width / 2] = y * cos(angle) + x * sin(angle);
	}
}

/* The attention that a head of the first layer gives to the token at its offset, averaged over the tokens that have one. */
static double attention_to_neighbor(const struct model *model, const float *slab, int32_t head, int32_t length)
{
	int32_t hidden = model->config.hidden_size, width = hidden / model->config.num_attention_heads, counted = 0;
	bool fused = model_form_of(&model->config)->fused; /* query and key are of one tensor, otherwise adjacent */
	const float *query = values(model, slab,
				    fused ? "bert.encoder.layer.0.attention.self.qkv.weight"
					  : "bert.encoder.layer.0.attention.self.query.weight") +
			     (int64_t)head * width * hidden;
	const float *key = query + (int64_t)hidden * hidden;
	double *text = embedded_text(model, slab, length), *keys = malloc((size_t)(length * width) * sizeof *keys), mean = 0;
	double q[64];
	assert_non_null(keys);
	assert_true(width <= 64);
	for (int32_t i = 0; i < length; i++)
		turned(model, text + (int64_t)i * hidden, key, i, width, keys + (int64_t)i * width);
	for (int32_t i = 0; i < length; i++) {
		int32_t wanted = i + neighbor_offset(0, head, model->config.num_attention_heads);
		double sum = 0, of_wanted = 0;
		if (wanted < 0 || wanted >= length)
			continue;
		turned(model, text + (int64_t)i * hidden, query, i, width, q);
		for (int32_t j = 0; j < length; j++) {
			double score = 0;
			for (int32_t k = 0; k < width; k++)
				score += q[k] * keys[(int64_t)j * width + k];
			score = exp(score / sqrt(width));
			sum += score;
			of_wanted = j == wanted ? score : of_wanted;
		}
		mean += of_wanted / sum;
		counted++;
	}
	free(text);
	free(keys);
	return mean / counted;
}

static void heads_look_at_their_neighbors(void **state)
{
	static const struct {
		const char *form;
		int32_t hidden, heads, length;
		double least;
	} cases[] = {{"bert", 128, 2, 128, 0.85},      {"bert", 256, 4, 128, 0.85},       {"bert", 256, 4, 512, 0.65},
		     {"bert", 128, 4, 128, 0.7},       {"modernbert", 128, 2, 128, 0.75}, {"modernbert", 256, 4, 512, 0.7},
		     {"modernbert", 768, 12, 512, 0.7}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct model *model = new_model(cases[i].form, cases[i].hidden, cases[i].heads, 512);
		float *slab = drawn_slab(model);
		assert_true(attention_to_neighbor(model, slab, 0, cases[i].length) < 0.05);
		neighbor_attention_set(model, slab);
		for (int32_t head = 0; head < cases[i].heads; head++) {
			double attention = attention_to_neighbor(model, slab, head, cases[i].length);
			if (head < cases[i].heads / 2 ? attention < cases[i].least || attention > 1 : attention > 0.05)
				fail_msg("%s, hidden %d, heads %d, length %d, head %d: %g", cases[i].form, cases[i].hidden,
					 cases[i].heads, cases[i].length, head, attention);
		}
		free(slab);
		model_free(model);
	}
	static const int32_t twelve[] = {-1, 1, -2, 2, -3, 3, 0, 0, 0, 0, 0, 0};
	for (int32_t head = 0; head < 12; head++)
		assert_int_equal(neighbor_offset(3, head, 12), twelve[head]);
	assert_int_equal(neighbor_offset(0, 0, 2), -1);
	assert_int_equal(neighbor_offset(1, 0, 2), 1);
	assert_int_equal(neighbor_offset(1, 1, 2), 0);
	assert_int_equal(neighbor_offset(0, 0, 1), 0);
}

/* Widths and numbers of heads of any kind; nothing but positions, queries and keys is changed. */
static void other_weights_stay(void **state)
{
	static const int32_t shapes[][2] = {{128, 2}, {15, 3}, {12, 2}, {12, 2}};
	for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
		struct model *model = new_model(i == 3 ? "modernbert" : "bert", shapes[i][0], shapes[i][1], 40);
		float *slab = drawn_slab(model), *before = drawn_slab(model);
		neighbor_attention_set(model, slab);
		for (int64_t p = 0; p < model->parameter_count; p++) {
			const struct parameter *parameter = &model->parameters[p];
			size_t bytes = (size_t)parameter->count * sizeof *slab;
			bool kept = memcmp(slab + parameter->offset, before + parameter->offset, bytes) == 0;
			bool changes = strstr(parameter->name, i == 3 ? "word_embeddings" : "position_embeddings") ||
				       strstr(parameter->name, "qkv.weight") || strstr(parameter->name, "query.weight") ||
				       strstr(parameter->name, "key.weight");
			if (kept == changes)
				fail_msg("%d x %d: '%s'", shapes[i][0], shapes[i][1], parameter->name);
		}
		free(slab);
		free(before);
		model_free(model);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(heads_look_at_their_neighbors),
		cmocka_unit_test(other_weights_stay),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
