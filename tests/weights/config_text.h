/* Configurations of models, given as the members of a config.json, for tests of how they are read. */
#ifndef TESTS_WEIGHTS_CONFIG_TEXT_H
#define TESTS_WEIGHTS_CONFIG_TEXT_H

#include "test.h"
#include "model/forms.h"

/* Reads a configuration of this model_type; `members` may be "". */
static enum status parse_config(const char *model_type, const char *members, struct model_config *out)
{
	char text[1024];
	struct json_document document;
	snprintf(text, sizeof text, "{\"model_type\": \"%s\", \"vocab_size\": 50368%s%s}", model_type, *members ? ", " : "",
		 members);
	assert_ok(json_parse(&document, "x.json", text, strlen(text)));
	enum status status = model_config_from_json(out, document.root, "x.json");
	json_release(&document);
	return status;
}

/* Members that are refused, and a name in the message. */
struct bad_config {
	const char *members;
	enum status status;
	const char *field;
};

static void assert_refused(const char *model_type, const struct bad_config *bad, size_t count)
{
	struct model_config config;
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(parse_config(model_type, bad[i].members, &config), bad[i].status);
		assert_non_null(strstr(error_last()->message, bad[i].field));
	}
}

#endif
