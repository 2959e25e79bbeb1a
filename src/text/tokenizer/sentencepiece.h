/* sentencepiece's model file (spiece.model, sentencepiece.bpe.model): a protocol buffer with pieces, their scores, and how texts
 * are normalized. Read as sentencepiece itself reads it: texts become the pieces that its encode() gives. */
#ifndef TEXT_TOKENIZER_SENTENCEPIECE_H
#define TEXT_TOKENIZER_SENTENCEPIECE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/buffer.h"
#include "base/error.h"
#include "text/tokenizer/unigram.h"

struct chain;

/* How the pieces of the file are numbered in the model that uses them. */
enum sentencepiece_ids {
	SENTENCEPIECE_OWN,      /* as in the file */
	SENTENCEPIECE_XLM_R,    /* <s> <pad> </s> <unk>, the file's from the fourth on, <mask> */
	SENTENCEPIECE_CAMEMBERT /* <s>NOTUSED <pad> </s>NOTUSED <unk> <unk>NOTUSED, the file's from the second on, <mask> */
};

struct sentencepiece_model {
	struct unigram_piece *pieces; /* [count] in the order of their ids */
	int32_t count, unk;
	bool byte_fallback;
	/* Of the normalization: */
	bool add_dummy_prefix, whitespace_as_suffix, remove_extra_whitespaces, escape_whitespaces;
	const void *charsmap;
	size_t charsmap_size;
	struct buffer file; /* what `pieces` and `charsmap` point into */
};

/* ERR_DATA, naming `path`: the file is not well-formed, of another type than Unigram, or lacks pieces that `ids` needs. */
MUST_USE enum status sentencepiece_read(struct sentencepiece_model *out, const char *path, enum sentencepiece_ids ids);
/* The same for a file that is in memory, which is copied. */
MUST_USE enum status sentencepiece_parse(struct sentencepiece_model *out, const char *path, enum sentencepiece_ids ids,
					 const void *bytes, size_t size);
void sentencepiece_release(struct sentencepiece_model *model);

/* Makes a chain of its normalization and its pieces. */
MUST_USE enum status sentencepiece_chain(struct chain *out, const struct sentencepiece_model *model, const char *path);

#endif
