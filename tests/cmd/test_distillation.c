/* Distillation as a user runs it: a student of every task shape beside its teacher, ranks, micro-batches and
 * interruptions, labels in another order, smaller models with some of the layers, and teachers that do not fit. */
#include "cmd/distilled_run.h"
#include "formats/safetensors.h"

static int setup(void **state)
{
	return small_run_make(state, 3) == 0 ? distilled_run_make("cpu") : -1;
}

#define CPU "--device cpu --precision fp32 "

static void ranks_and_micro_batches_learn_the_same(void **state)
{
	for (int i = 0; i < DISTILLED_TASKS; i++) {
		const char *task = distilled_tasks[i];
		assert_int_equal(distil(task, "one", CPU), 0);
		assert_int_equal(distil(task, "two", CPU "--ranks 2"), 0);
		assert_int_equal(distil(task, "cut", CPU "--gradient_accumulation_steps 4"), 0);
		for (int m = 0; m < DISTILLED_MEASURES; m++) {
			double two = curve_distance(task, "one", "two", distilled_measures[m], 6),
			       cut = curve_distance(task, "one", "cut", distilled_measures[m], 6);
			if (!(two < 2e-5 && cut < 2e-5))
				fail_msg("%s, %s: %.2g with two ranks, %.2g with four micro-batches", task, distilled_measures[m],
					 two, cut);
		}
	}
}

/* In the middle of the run, with dropout. The projection is part of the checkpoints, but not of the finished model. */
static void an_interruption_changes_nothing(void **state)
{
	static const char *const files[] = {"final/model.safetensors", "checkpoint-6/model.safetensors",
					    "checkpoint-6/optimizer.safetensors", "eval_results.json"};
	const char *task = "tagging";
	char a[PATH_BYTES], b[PATH_BYTES];
	struct safetensors weights;
	assert_int_equal(distil(task, "halves", CPU "--stop_at_step 2"), STOPPED);
	assert_int_equal(distil(task, "halves", CPU), 0);
	for (size_t f = 0; f < sizeof files / sizeof files[0]; f++) {
		snprintf(a, sizeof a, "%s/%s-one/%s", test_folder, task, files[f]);
		snprintf(b, sizeof b, "%s/%s-halves/%s", test_folder, task, files[f]);
		assert_same_file(a, b);
	}
	for (int m = 0; m < DISTILLED_MEASURES; m++)
		assert_true(curve_distance(task, "one", "halves", distilled_measures[m], 6) == 0);
	assert_ok(safetensors_open(&weights, test_path("tagging-one/final/model.safetensors")));
	assert_null(safetensors_find(&weights, "distillation.projection.weight"));
	safetensors_close(&weights);
	assert_ok(safetensors_open(&weights, test_path("tagging-one/checkpoint-6/model.safetensors")));
	assert_non_null(safetensors_find(&weights, "distillation.projection.weight"));
	safetensors_close(&weights);
	assert_int_equal(program("verify -q %s/tagging-one", test_folder), 0);
}

/* Any other weights: here, those of the same task from another run. */
static void another_teacher_is_noticed(void **state)
{
	assert_int_equal(distil("squad", "resumed", CPU "--stop_at_step 2"), STOPPED);
	assert_program(
		ERR_STATE, "the teacher has changed since",
		"finetune -q --task squad --model %s/base --train %s/squad.train --dev %s/squad.dev --out %s/squad-resumed "
		"--teacher %s/squad-one/final",
		test_folder, test_folder, test_folder, test_folder, test_folder);
	assert_said("--fresh");
}

/* The same weights with another number of heads give other answers. */
static void another_configuration_is_noticed(void **state)
{
	char command[1024];
	struct buffer text = {0};
	snprintf(command, sizeof command, "cp -r %s/tagging-teacher/final %s/copied && rm %s/copied/MANIFEST.json", test_folder,
		 test_folder, test_folder);
	assert_int_equal(system(command), 0);
#define COPIED(more)                                                                                                             \
	"finetune -q --task tagging --model %s/base --train %s/tagging.train --dev %s/tagging.dev --out %s/tagging-copied "      \
	"--teacher %s/copied --max_seq_length 24 --train_batch_size 16 --num_train_steps 4 --threads 1 " CPU more,               \
		test_folder, test_folder, test_folder, test_folder, test_folder
	assert_program(STOPPED, "", COPIED("--stop_at_step 2"));
	assert_ok(file_read(test_path("copied/config.json"), 1 << 16, &text));
	char *heads = strstr(buffer_string(&text), "\"num_attention_heads\": 3");
	assert_non_null(heads);
	heads[strlen("\"num_attention_heads\": ")] = '2';
	assert_ok(file_write(test_path("copied/config.json"), text.data, text.size));
	buffer_release(&text);
	assert_program(ERR_STATE, "the teacher has changed since", COPIED(""));
}

/* A student that trains an adapter has a whole teacher. */
static void adapters_learn_from_teachers(void **state)
{
	assert_int_equal(distil("classification", "adapter", CPU "--adapter lora --lora_rank 4"), 0);
	assert_true(metric_at(test_path("classification-adapter/metrics.jsonl"), 6, "soft_loss") > 0);
}

static void replace_teacher(void)
{
	struct buffer text = {0};
	assert_ok(file_read(test_path("tagging-teacher/final/config.json"), 1 << 16, &text));
	assert_ok(file_write(test_path("tagging-teacher/final/config.json"), text.data, text.size));
	buffer_release(&text);
}

/* The configuration is read long before the weights: another teacher's configuration would give these weights another
 * meaning. */
static void files_of_a_teacher_are_of_one_moment(void **state)
{
	assert_int_equal(
		program_changed_at("teacher: '", replace_teacher,
				   "finetune --task tagging --model %s/base --train %s/tagging.train --out %s/moment "
				   "--teacher %s/tagging-teacher --max_seq_length 24 --num_train_steps 1 --threads 1 " CPU,
				   test_folder, test_folder, test_folder, test_folder),
		ERR_STATE);
	assert_said("tagging-teacher/final/config.json' was replaced by another file while the model was read");
	assert_false(file_exists(test_path("moment/final")));
}

/* A teacher with good answers, and a student that learns from these alone, with the classes in another order. */
static void classes_are_matched_by_name(void **state)
{
	struct json_document document;
	double accuracy = 0;
	assert_int_equal(
		program("finetune -q --task classification --model %s/large --train %s/classification.train --out %s/knows "
			"--max_seq_length 24 --train_batch_size 16 --learning_rate 3e-3 --num_train_epochs 20 "
			"--hidden_dropout_prob 0 --threads 1 " CPU,
			test_folder, test_folder, test_folder),
		0);
	assert_int_equal(
		program("finetune -q --task classification --model %s/base --train %s/classification.train --dev "
			"%s/classification.dev --out %s/learns --teacher %s/knows --labels sees,paints,likes,finds "
			"--distill_alpha 1 --max_seq_length 24 --train_batch_size 16 --learning_rate 5e-3 --num_train_epochs 40 "
			"--hidden_dropout_prob 0 --threads 1 " CPU,
			test_folder, test_folder, test_folder, test_folder, test_folder),
		0);
	assert_ok(json_read(&document, test_path("learns/eval_results.json"), 1 << 20));
	assert_ok(json_get_number(document.root, "eval_results.json", "eval_accuracy", &accuracy));
	json_release(&document);
	if (!(accuracy > 0.8))
		fail_msg("accuracy %g", accuracy);
}

static void a_smaller_model_has_some_of_the_layers(void **state)
{
	static const char name[] = "attention.output.dense.weight";
	struct safetensors large, small;
	char from[96], to[96];
	assert_int_equal(
		program("finetune -q --task classification --teacher %s/classification-teacher --init_layers 0,2 --train "
			"%s/classification.train --out %s/small --num_train_steps 1 --learning_rate 0 --max_seq_length 24 "
			"--threads 1 " CPU,
			test_folder, test_folder, test_folder),
		0);
	assert_ok(safetensors_open(&large, test_path("classification-teacher/final/model.safetensors")));
	assert_ok(safetensors_open(&small, test_path("small/final/model.safetensors")));
	for (int layer = 0; layer < 2; layer++) {
		snprintf(from, sizeof from, "bert.encoder.layer.%d.%s", 2 * layer, name);
		snprintf(to, sizeof to, "bert.encoder.layer.%d.%s", layer, name);
		const struct safetensors_entry *a = safetensors_find(&large, from), *b = safetensors_find(&small, to);
		assert_non_null(a);
		assert_non_null(b);
		assert_memory_equal(a->data, b->data, (size_t)a->count * sizeof(float));
	}
	assert_null(safetensors_find(&small, "bert.encoder.layer.2.attention.output.dense.weight"));
	safetensors_close(&large);
	safetensors_close(&small);
	/* Some of its own layers, and of the teacher's, from which it also takes the head. */
	assert_program(
		0, "the model has a head for this task",
		"finetune --no_progress --task classification --model %s/small --teacher %s/classification-teacher --train "
		"%s/classification.train --out %s/small2 --num_train_steps 1 --max_seq_length 24 --threads 1 " CPU,
		test_folder, test_folder, test_folder, test_folder);
	assert_said("teacher  "); /* in the memory plan */
}

/* The norm before a layer of ModernBERT is the last of the layer before, and its first layer has none. */
static void a_smaller_modernbert_has_some_of_the_layers(void **state)
{
	static const char shape[] =
		"{\"model_type\": \"modernbert\", \"hidden_size\": 16, \"num_hidden_layers\": 3, "
		"\"num_attention_heads\": 2, \"intermediate_size\": 16, \"max_position_embeddings\": 64, \"pad_token_id\": 0, "
		"\"bos_token_id\": 2, \"cls_token_id\": 2, \"eos_token_id\": 3, \"sep_token_id\": 3}";
	struct safetensors large, small;
	assert_ok(file_write(test_path("modern.json"), shape, strlen(shape)));
	assert_int_equal(
		program("pretrain -q --corpus %s --vocab_file %s/base/final/vocab.txt --model %s/modern.json --out %s/modern "
			"--num_train_steps 1 --max_seq_length 24 --threads 1 " CPU,
			corpus, test_folder, test_folder, test_folder),
		0);
	assert_int_equal(
		program("finetune -q --task classification --model %s/modern --init_layers 0,2 --train "
			"%s/classification.train --out %s/modern2 --num_train_steps 1 --learning_rate 0 --max_seq_length "
			"24 --threads 1 " CPU,
			test_folder, test_folder, test_folder),
		0);
	assert_ok(safetensors_open(&large, test_path("modern/final/model.safetensors")));
	assert_ok(safetensors_open(&small, test_path("modern2/final/model.safetensors")));
	const struct safetensors_entry *a = safetensors_find(&large, "model.layers.2.mlp.Wo.weight"),
				       *b = safetensors_find(&small, "model.layers.1.mlp.Wo.weight");
	assert_true(a && b && a->count == b->count);
	assert_memory_equal(a->data, b->data, (size_t)a->count * sizeof(float));
	safetensors_close(&large);
	safetensors_close(&small);
}

/* A teacher without segment types, of another form and width, teaches a BERT with the same tokenizer, and the reverse. */
static void teachers_of_other_forms(void **state)
{
	assert_int_equal(program("finetune -q --task classification --model %s/modern --train %s/classification.train --out "
				 "%s/modern-teacher "
				 "--num_train_steps 1 --max_seq_length 24 --threads 1 " CPU,
				 test_folder, test_folder, test_folder),
			 0);
	assert_int_equal(
		program("finetune -q --task classification --model %s/base --teacher %s/modern-teacher --distill_layers uniform "
			"--train %s/classification.train --out %s/of-modern --num_train_steps 1 --max_seq_length 24 --threads "
			"1 " CPU,
			test_folder, test_folder, test_folder, test_folder),
		0);
	assert_int_equal(
		program("finetune -q --task classification --model %s/modern --teacher %s/classification-teacher "
			"--distill_layers "
			"uniform --train %s/classification.train --out %s/of-bert --num_train_steps 1 --max_seq_length 24 "
			"--threads 1 " CPU,
			test_folder, test_folder, test_folder, test_folder),
		0);
}

#define TRY_TEACHER(status, part, teacher, more)                                                                                 \
	assert_program(status, part,                                                                                             \
		       "finetune -q --task classification --model %s/base --train %s/classification.train --out %s/bad "         \
		       "--max_seq_length 24 --num_train_steps 1 --threads 1 " CPU "--teacher %s/" teacher " " more,              \
		       test_folder, test_folder, test_folder, test_folder)

static void teachers_must_fit(void **state)
{
	TRY_TEACHER(ERR_USAGE, "it is a BertForTokenClassification, the student a BertForSequenceClassification",
		    "tagging-teacher", "");
	TRY_TEACHER(ERR_USAGE, "it is a BertForPreTraining", "large", "");
	TRY_TEACHER(ERR_USAGE, "its problem_type is multi_label_classification", "multilabel-teacher", "");
	TRY_TEACHER(ERR_USAGE, "not pairs of the student's 2 layers and the teacher's 3", "classification-teacher",
		    "--distill_layers 1:4");
	TRY_TEACHER(ERR_USAGE, "not pairs", "classification-teacher", "--distill_layers 1-2");
	TRY_TEACHER(ERR_USAGE, "must ascend", "classification-teacher", "--distill_layers 1:2,2:1");
	TRY_TEACHER(ERR_USAGE, "nothing is learned from it", "classification-teacher", "--distill_alpha 0");
	TRY_TEACHER(ERR_USAGE, "does not know the student's label 'hears'", "classification-teacher",
		    "--labels hears,finds,likes,paints,sees");
	TRY_TEACHER(ERR_USAGE, "treat upper-case letters differently", "classification-teacher", "--cased true");
	TRY_TEACHER(ERR_USAGE, "not ascending layers from 0 to 1", "classification-teacher", "--init_layers 1,2");
	assert_program(ERR_USAGE, "--distill_layers has no effect without --teacher",
		       "finetune -q --task classification --model %s/base --train %s/classification.train --out %s/bad "
		       "--distill_layers 1:1",
		       test_folder, test_folder, test_folder);
	struct buffer vocab = {0};
	assert_ok(file_read(test_path("base/final/vocab.txt"), 1 << 20, &vocab));
	vocab.data[vocab.size - 2] = 'q'; /* a letter of the last entry */
	assert_ok(file_write(test_path("other.txt"), vocab.data, vocab.size));
	buffer_release(&vocab);
	assert_int_equal(
		program("pretrain -q --corpus %s --model %s --vocab_file %s/other.txt --out %s/other --max_seq_length 32 "
			"--num_train_steps 1 --threads 1 " CPU,
			corpus, config, test_folder, test_folder),
		0);
	assert_program(ERR_USAGE, "entry 79 of its vocabulary is",
		       "finetune -q --task classification --model %s/other --train %s/classification.train --out %s/bad "
		       "--max_seq_length 24 --num_train_steps 1 --threads 1 " CPU "--teacher %s/classification-teacher",
		       test_folder, test_folder, test_folder, test_folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranks_and_micro_batches_learn_the_same),
		cmocka_unit_test(an_interruption_changes_nothing),
		cmocka_unit_test(adapters_learn_from_teachers),
		cmocka_unit_test(another_teacher_is_noticed),
		cmocka_unit_test(another_configuration_is_noticed),
		cmocka_unit_test(files_of_a_teacher_are_of_one_moment),
		cmocka_unit_test(classes_are_matched_by_name),
		cmocka_unit_test(a_smaller_model_has_some_of_the_layers),
		cmocka_unit_test(a_smaller_modernbert_has_some_of_the_layers),
		cmocka_unit_test(teachers_of_other_forms),
		cmocka_unit_test(teachers_must_fit),
	};
	return cmocka_run_group_tests(tests, setup, program_teardown);
}
