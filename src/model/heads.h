/* What a model has behind its encoder, as data: which rows each head reads, what it gives, what it learns from. */
#ifndef MODEL_HEADS_H
#define MODEL_HEADS_H

#include <stdbool.h>
#include <stdint.h>
#include "data/batch.h"
#include "model/pooling.h"

enum head_input {
	INPUT_FIRST_ROW,   /* the first row of each sequence: [CLS] */
	INPUT_CHOSEN_ROWS, /* the rows that the labels name, `joined` of them to an item, one behind the other */
	INPUT_ALL_ROWS,    /* of a head that is alone */
	INPUT_POOLED_ROWS, /* all rows of a sequence as one vector, which is the output; of a head that is alone */
};

enum head_loss {
	LOSS_WORDS,    /* over the vocabulary, tied to the word embeddings, behind a transform: masked words */
	LOSS_CLASSES,  /* cross entropy over the outputs of an item */
	LOSS_SQUARED,  /* squared error */
	LOSS_BINARY,   /* binary cross entropy of each output */
	LOSS_GROUP,    /* cross entropy among the sequences of an example, one output each */
	LOSS_SEGMENT,  /* cross entropies among the tokens of a sequence, one for each of two outputs: where an answer starts and
			  ends */
	LOSS_POINTERS, /* cross entropies of the rows that the labels name, all of INPUT_ALL_ROWS: a class, and which rows of the
			  sequence `pointers` pointers point at; the outputs are those of pointer_xent (backend/ops.h) */
	LOSS_VECTORS,  /* of all vectors of a step: whoever trains computes it, and gives their gradients; no linear layer */
	LOSS_NONE,     /* of inference alone: no linear layer follows, and the rows that the head reads are its outputs */
};

/* Head h learns from labels[h] of a batch. */
struct head {
	enum head_input input;
	unsigned pooling; /* INPUT_POOLED_ROWS: POOLING_MEAN or POOLING_CLS */
	int32_t joined;   /* INPUT_CHOSEN_ROWS: rows of an item; 0 = 1 */
	bool pooled;      /* reads through the pooler; one head at most does */
	bool drops;       /* dropout of classifier_dropout on what it reads */
	int32_t outputs;  /* of an item; LOSS_WORDS: 0, the vocabulary's; INPUT_POOLED_ROWS: the hidden size */
	enum head_loss loss;
	int32_t classes, pointers; /* LOSS_POINTERS */
	double coefficient;        /* of its loss in the sum */
	char name[48];             /* its tensors are NAME.weight and NAME.bias: "classifier"; LOSS_WORDS: "cls.predictions" */
};

struct model_heads {
	char architecture[48]; /* as in config.json: "BertForPreTraining" */
	bool pooler;
	/* While a student learns from a wider teacher: the teacher's hidden size, to which a linear layer of training alone takes
	 * the student's hidden states. 0: there is none. */
	int32_t projection;
	int count;
	struct head head[BATCH_HEADS];
};

/* The encoder and its pooler: BertModel. */
extern const struct model_heads model_heads_none;
/* The encoder alone, whose weights may lack a pooler. */
extern const struct model_heads model_heads_encoder;
/* The same with the pooler's output for each sequence (B,H) as that of head 0. For inference. */
extern const struct model_heads model_heads_pooler;
/* Masked words alone: BertForMaskedLM. */
extern const struct model_heads model_heads_words;
/* Masked words and next sentence (enum pretraining_head): BertForPreTraining. */
extern const struct model_heads model_heads_pretraining;

/* Does a head multiply with the word embeddings? */
bool model_heads_tied(const struct model_heads *heads);

#endif
