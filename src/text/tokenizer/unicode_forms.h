/* The four normalization forms of Unicode as stages of a chain. */
#ifndef TEXT_TOKENIZER_UNICODE_FORMS_H
#define TEXT_TOKENIZER_UNICODE_FORMS_H

extern const struct stage_kind stage_nfc, stage_nfd, stage_nfkc, stage_nfkd;

#endif
