/* Shared by the option*.c files alone. */
#ifndef BASE_OPTION_INTERNAL_H
#define BASE_OPTION_INTERNAL_H

#include "base/option.h"

/* The options that every command has, as a table. */
extern const struct option option_common[];

bool option_table_ends(const struct option *row);
/* Row of the name or alias that is the word of `length` bytes; -1 if there is none. */
int option_find_row(const struct option *table, const char *word, size_t length);
/* Leaves the hint for an unknown name, "did you mean --x?" with `dashes` before x. The option that was meant counts as given. */
void option_hint_nearest(struct options *options, const char *word, const char *dashes);
/* What is to be said about a name from another program. */
MUST_USE enum status option_answer(struct options *options, bool is_warning, const char *format, ...) PRINTF_LIKE(3, 4);
/* Says it, and forgets it. */
void option_say_answers(struct options *options);

/* By index: the field in the settings struct, options_set, an empty list, options_value. */
void *option_field(const struct options *options, int index);
MUST_USE enum status option_set_at(struct options *options, int index, const char *value, enum option_origin origin);
void option_list_clear(struct options *options, int index);
const char *option_value_at(const struct options *options, int index, struct buffer *scratch);
/* Is the row one of `scope`? Headings are of every scope. */
bool option_in_scope(const struct option *row, enum option_scope scope);
/* The row of options->aside with this name, or NULL. */
const struct option *option_aside_find(const struct options *options, const char *word, size_t length);
/* The value that the text is another word for, or the text. */
const char *option_synonym(const struct option *row, const char *text);
/* Refuses text that is no value for the row. */
MUST_USE enum status option_check(const struct option *row, const char *text);
/* One section's own value, checked; sections up to it come into being. Several values of a list: call by call. */
MUST_USE enum status option_section_set(struct options *options, int64_t section, const char *name, const char *value,
					enum option_origin origin);
/* Takes away what an earlier config file said of sections. */
void option_sections_forget_file(struct options *options);
/* "phase2.learning_rate": the number of the section from 0, and the name behind the dot; false if it is nothing of the
 * kind. */
bool option_section_name(const struct options *options, const char *word, size_t length, int64_t *out_section,
			 const char **out_name);
/* The row of a name from another program, or NULL; and what giving it does. `value` is NULL for a bare flag. */
const struct option_foreign *option_foreign_find(const struct options *options, const char *word, size_t length);
MUST_USE enum status option_foreign_apply(struct options *options, const struct option_foreign *row, const char *name,
					  const char *value, enum option_origin origin);
/* Is one of the names in `list`, separated by ' ', the word? Dash and underscore are the same. */
bool option_same_names(const char *list, const char *word, size_t length);
/* A copy that lives as long as the options. */
MUST_USE enum status option_copy_text(struct options *options, const char *text, const char **out);
/* A value as a config file has it: in quotes where it would be read otherwise. */
void option_config_value(struct buffer *out, const char *value);
/* One more value; the text is borrowed. */
MUST_USE enum status option_list_add(struct option_list *list, const char *value);

/* Text as a whole to a value; numbers are decimal and finite, in any locale. Whole numbers may be short: 1e9, 1.5e6, 10k, 2M,
 * 3G. */
bool option_parse_flag(const char *text, bool *out);
bool option_parse_number(const char *text, double *out);
bool option_parse_integer(const char *text, int64_t *out);

/* Sets options from a file; what the command line gave stays. What is wrong with its settings is taken down as problems. */
MUST_USE enum status option_config_read(struct options *options, const char *path);

#endif
