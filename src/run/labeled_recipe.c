/* Chooses the length, batch, and rate of a fine-tuning run where they were left open, and settles what its layers and loss learn.
 */
#include "run/labeled_internal.h"

#include <math.h>

bool labeled_is_small(const struct model_config *config)
{
	return config->hidden_size < 512;
}

/* Three epochs of 32 examples at a time, with the rates of Devlin et al. 2019 and one evaluation per epoch. */
enum status labeled_choose_phase(const struct labeled_run *labeled, struct run_phase *phase)
{
	const struct run *run = labeled->run;
	struct options *options = phase->options;
	const struct length_options *length = &phase->values->length;
	const int64_t *const every[] = {&phase->values->saving.eval_steps, &phase->values->saving.save_checkpoints_steps};
	TRY(phase_choose_batch(phase, run->machine, 32));
	double batches = ceil((double)labeled->train.encoded.example_count / (double)phase->values->batch.train_batch_size);
	if (options_is_open(options, &length->num_train_steps)) {
		if (options_is_open(options, &length->num_train_epochs))
			TRY(options_choose_number(options, &length->num_train_epochs, 3, 6));
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
	phase->usual_learning_rate = labeled_is_small(&run->config) ? 1e-4 : 3e-5;
	return phase_choose(phase, &phase->values->optimizer);
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
	return layer_options_check(&given->layers, &labeled->run->config, head->loss == LOSS_VECTORS);
}
