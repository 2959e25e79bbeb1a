/* The folder of a run: its lock, what an earlier run left there, and the checkpoint to resume from. */
#ifndef RUN_RUN_FOLDER_H
#define RUN_RUN_FOLDER_H

#include "base/file.h"
#include "base/json.h"
#include "base/option.h"
#include "run/machine.h"
#include "train/checkpoint.h"

/* File name of a sweep's record; a folder that contains one holds a sweep (run/sweep.h). */
#define SWEEP_RECORD "sweep.json"
#define SWEEP_RECORD_BYTES ((size_t)64 << 20)

struct run_folder_settings {
	const char *command; /* "pretrain", and how to call it: for hints */
	const char *usage;   /* "bertc pretrain --corpus PATH --out FOLDER" */
	bool has_task;       /* it trains a labeled task, which its record names */
	const struct folder_options *given;
	bool sweep;    /* the folder of a sweep, whose runs have their own folders in it */
	bool in_sweep; /* of one of a sweep's runs: the process that started the ranks locks the sweep, not this folder */
	const struct options *options; /* of which some name what the run will read, and --fresh must not remove */
};

struct run_folder {
	const char *path; /* NULL: no folder is taken */
	char data[PATH_BYTES], metrics[PATH_BYTES];
	bool made;                    /* it was not there before */
	struct file_stamp lock_taken; /* taken by this process or its launcher */
	int lock;                     /* -1: not held here; the launcher holds it for the ranks it started */
};

/* Where a run starts: afresh, or from a checkpoint. Zero-initialize. */
struct run_start {
	char checkpoint[PATH_BYTES];
	bool resumed;                  /* from `checkpoint` */
	bool begun;                    /* a run was started here but has no checkpoint: it starts again, with its settings */
	bool own;                      /* `checkpoint` is in the run folder */
	bool goes_back;                /* to it from newer ones in the run folder, to be set aside before training */
	bool begins_phase;             /* continues from it with a new phase: data, lengths and rates may differ */
	char resumed_from[PATH_BYTES]; /* what --resume_from named when the run was started; "": it started afresh */
	struct json_document record;   /* training_state.json of the checkpoint, or settings.json of a run without one */
	char settings[PATH_BYTES];     /* path of that file; "": the run was never started */
	struct train_state state;
	uint64_t data_hash; /* as recorded there */
};

/* Makes, locks and cleans the folder, and finds the checkpoint. The first rank does so; the others use what it found. ERR_STATE
 * if another run is using the folder, or --resume_from does not belong to it. Call run_folder_close() also after a failure.
 * [all] */
MUST_USE enum status run_folder_open(struct run_folder *folder, struct run_start *start,
				     const struct run_folder_settings *settings, struct machine *machine);
/* Makes, locks and cleans the folder, as far as that is up to this process, but does not look for a checkpoint; for a sweep.
 * ERR_STATE if a run is asked for in the folder of a sweep, or the other way round. First rank only. */
MUST_USE enum status run_folder_take(struct run_folder *folder, const struct run_folder_settings *settings,
				     const struct machine *machine);
/* ERR_USAGE if the folder, which may be missing, holds a file with the name of a task's result that bertc did not write. */
MUST_USE enum status run_folder_check_results(const char *path);
/* Removes the results of tasks: files, and folders that contain nothing else. */
MUST_USE enum status run_folder_remove_results(const char *path);
/* Does this folder hold results of tasks and nothing else? */
bool run_folder_holds_results(const char *path);
/* Call it after a failure, before run_folder_close(): removes a folder that this run made if nothing was put into it, so that a
 * mistyped path leaves none behind. */
void run_folder_leave(const struct run_folder *folder);
void run_folder_close(struct run_folder *folder);
void run_start_release(struct run_start *start);

/* Starts all ranks of the machine with this process's own arguments, and watches them until they end. No thread may have been
 * started before. */
MUST_USE enum status run_folder_launch(const struct run_folder_settings *settings, const struct machine *machine);

#endif
