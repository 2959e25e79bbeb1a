/* The choices of back ends in a checkpoint's record: a made-up back end supplies lines and accepts them. */
#include "test.h"
#include "train/checkpoint_internal.h"

static const char *own_lines;
static struct buffer taken;

static void give(struct backend *be, struct buffer *out)
{
	(void)be;
	buffer_text(out, own_lines);
}

/* Like a back end on "device A". */
static bool take(struct backend *be, const char *lines)
{
	(void)be;
	if (strncmp(lines, "device A\n", 9) != 0)
		return false;
	buffer_text(&taken, lines + 9);
	return true;
}

static const struct backend_functions functions = {.choices = give, .use_choices = take}, none;

static void use(const char *text, int32_t rank, const char *expected)
{
	struct backend be = {.functions = &functions};
	struct json_document document;
	buffer_clear(&taken);
	assert_ok(json_parse(&document, "record", text, strlen(text)));
	assert_ok(checkpoint_choices_use(document.root, "record", rank, &be));
	assert_string_equal(buffer_string(&taken), expected);
	json_release(&document);
}

static void a_rank_takes_its_own_first(void **state)
{
	static const char two[] = "{\"choices\": [[\"device A\", \"x = 1\", \"y = 2\"], [\"device A\", \"y = 3\"]]}";
	use(two, 0, "x = 1\ny = 2\n");
	use(two, 1, "y = 3\nx = 1\ny = 2\n");
	use(two, 7, "x = 1\ny = 2\n"); /* more ranks than before */
	use("{\"choices\": [[\"device B\", \"x = 1\"], [\"device A\", \"x = 2\"]]}", 0, "");
	use("{\"choices\": [[\"device B\", \"x = 1\"], [\"device A\", \"x = 2\"]]}", 1, "x = 2\n");
	use("{\"choices\": []}", 0, "");
	use("{}", 0, "");
}

static void what_was_written_is_read(void **state)
{
	struct backend be = {.functions = &functions}, other = {.functions = &none};
	struct buffer list = {0}, record = {0};
	own_lines = "device A\nx = \"1\"\ny = 2\n";
	assert_ok(checkpoint_choices_write(&list, NULL, &be));
	buffer_format(&record, "{\"choices\": %s}", buffer_string(&list));
	use(buffer_string(&record), 0, "x = \"1\"\ny = 2\n");
	buffer_clear(&list);
	assert_ok(checkpoint_choices_write(&list, NULL, &other));
	assert_int_equal(list.size, 0);
	buffer_release(&list);
	buffer_release(&record);
}

static void damage_is_said(void **state)
{
	static const char *const texts[] = {"{\"choices\": [\"x = 1\"]}", "{\"choices\": [[\"device A\"], 3]}"};
	struct backend be = {.functions = &functions};
	for (size_t i = 0; i < 2; i++) {
		struct json_document document;
		assert_ok(json_parse(&document, "record", texts[i], strlen(texts[i])));
		assert_error(ERR_DATA, "'record': 'choices'", checkpoint_choices_use(document.root, "record", 1, &be));
		json_release(&document);
	}
}

static int teardown(void **state)
{
	buffer_release(&taken);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rank_takes_its_own_first),
		cmocka_unit_test(what_was_written_is_read),
		cmocka_unit_test(damage_is_said),
	};
	return cmocka_run_group_tests(tests, NULL, teardown);
}
