/* What the files checkpoint*.c share. */
#ifndef TRAIN_CHECKPOINT_INTERNAL_H
#define TRAIN_CHECKPOINT_INTERNAL_H

#include "train/checkpoint.h"

#define CHECKPOINT_PREFIX "checkpoint-"
#define TEMPORARY_PREFIX ".tmp-"
#define TRASH_PREFIX ".trash-"
#define SUPERSEDED_PREFIX "superseded-"
#define STATE_NAME "training_state.json"
#define OPTIMIZER_NAME "optimizer.safetensors"
#define BEST_NAME "best"
#define BEST_RECORD_NAME "best.json"
#define CHECKPOINT_JSON_LIMIT ((size_t)16 << 20)

/* "checkpoint-120" */
void checkpoint_name(char out[64], int64_t step);
/* Steps of all folders named like checkpoints, newest first. The caller frees. */
MUST_USE enum status checkpoint_list(const char *folder, int64_t **out, int64_t *out_count);
/* The text of training_state.json, appended to `out`; `choices` is what checkpoint_choices_write() gave, maybe nothing. */
MUST_USE enum status checkpoint_state_text(struct buffer *out, const struct checkpoint_context *context,
					   const struct optimizer *optimizer, const struct train_state *state,
					   const struct buffer *choices);

/* What the back ends of all ranks chose by measuring, as a JSON list; nothing for a back end that does not. [all] */
MUST_USE enum status checkpoint_choices_write(struct buffer *out, struct comm *comm, struct backend *be);
/* Member "choices" of a record, given to the back end of this rank; says so if it cannot use them. */
MUST_USE enum status checkpoint_choices_use(const struct json *root, const char *file, int32_t rank, struct backend *be);

/* The slabs that a checkpoint holds besides the fp32 weights, in a fixed order. Masters are in model.safetensors unless
 * that rounds them. */
struct slab_source {
	const char *kind; /* "exp_avg" */
	const struct tensor *slab;
};
#define SLAB_SOURCES 3
int checkpoint_slabs(const struct model *model, const struct optimizer *optimizer, struct slab_source out[SLAB_SOURCES]);

/* Folders of checkpoint_folder.c: out of sight first, then away; and a finished one made visible under `name`. */
MUST_USE enum status checkpoint_folder_discard(const char *parent, const char *name);
MUST_USE enum status checkpoint_folder_publish(const char *parent, const char *temporary, const char *name);
/* Keeps the newest `keep` (0 = all) of the checkpoints up to `saved_step`, and that of `best_step`. */
MUST_USE enum status checkpoint_prune(const char *folder, int64_t keep, int64_t saved_step, int64_t best_step);
/* Says which checkpoint is the best: best.json, and `best`, a link to it. */
MUST_USE enum status checkpoint_mark_best(const char *folder, int64_t step, double loss);

#endif
