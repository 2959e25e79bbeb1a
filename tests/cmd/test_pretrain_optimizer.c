/* Optimizers and schedules as a user requests them: what is chosen, what a run does with it, what is refused. */
#include <math.h>
#include "base/json.h"
#include "cmd/small_run.h"

#define CONFIG                                                                                                                   \
	"{\"model_type\": \"bert\", \"hidden_size\": 16, \"num_hidden_layers\": 1, "                                             \
	"\"num_attention_heads\": 2, \"intermediate_size\": 32, \"hidden_act\": \"gelu\", "                                      \
	"\"max_position_embeddings\": 32, \"type_vocab_size\": 2}"

static int setup(void **state)
{
	if (test_folder_make(state) != 0)
		return -1;
	struct buffer text = {0};
	for (int i = 0; i < 300; i++)
		buffer_format(&text, "sentence %d has a few words more.\n%s", i % 17, i % 5 == 4 ? "\n" : "");
	snprintf(corpus, sizeof corpus, "%s/corpus.txt", test_folder);
	snprintf(config, sizeof config, "%s/config.json", test_folder);
	assert_ok(file_write(corpus, text.data, text.size));
	assert_ok(file_write(config, CONFIG, strlen(CONFIG)));
	buffer_release(&text);
	return 0;
}

#define RUN(out, more)                                                                                                           \
	"pretrain --corpus %s --model %s --out %s/" out " --vocab_size 60 --train_batch_size 8 "                                 \
	"--max_seq_length 24 --num_train_steps 10 --log_steps 1 --precision fp32 " more,                                         \
		corpus, config, test_folder

/* A stopped and resumed LAMB run ends with the bits of an uninterrupted one; the defaults are NVIDIA's. */
static void test_lamb(void **state)
{
	assert_program(0, "finished", RUN("whole", "--optimizer lamb --learning_rate 1e-2 --num_warmup_steps 2"));
	assert_program(75, "", RUN("parts", "--optimizer lamb --learning_rate 1e-2 --num_warmup_steps 2 --stop_at_step 4"));
	assert_program(0, "resuming from", RUN("parts", "--threads 1"));
	assert_same_file(test_path("whole/final/model.safetensors"), test_path("parts/final/model.safetensors"));
	/* poly of degree 0.5 */
	assert_near(metric_at(test_path("whole/metrics.jsonl"), 2, "learning_rate"), 1e-2, 1e-12);
	assert_near(metric_at(test_path("whole/metrics.jsonl"), 10, "learning_rate"), 1e-2 * sqrt(1.0 / 9), 1e-12);
	assert_program(4, "optimizer", RUN("parts", "--optimizer nvlamb"));
}

/* NVLAMB with the batch size of You et al. uses their rate. */
static void test_choices(void **state)
{
	static const char *const chosen[][2] = {{"  learning_rate ", " 0.005 "},
						{"  schedule ", " poly "},
						{"  poly_degree ", " 0.5 "},
						{"  trust_ratio ", " all "},
						{"  bias_correction ", " true "}};
	assert_program(0, "memory plan", RUN("plan", "--plan --optimizer nvlamb --train_batch_size 32768"));
	for (size_t i = 0; i < sizeof chosen / sizeof *chosen; i++) {
		const char *row = strstr(buffer_string(&program_errors), chosen[i][0]);
		assert_non_null(row);
		const char *value = strstr(row, chosen[i][1]);
		assert_true(value && value < strchr(row, '\n'));
	}
}

static void test_schedules(void **state)
{
	assert_program(0, "finished",
		       RUN("slanted", "--schedule slanted_triangular --warmup_proportion 0.2 --learning_rate 3.2e-3"));
	assert_near(metric_at(test_path("slanted/metrics.jsonl"), 2, "learning_rate"), 3.2e-3, 1e-12);
	assert_near(metric_at(test_path("slanted/metrics.jsonl"), 10, "learning_rate"), 1e-4, 1e-12);
	assert_program(0, "finished",
		       RUN("google", "--schedule google_linear --num_warmup_steps 4 --optimizer google_adamw "
				     "--learning_rate 1e-3 --adam_epsilon 1e-8"));
	assert_near(metric_at(test_path("google/metrics.jsonl"), 1, "learning_rate"), 0, 0);
	assert_near(metric_at(test_path("google/metrics.jsonl"), 5, "learning_rate"), 6e-4, 1e-12);
	assert_program(0, "finished",
		       RUN("nvidia", "--schedule nvidia_poly --warmup_proportion 0.25 --learning_rate 1e-3 --optimizer lamb"));
	assert_near(metric_at(test_path("nvidia/metrics.jsonl"), 2, "learning_rate"), 8e-4, 1e-12);
	assert_near(metric_at(test_path("nvidia/metrics.jsonl"), 3, "learning_rate"), 1e-3 * sqrt(0.7), 1e-12);
}

static void test_refused(void **state)
{
	assert_program(2, "--trust_ratio has no effect with --optimizer adamw", RUN("bad", "--trust_ratio all"));
	assert_program(2, "--gradient_averaging has no effect", RUN("bad", "--no_gradient_averaging"));
	assert_program(2, "--exclude_from_layer_adaptation has no effect", RUN("bad", "--exclude_from_layer_adaptation bias"));
	assert_program(2, "give either", RUN("bad", "--num_warmup_steps 3 --warmup_proportion 0.1"));
	assert_program(2, "more than the 10 steps", RUN("bad", "--num_warmup_steps 11"));
	assert_program(2, "--min_learning_rate 0.01 is above", RUN("bad", "--learning_rate 1e-3 --min_learning_rate 1e-2"));
	assert_program(2, "must be one of", RUN("bad", "--schedule triangle"));
	assert_program(2, "adam_epsilon", RUN("bad", "--adam_epsilon 0"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lamb),
		cmocka_unit_test(test_choices),
		cmocka_unit_test(test_schedules),
		cmocka_unit_test(test_refused),
	};
	return cmocka_run_group_tests(tests, setup, program_teardown);
}
