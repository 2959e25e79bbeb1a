/* --recipe: sets of settings between the defaults and the given options; shown, recorded, kept by a resumed run, known to
 * the plan. */
#include "cmd/small_run.h"

#define SMALL                                                                                                                    \
	"--vocab_size 80 --train_batch_size 4 --max_seq_length 32 --num_train_steps 4 --eval_steps 2 --save_checkpoints_steps "  \
	"2 "                                                                                                                     \
	"--precision fp32 --threads 1"
#define TIMED "--vocab_size 80 --max_seq_length 32 --precision fp32 --threads 1"

static int setup(void **state)
{
	return small_run_make(state, 5);
}

/* Without --recipe, a run uses the published recipe. */
static void original_is_the_default(void **state)
{
	struct buffer plain = {0};
	const char *line;
	assert_program(0, "", "pretrain --print_config");
	buffer_append(&plain, program_output.data, program_output.size);
	assert_program(0, "", "pretrain --recipe original --print_config");
	int compared = 0;
	for (char *rest = program_output.data; (line = strtok_r(rest, "\n", &rest));) {
		const char *mark = strstr(line, "  # recipe");
		char setting[128];
		if (!mark)
			continue;
		snprintf(setting, sizeof setting, "%.*s  # default\n", (int)(mark - line), line);
		if (!strstr(buffer_string(&plain), setting))
			fail_msg("'%s' is not the default", setting);
		compared++;
	}
	assert_int_equal(compared, 11);
	buffer_release(&plain);

	assert_program(0, "", "pretrain --corpus %s --model %s --out %s/plain %s", corpus, config, test_folder, SMALL);
	assert_program(0, "", "pretrain --corpus %s --model %s --out %s/original --recipe original %s", corpus, config,
		       test_folder, SMALL);
	assert_same_file(test_path("plain/final/model.safetensors"), test_path("original/final/model.safetensors"));
}

static void origins(void **state)
{
	assert_program(0, "", "pretrain --recipe fast --print_config --adam_beta2 0.95");
	assert_printed("recipe = fast  # command line\n");
	assert_printed("next_sentence = none  # recipe\n");
	assert_printed("adam_beta2 = 0.95  # command line\n");
	assert_ok(file_write(test_path("some.conf"), "recipe = fast\nshort_seq_prob = 0.3\n", 35));
	assert_program(0, "", "pretrain --config %s/some.conf --print_config", test_folder);
	assert_printed("next_sentence = none  # recipe\n");
	assert_printed("short_seq_prob = 0.3  # config file\n");
	assert_program(2, "--recipe must be one of original|fast, not 'quick'", "pretrain --recipe quick --print_config");
}

/* Asking for the best model within a given time is not asking for BERT's recipe. */
static void a_given_time_takes_the_better_one(void **state)
{
	assert_program(0, "", "pretrain --time 1h --print_config");
	assert_printed("recipe = fast  # chosen\n");
	assert_printed("next_sentence = none  # recipe\n");
	assert_program(0, "", "pretrain --time 1h --recipe original --print_config");
	assert_printed("next_sentence = pairs  # recipe\n");
	assert_program(0, "", "pretrain --time 1h --next_sentence pairs --print_config");
	assert_printed("next_sentence = pairs  # command line\n");
	assert_printed("adam_beta2 = 0.98  # recipe\n");
}

/* A short run by BERT's own recipe is told of the better one, unless that recipe was chosen; one by the better one, of the form
 * that learns more, unless the form was chosen. */
static void short_runs_are_told(void **state)
{
	static const char recipe[] = "--recipe fast learns far more", form[] = "--form nomic_bert learns more";
	static const struct {
		const char *model, *options, *told; /* NULL: neither */
	} runs[] = {
		{config, "", recipe},
		{config, "--train_batch_size 4000 --num_train_steps 10000", NULL}, /* not short */
		{config, "--recipe original", NULL},
		{config, "--recipe fast", NULL}, /* the file says which form */
		{config, "--next_sentence pairs", NULL},
		{config, "--phase1.next_sentence none --phase1.num_train_steps 2", NULL},
		{"tiny", "--recipe fast", form},
		{"tiny", "--recipe fast --form nomic_bert", NULL},
		{"tiny", "--recipe fast --train_batch_size 4000 --num_train_steps 10000", NULL},
		{"tiny", "--time 61s", form},
	};
	for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
		assert_program(0, "", "pretrain --corpus %s --model %s --out %s/told --plan %s %s", corpus, runs[i].model,
			       test_folder, strstr(runs[i].options, "--time") ? TIMED : SMALL, runs[i].options);
		const char *shown = buffer_string(&program_errors);
		if (!strstr(shown, recipe) != (runs[i].told != recipe) || !strstr(shown, form) != (runs[i].told != form))
			fail_msg("'%s %s':\n%s", runs[i].model, runs[i].options, shown);
	}
}

/* A warm-up in steps replaces the recipe's fraction of the run. */
static void other_words_for_the_same(void **state)
{
	assert_program(0, "", "pretrain --corpus %s --model %s --out %s/warm --recipe fast --num_warmup_steps 3 --plan %s",
		       corpus, config, test_folder, SMALL);
	const char *row = strstr(buffer_string(&program_errors), "num_warmup_steps");
	assert_non_null(row);
	assert_true(strtol(row + strlen("num_warmup_steps"), NULL, 10) == 3);
	assert_null(strstr(buffer_string(&program_errors), "0.06"));
}

static void assert_row(const char *name, double value)
{
	const char *row = strstr(buffer_string(&program_errors), name);
	assert_non_null(row);
	assert_near(strtod(row + strlen(name), NULL), value, 1e-9);
}

/* Deep models warm up for longer; where the run has no room for that, the rate rises no faster. */
static void deep_models_warm_up_slowly(void **state)
{
	static const struct {
		const char *options;
		double steps, rate;
	} rows[] = {
		{"--num_hidden_layers 2 --num_train_steps 1000", 100, 1e-3},
		{"--num_hidden_layers 4 --num_train_steps 3000", 200, 1e-3},
		{"--num_hidden_layers 12 --num_train_steps 3000", 600, 1e-3},
		{"--num_hidden_layers 12 --num_train_steps 30000", 1800, 1e-3},
		{"--num_hidden_layers 12 --num_train_steps 900", 300, 5e-4},
		{"--num_hidden_layers 12 --num_train_steps 900 --learning_rate 1e-3", 300, 1e-3},
		{"--num_hidden_layers 12 --num_train_steps 900 --num_warmup_steps 100", 100, 1e-3},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_program(0, "",
			       "pretrain --corpus %s --model %s --out %s/deep --recipe fast --no_end_with_pairs --plan %s %s",
			       corpus, config, test_folder, SMALL, rows[i].options);
		assert_row("num_warmup_steps", rows[i].steps);
		assert_row("learning_rate", rows[i].rate);
	}
	/* Trained weights have no initial attention to lose; their rate is a quarter anyway. */
	assert_program(0, "", "pretrain --corpus %s --model %s --out %s/trained %s --num_hidden_layers 12", corpus, config,
		       test_folder, SMALL);
	assert_program(0, "",
		       "pretrain --corpus %s --init_checkpoint %s/trained --out %s/deep --recipe fast --plan %s "
		       "--num_train_steps 900",
		       corpus, test_folder, test_folder, SMALL);
	assert_row("num_warmup_steps", 200);
	assert_row("learning_rate", 2.5e-4);
}

/* An interrupted and resumed run is one run, whether or not the recipe is named again; another recipe is refused. */
static void resumed(void **state)
{
	static const char *const again[] = {"", "--recipe fast"};
	assert_program(0, "", "pretrain --corpus %s --model %s --out %s/whole --recipe fast %s", corpus, config, test_folder,
		       SMALL);
	for (int i = 0; i < 2; i++) {
		assert_program(75, "", "pretrain --corpus %s --model %s --out %s/part%d --recipe fast --stop_at_step 2 %s",
			       corpus, config, test_folder, i, SMALL);
		assert_program(4, "--recipe is 'original', but", "pretrain --out %s/part%d --recipe original", test_folder, i);
		assert_program(0, "", "pretrain --out %s/part%d %s", test_folder, i, again[i]);
		char part[64];
		snprintf(part, sizeof part, "part%d/final/model.safetensors", i);
		assert_same_file(test_path("whole/final/model.safetensors"), test_path(part));
		snprintf(part, sizeof part, "part%d/final/config.json", i);
		assert_same_file(test_path("whole/final/config.json"), test_path(part));
	}
	struct buffer text = {0};
	assert_ok(file_read(test_path("whole/settings.json"), 1 << 20, &text));
	assert_non_null(strstr(buffer_string(&text), "\"recipe\": \"fast\""));
	assert_non_null(strstr(buffer_string(&text), "\"masked_lm_prob\": \"0.2\""));
	buffer_release(&text);
}

/* A model that was pre-trained without dropout is fine-tuned with it. */
static void dropout_stays_with_the_model(void **state)
{
	static const char own[] = "{\"model_type\": \"bert\", \"hidden_size\": 32, \"num_hidden_layers\": 2, "
				  "\"num_attention_heads\": 2, \"intermediate_size\": 64, \"hidden_dropout_prob\": 0.25}";
	static const char *const said[] = {"\"hidden_dropout_prob\": 0.1", "\"hidden_dropout_prob\": 0.25",
					   "\"hidden_dropout_prob\": 0.25"};
	const char *models[] = {config, test_path("own.json"), test_path("dropout1/final")};
	assert_ok(file_write(models[1], own, strlen(own)));
	for (int i = 0; i < 3; i++) {
		char name[64];
		struct buffer text = {0};
		assert_program(0, "", "pretrain --corpus %s --model %s --out %s/dropout%d --recipe fast %s", corpus, models[i],
			       test_folder, i, SMALL);
		snprintf(name, sizeof name, "dropout%d/final/config.json", i);
		assert_ok(file_read(test_path(name), 1 << 16, &text));
		if (!strstr(buffer_string(&text), said[i]) ||
		    !strstr(buffer_string(&text), "\"attention_probs_dropout_prob\": 0.1"))
			fail_msg("'%s' is not in:\n%s", said[i], buffer_string(&text));
		buffer_release(&text);
	}
	/* What was given is the model's. */
	struct buffer text = {0};
	assert_program(0, "", "pretrain --corpus %s --model %s --out %s/given --recipe fast --hidden_dropout_prob 0.3 %s", corpus,
		       config, test_folder, SMALL);
	assert_ok(file_read(test_path("given/final/config.json"), 1 << 16, &text));
	assert_non_null(strstr(buffer_string(&text), "\"hidden_dropout_prob\": 0.3"));
	assert_non_null(strstr(buffer_string(&text), "\"attention_probs_dropout_prob\": 0.1"));
	buffer_release(&text);
}

/* --time chooses a recipe, but not for a run that began with another one, as its record says. */
static void a_recipe_chosen_later(void **state)
{
	const char *options =
		"--time 1h --vocab_size 80 --train_batch_size 4 --max_seq_length 32 --eval_steps 2 --precision fp32 "
		"--threads 1";
	assert_program(75, "", "pretrain --corpus %s --model %s --out %s/timed --recipe original --stop_at_step 2 %s", corpus,
		       config, test_folder, options);
	assert_program(75, "", "pretrain --out %s/timed --stop_at_step 4 %s", test_folder, options);
	struct buffer text = {0};
	assert_ok(file_read(test_path("timed/settings.json"), 1 << 20, &text));
	assert_non_null(strstr(buffer_string(&text), "\"recipe\": \"original\""));
	assert_non_null(strstr(buffer_string(&text), "\"next_sentence\": \"pairs\""));
	assert_non_null(strstr(buffer_string(&text), "\"init_attention\": \"random\""));
	buffer_release(&text);
}

/* Trained weights keep their attention, and the settings say so. */
static void not_for_trained_weights(void **state)
{
	static const char *const from[] = {"init_checkpoint", "model"};
	assert_program(0, "", "pretrain --corpus %s --model %s --out %s/first %s", corpus, config, test_folder, SMALL);
	for (int i = 0; i < 2; i++) {
		assert_program(0, "", "pretrain --recipe fast --%s %s/first/final --print_config", from[i], test_folder);
		assert_printed("init_attention = random  # default\n");
		assert_printed("next_sentence = none  # recipe\n");
	}
	assert_program(0, "", "pretrain --recipe fast --model mini --print_config");
	assert_printed("init_attention = neighbors  # recipe\n");
}

/* Whatever fraction is masked in training, evaluations mask the same words. */
static void evaluations_compare(void **state)
{
	double predictions[2];
	static const char *const shares[] = {"0.15", "0.4"};
	for (int i = 0; i < 2; i++) {
		assert_program(0, "", "pretrain --corpus %s --model %s --out %s/share%d --masked_lm_prob %s --eval_corpus %s %s",
			       corpus, config, test_folder, i, shares[i], corpus, SMALL);
		char metrics[64];
		snprintf(metrics, sizeof metrics, "share%d/metrics.jsonl", i);
		predictions[i] = metric_at(test_path(metrics), 4, "eval_predictions");
	}
	assert_true(predictions[0] > 0 && predictions[0] == predictions[1]);
}

/* A text in which every document occurs twice is trained on once; its folder is not accepted for a run without the recipe. */
static void copies_are_left_out(void **state)
{
	struct buffer text = {0};
	char twice[128];
	snprintf(twice, sizeof twice, "%s/twice.txt", test_folder);
	assert_ok(file_read(corpus, 1 << 20, &text));
	size_t size = text.size;
	buffer_char(&text, '\n');
	for (size_t i = 0; i < size; i++)
		buffer_char(&text, text.data[i]);
	assert_ok(file_write(twice, text.data, text.size));
	assert_program(0, "left out: 60 documents", "pretrain --corpus %s --model %s --out %s/copies --recipe fast --plan %s",
		       twice, config, test_folder, SMALL);
	assert_program(0, "60 documents, 360 sentences", "pretrain --corpus %s --model %s --out %s/once --recipe fast --plan %s",
		       corpus, config, test_folder, SMALL);
	assert_same_file(test_path("copies/data/train.bin"), test_path("once/data/train.bin"));
	assert_program(0, "120 documents", "pretrain --corpus %s --model %s --out %s/copies --plan %s", twice, config,
		       test_folder, SMALL);
	assert_null(strstr(buffer_string(&program_errors), "left out"));
	assert_said("copies of earlier documents: 60; --drop_copied_documents leaves them out");
	buffer_release(&text);
}

static void planned(void **state)
{
	struct buffer plain = {0};
	assert_program(0, "", "plan --model mini --device_kind a100 --json");
	buffer_append(&plain, program_output.data, program_output.size);
	assert_program(0, "", "plan --model mini --device_kind a100 --json --recipe fast");
	assert_true(strcmp(buffer_string(&plain), buffer_string(&program_output)) != 0); /* more words are masked */
	assert_program(0, "", "plan --model mini --device_kind a100 --json --masked_lm_prob 0.2");
	buffer_clear(&plain);
	buffer_append(&plain, program_output.data, program_output.size);
	assert_program(0, "", "plan --model mini --device_kind a100 --json --recipe fast");
	assert_string_equal(buffer_string(&plain), buffer_string(&program_output));
	buffer_release(&plain);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(original_is_the_default),    cmocka_unit_test(origins),
		cmocka_unit_test(other_words_for_the_same),   cmocka_unit_test(resumed),
		cmocka_unit_test(a_recipe_chosen_later),      cmocka_unit_test(not_for_trained_weights),
		cmocka_unit_test(evaluations_compare),        cmocka_unit_test(planned),
		cmocka_unit_test(copies_are_left_out),        cmocka_unit_test(a_given_time_takes_the_better_one),
		cmocka_unit_test(short_runs_are_told),        cmocka_unit_test(dropout_stays_with_the_model),
		cmocka_unit_test(deep_models_warm_up_slowly),
	};
	return cmocka_run_group_tests_name("recipes", tests, setup, program_teardown);
}
