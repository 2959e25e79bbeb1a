/* libFuzzer target: the JSON reader. What is accepted is also written again, and must be accepted again.
 *   clang -g -O1 -std=c11 -D_GNU_SOURCE -Isrc -fsanitize=fuzzer,address,undefined dev/fuzz/json.c
 * src/base/[a-z]*.c \ -lxxhash -lm -pthread -o build/fuzz-json && build/fuzz-json -max_len=400
 * -max_total_time=60 */
#include <stdlib.h>
#include <string.h>
#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static void write_again(struct json_writer *writer, const struct json *value)
{
	switch (value->kind) {
	case JSON_NULL:
		json_put_null(writer, value->key);
		break;
	case JSON_BOOL:
		json_put_bool(writer, value->key, value->boolean);
		break;
	case JSON_NUMBER:
		json_put_double(writer, value->key, value->number);
		break;
	case JSON_STRING:
		json_put_text(writer, value->key, value->text, value->text_size);
		break;
	default:
		json_open(writer, value->key, value->kind == JSON_OBJECT ? '{' : '[');
		for (const struct json *child = value->first_child; child; child = child->next)
			write_again(writer, child);
		json_close(writer);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	/* A copy of exactly this size, so that reading one byte too many is seen. */
	char *text = malloc(count ? count : 1);
	memcpy(text, bytes, count);
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
