/* Finds added tokens in texts: entries that are tokens wherever they occur, before the text is split into words, as in Hugging
 * Face's tokenizers. Some are looked for in the text as it stands, the others in the normalized text (lower case, without
 * accents, as the tokenizer's settings say). At each place the longest one counts. */
#ifndef TEXT_TOKENIZER_ADDED_TOKENS_H
#define TEXT_TOKENIZER_ADDED_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/buffer.h"
#include "base/error.h"
#include "text/tokenizer/tokenizer_normalize.h"
#include "text/vocab.h"

struct added_pattern {
	const char *text;
	size_t size;
	struct added_token token;
};
/* Sorted by their bytes; first[b] is the index of the first one that begins with byte b or a larger one. */
struct added_patterns {
	struct added_pattern *items;
	int32_t count;
	int32_t first[257];
};
struct added_tokens {
	struct added_patterns plain, normalized;
	struct buffer texts; /* those of `normalized` */
};
struct chain;
/* With `special_tokens`, [PAD] and the like are among the patterns. If there is no chain and the vocabulary has no added tokens,
 * there are no patterns. Texts are normalized by the chain or, if it is NULL, by `normalizer`. The texts of `vocab` are borrowed.
 */
MUST_USE enum status added_tokens_init(struct added_tokens *out, const struct vocab *vocab, const struct chain *chain,
				       const struct normalizer *normalizer, bool special_tokens);
void added_tokens_release(struct added_tokens *added);

struct added_match {
	int32_t id;
	size_t begin, end; /* with the white space that the token takes */
};
/* Finds the next token in text[*at, size) and moves *at behind it. `from` is where the match before ended; this one does not
 * reach back before it. */
bool added_tokens_next(const struct added_patterns *patterns, const char *text, size_t size, size_t *at, size_t from,
		       struct added_match *out);

#endif
