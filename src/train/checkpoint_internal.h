/* Shared by the files checkpoint*.c. */
#ifndef TRAIN_CHECKPOINT_INTERNAL_H
#define TRAIN_CHECKPOINT_INTERNAL_H

#include "train/checkpoint.h"

#define STATE_NAME "training_state.json"
#define OPTIMIZER_NAME "optimizer.safetensors"
#define CHECKPOINT_JSON_LIMIT ((size_t)16 << 20)

/* Appends the text of training_state.json to `out`. `choices` comes from checkpoint_choices_write() and may be empty. */
MUST_USE enum status checkpoint_state_text(struct buffer *out, const struct checkpoint_context *context,
					   const struct optimizer *optimizer, const struct train_state *state,
					   const struct buffer *choices);

/* Reads the members of the record: every required one must be present, and all values must be ones that a run can reach. */
MUST_USE enum status checkpoint_state_read(const struct json *root, const char *file, struct train_state *state,
					   uint64_t *data_hash);
/* Reads member "update_count" of the record: updates since the optimizer started or was restarted. */
MUST_USE enum status checkpoint_update_count(const struct json *root, const char *file, int64_t *out);

/* Writes what the back ends of all ranks chose by measuring, as a JSON list; nothing for a back end that does not measure.
 * [all] */
MUST_USE enum status checkpoint_choices_write(struct buffer *out, struct comm *comm, struct backend *be);
/* Gives member "choices" of a record to this rank's back end; prints a note if the back end cannot use it. */
MUST_USE enum status checkpoint_choices_use(const struct json *root, const char *file, int32_t rank, struct backend *be);

/* The device slabs that a checkpoint holds besides the fp32 weights, in a fixed order. The masters are among them only if
 * model.safetensors would round them. */
struct slab_source {
	const char *kind; /* "exp_avg" */
	const struct tensor *slab;
	int64_t first; /* the parameter with which it begins: moments lack what is frozen */
};
#define SLAB_SOURCES 3
#define AVERAGE_KIND "average"
int checkpoint_slabs(const struct model *model, const struct optimizer *optimizer, struct slab_source out[SLAB_SOURCES]);

#endif
