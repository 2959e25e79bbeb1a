/* Converts ids back to text. */
#ifndef TEXT_DECODE_H
#define TEXT_DECODE_H

#include <stdbool.h>
#include "base/buffer.h"
#include "text/vocab.h"

/* Appends the text of ids as decode() of Hugging Face's tokenizers makes it with the decoder of the vocabulary's tokenizer.json;
 * without that file, with BERT's: pieces that begin with "##" are attached to what precedes them, other entries follow a space,
 * except marks and endings that English attaches to a word (. ? ! , n't 'm 's 've 're). The text is valid UTF-8. `skips_special`:
 * special tokens are left out (skip_special_tokens). Ids that are not in the vocabulary are left out, too. What the tokenizer
 * removed (case, accents, white space) is not restored. */
void vocab_decode(const struct vocab *vocab, const int32_t *ids, int64_t count, bool skips_special, struct buffer *out);

#endif
