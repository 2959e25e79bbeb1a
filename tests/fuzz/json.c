/* The JSON reader. Accepted input is also written out again, and must be accepted again. */
#include "base/json.h"
#include "fuzz.h"

FUZZ_SEEDS(FUZZ_SEED("{\"a\": [1, -2.5e3, true, false, null], \"b\": {\"c\": \"d\"}}"),
	   FUZZ_SEED("\"\\ud83d\\ude00 \\u0000 \\n\\\"\""), FUZZ_SEED("[9223372036854775807, 1e308, 0.1]"),
	   FUZZ_SEED("[[[[[[]]]]]]"))

static void write_again(struct json_writer *writer, const struct json *value)
{
	switch (value->kind) {
	case JSON_NULL: json_put_null(writer, value->key); break;
	case JSON_BOOL: json_put_bool(writer, value->key, value->boolean); break;
	case JSON_NUMBER: json_put_double(writer, value->key, value->number); break;
	case JSON_STRING: json_put_text(writer, value->key, value->text, value->text_size); break;
	default:
		json_open(writer, value->key, value->kind == JSON_OBJECT ? '{' : '[');
		for (const struct json *child = value->first_child; child; child = child->next)
			write_again(writer, child);
		json_close(writer);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	char *text = fuzz_copy(bytes, count);
	struct json_document document, again;
	if (json_parse(&document, "fuzz", text, count) == OK) {
		struct buffer out = {0};
		struct json_writer writer = {.out = &out, .indent = (int)(count % 3)};
		write_again(&writer, document.root);
		BUG_IF(json_parse(&again, "again", buffer_string(&out), out.size) != OK);
		json_release(&again);
		json_release(&document);
		buffer_release(&out);
	}
	free(text);
	return 0;
}
