/* Ids back to text. */
#ifndef TEXT_DECODE_H
#define TEXT_DECODE_H

#include "base/buffer.h"
#include "text/vocab.h"

/* Appends the text of ids as Hugging Face's WordPiece decoder writes it: pieces that begin with "##" join what stands
 * before them, other entries follow a space, except marks and endings that English glues to a word (. ? ! , n't 'm 's 've
 * 're). The ids lie in the vocabulary. What the tokenizer took away (case, accents, white space) does not come back. */
void vocab_decode(const struct vocab *vocab, const int32_t *ids, int64_t count, struct buffer *out);

#endif
