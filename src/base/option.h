/* Option tables: one row per option. The row provides the parser, the default, --help, the man page, shell completion, config
 * files, --print-config, the settings table, and the record in a checkpoint.
 *
 * Values are kept as the text given, so that 3e-4 is printed as 3e-4. Precedence, lowest first: default < recipe < resumed run <
 * config file < command line. Dashes and underscores in names are interchangeable.
 *
 * Sections: a run may have parts that differ in some settings, such as the phases of a training run. A row names the kind of
 * section ("phase") that may have its own value for it. A config file lists sections as objects of an array named by the plural
 * ("phases": [{...}, {...}]), or puts each after a line "[phase]"; on the command line, --phase2.learning_rate sets that of the
 * second one. Within one origin, a section's own value takes precedence over the general one.
 *
 * Groups: options that belong together are a struct whose members have the options' names, with an array of rows beside it
 * (OPTION_ROW). A command's table splices groups: a row with `group` stands for the rows of that array. Code that needs the
 * values takes the group by pointer, and asks here where a value comes from, by the address of its member: options_is_open(). To
 * add an option, add a member to a group and a row to its array.
 */
#ifndef BASE_OPTION_H
#define BASE_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/buffer.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

enum option_type {
	OPTION_FLAG,    /* bool *: --name, --name true|false, --no_name */
	OPTION_INTEGER, /* int64_t * */
	OPTION_NUMBER,  /* double * */
	OPTION_TEXT,    /* const char ** */
	/* enum *: the place of a word in `range`, from 0, where words are separated by '|'; an empty first word stands for
	 * "nobody chose" and cannot be given */
	OPTION_CHOICE,
	OPTION_LIST, /* struct option_list *: one or more values, "--corpus a b --corpus c" */
};

/* How a resumed run treats a recorded value. */
enum option_role {
	ROLE_RUN,    /* how to run: may change (threads, logging) */
	ROLE_RESULT, /* changes the result: a resumed run takes the recorded value; giving a different one is an error */
	ROLE_PLACE,  /* where and how long, this time only (folder, time limits): not recorded */
	ROLE_SOURCE, /* a path that a resumed run takes if none is given: recorded as an absolute path, not compared */
	ROLE_START, /* what the run begins with: recorded (a PATH as an absolute one). A run without a checkpoint takes it; giving
		       a different one is always an error */
	ROLE_ENTRY, /* the same, but a different one may be given: how the run is entered */
};

enum option_origin { ORIGIN_DEFAULT, ORIGIN_CHOSEN, ORIGIN_RECIPE, ORIGIN_RESUMED, ORIGIN_FILE, ORIGIN_COMMAND };
extern const char *const option_origins[]; /* in words, indexed by enum option_origin: "command line" */

struct option_list {
	const char **values;
	int64_t count, capacity;
};

/* `field` is the byte offset of the value in the command's settings struct (offsetof). `range` is "min..max" for numbers (either
 * side may be empty), the words for OPTION_CHOICE, NULL otherwise. `fallback` is the default as text, parsed like the command
 * line; NULL: none, the field stays zero, and in the help `fallback_text` says what the program will choose ("from the model's
 * size"). A row in which only `help` is set is a heading. A row with neither name, help, nor group ends a table. */
struct option {
	const char *name; /* "train_batch_size" */
	char letter;      /* 'q' or 0 */
	enum option_type type;
	size_t field;
	const char *fallback;
	const char *range;
	enum option_role role;
	const char *help;  /* one sentence, lower case, no final period */
	const char *brief; /* instead of `help` and of the words in the short help, where some words are rare; NULL: the same */
	const char *value_name; /* "N", "PATH", "FILE…"; NULL for flags */
	const char *alias;      /* other names that users know, separated by ' ' */
	const char *fallback_text;
	const char *automatic; /* a word instead of a value, "auto": as if the option were not given; NULL: none */
	const char *section;   /* the kind of section that may have its own value: "phase"; the same in all rows that have one */
	const char *synonym;   /* "fail=stop skip_all=skip": other words ("fail") that mean a value ("stop"); NULL: none */
	const char *advice;    /* a hint for values that are rejected, such as other programs' words; NULL: none */
	/* Other options, separated by ' ', from which a run computes this one if they are set. A record of a run then has both,
	 * of which a config file gives only the others; NULL: none. */
	const char *follows;
	bool commas; /* a list whose values may also be written as one, with commas, as Google's flags are */
	bool rare;   /* left out of the short help, since few people of today decide it */
	/* Instead of a name, the rows of a group, for a struct at `field`: all of them except those named in `except`, or those
	 * named in `only`, in that order. `unsectioned`: they have no values per section here; `rare` and `fallback_text` hold
	 * for all of them; `shown`: none of them is rare here. */
	const struct option *group;
	const char *only, *except;
	bool unsectioned, shown;
	/* This row stands for no option of its own: what it sets replaces what the option of its name says, where a command words
	 * something in its own way. The option is of a group further up in the table. */
	bool reworded;
};

/* The first fields of a row for member `member` of `struct_`: name, type, place, role, and the value's name in the help (NULL for
 * flags): {OPTION_ROW(struct batch_options, train_batch_size, ROLE_RESULT, "N"), .range = "1..", .help = "..."}. OPTION_AS: of a
 * member that has another name than the option. */
#define OPTION_ROW(struct_, member, role_, value_) OPTION_AS(#member, struct_, member, role_, value_)
#define OPTION_AS(name_, struct_, member, role_, value_)                                                                         \
	.name = name_, .type = OPTION_TYPE(struct_, member), .field = offsetof(struct_, member), .role = role_,                  \
	.value_name = value_
#define OPTION_TYPE(struct_, member)                                                                                             \
	_Generic(((struct_ *)0)->member, bool: OPTION_FLAG, int64_t: OPTION_INTEGER, double: OPTION_NUMBER,                      \
		 const char *: OPTION_TEXT, struct option_list: OPTION_LIST, unsigned: OPTION_CHOICE)

/* A name that users know from other programs and that bertc does not have: it is ignored with a line that says why, or rejected,
 * or stands for another option with a given value. A row with name NULL ends the table, unless it goes on with `rest`. */
struct option_foreign {
	const char *name; /* several names are separated by ' ' */
	/* Whether a value follows. EITHER: `answer` applies to a bare flag; a value is one for `option`, if there is one. VALUES:
	 * several may follow, up to the next option; only for names that are ignored or rejected. */
	enum { FOREIGN_FLAG, FOREIGN_VALUE, FOREIGN_EITHER, FOREIGN_VALUES } kind;
	/* ALWAYS: true is what is done anyway; false is rejected. */
	enum { FOREIGN_IGNORED, FOREIGN_REFUSED, FOREIGN_MEANS, FOREIGN_ALWAYS } answer;
	const char *why; /* shown to the user */
	/* FOREIGN_MEANS: what is set; if value is NULL, the value given, inverted for a flag. FOREIGN_REFUSED: values, separated
	 * by ' ', that are accepted because they ask for what is done anyway. */
	const char *option, *value;
	const char *program; /* the only program that has this name; NULL: several do, or it does not matter */
	const struct option_foreign *rest;
};

/* One section's own value. */
struct option_setting {
	int index; /* row */
	const char *text;
	enum option_origin origin;
};

struct option_section {
	struct option_setting *settings;
	int64_t count, capacity;
};

/* One problem of a command line or config file; all of them are reported together. */
struct option_problem {
	enum status status;
	const char *message, *hint; /* hint NULL: none */
};

/* A message about a name from another program, printed once the whole command line is known. */
struct option_answer {
	const char *text;
	const char *ignored; /* the name, if it was ignored: that is printed even with --quiet; else NULL */
};

/* The state of a parse: the values are in the command's struct; this holds the text and origin of each. */
struct options {
	const struct option *table; /* [count] with the rows of groups in their places */
	void *settings;
	int count;
	struct option *rows;   /* what `table` points to, if it is this one's own */
	size_t settings_bytes; /* of the settings struct; set after options_init, for options_derive() */
	bool owns_settings;
	enum option_origin *origin; /* [count] */
	const char **text;          /* [count] value as given; NULL if unset */
	bool *faulty;               /* [count] given, but with an error: not to be reported as missing */
	enum option_origin
		*unset; /* [count] the origin that last asked for "auto": recipes and files of lower rank do not set it */
	struct option_list positional;
	const char *section_name;        /* "phase"; NULL: the table has none */
	struct option_section *sections; /* [section_count] */
	int64_t section_count, section_capacity;
	const struct option_foreign *foreign; /* set after options_init; NULL: none */
	const struct option_foreign *removed; /* the same, for names of earlier versions, wherever they were recorded */
	/* The program that the command line was written for, inferred from a name that only that program has, and that name;
	 * NULL: unknown. */
	const char *foreign_program, *foreign_name;
	/* Another command's table, set after options_init; NULL: none. Its options are parsed, checked, and ignored, so that one
	 * config file and one line of options serve both commands. */
	const struct option *aside;
	const char *finished; /* set by options_note_finished; NULL: the run to be resumed has not finished */
	bool help, help_all, print_config;
	bool from_record; /* a config file was the record of a run, which also has settings that nobody asked for */
	bool silent;      /* set after options_init: another process prints the messages about names from other programs */
	struct option_problem *problems; /* [problem_count] in the order they were found */
	int64_t problem_count, problem_capacity;
	struct option_answer *answers; /* [answer_count] */
	int64_t answer_count, answer_capacity;
	void *memory;
};

/* Makes one array of a table, with the rows of groups in their places; to be freed. */
MUST_USE enum status options_flatten(const struct option *table, struct option **out);

/* Binds a table to a settings struct and sets every default. */
MUST_USE enum status options_init(struct options *options, const struct option *table, void *settings);
void options_release(struct options *options);

/* The same with the table of `base`, which must outlive it. `settings` NULL: a struct of base->settings_bytes is made, which
 * belongs to the options. */
MUST_USE enum status options_init_as(struct options *options, const struct options *base, void *settings);

/* Parses arguments (argv[0] is the first argument, not the command). Unknown names are ERR_USAGE with the nearest known name as
 * hint. The whole line is parsed, whatever is wrong with it: all errors are collected in `problems`, and the status returned is
 * that of the first. Options common to all commands are handled here: -h --help, -q --quiet and -v --verbose (which set
 * log_level), --no_progress, --config FILE, --print-config, and the forms `--` and "--name=value". Config files (a JSON object,
 * or "name = value" lines with '#' comments, one line per value of a list) rank below the command line wherever --config appears;
 * of two config files, the later one wins. */
MUST_USE enum status options_parse(struct options *options, int argc, char **argv);

/* If `status` is a failure, records the thread's last error as one of the problems. Returns OK unless there is no memory for
 * it. */
MUST_USE enum status options_blame(struct options *options, enum status status);
/* Records the problem "--NAME is missing", unless the option has a value or was given incorrectly. `hint` may be NULL. */
MUST_USE enum status options_require(struct options *options, const char *name, const char *hint);
/* Sets the first problem as the thread's last error and returns its status; OK if there is none. */
MUST_USE enum status options_problem_status(const struct options *options);

/* Sets options from the text of a recipe: a config file without sections whose values override only defaults. Errors in it are
 * recorded as problems. */
MUST_USE enum status options_read_recipe(struct options *options, const char *name, const char *text);

/* Sets one option from text, with its origin, unless an origin of higher precedence has set it. For a list, the value is appended
 * if the origin is the same, and replaces the list if the new origin takes precedence. The text is copied. */
MUST_USE enum status options_set(struct options *options, const char *name, const char *value, enum option_origin origin);
/* Checks and sets a section's own value, creating sections up to it. Several values of a list take one call each. */
MUST_USE enum status options_set_section(struct options *options, int64_t section, const char *name, const char *value,
					 enum option_origin origin);
/* Restores the default, whatever set the option. */
void options_forget(struct options *options, const char *name);
/* Index of a name or alias in the table, or -1. */
int options_find(const struct options *options, const char *name);
enum option_origin options_origin(const struct options *options, const char *name);
bool options_given(const struct options *options, const char *name); /* by a config file or the command line */
/* The same, but a config file that only repeats the default does not count, since some files list all settings. For options that
 * make no sense without others. */
bool options_said(const struct options *options, const char *name);
/* The same, but nor does the record of a run, which has settings that nobody asked for. */
bool options_asked(const struct options *options, const char *name);
/* The same by the address of a member of the settings struct. Open: it has no value, neither given nor chosen nor by default. */
bool options_is_open(const struct options *options, const void *field);
enum option_origin options_origin_of(const struct options *options, const void *field);
const char *options_text_of(const struct options *options, const void *field); /* neither open nor a list */

/* Of the options whose members lie in the `bytes` at `from`, copies those that are not open to the same places of `to`: what is
 * given overrides what is known. No lists. */
void options_copy_given(const struct options *options, const void *from, size_t bytes, void *to);

/* Sets what the program chooses for an option. It replaces the default and an earlier choice, never a value that was given, and
 * is recorded as a choice. The field then holds what the text says, so that a run that reads its own record computes with the
 * same numbers; a number is rounded to `digits` significant digits. */
MUST_USE enum status options_choose(struct options *options, const void *field, const char *text);
MUST_USE enum status options_choose_integer(struct options *options, const int64_t *field, int64_t value);
MUST_USE enum status options_choose_number(struct options *options, const double *field, double value, int digits);

/* Whether an object is the record of a run's settings (settings.json). */
bool options_is_record(const struct json *root);
/* The text of the value in effect ("" if unset). Lists are joined by spaces. */
const char *options_value(const struct options *options, const char *name, struct buffer *scratch);

/* The options of one section: the general values overridden by the section's own. `section` may be beyond the last one: then it
 * has no values of its own. `settings` is a separate, zeroed struct, or NULL as in options_init_as(). `out` must be released
 * before `base`. */
MUST_USE enum status options_derive(struct options *out, const struct options *base, int64_t section, void *settings);

/* A single section is the whole: its values become general ones, and the section is removed. Does nothing if there are several or
 * none. */
MUST_USE enum status options_join_section(struct options *options);

/* Which rows: all, those that sections cannot set, or those that they can. */
enum option_scope { SCOPE_ALL, SCOPE_GENERAL, SCOPE_SECTION };

/* The record of a run: {"name": "text", …} for every option that is set, except those with role PLACE, and those with role RUN
 * unless a person gave them (what the program chose for this machine may not suit the next). Lists are arrays. */
void options_write_json(const struct options *options, struct json_writer *writer, const char *key, enum option_scope scope);
/* The same, written into an object that is already open. */
void options_write_members(const struct options *options, struct json_writer *writer, enum option_scope scope);
/* Applies a record to a resumed run by the rules of enum option_role: options that were not given are taken from it; a RESULT
 * option given with a different value (numbers are compared as numbers) is ERR_STATE naming both values. */
MUST_USE enum status options_resume(struct options *options, const struct json *record, const char *record_name,
				    enum option_scope scope);
/* The same for what the run begins with (ROLE_START, ROLE_ENTRY), which options_resume() ignores: a START option given with a
 * different value is ERR_STATE. A run that is not `trained` yet starts over, so it takes from the record whatever was not given;
 * a trained one takes only what a recipe has set. A record made before these options were recorded has no effect. */
MUST_USE enum status options_resume_start(struct options *options, const struct json *record, const char *record_name,
					  bool trained);

/* To be called before a finished run is resumed: `hint` says what to do instead, for settings that differ from the record. The
 * text is copied. */
MUST_USE enum status options_note_finished(struct options *options, const char *hint);

/* `shown` is a copy of `record` for people to read, as settings.json is of a checkpoint's. Warns if somebody has changed
 * something there that results depend on, since such changes have no effect. */
MUST_USE enum status options_note_edits(const struct options *options, const struct json *record, const struct json *shown,
					const char *shown_name);

/* Adds what the lists with ROLE_SOURCE name, also those of sections, without NAME=: paths, patterns, and prefixes of files. */
MUST_USE enum status options_sources(const struct options *options, struct name_list *out);

/* Text generated from the table. */
struct command_text {
	const char *name;        /* "pretrain" */
	const char *synopsis;    /* "--corpus PATH... [options]" */
	const char *summary;     /* one line */
	const char *description; /* paragraphs separated by blank lines */
	const char *examples;    /* lines of the form "command \t what it does" */
	const char *common;      /* names, separated by ' ', of the options listed first, before the groups; NULL: none */
};
/* Of a flat table. Unless `all`, rare options are left out. */
void options_help(const struct option *table, const struct command_text *text, bool all, int columns, struct buffer *out);
void options_man(const struct option *table, const struct command_text *text, struct buffer *out); /* mdoc */
/* A reusable config file of the merged settings, each with a comment that gives its origin. Those that nobody gave (defaults, a
 * recipe's) are comments: they follow again when the file is read. */
void options_print_config(const struct options *options, struct buffer *out);
/* The settings table shown at the start of a run: name, value, origin. Unless `all`, only those that are not left at their
 * defaults. */
void options_settings_table(const struct options *options, enum option_scope scope, bool all, bool color, struct buffer *out);
/* The settings that sections may have, with one column for each of `sections`. */
void options_section_table(const struct options *const *sections, int64_t count, bool all, bool color, struct buffer *out);

/* The place of a word in a list of words separated by '|', from 0; -1 if it is not there. */
int option_word(const char *words, const char *word);

/* The one of `names` nearest to `word` by edit distance, or NULL if none is near. */
const char *nearest_name(const char *word, const char *const *names, int64_t count);

#endif
