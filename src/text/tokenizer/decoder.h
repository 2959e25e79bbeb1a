/* The "decoder" of a tokenizer.json: steps that make text of the entries of tokens. A decoder is needed only to show texts, so
 * one that bertc does not have is named in a warning. */
#ifndef TEXT_TOKENIZER_DECODER_H
#define TEXT_TOKENIZER_DECODER_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "base/json.h"

struct decoder_kind;
struct decoder_step {
	const struct decoder_kind *kind;
	char *pattern, *content;
	int64_t start, stop; /* Strip: how many are removed at the ends */
	bool flag;           /* WordPiece: "cleanup"; Metaspace: the first token loses its spaces */
};
#define DECODER_STEPS 16
struct decoder {
	struct decoder_step steps[DECODER_STEPS];
	int count;
};
/* Reads the decoder of a file; without one, texts are tokens with spaces between them. *out is to be freed after an error, too.
 */
MUST_USE enum status decoder_read(struct decoder **out, const struct json *root, const char *path);
void decoder_free(struct decoder *decoder);

#endif
