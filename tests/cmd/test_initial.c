/* Starting from foreign weights: a TensorFlow checkpoint and a PyTorch file, tests/golden/bert_tiny*, as a user gives them
 * to pretrain, evaluate, fill and inspect. */
#include "base/rng.h"
#include "cmd/program.h"

#define CONFIG                                                                                                                   \
	"{\"vocab_size\": 13, \"hidden_size\": 8, \"num_hidden_layers\": 1, \"num_attention_heads\": 2, "                        \
	"\"intermediate_size\": 12, \"hidden_act\": \"gelu\", \"max_position_embeddings\": 10, \"type_vocab_size\": 2}"
#define SPECIAL "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n"
#define VOCAB SPECIAL "a\nb\nc\nd\ne\nf\ng\n.\n"
#define OTHER_VOCAB SPECIAL "g\nf\nz\n.\n"

static void copy(const char *from, const char *to)
{
	struct buffer bytes = {0};
	assert_ok(file_read(from, 1 << 20, &bytes));
	assert_ok(file_write(test_path(to), bytes.data, bytes.size));
	buffer_release(&bytes);
}

static int setup(void **state)
{
	if (test_folder_make(state) != 0)
		return -1;
	struct buffer text = {0};
	struct rng rng = rng_start(5, RNG_TEST, 0);
	for (int document = 0; document < 60; document++) {
		for (int sentence = 0; sentence < 5; sentence++) {
			for (int word = 0; word < 3; word++)
				buffer_format(&text, "%c ", (char)('A' + (int)rng_below(&rng, 7)));
			buffer_text(&text, ".\n");
		}
		buffer_char(&text, '\n');
	}
	put_file("corpus.txt", buffer_string(&text));
	buffer_release(&text);
	assert_ok(folder_make(test_path("google")));
	copy("tests/golden/bert_tiny.ckpt.index", "google/bert_model.ckpt.index");
	copy("tests/golden/bert_tiny.ckpt.data-00000-of-00001", "google/bert_model.ckpt.data-00000-of-00001");
	put_file("google/bert_config.json", CONFIG);
	put_file("google/vocab.txt", VOCAB);
	put_file("other.txt", OTHER_VOCAB);
	assert_ok(folder_make(test_path("nvidia")));
	copy("tests/golden/bert_tiny_nvidia.pt", "nvidia/ckpt_7038.pt");
	return 0;
}

#define RUN(source, out, more)                                                                                                   \
	"pretrain --corpus %s/corpus.txt --init_checkpoint %s/" source " --out %s/" out                                          \
	" --train_batch_size 4 --num_train_steps 2 --threads 1 --precision fp32 " more,                                          \
		test_folder, test_folder, test_folder

static void evaluate(const char *model, struct buffer *out)
{
	if (program("evaluate --model %s --corpus %s/corpus.txt --max_seq_length 10 --precision fp32 --json", model,
		    test_folder) != 0)
		fail_msg("%s", buffer_string(&program_errors));
	buffer_clear(out);
	buffer_append(out, program_output.data, program_output.size);
}

static void a_checkpoint_alone_is_enough(void **state)
{
	struct buffer before = {0}, after = {0};
	/* With a learning rate of 0 the run ends with the weights it began with. */
	assert_program(0, "30 of the model's 30 tensors", RUN("google", "still", "--learning_rate 0 --max_seq_length 10"));
	assert_non_null(strstr(buffer_string(&program_errors), "TensorFlow checkpoint, F32"));
	assert_non_null(strstr(buffer_string(&program_errors), "optimizer state, ignored: 60"));
	assert_non_null(strstr(buffer_string(&program_errors), "lower-cased"));
	assert_non_null(strstr(buffer_string(&program_errors), "gelu (tanh)"));
	evaluate(test_path("google"), &before);
	evaluate(test_path("still"), &after);
	assert_string_equal(buffer_string(&before), buffer_string(&after));
	/* Google's configuration does not say what a model was fine-tuned for. */
	assert_program(2, "\"architectures\": [\"BertForSequenceClassification\"]", "predict --model %s/google", test_folder);
	evaluate(test_path("google/bert_model.ckpt"), &after);
	assert_string_equal(buffer_string(&before), buffer_string(&after));
	/* Its configuration, and a learning rate for trained weights, are chosen automatically. */
	assert_program(0, "a quarter", RUN("google/bert_model.ckpt", "moved", "--max_seq_length 10"));
	evaluate(test_path("moved"), &after);
	assert_string_not_equal(buffer_string(&before), buffer_string(&after));
	/* Run again without the source: the run has everything it needs. */
	assert_program(0, "finished", "pretrain --out %s/moved --corpus %s/corpus.txt", test_folder, test_folder);
	buffer_release(&before);
	buffer_release(&after);
}

static void what_is_missing_is_asked_for(void **state)
{
	assert_program(2, "--init_vocab", RUN("nvidia", "n1", "--max_seq_length 10"));
	assert_program(2, "bert_config.json", RUN("nvidia", "n1", "--max_seq_length 10 --vocab_file %s/other.txt"), test_folder);
	put_file("nvidia/bert_config.json", CONFIG);
	put_file("nvidia/vocab.txt", VOCAB);
	assert_program(0, "3 rows of padding", RUN("nvidia", "n2", "--max_seq_length 10"));
	assert_program(2, "no such file", RUN("nowhere", "n3", ""));
	assert_program(2, "need --init_checkpoint", "pretrain --corpus %s/corpus.txt --model tiny --out %s/n4 --remap_vocab",
		       test_folder, test_folder);
}

/* Four heads instead of two would load, but compute something else. */
static void another_shape_is_refused_at_once(void **state)
{
	const char *heads = strstr(CONFIG, "\"num_attention_heads\": 2");
	size_t at = (size_t)(heads - CONFIG) + strlen("\"num_attention_heads\": ");
	char config[] = CONFIG;
	config[at] = '4';
	put_file("heads.json", config);
	assert_program(4, "has num_attention_heads 4, but the weights in", RUN("google", "s1", "--model %s/heads.json"),
		       test_folder);
	assert_program(4, "--model tiny has num_hidden_layers 2, but the weights in", RUN("google", "s1", "--model tiny"));
	assert_false(file_exists(test_path("s1/data"))); /* before the text was prepared */
	put_file("heads.json", CONFIG);
	assert_program(0, "finished", RUN("google", "s1", "--max_seq_length 10 --model %s/heads.json"), test_folder);
}

static void another_vocabulary_on_request(void **state)
{
	assert_program(4, "entry 5 is 'g', there 'a'", RUN("google", "v1", "--max_seq_length 10 --vocab_file %s/other.txt"),
		       test_folder);
	assert_false(file_exists(test_path("v1/data"))); /* before the text was prepared with it */
	assert_program(0, "the embeddings of 8 tokens are copied; 0 new ones begin as the mean of their pieces, 1 are drawn",
		       RUN("google", "v1", "--max_seq_length 10 --remap_vocab --vocab_file %s/other.txt"), test_folder);
	assert_program(0, "are copied", RUN("google", "v2", "--max_seq_length 10 --remap_vocab --vocab_size 12"));
}

static void more_positions_on_request(void **state)
{
	assert_program(2, "beyond the model's 10 positions", RUN("google", "p1", "--max_seq_length 16"));
	assert_program(0, "10 there, 16 here (tile)", RUN("google", "p1", "--max_seq_length 16 --init_positions tile"));
}

static void others_are_looked_into(void **state)
{
	assert_int_equal(program("inspect %s/google --tensors", test_folder), 0);
	assert_non_null(strstr(buffer_string(&program_output), "TensorFlow checkpoint"));
	assert_non_null(strstr(buffer_string(&program_output), "bert.encoder.layer.0.output.dense.weight"));
	assert_int_equal(program("inspect tests/golden/bert_tiny_nvidia.pt"), 0);
	assert_non_null(strstr(buffer_string(&program_output), "epoch                    2"));
	assert_int_equal(program("fill --model %s/google --json 'a [MASK] b'", test_folder), 0);
	copy("tests/golden/bert_tiny.ckpt.index", "alone.index");
	assert_int_equal(program("inspect %s/alone", test_folder), 0);
	assert_non_null(strstr(buffer_string(&program_output), "data files are missing"));
	assert_program(2, "alone.data-00000-of-00001", RUN("alone", "x", ""));
	assert_false(file_exists(test_path("x/data"))); /* before the text was prepared */
}

static void new_models_may_begin_with_neighbors(void **state)
{
	struct buffer random = {0}, neighbors = {0}, after = {0};
#define NEW(out, more)                                                                                                           \
	"pretrain --corpus %s/corpus.txt --model %s/google/bert_config.json --vocab_file %s/google/vocab.txt --out %s/" out      \
	" --max_seq_length 10 --train_batch_size 4 --num_train_steps 1 --learning_rate 0 --threads 1 --precision fp32 " more,    \
		test_folder, test_folder, test_folder, test_folder
	assert_program(0, "finished", NEW("a1", ""));
	assert_null(strstr(buffer_string(&program_errors), "neighboring token"));
	assert_program(0, "look at a neighboring token", NEW("a2", "--init_attention neighbors"));
	evaluate(test_path("a1"), &random);
	evaluate(test_path("a2"), &neighbors);
	assert_string_not_equal(buffer_string(&random), buffer_string(&neighbors));
	assert_program(0, "look at a neighboring token", NEW("a3", "--init_attention neighbors --ranks 2"));
	evaluate(test_path("a3"), &after);
	assert_string_equal(buffer_string(&neighbors), buffer_string(&after));
	/* As part of a recipe the option applies to new models only; given explicitly, it must not be ignored. */
	assert_program(0, "30 of the model's 30 tensors", RUN("google", "a4", "--max_seq_length 10 --recipe fast"));
	assert_null(strstr(buffer_string(&program_errors), "neighboring token"));
	assert_program(2, "is for new models", RUN("google", "a5", "--max_seq_length 10 --init_attention neighbors"));
	buffer_release(&random);
	buffer_release(&neighbors);
	buffer_release(&after);
}

/* A trained model needs fewer passes over its text than a new one. */
static void trained_models_read_less(void **state)
{
	const char *command =
		"pretrain --corpus %s/corpus.txt %s %s/google%s --out %s/passes --max_seq_length 10 --threads 1 --precision fp32 "
		"--plan %s";
	static const struct {
		const char *option, *file, *more;
		long passes;
	} runs[] = {
		{"--init_checkpoint", "", "", 10},
		{"--init_checkpoint", "", "--num_train_epochs 3", 3},
		{"--model", "/bert_config.json", "", 40},
	};
	for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
		int got = program(command, test_folder, runs[i].option, test_folder, runs[i].file, test_folder, runs[i].more);
		const char *row = strstr(buffer_string(&program_errors), "num_train_epochs ");
		assert_int_equal(got, 0);
		assert_non_null(row);
		assert_int_equal(strtol(row + strlen("num_train_epochs "), NULL, 10), runs[i].passes);
		assert_true((strstr(buffer_string(&program_errors), "a quarter of those of a new model") != NULL) == (i == 0));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_checkpoint_alone_is_enough),        cmocka_unit_test(what_is_missing_is_asked_for),
		cmocka_unit_test(another_shape_is_refused_at_once),    cmocka_unit_test(another_vocabulary_on_request),
		cmocka_unit_test(more_positions_on_request),           cmocka_unit_test(others_are_looked_into),
		cmocka_unit_test(new_models_may_begin_with_neighbors), cmocka_unit_test(trained_models_read_less),
	};
	return cmocka_run_group_tests(tests, setup, program_teardown);
}
