/* config.json: everything a head needs is written as transformers reads it, and read as transformers writes it. */
#include "base/log.h"
#include "test.h"
#include <math.h>

#include "weights/config_file.h"
#include "weights/model_folder.h"

static enum status parse(const char *text, struct task_config *out)
{
	struct json_document document;
	assert_ok(json_parse(&document, "x.json", text, strlen(text)));
	enum status status = task_config_from_json(out, document.root, "x.json");
	json_release(&document);
	return status;
}

static void put(struct buffer *out, const struct model_config *config, const struct task_config *task)
{
	struct json_writer writer = {.out = out};
	buffer_clear(out);
	config_file_put(&writer, config, task);
	assert_ok(buffer_status(out));
}

static void sizes_come_back(void **state)
{
	struct model_config config, again;
	struct json_document document;
	struct buffer text = {0};
	assert_ok(model_config_named(&config, "mini"));
	config.vocab_size = 1234;
	config.hidden_act = ACTIVATION_GELU_TANH;
	config.hidden_dropout_prob = 0.15;
	config.layer_norm_eps = 1e-7;
	config.pad_token_id = 3;
	put(&text, &config, NULL);
	memset(&again, 0xff, sizeof again);
	assert_ok(json_parse(&document, "x.json", buffer_string(&text), text.size));
	assert_ok(model_config_from_json(&again, document.root, "x.json"));
	assert_int_equal(again.vocab_size, 1234);
	assert_int_equal(again.hidden_act, ACTIVATION_GELU_TANH);
	assert_int_equal(again.hidden_size, 256);
	assert_int_equal(again.num_hidden_layers, 4);
	assert_int_equal(again.pad_token_id, 3);
	assert_true(again.hidden_dropout_prob == 0.15 && again.layer_norm_eps == 1e-7);
	assert_true(again.initializer_range == config.initializer_range);
	assert_true(isnan(again.classifier_dropout)); /* not said: that of the hidden layers */
	assert_non_null(strstr(buffer_string(&text), "\"architectures\":[\"BertForPreTraining\"]"));
	assert_null(strstr(buffer_string(&text), "id2label"));
	json_release(&document);
	buffer_release(&text);
}

/* As transformers 5.x saves a BertForTokenClassification with custom labels, and a regression. */
static void tasks_are_read(void **state)
{
	struct task_config task;
	assert_ok(parse(
		"{\"architectures\": [\"BertForTokenClassification\"], \"classifier_dropout\": 0.25, \"id2label\": "
		"{\"0\": \"O\", \"1\": \"B-PER\", \"10\": \"x\", \"2\": \"I-PER\", \"3\": \"3\", \"4\": \"4\", \"5\": \"5\", "
		"\"6\": \"6\", \"7\": \"7\", \"8\": 8, \"9\": \"\\u00e9\"}, \"label2id\": {\"LABEL_0\": 0}}",
		&task));
	assert_string_equal(task.architecture, "BertForTokenClassification");
	assert_null(task.problem_type);
	assert_int_equal(task.label_count, 11);
	assert_string_equal(task.labels[1], "B-PER");
	assert_string_equal(task.labels[2], "I-PER");
	assert_string_equal(task.labels[8], "8");
	assert_string_equal(task.labels[10], "x");
	assert_int_equal(task_config_find_label(&task, "I-PER"), 2);
	assert_int_equal(task_config_find_label(&task, "i-per"), -1);
	assert_true(task.classifier_dropout == 0.25);
	task_config_release(&task);

	assert_ok(parse("{\"architectures\": [\"BertForSequenceClassification\"], \"classifier_dropout\": null, \"id2label\": "
			"{\"0\": \"LABEL_0\"}, \"label2id\": {\"LABEL_0\": 0}, \"problem_type\": \"regression\"}",
			&task));
	assert_string_equal(task.problem_type, "regression");
	assert_int_equal(task.label_count, 1);
	assert_true(task.classifier_dropout < 0);
	task_config_release(&task);

	assert_ok(parse("{\"label2id\": {\"b\": 1, \"a\": 0}, \"problem_type\": null}", &task));
	assert_string_equal(task.labels[0], "a");
	assert_string_equal(task.labels[1], "b");
	task_config_release(&task);
}

static void what_is_absent_is_null(void **state)
{
	struct task_config task;
	assert_ok(parse("{}", &task));
	assert_null(task.architecture);
	assert_null(task.problem_type);
	assert_null(task.labels);
	assert_int_equal(task.label_count, 2); /* transformers' default */
	assert_true(task.classifier_dropout < 0);
	assert_ok(parse("{\"architectures\": null, \"num_labels\": 5}", &task));
	assert_null(task.labels);
	assert_int_equal(task.label_count, 5);
	assert_ok(parse("{\"num_labels\": 0}", &task)); /* a head without outputs ended the program */
	assert_int_equal(task.label_count, 2);
	assert_ok(parse("{\"architectures\": []}", &task));
	assert_null(task.architecture);
}

static void odd_tasks_are_refused(void **state)
{
	static const char *const bad[][2] = {
		{"{\"architectures\": \"Bert\"}", "architectures"},
		{"{\"architectures\": [3]}", "architectures"},
		{"{\"problem_type\": \"ranking\"}", "problem_type"},
		{"{\"id2label\": [\"a\"]}", "id2label"},
		{"{\"id2label\": {}}", "id2label"},
		{"{\"id2label\": {\"0\": \"a\", \"1\": \"b\", \"2\": \"a\"}}", "two classes have the name \"a\""},
		{"{\"id2label\": {\"0\": \"a\", \"2\": \"b\"}}", "numbered 0 to 1"},
		{"{\"id2label\": {\"0\": \"a\", \"01\": \"b\"}}", "numbered 0 to 1"},
		{"{\"id2label\": {\"0\": \"a\", \"99999999999999999999\": \"b\"}}", "numbered 0 to 1"},
		{"{\"id2label\": {\"0\": {}}}", "has no name"},
		{"{\"id2label\": {\"0\": \"a\\u0000b\"}}", "NUL"},
		{"{\"label2id\": {\"a\": 0, \"b\": 0}}", "numbered 0 to 1"},
		{"{\"label2id\": {\"a\": \"0\"}}", "has no number"},
		{"{\"label2id\": {\"a\": -1}}", "numbered 0 to 0"},
		{"{\"classifier_dropout\": 1}", "classifier_dropout"},
		{"{\"num_labels\": -1}", "num_labels"},
		{"[1]", "object"},
	};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct task_config task;
		if (parse(bad[i][0], &task) != ERR_DATA || !strstr(error_last()->message, bad[i][1]) ||
		    !strstr(error_last()->message, "x.json"))
			fail_msg("%s: \"%s\"", bad[i][0], error_last()->message);
	}
}

static void tasks_come_back(void **state)
{
	static const char *const labels[] = {"contradiction", "entailment", "\"neutral\"", "none"};
	struct model_config config;
	struct task_config task, again;
	struct buffer text = {0};
	assert_ok(model_config_named(&config, "tiny"));
	config.vocab_size = 10;
	assert_ok(task_config_make(&task, "BertForSequenceClassification", "single_label_classification", labels, 4));
	task.classifier_dropout = 0.5;
	put(&text, &config, &task);
	assert_non_null(strstr(buffer_string(&text),
			       "\"id2label\":{\"0\":\"contradiction\",\"1\":\"entailment\",\"2\":\"\\\"neutral\\\"\",\"3\":"
			       "\"none\"}"));
	assert_non_null(strstr(buffer_string(&text),
			       "\"label2id\":{\"contradiction\":0,\"entailment\":1,\"\\\"neutral\\\"\":2,\"none\":3}"));
	assert_ok(parse(buffer_string(&text), &again));
	assert_string_equal(again.architecture, "BertForSequenceClassification");
	assert_string_equal(again.problem_type, "single_label_classification");
	assert_int_equal(again.label_count, 4);
	for (int i = 0; i < 4; i++)
		assert_string_equal(again.labels[i], labels[i]);
	assert_true(again.classifier_dropout == 0.5);
	struct json_document document;
	struct model_config trained;
	assert_ok(json_parse(&document, "x.json", buffer_string(&text), text.size));
	assert_ok(model_config_from_json(&trained, document.root, "x.json"));
	assert_true(trained.classifier_dropout == 0.5);
	json_release(&document);
	task_config_release(&task);
	task_config_release(&again);

	/* Classes without names, as in a regression. */
	assert_ok(task_config_make(&task, "BertForSequenceClassification", "regression", NULL, 1));
	put(&text, &config, &task);
	assert_non_null(strstr(buffer_string(&text), "\"id2label\":{\"0\":\"LABEL_0\"}"));
	assert_non_null(strstr(buffer_string(&text), "\"label2id\":{\"LABEL_0\":0}"));
	assert_non_null(strstr(buffer_string(&text), "\"problem_type\":\"regression\""));
	task_config_release(&task);

	/* Many outputs that are not classes have no names. */
	assert_ok(task_config_make(&task, "BertForTextRewriting", NULL, NULL, 258));
	put(&text, &config, &task);
	assert_non_null(strstr(buffer_string(&text), "\"num_labels\":258"));
	assert_null(strstr(buffer_string(&text), "LABEL_"));
	assert_ok(parse(buffer_string(&text), &again));
	assert_int_equal(again.label_count, 258);
	task_config_release(&task);
	task_config_release(&again);
	buffer_release(&text);
}

static void heads_are_matched_by_their_classes(void **state)
{
	static const char *const theirs[] = {"a", "b", "c"}, *const turned[] = {"c", "a", "b"};
	static const char *const other[] = {"a", "b", "d"}, *const twice[] = {"a", "b", "a"};
	struct task_config task;
	int32_t rows[3];
	assert_ok(task_config_make(&task, NULL, NULL, theirs, 3));
	assert_true(task_config_rows(&task, theirs, 3, rows));
	assert_memory_equal(rows, ((int32_t[]){0, 1, 2}), sizeof rows);
	assert_true(task_config_rows(&task, turned, 3, rows));
	assert_memory_equal(rows, ((int32_t[]){2, 0, 1}), sizeof rows);
	assert_false(task_config_rows(&task, other, 3, rows));
	assert_false(task_config_rows(&task, twice, 3, rows));
	assert_false(task_config_rows(&task, theirs, 2, rows));
	task_config_release(&task);
	assert_ok(task_config_make(&task, NULL, NULL, NULL, 3));
	assert_false(task_config_rows(&task, theirs, 3, rows));
	task_config_release(&task);
}

/* A folder states its task. */
static void folders_say_their_task(void **state)
{
	struct task_config task;
	static const char text[] = "{\"model_type\": \"bert\", \"architectures\": [\"BertForQuestionAnswering\"]}";
	assert_ok(folder_make(test_path("qa")));
	assert_ok(file_write(test_path("qa/config.json"), text, strlen(text)));
	assert_ok(model_folder_task(test_path("qa"), &task));
	assert_string_equal(task.architecture, "BertForQuestionAnswering");
	task_config_release(&task);
	assert_error(ERR_USAGE, "no such file or folder", model_folder_task(test_path("nothing"), &task));
}

/* Where sentence-transformers says what becomes of a cross-encoder's output, by version: the newest file decides. */
static void activations_are_read(void **state)
{
#define ONE "{\"model_type\": \"bert\", \"num_labels\": 1"
#define NOTHING "torch.nn.modules.linear.Identity"
	static const struct {
		const char *config, *beside;
		bool outputs;
	} files[] = {
		{ONE "}", NULL, false},
		{ONE ", \"sbert_ce_default_activation_function\": \"" NOTHING "\"}", NULL, true},
		{ONE ", \"sentence_transformers\": {\"activation_fn\": \"" NOTHING "\"}}", NULL, true},
		{ONE ", \"sentence_transformers\": {\"activation_fn\": \"torch.nn.modules.activation.Sigmoid\"}}", NULL, false},
		{ONE ", \"sentence_transformers\": {\"activation_fn\": null}}", NULL, false},
		{ONE "}", "{\"activation_fn\": \"" NOTHING "\"}", true},
		{ONE ", \"sentence_transformers\": {\"activation_fn\": \"" NOTHING "\"}}",
		 "{\"activation_fn\": \"torch.nn.modules.activation.Sigmoid\"}", false},
		{ONE ", \"sentence_transformers\": {\"activation_fn\": \"mine.Identity\"}}", NULL, false},
		{"{\"model_type\": \"bert\", \"sentence_transformers\": {\"activation_fn\": \"torch.nn.Tanh\"}}", NULL, false},
	};
	struct task_config task;
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		char name[24], path[64];
		snprintf(name, sizeof name, "scores%zu", i);
		assert_ok(folder_make(test_path(name)));
		snprintf(path, sizeof path, "%s/config.json", name);
		put_file(path, files[i].config);
		snprintf(path, sizeof path, "%s/config_sentence_transformers.json", name);
		if (files[i].beside)
			put_file(path, files[i].beside);
		assert_ok(model_folder_task(test_path(name), &task));
		assert_int_equal(task.scores_are_outputs, files[i].outputs);
		task_config_release(&task);
	}
	put_file("scores0/config.json", ONE ", \"sentence_transformers\": {\"activation_fn\": \"torch.nn.Tanh\"}}");
	assert_error(ERR_DATA, "\"torch.nn.Tanh\"; bertc has", model_folder_task(test_path("scores0"), &task));
	/* It is written again. */
	struct model_config sizes;
	struct json_document document;
	struct buffer text = {0};
	struct json_writer writer = {.out = &text};
	assert_ok(model_config_named(&sizes, "tiny"));
	assert_ok(task_config_make(&task, "BertForSequenceClassification", NULL, NULL, 1));
	task.scores_are_outputs = true;
	config_file_put(&writer, &sizes, &task);
	task_config_release(&task);
	assert_ok(json_parse(&document, "config.json", buffer_string(&text), text.size));
	assert_ok(task_config_from_json(&task, document.root, "config.json"));
	assert_true(task.scores_are_outputs);
	task_config_release(&task);
	json_release(&document);
	buffer_release(&text);
}

/* Members that transformers and Google write need no notice; others are named, once however often the file is read. */
static void unknown_members_are_named(void **state)
{
	static const char *const usual[] = {
		"{\"model_type\": \"bert\", \"architectures\": [\"BertForMaskedLM\"], \"_name_or_path\": \"x\", \"hidden_act\": "
		"\"gelu\", \"torch_dtype\": \"float32\", \"transformers_version\": \"4.8.2\", \"use_cache\": true, "
		"\"gradient_checkpointing\": false, \"directionality\": \"bidi\", \"pooler_type\": \"first_token_transform\"}",
		"{\"model_type\": \"distilbert\", \"dim\": 768, \"qa_dropout\": 0.1, \"seq_classif_dropout\": 0.2, "
		"\"sinusoidal_pos_embds\": false, \"tie_weights_\": true, \"output_past\": true, \"n_layers\": 6}",
		"{\"model_type\": \"electra\", \"summary_activation\": \"gelu\", \"summary_type\": \"first\", "
		"\"summary_use_proj\": true, \"summary_last_dropout\": 0.1, \"is_decoder\": false, \"dtype\": \"float32\"}",
		"{\"model_type\": \"modernbert\", \"deterministic_flash_attn\": false, \"sparse_pred_ignore_index\": -100, "
		"\"local_attention\": 128, \"mlp_bias\": false, \"norm_eps\": 1e-05, \"reference_compile\": null}",
	};
	struct model_config config;
	struct buffer said = {0};
	assert_ok(folder_make(test_path("usual")));
	assert_ok(folder_make(test_path("odd")));
	assert_ok(folder_make(test_path("last")));
	log_to_file(test_path("said"));
	for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
		put_file("usual/config.json", usual[i]);
		assert_ok(model_folder_config(test_path("usual"), &config));
	}
	put_file("odd/config.json",
		 "{\"model_type\": \"distilbert\", \"num_hidden_layers\": 3, \"alibi\": [1], \"\": 1, \" \": 2, \"none\": null}");
	assert_ok(model_folder_config(test_path("odd"), &config));
	assert_ok(model_folder_config(test_path("odd"), &config));
	log_to_file(NULL);
	assert_ok(file_read(test_path("said"), 1 << 16, &said));
	const char *named =
		strstr(buffer_string(&said), "bertc does not know \"num_hidden_layers\", \"alibi\", \"\", \" \", and ignores it");
	assert_non_null(named);
	assert_null(strstr(named + 1, "bertc does not know"));
	assert_ptr_equal(strstr(buffer_string(&said), "bertc does not know"), named);
	buffer_release(&said);
	put_file("last/config.json", "{\"model_type\": \"electra\", \"summary_type\": \"last\"}");
	assert_error(ERR_USAGE, "\"summary_type\" is \"last\"; bertc has \"first\"",
		     model_folder_config(test_path("last"), &config));
}

static void classes_without_names_get_some(void **state)
{
	static const char *const given[] = {"no", "yes"};
	struct task_config task;
	assert_true(task_config_make(&task, "BertForSequenceClassification", NULL, NULL, 3) == OK);
	assert_null(task.labels);
	assert_true(task_config_name_labels(&task) == OK);
	assert_string_equal(task.labels[0], "LABEL_0");
	assert_string_equal(task.labels[2], "LABEL_2");
	task_config_release(&task);
	assert_true(task_config_make(&task, "BertForSequenceClassification", NULL, given, 2) == OK);
	assert_true(task_config_name_labels(&task) == OK);
	assert_string_equal(task.labels[1], "yes");
	task_config_release(&task);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unknown_members_are_named), cmocka_unit_test(classes_without_names_get_some),
		cmocka_unit_test(sizes_come_back),           cmocka_unit_test(tasks_are_read),
		cmocka_unit_test(what_is_absent_is_null),    cmocka_unit_test(odd_tasks_are_refused),
		cmocka_unit_test(tasks_come_back),           cmocka_unit_test(folders_say_their_task),
		cmocka_unit_test(activations_are_read),      cmocka_unit_test(heads_are_matched_by_their_classes),
	};
	return cmocka_run_group_tests(tests, test_folder_make, test_folder_drop);
}
