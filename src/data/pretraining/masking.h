/* Chooses the positions of an instance to predict and what replaces their tokens. Internal to src/data. */
#ifndef DATA_PRETRAINING_MASKING_H
#define DATA_PRETRAINING_MASKING_H

#include "base/rng.h"
#include "data/pretraining/instances.h"

struct masking; /* scratch memory for instances of these settings, for one thread at a time */
MUST_USE enum status masking_create(struct masking **out, const struct instance_settings *settings);
void masking_free(struct masking *masking);
/* Masks out->ids[length] in place and lists the predictions in ascending order of position, with weight 1. */
void mask_instance(struct masking *masking, const struct instance_settings *settings, struct rng *rng, struct instance *out);

#endif
