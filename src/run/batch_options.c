/* The option rows for the size of an update, and the one place where all ways to state it are reconciled. */
#include "run/batch_options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

/* clang-format off */
#define ROW(member, role, value) OPTION_ROW(struct batch_options, member, role, value)
const struct option batch_rows[] = {
	{ROW(train_batch_size, ROLE_RESULT, "N"), .section = "phase", .range = "1..1048576", .alias = "global_batch_size",
	 .follows = "train_batch_size_per_gpu", .fallback_text = "from the model",
	 .help = "instances per update, over all ranks, replicas, and micro-batches"},
	{ROW(train_batch_size_per_gpu, ROLE_RUN, "N"), .section = "phase", .range = "1..1048576",
	 .alias = "train_batch_size_per_rank", .fallback_text = "not used", .rare = true,
	 .help = "instances per update for each rank and replica, micro-batches included (BERT-GPU's train_batch_size); "
	 "replaces train_batch_size"},
	{ROW(per_device_train_batch_size, ROLE_PLACE, "N"), .section = "phase", .range = "1..1048576",
	 .alias = "per_gpu_train_batch_size micro_batch_size", .fallback_text = "not used", .rare = true,
	 .help = "the batch as transformers counts it: instances per micro-batch of each rank and replica; an update "
	 "consists of gradient_accumulation_steps micro-batches"},
	{ROW(gradient_accumulation_steps, ROLE_RESULT, "N"), .section = "phase", .range = "0..65536", .fallback = "0",
	 .alias = "num_accumulation_steps", .rare = true,
	 .help = "micro-batches per update for each rank and replica; 0 = as few as micro_batch_tokens allows"},
	{ROW(micro_batch_tokens, ROLE_RESULT, "N|auto"), .section = "phase", .range = "128..1048576", .alias = "micro_batch",
	 .automatic = "auto",
	 .fallback_text = "8192, or fewer if memory is short; on GPUs, as many as fit in their memory, at most 65536",
	 .help = "maximum number of tokens computed at a time if gradient_accumulation_steps is not given"},
	{0},
};

/* clang-format on */

/* Says that the batch of each rank and replica is `size`, instead of what option `name` says. */
static enum status say_per_gpu(struct options *phase, const char *name, int64_t size, enum option_origin origin)
{
	char text[32];
	snprintf(text, sizeof text, "%" PRId64, size);
	options_forget(phase, name);
	return options_set(phase, "train_batch_size_per_gpu", text, origin);
}

static int64_t number(const struct options *phase, const char *name)
{
	struct buffer scratch = {0};
	int64_t value = strtoll(options_value(phase, name, &scratch), NULL, 10);
	buffer_release(&scratch);
	return value;
}

/* In transformers, an update consists of gradient_accumulation_steps micro-batches per device. Megatron-LM's micro_batch_size
 * accompanies the global batch and only divides it, which bertc does by the number of tokens. */
static enum status settle_micro_batches(struct options *phase)
{
	static const char name[] = "per_device_train_batch_size";
	int64_t size = number(phase, name), accumulation = number(phase, "gradient_accumulation_steps");
	enum option_origin origin = options_origin(phase, name);
	if (!options_given(phase, name))
		return OK;
	if (options_given(phase, "train_batch_size") && options_origin(phase, "train_batch_size") >= origin) {
		options_forget(phase, name);
		log_warning("--%s (--micro_batch_size) is ignored: --train_batch_size is the batch, cut by its tokens", name);
		return OK;
	}
	return say_per_gpu(phase, name, size * (accumulation > 0 ? accumulation : 1), origin);
}

/* NVIDIA's scripts are started once for each GPU, and their train_batch_size is that of the process: with PyTorch the batch of an
 * update, which the script divides by the accumulation steps; with TensorFlow (Horovod) a micro-batch. */
static enum status settle_foreign_batch(struct options *phase)
{
	static const char name[] = "train_batch_size", per_gpu[] = "train_batch_size_per_gpu";
	const char *program = phase->foreign_program;
	int64_t size = number(phase, name), accumulation = number(phase, "gradient_accumulation_steps");
	if (!program || options_origin(phase, name) != ORIGIN_COMMAND || options_given(phase, per_gpu) ||
	    options_given(phase, "per_device_train_batch_size"))
		return OK;
	bool of_tensorflow = strcmp(program, NVIDIA_TENSORFLOW) == 0;
	if (of_tensorflow && accumulation > 1)
		size *= accumulation;
	log_warning("--%s means --%s %" PRId64 " here: --%s is an option of %s, whose batch is that of one GPU", name, per_gpu,
		    size, phase->foreign_name, program);
	if (of_tensorflow && !options_given(phase, "scale_learning_rate"))
		log_warning("with --horovod, these scripts multiply the learning rate by the number of GPUs, as "
			    "--scale_learning_rate linear does here");
	return say_per_gpu(phase, name, size, ORIGIN_COMMAND);
}

enum status batch_settle(struct options *phase)
{
	TRY(settle_foreign_batch(phase));
	return settle_micro_batches(phase);
}

enum status batch_choose(struct options *phase, const struct batch_options *batch, int64_t parts, int64_t usual)
{
	int64_t all = batch->train_batch_size_per_gpu * parts;
	if (options_is_open(phase, &batch->train_batch_size))
		return options_choose_integer(phase, &batch->train_batch_size, all > 0 ? all : usual);
	if (all > 0 && batch->train_batch_size != all)
		log_note("batch: %" PRId64 " instances per update, as this run began, not %" PRId64
			 " (--train_batch_size_per_gpu %" PRId64 " times %" PRId64 ")",
			 batch->train_batch_size, all, batch->train_batch_size_per_gpu, parts);
	return OK;
}
