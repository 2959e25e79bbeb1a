/* What forward leaves for backward, for model.c and heads.c alone. All tensors have the shapes of the batch
 * that was last forwarded; their memory has the capacity's. Letters as in backend/ops.h. */
#ifndef MODEL_ACTIVATIONS_H
#define MODEL_ACTIVATIONS_H

#include "model/model.h"

/* One encoder layer; its input is the y of the layer before (or `embedded`). Outside training the layers
 * share one set of buffers, y is the input's, and what only backward reads is absent. In training, where
 * products keep twins of what they multiply (backend_functions.twin_bytes), layers share attention_norm,
 * gelu and y, which is the input's. */
struct layer_activations {
	struct tensor qkv;                                           /* (T,3H) */
	struct tensor attention;                                     /* (T,H) */
	struct tensor lse;                                           /* (heads,T) */
	struct tensor attention_sum, attention_mean, attention_rstd; /* (T,H) (1,T) (1,T) */
	struct tensor attention_norm;                                /* (T,H) */
	struct tensor pre, gelu;                                     /* (T,F) */
	struct tensor output_sum, output_mean, output_rstd;          /* (T,H) (1,T) (1,T) */
	struct tensor y;                                             /* (T,H) */
};

/* A head with a linear layer: N items of C outputs, from rows of kH. Its rows are those of the encoder's output, gathered
 * (of INPUT_ALL_ROWS the output itself), then through the pooler, then behind dropout: what a step leaves out is the tensor
 * before it. */
struct head_activations {
	struct tensor rows, pooled, dropped; /* (N,kH) */
	struct tensor logits;                /* (N,C); of INPUT_POOLED_ROWS the vectors (B,H), in the masters' type */
	struct tensor lse;                   /* LOSS_POINTERS: (K,N), N the items of its labels */
	/* Gradients, in training: of what the linear layer reads, and of the rows. */
	struct tensor logits_gradient;               /* (N,C) */
	struct tensor input_gradient, rows_gradient; /* (N,kH) */
};

struct activations {
	const struct model *model;
	struct batch_capacity capacity;
	int32_t longest; /* tokens of a sequence */
	bool training;
	bool dropout; /* of the last forward: backward needs the same masks */
	const struct layer_taps *taps;
	void *memory; /* device: everything below */

	struct tensor embedding_sum, embedding_mean, embedding_rstd; /* (T,H) (1,T) (1,T) */
	struct tensor embedded;                                      /* (T,H) */
	struct layer_activations *layers;                            /* [num_hidden_layers] */

	/* MLM head: masked rows through gelu(linear) and norm. */
	struct tensor masked, transform_pre, transform_gelu;         /* (P,H) */
	struct tensor transform_sum, transform_mean, transform_rstd; /* (P,H) (1,P) (1,P) */
	struct tensor transformed;                                   /* (P,H) */
	struct head_activations heads[BATCH_HEADS];

	/* Gradients, in training. One set serves all layers. */
	struct tensor gradient;           /* (T,H) of the residual stream: encoder output down to embeddings */
	struct tensor branch_gradient;    /* (T,H) behind dropout, before the residual sum */
	struct tensor attention_gradient; /* (T,H) */
	struct tensor pre_gradient;       /* (T,F) */
	struct tensor qkv_gradient;       /* (T,3H); shares memory with pre_gradient */
	struct tensor transformed_gradient, transform_gradient; /* (P,H) */
};

/* Gives all tensors the shapes of `batch`, which must fit the capacity. */
void activations_fit(struct activations *activations, const struct batch *batch);

#endif
