/* What forward leaves for backward; used only by the files of this folder. All tensors have the shapes of the batch that was
 * last forwarded; their memory is sized for the capacity. Letters as in backend/ops.h. */
#ifndef MODEL_ACTIVATIONS_H
#define MODEL_ACTIVATIONS_H

#include "model/model.h"

/* One encoder layer. Its input is the previous layer's y (or `embedded`). Outside of training, all layers share one set of
 * buffers, y is in the input's buffer, and tensors that only backward reads are absent; so do layers below the lowest one that
 * learns. In training, if products keep twins of their operands (backend_functions.twin_bytes), the layers share attention_norm,
 * gelu, and y, which is in the input's buffer. */
struct layer_activations {
	struct tensor qkv;                                           /* (T,3H) */
	struct tensor attention;                                     /* (T,H) */
	struct tensor lse;                                           /* (heads,T) */
	struct tensor attention_sum, attention_mean, attention_rstd; /* (T,H) (1,T) (1,T) */
	struct tensor attention_norm;                                /* (T,H) */
	struct tensor pre, gelu;                                     /* (T,F); pre (T,2F) if gated */
	struct tensor output_sum, output_mean, output_rstd;          /* (T,H) (1,T) (1,T) */
	struct tensor y;                                             /* (T,H) */
};

/* A head with a linear layer: N items with C outputs each, from rows of width kH. Its rows are rows of the encoder's output,
 * gathered (for INPUT_ALL_ROWS the output itself), then passed through the pooler (or a layer of the head's own in its place),
 * then through dropout; if one of these steps does not apply, its tensor is the previous step's. */
struct head_activations {
	struct tensor rows, pooled, dropped; /* (N,kH) */
	struct tensor pre;                   /* (N,H) what the pooler's gelu is applied to, if it has one */
	struct tensor logits;                /* (N,C); for INPUT_POOLED_ROWS the vectors (B,C), in the masters' type */
	int32_t *chosen;                     /* POOLING_SPLADE, in training: (B,C) the row that each weight is from */
	struct tensor lse;                   /* LOSS_POINTERS: (K,N), N being the number of items of its labels */
	float *positive_weights;             /* device: those of the head, in training; or NULL */
	/* Gradients, in training: of the linear layer's outputs and input, and of the rows. */
	struct tensor logits_gradient;               /* (N,C) */
	struct tensor input_gradient, rows_gradient; /* (N,kH) */
};

struct activations {
	const struct model *model;
	struct batch_capacity capacity;
	int32_t longest; /* in training: maximum number of tokens in a sequence */
	bool training;
	bool dropout; /* in the last forward: backward needs the same masks */
	const struct layer_taps *taps;
	void *memory; /* device: everything below */

	struct tensor embedding_sum, embedding_mean, embedding_rstd; /* (T,E) (1,T) (1,T) */
	int32_t *one_type; /* [T] zeros: what a model with a single type reads instead of the batch's types; else NULL */
	struct tensor narrow, narrow_gradient; /* (T,E) embeddings before their projection, if E is not H */
	struct tensor embedded;                /* (T,H) */
	struct layer_activations *layers;      /* [num_hidden_layers] */

	/* MLM head: masked rows through gelu(linear) and LayerNorm. */
	struct tensor masked;                                        /* (P,H) */
	struct tensor transform_pre, transform_gelu;                 /* (P,E) */
	struct tensor transform_sum, transform_mean, transform_rstd; /* (P,E) (1,P) (1,P) */
	struct tensor transformed;                                   /* (P,E) */
	struct head_activations heads[BATCH_HEADS];

	/* Gradients, in training. All layers share one set. */
	struct tensor gradient;           /* (T,H) of the residual stream: from the encoder's output down to the embeddings */
	struct tensor branch_gradient;    /* (T,H) of a branch's output, before dropout and the residual sum */
	struct tensor attention_gradient; /* (T,H) */
	struct tensor stream_gradient;    /* (T,H) with pre-norm: of the residual stream; `gradient` is that of the normed rows */
	struct tensor gelu_gradient;      /* (T,F) if gated */
	struct tensor pre_gradient;       /* (T,F) or, if gated, (T,2F) */
	struct tensor qkv_gradient;       /* (T,3H); shares memory with pre_gradient */
	struct tensor masked_gradient;    /* (P,H) */
	struct tensor transformed_gradient, transform_gradient; /* (P,E); the former shares memory with masked_gradient */
};

/* Gives all tensors the shapes of `batch`, which must fit the capacity. */
void activations_fit(struct activations *activations, const struct batch *batch);

#endif
