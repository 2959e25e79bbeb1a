/* Triton's config.pbtxt, word for word (its format was checked with Triton's own model_config.proto), and the location of
 * the graph. */
#include "test.h"
#include "weights/triton_folder.h"

static struct backend names = {.dtype = DTYPE_F32, .master_dtype = DTYPE_F32};

static void the_text(void **state)
{
	static const char expected[] = "name: \"two \\\"words\\\" \\\\ \\001\"\n"
				       "platform: \"onnxruntime_onnx\"\n"
				       "max_batch_size: 64\n"
				       "input [\n"
				       "  {\n    name: \"input_ids\"\n    data_type: TYPE_INT64\n    dims: [ -1, -1 ]\n  },\n"
				       "  {\n    name: \"entity_positions\"\n    data_type: TYPE_INT64\n    dims: [ 2 ]\n  }\n"
				       "]\n"
				       "output [\n"
				       "  {\n    name: \"logits\"\n    data_type: TYPE_FP32\n    dims: [ 3 ]\n"
				       "    label_filename: \"labels.txt\"\n  }\n"
				       "]\n"
				       "dynamic_batching {\n  max_queue_delay_microseconds: 1000\n}\n";
	const struct onnx_model_facts facts = {
		.inputs = {{.name = "input_ids", .is_integer = true, .rank = 3, .shape = {-1, -1, -1}},
			   {.name = "entity_positions", .is_integer = true, .rank = 2, .shape = {-1, 2}}},
		.outputs = {{.name = "logits", .rank = 2, .shape = {-1, 3}}},
		.input_count = 2,
		.output_count = 1,
	};
	struct buffer text = {0};
	triton_config_put(&text, "two \"words\" \\ \x01", &facts, true);
	assert_string_equal(buffer_string(&text), expected);
	buffer_release(&text);
}

static void files_and_labels(void **state)
{
	static const char *const labels[] = {"no", "yes", "may\nbe"};
	const struct model_heads classes = {
		.pooler = true,
		.count = 1,
		.head = {{.input = INPUT_FIRST_ROW, .pooled = true, .outputs = 3, .loss = LOSS_CLASSES, .name = "classifier"}}};
	struct model_config config;
	struct task_config task;
	struct model *model;
	struct buffer text = {0};
	assert_ok(model_config_named(&config, "tiny"));
	config.vocab_size = 12;
	config.hidden_size = 8;
	config.intermediate_size = 24;
	config.max_position_embeddings = 10;
	assert_ok(model_create(&model, &names, &config, &classes));
	assert_ok(task_config_make(&task, "BertForSequenceClassification", NULL, labels, 3));
	float *slab = calloc((size_t)model->slab_count, sizeof *slab);
	struct onnx_model_content content = {.model = model, .slab = slab};

	assert_ok(folder_make(test_path("small")));
	assert_ok(triton_folder_save(test_path("small"), "small", &content, &task, (int64_t)1 << 30));
	assert_false(file_is_folder(test_path("small/1/model.onnx")));
	assert_true(file_size(test_path("small/1/model.onnx")) > 1000);
	assert_ok(file_read(test_path("small/labels.txt"), 1 << 16, &text));
	assert_string_equal(buffer_string(&text), "no\nyes\nmay be\n");
	assert_ok(file_read(test_path("small/config.pbtxt"), 1 << 16, &text));
	assert_non_null(strstr(buffer_string(&text), "label_filename"));

	/* Without class names; and a graph that does not fit into one file. */
	task_config_release(&task);
	assert_ok(task_config_make(&task, "BertForSequenceClassification", NULL, NULL, 3));
	assert_ok(folder_make(test_path("large")));
	assert_ok(triton_folder_save(test_path("large"), "large", &content, &task, 8000));
	assert_true(file_size(test_path("large/1/model.onnx/model.onnx_data")) > 1000);
	assert_true(file_size(test_path("large/1/model.onnx/model.onnx")) > 1000);
	assert_false(file_exists(test_path("large/labels.txt")));
	assert_ok(file_read(test_path("large/config.pbtxt"), 1 << 16, &text));
	assert_null(strstr(buffer_string(&text), "label_filename"));
	task_config_release(&task);
	buffer_release(&text);
	model_free(model);
	free(slab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(the_text), cmocka_unit_test(files_and_labels)};
	return cmocka_run_group_tests(tests, test_folder_make, test_folder_drop);
}
