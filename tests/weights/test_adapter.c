/* Adapters (weights/adapter.h): those that peft wrote (dev/adapter_golden.py) give the weights that peft merges, what bertc
 * cannot compute is refused by name, and an adapter that says which base it was trained on takes no other. */
#include "test.h"
#include <math.h>
#include "base/file.h"
#include "base/log.h"
#include "formats/safetensors.h"
#include "model/golden.h"
#include "model/low_rank.h"
#include "weights/adapter.h"
#include "weights/adapter_save.h"
#include "weights/model_folder.h"
#include "weights/weight_names.h"

#define ADAPTERS "tests/golden/adapters/"

/* The adapters of dev/adapter_golden.py; their rank is 2. */
static const struct {
	const char *name, *targets;
	bool rank_stabilized;
} golden[] = {
	{"roberta", "query,value,dense", false},
	{"modernbert", "Wqkv,Wo,Wi", true},
	{"distilbert", "q_lin,k_lin,lin2", false},
};
#define GOLDEN_COUNT (sizeof golden / sizeof *golden)

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
	for (size_t i = 0; i < GOLDEN_COUNT; i++) {
		char folder[128], path[192];
		struct safetensors file;
		struct task_config task;
		snprintf(folder, sizeof folder, ADAPTERS "%s", golden[i].name);
		snprintf(path, sizeof path, "%s/golden.safetensors", folder);
		struct loaded loaded = load(folder);
		assert_ok(loaded.status);
		assert_ok(safetensors_open(&file, path));
		for (int64_t p = 0; p < loaded.model->parameter_count; p++) {
			const struct parameter *parameter = &loaded.model->parameters[p];
			char name[TENSOR_NAME_BYTES], merged[TENSOR_NAME_BYTES + 16];
			double wanted[2048];
			tensor_name_to_form(loaded.model, parameter->name, name);
			snprintf(merged, sizeof merged, "merged.%s", name);
			const struct safetensors_entry *entry = safetensors_find(&file, merged);
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

/* The script's batch. Arrays have room for whole slices of rows. */
static struct batch golden_batch(void)
{
	static int32_t ids[128] = {4, 7, 19, 5, 11, 6, 4, 13, 5, 8, 8, 6}, types[128], positions[128], starts[128] = {0, 6, 12};
	static int32_t classes[128] = {2, 0}, each[128] = {0, 1, 2};
	static uint32_t samples[128], token_samples[128];
	static float weights[128] = {1, 1};
	for (int i = 0; i < 12; i++)
		positions[i] = i % 6;
	struct batch batch = {.token_count = 12,
			      .sequence_count = 2,
			      .longest = 6,
			      .ids = ids,
			      .types = types,
			      .positions = positions,
			      .token_samples = token_samples,
			      .starts = starts,
			      .samples = samples,
			      .example_count = 2,
			      .example_starts = each,
			      .id_order = sorted_by_id(ids, 12)};
	batch.labels[0] = (struct batch_labels){.width = 1, .weights = weights, .classes = classes, .count = 2};
	return batch;
}

/* The gradient of every matrix and of the head equals peft's, whether a step is one micro-batch or several. */
static void check_gradients(size_t number, const char *device, enum dtype dtype, double limit, bool twice)
{
	char folder[128], path[192];
	struct model_config config;
	struct safetensors file;
	struct run run;
	struct model_heads heads = class_head;
	snprintf(folder, sizeof folder, ADAPTERS "%s", golden[number].name);
	snprintf(path, sizeof path, "%s/golden.safetensors", folder);
	assert_ok(model_folder_config(folder, &config));
	config.hidden_dropout_prob = config.attention_probs_dropout_prob = config.classifier_dropout = 0;
	heads.low_rank = (struct low_rank){.rank = 2, .alpha = 3, .rank_stabilized = golden[number].rank_stabilized};
	assert_ok(adapter_targets(golden[number].targets, &config, &heads.low_rank.targets));
	struct batch batch = golden_batch();
	run_open_heads(&run, device, dtype, 2, &config, &heads, &batch, true);
	float *slab = calloc((size_t)run.model->slab_count, sizeof *slab);
	assert_non_null(slab);
	assert_ok(model_folder_load(folder, run.model, MISSING_NOTHING, slab, NULL));
	assert_ok(model_set_weights(run.model, &run.replica, slab));
	run_begin(&run, &batch);
	run_batch(&run, &batch, false, true, true);
	if (twice)
		run_batch(&run, &batch, false, true, false);
	double loss, *gradients = run_gradients(&run), found = run_sums(&run).value[sum_of_loss(0)] / 2 / (twice ? 2 : 1);
	assert_ok(safetensors_open(&file, path));
	assert_ok(safetensors_to_double(safetensors_find(&file, "loss"), path, &loss));
	if (!(fabs(found - loss) <= limit * loss))
		fail_msg("%s: loss %.12g instead of %.12g", folder, found, loss);
	int64_t first = run.model->adapted[0].a, compared = 0;
	for (int64_t i = first; i < run.model->parameter_count; i++) {
		const struct parameter *p = &run.model->parameters[i];
		char name[TENSOR_NAME_BYTES], wanted_name[TENSOR_NAME_BYTES + 16];
		double wanted[2048], square = 0, error = 0;
		tensor_name_to_form(run.model, p->name, name);
		snprintf(wanted_name, sizeof wanted_name, "gradient.%s", name);
		const struct safetensors_entry *entry = safetensors_find(&file, wanted_name);
		if (!entry) /* peft did not train ModernBERT's layer before the classifier */
			continue;
		assert_true(entry->count == p->count && p->count <= 2048);
		assert_ok(safetensors_to_double(entry, path, wanted));
		for (int64_t k = 0; k < p->count; k++) {
			double difference = gradients[p->offset - run.model->frozen_elements + k] / (twice ? 2 : 1) - wanted[k];
			square += wanted[k] * wanted[k];
			error += difference * difference;
		}
		if (!(sqrt(error) <= limit * (sqrt(square) + 1e-2)))
			fail_msg("%s: the gradient of '%s' is %g off, of %g", path, name, sqrt(error), sqrt(square));
		compared++;
	}
	assert_true(compared >= 2 * run.model->adapted_count + 2);
	free(batch.id_order);
	free(gradients);
	free(slab);
	safetensors_close(&file);
	run_close(&run);
}

static void gradients_equal_those_of_peft(void **state)
{
	for (size_t i = 0; i < GOLDEN_COUNT; i++) {
		/* transformers turns queries and keys in single precision, even in a model in double precision */
		check_gradients(i, "ref", DTYPE_F64, i == 1 ? 1e-6 : 1e-9, i == 0);
		check_gradients(i, "cpu", DTYPE_F32, 1e-5, i == 2);
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
	static const char base[] = "\"base_model_name_or_path\"";
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
		{base, "\"base\"", "\"base_model_name_or_path\" is missing", ERR_DATA},
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

static void take_warning(void *context, const char *message)
{
	snprintf(context, 512, "%s", message);
}

/* Writes an adapter of a RoBERTa with one pair of matrices, or with none (rank 0), and a note on its base. */
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
	assert_ok(safetensors_write(test_path(ADAPTER_WEIGHTS_FILE), entries, rank > 0 ? 2 : 0, &notes, NULL, NULL));
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
	write_pair(0, 8, 8, "base_weights=0123456789abcdef");
	loaded = load(test_folder);
	assert_int_equal(loaded.status, ERR_DATA);
	assert_non_null(strstr(error_last()->message, "the adapter has no tensors"));
	drop(&loaded);
}

/* Weights beside an adapter are used without it, where transformers would use the adapter. */
static void an_adapter_beside_weights_is_named(void **state)
{
	struct adapter adapter = {0};
	char said[512] = "";
	write_pair(2, 8, 8, NULL);
	log_warnings_to(take_warning, said);
	assert_ok(adapter_open(&adapter, test_path(ADAPTER_WEIGHTS_FILE)));
	assert_string_equal(said, "");
	adapter_close(&adapter);
	assert_ok(adapter_open(&adapter, test_path("model.safetensors")));
	log_warnings_to(NULL, NULL);
	assert_null(adapter.file.tensors);
	assert_non_null(strstr(said, "model.safetensors' is used without the adapter beside it"));
}

/* A classifier of no values that claims any number of classes. */
static void classes_need_values(void **state)
{
	static const float numbers[24];
	static const int64_t shapes[][2] = {{3, 8}, {0, 8}, {(int64_t)1 << 30, 0}, {5000000000, 0}};
	copy_adapter("roberta", "\"LORA\"", "\"LORA\"");
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
		struct task_config task = {.label_count = 0};
		struct safetensors_entry entry = {.name = "base_model.model.classifier.out_proj.weight",
						  .dtype = ST_F32,
						  .rank = 2,
						  .shape = {shapes[i][0], shapes[i][1]},
						  .data = numbers,
						  .bytes = i == 0 ? sizeof numbers : 0};
		assert_ok(safetensors_write(test_path(ADAPTER_WEIGHTS_FILE), &entry, 1, NULL, NULL, NULL));
		if (i == 0)
			assert_ok(model_folder_task(test_folder, &task));
		else
			assert_error(ERR_DATA, "has no values", model_folder_task(test_folder, &task));
		assert_int_equal(task.label_count, i == 0 ? 3 : 0);
		task_config_release(&task);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(peft_merges_the_same),       cmocka_unit_test(gradients_equal_those_of_peft),
		cmocka_unit_test(what_does_not_fit_is_named), cmocka_unit_test(shapes_and_bases_are_compared),
		cmocka_unit_test(classes_need_values),        cmocka_unit_test(an_adapter_beside_weights_is_named),
	};
	return cmocka_run_group_tests(tests, test_folder_make, test_folder_drop);
}
