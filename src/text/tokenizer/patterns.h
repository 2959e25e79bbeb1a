/* Published regular expressions of pre-tokenizers, as code. They are recognized as a whole; there is no regular-expression
 * engine. */
#ifndef TEXT_TOKENIZER_PATTERNS_H
#define TEXT_TOKENIZER_PATTERNS_H

#include <stddef.h>

/* The end of the match that begins at text[at]; `at` if none begins there. The text is valid UTF-8. */
typedef size_t pattern_match(const char *text, size_t size, size_t at);

/* GPT-2's: contractions, words, numbers, and other characters, each with a space before it, and white space. */
pattern_match match_gpt2;
/* The end of the run of characters of text[at]'s kind (letters, numbers, or others) that begins there. */
pattern_match end_of_kind;
/* The code of a regular expression; NULL: it is not known. character_classes_prepare() must have been called before matching. */
pattern_match *pattern_find(const char *expression);

#endif
