/* Shared by the tests of small training runs: a corpus of sentences that follow a pattern, a small model's configuration,
 * and access to the numbers of metrics.jsonl. */
#ifndef TESTS_CMD_SMALL_RUN_H
#define TESTS_CMD_SMALL_RUN_H

#include <math.h>
#include "base/json.h"
#include "base/rng.h"
#include "cmd/program.h"

static char corpus[128], config[128]; /* their paths */

/* Makes both files in the test folder. */
static inline int small_run_files(uint64_t seed)
{
	static const char *const who[] = {"the cat", "a dog", "the old man", "my sister", "nobody", "the sailor"};
	static const char *const does[] = {"sees", "likes", "finds", "follows", "paints"};
	static const char *const what[] = {"the house", "a river", "the red boat", "some bread", "the moon"};
	static const char model[] = "{\"model_type\": \"bert\", \"hidden_size\": 32, \"num_hidden_layers\": 2, "
				    "\"num_attention_heads\": 2, \"intermediate_size\": 64, \"hidden_act\": \"gelu\", "
				    "\"max_position_embeddings\": 64, \"type_vocab_size\": 2}";
	struct buffer text = {0};
	struct rng rng = rng_start(seed, RNG_TEST, 0);
	for (int document = 0; document < 60; document++) {
		for (int sentence = 0; sentence < 6; sentence++)
			buffer_format(&text, "%s %s %s.\n", who[rng_below(&rng, 6)], does[rng_below(&rng, 5)],
				      what[rng_below(&rng, 5)]);
		buffer_char(&text, '\n');
	}
	snprintf(corpus, sizeof corpus, "%s/corpus.txt", test_folder);
	snprintf(config, sizeof config, "%s/config.json", test_folder);
	assert_ok(file_write(corpus, text.data, text.size));
	assert_ok(file_write(config, model, strlen(model)));
	buffer_release(&text);
	return 0;
}

/* Makes the test folder with both files in it. */
static inline int small_run_make(void **state, uint64_t seed)
{
	return test_folder_make(state) == 0 ? small_run_files(seed) : -1;
}

/* The number `name` of a step in a metrics.jsonl; the last line for the step counts. */
static inline double metric_at(const char *path, int64_t step, const char *name)
{
	struct buffer text = {0};
	double found = NAN;
	assert_ok(file_read(path, 1 << 24, &text));
	for (char *rest = text.data, *line; (line = strtok_r(rest, "\n", &rest));) {
		struct json_document document;
		int64_t number = -1;
		assert_ok(json_parse(&document, path, line, strlen(line)));
		assert_ok(json_get_integer(document.root, path, "step", 0, INT64_MAX, &number));
		if (number == step)
			assert_ok(json_get_number(document.root, path, name, &found));
		json_release(&document);
	}
	buffer_release(&text);
	return found;
}

#endif
