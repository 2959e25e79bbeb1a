/* Stages that divide a text at white space: sentencepiece's way, where a mark (U+2581) takes the place of each space and belongs
 * to the word behind it, and plain division. */
#ifndef TEXT_TOKENIZER_METASPACE_H
#define TEXT_TOKENIZER_METASPACE_H

extern const struct stage_kind stage_metaspace, stage_whitespace_split;

#endif
