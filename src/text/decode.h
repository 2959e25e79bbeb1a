/* Converts ids back to text. */
#ifndef TEXT_DECODE_H
#define TEXT_DECODE_H

#include "base/buffer.h"
#include "text/vocab.h"

/* Appends the text of ids as Hugging Face's WordPiece decoder writes it: pieces that begin with "##" are attached to what
 * precedes them, other entries follow a space, except marks and endings that English attaches to a word (. ? ! , n't 'm 's 've
 * 're). All ids must be in the vocabulary. What the tokenizer removed (case, accents, white space) is not restored. */
void vocab_decode(const struct vocab *vocab, const int32_t *ids, int64_t count, struct buffer *out);

#endif
