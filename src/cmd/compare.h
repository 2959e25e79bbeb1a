/* The parts of `bertc compare`. */
#ifndef CMD_COMPARE_H
#define CMD_COMPARE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "base/json.h"

struct compare_settings {
	bool json, weights;
	enum { BY_STEPS, BY_TOKENS, BY_TIME } by;
	const char *out;
	int64_t points;
};

/* Compares the tensors and settings of two model folders, checkpoints, or weights files. *out_same becomes the exit code. */
MUST_USE enum status compare_models(const struct compare_settings *settings, const char *a, const char *b, bool *out_same);
/* Compares the curves and settings of two run folders or metrics.jsonl files. *out_same becomes the exit code. */
MUST_USE enum status compare_runs(const struct compare_settings *settings, const char *a, const char *b, bool *out_same);

/* A setting, or member of a configuration, whose values differ. A member that is missing is "-". */
struct compare_setting {
	char name[64], a[128], b[128];
};
struct compare_differences {
	struct compare_setting *items;
	int64_t count, capacity;
};
/* Adds one difference. */
MUST_USE enum status compare_note(const char *name, const char *a, const char *b, struct compare_differences *out);
/* The same for two JSON files; a missing file counts as empty. `member`: an object within them, or NULL. `settings`: they are a
 * run's, in which numbers are recorded as texts. */
MUST_USE enum status compare_json_files(const char *a, const char *b, const char *member, bool settings,
					struct compare_differences *out);
void compare_print_settings(const struct compare_differences *differences);
void compare_put_settings(const struct compare_differences *differences, struct json_writer *writer);

#endif
