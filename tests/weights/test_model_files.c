/* Files of a model that change between two looks, in every way and in every kind of folder. */
#include <unistd.h>
#include "infer/small_model.h"
#include "infer/task_session.h"
#include "weights/model_files.h"

/* Looks at the model, runs `change`, and looks again. */
static void assert_changed(const char *model, void (*change)(void), const char *said)
{
	struct model_files files;
	assert_ok(model_files_look(&files, test_path(model)));
	assert_true(files.paths.count > 0);
	assert_ok(model_files_check(&files, test_path(model)));
	change();
	assert_error(ERR_STATE, said, model_files_check(&files, test_path(model)));
	model_files_release(&files);
}

static void write_vocab(void)
{
	struct buffer text = {0};
	assert_ok(file_read(test_path("model/vocab.txt"), 1 << 20, &text));
	buffer_text(&text, "another\n");
	FILE *file = fopen(test_path("model/vocab.txt"), "w");
	assert_int_equal(fwrite(text.data, 1, text.size, file), text.size);
	assert_int_equal(fclose(file), 0);
	buffer_release(&text);
}

static void replace_config(void)
{
	struct buffer text = {0};
	assert_ok(file_read(test_path("model/config.json"), 1 << 20, &text));
	assert_ok(file_write(test_path("model/config.json"), text.data, text.size));
	buffer_release(&text);
}

static void remove_settings(void)
{
	assert_int_equal(unlink(test_path("model/tokenizer_config.json")), 0);
}

static void write_special(void)
{
	put_file("model/special_tokens_map.json", "{}");
}

static void add_record(void)
{
	put_file("model/" TASK_RECORD_FILE, "{}");
}

static void replace_folder(void)
{
	assert_int_equal(rename(test_path("model"), test_path("old")), 0);
	small_model_make(test_path("model"), &model_heads_pretraining, NULL, NULL);
}

static void write_pooling(void)
{
	put_file("sentences/1_Pooling/config.json", "{\"pooling_mode_cls_token\": true}");
}

static void add_part(void)
{
	put_file("model/model-00002-of-00002.safetensors", "x");
}

static void add_notes(void)
{
	put_file("model/README.md", "x");
	put_file("model/modelling.txt", "x");
}

static void every_change_is_found(void **state)
{
	small_model_make(test_path("model"), &model_heads_pretraining, NULL, NULL);
	assert_changed("model", write_vocab, "vocab.txt' grew while the model was read");
	assert_changed("model/model.safetensors", replace_config, "config.json' was replaced by another file while");
	assert_changed("model", remove_settings, "tokenizer_config.json' was removed while");
	assert_changed("model", write_special, "special_tokens_map.json' was replaced by another file while");
	assert_changed("model", add_record, "bertc_task.json' appeared while the model was read");
	assert_changed("model", add_part, "model-00002-of-00002.safetensors' appeared");
	assert_changed("model", replace_folder, "bertc_task.json' was removed while the model was read");
	/* Files that are not part of the model may come and go. */
	struct model_files files;
	assert_ok(model_files_look(&files, test_path("model")));
	add_notes();
	assert_ok(model_files_check(&files, test_path("model")));
	model_files_release(&files);
	/* No model, no files. */
	assert_ok(model_files_look(&files, test_path("none")));
	assert_int_equal(files.paths.count, 0);
	model_files_release(&files);
}

static void modules_belong_to_the_model(void **state)
{
	small_model_make(test_path("sentences"), &model_heads_none, NULL, NULL);
	put_file("sentences/modules.json", "[]");
	assert_ok(folder_make(test_path("sentences/1_Pooling")));
	put_file("sentences/1_Pooling/config.json", "{\"pooling_mode_mean_tokens\": true}");
	assert_changed("sentences", write_pooling, "1_Pooling/config.json' was replaced by another file while");
}

/* A task's model is opened for the first set: the words of one model with the weights of another would still give answers. */
static void a_task_folder_is_read_whole(void **state)
{
	static const char *const labels[] = {"yes", "no"};
	struct task_config task = {0};
	struct task_session session;
	struct task_set set = {0};
	struct task_outputs outputs = {0};
	const char *path = test_path("texts");
	const struct model_heads heads = {.architecture = "BertForSequenceClassification",
					  .count = 1,
					  .pooler = true,
					  .head = {{.loss = LOSS_CLASSES,
						    .input = INPUT_FIRST_ROW,
						    .outputs = 2,
						    .pooled = true,
						    .coefficient = 1,
						    .name = "classifier"}}};
	put_file("texts", "sentence\nwai wak\n");
	assert_ok(task_config_make(&task, heads.architecture, "single_label_classification", labels, 2));
	small_model_write(test_path("model"), &heads, &task, NULL, NULL);
	const struct device_options device = {.device = DEVICE_CPU, .threads = 1};
	const struct task_session_settings settings = {.model = test_path("model"), .device = &device};
	assert_ok(task_session_open(&session, &settings));
	replace_config();
	assert_error(ERR_STATE, "config.json' was replaced by another file while",
		     task_session_run(&session, &path, 1, TASK_PREDICT, &set, &outputs, NULL));
	task_outputs_release(&outputs);
	task_set_release(&session.state, &set);
	task_session_close(&session);
	task_config_release(&task);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_change_is_found),
		cmocka_unit_test(modules_belong_to_the_model),
		cmocka_unit_test(a_task_folder_is_read_whole),
	};
	return cmocka_run_group_tests(tests, test_folder_make, test_folder_drop);
}
