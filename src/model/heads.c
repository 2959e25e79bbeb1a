/* What follows the encoder: the masked-word head (transform, output layer, usually tied to the word embeddings), and heads with a
 * linear layer over some of the encoder's rows, with or without the pooler. */
#include "model/activations.h"
#include "model/forms.h"

#include <math.h>

const struct model_heads model_heads_none = {.architecture = "BertModel", .pooler = true};

const struct model_heads model_heads_encoder = {.architecture = "BertModel"};

const struct model_heads model_heads_pooler = {
	.architecture = "BertModel",
	.pooler = true,
	.count = 1,
	.head = {{.input = INPUT_FIRST_ROW, .pooled = true, .loss = LOSS_NONE, .name = "pooler"}},
};

const struct model_heads model_heads_words = {
	.architecture = "BertForMaskedLM",
	.count = 1,
	.head = {{.input = INPUT_CHOSEN_ROWS, .loss = LOSS_WORDS, .coefficient = 1, .name = "cls.predictions"}},
};

const struct model_heads model_heads_pretraining = {
	.architecture = "BertForPreTraining",
	.pooler = true,
	.count = 2,
	.head = {{.input = INPUT_CHOSEN_ROWS, .loss = LOSS_WORDS, .coefficient = 1, .name = "cls.predictions"},
		 {.input = INPUT_FIRST_ROW,
		  .pooled = true,
		  .outputs = 2,
		  .loss = LOSS_CLASSES,
		  .coefficient = 1,
		  .name = "cls.seq_relationship"}},
};

const struct model_heads model_heads_words_and_pairs = {
	.architecture = "BertForMaskedLM",
	.count = 2,
	.head = {{.input = INPUT_CHOSEN_ROWS, .loss = LOSS_WORDS, .coefficient = 1, .name = "cls.predictions"},
		 {.input = INPUT_FIRST_ROW,
		  .training = true,
		  .outputs = 2,
		  .loss = LOSS_CLASSES,
		  .coefficient = 1,
		  .name = "cls.seq_relationship"}},
};

const struct model_heads model_heads_splade = {
	.architecture = "BertForMaskedLM",
	.count = 1,
	.head = {{.input = INPUT_POOLED_ROWS,
		  .pooling = POOLING_SPLADE,
		  .loss = LOSS_VECTORS,
		  .coefficient = 1,
		  .name = "cls.predictions"}},
};

bool model_heads_predict(const struct model_heads *heads)
{
	for (int h = 0; h < heads->count; h++)
		if (heads->head[h].loss == LOSS_WORDS)
			return true;
	return false;
}

static bool is_splade(const struct head *head)
{
	return head->input == INPUT_POOLED_ROWS && head->pooling == POOLING_SPLADE;
}

bool head_has_words(const struct head *head)
{
	return head->loss == LOSS_WORDS || is_splade(head);
}

bool model_heads_have_words(const struct model_heads *heads)
{
	return model_heads_predict(heads) || (heads->count == 1 && is_splade(&heads->head[0]));
}

void model_heads_make_room(const struct model_heads *heads, struct batch_capacity *capacity)
{
	enum { ROWS = 1024 };
	int32_t rows = capacity->tokens < ROWS ? capacity->tokens : ROWS;
	if (heads->count == 1 && is_splade(&heads->head[0]) && capacity->labels[0].count < rows)
		capacity->labels[0].count = rows;
}

static int words_head(const struct model *model)
{
	int head = 0;
	while (model->heads.head[head].loss != LOSS_WORDS) {
		head++;
		BUG_IF(head == model->heads.count);
	}
	return head;
}

/* Transforms a->masked into a->transformed. */
static void transform_forward(const struct model *model, struct activations *a, struct replica *replica)
{
	linear_gelu_fwd(replica, &(struct linear_gelu_fwd){.w = &model->transform,
							   .b = weight_of(&model->transform_bias),
							   .activation = model_words_activation(&model->config),
							   .x = a->masked,
							   .pre = a->transform_pre,
							   .y = a->transform_gelu});
	linear_norm_fwd(replica, &(struct linear_norm_fwd){.gamma = &model->transform_gamma,
							   .beta = weight_of(&model->transform_beta),
							   .epsilon = model->config.layer_norm_eps,
							   .x = a->transform_gelu,
							   .sum = a->transform_sum,
							   .mean = a->transform_mean,
							   .rstd = a->transform_rstd,
							   .y = a->transformed});
}

struct tensor model_prediction_rows(const struct model *model, struct activations *a, struct replica *replica,
				    const struct batch *batch)
{
	const struct batch_labels *words = &batch->labels[words_head(model)];
	gather_fwd(replica,
		   &(struct gather_fwd){.rows = words->rows, .count = words->count, .x = activations_output(a), .y = a->masked});
	transform_forward(model, a, replica);
	return a->transformed;
}

/* Leaves the gradient of the rows in a->masked_gradient. */
static void transform_backward(const struct model *model, struct activations *a, struct replica *replica, bool overwrite)
{
	norm_bwd(replica, &(struct norm_bwd){.gamma = &model->transform_gamma,
					     .beta = weight_of(&model->transform_beta),
					     .bias = weight_of(&model->transform_bias),
					     .pre_activation = model_words_activation(&model->config),
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
						 .dx = a->masked_gradient});
}

/* Which rows of the encoder a head reads. */
struct head_rows {
	const int32_t *rows; /* device; NULL: all */
	int32_t count;
};

static struct head_rows rows_of(const struct head *head, const struct batch *batch, const struct batch_labels *labels)
{
	if (head->input == INPUT_ALL_ROWS)
		return (struct head_rows){NULL, batch->token_count};
	if (head->input == INPUT_FIRST_ROW)
		return (struct head_rows){batch->starts, batch->sequence_count};
	return (struct head_rows){labels->rows, labels->count * (head->joined > 1 ? head->joined : 1)};
}

/* Separates the concatenated rows of each item into rows of their own. */
static struct tensor apart(struct tensor joined, int64_t width)
{
	joined.rows *= joined.columns / width;
	joined.columns = width;
	return joined;
}

static struct dropout head_dropout(const struct model *model, const struct activations *a, int number)
{
	const struct model_config *config = &model->config;
	const struct head *head = &model->heads.head[number];
	double p = isnan(config->classifier_dropout) ? config->hidden_dropout_prob : config->classifier_dropout;
	if (head->loss == LOSS_SEGMENT && !model_head_transforms(config, head))
		p = config->span_dropout;
	else if (model_head_form(config, head)->own_dropout)
		p = config->choice_dropout;
	else if (model_head_form(config, head)->hidden_dropout)
		p = config->hidden_dropout_prob;
	return (struct dropout){.p = a->dropout && head->drops ? p : 0,
				.site = (uint32_t)(config->num_hidden_layers + 1) * 4 + (uint32_t)number};
}

/* Dropout on the rows that a head reads, before its own layer in the pooler's place. */
static struct dropout rows_dropout(const struct model *model, const struct activations *a, int number)
{
	struct dropout dropout = head_dropout(model, a, number);
	if (!model_head_form(&model->config, &model->heads.head[number])->drops)
		dropout.p = 0;
	dropout.site += 4;
	return dropout;
}

/* Passes gradients or values of some rows through dropout, in place. */
static void drop_rows(struct replica *replica, const struct batch *batch, const int32_t *rows, struct dropout dropout,
		      struct tensor x)
{
	if (dropout.p > 0)
		row_dropout(replica, &(struct row_dropout){.batch = batch, .rows = rows, .dropout = dropout, .x = x, .y = x});
}

/* Computes a vector for each sequence; no linear layer follows. */
static void pool_rows(const struct model *model, struct activations *a, struct replica *replica, const struct batch *batch,
		      int number)
{
	if (is_splade(&model->heads.head[number])) {
		transform_forward(model, a, replica);
		vocab_max_fwd(replica, &(struct vocab_max_fwd){.batch = batch,
							       .table = model_output_table(model),
							       .bias = &model->prediction_bias,
							       .x = a->transformed,
							       .y = a->heads[number].logits,
							       .rows = a->heads[number].chosen});
		return;
	}
	pooling_fwd(replica, &(struct pooling_fwd){.batch = batch,
						   .first = model->heads.head[number].pooling == POOLING_CLS,
						   .x = activations_output(a),
						   .y = a->heads[number].logits});
}

void model_take_vector_gradients(const struct model *model, struct activations *a, int head, const void *gradients, int64_t rows)
{
	const struct tensor *to = &a->heads[head].logits_gradient;
	BUG_IF(model->heads.head[head].input != INPUT_POOLED_ROWS || !a->training || rows > a->capacity.sequences);
	model->backend->functions->to_device(model->backend, to->data, gradients,
					     (size_t)rows * (size_t)to->columns * dtype_bytes(to->dtype));
}

void model_vectors_backward(const struct model *model, struct activations *a, struct replica *replica, const struct batch *batch,
			    int head, bool overwrite)
{
	if (is_splade(&model->heads.head[head])) {
		vocab_max_bwd(replica, &(struct vocab_max_bwd){.batch = batch,
							       .table = model_output_table(model),
							       .bias = &model->prediction_bias,
							       .overwrite = overwrite,
							       .rows = a->heads[head].chosen,
							       .dy = a->heads[head].logits_gradient,
							       .y = a->heads[head].logits,
							       .x = a->transformed,
							       .dx = a->transformed_gradient});
		transform_backward(model, a, replica, overwrite);
		return;
	}
	pooling_bwd(replica, &(struct pooling_bwd){.batch = batch,
						   .first = model->heads.head[head].pooling == POOLING_CLS,
						   .dy = a->heads[head].logits_gradient,
						   .dx = a->gradient});
}

/* The input of the linear layer: after dropout, if there is any. */
static struct tensor linear_input(const struct head_activations *own, struct dropout dropout)
{
	return dropout.p > 0 ? own->dropped : own->pooled;
}

/* The pooler, or a head's own layer in its place. */
static void pool_forward(const struct model *model, const struct head_activations *own, struct replica *replica,
			 enum activation activation)
{
	if (activation_is_gelu(activation))
		linear_gelu_fwd(replica, &(struct linear_gelu_fwd){.w = &model->pooler,
								   .b = &model->pooler_bias,
								   .activation = activation,
								   .x = own->rows,
								   .pre = own->pre,
								   .y = own->pooled});
	else
		linear_fwd(replica, &(struct linear_fwd){.w = &model->pooler,
							 .b = &model->pooler_bias,
							 .activation = activation,
							 .x = own->rows,
							 .y = own->pooled});
}

bool model_head_pools_mean(const struct model_config *config, const struct head *head)
{
	return head->input == INPUT_FIRST_ROW && (config->mean_pooling || head->pooling == POOLING_MEAN);
}

static void head_forward(const struct model *model, struct activations *a, struct replica *replica, const struct batch *batch,
			 int number)
{
	const struct head *head = &model->heads.head[number];
	const struct head_weights *w = &model->head_weights[number];
	struct head_activations *own = &a->heads[number];
	if (head->input == INPUT_POOLED_ROWS) {
		pool_rows(model, a, replica, batch, number);
		return;
	}
	struct head_rows rows = rows_of(head, batch, &batch->labels[number]);
	struct dropout dropout = head_dropout(model, a, number);
	int64_t hidden = model->config.hidden_size;
	if (model_head_pools_mean(&model->config, head))
		pooling_fwd(replica, &(struct pooling_fwd){.batch = batch, .x = activations_output(a), .rows = own->rows});
	else if (rows.rows)
		gather_fwd(replica, &(struct gather_fwd){.rows = rows.rows,
							 .count = rows.count,
							 .x = activations_output(a),
							 .y = apart(own->rows, hidden)});
	if (model_head_transforms(&model->config, head)) {
		transform_forward(model, a, replica);
	} else if (head->pooled) {
		drop_rows(replica, batch, rows.rows, rows_dropout(model, a, number), own->rows);
		pool_forward(model, own, replica, model_head_form(&model->config, head)->activation);
	}
	if (dropout.p > 0)
		row_dropout(replica, &(struct row_dropout){.batch = batch,
							   .rows = rows.rows,
							   .dropout = dropout,
							   .x = apart(own->pooled, hidden),
							   .y = apart(own->dropped, hidden)});
	if (head->loss == LOSS_NONE)
		return;
	linear_fwd(replica, &(struct linear_fwd){.w = &w->w, .b = &w->b, .x = linear_input(own, dropout), .y = own->logits});
}

static void list_head_loss(const struct activations *a, struct replica *replica, const struct batch *batch, int number,
			   enum list_kind kind, struct tensor gradients)
{
	list_loss(replica, &(struct list_loss){.head = number,
					       .kind = kind,
					       .starts = batch->example_starts,
					       .targets = batch->labels[number].values,
					       .weights = batch->labels[number].weights,
					       .count = batch->example_count,
					       .loss = &replica->accumulators->value[sum_of_loss(number)],
					       .logits = a->heads[number].logits,
					       .dlogits = gradients});
}

static void head_loss(const struct model *model, struct activations *a, struct replica *replica, const struct batch *batch,
		      int number, bool training)
{
	const struct head_activations *own = &a->heads[number];
	const struct batch_labels *labels = &batch->labels[number];
	struct tensor gradients = training ? own->logits_gradient : (struct tensor){0};
	double *loss = &replica->accumulators->value[sum_of_loss(number)];
	double *correct = &replica->accumulators->value[sum_of_correct(number)];
	switch (model->heads.head[number].loss) {
	case LOSS_CLASSES:
		xent(replica, &(struct xent){.head = number,
					     .label_smoothing = training ? model->heads.head[number].label_smoothing : 0,
					     .labels = labels->classes,
					     .weights = labels->weights,
					     .loss = loss,
					     .correct = correct,
					     .logits = own->logits,
					     .dlogits = gradients});
		return;
	case LOSS_SQUARED:
		squared_error(replica, &(struct squared_error){.head = number,
							       .values = labels->values,
							       .weights = labels->weights,
							       .loss = loss,
							       .outputs = own->logits,
							       .doutputs = gradients});
		return;
	case LOSS_BINARY:
		binary_xent(replica, &(struct binary_xent){.head = number,
							   .values = labels->values,
							   .weights = labels->weights,
							   .positive_weights = training ? own->positive_weights : NULL,
							   .loss = loss,
							   .correct = correct,
							   .logits = own->logits,
							   .dlogits = gradients});
		return;
	case LOSS_GROUP:
		group_xent(replica, &(struct group_xent){.head = number,
							 .starts = batch->example_starts,
							 .labels = labels->classes,
							 .weights = labels->weights,
							 .count = batch->example_count,
							 .loss = loss,
							 .correct = correct,
							 .logits = own->logits,
							 .dlogits = gradients});
		return;
	case LOSS_SHARES: list_head_loss(a, replica, batch, number, LIST_SHARES, gradients); return;
	case LOSS_MARGINS: list_head_loss(a, replica, batch, number, LIST_MARGINS, gradients); return;
	case LOSS_SEGMENT:
		segment_xent(replica, &(struct segment_xent){.head = number,
							     .batch = batch,
							     .labels = labels->classes,
							     .weights = labels->weights,
							     .loss = loss,
							     .correct = correct,
							     .logits = own->logits,
							     .dlogits = gradients});
		return;
	case LOSS_POINTERS:
		pointer_xent(replica, &(struct pointer_xent){.head = number,
							     .batch = batch,
							     .rows = labels->rows,
							     .labels = labels->classes,
							     .weights = labels->weights,
							     .count = labels->count,
							     .classes = model->heads.head[number].classes,
							     .pointers = model->heads.head[number].pointers,
							     .loss = loss,
							     .correct = correct,
							     .logits = own->logits,
							     .lse = own->lse,
							     .dlogits = gradients});
		return;
	case LOSS_VECTORS: BUG_IF(training); return; /* known only once all vectors of a step are */
	case LOSS_WORDS:
	case LOSS_NONE: break;
	}
	BUG_IF(true);
}

static enum soft_kind soft_kind_of(enum head_loss loss)
{
	switch (loss) {
	case LOSS_CLASSES: return SOFT_CLASSES;
	case LOSS_GROUP:
	case LOSS_SEGMENT: return SOFT_ROWS;
	case LOSS_BINARY: return SOFT_SIGMOIDS;
	default: return SOFT_NUMBERS;
	}
}

bool head_takes_soft_targets(const struct head *head)
{
	return soft_kind_of(head->loss) != SOFT_NUMBERS || head->loss == LOSS_SQUARED;
}

static void head_soft_loss(const struct model *model, struct activations *a, struct replica *replica, const struct batch *batch,
			   int number, const struct soft_targets *soft)
{
	const struct head_activations *own = &a->heads[number];
	enum head_loss kind = model->heads.head[number].loss;
	const struct batch_labels *labels = &batch->labels[number];
	soft_loss(replica, &(struct soft_loss){.head = number,
					       .kind = soft_kind_of(kind),
					       .starts = kind == LOSS_GROUP ? batch->example_starts : batch->starts,
					       .weights = labels->weights,
					       .count = kind == LOSS_GROUP     ? batch->example_count
							: kind == LOSS_SEGMENT ? batch->sequence_count
									       : (int32_t)own->logits.rows,
					       .temperature = soft->temperature,
					       .share = soft->share,
					       .loss = &replica->accumulators->value[sum_of_soft_loss(number)],
					       .teacher = soft->outputs[number],
					       .logits = own->logits,
					       .dlogits = own->logits_gradient});
}

/* Leaves the gradient of the rows that the head reads in rows_gradient. */
static void head_backward(const struct model *model, struct activations *a, struct replica *replica, const struct batch *batch,
			  int number, bool overwrite)
{
	const struct head *head = &model->heads.head[number];
	const struct head_weights *w = &model->head_weights[number];
	const struct head_activations *own = &a->heads[number];
	struct dropout dropout = head_dropout(model, a, number);
	enum activation activation = model_head_form(&model->config, head)->activation;
	const int32_t *rows = rows_of(head, batch, &batch->labels[number]).rows;
	/* gelu's derivative and the mask are factors of each element, so their order does not matter */
	linear_bwd(replica, &(struct linear_bwd){.w = &w->w,
						 .b = &w->b,
						 .pre_activation = own->pre.data ? activation : ACTIVATION_NONE,
						 .overwrite = overwrite,
						 .dy = own->logits_gradient,
						 .x = linear_input(own, dropout),
						 .pre = own->pre,
						 .dx = own->input_gradient});
	drop_rows(replica, batch, rows, dropout, apart(own->input_gradient, model->config.hidden_size));
	if (model_head_transforms(&model->config, head)) {
		transform_backward(model, a, replica, overwrite);
		return;
	}
	if (!head->pooled)
		return;
	linear_bwd(replica, &(struct linear_bwd){.w = &model->pooler,
						 .b = &model->pooler_bias,
						 .overwrite = overwrite,
						 .dy = own->input_gradient,
						 .x = own->rows,
						 .tanh_y = activation == ACTIVATION_TANH ? own->pooled : (struct tensor){0},
						 .dx = own->rows_gradient});
	drop_rows(replica, batch, rows, rows_dropout(model, a, number), own->rows_gradient);
}

/* The vocabulary's logits exist only within this operation, so it computes the gradients, too. */
static void words_loss(const struct model *model, struct activations *a, struct replica *replica, const struct batch *batch,
		       struct tensor rows, bool training, bool overwrite)
{
	int number = words_head(model);
	vocab_xent(replica, &(struct vocab_xent){.head = number,
						 .table = model_output_table(model),
						 .bias = &model->prediction_bias,
						 .labels = batch->labels[number].classes,
						 .weights = batch->labels[number].weights,
						 .training = training,
						 .overwrite = overwrite,
						 .loss = &replica->accumulators->value[sum_of_loss(number)],
						 .correct = &replica->accumulators->value[sum_of_correct(number)],
						 .x = rows,
						 .dx = training ? a->transformed_gradient : (struct tensor){0}});
}

/* Sums the heads' contributions to the gradient of the encoder's output, starting with the last head's, which overwrites. */
static void gather_gradients(const struct model *model, struct activations *a, struct replica *replica, const struct batch *batch)
{
	bool first = true;
	for (int h = model->heads.count - 1; h >= 0; h--) {
		const struct head *head = &model->heads.head[h];
		struct head_rows rows = rows_of(head, batch, &batch->labels[h]);
		if (head->input == INPUT_ALL_ROWS) /* the only head: it has written the gradient itself */
			return;
		struct tensor gradient = head->loss == LOSS_WORDS ? a->masked_gradient
								  : apart(a->heads[h].rows_gradient, model->config.hidden_size);
		if (model_head_pools_mean(&model->config, head)) { /* the only head, too */
			BUG_IF(!first || h > 0);
			pooling_bwd(replica, &(struct pooling_bwd){.batch = batch, .drows = gradient, .dx = a->gradient});
			return;
		}
		gather_bwd(
			replica,
			&(struct gather_bwd){
				.rows = rows.rows, .count = rows.count, .overwrite = first, .dy = gradient, .dx = a->gradient});
		first = false;
	}
}

static void losses(const struct model *model, struct activations *a, struct replica *replica, const struct batch *batch,
		   const struct soft_targets *soft, bool training, bool overwrite)
{
	BUG_IF(training && (!a->training || model->heads.count == 0));
	struct tensor words = {0};
	bool predicts = model_heads_predict(&model->heads);
	if (predicts)
		words = model_prediction_rows(model, a, replica, batch);
	for (int h = 0; h < model->heads.count; h++) {
		if (model->heads.head[h].loss == LOSS_WORDS)
			continue;
		head_forward(model, a, replica, batch, h);
		head_loss(model, a, replica, batch, h, training);
		if (soft)
			head_soft_loss(model, a, replica, batch, h, soft);
	}
	if (predicts)
		words_loss(model, a, replica, batch, words, training, overwrite);
	if (!training)
		return;
	if (predicts)
		transform_backward(model, a, replica, overwrite);
	for (int h = 0; h < model->heads.count; h++)
		if (model->heads.head[h].loss != LOSS_WORDS)
			head_backward(model, a, replica, batch, h, overwrite);
	gather_gradients(model, a, replica, batch);
}

void model_losses(const struct model *model, struct activations *a, struct replica *replica, const struct batch *batch,
		  bool training, bool overwrite)
{
	losses(model, a, replica, batch, NULL, training, overwrite);
}

void model_soft_losses(const struct model *model, struct activations *a, struct replica *replica, const struct batch *batch,
		       const struct soft_targets *soft, bool overwrite)
{
	losses(model, a, replica, batch, soft, true, overwrite);
}

struct tensor model_outputs(const struct model *model, struct activations *a, struct replica *replica, const struct batch *batch,
			    int head)
{
	BUG_IF(head >= model->heads.count || model->heads.head[head].loss == LOSS_WORDS);
	head_forward(model, a, replica, batch, head);
	return a->heads[head].logits;
}

struct tensor model_last_outputs(const struct activations *activations, int head)
{
	return activations->heads[head].logits;
}
