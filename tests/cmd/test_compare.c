/* bertc compare: hand-made models and runs, and what a calling script sees. */
#include "base/json.h"
#include "cmd/program.h"
#include "formats/safetensors.h"

static void write_text(const char *path, const char *text)
{
	assert_ok(file_write(path, text, strlen(text)));
}

/* A model folder with three tensors; `spoiled` elements of the query weight have another value. */
static void write_model(const char *name, int spoiled, const char *config, bool pooler)
{
	float query[6] = {1, 2, 3, 4, 5, 6}, word[4] = {0.5f, 0.25f, 0, -1}, pooled[2] = {7, 8};
	char path[PATH_BYTES], folder[PATH_BYTES];
	for (int i = 0; i < spoiled; i++)
		query[5 - i] += 0.5f;
	const struct safetensors_entry entries[] = {
		{.name = "bert.encoder.layer.10.attention.self.query.weight",
		 .dtype = ST_F32,
		 .rank = 2,
		 .shape = {2, 3},
		 .count = 6,
		 .data = query,
		 .bytes = sizeof query},
		{.name = "bert.embeddings.word_embeddings.weight",
		 .dtype = ST_F32,
		 .rank = 2,
		 .shape = {2, 2},
		 .count = 4,
		 .data = word,
		 .bytes = sizeof word},
		{.name = "bert.pooler.dense.weight",
		 .dtype = ST_F32,
		 .rank = 1,
		 .shape = {2},
		 .count = 2,
		 .data = pooled,
		 .bytes = sizeof pooled},
	};
	snprintf(folder, sizeof folder, "%s/%s", test_folder, name);
	assert_ok(folder_make(folder));
	assert_ok(path_join(path, folder, "model.safetensors"));
	assert_ok(safetensors_write(path, entries, pooler ? 3 : 2, NULL, NULL, NULL));
	assert_ok(path_join(path, folder, "config.json"));
	write_text(path, config);
}

#define CONFIG "{\"hidden_size\": 3, \"layer_norm_eps\": 1e-12}"

static void test_models(void **state)
{
	write_model("a", 0, CONFIG, true);
	write_model("same", 0, "{\"layer_norm_eps\": 0.000000000001, \"hidden_size\": 3}", true);
	write_model("other", 2, CONFIG, true);
	write_model("config", 0, "{\"hidden_size\": 4, \"layer_norm_eps\": 1e-12}", true);
	write_model("less", 0, CONFIG, false);
	assert_program(0, "", "compare %s/a %s/same", test_folder, test_folder);
	assert_non_null(strstr(buffer_string(&program_output), "all 3 tensors are equal"));

	assert_program(1, "differ", "compare %s/a %s/other", test_folder, test_folder);
	assert_non_null(
		strstr(buffer_string(&program_output), "first: bert.encoder.layer.10.attention.self.query.weight[1,1]  5  5.5"));
	assert_program(1, "", "compare %s/a %s/other --json", test_folder, test_folder);
	struct json_document document;
	assert_ok(json_parse(&document, "json", buffer_string(&program_output), program_output.size));
	const struct json *tensors = json_member(document.root, "tensors");
	/* In the order of the data flow, not in alphabetical order. */
	assert_string_equal(json_member(tensors->first_child, "name")->text, "bert.embeddings.word_embeddings.weight");
	const struct json *query = tensors->first_child->next;
	assert_near(json_member(query, "max")->number, 0.5, 0);
	assert_near(json_member(query, "rms")->number, 0.5 / 1.7320508075688772, 1e-12);
	assert_int_equal(json_member(query, "different_elements")->integer, 2);
	json_release(&document);

	assert_program(1, "", "compare %s/a %s/config", test_folder, test_folder);
	assert_non_null(strstr(buffer_string(&program_output), "hidden_size"));
	assert_program(1, "", "compare %s/less/model.safetensors %s/a/model.safetensors", test_folder, test_folder);
	assert_non_null(strstr(buffer_string(&program_output), "only in B"));
}

/* A run of `steps` logged steps whose loss falls from 8 by `slope` a step, evaluated at every tenth step. */
static void write_run(const char *name, int steps, double slope, double speed)
{
	struct buffer text = {0};
	char folder[PATH_BYTES], path[PATH_BYTES];
	for (int step = 1; step <= steps; step++) {
		double loss = 8 - slope * step;
		buffer_format(&text,
			      "{\"step\":%d,\"loss\":%g,\"mlm_loss\":%g,\"mlm_accuracy\":0.1,\"tokens\":%d,\"seconds\":%g,"
			      "\"tokens_per_second\":%g}\n",
			      step, loss + 0.7, loss, 100 * step, step / speed, 100 * speed);
		if (step % 10 == 0)
			buffer_format(&text, "{\"step\":%d,\"eval_loss\":%g,\"eval_mlm_loss\":%g,\"tokens\":%d,\"seconds\":%g}\n",
				      step, loss + 0.8, loss + 0.1, 100 * step, step / speed);
	}
	snprintf(folder, sizeof folder, "%s/%s", test_folder, name);
	assert_ok(folder_make(folder));
	assert_ok(path_join(path, folder, "metrics.jsonl"));
	write_text(path, buffer_string(&text));
	assert_ok(path_join(path, folder, "settings.json"));
	write_text(path, "{\"learning_rate\": \"1e-3\"}");
	buffer_release(&text);
}

static void test_runs(void **state)
{
	write_run("run", 40, 0.05, 2);
	write_run("slower", 40, 0.05, 1);
	write_run("better", 40, 0.1, 2);
	/* A different speed is not a difference, nor is another way to write a setting. */
	write_text(test_path("slower/settings.json"), "{\"learning_rate\": \"0.001\"}");
	assert_program(0, "", "compare %s/run %s/slower", test_folder, test_folder);
	assert_non_null(strstr(buffer_string(&program_output), "every logged figure is equal"));

	assert_program(1, "", "compare %s/run %s/better --by tokens --json --points 4 --out %s/both.html", test_folder,
		       test_folder, test_folder);
	struct json_document document;
	assert_ok(json_parse(&document, "json", buffer_string(&program_output), program_output.size));
	assert_int_equal(json_member(document.root, "first_different_step")->integer, 1);
	const struct json *point = json_member(document.root, "points")->first_child->next; /* halfway */
	assert_near(json_member(point, "at")->number, 2000, 1e-9);
	assert_near(json_member(json_member(point, "a"), "eval_mlm_loss")->number, 7.1, 1e-9);
	assert_near(json_member(json_member(point, "b"), "eval_mlm_loss")->number, 6.1, 1e-9);
	assert_near(json_member(json_member(point, "a"), "mlm_loss")->number, 7.0, 1e-9);
	json_release(&document);
	struct buffer html = {0};
	assert_ok(file_read(test_path("both.html"), 1 << 24, &html));
	assert_non_null(strstr(buffer_string(&html), "A held out"));
	buffer_release(&html);

	assert_program(1, "", "compare %s/run %s/better", test_folder, test_folder);
	assert_non_null(strstr(buffer_string(&program_output), "B reaches A's last held-out loss, 6.1000, after 20 steps: 0.50"));
	/* Linear interpolation between two evaluations, nothing after the last one. */
	assert_program(1, "", "compare %s/run %s/better --points 8 --json", test_folder, test_folder);
	assert_ok(json_parse(&document, "json", buffer_string(&program_output), program_output.size));
	point = json_member(document.root, "points")->first_child->next->next; /* step 15 */
	assert_near(json_member(json_member(point, "b"), "eval_mlm_loss")->number, 6.6, 1e-9);
	json_release(&document);

	/* Settings of a phase are shown, and not only that phases differ. */
	write_text(test_path("run/settings.json"), "{\"phases\": [{\"x\": \"1\"}, {\"x\": \"2\", \"y\": \"3\"}]}");
	write_text(test_path("slower/settings.json"), "{\"phases\": [{\"x\": \"1.0\"}, {\"x\": \"4\"}, {\"z\": \"5\"}]}");
	assert_program(1, "", "compare %s/run %s/slower --json", test_folder, test_folder);
	assert_printed("\"settings\":[{\"name\":\"phase 2: x\",\"a\":\"2\",\"b\":\"4\"},"
		       "{\"name\":\"phase 2: y\",\"a\":\"3\",\"b\":\"-\"},"
		       "{\"name\":\"phase 3: z\",\"a\":\"-\",\"b\":\"5\"}]");

	/* No step twice, however few there are. */
	write_run("short", 3, 0.05, 2);
	assert_program(1, "", "compare %s/short %s/better --json --points 100", test_folder, test_folder);
	assert_ok(json_parse(&document, "json", buffer_string(&program_output), program_output.size));
	double step = 0;
	for (point = json_member(document.root, "points")->first_child; point; point = point->next)
		assert_near(json_member(point, "at")->number, ++step, 0);
	assert_near(step, 40, 0);
	json_release(&document);
}

/* A vocabulary for a run: five special tokens and one word. */
static void write_vocab(const char *run, const char *word)
{
	char path[PATH_BYTES], text[128];
	snprintf(path, sizeof path, "%s/%s/data", test_folder, run);
	assert_ok(folder_make(path));
	snprintf(path + strlen(path), 16, "/vocab.txt");
	snprintf(text, sizeof text, "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n%s\n", word);
	write_text(path, text);
}

/* Losses over different tokens, and numbers that measure different things, are not compared without a warning. */
static void test_runs_of_different_things(void **state)
{
	write_run("first", 20, 0.05, 2);
	write_run("second", 20, 0.05, 2);
	write_vocab("first", "cat");
	write_vocab("second", "cat");
	assert_program(0, "", "compare %s/first %s/second", test_folder, test_folder);
	assert_null(strstr(buffer_string(&program_errors), "vocabularies"));
	write_vocab("second", "dog");
	assert_program(0, "different vocabularies (6 and 6 entries)", "compare %s/first %s/second", test_folder, test_folder);

	char path[PATH_BYTES];
	assert_ok(folder_make(test_path("tuned")));
	snprintf(path, sizeof path, "%s", test_path("tuned/metrics.jsonl"));
	write_text(path, "{\"step\":10,\"loss\":0.5,\"tokens\":100,\"seconds\":1}\n"
			 "{\"step\":10,\"eval_loss\":0.6,\"eval_accuracy\":0.7,\"tokens\":100,\"seconds\":1}\n");
	write_text(test_path("tuned/settings.json"), "{\"task\": \"mrpc\"}");
	assert_program(1, "no page is written", "compare %s/first %s/tuned --out %s/none.html", test_folder, test_folder,
		       test_folder);
	assert_non_null(strstr(buffer_string(&program_output), "A is pre-training, B is fine-tuning (mrpc): "));
	assert_null(strstr(buffer_string(&program_output), "held out"));
	assert_false(file_exists(test_path("none.html")));
	assert_program(1, "", "compare --json %s/tuned %s/first", test_folder, test_folder);
	assert_non_null(strstr(buffer_string(&program_output), "\"comparable\":false"));
	assert_ok(folder_make(test_path("other")));
	assert_ok(file_copy(path, test_path("other/metrics.jsonl")));
	write_text(test_path("other/settings.json"), "{\"task\": \"cola\"}");
	assert_program(1, "different tasks (mrpc and cola)", "compare %s/tuned %s/other", test_folder, test_folder);
	assert_program(1, "", "compare --json %s/tuned %s/other", test_folder, test_folder);
	assert_non_null(strstr(buffer_string(&program_output), "\"comparable\":false"));
	/* Scores of one task can be compared whatever the vocabularies. */
	write_text(test_path("other/settings.json"), "{\"task\": \"mrpc\"}");
	write_vocab("tuned", "cat");
	write_vocab("other", "dog");
	assert_program(0, "", "compare --json %s/tuned %s/other", test_folder, test_folder);
	assert_non_null(strstr(buffer_string(&program_output), "\"comparable\":true"));
}

/* Held-out figures are those of one set in both runs, in whatever order they were evaluated. */
static void test_sets(void **state)
{
	static const char line[] = "{\"step\":10,\"eval_set\":\"%s\",\"eval_%s_loss\":%s,\"tokens\":10,\"seconds\":1}\n";
	static const char *const sets[3][2] = {{"old", "new"}, {"new", "old"}, {"one", "two"}};
	char path[64];
	for (int i = 0; i < 3; i++) {
		struct buffer text = {0};
		for (int k = 0; k < 2; k++)
			buffer_format(&text, line, sets[i][k], sets[i][k], strcmp(sets[i][k], "old") == 0 ? "0.5" : "0.9");
		snprintf(path, sizeof path, "sets%d.jsonl", i);
		assert_ok(file_write(test_path(path), text.data, text.size));
		buffer_release(&text);
	}
	assert_program(1, "", "compare %s/sets0.jsonl %s/sets1.jsonl --points 1 --json", test_folder, test_folder);
	assert_printed("\"comparable\":true");
	assert_printed("\"a\":{\"loss\":null,\"eval_loss\":0.5},\"b\":{\"loss\":null,\"eval_loss\":0.5}");
	assert_program(1, "no evaluation set of the same name (old and one)", "compare %s/sets0.jsonl %s/sets2.jsonl --json",
		       test_folder, test_folder);
	assert_printed("\"comparable\":false");
}

static void test_what_cannot_be_compared(void **state)
{
	assert_program(2, "two paths", "compare %s/a", test_folder);
	assert_program(2, "no such file", "compare %s/a %s/nowhere", test_folder, test_folder);
	assert_program(2, "no weights in the folder", "compare %s/a %s/run", test_folder, test_folder);
	assert_program(2, "--out is for two runs", "compare %s/a %s/same --out x.html", test_folder, test_folder);
	assert_program(2, "not written to standard output", "compare %s/better %s/run --out -", test_folder, test_folder);
	assert_program(2, "run/metrics.jsonl', which is read", "compare %s/better %s/run --out %s/run/metrics.jsonl", test_folder,
		       test_folder, test_folder);
	assert_program(2, "run/settings.json', which is read", "compare %s/run %s/better --out %s/run/settings.json", test_folder,
		       test_folder, test_folder);
	write_text(test_path("empty.jsonl"), "");
	assert_program(3, "no logged step", "compare %s/run %s/empty.jsonl", test_folder, test_folder);
	write_text(test_path("torn.safetensors"), "torn");
	assert_program(3, "torn.safetensors", "compare %s/a %s/torn.safetensors", test_folder, test_folder);
}

static void write_in(const char *folder, const char *name, const char *text)
{
	char path[PATH_BYTES];
	snprintf(path, sizeof path, "%s/%s/%s", test_folder, folder, name);
	write_text(path, text);
}

/* Everything in a model's folder is part of the model. */
static void test_files_of_models(void **state)
{
	static const struct {
		const char *name, *a, *b;
	} files[] = {
		{"1_Pooling/config.json", "{\"pooling_mode_mean_tokens\": true}", "{\"pooling_mode_mean_tokens\": false}"},
		{"config_sentence_transformers.json", "{\"prompts\": {\"query\": \"q: \"}}", "{\"prompts\": {\"query\": \"\"}}"},
		{"sentence_bert_config.json", "{\"max_seq_length\": 128}", "{\"max_seq_length\": 512}"},
		{"modules.json", "[{\"idx\": 0}]", "[{\"idx\": 1}]"},
		{"bertc_task.json", "{\"task\": \"pair\"}", "{\"task\": \"classification\"}"},
		{"bertc_task.json", "{\"labels\": [\"0\", \"1\"]}", "{\"labels\": [\"0\", \"1.0\"]}"},
		{"special_tokens_map.json", "{\"unk_token\": \"[UNK]\"}", "{\"unk_token\": \"<unk>\"}"},
		{"tokenizer.json", "{\"model\": {\"a\": 1}}", "{\"model\": {\"a\": 2}}"},
		{"merges.txt", "a b\n", "a c\n"},
	};
	char command[1024];
	write_model("model-a", 0, CONFIG, true);
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		snprintf(command, sizeof command,
			 "cd %s && rm -rf left right && mkdir -p left/1_Pooling right/1_Pooling && cp model-a/* left && cp "
			 "model-a/* right",
			 test_folder);
		assert_int_equal(system(command), 0);
		write_in("left", files[i].name, files[i].a);
		write_in("right", files[i].name, files[i].a);
		assert_program(0, "", "compare %s/left %s/right", test_folder, test_folder);
		write_in("right", files[i].name, files[i].b);
		if (program("compare %s/left %s/right", test_folder, test_folder) != 1)
			fail_msg("%s: the difference is not seen", files[i].name);
		/* A file that one of them lacks is a difference, unless others say the same of the tokenizer. */
		bool spare =
			strcmp(files[i].name, "tokenizer.json") == 0 || strcmp(files[i].name, "special_tokens_map.json") == 0;
		snprintf(command, sizeof command, "rm %s/right/%s", test_folder, files[i].name);
		assert_int_equal(system(command), 0);
		if (program("compare %s/left %s/right", test_folder, test_folder) != !spare ||
		    program("compare %s/right %s/left", test_folder, test_folder) != !spare)
			fail_msg("%s: missing in one folder, exit codes for both orders: not %d", files[i].name, !spare);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_models), cmocka_unit_test(test_files_of_models),
		cmocka_unit_test(test_runs),   cmocka_unit_test(test_runs_of_different_things),
		cmocka_unit_test(test_sets),   cmocka_unit_test(test_what_cannot_be_compared),
	};
	return cmocka_run_group_tests(tests, test_folder_make, program_teardown);
}
