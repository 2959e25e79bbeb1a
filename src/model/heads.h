/* The heads on top of a model's encoder, as data: which rows each head reads, what it outputs, what it learns from. */
#ifndef MODEL_HEADS_H
#define MODEL_HEADS_H

#include <stdbool.h>
#include <stdint.h>
#include "data/batch.h"
#include "model/pooling.h"

enum head_input {
	INPUT_FIRST_ROW,   /* the first row of each sequence: [CLS] */
	INPUT_CHOSEN_ROWS, /* the rows that the labels refer to, `joined` of them concatenated per item */
	INPUT_ALL_ROWS,    /* only for a single head */
	INPUT_POOLED_ROWS, /* all rows of a sequence pooled to one vector, which is the output; only for a single head */
};

enum head_loss {
	LOSS_WORDS,    /* over the vocabulary, after a transform: masked words */
	LOSS_CLASSES,  /* cross entropy over the outputs of an item */
	LOSS_SQUARED,  /* squared error */
	LOSS_BINARY,   /* binary cross entropy of each output */
	LOSS_GROUP,    /* cross entropy among the sequences of an example, one output each */
	LOSS_SHARES,   /* of the sequences of an example, one output and one value each: cross entropy of their softmax against
			  values that add up to 1 (LIST_SHARES of backend/ops.h) */
	LOSS_MARGINS,  /* the same, squared errors of how far the first is above each other one (LIST_MARGINS) */
	LOSS_SEGMENT,  /* cross entropies over the tokens of a sequence, one for each of two outputs: where an answer starts and
			  ends */
	LOSS_POINTERS, /* cross entropies of the rows that the labels refer to, among INPUT_ALL_ROWS: a class, and for each of
			  `pointers` pointers, the row of the sequence that it points at; the outputs are those of pointer_xent
			  (backend/ops.h) */
	LOSS_VECTORS,  /* over all vectors of a step: the training code computes it and provides the vectors' gradients; no linear
			  layer */
	LOSS_NONE,     /* inference only: there is no linear layer, and the rows that the head reads are its outputs */
};

/* Head h learns from labels[h] of a batch. */
struct head {
	enum head_input input;
	/* INPUT_POOLED_ROWS: POOLING_MEAN, POOLING_CLS, or POOLING_SPLADE. INPUT_FIRST_ROW: with POOLING_MEAN, the mean of a
	 * sequence's rows in the place of its first. */
	unsigned pooling;
	int32_t joined;  /* INPUT_CHOSEN_ROWS: rows per item; 0 = 1 */
	bool pooled;     /* reads through the pooler; at most one head does */
	bool training;   /* only in training: saved models lack it, and it reads rows without the form's layers */
	bool drops;      /* applies classifier_dropout to its input */
	int32_t outputs; /* per item; 0 for LOSS_WORDS, which has the vocabulary's size; INPUT_POOLED_ROWS: the vector's size */
	enum head_loss loss;
	int32_t classes, pointers; /* LOSS_POINTERS */
	double coefficient;        /* of its loss in the total loss */
	/* In training only: */
	double label_smoothing;        /* LOSS_CLASSES: share of the target that is spread over all classes */
	const float *positive_weights; /* LOSS_BINARY: [outputs] factors of the loss where the label applies; NULL: 1 */
	char name[48]; /* its tensors are NAME.weight and NAME.bias, such as "classifier"; LOSS_WORDS: "cls.predictions" */
};

/* What is trained in place of the encoder (model/low_rank.h). */
struct low_rank {
	int32_t rank; /* 0: nothing, the encoder itself is trained */
	double alpha;
	bool rank_stabilized; /* rsLoRA */
	uint32_t targets;     /* bits: the matrices of each layer, in the order of its parameters */
};

struct model_heads {
	char architecture[48]; /* as in config.json: "BertForPreTraining" */
	bool pooler;
	/* While a student learns from a teacher of another width: the teacher's hidden size, to which a linear layer used only
	 * in training maps the student's hidden states. 0: none. */
	int32_t projection;
	struct low_rank low_rank;
	int count;
	struct head head[BATCH_HEADS];
};

/* The encoder and its pooler: BertModel. */
extern const struct model_heads model_heads_none;
/* The encoder alone, for weights that may lack a pooler. */
extern const struct model_heads model_heads_encoder;
/* The encoder and its pooler, with the pooler's output for each sequence (B,H) as the output of head 0. For inference. */
extern const struct model_heads model_heads_pooler;
/* Only masked words: BertForMaskedLM. */
extern const struct model_heads model_heads_words;
/* Masked words and next sentences (enum pretraining_head): BertForPreTraining. */
extern const struct model_heads model_heads_pretraining;
/* The same for forms whose published models predict words alone: BertForMaskedLM. The other head reads the first row itself. */
extern const struct model_heads model_heads_words_and_pairs;

/* The weights of texts over the vocabulary (B,V), as vectors. A model sets `outputs`. */
extern const struct model_heads model_heads_splade;

/* Whether any head predicts masked words. */
bool model_heads_predict(const struct model_heads *heads);
/* Whether a head has the weights for that, as that of model_heads_splade does, too; and whether any head has. */
bool head_has_words(const struct head *head);
bool model_heads_have_words(const struct model_heads *heads);
/* Adds room for the logits of as many rows as may be computed at a time, if a head is that of model_heads_splade. */
void model_heads_make_room(const struct model_heads *heads, struct batch_capacity *capacity);

#endif
