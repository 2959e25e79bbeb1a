/* Differences between the settings of two models or runs. */
#ifndef CMD_SETTING_DIFFERENCES_H
#define CMD_SETTING_DIFFERENCES_H

#include "base/error.h"
#include "base/json.h"

/* A setting, or member of a configuration, whose values differ. A member that is missing is "-". */
struct compare_setting {
	char name[64], a[128], b[128];
};
struct compare_differences {
	struct compare_setting *items;
	int64_t count, capacity;
};
/* Adds the members that differ between two objects, by name: first those of `a` in its order, then those only in `b`. Numbers are
 * compared by value. */
MUST_USE enum status compare_objects(const struct json *a, const struct json *b, struct compare_differences *out);
/* The same for two JSON files; a missing file counts as empty. `member`: an object within them, or NULL. */
MUST_USE enum status compare_json_files(const char *a, const char *b, const char *member, struct compare_differences *out);
void compare_print_settings(const struct compare_differences *differences);
void compare_put_settings(const struct compare_differences *differences, struct json_writer *writer);

#endif
