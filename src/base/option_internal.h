/* Shared by the option*.c files alone. */
#ifndef BASE_OPTION_INTERNAL_H
#define BASE_OPTION_INTERNAL_H

#include "base/option.h"

/* The options that every command has, as a table. */
extern const struct option option_common[];

bool option_table_ends(const struct option *row);
/* Row of the name or alias that is the word of `length` bytes; -1 if there is none. */
int option_find_row(const struct option *table, const char *word, size_t length);
/* Leaves the hint for an unknown name, "did you mean --x?" with `dashes` before x. */
void option_hint_nearest(const struct options *options, const char *word, const char *dashes);

/* By index: the field in the settings struct, options_set, an empty list, options_value. */
void *option_field(const struct options *options, int index);
MUST_USE enum status option_set_at(struct options *options, int index, const char *value,
                                   enum option_origin origin);
void option_list_clear(struct options *options, int index);
const char *option_value_at(const struct options *options, int index, struct buffer *scratch);
/* One more value; the text is borrowed. */
MUST_USE enum status option_list_add(struct option_list *list, const char *value);

/* Text as a whole to a value; numbers are decimal and finite, in any locale. */
bool option_parse_flag(const char *text, bool *out);
bool option_parse_number(const char *text, double *out);
bool option_parse_integer(const char *text, int64_t *out);

/* Sets options from a file; what the command line gave stays. */
MUST_USE enum status option_config_read(struct options *options, const char *path);

#endif
