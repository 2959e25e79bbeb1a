/* Runs a model on any number of encoded texts. They are packed by tokens into batches without padding, and answered in input
 * order.
 *
 * On the CPU, the answer to a text is bit-for-bit independent of the other texts in the call. On a GPU, the library's matrix
 * products may round differently in batches of a different size.
 *
 * Threads: only one thread at a time may use an encoder and its session. Several sessions may share a pool (session_open_on), but
 * then only one of their encoders may run at a time; a program that answers requests has a single computing thread. There is no
 * other shared state. */
#ifndef INFER_ENCODER_H
#define INFER_ENCODER_H

#include <stdbool.h>
#include <stdint.h>
#include "data/labeled.h"
#include "infer/session.h"

/* A text as the model reads it: [CLS] a [SEP], or [CLS] a [SEP] b [SEP]. All pointers are borrowed for the call. */
struct encoder_text {
	const int32_t *ids; /* [count], with [CLS] and [SEP] */
	int32_t count;
	int32_t second;       /* index of the second text's first token; 0: there is only one text */
	int32_t left_out;     /* ENCODER_VECTORS: number of leading tokens that are not pooled (a prompt's, [CLS] included); less
				 than `count` */
	const int32_t *rows;  /* [row_count] ascending positions read by a head on chosen rows: masked words, markers */
	const int32_t *words; /* [row_count] ENCODER_LOSSES: the original ids at those positions */
	int32_t row_count;
};

enum encoder_answer {
	ENCODER_HEAD,    /* a head's outputs: (1,C) from the first row or pooled ones, (count,C) from all rows, (row_count,C) from
			    chosen rows */
	ENCODER_VECTORS, /* the text as one vector, the pooled rows of each layer: (layers, modes, H) */
	ENCODER_ROWS,    /* all rows of the chosen layers: (layers, count, H) */
	ENCODER_LOSSES,  /* -log of the probability the model gives each masked word: (row_count) */
	ENCODER_WORDS,   /* the k most probable words for each masked word, most probable first: (row_count, k) */
};

/* What to compute for all texts of a call. */
struct encoder_wish {
	enum encoder_answer answer;
	int head;              /* ENCODER_HEAD */
	unsigned pooling;      /* ENCODER_VECTORS: a set of enum pooling_mode (model/pooling.h) */
	bool normalize;        /* ENCODER_VECTORS: scale each layer's vector to length 1 */
	const int32_t *layers; /* ENCODER_VECTORS and ENCODER_ROWS: [layer_count] layers in any order, 0 = the embeddings, L = the
				  last layer */
	int32_t layer_count;   /* 0: the last layer alone */
	int32_t k;             /* ENCODER_WORDS: at most the size of the vocabulary */
	bool unchecked;        /* the caller runs encoder_check() itself */
};

/* The answers of a call. Zero-initialize; can be reused for further calls. */
struct encoder_answers {
	int64_t count;   /* number of texts */
	int64_t *starts; /* [count + 1] where each text's numbers begin */
	float *values;   /* [starts[count]] */
	int32_t *words;  /* [starts[count]] ENCODER_WORDS: ids; their probabilities are in `values` */
	int64_t starts_capacity, values_capacity, words_capacity;
};
void encoder_answers_release(struct encoder_answers *answers);

/* The capacity a session needs for an encoder, on a model with these heads, that computes `tokens` tokens at a time, or one text
 * of `longest` tokens if that is more. tokens = 0: nothing, so that the session chooses. */
struct batch_capacity encoder_capacity(const struct model_heads *heads, int64_t tokens, int32_t longest);

/* Fills `out`, which has room for set->sequence_count texts, with the set's sequences in order; the texts point into the set. */
void encoder_texts_of(const struct labeled_set *set, struct encoder_text *out);

struct encoder;
/* `session` is borrowed and must have been opened with encoder_capacity(). */
MUST_USE enum status encoder_open(struct encoder **out, struct session *session);
void encoder_close(struct encoder *encoder); /* NULL is fine */
/* Answers all texts. If the model cannot take a text (longer than its positions or the session's room, an id that is not a row of
 * the model, or a pair where the model has a single segment type), returns ERR_USAGE before computing anything and names the text
 * by its number, counted from 1. Answers are checked (encoder_check) unless wish->unchecked is set. */
MUST_USE enum status encoder_run(struct encoder *encoder, const struct encoder_wish *wish, const struct encoder_text *texts,
				 int64_t count, struct encoder_answers *out);

/* Checks that the answers to texts [first, end) are finite. If not, returns ERR_NUMERIC and quotes the beginning of the text. */
MUST_USE enum status encoder_check(const struct encoder *encoder, const struct encoder_text *texts,
				   const struct encoder_answers *answers, int64_t first, int64_t end);

#endif
