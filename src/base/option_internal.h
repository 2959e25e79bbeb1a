/* Shared only by the option*.c files. */
#ifndef BASE_OPTION_INTERNAL_H
#define BASE_OPTION_INTERNAL_H

#include "base/option.h"

/* The table of options that every command has. */
extern const struct option option_common[];

bool option_table_ends(const struct option *row);
/* The words of a choice, without the one for "nobody chose". */
const char *option_words(const struct option *row);
/* The row whose name or alias is the word of `length` bytes; -1 if there is none. */
int option_find_row(const struct option *table, const char *word, size_t length);
/* Sets the hint for an unknown name: "did you mean --x?", with `dashes` before x. The option that was probably meant counts as
 * given. */
void option_hint_nearest(struct options *options, const char *word, const char *dashes);
/* Records a message about a name from another program; `ignored` is the name if it is ignored, else NULL. */
MUST_USE enum status option_answer(struct options *options, const char *ignored, const char *format, ...) PRINTF_LIKE(3, 4);
/* Prints the recorded messages and clears them. */
void option_say_answers(struct options *options);

/* By row index: the field in the settings struct; options_set(); emptying a list; options_value(). */
void *option_field(const struct options *options, int index);
MUST_USE enum status option_set_at(struct options *options, int index, const char *value, enum option_origin origin);
void option_list_clear(struct options *options, int index);
const char *option_value_at(const struct options *options, int index, struct buffer *scratch);
/* Whether the row belongs to `scope`. Headings belong to every scope. */
bool option_in_scope(const struct option *row, enum option_scope scope);
/* The row of options->aside with this name, or NULL. */
const struct option *option_aside_find(const struct options *options, const char *word, size_t length);
/* The value that the text is a synonym for, in `out`, or the text itself. */
#define SYNONYM_BYTES 64
const char *option_synonym(const struct option *row, const char *text, char out[SYNONYM_BYTES]);
/* Rejects text that is not a valid value for the row. */
MUST_USE enum status option_check(const struct option *row, const char *text);
/* Removes what an earlier config file set for sections. */
void option_sections_forget_file(struct options *options);
/* For "phase2.learning_rate": the number of the section, from 0, and the name after the dot; false if the word does not have this
 * form. */
bool option_section_name(const struct options *options, const char *word, size_t length, int64_t *out_section,
			 const char **out_name);
/* The row of a name from another program, or NULL; and applying it. `value` is NULL for a bare flag. */
const struct option_foreign *option_foreign_find(const struct options *options, const char *word, size_t length);
MUST_USE enum status option_foreign_apply(struct options *options, const struct option_foreign *row, const char *name,
					  const char *value, enum option_origin origin);
/* Whether the word is one of the names in `list`, which are separated by ' '. Dashes and underscores are interchangeable. */
bool option_same_names(const char *list, const char *word, size_t length);
/* A copy that lives as long as the options. */
MUST_USE enum status option_copy_text(struct options *options, const char *text, const char **out);
/* Appends a value; the text is borrowed. */
MUST_USE enum status option_list_add(struct option_list *list, const char *value);

/* Convert a whole text to a value; numbers are decimal and finite, in any locale. Whole numbers may be abbreviated: 1e9, 1.5e6,
 * 10k, 2M, 3G. */
bool option_parse_flag(const char *text, bool *out);
bool option_parse_number(const char *text, double *out);
bool option_parse_integer(const char *text, int64_t *out);

/* Sets options from a file; those from the command line stay. Errors in its settings are recorded as problems. */
MUST_USE enum status option_config_read(struct options *options, const char *path);

#endif
