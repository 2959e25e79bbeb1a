/* Checkpoints: `checkpoint-<step>/` in the run folder, each a Hugging Face model folder with additional files of ours:
 *
 *   optimizer.safetensors   exp_avg.<parameter>, exp_avg_sq.<parameter> (and master.<parameter> if masters are float64;
 *                           average.<parameter> while weights are averaged)
 *   training_state.json     step, cursor, counters, settings in full, hashes of vocabulary and data
 *   MANIFEST.json           every file with its size and CRC-32C; written last
 *
 * A checkpoint is written under a temporary name and renamed after fsync, so a folder with its final name is always complete.
 * A reader trusts the manifest, never the name. */
#ifndef TRAIN_CHECKPOINT_H
#define TRAIN_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "model/model.h"
#include "text/tokenizer.h"
#include "train/average.h"
#include "train/guard.h"
#include "train/optimizer.h"
#include "train/phase.h"
#include "weights/checkpoint_folder.h"
#include "weights/config_file.h"
#include "weights/model_folder.h"

/* Where a run stands: everything that changes besides weights and moments. */
struct train_state {
	int64_t step;            /* updates attempted so far */
	int64_t samples, tokens; /* since the run's first step */
	double seconds;          /* training time since the run's first step */
	double elapsed;          /* if the run has a time limit: seconds of all invocations, everything included */
	double begun;            /* ... and those before its first step; 0 also in checkpoints from before it was recorded */
	double loss_sum;         /* sum of the finite losses of all steps since the run's first one */
	int64_t loss_count;      /* number of these losses; 0 also in checkpoints from before they were recorded */
	int64_t epoch, epoch_first_sample; /* the epoch that `samples` lies in; avoids a search when resuming */
	int64_t skipped_steps;             /* updates skipped by the guard, for any reason */
	struct guard_state guard;
	struct phase_state phase;
	int64_t evaluated_step; /* step of the newest evaluation; 0 = none yet */
	double evaluated_score; /* its deciding measure: the score of a checkpoint of that step */
	int64_t best_step;      /* the checkpoint with the best score; 0 = none yet */
	double best_score;
};

/* What every save of a run needs and what never changes during a run. */
struct checkpoint_context {
	const char *folder;              /* the run folder */
	struct comm *comm;               /* NULL: a single rank. The first rank writes; all take part in a save */
	const struct task_config *task;  /* what config.json says about the head; NULL: pre-training */
	const struct adapter_base *base; /* of an adapter; otherwise not used */
	const struct vocab *vocab;
	const struct tokenizer_settings *tokenizer;
	int64_t max_seq_length;
	uint64_t data_hash;            /* identity of the training data */
	uint64_t evaluation_hash;      /* identity of the evaluation data: scores on other data do not compare */
	uint64_t teacher_hash;         /* of the teacher's weights; 0: there is no teacher */
	const char *settings_json;     /* the object written by options_write_json() */
	const char *computed_on;       /* what the exact bits depend on: program and back end */
	const char *resumed_from;      /* the checkpoint named by --resume_from when this run began, or NULL */
	const struct average *average; /* saved while the state says that averaging has begun; NULL: nothing is averaged */
	int64_t keep;                  /* number of newest checkpoints to keep besides the best one; 0 = all */
	const char *decides;           /* the measure that decides which checkpoint is best; NULL: the loss */
	/* Called by the first rank before anything is written, on the thread that writes: an error ends the save and the run.
	 * May be NULL. */
	enum status (*may_save)(void *context);
	void *may_save_context;
};

static inline const char *checkpoint_decides(const struct checkpoint_context *context)
{
	return context->decides ? context->decides : "loss";
}

/* Saves without stopping the training: a save waits for the previous one, copies weights and moments, and leaves the rest
 * (files, checksums, fsync, rename, pruning, marking the best) to a thread. Non-finite weights and moments are refused
 * (ERR_NUMERIC). Lack of space, or any other failure, is an error that leaves older checkpoints unchanged. An error in the
 * thread is returned by the next call. */
struct checkpoint_writer;
/* Allocates memory for the copies, and refuses (ERR_RESOURCE) a disk that cannot hold the run's checkpoints. Context, model,
 * and optimizer are borrowed. Ranks other than the first need no memory and write nothing. */
MUST_USE enum status checkpoint_writer_open(struct checkpoint_writer **out, const struct checkpoint_context *context,
					    struct model *model, struct optimizer *optimizer);
/* Bytes of host memory for the copies. It is returned to the system between saves. */
size_t checkpoint_writer_bytes(const struct model *model);
/* Bytes that a checkpoint takes on disk, slightly overestimated. */
double checkpoint_disk_bytes(const struct model *model);
/* With several ranks, the shares of the moments are gathered in the memory of the gradients, which are lost. [all] */
MUST_USE enum status checkpoint_writer_save(struct checkpoint_writer *writer, const struct train_state *state);
/* Returns the error of a save that has ended since; does not wait. */
MUST_USE enum status checkpoint_writer_check(struct checkpoint_writer *writer);
/* Waits until everything is on disk. */
MUST_USE enum status checkpoint_writer_finish(struct checkpoint_writer *writer);
/* Seconds that the longest save so far took; an estimate before the first one. */
double checkpoint_writer_longest(const struct checkpoint_writer *writer);
void checkpoint_writer_close(struct checkpoint_writer *writer);

/* Writes `final/`: only the model folder, with a manifest; `step` is the run's last. */
MUST_USE enum status checkpoint_save_final(const struct checkpoint_context *context, struct model *model, int64_t step);

/* Updates `best` and best.json of the run folder to match `state`. A best checkpoint that no longer exists is forgotten, in
 * `state`, too. */
MUST_USE enum status checkpoint_best_check(const struct checkpoint_context *context, struct train_state *state);

/* Reads a checkpoint's training_state.json. The root's member "settings" is the settings record; "computed_on" and
 * "resumed_from" are those of the context that was saved. */
MUST_USE enum status checkpoint_read_state(const char *path, struct json_document *document, struct train_state *state,
					   uint64_t *data_hash);

/* Loads weights and moments from a checkpoint of any back end, precision, and number of ranks; a rank takes the moments that
 * it owns. */
MUST_USE enum status checkpoint_load(const char *path, struct model *model, struct replica *replica, struct optimizer *optimizer);
/* Checks that the record and the moments have values that training can produce; ERR_DATA says which do not. Checksums alone
 * cannot tell. */
MUST_USE enum status checkpoint_verify_values(const char *path);
/* Loads the mean of the weights so far, from a checkpoint whose state says that there is one. */
MUST_USE enum status checkpoint_load_average(const char *path, struct average *average);

#endif
