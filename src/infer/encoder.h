/* What a model computes for texts: any number of encoded texts at a time, packed by tokens into batches without padding,
 * answered in the order of the input.
 *
 * On the CPU the answer to a text does not depend on the texts beside it, to the last bit. On a GPU the library's products may
 * round otherwise in batches of another size.
 *
 * Threads: an encoder and its session belong to one thread at a time. Several sessions may share a pool
 * (session_open_on), but then only one of their encoders may run at a time: a program that answers requests has one thread that
 * computes. There is no state besides. */
#ifndef INFER_ENCODER_H
#define INFER_ENCODER_H

#include <stdbool.h>
#include <stdint.h>
#include "data/labelled.h"
#include "infer/session.h"

/* A text as the model reads it: [CLS] a [SEP], or [CLS] a [SEP] b [SEP]. All pointers are borrowed for the call. */
struct encoder_text {
	const int32_t *ids; /* [count], with [CLS] and [SEP] */
	int32_t count;
	int32_t second;       /* the tokens from here on belong to the second text; 0: there is one text */
	int32_t left_out;     /* ENCODER_VECTORS: tokens in front, [CLS] included, that are not pooled: a prompt's; fewer than
				 `count` */
	const int32_t *rows;  /* [row_count] the tokens that a head of chosen rows reads, ascending: hidden words, markers */
	const int32_t *words; /* [row_count] ENCODER_LOSSES: the ids that stood there */
	int32_t row_count;
};

enum encoder_answer {
	ENCODER_HEAD,    /* the outputs of a head: (1,C) of its first row, (count,C) of all rows, (row_count,C) of chosen ones */
	ENCODER_VECTORS, /* the text as one vector: for each layer the pooled rows, (layers, modes, H) */
	ENCODER_ROWS,    /* all rows of the chosen layers: (layers, count, H) */
	ENCODER_LOSSES,  /* -log of the probability that the model gives to each hidden word: (row_count) */
	ENCODER_WORDS,   /* the k most probable words for each hidden one: (row_count, k), most probable first */
};

/* What is asked for all texts of a call. */
struct encoder_wish {
	enum encoder_answer answer;
	int head;              /* ENCODER_HEAD */
	unsigned pooling;      /* ENCODER_VECTORS: a set of enum pooling_mode (model/pooling.h) */
	bool normalize;        /* ENCODER_VECTORS: each layer's vector is made to have length 1 */
	const int32_t *layers; /* ENCODER_VECTORS and ENCODER_ROWS: [layer_count] 0 = the embeddings, L = the last layer, in any
				  order; none: the last */
	int32_t layer_count;
	int32_t k;      /* ENCODER_WORDS: at most the size of the vocabulary */
	bool unchecked; /* encoder_check() is left to the caller */
};

/* The answers of a call. Zero-initialise; used again from call to call. */
struct encoder_answers {
	int64_t count;   /* texts */
	int64_t *starts; /* [count + 1] where the numbers of each text begin */
	float *values;   /* [starts[count]] */
	int32_t *words;  /* [starts[count]] ENCODER_WORDS: ids, their probabilities are in `values` */
	int64_t starts_capacity, values_capacity, words_capacity;
};
void encoder_answers_release(struct encoder_answers *answers);

/* Room that a session needs for an encoder of a model with these heads that computes `tokens` tokens at a time, or one text of
 * `longest`, if that is more. */
struct batch_capacity encoder_capacity(const struct model_heads *heads, int64_t tokens, int32_t longest);

/* The sequences of a set as texts, in its order, into room for set->sequence_count; they point into the set. */
void encoder_texts_of(const struct labelled_set *set, struct encoder_text *out);

struct encoder;
/* `session` is borrowed and was opened with encoder_capacity(). */
MUST_USE enum status encoder_open(struct encoder **out, struct session *session);
void encoder_close(struct encoder *encoder); /* NULL is fine */
/* Tokens of a text at most: the model's positions, or what the session has room for. */
int32_t encoder_longest(const struct encoder *encoder);
/* Answers all texts. A text that the model cannot take (too long, an id that is no row of the model, a second text where the
 * model knows one) is ERR_USAGE that names it by its number from 1, before anything is computed. Answers are
 * checked (encoder_check). */
MUST_USE enum status encoder_run(struct encoder *encoder, const struct encoder_wish *wish, const struct encoder_text *texts,
				 int64_t count, struct encoder_answers *out);

/* Are the answers to texts [first, end) numbers? One that is not finite is ERR_NUMERIC that names the text by its first words. */
MUST_USE enum status encoder_check(const struct encoder *encoder, const struct encoder_text *texts,
				   const struct encoder_answers *answers, int64_t first, int64_t end);

#endif
