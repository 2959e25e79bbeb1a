/* The reference back end: every operation of backend/ops.h in float64 and simple loops that follow its formula
 * (docs/developers/math.md). It is the definition that the other back ends are tested against, so it is written to be verified by
 * reading; it is tested against finite differences and PyTorch's float64 (tests/backend).
 *
 * Activations, masters, gradients and moments are all F64. Weights have no compute copies, except for FP8 and int8. Outer
 * loops run on the pool, only over rows or elements of the output, so that no sum depends on the number of threads.
 */
#ifndef BACKEND_REF_REF_H
#define BACKEND_REF_REF_H

#include "backend/dropout.h"
#include "backend/ops.h"

/* Fills the zeroed `be`; settings->dtype is ignored. */
MUST_USE enum status ref_backend_open(struct backend *be, const struct backend_settings *settings);

/* The context of a pool task: the replica and the operation's struct. */
struct ref_call {
	struct replica *replica;
	const void *arguments;
};

/* Runs task(struct ref_call *, index, worker) for every index on the replica's pool. */
void ref_run(struct replica *r, int64_t count, pool_task *task, const void *arguments);

/* The worker's own scratch: at least `count` doubles from the replica's workspace. */
double *ref_scratch(struct replica *r, int worker, int64_t count);
/* A scratch shared by all workers, after their own: at least `count` doubles. */
double *ref_shared_scratch(struct replica *r, int64_t count);

/* After that, two scratch areas that hold one operand each; `which` is 0 or 1. */
double *ref_operand_scratch(struct replica *r, int which, int64_t count);

/* fp8.c: entries of backend_functions, and the operands of products with `weight`: the tensors themselves, or, for FP8 or
 * int8, the rounded master and x. Only one rounded x per format exists at a time. */
size_t ref_weight_copy_bytes(struct backend *be, const struct weight *weight);
void ref_weights_refresh(struct replica *replica, struct weight *const *weights, int64_t count);
struct weight ref_weight_operand(const struct replica *r, const struct weight *weight);
struct tensor ref_operand(struct replica *r, const struct weight *weight, enum dtype format, const struct tensor *x);

static inline double *ref_row(const struct tensor *tensor, int64_t row)
{
	return (double *)tensor->data + row * tensor->columns;
}

/* A vector that may be absent. */
static inline const double *ref_vector(const struct weight *weight)
{
	return weight ? weight->master.data : NULL;
}

/* Sum of a[i] b[i]. The SIMD lanes are fixed at compile time, so the order of summation is too. */
double ref_dot(const double *a, const double *b, int64_t count);

/* out[j] = or += sum over rows i of x[i][j], rows in ascending order; out is (1, columns). */
void ref_column_sums(struct replica *r, const struct tensor *x, const struct tensor *out, bool overwrite);

/* Multiplies the row of `token` by its dropout factors (0 or scale); does nothing when p = 0. */
void ref_dropout_row(const struct replica *r, const struct dropout *dropout, const struct batch *batch, int64_t token,
		     double *row, int64_t columns);

/* dx of layer normalization for one row: with n = (sum - mean) rstd and g = dy gamma,
 *   dx = rstd (g - mean(g) - n mean(g n)). dx may be dy. */
void ref_norm_row_backward(const double *dy, const double *sum, double mean, double rstd, const double *gamma, const double *add,
			   double *dx, int64_t columns);
/* mean, rstd = 1 / sqrt(biased variance + epsilon) of a row, and y = gamma n + beta; y may be sum. */
void ref_norm_row(const double *sum, double epsilon, const double *gamma, const double *beta, double *out_mean, double *out_rstd,
		  double *y, int64_t columns);
/* acc gamma (sum over rows of dy n) and beta (sum over rows of dy). */
void ref_norm_weights_backward(struct replica *r, const struct tensor *dy, const struct tensor *sum, const struct tensor *mean,
			       const struct tensor *rstd, const struct weight *gamma, const struct weight *beta, bool overwrite);

/* Log-sum-exp of a row, without overflow; *out_best is the index of the largest element, lowest index on ties. */
double ref_log_sum_exp(const double *row, int64_t count, int64_t *out_best);

/* An activation for which "gelu" stands in backend/ops.h, and its derivative. */
double ref_gelu(enum activation activation, double x);
double ref_gelu_derivative(enum activation activation, double x);

/* The operations. */
void ref_embed_fwd(struct replica *r, const struct embed_fwd *a);
void ref_embed_bwd(struct replica *r, const struct embed_bwd *a);
void ref_linear_fwd(struct replica *r, const struct linear_fwd *a);
void ref_linear_gelu_fwd(struct replica *r, const struct linear_gelu_fwd *a);
void ref_gated_fwd(struct replica *r, const struct gated_fwd *a);
void ref_gated_bwd(struct replica *r, const struct gated_bwd *a);
void ref_linear_norm_fwd(struct replica *r, const struct linear_norm_fwd *a);
void ref_norm_bwd(struct replica *r, const struct norm_bwd *a);
void ref_linear_bwd(struct replica *r, const struct linear_bwd *a);
void ref_rotary(struct replica *r, const struct rotary *a);
void ref_attention_fwd(struct replica *r, const struct attention_fwd *a);
void ref_attention_bwd(struct replica *r, const struct attention_bwd *a);
void ref_gather_fwd(struct replica *r, const struct gather_fwd *a);
void ref_gather_bwd(struct replica *r, const struct gather_bwd *a);
void ref_pooling_fwd(struct replica *r, const struct pooling_fwd *a);
void ref_pooling_bwd(struct replica *r, const struct pooling_bwd *a);
void ref_vocab_xent(struct replica *r, const struct vocab_xent *a);
void ref_vocab_topk(struct replica *r, const struct vocab_topk *a);
void ref_vocab_max_fwd(struct replica *r, const struct vocab_max_fwd *a);
void ref_vocab_max_bwd(struct replica *r, const struct vocab_max_bwd *a);
void ref_xent(struct replica *r, const struct xent *a);
void ref_squared_error(struct replica *r, const struct squared_error *a);
void ref_binary_xent(struct replica *r, const struct binary_xent *a);
void ref_group_xent(struct replica *r, const struct group_xent *a);
void ref_list_loss(struct replica *r, const struct list_loss *a);
void ref_segment_xent(struct replica *r, const struct segment_xent *a);
void ref_pointer_xent(struct replica *r, const struct pointer_xent *a);
void ref_soft_loss(struct replica *r, const struct soft_loss *a);
void ref_hidden_error(struct replica *r, const struct hidden_error *a);
void ref_row_dropout(struct replica *r, const struct row_dropout *a);
void ref_sumsq_finite(struct replica *r, const struct sumsq_finite *a);
void ref_adamw(struct replica *r, const struct adamw *a);
void ref_lamb_norms(struct replica *r, const struct lamb_norms *a);
void ref_lamb_apply(struct replica *r, const struct lamb_apply *a);

#endif
