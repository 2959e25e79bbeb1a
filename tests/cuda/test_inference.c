/* Commands that use models, on the emulated device in bf16 and FP8: their output compared with the CPU's in fp32. */
#include "emulated_run.h"
#include "../serve/server.h"

static char texts[128], labeled[128], words[128], classes[128]; /* files; and models with and without a task */

/* Two models with a head of 64 columns, for which there are matrix kernels and those for few rows. */
static int setup(void **state)
{
	static const char lines[] =
		"the cat sees a river.\nnobody paints the moon.\nmy sister likes some bread. a dog follows the sailor.\n";
	static const char examples[] = "text\tlabel\nthe cat sees a river\tone\nnobody paints the moon\ttwo\n"
				       "a dog likes some bread\tone\nthe sailor finds the house\ttwo\n";
	if (emulated_run_setup(state) != 0)
		return -1;
	snprintf(texts, sizeof texts, "%s/texts.txt", test_folder);
	snprintf(labeled, sizeof labeled, "%s/labeled.tsv", test_folder);
	snprintf(words, sizeof words, "%s/words/final", test_folder);
	snprintf(classes, sizeof classes, "%s/classes/final", test_folder);
	assert_ok(file_write(texts, lines, strlen(lines)));
	assert_ok(file_write(labeled, examples, strlen(examples)));
	assert_program(
		0, "",
		"pretrain -q --corpus %s --model %s --hidden_size 64 --intermediate_size 128 --num_attention_heads 1 "
		"--vocab_size 100 --num_train_steps 20 "
		"--train_batch_size 8 --max_seq_length 32 --learning_rate 2e-3 --eval_steps 0 --device cpu --precision fp32 "
		"--out %s/words",
		corpus, config, test_folder);
	assert_program(
		0, "",
		"finetune -q --task classification --model %s --train %s --dev %s --num_train_steps 4 --train_batch_size 2 "
		"--max_seq_length 32 --device cpu --precision fp32 --out %s/classes",
		words, labeled, labeled, test_folder);
	return 0;
}

/* Collects the numbers in a text; the caller releases the buffer of doubles. */
static int64_t read_numbers(const char *text, struct buffer *out)
{
	for (char *end; *text; text = end) {
		end = (char *)(uintptr_t)text + 1;
		if ((*text >= '0' && *text <= '9') || *text == '-') {
			double number = strtod(text, &end);
			if (end == text)
				end++;
			else
				buffer_append(out, &number, sizeof number);
		}
	}
	return (int64_t)(out->size / sizeof(double));
}

/* Checks the distance of the answers, relative to the size of the expected ones. */
static void expect_answers_near(const char *what, const char *answers, const char *expected, double limit)
{
	struct buffer a = {0}, b = {0};
	int64_t count = read_numbers(expected, &b);
	double squares = 0, size = 0;
	if (count == 0 || read_numbers(answers, &a) != count)
		fail_msg("%s: other answers:\n%s\n%s", what, answers, expected);
	for (int64_t i = 0; i < count; i++) {
		double x = ((double *)(void *)a.data)[i], y = ((double *)(void *)b.data)[i];
		squares += (x - y) * (x - y);
		size += y * y;
	}
	double off = sqrt(squares / size);
	if (getenv("BERTC_TEST_MARGINS"))
		print_error("%s: %.2g of %.2g\n", what, off, limit);
	if (!(off <= limit))
		fail_msg("%s is %.2g off, limit %.2g:\n%s\n%s", what, off, limit, answers, expected);
	buffer_release(&a);
	buffer_release(&b);
}

static const struct {
	const char *name, *few_rows; /* BERTC_FEW_ROWS; on this device, measuring chooses the same as 1 */
	double vectors, losses;      /* limits, relative */
} precisions[] = {{"bf16", "1", 1e-2, 1e-3}, {"bf16", "0", 1e-2, 1e-3}, {"fp8", "1", 3e-2, 3e-3}};
enum { PRECISIONS = sizeof precisions / sizeof *precisions };

/* The precision's name, from now on in its way. */
static const char *precision(int p)
{
	setenv("BERTC_FEW_ROWS", precisions[p].few_rows, 1);
	return precisions[p].name;
}

/* Removes the measures after an evaluation's loss: with so few examples they change in jumps. */
static void keep_loss(char *text)
{
	char *loss = strstr(text, "loss\":");
	if (loss)
		loss[strcspn(loss, ",}")] = '\0';
}

static void commands_answer_as_on_the_cpu(void **state)
{
	enum { COMMANDS = 5 };
	char commands[COMMANDS][512], expected[1 << 14], answers[1 << 14], what[64];
	snprintf(commands[0], sizeof commands[0], "embed -q --model %s %s", words, texts);
	snprintf(commands[1], sizeof commands[1], "score -q --model %s %s", words, texts);
	snprintf(commands[2], sizeof commands[2], "evaluate -q --json --model %s --corpus %s --max_seq_length 32", words, corpus);
	snprintf(commands[3], sizeof commands[3], "predict -q --model %s %s", classes, texts);
	snprintf(commands[4], sizeof commands[4], "evaluate -q --json --model %s --test %s", classes, labeled);
	for (int i = 0; i < COMMANDS; i++) {
		assert_program(0, "", "%s --device cpu --precision fp32", commands[i]);
		assert_true(program_output.size < sizeof expected);
		snprintf(expected, sizeof expected, "%s", buffer_string(&program_output));
		keep_loss(expected);
		for (int p = 0; p < PRECISIONS; p++) {
			assert_program(0, "", "%s --device cuda --precision %s", commands[i], precision(p));
			snprintf(answers, sizeof answers, "%s", buffer_string(&program_output));
			keep_loss(answers);
			snprintf(what, sizeof what, "%.*s in %s", (int)strcspn(commands[i], " "), commands[i],
				 precisions[p].name);
			expect_answers_near(what, answers, expected, i == 0 ? precisions[p].vectors : precisions[p].losses);
		}
	}
}

static void words_are_filled_in_as_on_the_cpu(void **state)
{
	char expected[64];
	assert_program(0, "", "fill -q --model %s --device cpu --precision fp32 \"the cat [MASK] a river.\"", words);
	snprintf(expected, sizeof expected, "%.*s", (int)strcspn(buffer_string(&program_output), "\n"),
		 buffer_string(&program_output));
	for (int p = 0; p < PRECISIONS; p++) {
		assert_program(0, "", "fill -q --model %s --device cuda --precision %s \"the cat [MASK] a river.\"", words,
			       precision(p));
		assert_non_null(strstr(buffer_string(&program_output), expected));
	}
}

static void a_server_answers_as_on_the_cpu(void **state)
{
	static const char body[] = "{\"inputs\": \"the cat sees a river.\"}";
	struct server server;
	char arguments[512], expected[1 << 14];
	snprintf(arguments, sizeof arguments, "--model %s --device cpu --precision fp32", words);
	server_start(&server, arguments);
	snprintf(expected, sizeof expected, "%s", ask(&server, 200, "/embed", body));
	server_stop(&server);
	for (int p = 0; p < PRECISIONS; p++) {
		snprintf(arguments, sizeof arguments, "--model %s --device cuda --precision %s", words, precision(p));
		server_start(&server, arguments);
		for (int i = 0; i < 3; i++) /* the third is a recorded graph */
			expect_answers_near("serve", ask(&server, 200, "/embed", body), expected, precisions[p].vectors);
		server_stop(&server);
	}
}

static void a_bench_has_a_speed(void **state)
{
	for (int p = 0; p < PRECISIONS; p++) {
		assert_program(
			0, "",
			"bench --json --mode inference --model %s --vocab_size 100 --max_seq_length 16 --train_batch_size 1 "
			"--steps 1 --device cuda --precision %s",
			config, precision(p));
		assert_non_null(strstr(buffer_string(&program_output), "\"sequences_per_second\":"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(commands_answer_as_on_the_cpu),
		cmocka_unit_test(words_are_filled_in_as_on_the_cpu),
		cmocka_unit_test(a_server_answers_as_on_the_cpu),
		cmocka_unit_test(a_bench_has_a_speed),
	};
	return cmocka_run_group_tests(tests, setup, program_teardown);
}
