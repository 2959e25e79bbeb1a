/* The loss scale that a resumed run uses. The guard's reaction to the numbers of a run is tested in test_loop.c. */
#include <string.h>

#include "test.h"
#include "train/guard.h"

static const struct guard_settings dynamic_scale = {.loss_scale = 65536, .dynamic = true}, fixed_scale = {.loss_scale = 1};

/* The state as restored from a checkpoint; `without`: a member that an earlier version did not write. */
static struct guard_state gone_on_with(const struct guard_state *state, const char *without)
{
	struct buffer text = {0};
	struct json_writer writer = {.out = &text};
	struct json_document document;
	struct guard_state out;
	json_open(&writer, NULL, '{');
	guard_write(state, &writer, "guard");
	json_close(&writer);
	if (without) {
		char *found = strstr(text.data, without);
		assert_non_null(found);
		found[0] = '?';
	}
	assert_ok(json_parse(&document, "state", text.data, text.size));
	assert_ok(guard_read(&out, json_member(document.root, "guard"), "state", 7));
	json_release(&document);
	buffer_release(&text);
	return out;
}

static void test_dynamic_scale_goes_on(void **state)
{
	struct guard_state guard = {0};
	guard_start(&guard, &dynamic_scale);
	assert_true(guard.loss_scale == 65536 && guard.dynamic);
	guard.loss_scale = 1; /* after sixteen overflows */
	guard.clean_steps = 7;
	guard = gone_on_with(&guard, NULL);
	guard_start(&guard, &dynamic_scale);
	assert_true(guard.loss_scale == 1 && guard.clean_steps == 7);
}

/* fp32 or bf16 so far, then fp16: from 1 it would take 32,000 steps to reach 65536, with vanishing gradients. */
static void test_scale_becomes_dynamic(void **state)
{
	for (int earlier = 0; earlier < 2; earlier++) {
		struct guard_state guard = {0};
		guard_start(&guard, &fixed_scale);
		guard = gone_on_with(&guard, earlier ? "dynamic" : NULL);
		assert_true(guard.loss_scale == 1);
		guard_start(&guard, &dynamic_scale);
		assert_true(guard.loss_scale == 65536 && guard.dynamic);
	}
}

static void test_scale_becomes_fixed(void **state)
{
	struct guard_state guard = {0};
	guard_start(&guard, &dynamic_scale);
	guard = gone_on_with(&guard, NULL);
	guard_start(&guard, &fixed_scale);
	assert_true(guard.loss_scale == 1 && !guard.dynamic);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dynamic_scale_goes_on),
		cmocka_unit_test(test_scale_becomes_dynamic),
		cmocka_unit_test(test_scale_becomes_fixed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
