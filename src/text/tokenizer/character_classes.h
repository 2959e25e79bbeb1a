/* Classes of characters that the pre-tokenizers of tokenizer.json files use, as Hugging Face's tokenizers library
 * knows them (its regular expressions have another Unicode version than its other functions). */
#ifndef TEXT_TOKENIZER_CHARACTER_CLASSES_H
#define TEXT_TOKENIZER_CHARACTER_CLASSES_H

#include <stdint.h>
#include "base/error.h"
#include "text/unicode.h"

enum {
	CLASS_LETTER = 1,   /* \p{L} */
	CLASS_NUMBER = 2,   /* \p{N} */
	CLASS_WORD = 4,     /* \w */
	CLASS_SPACE = 8,    /* \s */
	CLASS_NUMERIC = 16, /* Rust's is_numeric */
};

/* Rows of the table, sorted; a code point without a row is in no class. */
struct character_class_row {
	uint32_t first, last;
	uint8_t classes;
};
extern const struct character_class_row character_class_rows[];
extern const int character_class_row_count;

/* The classes of each code point; filled in by character_classes_prepare(), which must come first. */
extern uint8_t character_classes[UNICODE_LIMIT];
void character_classes_prepare(void);

#endif
