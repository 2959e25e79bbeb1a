/* Published fine-tuning settings in recipes/: each file is read, has the settings that its source states, and plans a run
 * on a file of its task. */
#include <glob.h>
#include "cmd/small_run.h"

/* Files of each task, two examples. */
static const struct {
	const char *recipe, *text;
	const char *published[6]; /* lines that --print_config must print */
} recipes[] = {
	{"mrpc",
	 "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t1\t2\tthe cat\ta dog\n0\t3\t4\tthe cat\ta dog\n",
	 {"task = mrpc", "train_batch_size = 32", "learning_rate = 2e-5", "num_train_epochs = 3", "optimizer = google_adamw"}},
	{"mnli",
	 "sentence1\tsentence2\tgold_label\nthe cat\ta dog\tneutral\na dog\tthe cat\tentailment\n",
	 {"task = mnli", "train_batch_size = 32", "learning_rate = 2e-5", "max_seq_length = 128"}},
	{"sst-2", "sentence\tlabel\nthe cat\t1\na dog\t0\n", {"task = sst-2", "train_batch_size = 32", "num_train_epochs = 3"}},
	{"qqp",
	 "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n1\t1\t2\tthe cat\ta dog\t1\n2\t3\t4\tthe cat\ta dog\t0\n",
	 {"task = qqp", "on_bad_record = skip", "learning_rate = 2e-5"}},
	{"squad_base",
	 "{\"data\": [{\"paragraphs\": [{\"context\": \"the cat\", \"qas\": [{\"id\": \"1\", \"question\": \"a dog\", "
	 "\"answers\": "
	 "[{\"text\": \"cat\", \"answer_start\": 4}]}]}]}]}",
	 {"task = squad", "train_batch_size = 12", "learning_rate = 3e-5", "num_train_epochs = 2", "max_seq_length = 384",
	  "doc_stride = 128"}},
	{"squad_large",
	 "{\"data\": [{\"paragraphs\": [{\"context\": \"the cat\", \"qas\": [{\"id\": \"1\", \"question\": \"a dog\", "
	 "\"answers\": "
	 "[{\"text\": \"cat\", \"answer_start\": 4}]}]}]}]}",
	 {"task = squad", "train_batch_size = 24", "learning_rate = 3e-5", "num_train_epochs = 2"}},
	{"bc5cdr",
	 "-DOCSTART- X X O\n\nthe N O O\ncat N O I-Entity\n\na N O O\n",
	 {"task = tagging", "learning_rate = 2e-5", "schedule = slanted_triangular", "train_batch_size = 32"}},
	{"ncbi-disease", "the\tDT\tO\tO\ncat\tNN\tO\tB-Disease\n\na\tDT\tO\tO\n", {"task = tagging", "learning_rate = 2e-5"}},
	{"chemprot",
	 "{\"text\": \"the << cat >> [[ sees ]]\", \"label\": \"INHIBITOR\", \"metadata\": []}\n{\"text\": \"<< a >> [[ dog "
	 "]]\", \"label\": "
	 "\"AGONIST\", \"metadata\": []}\n",
	 {"task = chemprot", "relation_head = cls", "learning_rate = 2e-5"}},
	{"scicite",
	 "{\"text\": \"the cat\", \"label\": \"method\", \"metadata\": {}}\n{\"text\": \"a dog\", \"label\": \"result\", "
	 "\"metadata\": {}}\n",
	 {"task = scicite", "num_train_epochs = 4"}},
};
#define COUNT (sizeof recipes / sizeof recipes[0])

static int make_model(const char *name, int width)
{
	char model[256];
	snprintf(model, sizeof model,
		 "{\"model_type\": \"bert\", \"hidden_size\": %d, \"num_hidden_layers\": 1, \"num_attention_heads\": 2, "
		 "\"intermediate_size\": 64, \"hidden_act\": \"gelu\", \"max_position_embeddings\": 512, "
		 "\"type_vocab_size\": 2}",
		 width);
	assert_ok(file_write(config, model, strlen(model)));
	return program("pretrain --corpus %s --model %s --out %s/%s --vocab_size 80 --train_batch_size 4 --max_seq_length 32 "
		       "--num_train_steps 1 --precision fp32 --threads 1",
		       corpus, config, test_folder, name);
}

static int setup(void **state)
{
	return small_run_make(state, 3) == 0 && make_model("base", 32) == 0 && make_model("wide", 768) == 0 ? 0 : -1;
}

/* The number that the plan states for a setting. */
static double planned(const char *setting)
{
	const char *row = strstr(buffer_string(&program_errors), setting);
	assert_non_null(row);
	return strtod(row + strlen(setting), NULL);
}

/* Narrow models have higher rates and, on few examples, more epochs; what is given is obeyed. */
static void defaults_suit_model_and_examples(void **state)
{
	static const struct {
		const char *model, *given;
		double epochs, rate;
	} runs[] = {
		{"base", "", 10, 5e-4},
		{"base", "--train_batch_size 4", 6, 5e-4},
		{"base", "--train_batch_size 1", 3, 5e-4},
		{"base", "--learning_rate 2e-5 --num_train_epochs 2", 2, 2e-5},
		{"wide", "", 3, 3e-5},
	};
	struct buffer rows = {0};
	for (int i = 0; i < 1000; i++)
		buffer_format(&rows, "%s %d\t%d\n", i % 2 ? "the cat sees" : "a dog likes", i, i % 2);
	assert_ok(file_write(test_path("train"), rows.data, rows.size));
	buffer_release(&rows);
	for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
		assert_program(0, "memory plan",
			       "finetune --task classification --model %s/%s --train %s/train --out %s/run --plan --threads 1 %s",
			       test_folder, runs[i].model, test_folder, test_folder, runs[i].given);
		assert_near(planned("num_train_epochs "), runs[i].epochs, 0);
		assert_near(planned("learning_rate "), runs[i].rate, 1e-12);
	}
}

static void settings_are_the_published_ones(void **state)
{
	for (size_t i = 0; i < COUNT; i++) {
		assert_program(0, "", "finetune --config recipes/finetune_%s.conf --print_config", recipes[i].recipe);
		for (int k = 0; k < 6 && recipes[i].published[k]; k++) {
			char line[128];
			snprintf(line, sizeof line, "%s  #", recipes[i].published[k]);
			if (!strstr(buffer_string(&program_output), line))
				fail_msg("%s: no '%s'", recipes[i].recipe, recipes[i].published[k]);
		}
	}
}

static void each_plans_a_run(void **state)
{
	for (size_t i = 0; i < COUNT; i++) {
		assert_ok(file_write(test_path("train"), recipes[i].text, strlen(recipes[i].text)));
		assert_program(0, "memory plan",
			       "finetune --config recipes/finetune_%s.conf --model %s/base --train %s/train --out %s/run --plan "
			       "--threads 1",
			       recipes[i].recipe, test_folder, test_folder, test_folder);
	}
}

/* Each file of the folder is tested here, and names its source, its score and a command. */
static void none_is_forgotten(void **state)
{
	glob_t files;
	assert_int_equal(glob("recipes/finetune_*.conf", 0, NULL, &files), 0);
	assert_int_equal(files.gl_pathc, COUNT);
	for (size_t i = 0; i < files.gl_pathc; i++) {
		struct buffer text = {0};
		assert_ok(file_read(files.gl_pathv[i], 1 << 16, &text));
		if (!strstr(buffer_string(&text), "Published") ||
		    !strstr(buffer_string(&text), "bertc finetune --config recipes/"))
			fail_msg("'%s' names no published score, or no command", files.gl_pathv[i]);
		buffer_release(&text);
	}
	globfree(&files);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(settings_are_the_published_ones),
		cmocka_unit_test(each_plans_a_run),
		cmocka_unit_test(none_is_forgotten),
		cmocka_unit_test(defaults_suit_model_and_examples),
	};
	return cmocka_run_group_tests_name("fine-tuning recipes", tests, setup, program_teardown);
}
