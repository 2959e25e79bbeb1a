/* Counts the floating-point operations of a model's passes. */
#include "model/flops.h"
#include "model/forms.h"

/* The usual share of masked tokens (Devlin et al. 2019). */
#define PREDICTED_SHARE 0.15

struct model_work model_work_of(const struct batch *batch)
{
	struct model_work work = {
		.tokens = batch->token_count,
		.sequences = batch->sequence_count,
	};
	for (int h = 0; h < BATCH_HEADS; h++)
		work.predictions += batch->labels[h].rows ? batch->labels[h].count : 0;
	for (int32_t s = 0; s < batch->sequence_count; s++) {
		double length = batch->starts[s + 1] - batch->starts[s];
		work.squares += length * length;
	}
	return work;
}

struct model_work model_work_of_full(double sequences, double length)
{
	return (struct model_work){
		.tokens = sequences * length,
		.sequences = sequences,
		.predictions = sequences * PREDICTED_SHARE * length,
		.squares = sequences * length * length,
	};
}

double model_head_flops(const struct model_config *config, const struct model_heads *heads, const struct model_work *work)
{
	double hidden = config->hidden_size, flops = 0;
	for (int h = 0; h < heads->count; h++) {
		const struct head *head = &heads->head[h];
		bool all = head->input == INPUT_ALL_ROWS || head->input == INPUT_POOLED_ROWS;
		if (head->loss == LOSS_VECTORS && !head_has_words(head))
			continue;
		double items = head->input == INPUT_FIRST_ROW ? work->sequences : all ? work->tokens : work->predictions;
		double width = model_embedding_size(config), joined = head->joined > 1 ? head->joined : 1;
		if (head->loss == LOSS_WORDS)
			flops += 6 * items * width * (hidden + config->vocab_size);
		else if (head->loss == LOSS_VECTORS) /* of the output layer only forward */
			flops += 2 * items * width * (3 * hidden + config->vocab_size);
		else /* with the pooler */
			flops += 6 * items * hidden * ((head->pooled ? hidden : 0) + head->outputs * joined);
	}
	return flops;
}

/* Pairs of tokens that see each other in a layer. Windows are taken to be narrower than all sequences, if than their mean length.
 */
static double pairs_seen(const struct model_config *config, int32_t layer, const struct model_work *work)
{
	double band = work->tokens * (2.0 * config->attention.window + 1);
	return model_layer_is_global(config, layer) || work->squares < band ? work->squares : band;
}

double model_pairs_seen(const struct model_config *config, const struct model_work *work)
{
	double sum = 0;
	for (int32_t l = 0; l < config->num_hidden_layers; l++)
		sum += pairs_seen(config, l, work);
	return sum / config->num_hidden_layers;
}

/* Of each layer's products, forward and backward. */
static double product_flops(const struct model_config *config, const struct model_work *work)
{
	double hidden = config->hidden_size, wide = config->intermediate_size + model_wide_size(config);
	return 6 * (4 * hidden * hidden + hidden * wide) * work->tokens;
}

double model_flops_of(const struct model_config *config, const struct model_heads *heads, const struct model_work *work)
{
	double layers = config->num_hidden_layers, hidden = config->hidden_size;
	double attention = layers * 12 * hidden * model_pairs_seen(config, work);
	double width = model_embedding_size(config), projection = width != hidden ? 6 * width * hidden * work->tokens : 0;
	return layers * product_flops(config, work) + attention + projection + model_head_flops(config, heads, work);
}

double model_forward_flops(const struct model_config *config, const struct model_heads *heads, const struct model_work *work)
{
	return model_flops_of(config, heads, work) / 3;
}

double model_work_flops(const struct model *model, const struct model_work *work)
{
	const struct model_config *config = &model->config;
	double unneeded = 0;
	for (int32_t layer = 0; layer < model->lowest_layer; layer++)
		unneeded += product_flops(config, work) + 12 * config->hidden_size * pairs_seen(config, layer, work);
	return model_flops_of(config, &model->heads, work) - unneeded * 2 / 3;
}

double model_training_flops(const struct model *model, const struct batch *batch)
{
	struct model_work work = model_work_of(batch);
	return model_work_flops(model, &work);
}

int64_t model_linear_work(const struct model_config *config, const struct model_heads *heads)
{
	double hidden = config->hidden_size, head = 0;
	if (model_heads_predict(heads))
		head = PREDICTED_SHARE * (hidden + config->vocab_size) / config->num_hidden_layers;
	return (int64_t)(2 * hidden + (config->intermediate_size + model_wide_size(config)) / 2 + head / 2);
}
