/* ByteLevel, GPT-2's pre-tokenizer: the model behind it receives bytes. In its vocabulary every byte is a printable character. */
#ifndef TEXT_TOKENIZER_BYTE_LEVEL_H
#define TEXT_TOKENIZER_BYTE_LEVEL_H

#include "text/tokenizer/chain.h"

extern const struct stage_kind stage_byte_level;
/* Whether such a stage only says that the model receives bytes: it adds no space and does not divide text. */
bool byte_level_is_idle(const struct stage *stage);

/* The character that stands for a byte in a vocabulary, and its size in UTF-8. */
size_t byte_level_character(uint8_t byte, char out[4]);
/* Writes the bytes that an entry stands for, at most `size`; returns their number, or -1 if one of its characters stands for no
 * byte. */
int64_t byte_level_bytes(const char *text, size_t size, char *out);

#endif
