/* Checkpoints: `checkpoint-<step>/` in the run folder, each a Hugging Face model folder plus our own files:
 *
 *   optimizer.safetensors   exp_avg.<parameter>, exp_avg_sq.<parameter> (and master.<parameter> where masters are float64;
 *                           average.<parameter> while weights are averaged)
 *   training_state.json     step, cursor, counters, settings with their text, hashes of vocabulary and data
 *   MANIFEST.json           every file with size and CRC-32C; written last
 *
 * Committed by rename from a temporary name after fsync, so that a folder of that name is always whole. A reader
 * trusts the manifest, never the name.
 */
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

/* Where a run stands: all that changes besides weights and moments. */
struct train_state {
	int64_t step;            /* updates tried, from 0 */
	int64_t samples, tokens; /* seen since the run's first step */
	double seconds;          /* of training since the run's first step */
	double elapsed;          /* of a run with a time to end by: seconds of all its invocations, everything counted */
	double loss_sum;         /* of the steps' losses since the run's first step, those that are numbers */
	int64_t loss_count;      /* of these; 0 also in a checkpoint of before they were recorded */
	int64_t epoch, epoch_first_sample; /* where `samples` lies: saves a walk when resuming */
	int64_t skipped_steps;             /* updates left out, for whatever reason the guard had */
	struct guard_state guard;
	struct phase_state phase;
	int64_t evaluated_step; /* of the newest evaluation; 0 = none yet */
	double evaluated_score; /* its measure that decides: the score of a checkpoint of that step */
	int64_t best_step;      /* the checkpoint with the best score; 0 = none yet */
	double best_score;
};

/* What every save of a run needs and none changes. */
struct checkpoint_context {
	const char *folder;             /* the run folder */
	struct comm *comm;              /* NULL: one rank. Of many the first writes, all take part in a save */
	const struct task_config *task; /* what config.json says of the head; NULL: pre-training */
	const struct vocab *vocab;
	const struct tokenizer_settings *tokenizer;
	int64_t max_seq_length;
	uint64_t data_hash;            /* identity of the training data */
	uint64_t evaluation_hash;      /* and of what is evaluated: scores of other data do not compare */
	uint64_t teacher_hash;         /* of the weights of a teacher; 0: nobody teaches */
	const char *settings_json;     /* options_write_json's object */
	const char *computed_on;       /* what the bits depend on: program and back end */
	const char *resumed_from;      /* the checkpoint that --resume_from named when this run began; or NULL */
	const struct average *average; /* saved while the state says that it has been begun; NULL: nothing is averaged */
	int64_t keep;                  /* newest checkpoints kept, besides the best one; 0 = all */
	const char *decides;           /* the measure that says which checkpoint is best; NULL: the loss */
	/* Asked by the first rank before anything is written, in the thread that writes: an error ends the save and the run. May
	 * be NULL. */
	enum status (*may_save)(void *context);
	void *may_save_context;
};

static inline const char *checkpoint_decides(const struct checkpoint_context *context)
{
	return context->decides ? context->decides : "loss";
}

/* Saves without stopping the training: a save waits for the one before, copies weights and moments, and leaves the
 * rest (files, checksums, fsync, rename, pruning, marking the best) to a thread. Weights and moments that are not
 * finite are refused (ERR_NUMERIC); too little space, or any failure, is an error that leaves older checkpoints as they
 * were. An error of the thread is returned by the next call. */
struct checkpoint_writer;
/* Takes memory for the copies, and refuses (ERR_RESOURCE) a disk that cannot hold the checkpoints of the run. Context,
 * model and optimizer are borrowed. Ranks but the first need no memory and write nothing. */
MUST_USE enum status checkpoint_writer_open(struct checkpoint_writer **out, const struct checkpoint_context *context,
					    struct model *model, struct optimizer *optimizer);
/* Host memory for the copies. It is given back to the system between saves. */
size_t checkpoint_writer_bytes(const struct model *model);
/* What one checkpoint takes on the disk, a little more rather than less. */
double checkpoint_disk_bytes(const struct model *model);
/* Many ranks: the shares of the moments are gathered, in the memory of the gradients, which are lost. [all] */
MUST_USE enum status checkpoint_writer_save(struct checkpoint_writer *writer, const struct train_state *state);
/* The error of a save that has ended since; does not wait. */
MUST_USE enum status checkpoint_writer_check(struct checkpoint_writer *writer);
/* Waits until all is on the disk. */
MUST_USE enum status checkpoint_writer_finish(struct checkpoint_writer *writer);
/* Seconds of the longest save so far; before the first an estimate. */
double checkpoint_writer_longest(const struct checkpoint_writer *writer);
void checkpoint_writer_close(struct checkpoint_writer *writer);

/* Writes `final/`: the model folder alone, with a manifest; `step` is the run's last. */
MUST_USE enum status checkpoint_save_final(const struct checkpoint_context *context, struct model *model, int64_t step);

/* Makes `best` and best.json of a run folder say what `state` says. A best checkpoint that is no longer there is
 * forgotten, in `state` too. */
MUST_USE enum status checkpoint_best_check(const struct checkpoint_context *context, struct train_state *state);

/* training_state.json of a checkpoint; the settings record is member "settings" of the root, and "computed_on" and
 * "resumed_from" are the context's. */
MUST_USE enum status checkpoint_read_state(const char *path, struct json_document *document, struct train_state *state,
					   uint64_t *data_hash);

/* Weights and moments, from any back end's or precision's checkpoint, of any number of ranks: of the moments a rank
 * takes what it owns. */
MUST_USE enum status checkpoint_load(const char *path, struct model *model, struct replica *replica, struct optimizer *optimizer);
/* Are the record and the moments such as training makes? ERR_DATA says which are not. Checksums alone do not say that. */
MUST_USE enum status checkpoint_verify_values(const char *path);
/* The mean of the weights so far, of a checkpoint whose state says that there is one. */
MUST_USE enum status checkpoint_load_average(const char *path, struct average *average);

#endif
