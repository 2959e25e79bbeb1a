/* Weights with task heads: what a Hugging Face folder or a Google checkpoint holds for a task goes into a model of that
 * task, and into one of another task without the head; values that are not finite are refused. */
#include <math.h>
#include "test.h"
#include "formats/safetensors.h"
#include "weights/model_weights.h"
#include "weights/weight_names.h"

#define CLASSES 3
#define HIDDEN 8

static struct backend be = {.dtype = DTYPE_F32, .master_dtype = DTYPE_F32}; /* names and shapes need no device */

/* An encoder with a head of these names; without a pooler, its two parameters are removed. */
static struct model *make_model(const char *weight, const char *bias, int32_t rows, bool pooler)
{
	struct model_config config;
	struct model *model;
	assert_ok(model_config_named(&config, "tiny"));
	config.vocab_size = 12;
	config.hidden_size = HIDDEN;
	config.num_attention_heads = 2;
	config.num_hidden_layers = 1;
	config.intermediate_size = 16;
	config.max_position_embeddings = 6;
	assert_ok(model_create(&model, &be, &config, &model_heads_none));
	model->parameters = realloc(model->parameters, (size_t)(model->parameter_count + 2) * sizeof *model->parameters);
	assert_non_null(model->parameters);
	if (!pooler) {
		model->parameter_count -= 2;
		assert_string_equal(model->parameters[model->parameter_count].name, "bert.pooler.dense.weight");
	}
	for (int i = 0; i < 2; i++) {
		struct parameter *head = &model->parameters[model->parameter_count++];
		*head = (struct parameter){.rows = i ? 1 : rows,
					   .columns = i ? rows : HIDDEN,
					   .offset = model->slab_count,
					   .decays = !i,
					   .layer = config.num_hidden_layers};
		head->count = head->rows * head->columns;
		snprintf(head->name, sizeof head->name, "%s", i ? bias : weight);
		model->slab_count += head->count;
	}
	return model;
}

/* The values in a file: a different number everywhere. */
static float value(int64_t tensor, int64_t i)
{
	return (float)(tensor + 1) + (float)i / 4096;
}

/* Writes the parameters of a model under the names that `rename` makes from theirs. */
static void write_file(const char *path, const struct model *model, void (*rename)(char *name, size_t size))
{
	struct safetensors_entry entries[64] = {{0}};
	static char names[64][128];
	float *values[64];
	for (int64_t i = 0; i < model->parameter_count; i++) {
		const struct parameter *p = &model->parameters[i];
		int rank = parameter_rank(p);
		values[i] = malloc((size_t)p->count * sizeof(float));
		assert_non_null(values[i]);
		for (int64_t k = 0; k < p->count; k++)
			values[i][k] = value(i, k);
		snprintf(names[i], sizeof names[i], "%s", p->name);
		if (rename)
			rename(names[i], sizeof names[i]);
		entries[i] = (struct safetensors_entry){.name = names[i],
							.dtype = ST_F32,
							.rank = rank,
							.count = p->count,
							.shape = {rank == 2 ? p->rows : p->columns, rank == 2 ? p->columns : 0},
							.data = values[i],
							.bytes = (uint64_t)p->count * sizeof(float)};
	}
	assert_ok(safetensors_write(path, entries, model->parameter_count, NULL, NULL, NULL));
	for (int64_t i = 0; i < model->parameter_count; i++)
		free(values[i]);
}

struct result {
	float *slab;
	struct model_folder_report report;
	enum status status;
};

static struct result load(const char *path, const struct model *model, const struct weight_adaptation *how)
{
	struct result result = {.slab = calloc((size_t)model->slab_count, sizeof(float))};
	assert_non_null(result.slab);
	for (int64_t i = 0; i < model->slab_count; i++)
		result.slab[i] = -7;
	result.status = model_weights_load(path, model, how, result.slab, &result.report);
	return result;
}

static void drop(struct result *result)
{
	model_folder_report_release(&result->report);
	free(result->slab);
}

static float at(const struct result *result, const struct model *model, const char *name, int64_t i)
{
	int64_t number = model_find_parameter(model, name);
	assert_true(number >= 0);
	return result->slab[model->parameters[number].offset + i];
}

static void google_classifier(char *name, size_t size)
{
	if (strncmp(name, "classifier.", 11) == 0)
		snprintf(name, size, "%s", strstr(name, "weight") ? "output_weights" : "output_bias");
}

static void google_span(char *name, size_t size)
{
	if (strncmp(name, "qa_outputs.", 11) == 0)
		snprintf(name, size, "%s", strstr(name, "weight") ? "cls/squad/output_weights" : "cls/squad/output_bias");
}

/* As transformers saves a BertModel, and a run with data parallelism. */
static void bare(char *name, size_t size)
{
	char rest[128];
	snprintf(rest, sizeof rest, "%s", strncmp(name, "bert.", 5) == 0 ? name + 5 : name);
	snprintf(name, size, "%s", rest);
}

static void parallel(char *name, size_t size)
{
	char rest[128];
	snprintf(rest, sizeof rest, "%s", name);
	snprintf(name, size, "module.%s", rest);
}

static void heads_are_found(void **state)
{
	static const struct {
		const char *weight, *bias;
		int32_t rows;
		bool pooler;
		void (*rename)(char *name, size_t size);
	} cases[] = {
		{CLASSIFIER_WEIGHT, CLASSIFIER_BIAS, CLASSES, true, NULL},
		{CLASSIFIER_WEIGHT, CLASSIFIER_BIAS, CLASSES, false, NULL}, /* tagging */
		{CLASSIFIER_WEIGHT, CLASSIFIER_BIAS, 1, true, bare},        /* choices */
		{CLASSIFIER_WEIGHT, CLASSIFIER_BIAS, CLASSES, true, google_classifier},
		{SPAN_WEIGHT, SPAN_BIAS, 2, false, NULL},
		{SPAN_WEIGHT, SPAN_BIAS, 2, false, google_span},
		{SPAN_WEIGHT, SPAN_BIAS, 2, false, parallel},
	};
	for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
		struct model *model = make_model(cases[c].weight, cases[c].bias, cases[c].rows, cases[c].pooler);
		struct weight_adaptation how = {.missing = MISSING_NOTHING};
		write_file(test_path("head.safetensors"), model, cases[c].rename);
		struct result result = load(test_path("head.safetensors"), model, &how);
		assert_ok(result.status);
		assert_int_equal(result.report.loaded, model->parameter_count);
		assert_int_equal(result.report.unused.count, 0);
		for (int64_t i = 0; i < model->parameter_count; i++)
			for (int64_t k = 0; k < model->parameters[i].count; k++)
				assert_true(result.slab[model->parameters[i].offset + k] == value(i, k));
		drop(&result);
		model_free(model);
	}
}

/* From one task to another: the encoder is transferred, the head and an unneeded pooler are left behind, missing tensors
 * are named and keep the slab's values. */
static void heads_of_other_tasks_stay_behind(void **state)
{
	struct model *classifier = make_model(CLASSIFIER_WEIGHT, CLASSIFIER_BIAS, CLASSES, true);
	struct model *spans = make_model(SPAN_WEIGHT, SPAN_BIAS, 2, false);
	struct weight_adaptation how = {.missing = MISSING_NOTHING};
	write_file(test_path("classifier.safetensors"), classifier, NULL);
	write_file(test_path("spans.safetensors"), spans, NULL);
	struct result result = load(test_path("classifier.safetensors"), spans, &how);
	assert_int_equal(result.status, ERR_STATE);
	drop(&result);
	how.missing = MISSING_HEADS;
	result = load(test_path("classifier.safetensors"), spans, &how);
	assert_ok(result.status);
	assert_int_equal(result.report.loaded, spans->parameter_count - 2);
	assert_int_equal(result.report.unused.count, 4);
	assert_string_equal(result.report.unused.names[0], "bert.pooler.dense.bias");
	assert_int_equal(result.report.missing.count, 2);
	assert_string_equal(result.report.missing.names[0], SPAN_WEIGHT);
	assert_true(at(&result, spans, SPAN_WEIGHT, 0) == -7);
	drop(&result);
	/* In the other direction the pooler is missing, too. */
	result = load(test_path("spans.safetensors"), classifier, &how);
	assert_ok(result.status);
	assert_int_equal(result.report.missing.count, 4);
	assert_string_equal(result.report.missing.names[0], "bert.pooler.dense.weight");
	assert_true(at(&result, classifier, "bert.pooler.dense.bias", 0) == -7);
	drop(&result);
	model_free(classifier);
	model_free(spans);
}

/* The same names, but from another task: drawn anew although the file has them. */
static void heads_are_left_out_on_request(void **state)
{
	static const char *const fresh[] = {"classifier.", NULL};
	struct model *model = make_model(CLASSIFIER_WEIGHT, CLASSIFIER_BIAS, CLASSES, true);
	struct model *other = make_model(CLASSIFIER_WEIGHT, CLASSIFIER_BIAS, 5, true);
	struct weight_adaptation how = {.missing = MISSING_NOTHING, .fresh = fresh};
	write_file(test_path("fresh.safetensors"), model, NULL);
	for (int i = 0; i < 2; i++) {
		const struct model *into = i ? other : model;
		struct result result = load(test_path("fresh.safetensors"), into, &how);
		assert_ok(result.status);
		assert_int_equal(result.report.loaded, into->parameter_count - 2);
		assert_int_equal(result.report.missing.count, 2);
		assert_int_equal(result.report.unused.count, 2);
		assert_true(at(&result, into, CLASSIFIER_WEIGHT, 0) == -7);
		assert_true(at(&result, into, "bert.pooler.dense.weight", 0) != -7);
		drop(&result);
	}
	how.fresh = NULL;
	struct result result = load(test_path("fresh.safetensors"), other, &how);
	assert_error(ERR_STATE, "needs (5", result.status);
	drop(&result);
	model_free(model);
	model_free(other);
}

/* The same classes in another order. */
static void classes_are_renumbered(void **state)
{
	static const int32_t rows[] = {2, 0, 1};
	struct model *model = make_model(CLASSIFIER_WEIGHT, CLASSIFIER_BIAS, CLASSES, true);
	struct weight_adaptation how = {.missing = MISSING_NOTHING, .class_rows = rows, .class_count = CLASSES};
	int64_t weight = model_find_parameter(model, CLASSIFIER_WEIGHT), bias = model_find_parameter(model, CLASSIFIER_BIAS);
	write_file(test_path("order.safetensors"), model, NULL);
	struct result result = load(test_path("order.safetensors"), model, &how);
	assert_ok(result.status);
	for (int64_t i = 0; i < CLASSES; i++) {
		for (int64_t k = 0; k < HIDDEN; k++)
			assert_true(at(&result, model, CLASSIFIER_WEIGHT, i * HIDDEN + k) == value(weight, rows[i] * HIDDEN + k));
		assert_true(at(&result, model, CLASSIFIER_BIAS, i) == value(bias, rows[i]));
	}
	assert_true(at(&result, model, "bert.pooler.dense.bias", 1) ==
		    value(model_find_parameter(model, "bert.pooler.dense.bias"), 1));
	drop(&result);
	model_free(model);
}

/* One number of a file, replaced. */
static void put_value(const char *path, const char *name, int64_t i, float number)
{
	struct safetensors file;
	assert_ok(safetensors_open(&file, path));
	const struct safetensors_entry *entry = safetensors_find(&file, name);
	assert_non_null(entry);
	long offset = (long)((const unsigned char *)entry->data - file.map.data) + (long)(i * 4);
	safetensors_close(&file);
	FILE *stream = fopen(path, "r+b");
	assert_non_null(stream);
	assert_int_equal(fseek(stream, offset, SEEK_SET), 0);
	assert_int_equal(fwrite(&number, sizeof number, 1, stream), 1);
	assert_int_equal(fclose(stream), 0);
}

static void numbers_are_finite(void **state)
{
	static const char *const names[] = {WORD_EMBEDDINGS, "bert.encoder.layer.0.attention.self.query.weight",
					    "bert.encoder.layer.0.output.LayerNorm.bias", CLASSIFIER_WEIGHT};
	static const float bad[] = {NAN, INFINITY, -INFINITY};
	struct model *model = make_model(CLASSIFIER_WEIGHT, CLASSIFIER_BIAS, CLASSES, true);
	struct weight_adaptation how = {.missing = MISSING_NOTHING};
	for (int i = 0; i < 4; i++) {
		write_file(test_path("numbers.safetensors"), model, NULL);
		put_value(test_path("numbers.safetensors"), names[i], 5, bad[i % 3]);
		struct result result = load(test_path("numbers.safetensors"), model, &how);
		assert_error(ERR_DATA, "not finite", result.status);
		assert_non_null(strstr(error_last()->message, names[i]));
		assert_non_null(strstr(error_last()->message, i == 2 ? "row 5, column 0" : "row 0, column 5"));
		drop(&result);
	}
	model_free(model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(heads_are_found),
		cmocka_unit_test(heads_of_other_tasks_stay_behind),
		cmocka_unit_test(heads_are_left_out_on_request),
		cmocka_unit_test(classes_are_renumbered),
		cmocka_unit_test(numbers_are_finite),
	};
	return cmocka_run_group_tests(tests, test_folder_make, test_folder_drop);
}
