/* Option tables: one row an option. From the row come the parser, the default, --help, the man page, shell
 * completion, config files, --print-config, the settings table and the record in a checkpoint.
 *
 * Values are kept as the text given, so that 3e-4 is printed as 3e-4. Order of strength:
 * default < recipe < resumed run < config file < command line. Dash and underscore in names are the same.
 *
 * Sections: a run may have parts that differ in some settings, such as the phases of a training. A row names the kind
 * of section that may have a value of its own for it ("phase"). A config file lists sections as objects of an array
 * named in the plural ("phases": [{...}, {...}]), or each below a line "[phase]"; on the command line
 * --phase2.learning_rate is the second one's. Within one origin a section's own value is stronger than the general one.
 */
#ifndef BASE_OPTION_H
#define BASE_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/buffer.h"
#include "base/error.h"
#include "base/json.h"

enum option_type {
	OPTION_FLAG,    /* bool *: --name, --name true|false, --no_name */
	OPTION_INTEGER, /* int64_t * */
	OPTION_NUMBER,  /* double * */
	OPTION_TEXT,    /* const char ** */
	OPTION_CHOICE,  /* const char **: one of `range`, words separated by '|' */
	OPTION_LIST,    /* struct option_list *: one or more values, "--corpus a b --corpus c" */
};

/* What a resumed run does with a recorded value. */
enum option_role {
	ROLE_RUN,    /* how to run: may differ (threads, logging) */
	ROLE_RESULT, /* changes the result: a resumed run takes the recorded value; a different one given is an error */
	ROLE_PLACE,  /* where and how long this once (folder, limits of time): not recorded */
	ROLE_SOURCE, /* a path that a resumed run takes if none is given: recorded from the root, not compared */
	ROLE_START,  /* what the run begins with: recorded (a PATH from the root). A run that has no checkpoint yet takes it; a
			different one given is an error in any case */
	ROLE_ENTRY,  /* the same, but another one may be given: how the run is entered */
};

enum option_origin { ORIGIN_DEFAULT, ORIGIN_CHOSEN, ORIGIN_RECIPE, ORIGIN_RESUMED, ORIGIN_FILE, ORIGIN_COMMAND };
extern const char *const option_origins[]; /* in words, by enum option_origin: "command line" */

struct option_list {
	const char **values;
	int64_t count, capacity;
};

/* `field` is the byte offset of the value in the command's settings struct (offsetof). `range` is "min..max" for
 * numbers (either side may be empty), words for OPTION_CHOICE, NULL otherwise. `fallback` is the default as
 * text, parsed like the command line; NULL = none: the field keeps zero, and `fallback_text` says in help what
 * the program will choose ("from the model's size"). A row with name NULL ends a table. A row with only `help`
 * set starts a group (heading). */
struct option {
	const char *name; /* "train_batch_size" */
	char letter;      /* 'q' or 0 */
	enum option_type type;
	size_t field;
	const char *fallback;
	const char *range;
	enum option_role role;
	const char *help;       /* one sentence, lower case, no full stop */
	const char *value_name; /* "N", "PATH", "FILE…"; NULL for flags */
	const char *alias;      /* other names users know, separated by ' ' */
	const char *fallback_text;
	const char *automatic; /* a word in place of a value, "auto": as if the option were not given; NULL: none */
	const char *section;   /* the kind of section that may have its own value: "phase"; the same in all rows */
	const char *synonym;   /* "fail=stop": another word for a value, which is taken as that value; NULL: none */
};

/* A name that people bring from other programs and that bertc does not have: it is left out with a line that says why, or
 * refused, or stands for another option with a given value. A row with name NULL ends the table. */
struct option_foreign {
	const char *name; /* several are separated by ' ' */
	/* Does a value follow? EITHER: the answer is for a bare flag; a value is one of `option`. */
	enum { FOREIGN_FLAG, FOREIGN_VALUE, FOREIGN_EITHER } kind;
	/* ALWAYS: true is what is done anyway, false is refused. */
	enum { FOREIGN_IGNORED, FOREIGN_REFUSED, FOREIGN_MEANS, FOREIGN_ALWAYS } answer;
	const char *why; /* what is said */
	/* FOREIGN_MEANS: what is set; value NULL: that of the name, of a flag turned round. FOREIGN_REFUSED: values, separated by
	 * ' ', that ask for what is done anyway. */
	const char *option, *value;
	const char *program; /* the only program whose command lines have this name; NULL: several, or none of interest */
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

/* What is wrong with a command line or a config file; several are reported together. */
struct option_problem {
	enum status status;
	const char *message, *hint; /* hint NULL: none */
};

/* What is said about a name from another program, once the whole command line is known. */
struct option_answer {
	const char *text;
	bool is_warning; /* it was left out: said with --quiet, too */
};

/* The state of a parse: values lie in the command's struct, this remembers each one's text and origin. */
struct options {
	const struct option *table;
	void *settings;
	int count;
	enum option_origin *origin; /* [count] */
	const char **text;          /* [count] value as given; NULL if unset */
	bool *faulty;               /* [count] given, but a problem: not to be called missing */
	struct option_list positional;
	const char *section_name;        /* "phase"; NULL: the table has none */
	struct option_section *sections; /* [section_count] */
	int64_t section_count, section_capacity;
	const struct option_foreign *foreign; /* set after options_init; NULL: none */
	/* The program that the command line was written for, as far as a name that only that program has shows it, and that name;
	 * NULL: nothing shows it. */
	const char *foreign_program, *foreign_name;
	/* Another command's table, set after options_init; NULL: none. Its options are read, checked and left aside, so that
	 * one config file and one line of options serve both commands. */
	const struct option *aside;
	bool help, print_config;
	bool silent; /* set after options_init: what is to be said of names from other programs is another process's to say */
	struct option_problem *problems; /* [problem_count] in the order in which they were found */
	int64_t problem_count, problem_capacity;
	struct option_answer *answers; /* [answer_count] */
	int64_t answer_count, answer_capacity;
	void *memory;
};

/* Binds a table to a settings struct and sets every default. */
MUST_USE enum status options_init(struct options *options, const struct option *table, void *settings);
void options_release(struct options *options);

/* Parses arguments (argv[0] is the first argument, not the command). Unknown names are ERR_USAGE with the nearest
 * known name as hint. All of the line is read whatever is wrong with it: everything that is lies in `problems`, and the
 * status returned is that of the first. What every command has is handled here: -h --help, -q --quiet and -v --verbose (which set
 * log_level), --no_progress, --config FILE, --print-config, and `--`, "--name=value". Config files (a JSON object, or
 * "name = value" lines with '#' comments, a line for each value of a list) rank below the command line wherever --config
 * stands; of two config files the later counts. */
MUST_USE enum status options_parse(struct options *options, int argc, char **argv);

/* If `status` is a failure, takes the thread's last error down as one of the problems. Returns OK, except when there is no
 * memory for it. */
MUST_USE enum status options_blame(struct options *options, enum status status);
/* "--NAME is missing" becomes a problem, unless the option has a value or was given in a wrong way. `hint` may be NULL. */
MUST_USE enum status options_require(struct options *options, const char *name, const char *hint);
/* The status of the first problem, whose message is set; OK if there is none. */
MUST_USE enum status options_problem_status(const struct options *options);

/* Sets options from a recipe: a config file without sections whose values are stronger than defaults alone. What
 * is wrong in it becomes a problem. */
MUST_USE enum status options_read_recipe(struct options *options, const char *path);

/* Sets one option from text, with its origin, if not already set by a stronger origin. A list takes the value as one
 * more when its origin is the same, and starts anew when the new origin is stronger. The text is copied. */
MUST_USE enum status options_set(struct options *options, const char *name, const char *value, enum option_origin origin);
/* Back to the default, whoever set it. */
void options_forget(struct options *options, const char *name);
/* Index of a name or alias in the table, or -1. */
int options_find(const struct options *options, const char *name);
enum option_origin options_origin(const struct options *options, const char *name);
bool options_given(const struct options *options, const char *name); /* by file or command line */
/* The value as text now in force ("" if unset). Lists joined by a space. */
const char *options_value(const struct options *options, const char *name, struct buffer *scratch);

/* The options of one section: the general values and over them the section's own. `section` may be beyond those there
 * are: then it has none of its own. `settings` is a struct of its own, zeroed; `out` is released before `base`'s table. */
MUST_USE enum status options_derive(struct options *out, const struct options *base, int64_t section, void *settings);

/* Which rows: all, those that no section may set, those that one may. */
enum option_scope { SCOPE_ALL, SCOPE_GENERAL, SCOPE_SECTION };

/* The record of a run: {"name": "text", …} of every option with role RESULT that is set, those with role RUN that
 * a person gave (what the program chose for this machine need not suit the next), and those with role SOURCE. Lists are
 * arrays. */
void options_write_json(const struct options *options, struct json_writer *writer, const char *key, enum option_scope scope);
/* The same into an object that is open. */
void options_write_members(const struct options *options, struct json_writer *writer, enum option_scope scope);
/* Applies a record to a resumed run by the rules of enum option_role: what was not given is taken from it; a RESULT
 * option given differently (numbers are compared as numbers) is ERR_STATE that names both values. */
MUST_USE enum status options_resume(struct options *options, const struct json *record, const char *record_name,
				    enum option_scope scope);
/* The same for what the run begins with (ROLE_START, ROLE_ENTRY), which options_resume() leaves alone: a START option given
 * differently is ERR_STATE. What was not given is taken by a run that is not `trained` yet, which begins once more; a trained
 * one takes only what a recipe has set. A record from before these were recorded says nothing. */
MUST_USE enum status options_resume_start(struct options *options, const struct json *record, const char *record_name,
					  bool trained);

/* `shown` repeats `record` for people, as settings.json repeats a checkpoint's: warns of what its results depend on and somebody
 * has changed there, which changes nothing. */
MUST_USE enum status options_note_edits(const struct options *options, const struct json *record, const struct json *shown,
					const char *shown_name);

/* Text made from the table. */
struct command_text {
	const char *name;        /* "pretrain" */
	const char *synopsis;    /* "--corpus PATH... [options]" */
	const char *summary;     /* one line */
	const char *description; /* paragraphs separated by blank lines */
	const char *examples;    /* lines "command \t what it does" */
	const char *common;      /* names, separated by ' ', of the options that stand first, before the groups; NULL: none */
};
void options_help(const struct option *table, const struct command_text *text, int columns, struct buffer *out);
void options_man(const struct option *table, const struct command_text *text, struct buffer *out); /* mdoc */
void options_man_title(const char *name, struct buffer *out); /* the first lines of a page: date, NAME(1) */
/* A reusable config file of the merged settings, each with a comment saying where it came from. */
void options_print_config(const struct options *options, struct buffer *out);
/* The settings table shown at the start of a run: name, value, origin. Without `all` only what is not as its default says. */
void options_settings_table(const struct options *options, enum option_scope scope, bool all, bool colour, struct buffer *out);
/* What sections may set, a column for each of `sections`: name, values. */
void options_section_table(const struct options *const *sections, int64_t count, bool all, bool colour, struct buffer *out);

/* Levenshtein-nearest of `names` to `word`, or NULL if none is near. */
const char *nearest_name(const char *word, const char *const *names, int64_t count);

#endif
