/* The unigram language model of sentencepiece (Kudo 2018): every piece of the vocabulary has a score, and a text is cut into the
 * pieces with the largest sum. The best cut is found by one pass over the text (Viterbi) with a double-array trie. */
#ifndef TEXT_TOKENIZER_UNIGRAM_H
#define TEXT_TOKENIZER_UNIGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

enum unigram_kind {
	UNIGRAM_NORMAL,
	UNIGRAM_USER_DEFINED, /* wins wherever it occurs */
	UNIGRAM_UNMATCHED,    /* not looked for in texts: control pieces, bytes */
};
struct unigram_piece {
	const char *text;
	size_t size;
	double score;
	enum unigram_kind kind;
};

struct unigram_settings {
	int32_t unk;        /* what a character becomes that no piece has; a run of them is one token */
	bool byte_fallback; /* it becomes its bytes instead, <0x00> to <0xFF>, if the vocabulary has them */
	bool single;        /* scores are added in single precision, as sentencepiece does; otherwise in double precision, as
			       Hugging Face's tokenizers */
};

/* A node of the trie is a unit; that of its child for `byte` is base ^ byte, if this has the unit as its parent. */
struct unigram_unit {
	uint32_t base, parent;
	double score; /* of the piece that ends here, or -INFINITY */
};

struct unigram {
	struct unigram_settings settings;
	struct unigram_unit *units; /* [unit_count] the root is the first */
	int32_t *ids;               /* [unit_count] the piece that ends here, or -1 */
	int64_t unit_count, units_capacity, ids_capacity;
	bool *user_defined; /* [pieces] or NULL: none is */
	double unknown_score;
	int32_t bytes[256]; /* ids of <0x00> to <0xFF>; -1: not in the vocabulary, or there is no byte fallback */
};

extern const struct token_model unigram_model;

/* Makes what unigram_model takes as a model. The texts are not kept. ERR_DATA, naming `name`: no pieces, too many, a score that
 * is not a number or out of range, a piece that is not UTF-8, or an `unk` that is not a piece. Of pieces with the same text, the
 * last one is found. */
MUST_USE enum status unigram_new(struct unigram **out, const char *name, const struct unigram_piece *pieces, int32_t count,
				 const struct unigram_settings *settings);
/* The size of the longest piece that the text begins with and that is UNIGRAM_USER_DEFINED, or 0. */
size_t unigram_user_defined(const struct unigram *unigram, const char *text, size_t size);

#endif
