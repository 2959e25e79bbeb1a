/* Adapters (weights/adapter.h): those that peft wrote (dev/adapter_golden.py) give the weights that peft merges, what bertc
 * cannot compute is refused by name, and an adapter that says which base it was trained on takes no other. */
#include "test.h"
#include <math.h>
#include "base/file.h"
#include "formats/safetensors.h"
#include "weights/adapter.h"
#include "weights/model_folder.h"
#include "weights/weight_names.h"

#define ADAPTERS "tests/golden/adapters/"

static struct backend be = {.dtype = DTYPE_F32, .master_dtype = DTYPE_F32}; /* names and shapes need no device */

static const struct model_heads class_head = {
	.architecture = "BertForSequenceClassification",
	.pooler = true,
	.count = 1,
	.head = {{.input = INPUT_FIRST_ROW,
		  .pooled = true,
		  .outputs = 3,
		  .loss = LOSS_CLASSES,
		  .coefficient = 1,
		  .name = "classifier"}},
};

/* A model and what is loaded into it. */
struct loaded {
	struct model *model;
	float *slab;
	enum status status;
};

static struct loaded load(const char *folder)
{
	struct loaded out = {0};
	struct model_config config;
	out.status = model_folder_config(folder, &config);
	if (out.status != OK)
		return out;
	assert_ok(model_create(&out.model, &be, &config, &class_head));
	out.slab = calloc((size_t)out.model->slab_count, sizeof *out.slab);
	assert_non_null(out.slab);
	out.status = model_folder_load(folder, out.model, MISSING_NOTHING, out.slab, NULL);
	return out;
}

static void drop(struct loaded *loaded)
{
	model_free(loaded->model);
	free(loaded->slab);
}

static void peft_merges_the_same(void **state)
{
	static const char *const names[] = {"roberta", "modernbert", "distilbert"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char folder[128], path[192];
		struct safetensors file;
		struct task_config task;
		snprintf(folder, sizeof folder, ADAPTERS "%s", names[i]);
		snprintf(path, sizeof path, "%s/golden.safetensors", folder);
		struct loaded loaded = load(folder);
		assert_ok(loaded.status);
		assert_ok(safetensors_open(&file, path));
		for (int64_t p = 0; p < loaded.model->parameter_count; p++) {
			const struct parameter *parameter = &loaded.model->parameters[p];
			char name[TENSOR_NAME_BYTES], golden[TENSOR_NAME_BYTES + 16];
			double wanted[2048];
			tensor_name_to_form(loaded.model, parameter->name, name);
			snprintf(golden, sizeof golden, "merged.%s", name);
			const struct safetensors_entry *entry = safetensors_find(&file, golden);
			assert_true(entry && entry->count == parameter->count && entry->count <= 2048);
			assert_ok(safetensors_to_double(entry, path, wanted));
			for (int64_t k = 0; k < parameter->count; k++)
				if (!(fabs(loaded.slab[parameter->offset + k] - wanted[k]) <= 1e-6))
					fail_msg("%s: element %lld of '%s' is %g instead of %g", folder, (long long)k, name,
						 (double)loaded.slab[parameter->offset + k], wanted[k]);
		}
		assert_ok(model_folder_task(folder, &task));
		assert_string_equal(task.architecture, class_head.architecture);
		assert_int_equal(task.label_count, 3);
		task_config_release(&task);
		safetensors_close(&file);
		drop(&loaded);
	}
}

/* Copies an adapter into the test's folder, with one text in its configuration replaced by another. */
static void copy_adapter(const char *name, const char *text, const char *by)
{
	char path[PATH_BYTES];
	struct buffer config = {0}, changed = {0};
	snprintf(path, sizeof path, ADAPTERS "%s/" ADAPTER_CONFIG_FILE, name);
	assert_ok(file_read(path, 1 << 20, &config));
	const char *whole = buffer_string(&config), *at = strstr(whole, text);
	assert_non_null(at);
	buffer_append(&changed, whole, (size_t)(at - whole));
	buffer_text(&changed, by);
	buffer_text(&changed, at + strlen(text));
	assert_ok(file_write(test_path(ADAPTER_CONFIG_FILE), changed.data, changed.size));
	snprintf(path, sizeof path, ADAPTERS "%s/" ADAPTER_WEIGHTS_FILE, name);
	assert_ok(file_copy(path, test_path(ADAPTER_WEIGHTS_FILE)));
	buffer_release(&config);
	buffer_release(&changed);
}

static void what_does_not_fit_is_named(void **state)
{
	static const struct {
		const char *text, *by, *message;
		enum status status;
	} cases[] = {
		{"\"LORA\"", "\"IA3\"", "\"peft_type\" is IA3", ERR_USAGE},
		{"\"use_dora\": false", "\"use_dora\": true", "\"use_dora\" is set", ERR_USAGE},
		{"\"alpha_pattern\": {}", "\"alpha_pattern\": {\"query\": 2}", "\"alpha_pattern\" is set", ERR_USAGE},
		{"\"init_lora_weights\": true", "\"init_lora_weights\": \"pissa\"", "\"init_lora_weights\" is pissa", ERR_USAGE},
		{"\"SEQ_CLS\"", "\"CAUSAL_LM\"", "\"task_type\" is CAUSAL_LM", ERR_USAGE},
		{"forms/roberta-class", "forms/none", "base model 'tests/golden/forms/none' is not there", ERR_USAGE},
		{"forms/roberta-class", "adapters/distilbert", "is an adapter itself", ERR_USAGE},
		{"forms/roberta-class", "forms/electra-class", "has no weight for 'roberta.encoder.layer.0", ERR_STATE},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		copy_adapter("roberta", cases[i].text, cases[i].by);
		struct loaded loaded = load(test_folder);
		if (loaded.status != cases[i].status || !strstr(error_last()->message, cases[i].message))
			fail_msg("%s: %d, %s", cases[i].by, (int)loaded.status, error_last()->message);
		drop(&loaded);
	}
}

/* Writes an adapter of a RoBERTa with one pair of matrices, and a note on its base. */
static void write_pair(int64_t rank, int64_t rows, int64_t columns, const char *note)
{
	static const float numbers[64];
	struct name_list notes = {0};
	struct safetensors_entry entries[] = {
		{.name = "base_model.model.roberta.encoder.layer.0.attention.self.query.lora_A.weight", .shape = {rank, columns}},
		{.name = "base_model.model.roberta.encoder.layer.0.attention.self.query.lora_B.weight", .shape = {rows, rank}},
	};
	for (int i = 0; i < 2; i++) {
		struct safetensors_entry *entry = &entries[i];
		entry->dtype = ST_F32;
		entry->rank = 2;
		entry->count = entry->shape[0] * entry->shape[1];
		entry->bytes = (uint64_t)entry->count * sizeof(float);
		entry->data = numbers;
	}
	if (note)
		assert_ok(name_list_add(&notes, note));
	copy_adapter("roberta", "\"LORA\"", "\"LORA\"");
	assert_ok(safetensors_write(test_path(ADAPTER_WEIGHTS_FILE), entries, 2, &notes, NULL, NULL));
	name_list_release(&notes);
}

static void shapes_and_bases_are_compared(void **state)
{
	struct weights_file base;
	char note[64];
	assert_ok(weights_file_open(&base, "tests/golden/forms/roberta-class"));
	snprintf(note, sizeof note, "base_weights=%016llx", (unsigned long long)adapter_base_hash(&base));
	weights_file_close(&base);

	write_pair(2, 8, 8, note);
	struct loaded loaded = load(test_folder);
	assert_ok(loaded.status);
	drop(&loaded);
	write_pair(2, 8, 8, "base_weights=0123456789abcdef");
	loaded = load(test_folder);
	assert_int_equal(loaded.status, ERR_STATE);
	assert_non_null(
		strstr(error_last()->message, "was trained on another base model than 'tests/golden/forms/roberta-class"));
	drop(&loaded);
	write_pair(2, 8, 12, NULL);
	loaded = load(test_folder);
	assert_int_equal(loaded.status, ERR_STATE);
	assert_non_null(strstr(error_last()->message, "(2, 12) and lora_B (8, 2), which do not make an addition"));
	drop(&loaded);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(peft_merges_the_same),
		cmocka_unit_test(what_does_not_fit_is_named),
		cmocka_unit_test(shapes_and_bases_are_compared),
	};
	return cmocka_run_group_tests(tests, test_folder_make, test_folder_drop);
}
