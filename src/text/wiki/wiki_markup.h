/* Converts wiki markup to readable text, as BERT's authors took it from Wikipedia: running text only. Links become
 * their text; templates, tables, references, lists, headings, pictures, categories and formulas are dropped. A few
 * templates that stand for words within a sentence ({{lang|fr|mot}}, {{convert|5|km}}) are replaced by these
 * words, so that the sentence stays whole.
 *
 * Other templates cannot be expanded, since their definitions are on other pages. Time and memory are linear in the size of the
 * markup, whatever it contains. */
#ifndef TEXT_WIKI_WIKI_MARKUP_H
#define TEXT_WIKI_WIKI_MARKUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/buffer.h"
#include "base/error.h"

/* The names of a wiki's namespaces for files and categories, in addition to those known from many languages. */
#define WIKI_NAME_BYTES 64
struct wiki_names {
	char file[WIKI_NAME_BYTES], media[WIKI_NAME_BYTES], category[WIKI_NAME_BYTES];
};
/* Takes the name of namespace `key` (in a dump's <siteinfo>) if it is one of those. */
void wiki_names_take(struct wiki_names *names, int64_t key, const char *name);

/* Scratch memory of a converter, kept from page to page; zero-initialize. */
struct wiki_scratch {
	struct buffer untagged, expanded, line;
	struct wiki_token *tokens;
	int32_t *stack;
	int64_t token_capacity, stack_capacity;
};
void wiki_scratch_release(struct wiki_scratch *scratch);

/* Appends the text of a page to `out`, one paragraph per line; nothing for a redirect. `markup` must have less than
 * 2 GiB. */
MUST_USE enum status wiki_text(const char *markup, size_t size, const struct wiki_names *names, struct wiki_scratch *scratch,
			       struct buffer *out);

/* Marks where something that cannot be shown as text was (U+FFFC); the sentence around it is dropped. */
#define WIKI_HOLE "\xef\xbf\xbc"

/* The following are steps, used within src/text only. Strips comments and tags, including the content of some; <nowiki> becomes
 * character references. */
void wiki_strip_tags(const char *markup, size_t size, struct buffer *out);
/* Patterns of templates of numbers (wiki_numbers.c): {{convert|5|to|10|km}}; {{unité|5|km|2}}, whose unit may be missing;
 * {{val|5|u=km}}; {{frac|2|1|2}}. */
#define WIKI_CONVERT "convert"
#define WIKI_MEASURE "measure"
#define WIKI_VALUE "value"
#define WIKI_FRACTION "fraction"

/* How a template is shown: NULL if it is dropped, else one of the above, or a pattern in which $1 to $9 stand for its arguments,
 * [ ] encloses an optional part, and other characters stand for themselves. `name` is as written in the page; that of a function
 * of the parser ends with its colon. */
const char *wiki_template_pattern(const char *name, size_t size);

#endif
