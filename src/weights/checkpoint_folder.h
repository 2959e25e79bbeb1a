/* Manages the folders `checkpoint-<step>/` of a run: finds, verifies, publishes, and prunes them, and marks the best one. Their
 * contents are up to train/checkpoint.h. */
#ifndef WEIGHTS_CHECKPOINT_FOLDER_H
#define WEIGHTS_CHECKPOINT_FOLDER_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "base/file.h"

/* Prefix of the name of a folder that is being written. */
#define TEMPORARY_PREFIX ".tmp-"

/* Writes the name of a step's folder: "checkpoint-120". */
void checkpoint_name(char out[64], int64_t step);
/* Gets the steps of all folders named like checkpoints, newest first. The caller frees *out. */
MUST_USE enum status checkpoint_list(const char *folder, int64_t **out, int64_t *out_count);

/* Finds the newest intact checkpoint of a run folder and writes its path to out_path; *out_found is false if there are no
 * checkpoints. Damaged ones are skipped with a warning; if all are damaged, returns ERR_DATA. Safe to call while the run is
 * active. */
MUST_USE enum status checkpoint_latest(const char *folder, char out_path[PATH_BYTES], bool *out_found);

/* Returns ERR_RESOURCE if the run folder no longer exists: saving a checkpoint must not recreate it. */
MUST_USE enum status checkpoint_folder_check(const char *folder);

/* Removes folders that a killed process left half-written or half-removed. Only the owner of the folder's lock may call this. */
MUST_USE enum status checkpoint_clean(const char *folder);

/* Sets aside the checkpoints of steps after `step` by renaming them to "superseded-checkpoint-<step>", and logs it. */
MUST_USE enum status checkpoint_supersede(const char *folder, int64_t step);

/* The step in the last component of a path; -1: it is not named like a checkpoint. */
int64_t checkpoint_path_step(const char *path);

/* Sets and returns the error for a path that does not exist, ERR_USAGE. If the path names a part of a run (checkpoint-N, best, or
 * final), the hint lists the checkpoints that the run has: the name may be mistyped, or the run has removed that checkpoint
 * since. Otherwise it is `advice` ("" = none); if the path looks like the name of a published model, also how to fetch that. */
MUST_USE enum status checkpoint_missing(const char *path, const char *advice);

/* Verifies every file of a checkpoint against its manifest (weights/manifest.h), and the folder's name. */
MUST_USE enum status checkpoint_verify(const char *path);

/* Renames the finished folder `temporary` to `name` in `parent`, replacing an existing one of a run; what a run did not make is
 * ERR_USAGE. The finished model is listed as the run's own (base/owned_files.h). */
MUST_USE enum status checkpoint_folder_publish(const char *parent, const char *temporary, const char *name);
/* The same, but replaces only an empty folder; anything else of that name is ERR_USAGE. */
MUST_USE enum status checkpoint_folder_publish_new(const char *parent, const char *temporary, const char *name);
/* ERR_USAGE if the entry, a checkpoint's or `final`, exists and a run did not make it: a run may replace and remove only its own.
 * An empty folder is nobody's loss; links are not followed. */
MUST_USE enum status checkpoint_folder_check_own(const char *parent, const char *name);
/* Lists `folder` as the finished model of the run in `parent`: call it after its manifest has changed. */
MUST_USE enum status checkpoint_folder_list_final(const char *parent, const char *folder);
/* Adds or replaces a file in a model's folder, with its manifest, if it has one, and the list of the run that made it. */
MUST_USE enum status checkpoint_folder_put_file(const char *path, const void *bytes, size_t size);
/* Removes a checkpoint; what a run did not make is ERR_USAGE. */
MUST_USE enum status checkpoint_folder_discard(const char *parent, const char *name);
/* Removes a temporary folder that will not be published. Keeps and returns the error that was set before. */
MUST_USE enum status checkpoint_folder_abandon(const char *temporary);
/* Removes old checkpoints: keeps the newest `keep` (0 = all) of those up to `saved_step`, and the one of `best_step`. */
MUST_USE enum status checkpoint_prune(const char *folder, int64_t keep, int64_t saved_step, int64_t best_step);
/* Records which checkpoint is best, in best.json and as `best`, a link to its folder. */
MUST_USE enum status checkpoint_mark_best(const char *folder, int64_t step, const char *measure, double value);
/* Removes the record and the link. */
MUST_USE enum status checkpoint_unmark_best(const char *folder);

#endif
