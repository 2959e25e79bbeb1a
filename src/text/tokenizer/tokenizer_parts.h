/* Stages and models of chains, each in the file that defines it; tokenizer_parts.c lists them. */
#ifndef TEXT_TOKENIZER_TOKENIZER_PARTS_H
#define TEXT_TOKENIZER_TOKENIZER_PARTS_H

#include "text/tokenizer/chain.h"

extern const struct stage_kind stage_bert_normalizer, stage_bert_pre_tokenizer;                /* bert_stages.c */
extern const struct stage_kind stage_lowercase, stage_prepend, stage_replace;                  /* text_stages.c */
extern const struct stage_kind stage_strip, stage_strip_accents;                               /* text_stages.c */
extern const struct stage_kind stage_nfc, stage_nfd, stage_nfkc, stage_nfkd;                   /* unicode_forms.c */
extern const struct stage_kind stage_metaspace, stage_whitespace_split;                        /* metaspace.c */
extern const struct stage_kind stage_whitespace, stage_punctuation, stage_digits, stage_split; /* split_stages.c */

extern const struct token_model bpe_model; /* bpe.c */

#endif
