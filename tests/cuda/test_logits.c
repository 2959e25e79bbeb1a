/* Logits that are not finite, on the emulated device: a word with logit -inf has no share in the sum, and a NaN anywhere
 * makes the loss NaN, whichever thread reads it. */
#include "beside_reference.h"

static int open_device(void **state)
{
	open_both(9, 0, &(struct backend_settings){.device = "cuda", .dtype = DTYPE_F32});
	return 0;
}

static int close_device(void **state)
{
	close_both();
	return 0;
}

/* Not the word of a label: its loss would be infinite. */
static void forbid_word(struct test_case *c, int word)
{
	const struct array *labels = get_array(c, "labels");
	for (int64_t i = 0; i < labels->columns; i++)
		if ((int)labels->value[i] == word)
			return;
	get_array(c, "bias")->value[word] = -INFINITY;
}

static void words_that_cannot_be_have_no_share(void **state)
{
	/* The first thread has words 0 to 3, 4,096 to 4,099 and 4,200. */
	static const int first[] = {0, 2, 4096, 4200}, count[] = {8, 2, 105, 1};
	struct checker k = {.backend = be};
	for (int i = 0; i < 4; i++) {
		struct test_case c;
		case_create(&c, "vocab_xent P=3 V=4201 H=8", DTYPE_F32, &ref_replica);
		for (int word = first[i]; word < first[i] + count[i]; word++)
			forbid_word(&c, word);
		case_expect(&c, ref);
		check_case(&k, &c);
		case_release(&c);
	}
	assert_int_equal(k.failures, 0);
}

static double loss_with(const char *line, const char *name, int element, double value)
{
	struct test_case c;
	struct replica replica;
	struct bound b;
	double loss;
	case_create(&c, line, DTYPE_F32, &ref_replica);
	get_array(&c, name)->value[element] = value;
	assert_ok(be->functions->replica_create(be, &replica, &c.limits));
	bound_create(&b, &c, be, &replica);
	bound_run(&b);
	be->functions->to_host(be, &loss, b.tensor[find_array(&c, "loss")].data, sizeof loss);
	bound_release(&b);
	be->functions->replica_release(&replica);
	case_release(&c);
	return loss;
}

static void one_nan_makes_the_loss_nan(void **state)
{
	for (int word = 0; word < 53; word++)
		assert_true(isnan(loss_with("vocab_xent P=7 V=53 H=16", "bias", word, NAN)));
	for (int class = 0; class < 3; class ++)
		assert_true(isnan(loss_with("xent N=1 C=3", "logits", class, NAN)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_that_cannot_be_have_no_share),
		cmocka_unit_test(one_nan_makes_the_loss_nan),
	};
	setenv("BERTC_CACHE", "", 1); /* no cache file */
	return cmocka_run_group_tests(tests, open_device, close_device);
}
