/* The pre-training heads: masked words (transform, tied output layer) and next sentence (pooler, two
 * classes). */
#include "model/activations.h"

struct tensor model_prediction_rows(const struct model *model, struct activations *a, struct replica *replica,
				    const struct batch *batch)
{
	gather_fwd(replica, &(struct gather_fwd){.rows = batch->prediction_rows,
						 .count = batch->prediction_count,
						 .x = activations_output(a),
						 .y = a->masked});
	linear_gelu_fwd(replica, &(struct linear_gelu_fwd){.w = &model->transform,
							   .b = &model->transform_bias,
							   .activation = model->config.hidden_act,
							   .x = a->masked,
							   .pre = a->transform_pre,
							   .y = a->transform_gelu});
	linear_norm_fwd(replica, &(struct linear_norm_fwd){.gamma = &model->transform_gamma,
							   .beta = &model->transform_beta,
							   .epsilon = model->config.layer_norm_eps,
							   .x = a->transform_gelu,
							   .sum = a->transform_sum,
							   .mean = a->transform_mean,
							   .rstd = a->transform_rstd,
							   .y = a->transformed});
	return a->transformed;
}

/* Leaves the gradient of the masked rows in a->transformed_gradient. */
static void prediction_rows_backward(const struct model *model, struct activations *a, struct replica *replica, bool overwrite)
{
	norm_bwd(replica, &(struct norm_bwd){.gamma = &model->transform_gamma,
					     .beta = &model->transform_beta,
					     .bias = &model->transform_bias,
					     .pre_activation = model->config.hidden_act,
					     .overwrite = overwrite,
					     .dy = a->transformed_gradient,
					     .sum = a->transform_sum,
					     .mean = a->transform_mean,
					     .rstd = a->transform_rstd,
					     .pre = a->transform_pre,
					     .dresidual = a->transformed_gradient,
					     .dx = a->transform_gradient});
	linear_bwd(replica, &(struct linear_bwd){.w = &model->transform,
						 .overwrite = overwrite,
						 .dy = a->transform_gradient,
						 .x = a->masked,
						 .dx = a->transformed_gradient});
}

static void next_sentence_forward(const struct model *model, struct activations *a, struct replica *replica,
				  const struct batch *batch, bool training)
{
	gather_fwd(replica, &(struct gather_fwd){.rows = batch->starts, /* [CLS] of each sequence */
						 .count = batch->sequence_count,
						 .x = activations_output(a),
						 .y = a->first});
	linear_fwd(replica, &(struct linear_fwd){.w = &model->pooler,
						 .b = &model->pooler_bias,
						 .activation = ACTIVATION_TANH,
						 .x = a->first,
						 .y = a->pooled});
	linear_fwd(replica, &(struct linear_fwd){
				    .w = &model->next_sentence, .b = &model->next_sentence_bias, .x = a->pooled, .y = a->logits});
	xent(replica, &(struct xent){.labels = batch->next_labels,
				     .loss = &replica->accumulators->value[SUM_NSP_LOSS],
				     .correct = &replica->accumulators->value[SUM_NSP_CORRECT],
				     .logits = a->logits,
				     .dlogits = training ? a->logits_gradient : (struct tensor){0}});
}

/* Leaves the gradient of the first rows in a->first_gradient. */
static void next_sentence_backward(const struct model *model, struct activations *a, struct replica *replica, bool overwrite)
{
	linear_bwd(replica, &(struct linear_bwd){.w = &model->next_sentence,
						 .b = &model->next_sentence_bias,
						 .overwrite = overwrite,
						 .dy = a->logits_gradient,
						 .x = a->pooled,
						 .dx = a->pooled_gradient});
	linear_bwd(replica, &(struct linear_bwd){.w = &model->pooler,
						 .b = &model->pooler_bias,
						 .overwrite = overwrite,
						 .dy = a->pooled_gradient,
						 .x = a->first,
						 .tanh_y = a->pooled,
						 .dx = a->first_gradient});
}

void model_pretraining_loss(const struct model *model, struct activations *a, struct replica *replica, const struct batch *batch,
			    bool training, bool overwrite)
{
	BUG_IF(training && !a->training);
	struct tensor rows = model_prediction_rows(model, a, replica, batch);
	next_sentence_forward(model, a, replica, batch, training);
	/* The vocabulary's logits live only inside this operation, so it computes the gradients at once. */
	vocab_xent(replica, &(struct vocab_xent){.table = &model->word,
						 .bias = &model->prediction_bias,
						 .labels = batch->prediction_labels,
						 .weights = batch->prediction_weights,
						 .training = training,
						 .overwrite = overwrite,
						 .loss = &replica->accumulators->value[SUM_MLM_LOSS],
						 .correct = &replica->accumulators->value[SUM_MLM_CORRECT],
						 .x = rows,
						 .dx = training ? a->transformed_gradient : (struct tensor){0}});
	if (!training)
		return;
	prediction_rows_backward(model, a, replica, overwrite);
	next_sentence_backward(model, a, replica, overwrite);
	gather_bwd(replica, &(struct gather_bwd){.rows = batch->starts,
						 .count = batch->sequence_count,
						 .overwrite = true,
						 .dy = a->first_gradient,
						 .dx = a->gradient});
	gather_bwd(replica, &(struct gather_bwd){.rows = batch->prediction_rows,
						 .count = batch->prediction_count,
						 .dy = a->transformed_gradient,
						 .dx = a->gradient});
}
