/* Which layers learn, and how fast, and what the loss weighs: --freeze_layers, --layerwise_learning_rate_decay,
 * --head_learning_rate, --label_smoothing, and --class_weights with several labels. */
#include "cmd/labeled_files.h"
#include "formats/safetensors.h"

static int setup(void **state)
{
	if (small_run_make(state, 3) != 0)
		return -1;
	if (program("pretrain --corpus %s --model %s --out %s/base --vocab_size 80 --train_batch_size 16 --max_seq_length 32 "
		    "--num_train_steps 5 --precision fp32 --threads 1",
		    corpus, config, test_folder) != 0)
		return -1;
	struct buffer classes = {0}, labels = {0};
	struct rng rng = rng_start(1, RNG_TEST, 1);
	buffer_text(&classes, "text\tlabel\n");
	for (int i = 0; i < 96; i++) {
		struct said said = draw_sentence(&rng);
		buffer_format(&classes, "%s %s %s.\t%s\n", said.who, said.does, said.what, said.does);
		put_labels(&labels, &rng);
	}
	assert_ok(file_write(test_path("classes.tsv"), classes.data, classes.size));
	assert_ok(file_write(test_path("labels.jsonl"), labels.data, labels.size));
	buffer_release(&classes);
	buffer_release(&labels);
	return 0;
}

/* A run without dropout, whose Adam moves every weight by its rate in the first step. */
#define RUN(out, task, file, more)                                                                                               \
	"finetune --task " task " --model %s/base --train %s/" file " --out %s/" out                                             \
	" --max_seq_length 32 --precision fp32 --threads 1 --train_batch_size 16 --learning_rate 1e-3 --schedule constant "      \
	"--num_warmup_steps 0 --hidden_dropout_prob 0 --attention_probs_dropout_prob 0 --weight_decay 0 --adam_epsilon 1e-12 "   \
	"--log_steps 1 --no_progress " more,                                                                                     \
		test_folder, test_folder, test_folder

/* The largest change of a tensor between the pre-trained model and that of a run. */
static double moved(const char *run, const char *name)
{
	char path[PATH_BYTES], base[PATH_BYTES];
	struct safetensors files[2];
	double most = 0;
	snprintf(path, sizeof path, "%s/%s/final/model.safetensors", test_folder, run);
	snprintf(base, sizeof base, "%s/base/final/model.safetensors", test_folder);
	assert_ok(safetensors_open(&files[0], base));
	assert_ok(safetensors_open(&files[1], path));
	const struct safetensors_entry *before = safetensors_find(&files[0], name), *after = safetensors_find(&files[1], name);
	assert_true(before && after && before->count == after->count);
	for (int64_t i = 0; i < before->count; i++) {
		float was, is;
		memcpy(&was, (const char *)before->data + 4 * i, 4);
		memcpy(&is, (const char *)after->data + 4 * i, 4);
		most = fmax(most, fabs((double)is - (double)was));
	}
	safetensors_close(&files[0]);
	safetensors_close(&files[1]);
	return most;
}

#define LAYER(n) "bert.encoder.layer." #n ".intermediate.dense.weight"
#define WORDS "bert.embeddings.word_embeddings.weight"
#define POOLER "bert.pooler.dense.weight"

static void each_layer_has_its_rate(void **state)
{
	assert_program(0, "",
		       RUN("rates", "classification", "classes.tsv",
			   "--num_train_steps 1 --layerwise_learning_rate_decay 0.5 --head_learning_rate 4e-3"));
	assert_near(moved("rates", LAYER(1)), 1e-3, 1e-5);
	assert_near(moved("rates", LAYER(0)), 5e-4, 1e-5);
	assert_near(moved("rates", WORDS), 2.5e-4, 1e-5);
	assert_near(moved("rates", POOLER), 4e-3, 1e-5);
}

static void frozen_layers_stay(void **state)
{
	struct safetensors moments;
	assert_program(0, "", RUN("frozen", "classification", "classes.tsv", "--num_train_steps 6 --freeze_layers 1"));
	assert_true(moved("frozen", WORDS) == 0 && moved("frozen", LAYER(0)) == 0);
	assert_true(moved("frozen", LAYER(1)) > 1e-4);
	assert_ok(safetensors_open(&moments, test_path("frozen/checkpoint-6/optimizer.safetensors")));
	assert_null(safetensors_find(&moments, "exp_avg." WORDS));
	assert_null(safetensors_find(&moments, "exp_avg_sq." LAYER(0)));
	assert_non_null(safetensors_find(&moments, "exp_avg." LAYER(1)));
	safetensors_close(&moments);
}

static void assert_same_model(const char *a, const char *b)
{
	struct buffer text[2] = {{0}};
	for (int i = 0; i < 2; i++) {
		char path[PATH_BYTES];
		snprintf(path, sizeof path, "%s/%s/final/model.safetensors", test_folder, i == 0 ? a : b);
		assert_ok(file_read(path, 1 << 24, &text[i]));
	}
	assert_int_equal(text[0].size, text[1].size);
	assert_memory_equal(text[0].data, text[1].data, text[0].size);
	buffer_release(&text[0]);
	buffer_release(&text[1]);
}

#define SOME "--num_train_steps 6 --freeze_layers 1 --head_learning_rate 2e-3 --label_smoothing 0.1 "

static void interrupted_runs_end_with_the_same_bits(void **state)
{
	assert_program(0, "", RUN("whole", "classification", "classes.tsv", SOME));
	assert_program(STOPPED, "", RUN("parts", "classification", "classes.tsv", SOME "--steps_this_run 2"));
	assert_program(0, "resuming from", "finetune --out %s/parts --no_progress", test_folder); /* as recorded */
	assert_same_model("whole", "parts");
	assert_program(0, "", RUN("whole2", "classification", "classes.tsv", SOME "--ranks 2"));
	assert_program(STOPPED, "", RUN("parts2", "classification", "classes.tsv", SOME "--ranks 2 --steps_this_run 2"));
	assert_program(0, "resuming from", RUN("parts2", "classification", "classes.tsv", SOME "--ranks 2"));
	assert_same_model("whole2", "parts2");
	assert_program(ERR_STATE, "--freeze_layers is '2'", "finetune --out %s/parts --freeze_layers 2", test_folder);
}

static double first_loss(const char *run)
{
	char path[PATH_BYTES];
	snprintf(path, sizeof path, "%s/%s/metrics.jsonl", test_folder, run);
	return metric_at(path, 1, "loss");
}

/* A head that knows nothing has the loss log 2 for each label: half of it for each of its two terms. */
static void labels_have_weights(void **state)
{
	assert_program(0, "2 labels: article ",
		       RUN("even", "multilabel", "labels.jsonl", "--num_train_steps 1 --class_weights article:1,met:1"));
	assert_program(0, "", RUN("plain", "multilabel", "labels.jsonl", "--num_train_steps 1"));
	assert_same_model("even", "plain");
	assert_program(0, "", RUN("heavy", "multilabel", "labels.jsonl", "--num_train_steps 1 --class_weights article:3"));
	assert_true(first_loss("heavy") > 1.2 * first_loss("plain"));
	assert_program(0, "", RUN("balanced", "multilabel", "labels.jsonl", "--num_train_steps 1 --class_weights balanced"));
	assert_true(first_loss("balanced") != first_loss("plain"));
}

static void what_cannot_be_is_refused(void **state)
{
#define BAD(part, task, file, more) assert_program(ERR_USAGE, part, RUN("bad", task, file, more))
	BAD("--freeze_layers 3: the model has 2 layers", "classification", "classes.tsv", "--freeze_layers 3");
	BAD("neither a number of layers nor 'embeddings'", "classification", "classes.tsv", "--freeze_layers first");
	BAD("head_learning_rate", "classification", "classes.tsv", "--head_learning_rate 0");
	BAD("--label_smoothing is for tasks that choose one of several classes, not for multilabel", "multilabel", "labels.jsonl",
	    "--label_smoothing 0.1");
	assert_program(0, "", RUN("head", "classification", "classes.tsv", "--num_train_steps 1 --freeze_layers 2"));
	assert_true(moved("head", LAYER(1)) == 0 && moved("head", POOLER) > 9e-4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_layer_has_its_rate),
		cmocka_unit_test(frozen_layers_stay),
		cmocka_unit_test(interrupted_runs_end_with_the_same_bits),
		cmocka_unit_test(labels_have_weights),
		cmocka_unit_test(what_cannot_be_is_refused),
	};
	return cmocka_run_group_tests(tests, setup, program_teardown);
}
