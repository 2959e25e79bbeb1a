/* What the files checkpoint*.c share. */
#ifndef TRAIN_CHECKPOINT_INTERNAL_H
#define TRAIN_CHECKPOINT_INTERNAL_H

#include "train/checkpoint.h"

#define STATE_NAME "training_state.json"
#define OPTIMIZER_NAME "optimizer.safetensors"
#define CHECKPOINT_JSON_LIMIT ((size_t)16 << 20)

/* The text of training_state.json, appended to `out`; `choices` is what checkpoint_choices_write() gave, maybe nothing. */
MUST_USE enum status checkpoint_state_text(struct buffer *out, const struct checkpoint_context *context,
					   const struct optimizer *optimizer, const struct train_state *state,
					   const struct buffer *choices);

/* Reads the members of the record: all that a record has must be there, with values that a run can come to. */
MUST_USE enum status checkpoint_state_read(const struct json *root, const char *file, struct train_state *state,
					   uint64_t *data_hash);
/* Member "update_count" of the record: updates since the optimiser began or began again. */
MUST_USE enum status checkpoint_update_count(const struct json *root, const char *file, int64_t *out);

/* What the back ends of all ranks chose by measuring, as a JSON list; nothing for a back end that does not. [all] */
MUST_USE enum status checkpoint_choices_write(struct buffer *out, struct comm *comm, struct backend *be);
/* Member "choices" of a record, given to the back end of this rank; says so if it cannot use them. */
MUST_USE enum status checkpoint_choices_use(const struct json *root, const char *file, int32_t rank, struct backend *be);

/* The slabs of the device that a checkpoint holds besides the fp32 weights, in a fixed order. Masters are in model.safetensors
 * unless that rounds them. */
struct slab_source {
	const char *kind; /* "exp_avg" */
	const struct tensor *slab;
};
#define SLAB_SOURCES 3
#define AVERAGE_KIND "average"
int checkpoint_slabs(const struct model *model, const struct optimizer *optimizer, struct slab_source out[SLAB_SOURCES]);

#endif
