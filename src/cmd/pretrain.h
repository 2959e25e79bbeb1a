/* The parts of `bertc pretrain`, in the order they run: folder, data, choices, weights, loop. */
#ifndef CMD_PRETRAIN_H
#define CMD_PRETRAIN_H

#include "cmd/pretrain_options.h"
#include "train/loop.h"
#include "train/pretraining.h"
#include "train/run_data.h"

/* Everything a run owns, so that one function can release it. */
struct pretrain {
	struct options *options;
	struct pretrain_settings *settings;
	int lock;
	char data_folder[PATH_BYTES], metrics_path[PATH_BYTES], checkpoint[PATH_BYTES];
	bool resumed;
	char computed_on[128], resumed_from[PATH_BYTES]; /* for the checkpoints' records; empty: begun afresh */
	bool own_checkpoint;         /* the one resumed lies in the run folder */
	struct json_document record; /* training_state.json of the checkpoint resumed */
	uint64_t recorded_data_hash;
	struct pool *pool;
	struct backend *backend;
	struct run_data data;
	struct model_config config;
	struct instance_settings instance_settings, evaluation_settings;
	struct instances *train_instances, *held_out_instances;
	struct step_settings steps;
	struct batch_capacity evaluation_capacity, capacity; /* `capacity` holds both kinds of batches */
	struct shape_limits limits;
	struct model *model;
	struct replica replica;
	struct activations *activations;
	struct optimizer *optimizer;
	struct objective *objective;
	struct evaluation_set evaluation_set;
	struct phase phase;
	struct buffer record_text;
	struct training training;
};

/* pretrain_folder.c: the run folder, its lock, and the checkpoint to go on from with its settings. */
MUST_USE enum status pretrain_open_folder(struct pretrain *run);

/* pretrain_data.c: vocabulary and shards; then, with the model's configuration known, instances. */
MUST_USE enum status pretrain_open_data(struct pretrain *run);
MUST_USE enum status pretrain_open_instances(struct pretrain *run);
int64_t pretrain_train_tokens(const struct pretrain *run);

/* pretrain_choices.c: what the user left open, chosen from data and model. */
MUST_USE enum status pretrain_choose_model(struct pretrain *run);
MUST_USE enum status pretrain_choose_training(struct pretrain *run);
void pretrain_choose_shapes(struct pretrain *run);
/* Sets an option the user left open, as the program's choice. */
MUST_USE enum status pretrain_choose(struct options *options, const char *name, const char *format, ...)
	PRINTF_LIKE(3, 4);
bool pretrain_unset(const struct options *options, const char *name);

/* pretrain_optimizer.c: optimiser and schedule, chosen where the user left them open (once the number of steps is
 * known), and as the loop wants them. */
MUST_USE enum status pretrain_choose_optimizer(struct pretrain *run);
struct optimizer_settings pretrain_optimizer(const struct pretrain_settings *settings);
struct schedule pretrain_schedule(const struct pretrain_settings *settings);

/* pretrain_weights.c: memory and weights, from the checkpoint, another model folder, or drawn. */
MUST_USE enum status pretrain_open_model(struct pretrain *run);
/* The model folder that a new run begins with, or NULL. */
const char *pretrain_initial_weights(const struct pretrain_settings *settings);

#endif
