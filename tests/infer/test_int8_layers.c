/* Layers that do not tolerate int8 are found: one number that dwarfs the others of its row leaves them few quantization
 * steps. */
#include <math.h>
#include <unistd.h>
#include "formats/safetensors.h"
#include "infer/int8_layers.h"
#include "infer/small_model.h"

/* Multiplies channels of layer 1's values by `factor`, and divides the weights that read them by it: the model still
 * computes the same function. */
static void spread(const struct model *model, float *slab, float factor)
{
	const struct parameter *value =
		&model->parameters[model_find_parameter(model, "bert.encoder.layer.1.attention.self.value.weight")];
	const struct parameter *bias =
		&model->parameters[model_find_parameter(model, "bert.encoder.layer.1.attention.self.value.bias")];
	const struct parameter *output =
		&model->parameters[model_find_parameter(model, "bert.encoder.layer.1.attention.output.dense.weight")];
	for (int64_t channel = 3; channel < SMALL_HIDDEN; channel += 20) {
		slab[bias->offset + channel] *= factor;
		for (int64_t k = 0; k < SMALL_HIDDEN; k++) {
			slab[value->offset + channel * SMALL_HIDDEN + k] *= factor;
			slab[output->offset + k * SMALL_HIDDEN + channel] /= factor;
		}
	}
}

static void make(const char *path, float factor)
{
	struct safetensors_entry entries[64];
	struct model *model;
	float *slab;
	char file[PATH_BYTES];
	small_model_make(path, &model_heads_pretraining, &model, &slab);
	spread(model, slab, factor);
	for (int64_t i = 0; i < model->parameter_count; i++) {
		const struct parameter *p = &model->parameters[i];
		int rank = parameter_rank(p);
		entries[i] = (struct safetensors_entry){.name = p->name,
							.dtype = ST_F32,
							.rank = rank,
							.shape = {rank == 2 ? p->rows : p->columns, p->columns},
							.data = slab + p->offset,
							.bytes = (uint64_t)p->count * sizeof(float)};
	}
	assert_ok(path_join(file, path, "model.safetensors"));
	assert_ok(safetensors_write(file, entries, model->parameter_count, NULL, NULL, NULL));
	assert_ok(path_join(file, path, MANIFEST_NAME));
	assert_int_equal(unlink(file), 0);
	free(slab);
	model_free(model);
}

static void choose(const char *path, const char *calibrate, struct saved_model *saved, struct int8_layers *layers)
{
	assert_ok(saved_model_read(saved, path, true));
	assert_ok(int8_layers_choose(layers, saved, calibrate, 1));
	assert_int_equal(layers->tried, 4 * SMALL_LAYERS);
}

static void an_even_model_is_all_int8(void **state)
{
	struct saved_model saved = {0};
	struct int8_layers drawn = {0}, read = {0};
	struct buffer text = {0};
	make(test_path("even"), 1);
	choose(test_path("even"), NULL, &saved, &drawn);
	assert_int_equal(drawn.kept_count, 0);
	assert_true(drawn.tokens > 400 && drawn.tokens <= 512);
	/* The squares of the errors nearly add up; each error is nonzero and small. */
	double squares = 0;
	for (int64_t i = 0; i < drawn.count; i++) {
		if (!drawn.fits[i])
			continue;
		assert_true(drawn.errors[i] > 1e-4 && drawn.errors[i] < 0.03);
		squares += drawn.errors[i] * drawn.errors[i];
	}
	assert_near(drawn.error, sqrt(squares), 0.3 * drawn.error);
	/* With the user's own texts the result is much the same. */
	for (int i = 8; i < SMALL_VOCAB; i++)
		buffer_format(&text, "%sw%c%c", i % 9 ? " " : "\n\n", 'a' + i / 26, 'a' + i % 26);
	assert_ok(file_write(test_path("texts"), text.data, text.size));
	struct saved_model again = {0};
	choose(test_path("even"), test_path("texts"), &again, &read);
	assert_int_equal(read.kept_count, 0);
	assert_true(read.tokens > 52 && read.tokens < 90);
	assert_true(read.error > drawn.error / 3 && read.error < drawn.error * 3);
	buffer_release(&text);
	int8_layers_release(&drawn);
	int8_layers_release(&read);
	saved_model_release(&saved);
	saved_model_release(&again);
}

static void a_spread_layer_stays(void **state)
{
	struct saved_model saved = {0};
	struct int8_layers layers = {0};
	make(test_path("spread"), 1000);
	choose(test_path("spread"), NULL, &saved, &layers);
	assert_int_equal(layers.kept_count, 1);
	for (int64_t i = 0; i < layers.count; i++) {
		bool is_it = saved.model->weights[i] == &saved.model->layers[1].attention_output;
		assert_int_equal(layers.kept[i], is_it);
		assert_true(!is_it || layers.errors[i] > INT8_ERROR_MOST);
	}
	assert_true(layers.error < INT8_ERROR_MOST);
	int8_layers_release(&layers);
	saved_model_release(&saved);
}

static void bad_texts(void **state)
{
	struct saved_model saved = {0};
	struct int8_layers layers = {0};
	assert_ok(file_write(test_path("blank"), "\n \n", 3));
	assert_ok(saved_model_read(&saved, test_path("even"), true));
	assert_error(ERR_DATA, "no text in it", int8_layers_choose(&layers, &saved, test_path("blank"), 1));
	int8_layers_release(&layers);
	assert_error(ERR_USAGE, "nothing", int8_layers_choose(&layers, &saved, test_path("nothing"), 1));
	int8_layers_release(&layers);
	saved_model_release(&saved);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_even_model_is_all_int8),
		cmocka_unit_test(a_spread_layer_stays),
		cmocka_unit_test(bad_texts),
	};
	return cmocka_run_group_tests(tests, test_folder_make, test_folder_drop);
}
