/* The folder of a run: its lock, what an earlier run left in it, and the checkpoint to resume from. */
#ifndef RUN_RUN_FOLDER_H
#define RUN_RUN_FOLDER_H

#include "base/file.h"
#include "base/json.h"
#include "base/option.h"
#include "run/machine.h"
#include "train/checkpoint.h"

/* Name of a sweep's record; a folder that has one holds a sweep (run/sweep.h). */
#define SWEEP_RECORD "sweep.json"
#define SWEEP_RECORD_BYTES ((size_t)64 << 20)

struct run_folder_settings {
	const char *command; /* "pretrain", and how it is called: for hints */
	const char *usage;   /* "bertc pretrain --corpus PATH --out FOLDER" */
	const char *out;     /* the folder; NULL: not given, which is an error */
	bool fresh;          /* what an earlier run left goes */
	bool plan;           /* nothing will be trained */
	bool sweep;          /* it is the folder of a sweep, whose runs have folders of their own in it */
	bool in_sweep;       /* it is one of these: whoever started the ranks holds the sweep's lock, not this one */
	const char *resume_from;
	int64_t resume_step; /* -1: not given */
	/* What the run is to read, which --fresh must not remove: paths, of which any may be NULL, and patterns of paths. */
	const char *const *paths;
	int64_t path_count;
	const struct option_list *const *patterns;
	int64_t pattern_count;
};

struct run_folder {
	const char *path; /* NULL: none is taken */
	char data[PATH_BYTES], metrics[PATH_BYTES];
	bool made;                    /* it was not there before */
	struct file_stamp lock_taken; /* by this process or its launcher */
	int lock;                     /* -1: not ours; the launcher holds it for the ranks it started */
};

/* Where a run begins: anew, or from a checkpoint. Zero-initialise. */
struct run_start {
	char checkpoint[PATH_BYTES];
	bool resumed;                  /* from `checkpoint` */
	bool begun;                    /* a run has begun here that has no checkpoint yet: it begins again, with its settings */
	bool own;                      /* `checkpoint` lies in the run folder */
	bool begins_phase;             /* continues from it with a new phase: data, lengths, and rates may differ */
	char resumed_from[PATH_BYTES]; /* what --resume_from named when the run began; "": it began afresh */
	struct json_document record;   /* training_state.json of the checkpoint; settings.json of a run that has none yet */
	char settings[PATH_BYTES];     /* that file; "": the run has not begun */
	struct train_state state;
	uint64_t data_hash; /* that it records */
};

/* Makes, locks and cleans the folder and finds the checkpoint. The first rank does so; the others use what it found.
 * ERR_STATE if another run is at work there, or --resume_from does not belong to it. run_folder_close() also after a failure.
 * [all] */
MUST_USE enum status run_folder_open(struct run_folder *folder, struct run_start *start,
				     const struct run_folder_settings *settings, struct machine *machine);
/* Makes, locks and clears the folder alone, as far as it is ours to do: of a sweep. ERR_STATE if a run is asked for where a sweep
 * is, or the other way round. First rank. */
MUST_USE enum status run_folder_take(struct run_folder *folder, const struct run_folder_settings *settings,
				     const struct machine *machine);
/* Removes the results of tasks: files, and folders in which nothing else lies. */
MUST_USE enum status run_folder_remove_results(const char *path);
/* A folder that holds results of tasks and nothing else. */
bool run_folder_holds_results(const char *path);
/* After a failure, before it is closed: a folder that this run made goes, if nothing came into it (a mistyped path leaves none
 * behind). */
void run_folder_leave(const struct run_folder *folder);
void run_folder_close(struct run_folder *folder);
void run_start_release(struct run_start *start);

/* Starts all ranks of the machine with this process's own arguments, and watches them to their end. Without a thread so far. */
MUST_USE enum status run_folder_launch(const struct run_folder_settings *settings, const struct machine *machine);

#endif
