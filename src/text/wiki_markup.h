/* Wiki markup to readable text, as BERT's authors took it from Wikipedia: running text only. Links become
 * their text; templates, tables, references, lists, headings, pictures, categories and formulas go. A few
 * templates that stand for words within a sentence ({{lang|fr|mot}}, {{convert|5|km}}) are kept as these
 * words, so that the sentence stays whole.
 *
 * Nothing is expanded: templates' definitions are other pages. Time and memory are linear in the size of the
 * markup, whatever it holds. */
#ifndef TEXT_WIKI_MARKUP_H
#define TEXT_WIKI_MARKUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/buffer.h"
#include "base/error.h"

/* What a wiki calls its namespaces for files and categories, besides the names known from many languages. */
#define WIKI_NAME_BYTES 64
struct wiki_names {
	char file[WIKI_NAME_BYTES], media[WIKI_NAME_BYTES], category[WIKI_NAME_BYTES];
};
/* Takes the name of namespace `key` (of a dump's <siteinfo>) if it is one of those. */
void wiki_names_take(struct wiki_names *names, int64_t key, const char *name);

/* Scratch memory of a converter, kept from page to page; zero-initialise. */
struct wiki_scratch {
	struct buffer untagged, expanded, line;
	struct wiki_token *tokens;
	int32_t *stack;
	int64_t token_capacity, stack_capacity;
};
void wiki_scratch_release(struct wiki_scratch *scratch);

/* Appends the text of a page to `out`, a paragraph a line; nothing for a redirect. `markup` has less than 2
 * GiB. */
MUST_USE enum status wiki_text(const char *markup, size_t size, const struct wiki_names *names, struct wiki_scratch *scratch,
			       struct buffer *out);

/* Stands for what was said in signs that are no text (U+FFFC); the sentence around it goes. */
#define WIKI_HOLE "\xef\xbf\xbc"

/* The steps, for each other's files. Tags, comments and what stands in them; <nowiki> becomes entities. */
void wiki_strip_tags(const char *markup, size_t size, struct buffer *out);
/* How a template's call is shown: NULL drops it, else a pattern: $1 to $9 stand for its arguments, other
 * characters for themselves. `name` is as written. */
const char *wiki_template_pattern(const char *name, size_t size);

#endif
