/* The option rows for reading text. */
#include "text/input_options.h"

#define ROW(member, role, value) OPTION_ROW(struct input_options, member, role, value)

/* clang-format off */
const struct option input_rows[] = {
	{ROW(input_form, ROLE_START, "FORM"), .range = "auto|text|gutenberg|wiki_xml|cirrus|wikiextractor|json|warc",
	 .fallback = "auto",
	 .help = "format of the files: lines of text, a dump, JSON, ...; auto detects and reports the format of each file"},
	{ROW(text_form, ROLE_START, "FORM"), .range = "auto|sentences|paragraphs|wrapped|documents", .fallback = "auto",
	 .help = "what a line of text holds; auto detects and reports it for each file"},
	{ROW(text_key, ROLE_START, "KEY"), .fallback_text = "text, content, or another common key that exists",
	 .help = "key of the text in a JSON object; a.b means b within a"},
	{ROW(on_bad_record, ROLE_START, "WHAT"), .range = "stop|skip", .fallback = "stop", .synonym = "fail=stop",
	 .help = "on a record that is damaged: stop with an error, or skip and count it"},
	{0},
};
