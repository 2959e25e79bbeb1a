/* Chooses the length, batch, and rate of a fine-tuning run where they were left open, and settles what its layers and loss learn.
 */
#include "run/labeled_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weights/adapter.h"
#include "weights/adapter_save.h"

#define PUBLISHED_WIDTH 768.0
#define PUBLISHED_EPOCHS 3.0
#define PUBLISHED_RATE 3e-5
/* A small model takes more and larger updates to move as far from its initial weights. */
#define HIGHEST_RATE 5e-4
#define HIGHEST_ADAPTED_RATE 1e-4
#define USUAL_UPDATES 1500.0
#define MOST_EPOCHS 10.0

bool labeled_is_small(const struct model_config *config)
{
	return config->hidden_size < PUBLISHED_WIDTH;
}

static double usual_rate(const struct model_config *config)
{
	double ratio = PUBLISHED_WIDTH / config->hidden_size;
	return labeled_is_small(config) ? fmin(PUBLISHED_RATE * ratio * ratio, HIGHEST_RATE) : PUBLISHED_RATE;
}

static double usual_epochs(const struct model_config *config, double batches)
{
	double wanted = labeled_is_small(config) ? ceil(USUAL_UPDATES / batches) : PUBLISHED_EPOCHS;
	return fmax(PUBLISHED_EPOCHS, fmin(wanted, MOST_EPOCHS));
}

/* The epochs, batch, and rate of Devlin et al. 2019, which suit BERT-base, or what smaller models need on few examples; one
 * evaluation per epoch. */
enum status labeled_choose_phase(const struct labeled_run *labeled, struct run_phase *phase)
{
	const struct run *run = labeled->run;
	struct options *options = phase->options;
	const struct length_options *length = &phase->values->length;
	const int64_t *const every[] = {&phase->values->saving.eval_steps, &phase->values->saving.save_checkpoints_steps};
	TRY(phase_choose_batch(phase, run->machine, 32));
	double batches = (double)labeled_batches(&labeled->train.encoded, phase->values->batch.train_batch_size);
	if (options_is_open(options, &length->num_train_steps)) {
		if (options_is_open(options, &length->num_train_epochs))
			TRY(options_choose_number(options, &length->num_train_epochs, usual_epochs(&run->config, batches), 6));
		double steps = ceil(length->num_train_epochs * batches);
		if (!(steps < 1e15))
			return error_set(ERR_USAGE, "the run would take %.3g steps", steps);
		TRY(options_choose_integer(options, &length->num_train_steps, steps < 1 ? 1 : (int64_t)steps));
	}
	for (size_t i = 0; i < sizeof every / sizeof *every; i++)
		if (options_is_open(options, every[i]))
			TRY(options_choose_integer(options, every[i], (int64_t)batches));
	if (labeled->state.task->check_batch)
		TRY(labeled->state.task->check_batch(&labeled->state, &labeled->train, phase->values->batch.train_batch_size));
	phase->usual_learning_rate = usual_rate(&run->config);
	if (labeled->given->adapter.adapter == ADAPTER_LORA)
		/* As in the literature: small matrices that begin at zero. */
		phase->usual_learning_rate = 10 * fmin(phase->usual_learning_rate, HIGHEST_ADAPTED_RATE);
	return phase_choose(phase, &phase->values->optimizer);
}

/* The folder of the weights that the adapter will belong to, and what identifies them. */
static enum status find_base(const struct labeled_run *labeled, struct adapter_base *out)
{
	const char *weights = labeled->source.base[0] ? labeled->source.base : labeled->source.weights;
	struct weights_file file;
	char *real = realpath(weights, NULL);
	if (!real)
		return error_set_errno(ERR_RESOURCE, "'%s'", weights);
	path_folder(out->path, real);
	free(real);
	TRY(weights_file_open(&file, weights));
	out->hash = adapter_base_hash(&file);
	weights_file_close(&file);
	return OK;
}

/* What cannot be combined with an adapter. */
static enum status check_adapter(const struct labeled_run *labeled)
{
	const struct labeled_options *given = labeled->given;
	if (strcmp(labeled->run->machine->backend->name, "cuda") == 0)
		return error_hinted(error_set(ERR_USAGE, "--adapter lora is not trained on GPUs"), "give --device cpu");
	if (given->layers.freeze_layers)
		return error_set(ERR_USAGE, "--freeze_layers has no effect with --adapter lora: all of the model is frozen");
	if (given->init_layers)
		return error_set(ERR_USAGE, "--init_layers makes another model, to which an adapter could not refer");
	if (labeled->source.base[0] && !labeled->run->start.resumed)
		return error_hinted(error_set(ERR_USAGE, "'%s' is an adapter itself", given->model),
				    "merge it into its base first (bertc export --to transformers), or give --model the base");
	return OK;
}

static enum status choose_adapter(struct labeled_run *labeled)
{
	static const char *const names[] = {"lora_rank", "lora_alpha", "lora_targets", "use_rslora"};
	const struct adapter_options *given = &labeled->given->adapter;
	struct run *run = labeled->run;
	/* Config files may hold every option, as --print-config writes them. */
	for (size_t i = 0; i < sizeof names / sizeof *names && given->adapter == ADAPTER_NONE; i++)
		if (options_origin(&run->options, names[i]) == ORIGIN_COMMAND)
			return error_hinted(error_set(ERR_USAGE, "--%s has no effect without --adapter lora", names[i]),
					    "give --adapter lora");
	if (given->adapter == ADAPTER_NONE)
		return OK;
	TRY(check_adapter(labeled));
	labeled->heads.low_rank = (struct low_rank){
		.rank = (int32_t)given->lora_rank, .alpha = given->lora_alpha, .rank_stabilized = given->use_rslora};
	TRY(adapter_targets(given->lora_targets, &run->config, &labeled->heads.low_rank.targets));
	return find_base(labeled, &run->adapter_base);
}

enum status labeled_choose_learning(struct labeled_run *labeled)
{
	const struct labeled_options *given = labeled->given;
	struct head *head = &labeled->heads.head[0];
	if (given->label_smoothing > 0 && head->loss != LOSS_CLASSES)
		return error_set(ERR_USAGE, "--label_smoothing is for tasks that choose one of several classes, not for %s",
				 labeled->state.task->name);
	head->label_smoothing = given->label_smoothing;
	labeled->run->layers = &given->layers;
	TRY(choose_adapter(labeled));
	return layer_options_check(&given->layers, &labeled->run->config, head->loss == LOSS_VECTORS);
}
