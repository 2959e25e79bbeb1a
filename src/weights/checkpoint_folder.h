/* The folders `checkpoint-<step>/` of a run: found, verified, published, pruned, and the best one marked. What a checkpoint
 * holds is train/checkpoint.h's. */
#ifndef WEIGHTS_CHECKPOINT_FOLDER_H
#define WEIGHTS_CHECKPOINT_FOLDER_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "base/file.h"

/* In front of the name of a folder that is being written. */
#define TEMPORARY_PREFIX ".tmp-"

/* Writes the name of a step's folder: "checkpoint-120". */
void checkpoint_name(char out[64], int64_t step);
/* Steps of all folders named like checkpoints, newest first. The caller frees. */
MUST_USE enum status checkpoint_list(const char *folder, int64_t **out, int64_t *out_count);

/* The newest whole checkpoint of a run folder: its path into out_path, *out_found = false if there is none. A
 * damaged one is passed over with a warning; if all are damaged, ERR_DATA. Safe beside a run at work. */
MUST_USE enum status checkpoint_latest(const char *folder, char out_path[PATH_BYTES], bool *out_found);

/* ERR_RESOURCE if the run folder is no longer there: it must not be made anew around one checkpoint. */
MUST_USE enum status checkpoint_folder_check(const char *folder);

/* Removes what a killed process left half made or half removed. Only for the owner of the folder's lock. */
MUST_USE enum status checkpoint_clean(const char *folder);

/* Sets the checkpoints of later steps than `step` aside: "superseded-checkpoint-<step>". Says so. */
MUST_USE enum status checkpoint_supersede(const char *folder, int64_t step);

/* The step that the name of a path's last part says; -1: it is not named as a checkpoint is. */
int64_t checkpoint_path_step(const char *path);

/* The error for a path that does not exist, ERR_USAGE. Where it names a part of a run (checkpoint-N, best or final), the hint
 * says which checkpoints the run has: an unknown one may be mistyped, or was removed as the run went on. */
MUST_USE enum status checkpoint_missing(const char *path);

/* Verifies every file of a checkpoint against its manifest (weights/manifest.h), and its name. */
MUST_USE enum status checkpoint_verify(const char *path);

/* Gives a finished folder, written under the name `temporary`, its final name in `parent`; replaces one that has it. */
MUST_USE enum status checkpoint_folder_publish(const char *parent, const char *temporary, const char *name);
/* Removes a temporary folder that is not to be published. The error that was set stays the last, and is returned. */
MUST_USE enum status checkpoint_folder_abandon(const char *temporary);
/* Keeps the newest `keep` (0 = all) of the checkpoints up to `saved_step`, and that of `best_step`. */
MUST_USE enum status checkpoint_prune(const char *folder, int64_t keep, int64_t saved_step, int64_t best_step);
/* Records which checkpoint is the best: best.json, and `best`, a link to its folder. */
MUST_USE enum status checkpoint_mark_best(const char *folder, int64_t step, const char *measure, double value);
/* Removes that record and the link. */
MUST_USE enum status checkpoint_unmark_best(const char *folder);

#endif
