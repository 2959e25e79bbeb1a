/* Normalizers that change, remove, or add characters, one rule each. */
#ifndef TEXT_TOKENIZER_TEXT_STAGES_H
#define TEXT_TOKENIZER_TEXT_STAGES_H

extern const struct stage_kind stage_lowercase, stage_prepend, stage_replace, stage_strip, stage_strip_accents;

#endif
