/* Pre-tokenizers that divide text at certain characters or patterns. */
#ifndef TEXT_TOKENIZER_SPLIT_STAGES_H
#define TEXT_TOKENIZER_SPLIT_STAGES_H

#include "text/tokenizer/chain.h"

extern const struct stage_kind stage_whitespace, stage_punctuation, stage_digits, stage_split;

#endif
