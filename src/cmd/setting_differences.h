/* Where the settings of two models or runs differ. */
#ifndef CMD_SETTING_DIFFERENCES_H
#define CMD_SETTING_DIFFERENCES_H

#include "base/error.h"
#include "base/json.h"

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

#endif
