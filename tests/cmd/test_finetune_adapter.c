/* Adapters of a model (--adapter lora): what is trained and written, the same bits after an interruption, answers from the folder
 * and from the merged model, several of them served side by side, and what is refused. */
#include "cmd/labeled_files.h"
#include "formats/safetensors.h"
#include "infer/text_model.h"
#include "weights/adapter.h"

static int setup(void **state)
{
	if (small_run_make(state, 3) != 0)
		return -1;
	return labeled_files_make("cpu");
}

#define LORA "--adapter lora --lora_rank 4 --precision fp32 "
#define NAME "bert.encoder.layer.1.attention.self.query"

static void only_small_matrices_and_the_head_are_written(void **state)
{
	struct safetensors file;
	assert_int_equal(finetune("classification", "lora", LORA "--save_checkpoints_steps 3 --keep_checkpoints 0"), 0);
	assert_ok(safetensors_open(&file, test_path("classification-lora/final/" ADAPTER_WEIGHTS_FILE)));
	assert_int_equal(file.count, 2 * 2 * 2 + 4); /* A and B of query and value in two layers; pooler and classifier */
	const struct safetensors_entry *a = safetensors_find(&file, ADAPTER_PREFIX NAME ".lora_A.weight");
	const struct safetensors_entry *b = safetensors_find(&file, ADAPTER_PREFIX NAME ".lora_B.weight");
	assert_true(a && a->shape[0] == 4 && a->shape[1] == 32 && b && b->shape[0] == 32 && b->shape[1] == 4);
	float values[128], most = 0;
	memcpy(values, b->data, sizeof values);
	for (int i = 0; i < 128; i++)
		most = fmaxf(most, fabsf(values[i]));
	assert_true(most > 1e-4F); /* it began at zero */
	safetensors_close(&file);
	assert_holds("classification-lora/final/" ADAPTER_CONFIG_FILE,
		     "\"modules_to_save\": [\n    \"pooler\",\n    \"classifier\"");
	assert_holds("classification-lora/final/" ADAPTER_CONFIG_FILE, "\"task_type\": \"SEQ_CLS\"");
	assert_holds("classification-lora/final/" ADAPTER_CONFIG_FILE, "/base/final\"");
	assert_program(0, "", "verify %s/classification-lora/final %s/classification-lora/checkpoint-6", test_folder,
		       test_folder);
	assert_program(0, "", "inspect %s/classification-lora/final", test_folder);
	assert_printed("adapter");
}

static void interrupted_runs_end_with_the_same_bits(void **state)
{
	static const char file[] = "final/" ADAPTER_WEIGHTS_FILE;
	char whole[PATH_BYTES], parts[PATH_BYTES];
	assert_int_equal(finetune("classification", "parts", LORA "--steps_this_run 2"), STOPPED);
	assert_int_equal(finetune("classification", "parts", LORA), 0);
	snprintf(whole, sizeof whole, "%s/classification-lora/%s", test_folder, file);
	snprintf(parts, sizeof parts, "%s/classification-parts/%s", test_folder, file);
	assert_same_file(whole, parts);
	assert_int_equal(finetune("classification", "ranks", LORA "--ranks 2 --steps_this_run 2"), STOPPED);
	assert_int_equal(finetune("classification", "ranks", LORA "--ranks 2"), 0);
	assert_true(curve_distance("classification", "lora", "ranks", "loss", 6) < 1e-5);
	assert_int_equal(finetune("classification", "parts", "--adapter lora --lora_rank 2"), ERR_STATE);
}

/* The run's own evaluation, the folder's, and that of the merged model give the same measures. */
static void merged_models_answer_the_same(void **state)
{
	char run[PATH_BYTES];
	struct buffer answers = {0};
	snprintf(run, sizeof run, "%s/classification-lora/metrics.jsonl", test_folder);
	double loss = metric_at(run, 6, "eval_loss"), accuracy = metric_at(run, 6, "eval_accuracy");
	assert_program(ERR_USAGE, "which is never written to",
		       "export --model %s/classification-lora --to onnx --out %s/base/final/x", test_folder, test_folder);
	assert_program(0, "", "export --model %s/classification-lora --to transformers --out %s/merged", test_folder,
		       test_folder);
	for (int i = 0; i < 2; i++) {
		struct json_document document;
		double found = 0, right = 0;
		assert_program(0, "", "evaluate --model %s/%s --test %s/classification.dev --precision fp32 --json", test_folder,
			       i == 0 ? "classification-lora" : "merged", test_folder);
		assert_ok(json_parse(&document, "measures", program_output.data, program_output.size));
		assert_ok(json_get_number(document.root, "measures", "loss", &found));
		assert_ok(json_get_number(document.root, "measures", "accuracy", &right));
		json_release(&document);
		assert_near(found, loss, 1e-5);
		assert_near(right, accuracy, 1e-9);
	}
	buffer_release(&answers);
}

static void other_tasks_have_adapters_too(void **state)
{
	static const char *const tasks[] = {"tagging", "squad", "multiple_choice"};
	for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++) {
		assert_int_equal(
			finetune(tasks[i], "lora", LORA "--lora_targets all-linear,query --use_rslora --num_train_steps 2"), 0);
		assert_said("--lora_targets all-linear,query: 'query' adds no layer to those named before it");
		assert_program(0, "", "evaluate --model %s/%s-lora --test %s/%s.dev", test_folder, tasks[i], test_folder,
			       tasks[i]);
	}
}

static void open_model(struct text_model *out, const char *name, struct pool *pool, const struct text_model *lender)
{
	static char folders[3][PATH_BYTES];
	static int count;
	char *folder = folders[count++];
	struct text_model_settings settings = {.device = {.device = DEVICE_CPU, .precision = PRECISION_FP32},
					       .batch_tokens = 256,
					       .lenders = &lender,
					       .lender_count = lender != NULL,
					       .tool = "the test"};
	snprintf(folder, PATH_BYTES, "%s/%s/final", test_folder, name);
	assert_ok(text_model_open(out, folder, pool, &settings));
}

/* Adapters of one base use its weights from the first one's memory; what each computes with is the same as when it is alone. */
static void adapters_share_their_base(void **state)
{
	struct pool *pool;
	struct text_model lender, alone, sharing;
	assert_ok(pool_create(&pool, 1));
	open_model(&lender, "tagging-lora", pool, NULL);
	open_model(&alone, "classification-lora", pool, NULL);
	open_model(&sharing, "classification-lora", pool, &lender);
	const struct model *model = sharing.session.model;
	int64_t shared = 0;
	for (int64_t i = 0; i < model->weight_count; i++) {
		shared += model->shared[i] != NULL;
		assert_true(!model->shared[i] || model->weights[i]->copy == lender.session.model->weights[i]->copy);
	}
	/* All linear layers of the first are adapted: tables, norms, and biases are left, of which heads and poolers are their
	 * own. */
	assert_true(model->shared[0] != NULL && model->weights[0]->use == WEIGHT_TABLE);
	assert_true(shared > model->weight_count / 2 && shared < model->weight_count);

	static const int32_t ids[] = {2, 20, 31, 12, 7, 3};
	const struct encoder_text text = {.ids = ids, .count = 6};
	struct encoder_answers answers[2] = {{0}};
	assert_ok(encoder_run(alone.encoder, &(struct encoder_wish){.answer = ENCODER_HEAD}, &text, 1, &answers[0]));
	assert_ok(encoder_run(sharing.encoder, &(struct encoder_wish){.answer = ENCODER_HEAD}, &text, 1, &answers[1]));
	assert_int_equal(answers[0].starts[1], answers[1].starts[1]);
	assert_memory_equal(answers[0].values, answers[1].values, (size_t)answers[0].starts[1] * sizeof(float));
	encoder_answers_release(&answers[0]);
	encoder_answers_release(&answers[1]);
	text_model_close(&sharing);
	text_model_close(&alone);
	text_model_close(&lender);
	pool_free(pool);
}

static void what_does_not_fit_is_refused(void **state)
{
	static const struct {
		const char *options, *message;
	} cases[] = {
		{"--adapter lora --lora_rank 0", "lora_rank"},
		{"--adapter lora --lora_targets query,nothing", "the model has no layer 'nothing'"},
		{"--adapter dora", "adapter"},
		{"--lora_rank 4", "--lora_rank has no effect without --adapter lora"},
		{"--adapter lora --freeze_layers 1", "--freeze_layers has no effect with --adapter lora"},
		{"--adapter lora --init_layers 0", "--init_layers makes another model"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(finetune("classification", "refused", cases[i].options), ERR_USAGE);
		assert_said(cases[i].message);
	}
	assert_program(
		ERR_USAGE, "is an adapter itself",
		"finetune --task classification --model %s/classification-lora --train %s/classification.train --out %s/twice "
		"--adapter lora",
		test_folder, test_folder, test_folder);
	/* Another model in the base's place. */
	assert_int_equal(rename(test_path("base"), test_path("gone")), 0);
	assert_program(ERR_USAGE, "base model", "predict --model %s/classification-lora %s/corpus.txt", test_folder, test_folder);
	assert_program(
		0, "",
		"pretrain -q --corpus %s --model %s --out %s/base --vocab_size 80 --train_batch_size 16 --max_seq_length 32 "
		"--num_train_steps 1 --seed 9 --precision fp32 --threads 1",
		corpus, config, test_folder);
	assert_program(ERR_STATE, "was trained on another base model", "predict --model %s/classification-lora %s/corpus.txt",
		       test_folder, test_folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_small_matrices_and_the_head_are_written),
		cmocka_unit_test(interrupted_runs_end_with_the_same_bits),
		cmocka_unit_test(merged_models_answer_the_same),
		cmocka_unit_test(other_tasks_have_adapters_too),
		cmocka_unit_test(adapters_share_their_base),
		cmocka_unit_test(what_does_not_fit_is_refused),
	};
	return cmocka_run_group_tests(tests, setup, program_teardown);
}
