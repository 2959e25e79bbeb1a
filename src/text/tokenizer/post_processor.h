/* The "post_processor" of a tokenizer.json: the special tokens around texts, the types of tokens, and whether offsets include
 * white space. */
#ifndef TEXT_TOKENIZER_POST_PROCESSOR_H
#define TEXT_TOKENIZER_POST_PROCESSOR_H

#include "text/tokenizer/chain.h"

/* BERT's: [CLS] A [SEP], and [CLS] A [SEP] B [SEP] with the type 1 from B on. */
void post_processor_usual(struct vocab *vocab);
/* Reads vocab->single and vocab->pair, and *trims. Without the member, or with null, there are no special tokens. A template that
 * names unknown tokens, or that has the texts in another order, is ERR_DATA. */
MUST_USE enum status post_processor_read(struct vocab *vocab, const struct json *root, const char *path,
					 struct offset_trimming *trims);

#endif
