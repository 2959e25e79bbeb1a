/* What newcomers meet first: a text where a file belongs, options of other servers, models that do not exist, misspelled
 * labels, sets too small to tell anything, and how results are printed. */
#include "cmd/small_run.h"

static int setup(void **state)
{
	struct buffer rows = {0};
	if (small_run_make(state, 9) != 0)
		return -1;
	buffer_text(&rows, "sentence\tlabel\n");
	for (int i = 0; i < 40; i++)
		buffer_format(&rows, "the cat sees a river %d\t%s\n", i, i % 2 ? "positive" : "negative");
	assert_ok(file_write(test_path("dev.tsv"), rows.data, rows.size));
	buffer_text(&rows, "a dog\tpostive\n");
	assert_ok(file_write(test_path("train.tsv"), rows.data, rows.size));
	buffer_release(&rows);
	return program(
		"pretrain -q --corpus %s --model %s --out %s/base --vocab_size 80 --num_train_steps 1 --train_batch_size 4 "
		"--max_seq_length 32 --precision fp32 --threads 1",
		corpus, config, test_folder);
}

static void texts_are_no_files(void **state)
{
	assert_program(2, "bertc: 'I love it' is not a file\nhint: ", "predict --model %s/base \"I love it\"", test_folder);
	assert_said("echo \"TEXT\" | bertc predict --model FOLDER");
	assert_program(2, "'I love it' is not a file", "embed --model %s/base \"I love it\"", test_folder);
	/* A name with a typo is a file that does not exist. */
	assert_program(2, "cannot open", "embed --model %s/base nothing.txt", test_folder);
}

/* Only commands that train accept the names of sizes. */
static void models_that_are_not_there(void **state)
{
	static const char *const commands[] = {
		"predict", "embed", "score", "evaluate --corpus x", "fill", "serve", "export --to onnx --out x"};
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
		assert_program(2, "bertc: 'basse': no such file or folder\nhint: give a run folder", "%s --model basse",
			       commands[i]);
		assert_null(strstr(program_errors.data, "tiny"));
	}
	assert_program(2, "'none/final': no such file", "serve --model mail=none/final");
	/* Names of the Hub are no folders here; paths into folders that exist are no names of the Hub. */
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
		assert_program(2, "Hugging Face Hub, hf:intfloat/e5-base downloads it", "%s --model intfloat/e5-base",
			       commands[i]);
		assert_program(2, "hint: give a run folder", "%s --model intfloat/e5-base", commands[i]); /* a mistyped path? */
		assert_program(2, "Hugging Face Hub, hf:intfloat/e5-base downloads it",
			       "%s --model https://huggingface.co/intfloat/e5-base", commands[i]);
		assert_program(2, "hf:OWNER/all-MiniLM-L6-v2 downloads it", "%s --model all-MiniLM-L6-v2", commands[i]);
		assert_program(2, "hf:bert-base-chinese downloads it", "%s --model bert-base-chinese", commands[i]);
		assert_program(2, "hf:roberta-base downloads it", "%s --model roberta-base", commands[i]);
		assert_program(2, "give a run folder", "%s --model tests/e5-base", commands[i]);
		assert_program(2, "give a run folder", "%s --model run-3", commands[i]);
		assert_program(2, "bertc download ADDRESS", "%s --model https://example.org/bert.tar.gz", commands[i]);
	}
	assert_program(2, "hf:bert-base-uncased downloads it", "pretrain --corpus %s --out %s/x --model bert-base-uncased",
		       corpus, test_folder);
	assert_program(2, "hf:google-bert/bert-base-uncased downloads it",
		       "pretrain --corpus %s --out %s/x --init_checkpoint google-bert/bert-base-uncased", corpus, test_folder);
	assert_program(2, "with the tool of its store", "pretrain --corpus %s --out %s/x --init_checkpoint s3://bucket/bert",
		       corpus, test_folder);
	static const char *const mistyped[] = {"basse", "bert-base-uncase", "nobody/mine"};
	for (size_t i = 0; i < sizeof mistyped / sizeof *mistyped; i++)
		assert_program(2, "tiny|mini", "pretrain --corpus %s --out %s/x --model %s", corpus, test_folder, mistyped[i]);
	assert_said("hf:nobody/mine downloads it");
	/* The folder that the run itself makes is not meant. */
	assert_program(2, "no such file", "pretrain --corpus %s --out %s/run-9 --init_checkpoint %s/run-8", corpus, test_folder,
		       test_folder);
	assert_null(strstr(program_errors.data, "did you mean"));
	assert_program(2, "hint: give a model folder, ", "pretrain --corpus %s --out %s/x --init_checkpoint nobody/mine", corpus,
		       test_folder);
}

/* The name beside it that was probably meant. */
static void paths_spelled_a_little_differently(void **state)
{
	assert_program(2, "hint: did you mean '/", "embed --model %s/base/fnal %s", test_folder, corpus);
	assert_said("/base/final'?");
	assert_program(2, "hint: did you mean '/", "embed --model %s/base %s/corpsu.txt", test_folder, test_folder);
	assert_said("/corpus.txt'?");
	assert_int_equal(symlink("/not/there", test_path("link.txt")), 0);
	assert_program(2, "hint: it is a link to a file that is not there", "embed --model %s/base %s/link.txt", test_folder,
		       test_folder);
	assert_int_equal(remove(test_path("link.txt")), 0);
	assert_program(2, "/corpus.txt'?", "pretrain --corpus %s/corpus.text --out %s/x", test_folder, test_folder);
	assert_program(2, "/corpus.txt'?", "tokenize --vocab_file %s/corpsu.txt %s", test_folder, corpus);
	assert_program(2, "hint: give a run folder", "embed --model %s/nothing_like_it %s", test_folder, corpus);
}

/* Two files of a vocabulary that differ are pointed out once. */
static void one_warning_a_vocabulary(void **state)
{
	char command[512];
	snprintf(command, sizeof command,
		 "cp -r %s/base/final %s/two && rm %s/two/MANIFEST.json && sed -i '9s/.*/zz/' %s/two/vocab.txt", test_folder,
		 test_folder, test_folder, test_folder);
	assert_int_equal(system(command), 0);
	assert_program(0, "the first is used", "fill --model %s/two 'the [MASK]'", test_folder);
	assert_null(strstr(strstr(program_errors.data, "the first is used") + 1, "the first is used"));
}

static void other_servers_options(void **state)
{
	assert_program(2, "bertc has no option --port\nhint: --listen 127.0.0.1:8080", "serve --model %s/base --port 8000",
		       test_folder);
	assert_program(2, "--listen", "serve --model %s/base --host 0.0.0.0", test_folder);
}

static void small_sets_slips_and_ties(void **state)
{
	assert_program(
		0, "the label 'postive' has a single example: is it a mistyped 'positive'?",
		"finetune --task classification --model %s/base --train %s/train.tsv --dev %s/dev.tsv --out %s/sweep --sweep "
		"\"learning_rate=1e-9,2e-9\" --num_train_steps 1 --max_seq_length 16 --precision fp32 --threads 1",
		test_folder, test_folder, test_folder, test_folder);
	assert_said("the dev set has only 40 examples: small differences");
	assert_said("2 runs did equally well: the sweep does not tell which is best");
	assert_null(strstr(program_errors.data, "the best run is"));
	/* The usual rates of a small model, not those of large ones. */
	assert_said("5e-5 to 5e-4 is usual");
	/* The same style of results here and in evaluate: a fraction with four digits, a count with none. */
	assert_said("\naccuracy               0.5000\n");
	assert_said("\nexamples                   40\n");
	assert_int_equal(program("evaluate -q --model %s/sweep/final --test %s/dev.tsv --threads 1", test_folder, test_folder),
			 0);
	assert_non_null(strstr(buffer_string(&program_output), "\naccuracy               0.5000\n"));
	assert_non_null(strstr(buffer_string(&program_output), "\nexamples                   40\n"));
}

/* One term for one thing in all commands; older command lines and runs use another. */
static void bad_records(void **state)
{
	assert_ok(file_write(test_path("bad.jsonl"), "{\"text\": \"the cat\"}\n{\"text\": 5 7}\n", 34));
	assert_program(3, "line 2", "vocab --corpus %s --out %s/v.txt --on_bad_record fail", test_path("bad.jsonl"), test_folder);
	assert_program(3, "line 2", "vocab --corpus %s --out %s/v.txt --on_bad_record stop", test_path("bad.jsonl"), test_folder);
	assert_int_equal(program("help finetune"), 0);
	assert_int_equal(program("help pretrain"), 0);
	assert_null(strstr(buffer_string(&program_output), "one of fail"));
}

/* Files without their option, as other programs take them. */
static void files_without_an_option(void **state)
{
	static const char *const commands[] = {"vocab", "prepare", "pretrain", "instances"};
	static const char arguments[] = "{\"task_name\": \"cola\", \"num_train_epochs\": 2, \"do_train\": true, \"fp16\": false}";
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
		assert_program(2, "unexpected argument", "%s %s", commands[i], corpus);
		assert_said("did you mean --corpus ");
	}
	assert_program(2, "did you mean --train ", "finetune %s", test_path("train.tsv"));
	assert_program(2, " or, for a fine-tuned model, --test?", "evaluate %s", test_path("train.tsv"));
	assert_program(2, "`bertc help vocab` shows the usage", "vocab nothing.txt");
	assert_ok(file_write(test_path("args.json"), arguments, strlen(arguments)));
	assert_program(2, "give --config ", "pretrain %s", test_path("args.json"));
	assert_program(2, "give --config ", "finetune %s", test_path("args.json"));
	/* Which reads what transformers' scripts read there. */
	assert_program(2, "--out is missing", "finetune --config %s", test_path("args.json"));
	assert_null(strstr(buffer_string(&program_errors), "--task is missing"));
	/* None, and what only Python's options have. */
	static const char nothing[] = "{\"data_seed\": null, \"report_to\": [\"none\"], \"lr_scheduler_kwargs\": {}}";
	static const char cycles[] = "{\"lr_scheduler_kwargs\": {\"num_cycles\": 3}}";
	assert_ok(file_write(test_path("args.json"), nothing, strlen(nothing)));
	assert_program(0, "--report_to is ignored", "finetune --config %s --print_config", test_path("args.json"));
	assert_ok(file_write(test_path("args.json"), cycles, strlen(cycles)));
	assert_program(2, "--min_learning_rate", "finetune --config %s --print_config", test_path("args.json"));
}

/* Options that name a vocabulary take the folder with one, as transformers does: a model's, or a run's. */
static void vocabularies_of_folders(void **state)
{
	struct buffer expected = {0};
	assert_int_equal(program("tokenize --vocab_file %s/base/final/vocab.txt %s", test_folder, corpus), 0);
	buffer_text(&expected, buffer_string(&program_output));
	static const char *const folders[] = {"base/final", "base/final/", "base"};
	for (size_t i = 0; i < 3; i++) {
		assert_program(0, "", "tokenize --vocab_file %s %s", test_path(folders[i]), corpus);
		assert_string_equal(buffer_string(&program_output), buffer_string(&expected));
	}
	buffer_release(&expected);
	assert_ok(folder_make(test_path("bare")));
	assert_program(2, "there is no vocab.txt or tokenizer.json in the folder", "tokenize --vocab_file %s %s",
		       test_path("bare"), corpus);
#define TWICE(vocab, steps)                                                                                                      \
	"pretrain -q --corpus %s --model %s --out %s/again --vocab_file %s/base" vocab " --num_train_steps " steps               \
	" --train_batch_size 4 --max_seq_length 32 --precision fp32 --threads 1",                                                \
		corpus, config, test_folder, test_folder
	/* A run that began with the folder is resumed with it, or with the file in it. */
	assert_program(75, "stopped at step 1", TWICE("/final", "3 --stop_at_step 1"));
	assert_program(75, "stopped at step 2", TWICE("/final", "3 --stop_at_step 2"));
	assert_program(0, "", TWICE("/final/vocab.txt", "3"));
}

/* A run that has finished does not train on; its model does, in another run. */
static void more_steps_than_the_run_had(void **state)
{
	assert_program(4, "hint: that run has finished: to train its model further, give --init_checkpoint ",
		       "pretrain --corpus %s --out %s/base --num_train_steps 5", corpus, test_folder);
	assert_program(0, "finished",
		       "finetune --task classification --model %s/base --train %s/dev.tsv --out %s/tuned --num_train_steps 1 "
		       "--max_seq_length 16 --precision fp32 --threads 1",
		       test_folder, test_folder, test_folder);
	assert_program(4, "give --model ", "finetune --out %s/tuned --num_train_steps 5", test_folder);
	assert_said("/tuned and another --out; to start over, give --fresh");
	/* A slash at the end means a folder, which result files go into. */
	assert_program(0, "", "predict --model %s/tuned %s/dev.tsv --out %s/preds/", test_folder, test_folder, test_folder);
	assert_true(file_exists(test_path("preds/predict.txt")));
}

/* Models of other kinds, and what there is instead. */
static void models_of_other_kinds(void **state)
{
	static const char other[] = "{\"model_type\": \"gpt2\"}", japanese[] = "{\"word_tokenizer_type\": \"mecab\"}";
	char command[512];
	snprintf(command, sizeof command, "cp -r %s/base/final %s/other && cp -r %s/base/final %s/japanese", test_folder,
		 test_folder, test_folder, test_folder);
	assert_int_equal(system(command), 0);
	assert_int_equal(remove(test_path("other/MANIFEST.json")), 0);
	assert_int_equal(remove(test_path("japanese/MANIFEST.json")), 0);
	assert_ok(file_write(test_path("other/config.json"), other, strlen(other)));
	assert_ok(file_write(test_path("japanese/tokenizer_config.json"), japanese, strlen(japanese)));
	assert_program(2, "\"model_type\" is \"gpt2\"; bertc has \"bert\", \"distilbert\"", "embed --model %s/other %s",
		       test_folder, corpus);
	assert_said("docs/inference.md lists well-known models");
	assert_program(2, "\"model_type\" is \"gpt2\"", "predict --model %s/other %s", test_folder, corpus);
	assert_int_equal(remove(test_path("other/model.safetensors")), 0);
	assert_program(2, "\"model_type\" is \"gpt2\"", "serve --model %s/other", test_folder);
	assert_program(2, "\"word_tokenizer_type\" is \"mecab\"", "embed --model %s/japanese %s", test_folder, corpus);
	assert_program(2, "\"word_tokenizer_type\" is \"mecab\"", "tokenize --vocab_file %s/japanese %s", test_folder, corpus);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_are_no_files),
		cmocka_unit_test(models_that_are_not_there),
		cmocka_unit_test(paths_spelled_a_little_differently),
		cmocka_unit_test(one_warning_a_vocabulary),
		cmocka_unit_test(other_servers_options),
		cmocka_unit_test(small_sets_slips_and_ties),
		cmocka_unit_test(bad_records),
		cmocka_unit_test(files_without_an_option),
		cmocka_unit_test(vocabularies_of_folders),
		cmocka_unit_test(more_steps_than_the_run_had),
		cmocka_unit_test(models_of_other_kinds),
	};
	return cmocka_run_group_tests_name("what a first user meets", tests, setup, program_teardown);
}
