/* bertc bench: its measurements are complete and add up; what it cannot measure is refused. */
#include <math.h>
#include <string.h>
#include "base/json.h"
#include "cmd/program.h"

/* On arm64, all products are bertc's own. */
#ifdef __aarch64__
#define LIBRARY ""
#else
#define LIBRARY " --library"
#endif
#define SMALL "bench --model tiny --vocab_size 300 --max_seq_length 16 --train_batch_size 2 --steps 2 --threads 1 "

static double number(const struct json *object, const char *name)
{
	double value = 0;
	assert_non_null(json_member(object, name));
	assert_ok(json_get_number(object, "bench", name, &value));
	return value;
}

static void check_run(const struct json *run, int64_t tokens, const char *present)
{
	double seconds = number(run, "seconds"), sum = 0;
	assert_true(seconds > 0);
	assert_true(fabs(number(run, "tokens_per_second") * seconds - (double)tokens) < 1e-6 * (double)tokens);
	assert_true(number(run, "model_flops_per_second") > 0);
	const struct json *operations = json_member(run, "operations");
	bool found = false;
	assert_non_null(operations);
	for (const struct json *o = operations->first_child; o; o = o->next) {
		double part = number(o, "seconds");
		assert_true(part >= 0);
		assert_true(number(o, "calls") >= 1);
		sum += part;
		found |= strcmp(json_member(o, "operation")->text, present) == 0;
	}
	assert_true(found);
	/* Operations are timed in a pass separate from the one for `seconds`: on a busy machine the two may be far apart. */
	assert_true(sum > 0);
}

static void test_json(void **state)
{
	struct json_document document;
	assert_int_equal(program(SMALL "--precision fp32 --json" LIBRARY), 0);
	assert_ok(json_parse(&document, "bench", buffer_string(&program_output), program_output.size));
	const struct json *training = json_member(document.root, "training"),
			  *inference = json_member(document.root, "inference");
	assert_non_null(training);
	assert_non_null(inference);
	check_run(training, 32, "linear_bwd M=32 O=512 I=128");
	check_run(inference, 32, "linear_gelu_fwd M=32 O=512 I=128");
	if (sizeof LIBRARY > 1) {
		assert_true(number(training, "library_seconds") > number(inference, "library_seconds"));
		assert_true(number(training, "library_of_step") > 0);
	}
	assert_true(number(document.root, "gemm_flops_per_second") > 1e8);
	assert_true(number(inference, "seconds_per_step") == number(inference, "seconds"));
	assert_true(number(inference, "seconds_least") <= number(inference, "seconds"));
	assert_true(number(inference, "seconds_p99") >= number(inference, "seconds"));
	/* 2 layers, 128 wide, 512 inside, in fp32. */
	assert_true(number(inference, "weight_bytes") == 2 * (4 * 128 * 128 + 2 * 128 * 512) * 4);
	assert_true(number(inference, "floor_seconds") > 0 && number(inference, "read_bytes_per_second") > 0);
	assert_true(number(document.root, "peak_memory_bytes") > 1e6);
	json_release(&document);
}

/* Inference alone, in int8, on texts of the length of sentences. */
static void test_int8(void **state)
{
	struct json_document document;
	assert_int_equal(program("bench --model tiny --vocab_size 300 --max_seq_length 100 --train_batch_size 64 --steps 2 "
				 "--mode inference --heads none --precision int8 --sentence_lengths --json"),
			 0);
	assert_ok(json_parse(&document, "bench", buffer_string(&program_output), program_output.size));
	const struct json *inference = json_member(document.root, "inference"), *lengths = json_member(document.root, "lengths");
	double tokens = number(document.root, "tokens"), sum = 0;
	check_run(inference, (int64_t)tokens, "linear_fwd M=1823 O=384 I=128");
	assert_string_equal(json_member(document.root, "precision")->text, "int8");
	assert_true(number(inference, "weight_bytes") == 2 * (4 * 128 * 128 + 2 * 128 * 512));
	for (const struct json *o = json_member(inference, "operations")->first_child; o; o = o->next)
		assert_null(strstr(json_member(o, "operation")->text, "xent")); /* no head */
	for (const struct json *length = lengths->first_child; length; length = length->next) {
		assert_true(length->number >= 3 && length->number <= 100);
		sum += length->number;
	}
	assert_true(sum == tokens && fabs(tokens / 64 - 29) < 1);
	json_release(&document);
}

static void test_table(void **state)
{
	assert_int_equal(program(SMALL "--device ref --mode training --mixed_lengths --clock cpu"), 0);
	const char *text = buffer_string(&program_output);
	assert_non_null(strstr(text, "training: "));
	assert_null(strstr(text, "inference: "));
	assert_non_null(strstr(text, "attention_bwd"));
	assert_non_null(strstr(text, "sumsq_finite"));
	assert_non_null(strstr(text, "weights_refresh"));
}

static void test_refused(void **state)
{
	assert_int_equal(program("bench --model tiny --max_seq_length 4096"), 2);
	assert_int_equal(program(SMALL "--device ref --library"), 2);
	assert_int_equal(program("bench --model huge"), 2);
	assert_program(2, "give one of them", SMALL "--mixed_lengths --sentence_lengths");
	assert_int_equal(program(SMALL "--device cpu --precision int8 --mode training"), 2);
	assert_int_equal(program(SMALL "--device cpu --precision int8"), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_int8),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_refused),
	};
	return cmocka_run_group_tests(tests, test_folder_make, program_teardown);
}
