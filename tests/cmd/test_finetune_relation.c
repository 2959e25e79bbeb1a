/* Relation classification as a user trains it: markers that become entries of the vocabulary, the head on the rows of both
 * markers, resuming after an interruption with the changed vocabulary, ranks, predictions and scores from the folder. */
#include <stdio.h>
#include "base/memory.h"
#include "cmd/small_run.h"
#include "serve/server.h"
#include "text/vocab.h"

/* Who does something to what: the verb decides the relation. */
static void put_relations(const char *name, int rows, uint64_t seed)
{
	static const char *const who[] = {"the cat", "a dog", "the old man", "my sister"};
	static const char *const does[] = {"sees", "likes", "finds"};
	static const char *const what[] = {"the house", "a river", "the red boat"};
	static const char *const labels[] = {"SEES", "LIKES", "none"};
	struct buffer text = {0};
	struct rng rng = rng_start(seed, RNG_TEST, 1);
	for (int i = 0; i < rows; i++) {
		uint32_t verb = rng_below(&rng, 3);
		buffer_format(&text, "{\"text\": \"<e1>%s</e1> %s <e2>%s</e2>.\", \"relation\": \"%s\"}\n",
			      who[rng_below(&rng, 4)], does[verb], what[rng_below(&rng, 3)], labels[verb]);
	}
	assert_ok(file_write(test_path(name), text.data, text.size));
	buffer_release(&text);
}

/* A small model in which four rows of the vocabulary have the names of unused entries. */
static int make_model(void)
{
	struct vocab vocab;
	if (program("pretrain --corpus %s --model %s --out %s/pre --vocab_size 80 --train_batch_size 16 --max_seq_length 32 "
		    "--num_train_steps 20 --learning_rate 1e-2 --num_warmup_steps 2 --precision fp32 --threads 1",
		    corpus, config, test_folder) != 0)
		return -1;
	assert_ok(vocab_read(&vocab, test_path("pre/final/vocab.txt")));
	static const char *const rows[] = {"[unused0]", "[unused1]", "[unused2]", "[unused3]"};
	const char **entries;
	assert_ok(memory_new(&entries, vocab.count, sizeof *entries, "entries"));
	for (int32_t i = 0; i < vocab.count; i++)
		entries[i] = i >= vocab.count - 4 ? rows[i - (vocab.count - 4)] : vocab.text[i];
	struct vocab own;
	assert_ok(vocab_from_entries(&own, entries, vocab.count));
	assert_ok(folder_make(test_path("base")));
	assert_ok(vocab_write(&own, test_path("base/vocab.txt")));
	free(entries);
	vocab_release(&own);
	vocab_release(&vocab);
	return rename(test_path("pre/final/config.json"), test_path("base/config.json")) |
	       rename(test_path("pre/final/model.safetensors"), test_path("base/model.safetensors"));
}

static int setup(void **state)
{
	if (small_run_make(state, 3) != 0)
		return -1;
	put_relations("train.jsonl", 96, 1);
	put_relations("dev.jsonl", 30, 2);
	return make_model();
}

#define RUN(out, more)                                                                                                           \
	"finetune --task relation --model %s/base --train %s/train.jsonl --dev %s/dev.jsonl --test %s/dev.jsonl --out %s/" out   \
	" --relation_head markers --marker_tokens vocabulary --negative_label none --max_seq_length 32 --precision fp32 "        \
	"--threads 1 "                                                                                                           \
	"--train_batch_size 16 --learning_rate 4e-3 --num_train_steps 150 --hidden_dropout_prob 0 --log_steps 1 --no_progress "  \
	"--save_checkpoints_steps "                                                                                              \
	"0 "                                                                                                                     \
	"--eval_steps 0 " more,                                                                                                  \
		test_folder, test_folder, test_folder, test_folder, test_folder

static double result(const char *name)
{
	struct json_document document;
	double value = NAN;
	assert_ok(json_read(&document, test_path("whole/eval_results.json"), 1 << 20));
	assert_ok(json_get_number(document.root, "eval_results.json", name, &value));
	json_release(&document);
	return value;
}

static void relations_are_learned(void **state)
{
	struct buffer text = {0};
	assert_program(0, "which take rows of the vocabulary that were free", RUN("whole", ""));
	if (!(result("eval_f1_micro") > 0.8))
		fail_msg("F1 %g", result("eval_f1_micro"));
	assert_ok(file_read(test_path("whole/final/tokenizer.json"), 1 << 20, &text));
	assert_non_null(strstr(buffer_string(&text), "\"content\": \"</e2>\""));
	assert_ok(file_read(test_path("whole/final/config.json"), 1 << 20, &text));
	assert_non_null(strstr(buffer_string(&text), "BertForRelationExtraction"));
	assert_ok(file_read(test_path("whole/report.html"), 1 << 22, &text));
	assert_non_null(strstr(buffer_string(&text), "Confusion matrix"));
	buffer_release(&text);
	assert_int_equal(program("verify %s/whole", test_folder), 0);
}

/* transformers has no class for the head, but the folder says whose task it is. */
static void relations_are_served(void **state)
{
	struct server server;
	char arguments[PATH_BYTES];
	snprintf(arguments, sizeof arguments, "--model %s/whole --threads 1 --precision fp32", test_folder);
	server_start(&server, arguments);
	assert_answer(&server, 200, "/predict", "{\"inputs\": \"<e1>the cat</e1> sees <e2>a river</e2>.\"}",
		      "\"label\":\"SEES\"},{");
	ask(&server, 424, "/embed", "{\"inputs\": \"a river\"}");
	server_stop(&server);
}

static void an_interruption_changes_nothing(void **state)
{
	assert_program(75, "run the same command again", RUN("parts", "--stop_at_step 23"));
	assert_program(0, "which are entries of the vocabulary", RUN("parts", ""));
	assert_same_file(test_path("whole/final/model.safetensors"), test_path("parts/final/model.safetensors"));
	assert_same_file(test_path("whole/final/tokenizer.json"), test_path("parts/final/tokenizer.json"));
	assert_same_file(test_path("whole/test_results.tsv"), test_path("parts/test_results.tsv"));
}

static void ranks_train_as_one(void **state)
{
	assert_program(0, "finished", RUN("ranks", "--ranks 2"));
	for (int step = 1; step <= 10; step++)
		assert_near(metric_at(test_path("whole/metrics.jsonl"), step, "loss"),
			    metric_at(test_path("ranks/metrics.jsonl"), step, "loss"), 1e-5);
}

static void the_folder_answers(void **state)
{
	assert_program(0, "", "predict --model %s/whole %s/dev.jsonl --out %s/base --precision fp32", test_folder, test_folder,
		       test_folder);
	assert_same_file(test_path("whole/predict.txt"), test_path("base/predict.txt"));
	assert_int_equal(
		program("evaluate --model %s/whole --test %s/dev.jsonl --json --precision fp32", test_folder, test_folder), 0);
	assert_non_null(strstr(buffer_string(&program_output), "\"precision_micro\":"));
	/* Positions in JSON instead of markers; and a text without either. */
	static const char places[] =
		"{\"text\": \"the cat sees a river.\", \"h\": {\"pos\": [0, 7]}, \"t\": {\"pos\": [13, 20]}}\n";
	assert_ok(file_write(test_path("places.jsonl"), places, strlen(places)));
	assert_int_equal(program("predict --model %s/whole %s/places.jsonl", test_folder, test_folder), 0);
	assert_non_null(strstr(buffer_string(&program_output), "{\"label\":\"SEES\""));
	assert_ok(file_write(test_path("bare.txt"), "the cat sees it\n", 16));
	assert_program(ERR_DATA, "bare.txt', line 1: the text has no marker '<e1>'", "predict --model %s/whole %s/bare.txt",
		       test_folder, test_folder);
	assert_program(0, "bare.txt': 1 bad record left out", "predict --model %s/whole %s/bare.txt --on_bad_record skip",
		       test_folder, test_folder);
	assert_string_equal(buffer_string(&program_output), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(relations_are_learned),
		cmocka_unit_test(relations_are_served),
		cmocka_unit_test(an_interruption_changes_nothing),
		cmocka_unit_test(ranks_train_as_one),
		cmocka_unit_test(the_folder_answers),
	};
	return cmocka_run_group_tests_name("relations", tests, setup, program_teardown);
}
