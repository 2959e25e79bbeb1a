/* Weights in int8: what is written equals what the products of inference make of the same weights; read back as numbers,
 * or packed without masters by a back end of the test's own, they are the same; invalid scales are refused. */
#include <math.h>
#include <time.h>
#include "test.h"
#include "backend/int8.h"
#include "formats/safetensors.h"
#include "formats/weights_file.h"
#include "weights/int8_weights.h"

/* A back end whose compute copies are floats, so that the packed values can be examined. */
static size_t copy_bytes(struct backend *be, const struct weight *weight)
{
	(void)be;
	return (size_t)(weight->master.rows * weight->master.columns) * sizeof(float);
}

static void pack(struct backend *be, struct weight *weight, const struct weight_rows *rows)
{
	(void)be;
	int64_t columns = weight->master.columns;
	for (int64_t i = 0; i < rows->count * columns; i++) {
		float *to = (float *)weight->copy + rows->first * columns + i;
		if (rows->dtype == DTYPE_F32)
			*to = ((const float *)rows->data)[i];
		else if (rows->dtype == DTYPE_BF16)
			*to = bf16_to_float(((const uint16_t *)rows->data)[i]);
		else if (rows->dtype == DTYPE_S8)
			*to = (float)((const int8_t *)rows->data)[i] * rows->scales[i / columns];
		else
			fail_msg("rows of type %d", rows->dtype);
	}
}

static enum status allocate(struct backend *be, void **out, size_t bytes, const char *what)
{
	(void)be;
	(void)what;
	*out = malloc(bytes);
	if (*out)
		memset(*out, 0x55, bytes); /* bytes that nobody packs are noticed */
	return *out ? OK : ERR_RESOURCE;
}

static void release(struct backend *be, void *memory)
{
	(void)be;
	free(memory);
}

static const struct backend_functions functions = {
	.allocate = allocate, .release = release, .weight_copy_bytes = copy_bytes, .weight_pack = pack};
static struct backend be = {.dtype = DTYPE_F32, .master_dtype = DTYPE_F32, .int8 = true, .functions = &functions};
static struct model *model;
static float *weights;
static struct vocab vocab;
static struct tokenizer_settings settings;

static int setup(void **state)
{
	static const char *const words[12] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a",
					      "b",     "c",     "##a",   "##b",   "ab",     "."};
	struct model_config config;
	if (test_folder_make(state) != 0)
		return -1;
	assert_ok(model_config_named(&config, "tiny"));
	config.vocab_size = 12;
	config.hidden_size = 8;
	config.num_attention_heads = 2;
	config.intermediate_size = 24;
	config.max_position_embeddings = 10;
	assert_ok(model_create(&model, &be, &config, &model_heads_pretraining));
	assert_ok(vocab_from_entries(&vocab, words, 12));
	settings = tokenizer_defaults(false);
	weights = calloc((size_t)model->slab_count, sizeof *weights);
	assert_non_null(weights);
	for (int64_t i = 0; i < model->parameter_count; i++)
		for (int64_t k = 0; k < model->parameters[i].count; k++)
			weights[model->parameters[i].offset + k] = sinf((float)(i * 1000 + k)) * (float)(1 + k % 7);
	return 0;
}

static int teardown(void **state)
{
	free(weights);
	vocab_release(&vocab);
	model_free(model);
	return test_folder_drop(state);
}

static const char *save(const char *name, const bool *kept)
{
	const char *folder = test_path(name);
	struct model_folder_content content = {
		.model = model, .slab = weights, .vocab = &vocab, .tokenizer = &settings, .max_length = 10};
	struct folder_files files = {0};
	assert_ok(folder_make(folder));
	assert_ok(model_folder_save_description(folder, &content, &files));
	assert_ok(int8_weights_save(folder, &content, kept, &files));
	assert_string_equal(files.files[files.count - 1].name, INT8_WEIGHTS_FILE);
	free(files.files);
	return folder;
}

static bool is_linear(const char *name)
{
	return strstr(name, "encoder") && strstr(name, ".weight") && !strstr(name, "LayerNorm");
}

/* Bytes and scales are those of backend/int8.h; everything else has the type that formats.md states. */
static void form_of_the_file(void **state)
{
	char path[PATH_BYTES];
	struct safetensors file;
	assert_ok(path_join(path, save("form", NULL), INT8_WEIGHTS_FILE));
	assert_ok(safetensors_open(&file, path));
	int linear = 0;
	for (int64_t i = 0; i < model->parameter_count; i++) {
		const struct parameter *p = &model->parameters[i];
		const struct safetensors_entry *entry = safetensors_find(&file, p->name);
		assert_non_null(entry);
		if (!is_linear(p->name)) {
			assert_int_equal(entry->dtype, strstr(p->name, "embeddings.weight") ? ST_BF16 : ST_F32);
			continue;
		}
		char name[160];
		snprintf(name, sizeof name, "%s_scale", p->name);
		const struct safetensors_entry *scale = safetensors_find(&file, name);
		linear++;
		assert_int_equal(entry->dtype, ST_I8);
		assert_non_null(scale);
		assert_int_equal(scale->dtype, ST_F32);
		assert_int_equal(scale->shape[0], p->rows);
		assert_int_equal(scale->shape[1], 1);
		for (int64_t row = 0; row < p->rows; row++) {
			const float *values = weights + p->offset + row * p->columns;
			struct int8_scale expected = int8_scale_of_row(values, p->columns);
			float found;
			memcpy(&found, (const char *)scale->data + row * 4, 4);
			assert_true(found == expected.scale);
			for (int64_t k = 0; k < p->columns; k++) {
				int8_t byte = ((const int8_t *)entry->data)[row * p->columns + k];
				assert_int_equal(byte, (int)lrintf(values[k] * expected.factor));
				assert_near((double)byte * found, (double)values[k], 0.5001 * (double)found);
			}
		}
	}
	assert_int_equal(linear, 12);
	assert_int_equal(file.count, model->parameter_count + linear);
	safetensors_close(&file);
}

/* The model's weights after rounding. */
static float expected_value(const struct parameter *p, int64_t k, bool kept)
{
	const float *row = weights + p->offset + k / p->columns * p->columns;
	struct int8_scale scale = int8_scale_of_row(row, p->columns);
	float value = weights[p->offset + k];
	if (is_linear(p->name) && !kept)
		return (float)int8_rounded(value, scale.factor) * scale.scale;
	if (strstr(p->name, "embeddings.weight") || is_linear(p->name))
		return bf16_to_float(float_to_bf16(value));
	return value;
}

/* Read into a slab and packed, with one weight that stays in BF16: the query, key and value of the second layer. */
static void read_back(void **state)
{
	struct parameter_place *places = calloc((size_t)model->parameter_count, sizeof *places);
	bool *kept = calloc((size_t)model->weight_count, sizeof *kept), any = false;
	float *slab = calloc((size_t)model->slab_count, sizeof *slab);
	struct model_folder_report report = {0};
	assert_non_null(places);
	assert_non_null(kept);
	assert_non_null(slab);
	parameter_places(model, places);
	int64_t second = places[model_find_parameter(model, "bert.encoder.layer.1.attention.self.key.weight")].weight;
	kept[second] = true;
	const char *folder = save("kept", kept);

	assert_ok(int8_weights_mark(folder, NULL, &any));
	assert_true(any);
	assert_ok(model_folder_load(folder, model, MISSING_NOTHING, slab, &report));
	assert_int_equal(report.loaded, model->parameter_count);
	assert_int_equal(report.unused.count, 0); /* scales go with their matrices */
	model_folder_report_release(&report);
	for (int64_t i = 0; i < model->parameter_count; i++) {
		const struct parameter *p = &model->parameters[i];
		for (int64_t k = 0; k < p->count; k++)
			if (slab[p->offset + k] != expected_value(p, k, places[i].weight == second))
				fail_msg("number %d of '%s' is another", (int)k, p->name);
	}

	assert_ok(int8_weights_mark(folder, model, &any));
	assert_true(model->weights[second]->unquantized);
	assert_false(model->layers[0].qkv.unquantized);
	assert_ok(model_allocate_copies(model));
	assert_ok(model_folder_load(folder, model, MISSING_NOTHING, NULL, NULL));
	for (int64_t i = 0; i < model->parameter_count; i++) {
		const struct parameter *p = &model->parameters[i];
		const struct weight *weight = model->weights[places[i].weight];
		bool vector = weight->use == WEIGHT_VECTOR;
		const float *at = (const float *)weight->copy + places[i].row * (vector ? 1 : p->columns);
		for (int64_t k = 0; k < p->count; k++)
			if (at[k] != slab[p->offset + k])
				fail_msg("packed number %d of '%s' is %g, not %g", (int)k, p->name, (double)at[k],
					 (double)slab[p->offset + k]);
	}
	free(places);
	free(kept);
	free(slab);
}

/* Tensors missing from the file are zeros in the packed copies, not whatever was in memory. */
static void missing_becomes_zeros(void **state)
{
	struct safetensors_entry entries[80];
	struct model *other;
	struct model_folder_report report = {0};
	int64_t count = 0;
	for (int64_t i = 0; i < model->parameter_count; i++) {
		const struct parameter *p = &model->parameters[i];
		int rank = parameter_rank(p);
		if (!strstr(p->name, "pooler") && !strstr(p->name, "seq_relationship"))
			entries[count++] = (struct safetensors_entry){.name = p->name,
								      .dtype = ST_F32,
								      .rank = rank,
								      .shape = {rank == 2 ? p->rows : p->columns, p->columns},
								      .data = weights + p->offset,
								      .bytes = (uint64_t)p->count * sizeof(float)};
	}
	assert_ok(safetensors_write(test_path("few.safetensors"), entries, count, NULL, NULL, NULL));
	assert_ok(model_create(&other, &be, &model->config, &model_heads_pretraining));
	assert_ok(model_allocate_copies(other));
	assert_error(ERR_STATE, "are missing",
		     model_folder_load(test_path("few.safetensors"), other, MISSING_NOTHING, NULL, NULL));
	assert_ok(model_folder_load(test_path("few.safetensors"), other, MISSING_NEXT_SENTENCE, NULL, &report));
	assert_int_equal(report.missing.count, 4);
	const float *pooler = other->pooler.copy, *pooler_bias = other->pooler_bias.copy, *word = other->word.copy;
	for (int i = 0; i < 64; i++)
		assert_true(pooler[i] == 0);
	for (int i = 0; i < 8; i++)
		assert_true(pooler_bias[i] == 0);
	assert_true(word[9] == weights[model->parameters[0].offset + 9]);
	model_folder_report_release(&report);
	model_free(other);
}

/* Opens a file of one matrix with the given scale. */
static enum status open_scaled(enum safetensors_dtype type, int64_t rows, float scale)
{
	static const int8_t bytes[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	const float scales[4] = {1, scale, 1, 1};
	struct safetensors_entry entries[] = {
		{.name = "x.weight", .dtype = ST_I8, .rank = 2, .shape = {2, 4}, .data = bytes, .bytes = 8},
		{.name = "x.weight_scale",
		 .dtype = type,
		 .rank = 2,
		 .shape = {rows, 1},
		 .data = scales,
		 .bytes = (uint64_t)(rows * 4)},
	};
	struct weights_file file;
	float values[8];
	assert_ok(safetensors_write(test_path("scaled.safetensors"), entries, 2, NULL, NULL, NULL));
	TRY(weights_file_open(&file, test_path("scaled.safetensors")));
	assert_int_equal(file.count, 1);
	assert_ok(stored_tensor_read(&file.tensors[0], 3, 2, values));
	assert_true(values[0] == 4 && values[1] == 5 * scale);
	weights_file_close(&file);
	return OK;
}

static void broken_scales(void **state)
{
	assert_ok(open_scaled(ST_F32, 2, 0.5f));
	assert_error(ERR_DATA, "not one F32 per row", open_scaled(ST_F32, 3, 0.5f));
	assert_error(ERR_DATA, "not one F32 per row", open_scaled(ST_I32, 2, 0.5f));
	assert_error(ERR_DATA, "negative or not finite", open_scaled(ST_F32, 2, NAN));
	assert_error(ERR_DATA, "negative or not finite", open_scaled(ST_F32, 2, -1));
}

/* Names that end as those of scales do, beside one int8 matrix. */
static void many_names_stay_fast(void **state)
{
	enum { NAMES = 60000 };
	static struct safetensors_entry entries[2 + NAMES];
	static char names[NAMES][24];
	static const int8_t bytes[4] = {1, 2, 3, 4};
	static const float scale = 2;
	struct weights_file file;
	entries[0] =
		(struct safetensors_entry){.name = "a", .dtype = ST_I8, .rank = 2, .shape = {1, 4}, .data = bytes, .bytes = 4};
	entries[1] = (struct safetensors_entry){
		.name = "a_scale", .dtype = ST_F32, .rank = 1, .shape = {1}, .data = &scale, .bytes = 4};
	for (int i = 0; i < NAMES; i++) {
		snprintf(names[i], sizeof names[i], "b%d_scale", i);
		entries[2 + i] = (struct safetensors_entry){.name = names[i], .dtype = ST_F32, .rank = 1, .data = &scale};
	}
	assert_ok(safetensors_write(test_path("names.safetensors"), entries, 2 + NAMES, NULL, NULL, NULL));
	clock_t began = clock(); /* of the processor, which others may be using too */
	assert_ok(weights_file_open(&file, test_path("names.safetensors")));
	assert_true(clock() - began < 10 * CLOCKS_PER_SEC);
	assert_int_equal(file.count, 1 + NAMES);
	assert_non_null(weights_file_tensor(&file, "a")->row_scales);
	weights_file_close(&file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(form_of_the_file),      cmocka_unit_test(read_back),
		cmocka_unit_test(missing_becomes_zeros), cmocka_unit_test(broken_scales),
		cmocka_unit_test(many_names_stay_fast),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
