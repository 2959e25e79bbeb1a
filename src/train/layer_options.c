/* The option rows of layers, and their factors of the learning rate. */
#include "train/layer_options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "model/forms.h"

/* clang-format off */
#define ROW(member, role, value) OPTION_ROW(struct layer_options, member, role, value)
const struct option layer_rows[] = {
	{ROW(freeze_layers, ROLE_RESULT, "N|embeddings"), .fallback_text = "nothing is frozen",
	 .help = "do not train the embeddings and the first N layers, which then cost no backward pass and no optimizer state; "
	 "embeddings: the embeddings alone"},
	{ROW(layerwise_learning_rate_decay, ROLE_RESULT, "X"), .range = "0.01..1", .fallback = "1", .rare = true,
	 .help = "multiply the learning rate by this from each layer to the one below: the last layer and the head have "
	 "learning_rate, the embeddings that of a layer below the first"},
	{ROW(head_learning_rate, ROLE_RESULT, "X"), .range = "1e-20..1", .fallback_text = "learning_rate", .rare = true,
	 .help = "peak learning rate of the head and the pooler, with the same schedule"},
	{0},
};
/* clang-format on */

/* The layers below this one are frozen, -1 being the embeddings. */
static enum status parse_frozen(const struct layer_options *options, int32_t *out)
{
	const char *text = options->freeze_layers;
	char *end;
	*out = -1;
	if (!text)
		return OK;
	*out = 0;
	if (strcmp(text, "embeddings") == 0)
		return OK;
	long count = *text >= '0' && *text <= '9' ? strtol(text, &end, 10) : -1;
	if (count < 0 || *end || count > INT32_MAX)
		return error_hinted(error_set(ERR_USAGE, "--freeze_layers %s: neither a number of layers nor 'embeddings'", text),
				    "write how many layers to freeze, from the first, with the embeddings: --freeze_layers 6");
	*out = (int32_t)count;
	return OK;
}

enum status layer_options_check(const struct layer_options *options, const struct model_config *config, bool vectors)
{
	int32_t frozen, layers = config->num_hidden_layers;
	TRY(parse_frozen(options, &frozen));
	if (frozen > layers)
		return error_set(ERR_USAGE, "--freeze_layers %d: the model has %d layers", frozen, layers);
	if (vectors && frozen == layers && !model_form_of(config)->pre_norm)
		return error_hinted(
			error_set(ERR_USAGE, "--freeze_layers %d: nothing is left to learn, since the model has no head", frozen),
			"freeze fewer than all %d layers", layers);
	if (vectors && options->head_learning_rate > 0)
		return error_set(ERR_USAGE, "--head_learning_rate has no effect: the model has no head");
	return OK;
}

enum status layer_options_apply(const struct layer_options *options, double learning_rate, struct model *model)
{
	int32_t frozen, layers = model->config.num_hidden_layers;
	double *rates, head = 1;
	TRY(parse_frozen(options, &frozen));
	if (options->head_learning_rate > 0) {
		head = options->head_learning_rate / learning_rate;
		if (!isfinite(head))
			return error_hinted(error_set(ERR_USAGE, "--head_learning_rate has no effect with --learning_rate 0"),
					    "to train the head alone, give --learning_rate and --freeze_layers %d", layers);
	}
	TRY(memory_new(&rates, model->parameter_count, sizeof *rates, "learning rates"));
	for (int64_t i = 0; i < model->parameter_count; i++) {
		const struct parameter *parameter = &model->parameters[i];
		int32_t below = parameter->depth < layers ? layers - 1 - parameter->depth : 0;
		rates[i] = parameter->layer == layers ? head : pow(options->layerwise_learning_rate_decay, below);
		if (parameter->depth < frozen || (model->adapted_count > 0 && i < model->adapted[0].a))
			rates[i] = 0;
	}
	model_set_rates(model, rates);
	free(rates);
	return OK;
}
