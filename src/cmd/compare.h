/* The two things that `bertc compare` compares. */
#ifndef CMD_COMPARE_H
#define CMD_COMPARE_H

#include <stdbool.h>
#include "base/error.h"
#include "base/json.h"
#include "base/option.h"

struct compare_settings {
	bool json, weights;
	const char *by, *out;
	int64_t points;
};

/* Two settings records or configurations: members of one kind whose values differ. A member that is missing is "". */
struct compare_setting {
	char name[64], a[128], b[128];
};
struct compare_differences {
	struct compare_setting *items;
	int64_t count, capacity;
};
/* Adds what differs between two objects, by name, in the order of `a`. Values that are numbers are compared as such. */
MUST_USE enum status compare_objects(const struct json *a, const struct json *b, struct compare_differences *out);
/* The same of two JSON files; one that is missing counts as empty. `member`: an object within, or NULL. */
MUST_USE enum status compare_json_files(const char *a, const char *b, const char *member, struct compare_differences *out);
void compare_print_settings(const struct compare_differences *differences);
void compare_put_settings(const struct compare_differences *differences, struct json_writer *writer);

/* compare_models.c: tensors and settings of two model folders, checkpoints or .safetensors files. *out_same is what the
 * exit status says. */
MUST_USE enum status compare_models(const struct compare_settings *settings, const char *a, const char *b, bool *out_same);
/* compare_runs.c: curves and settings of two run folders or metrics.jsonl files. */
MUST_USE enum status compare_runs(const struct compare_settings *settings, const char *a, const char *b, bool *out_same);

#endif
