/* The operations: what a BERT needs, coarse enough for each back end to fuse.
 *
 * An operation takes the replica and one struct of named fields. Letters: T tokens, P predictions, B sequences, H width, I/O/F
 * widths, V vocabulary, N rows, C classes, M rows of any kind. Activations have the back end's dtype; statistics (mean, rstd,
 * lse), weight gradients and masters have its master_dtype ("stat" below). Roles: out is overwritten; acc is the gradient of a
 * weight: overwritten if `overwrite` is set (the first micro-batch of a step), otherwise added to, in master_dtype; in is
 * read; optional tensors are absent if data (or the weight pointer) is NULL. Weight gradients go to weight->gradient. No
 * operation allocates memory; results depend only on the inputs, for any number of threads.
 *
 * Dropout (p > 0): an element is dropped if u < k = round(65536 p); the others are multiplied by 65536 / (65536 - k). u is one
 * of the eight 16-bit halves (low half first) of Philox4x32-7 with key scalars->seed and counter
 *   hidden:    (column / 8,              position, site, sample)   u number column % 8
 *   attention: (head << 16 | key / 8,    query,    site, sample)   u number key % 8
 * where position, query and key count within the sequence and sample is batch->samples[sequence]. The mask is therefore
 * independent of packing, ranks and micro-batches, and backward can recompute it. See backend/dropout.h.
 */
#ifndef BACKEND_OPS_H
#define BACKEND_OPS_H

#include "backend/backend.h"

enum activation {
	ACTIVATION_NONE,
	ACTIVATION_TANH,
	/* Those of feed-forward parts, whose derivative is computed from their argument. "gelu" below stands for any of them. */
	ACTIVATION_GELU_ERF,
	ACTIVATION_GELU_TANH,
	ACTIVATION_RELU,
	ACTIVATION_SILU,
};

static inline bool activation_is_gelu(enum activation activation)
{
	return activation >= ACTIVATION_GELU_ERF && activation <= ACTIVATION_SILU;
}

struct dropout {
	double p;
	uint32_t site; /* the place in the model */
};

/* y = dropout(LN(sum)), sum = word[ids] [+ position[positions]] [+ type[types]]. */
struct embed_fwd {
	const struct batch *batch;
	const struct weight *word, *position, *type; /* (V,H) (S,H) (2,H); position, type optional */
	const struct weight *gamma, *beta;           /* (1,H); beta optional, as in all norms */
	double epsilon;
	struct dropout dropout;
	struct tensor sum;        /* out (T,H): saved */
	struct tensor mean, rstd; /* out (1,T) stat: saved */
	struct tensor y;          /* out (T,H) */
};

/* Backward of embed_fwd: acc word, position, type, gamma, beta, as far as they are there. `overwrite_word` is separate because in
 * pre-training the tied output layer has already written the word gradient. */
struct embed_bwd {
	const struct batch *batch; /* id_order is used: rows are added in a fixed order, no atomics */
	const struct weight *word, *position, *type, *gamma, *beta;
	struct dropout dropout;
	bool overwrite, overwrite_word;
	struct tensor dy; /* in (T,H); may be used as scratch */
	struct tensor sum, mean, rstd;
};

/* y = act(x w' + b), act NONE or TANH. */
struct linear_fwd {
	const struct weight *w, *b; /* (O,I) (1,O); b optional */
	enum activation activation;
	struct tensor x; /* (M,I) */
	struct tensor y; /* out (M,O) */
};

/* pre = x w' + b, y = gelu(pre). `pre.data` NULL outside training. */
struct linear_gelu_fwd {
	const struct weight *w, *b; /* b optional */
	enum activation activation; /* a gelu */
	struct tensor x;            /* (M,I) */
	struct tensor pre;          /* out (M,F) */
	struct tensor y;            /* out (M,F) */
};

/* Gated feed-forward (Shazeer 2020, "GLU Variants Improve Transformer"): y = dropout(gelu(a) g), where the columns of pre are a
 * and g. Dropout rows are the batch's tokens; batch may be NULL when p = 0. */
struct gated_fwd {
	const struct batch *batch;
	enum activation activation; /* a gelu */
	struct dropout dropout;
	struct tensor pre; /* (M,2F) */
	struct tensor y;   /* out (M,F) */
};

struct gated_bwd {
	const struct batch *batch;
	enum activation activation;
	struct dropout dropout;
	struct tensor dy;   /* in (M,F) */
	struct tensor pre;  /* in (M,2F) */
	struct tensor dpre; /* out (M,2F) */
};

/* sum = residual + dropout(x w' + b), y = LN(sum). Without w, x takes the place of the product (I = H). Outside training
 * sum.data may be NULL. Dropout rows are the batch's tokens; batch may be NULL when p = 0. */
struct linear_norm_fwd {
	const struct batch *batch;
	const struct weight *w, *b; /* optional: (H,I) (1,H) */
	const struct weight *gamma, *beta;
	double epsilon;
	struct dropout dropout;
	struct tensor x;               /* (M,I) */
	struct tensor residual;        /* optional (M,H) */
	struct tensor sum, mean, rstd; /* out: saved */
	struct tensor y;               /* out (M,H) */
};

/* Backward of the norm part of linear_norm_fwd: dresidual = dLN(dy) [+ add]; dx = dropout mask * dresidual [* gelu'(pre)]; acc
 * gamma, beta and `bias` (of the preceding linear: column sums of dx). dx.data may be NULL, or equal to dresidual.data if p = 0
 * and there is no `pre`: one output. dresidual may alias dy or add: `add` is what the sum's gradient gets from elsewhere, where
 * the sum goes on as the residual of the next block (pre-norm). `pre` is for a norm without w whose x = gelu(pre) comes from
 * linear_gelu_fwd (the MLM head's transform): dx is then the gradient of that product, and bias its bias. */
struct norm_bwd {
	const struct batch *batch;
	const struct weight *gamma, *beta;
	const struct weight *bias;      /* optional */
	enum activation pre_activation; /* a gelu with `pre`, else NONE */
	struct dropout dropout;
	bool overwrite;
	struct tensor dy; /* in (M,H) */
	struct tensor sum, mean, rstd;
	struct tensor pre;       /* optional (M,H): x = gelu(pre) */
	struct tensor add;       /* optional (M,H) */
	struct tensor dresidual; /* out (M,H) */
	struct tensor dx;        /* out (M,H) */
};

/* Backward of a product y = x w' + b:
 *   dx = (dy w) [* gelu'(pre)] [+ add]   (M,I), if dx.data is not NULL
 *   acc w: dy' x, and acc b: column sums of dy, unless w has no gradient; acc producer_bias: column sums of dx.
 * With `tanh_y` (the output of a TANH linear, (M,O)) dy is first multiplied by 1 - y^2, in place. */
struct linear_bwd {
	const struct weight *w;
	const struct weight *b;             /* optional */
	const struct weight *producer_bias; /* optional: bias of the linear whose gelu output x is */
	enum activation pre_activation;     /* a gelu with `pre`, else NONE */
	bool overwrite;
	struct tensor dy;     /* in (M,O) */
	struct tensor x;      /* (M,I) */
	struct tensor pre;    /* optional (M,I): x = gelu(pre) */
	struct tensor add;    /* optional (M,I); may alias dx */
	struct tensor tanh_y; /* optional (M,O) */
	struct tensor dx;     /* out, optional (M,I) */
};

/* Rotary positions (Su et al. 2021, "RoFormer"), in place: in each head of the queries and keys, of D = H/heads columns, columns
 * i and i + D/2 are turned by the angle position base^(-2i/D); with `back` by its negative, which is the backward. Frequencies
 * and angles are rounded to fp32 in every type, as in Hugging Face's models. */
struct rotary {
	const struct batch *batch;
	int32_t heads;
	double base;
	bool back;
	struct tensor qkv; /* in and out (T,3H) */
};
#define ROTARY_LIMIT 256 /* upper limit on D */
/* Fills frequencies [size / 2]. */
void rotary_frequencies(double base, int32_t size, float *frequencies);

/* Bidirectional attention within each sequence: columns of qkv are query, key, value (H each), split into heads of H/heads
 * columns; scores scaled by 1/sqrt(H/heads); dropout on the probabilities. With a window, a token sees that many tokens to each
 * side, and the work grows linearly with the sequence; 0: it sees all. */
struct attention_fwd {
	const struct batch *batch;
	int32_t heads, window;
	struct dropout dropout;
	struct tensor qkv; /* (T,3H) */
	struct tensor y;   /* out (T,H) */
	struct tensor lse; /* out (heads,T) stat: log-sum-exp of the scaled scores; data NULL outside training */
};

struct attention_bwd {
	const struct batch *batch;
	int32_t heads, window;
	struct dropout dropout;
	bool overwrite;
	const struct weight *bias; /* optional acc (1,3H): column sums of dqkv */
	struct tensor dy;          /* in (T,H) */
	struct tensor qkv, y, lse;
	struct tensor dqkv; /* out (T,3H) */
};

/* y[i] = x[rows[i]], i < count. Rows are distinct and, except for padding, ascending. */
struct gather_fwd {
	const int32_t *rows; /* device */
	int32_t count;
	struct tensor x; /* (T,H) */
	struct tensor y; /* out (count,H) */
};

/* dx[rows[i]] += dy[i]; with `overwrite` all T rows of dx are zeroed first. */
struct gather_bwd {
	const int32_t *rows; /* NULL: row i, and count is T */
	int32_t count;
	bool overwrite;
	struct tensor dy; /* (count,H) */
	struct tensor dx; /* out or acc (T,H), activation dtype */
};

/* One vector per sequence: the mean of its rows, or its first row ([CLS]). In the master type, because vectors are few and a
 * loss depends on their products. A sequence without tokens gives zeros. */
struct pooling_fwd {
	const struct batch *batch;
	bool first;         /* the first row instead of the mean */
	struct tensor x;    /* (T,H) */
	struct tensor y;    /* out (B,H) stat, or instead: */
	struct tensor rows; /* out (B,H), in the activations' type */
};

/* All rows of dx, from dy * loss_scale: divided by the number of rows and written to each of them, or written to the first row
 * with zeros in the others. */
struct pooling_bwd {
	const struct batch *batch;
	bool first;          /* the first row instead of the mean */
	struct tensor dy;    /* (B,H) stat, or instead: */
	struct tensor drows; /* (B,H) in the activations' type, to which the loss scale has already been applied */
	struct tensor dx;    /* out (T,H) */
};

/* Output layer over the vocabulary with softmax cross entropy, forward and backward combined.
 *   logits = x E' + b; *loss += sum_i w_i CE_i; *correct += sum_i w_i [argmax = label]  (lowest index wins ties)
 *   with `training`: dlogits = w_i (softmax - onehot) * inverse_weight[head] * loss_scale;
 *   dx = dlogits E, acc E: dlogits' x, acc b: column sums. Rows with weight 0 have no effect. */
struct vocab_xent {
	int head;                          /* index into inverse_weight */
	const struct weight *table, *bias; /* (V,H) (1,V) */
	const int32_t *labels;             /* (P) device */
	const float *weights;              /* (P) device */
	bool training, overwrite;
	double *loss, *correct; /* device: replica->accumulators->value + k */
	double *losses;         /* out (P), device: the terms w_i CE_i of *loss; may be NULL */
	struct tensor x;        /* (P,H) */
	struct tensor dx;       /* out (P,H) when training */
};

/* The k most probable entries of each row (ties: lower id first); inference only. */
struct vocab_topk {
	const struct weight *table, *bias;
	int32_t k;
	int32_t *ids;          /* out (P,k), device */
	double *probabilities; /* out (P,k), device */
	struct tensor x;       /* (P,H) */
};

/* Weights of each sequence over the vocabulary (SPLADE-max, Formal et al. 2021), for which its logits are computed in blocks:
 *   y = log(1 + max(0, max over the sequence's rows of x E' + b))
 * rows: the row of x that has the maximum (of equal ones the first); -1 where y is 0. */
struct vocab_max_fwd {
	const struct batch *batch;
	const struct weight *table, *bias; /* (V,H) (1,V) */
	struct tensor x;                   /* (T,H) */
	struct tensor y;                   /* out (B,V) stat */
	int32_t *rows;                     /* out, optional (B,V), device */
};

/* dlogit = dy exp(-y) * loss_scale, of the row with the maximum only: dx += dlogit E, acc E: dlogit x, acc b: dlogit. */
struct vocab_max_bwd {
	const struct batch *batch;
	const struct weight *table, *bias;
	bool overwrite;
	const int32_t *rows; /* (B,V) device */
	struct tensor dy, y; /* (B,V) stat */
	struct tensor x;     /* (T,H) */
	struct tensor dx;    /* out (T,H) */
};

/* Losses over the outputs of a head. All add w_i times the loss of item i to *loss and, where there is a correct answer, add
 * w_i to *correct if it is the most likely one (lowest index wins ties). If the gradient tensor is present, it becomes
 *   w_i dloss * inverse_weight[head] * loss_scale.
 * An item with weight 0 or class -1 has no effect. */

/* Softmax cross entropy over C classes. With label smoothing (Szegedy et al. 2016) the share e of the target is spread evenly
 * over all classes: the loss is (1 - e) CE(label) + e mean_c CE(c). */
struct xent {
	int head;
	double label_smoothing; /* e */
	const int32_t *labels;  /* (N) device: classes */
	const float *weights;   /* (N) device */
	double *loss, *correct; /* device: replica->accumulators->value + k, as in all losses */
	struct tensor logits;   /* (N,C) */
	struct tensor dlogits;  /* out, optional (N,C) */
};

/* Mean over C of (y - value)^2. */
struct squared_error {
	int head;
	const float *values;  /* (N,C) device */
	const float *weights; /* (N) device */
	double *loss;
	struct tensor outputs;  /* (N,C) */
	struct tensor doutputs; /* out, optional (N,C) */
};

/* Mean over C of the binary cross entropy between sigmoid(logit) and a value from 0 to 1, whose term for the value is multiplied
 * by the column's positive weight; correct: every column is on the same side of 1/2 as its value. */
struct binary_xent {
	int head;
	const float *values;           /* (N,C) device */
	const float *weights;          /* (N) device */
	const float *positive_weights; /* (C) device; NULL: 1 */
	double *loss, *correct;
	struct tensor logits;  /* (N,C) */
	struct tensor dlogits; /* out, optional (N,C) */
};

/* Softmax cross entropy over the rows of a group (the choices of a question): item i is rows starts[i] to starts[i + 1] - 1,
 * and its label is the position of the correct row within the group. */
struct group_xent {
	int head;
	const int32_t *starts; /* (N+1) device */
	const int32_t *labels; /* (N) device */
	const float *weights;  /* (N) device */
	int32_t count;         /* N */
	double *loss, *correct;
	struct tensor logits;  /* (B,1) */
	struct tensor dlogits; /* out, optional (B,1) */
};

/* Losses of the scores of a list (the texts of a query) against targets t; list i is rows starts[i] to starts[i + 1] - 1. */
enum list_kind {
	LIST_SHARES,  /* w_f sum of t_j (log-sum-exp of the list's logits - z_j), where f is the first row of the list */
	LIST_MARGINS, /* for every row j after the first, w_j ((z_f - z_j) - (t_f - t_j))^2 */
};
struct list_loss {
	int head;
	enum list_kind kind;
	const int32_t *starts; /* (N+1) device */
	const float *targets;  /* (B) device */
	const float *weights;  /* (B) device */
	int32_t count;         /* N */
	double *loss;
	struct tensor logits;  /* (B,1) */
	struct tensor dlogits; /* out, optional (B,1) */
};

/* Mean of two softmax cross entropies over the tokens of a sequence: where an answer starts (column 0) and where it ends
 * (column 1), as positions in the sequence. A column with class -1 adds nothing; correct: both are right. */
struct segment_xent {
	int head;
	const struct batch *batch; /* its sequences are the items */
	const int32_t *labels;     /* (B,2) device */
	const float *weights;      /* (B) device */
	double *loss, *correct;
	struct tensor logits;  /* (T,2) */
	struct tensor dlogits; /* out, optional (T,2) */
};

/* Sum of softmax cross entropies for rows that each have a class and point at rows of their own sequence (text edits). A row
 * of logits has C class logits and then, for each of K pointers, a query of D numbers and a key of D numbers; row i points at
 * row j of its sequence with the logit query_i . key_j / sqrt(D). A label of -1 adds nothing; correct: all labels of the item
 * are right.
 */
#define POINTER_SIZE_MOST 256 /* upper limit on D */
struct pointer_xent {
	int head;
	const struct batch *batch;
	const int32_t *rows;       /* (N) device: the rows that have labels, ascending */
	const int32_t *labels;     /* (N,1+K) device: the class, then positions in the row's sequence */
	const float *weights;      /* (N) device */
	int32_t count;             /* N */
	int32_t classes, pointers; /* C, K */
	double *loss, *correct;
	struct tensor logits;  /* (T,C+2KD) */
	struct tensor lse;     /* out (K,N) master dtype: log-sum-exp of each pointer's logits */
	struct tensor dlogits; /* out, optional (T,C+2KD) */
};

/* Knowledge distillation from a teacher's outputs for the same items (Hinton et al. 2015, "Distilling the Knowledge in a
 * Neural Network"). */
enum soft_kind {
	SOFT_CLASSES,  /* an item is a row whose columns are the classes of a softmax */
	SOFT_ROWS,     /* an item is rows starts[i] to starts[i + 1] - 1; each column has its own softmax over them */
	SOFT_SIGMOIDS, /* an item is a row; each column is a separate probability */
	SOFT_NUMBERS,  /* an item is a row of numbers */
};

/* Adds w_i times the loss of item i to *loss: T^2 times the divergence KL(teacher, student) of the probabilities of logits /
 * T, averaged over columns for SOFT_ROWS and SOFT_SIGMOIDS; for SOFT_NUMBERS the mean of (y - teacher)^2. dlogits holds the
 * gradients of the label loss; they are mixed with those of this one:
 *   dlogits = (1 - share) dlogits + share w_i dloss * inverse_weight[head] * loss_scale */
struct soft_loss {
	int head;
	enum soft_kind kind;
	const int32_t *starts; /* (N+1) device: for SOFT_ROWS */
	const float *weights;  /* (N) device */
	int32_t count;         /* N */
	double temperature, share;
	double *loss;
	struct tensor teacher, logits; /* (M,C) */
	struct tensor dlogits;         /* in and out (M,C) */
};

/* Distance between hidden states and a teacher's: adds the sum over tokens of the mean over columns of (x - target)^2 to
 * *loss;
 *   dx = factor * 2 (x - target) / H * inverse_tokens * loss_scale.
 * Padding tokens add nothing and have zero gradients. */
struct hidden_error {
	const struct batch *batch;
	double factor;
	double *loss;
	struct tensor x, target; /* (T,H) */
	struct tensor dx;        /* out (T,H); may be x */
};

/* y[i] = dropout(x[i]), where row i is token rows[i] of the batch, whose position and sample determine the mask. Backward is
 * the same operation applied to gradients. y may be x. */
struct row_dropout {
	const struct batch *batch;
	const int32_t *rows; /* (N) device; NULL: row i is token i */
	struct dropout dropout;
	struct tensor x; /* (N,H) */
	struct tensor y; /* out (N,H) */
};

/* scalars->gradient_square_sum = sum of squares of `range` (1,n) (accumulated if `add`); scalars->finite = 0 if any element,
 * or any of `sums`, is not finite (set to 1 first unless `add`); losses_finite likewise for `sums` alone. */
struct sumsq_finite {
	struct tensor range; /* master dtype */
	bool add;
	const struct accumulators *sums; /* optional, device: sums of the losses */
	bool decides;                    /* last range, with no ranks to come: update the loss scale (loss_scale.h) */
};

/* A range of elements with the same weight decay and factor of the learning rate, within what an update is given. */
struct decay_range {
	int64_t offset, count;
	double weight_decay, rate;
};

/* Adam with decoupled weight decay, on several ranges of the slabs at once; does nothing if scalars->finite is 0.
 *   norm = sqrt(gradient_square_sum) / gradient_scale
 *   g = gradient * c / gradient_scale, c = min(1, max_grad_norm / (norm + 1e-6))
 *   m = b1 m + (1-b1) g; v = b2 v + (1-b2) g^2
 *   w -= lr * rate * ( (m / bias_correction1) / (sqrt(v / bias_correction2) + eps) + decay w )
 * This is PyTorch's AdamW with the bias corrections, and Google's with both set to 1. */
struct adamw {
	double beta1, beta2, epsilon;
	const struct decay_range *ranges; /* [range_count] host memory, ascending; elements outside all ranges are unchanged */
	int64_t range_count;
	struct tensor w, m, v; /* in and out (1,n) master dtype */
	struct tensor g;       /* in (1,n) master dtype */
	struct tensor copy;    /* out, optional (1,n): w rounded to the back end's dtype, where it mirrors masters */
};

/* One tensor within a range: the unit over which LAMB takes norms. */
struct lamb_tensor {
	int64_t offset, count; /* in elements, relative to the range */
	double weight_decay, rate;
	bool adapts; /* its learning rate is multiplied by the trust ratio */
};

/* LAMB (You et al. 2020) on the tensors of a range of the slabs, in two operations because norms cover whole tensors.
 * lamb_norms, with c as in adamw but without the 1e-6, or 1 / norm if `normalize`:
 *   g = gradient * c / gradient_scale
 *   m = b1 m + b3 g; v = b2 v + (1-b2) g^2
 *   u = (m / bias_correction1) / (sqrt(v / bias_correction2) + eps) + decay w
 *   norms = |w|^2, |u|^2 of each tensor, summed in double
 * lamb_apply computes the same u again:
 *   r = |w| / |u| if both are > 0, else 1; at most max_trust_ratio (0: no limit). 1 if the tensor does not adapt.
 *   w -= lr rate r u
 * Elements between the tensors are left unchanged. If scalars->finite is 0, both do nothing, except that norms become 0. */
struct lamb_norms {
	double beta1, beta2, beta3, epsilon;
	bool normalize;                    /* scale gradients to norm 1, instead of limiting the norm to max_grad_norm */
	const struct lamb_tensor *tensors; /* (tensor_count) device */
	int64_t tensor_count;
	struct tensor w;    /* in (1,n) master dtype */
	struct tensor m, v; /* in and out (1,n) master dtype */
	struct tensor g;    /* in (1,n) master dtype */
	double *norms;      /* out (tensor_count,2), device */
};

struct lamb_apply {
	double epsilon, max_trust_ratio;
	const struct lamb_tensor *tensors;
	int64_t tensor_count;
	struct tensor w;     /* in and out */
	struct tensor m, v;  /* in */
	const double *norms; /* (tensor_count,2), device */
	struct tensor copy;  /* as in adamw */
};

/* One entry per operation. A back end fills in every one. */
struct operations {
	void (*embed_fwd)(struct replica *r, const struct embed_fwd *a);
	void (*embed_bwd)(struct replica *r, const struct embed_bwd *a);
	void (*linear_fwd)(struct replica *r, const struct linear_fwd *a);
	void (*linear_gelu_fwd)(struct replica *r, const struct linear_gelu_fwd *a);
	void (*gated_fwd)(struct replica *r, const struct gated_fwd *a);
	void (*gated_bwd)(struct replica *r, const struct gated_bwd *a);
	void (*linear_norm_fwd)(struct replica *r, const struct linear_norm_fwd *a);
	void (*norm_bwd)(struct replica *r, const struct norm_bwd *a);
	void (*linear_bwd)(struct replica *r, const struct linear_bwd *a);
	void (*rotary)(struct replica *r, const struct rotary *a);
	void (*attention_fwd)(struct replica *r, const struct attention_fwd *a);
	void (*attention_bwd)(struct replica *r, const struct attention_bwd *a);
	void (*gather_fwd)(struct replica *r, const struct gather_fwd *a);
	void (*gather_bwd)(struct replica *r, const struct gather_bwd *a);
	void (*pooling_fwd)(struct replica *r, const struct pooling_fwd *a);
	void (*pooling_bwd)(struct replica *r, const struct pooling_bwd *a);
	void (*vocab_xent)(struct replica *r, const struct vocab_xent *a);
	void (*vocab_topk)(struct replica *r, const struct vocab_topk *a);
	void (*vocab_max_fwd)(struct replica *r, const struct vocab_max_fwd *a);
	void (*vocab_max_bwd)(struct replica *r, const struct vocab_max_bwd *a);
	void (*xent)(struct replica *r, const struct xent *a);
	void (*squared_error)(struct replica *r, const struct squared_error *a);
	void (*binary_xent)(struct replica *r, const struct binary_xent *a);
	void (*group_xent)(struct replica *r, const struct group_xent *a);
	void (*list_loss)(struct replica *r, const struct list_loss *a);
	void (*segment_xent)(struct replica *r, const struct segment_xent *a);
	void (*pointer_xent)(struct replica *r, const struct pointer_xent *a);
	void (*soft_loss)(struct replica *r, const struct soft_loss *a);
	void (*hidden_error)(struct replica *r, const struct hidden_error *a);
	void (*row_dropout)(struct replica *r, const struct row_dropout *a);
	void (*sumsq_finite)(struct replica *r, const struct sumsq_finite *a);
	void (*adamw)(struct replica *r, const struct adamw *a);
	void (*lamb_norms)(struct replica *r, const struct lamb_norms *a);
	void (*lamb_apply)(struct replica *r, const struct lamb_apply *a);
};

/* What an observer is told after an operation. */
struct operation_done {
	const char *name, *letters; /* "linear_fwd", "M=4096 O=768 ...": a line of the trace; valid only during the call */
	double seconds;             /* by the observer's clock */
	double flops;               /* of its matrix products; 0: none, or too few to count */
	double bytes;               /* that must at least pass through memory, if the operation may be memory-bound; else 0 */
};

/* Watches operations as they run: one at a time, called from the thread that runs them. On a device with a queue the times are
 * those of queueing. */
struct operation_observer {
	void (*done)(void *context, const struct operation_done *done);
	double (*clock)(void); /* seconds */
	void *context;
};
/* Borrowed until the next call; NULL: no observer. Replaces BERTC_TRACE's observer. */
void operations_observe(const struct operation_observer *by);

/* The wrappers that the model and training code call: they check shapes, types and aliasing (a mismatch is a bug in bertc and
 * aborts with the operation, the field and both sizes), trace if asked (BERTC_TRACE=1: one line per operation, with its time),
 * and dispatch. */
void embed_fwd(struct replica *r, const struct embed_fwd *a);
void embed_bwd(struct replica *r, const struct embed_bwd *a);
void linear_fwd(struct replica *r, const struct linear_fwd *a);
void linear_gelu_fwd(struct replica *r, const struct linear_gelu_fwd *a);
void gated_fwd(struct replica *r, const struct gated_fwd *a);
void gated_bwd(struct replica *r, const struct gated_bwd *a);
void linear_norm_fwd(struct replica *r, const struct linear_norm_fwd *a);
void norm_bwd(struct replica *r, const struct norm_bwd *a);
void linear_bwd(struct replica *r, const struct linear_bwd *a);
void rotary(struct replica *r, const struct rotary *a);
void attention_fwd(struct replica *r, const struct attention_fwd *a);
void attention_bwd(struct replica *r, const struct attention_bwd *a);
void gather_fwd(struct replica *r, const struct gather_fwd *a);
void gather_bwd(struct replica *r, const struct gather_bwd *a);
void pooling_fwd(struct replica *r, const struct pooling_fwd *a);
void pooling_bwd(struct replica *r, const struct pooling_bwd *a);
void vocab_xent(struct replica *r, const struct vocab_xent *a);
void vocab_topk(struct replica *r, const struct vocab_topk *a);
void vocab_max_fwd(struct replica *r, const struct vocab_max_fwd *a);
void vocab_max_bwd(struct replica *r, const struct vocab_max_bwd *a);
void xent(struct replica *r, const struct xent *a);
void squared_error(struct replica *r, const struct squared_error *a);
void binary_xent(struct replica *r, const struct binary_xent *a);
void group_xent(struct replica *r, const struct group_xent *a);
void list_loss(struct replica *r, const struct list_loss *a);
void segment_xent(struct replica *r, const struct segment_xent *a);
void pointer_xent(struct replica *r, const struct pointer_xent *a);
void soft_loss(struct replica *r, const struct soft_loss *a);
void hidden_error(struct replica *r, const struct hidden_error *a);
void row_dropout(struct replica *r, const struct row_dropout *a);
void sumsq_finite(struct replica *r, const struct sumsq_finite *a);
void adamw(struct replica *r, const struct adamw *a);
void lamb_norms(struct replica *r, const struct lamb_norms *a);
void lamb_apply(struct replica *r, const struct lamb_apply *a);
/* `batch` is NULL for work without a batch. */
struct work_key work_key(const void *owner, enum work_part part, const struct batch *batch);
/* Queues the operations that `work` calls, or the back end's recording of them: backend_functions.queue_work. While there is
 * an observer, every operation is called. */
void work_queue(struct replica *r, const struct work_key *key, void (*work)(void *context), void *context);
/* Calls a function in the midst of such work, whenever the work is queued: backend_functions.hook. Elsewhere, calls it. */
void work_hook(struct backend *be, void (*call)(void *context, int32_t layer), void *context, int32_t layer);
/* backend_functions.weights_refresh, observed like an operation. */
void weights_refresh(struct replica *r, struct weight *const *weights, int64_t count);

#endif
