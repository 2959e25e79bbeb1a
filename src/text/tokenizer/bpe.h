/* Byte-pair encoding (Sennrich et al. 2016): a word begins as its characters or bytes, and the pair of neighbors that was merged
 * first when the vocabulary was learned is merged again, until no pair is left. */
#ifndef TEXT_TOKENIZER_BPE_H
#define TEXT_TOKENIZER_BPE_H

#include "text/tokenizer/chain.h"

extern const struct token_model bpe_model;

#endif
