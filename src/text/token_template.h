/* The special tokens of a sequence, and the types of its tokens: [CLS] A [SEP], or <s> A </s></s> B </s>. Every vocabulary has a
 * template for one text and one for a pair, from which all inputs of models are put together. */
#ifndef TEXT_TOKEN_TEMPLATE_H
#define TEXT_TOKEN_TEMPLATE_H

#include <stdbool.h>
#include <stdint.h>

#define TEMPLATE_TOKENS 8
struct token_template {
	int32_t ids[TEMPLATE_TOKENS]; /* before the first text, between the two, and after the last, in this order */
	uint8_t types[TEMPLATE_TOKENS];
	int8_t before, between, after;   /* how many of each */
	uint8_t first_type, second_type; /* of the texts' own tokens. Types are 0, then 1. */
	int32_t filler;                  /* what stands in a sequence that would be empty */
};

/* The number of special tokens. */
static inline int32_t template_size(const struct token_template *template)
{
	return template->before + template->between + template->after;
}
/* [CLS] A [SEP], or [CLS] A [SEP] B [SEP] with type 1 from B on. */
struct token_template template_usual(int32_t cls, int32_t sep, bool is_pair);
/* How many tokens are of type 0 in a sequence of texts of `a` and `b` tokens. */
int32_t template_type_0(const struct token_template *template, int64_t a, int64_t b);
/* Whether no token of type 0 follows one of type 1. */
bool template_types_ascend(const struct token_template *template, bool is_pair);
bool template_has(const struct token_template *template, int32_t id);
/* Writes the special tokens around texts of `a` and `b` tokens, whose places stay as they are; returns the length. */
int32_t template_frame(const struct token_template *template, int64_t a, int64_t b, int32_t *out);
/* Writes a sequence of one or two texts (b NULL and b_count 0: one); returns its length,
 * which is at least 1. */
int32_t template_join(const struct token_template *template, const int32_t *a, int64_t a_count, const int32_t *b, int64_t b_count,
		      int32_t *out);

#endif
