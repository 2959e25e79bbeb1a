/* Rows that the option tables of all commands that read text share, with the same names and the same help. `offset` is that of
 * the member in the command's settings; option.h says which type it has. */
#ifndef CMD_TEXT_OPTIONS_H
#define CMD_TEXT_OPTIONS_H

#include <string.h>
#include "base/option.h"
#include "text/corpus.h"

#define CORPUS_OPTION(offset, sentence, other_names)                                                                             \
	{                                                                                                                        \
		.name = "corpus", .type = OPTION_LIST, .field = (offset), .role = ROLE_SOURCE, .value_name = "PATH...",          \
		.alias = other_names, .help = sentence ": files, folders, globs, - for standard input; plain, gz, bz2, zst, xz"  \
	}

/* How text is read, for a settings struct whose member `member` is a struct input_settings. */
struct input_settings {
	const char *input_form, *text_form, *text_key, *on_bad_record;
};
#define INPUT_OPTIONS(settings, member)                                                                                          \
	{.name = "input_form",                                                                                                   \
	 .type = OPTION_CHOICE,                                                                                                  \
	 .field = offsetof(settings, member.input_form),                                                                         \
	 .fallback = "auto",                                                                                                     \
	 .range = "auto|text|gutenberg|wiki_xml|cirrus|wikiextractor|json|warc",                                                 \
	 .role = ROLE_START,                                                                                                     \
	 .value_name = "FORM",                                                                                                   \
	 .help = "format of the files: lines of text, a dump, JSON, ...; auto detects and reports the format of each file"},     \
		{.name = "text_form",                                                                                            \
		 .type = OPTION_CHOICE,                                                                                          \
		 .field = offsetof(settings, member.text_form),                                                                  \
		 .fallback = "auto",                                                                                             \
		 .range = "auto|sentences|paragraphs|wrapped|documents",                                                         \
		 .role = ROLE_START,                                                                                             \
		 .value_name = "FORM",                                                                                           \
		 .help = "what a line of text holds; auto detects and reports it for each file"},                                \
		{.name = "text_key",                                                                                             \
		 .type = OPTION_TEXT,                                                                                            \
		 .field = offsetof(settings, member.text_key),                                                                   \
		 .role = ROLE_START,                                                                                             \
		 .value_name = "KEY",                                                                                            \
		 .fallback_text = "text, content, or another common key that exists",                                            \
		 .help = "key of the text in a JSON object; a.b means b within a"},                                              \
	{                                                                                                                        \
		.name = "on_bad_record", .type = OPTION_CHOICE, .field = offsetof(settings, member.on_bad_record),               \
		.fallback = "stop", .range = "stop|skip", .synonym = "fail=stop", .role = ROLE_START, .value_name = "WHAT",      \
		.help = "on a record that is damaged: stop with an error, or skip and count it"                                  \
	}

/* The same settings in the form of corpus.h. */
static inline struct corpus_settings input_corpus_settings(const struct input_settings *settings, int64_t threads)
{
	return (struct corpus_settings){.input_form = input_form_named(settings->input_form),
					.text_form = text_form_named(settings->text_form),
					.text_key = settings->text_key,
					.skip_bad_records = strcmp(settings->on_bad_record, "skip") == 0,
					.threads = (int)threads};
}

#define THREADS_OPTION(offset)                                                                                                   \
	{                                                                                                                        \
		.name = "threads", .type = OPTION_INTEGER, .field = (offset), .fallback = "0", .range = "0..1024",               \
		.role = ROLE_RUN, .value_name = "N",                                                                             \
		.help = "number of worker threads; 0 = one per core; the result does not depend on it", .alias = "num_threads"   \
	}

#endif
