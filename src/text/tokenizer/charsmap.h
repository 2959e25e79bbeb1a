/* sentencepiece's precompiled character map: what characters, and sequences of them, are replaced by (NFKC with exceptions, in
 * nearly all models). It is a double-array trie in the form of darts-clone, and the replacements one after another, each
 * NUL-terminated. */
#ifndef TEXT_TOKENIZER_CHARSMAP_H
#define TEXT_TOKENIZER_CHARSMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

struct charsmap {
	uint32_t *units; /* [unit_count] of the trie */
	size_t unit_count;
	char *texts;
	size_t texts_size;
	uint8_t ascii[128]; /* flags of these characters */
};

/* Reads a map from its bytes; without bytes, it replaces nothing. ERR_DATA, naming `name`, if they are not such a map. */
MUST_USE enum status charsmap_init(struct charsmap *out, const char *name, const void *bytes, size_t size);
void charsmap_release(struct charsmap *map);

/* The replacement (NUL-terminated) of the shortest or the longest sequence that the text begins with, and the size of the
 * sequence; NULL: there is none. */
const char *charsmap_find(const struct charsmap *map, const char *text, size_t size, bool longest, size_t *out_size);

extern const struct stage_kind stage_precompiled;

#endif
