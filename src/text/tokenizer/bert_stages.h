/* BERT's normalizer and pre-tokenizer as stages of a chain, for tokenizers that have only some of BERT's parts; with all of them,
 * texts take the shorter way of tokenizer_walk.h. */
#ifndef TEXT_TOKENIZER_BERT_STAGES_H
#define TEXT_TOKENIZER_BERT_STAGES_H

#include "text/tokenizer/chain.h"

extern const struct stage_kind stage_bert_normalizer, stage_bert_pre_tokenizer;
/* Reads the members of a BertNormalizer into `settings`. */
MUST_USE enum status bert_normalizer_read(const struct part *part, struct tokenizer_settings *settings);

#endif
