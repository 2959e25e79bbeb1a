/* Chooses the positions of an instance to predict and what replaces their tokens. Internal to src/data. */
#ifndef DATA_PRETRAINING_MASKING_H
#define DATA_PRETRAINING_MASKING_H

#include "base/rng.h"
#include "data/pretraining/instances.h"

struct masking; /* scratch memory for instances of these settings, for one thread at a time */
MUST_USE enum status masking_create(struct masking **out, const struct instance_settings *settings);
void masking_free(struct masking *masking);
/* Room for max_seq_length numbers between calls of mask_instance(). */
int32_t *masking_scratch(struct masking *masking);
/* Masks some of the first `end` tokens of out->ids[length] in place and lists the predictions in ascending order of position,
 * with weight 1. */
void mask_instance(struct masking *masking, const struct instance_settings *settings, struct rng *rng, int32_t end,
		   struct instance *out);

#endif
