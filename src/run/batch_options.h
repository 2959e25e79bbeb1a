/* What an update consists of. There are several ways to say it, as other programs do: in all, for each rank and replica, or as
 * micro-batches. They are one struct, and are settled here. */
#ifndef RUN_BATCH_OPTIONS_H
#define RUN_BATCH_OPTIONS_H

#include "base/option.h"

struct batch_options {
	int64_t train_batch_size;            /* of all ranks and replicas together */
	int64_t train_batch_size_per_gpu;    /* of each rank and replica; 0: it is not said this way */
	int64_t per_device_train_batch_size; /* of a micro-batch of each; becomes train_batch_size_per_gpu */
	int64_t gradient_accumulation_steps; /* 0 = as few as micro_batch_tokens allows */
	int64_t micro_batch_tokens;
};
extern const struct option batch_rows[];

/* Programs whose train_batch_size is not the batch of all devices together. */
#define NVIDIA_PYTORCH "NVIDIA's PyTorch scripts"
#define NVIDIA_TENSORFLOW "NVIDIA's TensorFlow scripts"

/* Before the record of a resumed run completes the options: what is said in another program's terms becomes train_batch_size or
 * train_batch_size_per_gpu. */
MUST_USE enum status batch_settle(struct options *phase);
/* Once the number of ranks and replicas together is known: chooses train_batch_size where it is open, `usual` if nothing is said.
 * A resumed run keeps its batch on any number of devices. */
MUST_USE enum status batch_choose(struct options *phase, const struct batch_options *batch, int64_t parts, int64_t usual);

#endif
