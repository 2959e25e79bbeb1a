/* The parts of `bertc pretrain`, in the order they run: folder, data, choices, weights, loop. */
#ifndef CMD_PRETRAIN_H
#define CMD_PRETRAIN_H

#include "cmd/pretrain_options.h"
#include "comm/place.h"
#include "train/loop.h"
#include "train/pretraining.h"
#include "report/samples.h"
#include "run/run_data.h"
#include "run/waves.h"
#include "weights/model_folder.h"

/* One phase: its settings (the run's where there is only one phase), and what follows from them. */
struct pretrain_phase {
	struct options *options, own;
	struct pretrain_settings *settings;
	struct instance_settings instance_settings, evaluation_settings;
	struct instances *instances; /* opened once they are needed, closed with the phase */
	struct static_file *files;   /* static instances: the run's, an earlier phase's, or its own */
	int64_t file_count;
	bool owns_files;
	uint64_t data_hash; /* of what it trains on: a checkpoint made in it records this */
	struct step_settings steps;
	struct batch_capacity evaluation_capacity;
	/* What its micro-batches were chosen for, if that was left to us and there is a GPU; else work.most is 0. */
	struct wave_model waves;
	struct wave_work work;
};

/* Another's weights that a new run begins with; `path` NULL: none. */
struct initial_weights {
	const char *path; /* as given */
	struct model_source source;
	const char *vocab_path; /* NULL: not known */
	struct vocab vocab;
};

/* Everything a run owns, so that one function can release it. */
struct pretrain {
	struct options *options;
	struct pretrain_settings *settings;
	struct place place;
	int32_t ranks;                /* of the run; a plan counts them without starting them */
	struct comm *comm;            /* NULL: one rank */
	struct file_stamp lock_taken; /* of the run folder, by this process or its launcher */
	int lock;
	bool made_folder; /* the run folder was not there */
	char data_folder[PATH_BYTES], metrics_path[PATH_BYTES], checkpoint[PATH_BYTES];
	bool resumed;        /* goes on from `checkpoint` */
	bool own_checkpoint; /* `checkpoint` lies in the run folder */
	bool begins_phase;   /* goes on from it with a phase of its own: data, lengths and rates may be others */
	char computed_on[128], resumed_from[PATH_BYTES]; /* for the checkpoints' records; empty: begun afresh */
	struct json_document record;                     /* training_state.json of the checkpoint resumed */
	uint64_t recorded_data_hash;
	struct pretrain_phase *phases; /* [phase_count] */
	int64_t phase_count;
	void *slabs[2]; /* weights and gradients of many ranks, the comm's */
	struct pool *pool;
	struct backend *backend;
	struct initial_weights initial;
	struct run_data data;
	struct model_config config;
	double memory_share; /* of a device's memory that would be planned with: less after each allocation that failed */
	struct batch_capacity capacity; /* holds the batches of all phases, of both kinds */
	struct shape_limits limits;
	struct model *model;
	struct replica replica;
	struct activations *activations;
	struct optimizer *optimizer;
	int64_t open_phase; /* whose data are open: index, or -1 */
	struct objective *objective;
	struct evaluation_set *evaluation_sets; /* [evaluation_count] of the open phase */
	int64_t evaluation_count;
	struct phase *schedules; /* [phase_count] */
	struct samples samples;
	struct buffer record_text;
	double gemm_rate; /* FLOP/s of the matrix products of all ranks; 0: not known */
	struct training training;
};

/* pretrain_ranks.c: which rank this process is, and whether it is to start them all instead; meeting the others;
 * starting all (without a thread so far) and watching them. */
MUST_USE enum status pretrain_find_ranks(struct pretrain *run, bool *launches);
MUST_USE enum status pretrain_open_ranks(struct pretrain *run);
MUST_USE enum status pretrain_launch(struct pretrain *run);
/* Ranks that would not compute the same run stop here (ERR_STATE). */
MUST_USE enum status pretrain_agree(struct pretrain *run);

/* pretrain_folder.c: the run folder, its lock, and the checkpoint to go on from with its settings. */
MUST_USE enum status pretrain_open_folder(struct pretrain *run);
/* After a failure: a folder that this run made goes, if nothing came into it (a mistyped path leaves none behind). */
void pretrain_leave_folder(const struct pretrain *run);

/* pretrain_phases.c: the phases with their options, and what a resumed run takes over; their settings as a record. */
MUST_USE enum status pretrain_open_phases(struct pretrain *run);
void pretrain_write_record(const struct pretrain *run, struct json_writer *writer);
void pretrain_close_phases(struct pretrain *run);

/* pretrain_data.c: vocabulary and shards; then, with the model's configuration known, instances. */
MUST_USE enum status pretrain_open_data(struct pretrain *run);
void pretrain_set_instances(struct pretrain *run, struct pretrain_phase *phase);
/* The phase's training instances, opened if they are not. */
MUST_USE enum status pretrain_open_instances(struct pretrain *run, struct pretrain_phase *phase);
/* The evaluation sets as the phase sees them: run->evaluation_sets. */
MUST_USE enum status pretrain_open_evaluation(struct pretrain *run, const struct pretrain_phase *phase);
void pretrain_close_evaluation(struct pretrain *run);
int64_t pretrain_train_tokens(const struct pretrain *run);

/* pretrain_choices.c: what the user left open, chosen from data and model. */
MUST_USE enum status pretrain_choose_model(struct pretrain *run);
MUST_USE enum status pretrain_choose_training(struct pretrain *run, struct pretrain_phase *phase);
/* Tokens of the longest static instance to evaluate on. */
int32_t pretrain_longest_evaluated(const struct pretrain *run);
/* ERR_USAGE if the model has not so many positions. */
MUST_USE enum status pretrain_check_length(const struct pretrain *run, int64_t length, const struct model_config *config);
/* Sets an option the user left open, as the program's choice. */
MUST_USE enum status pretrain_choose(struct options *options, const char *name, const char *format, ...) PRINTF_LIKE(3, 4);
bool pretrain_unset(const struct options *options, const char *name);

/* pretrain_shapes.c: how many tokens are computed at a time, and what holds them. All ranks choose the same. After an allocation
 * that failed: smaller ones, where they were not the user's; `*out_smaller` false: there are none. [all ranks] */
MUST_USE enum status pretrain_choose_shapes(struct pretrain *run);
MUST_USE enum status pretrain_choose_smaller_shapes(struct pretrain *run, bool *out_smaller);

/* pretrain_optimizer.c: optimiser and schedule, chosen where the user left them open (once the number of steps is
 * known), and as the loop wants them. */
MUST_USE enum status pretrain_choose_schedule(struct pretrain *run, struct pretrain_phase *phase);
MUST_USE enum status pretrain_choose_optimizer(struct pretrain *run);
struct optimizer_settings pretrain_optimizer(const struct pretrain_settings *settings);
enum comm_type pretrain_wire(const struct pretrain_settings *settings);
struct schedule pretrain_schedule(const struct pretrain_settings *settings);

/* pretrain_plan.c: what will be done, shown before hour one. */
MUST_USE enum status pretrain_show_plan(struct pretrain *run);

/* pretrain_weights.c: memory for everything, in all ranks or none; weights, from the checkpoint, another model folder, or drawn.
 * What was allocated is released by the third, after a failure, too; the model is then to be created anew. */
MUST_USE enum status pretrain_allocate(struct pretrain *run);
MUST_USE enum status pretrain_load_weights(struct pretrain *run);
void pretrain_release_memory(struct pretrain *run);

/* pretrain_initial.c: another's weights to begin with, if the run is new: finds them; says which vocabulary file and
 * casing they ask for; proves that the run's vocabulary is theirs; fits the configuration; loads them. */
MUST_USE enum status pretrain_find_initial(struct pretrain *run);
MUST_USE enum status pretrain_initial_text(struct pretrain *run, const char **out_vocab_file);
MUST_USE enum status pretrain_check_initial_vocab(struct pretrain *run);
MUST_USE enum status pretrain_initial_config(struct pretrain *run, struct model_config *config);
MUST_USE enum status pretrain_load_initial(struct pretrain *run);

/* pretrain_report.c: what the machine's products reach, measured before a device's memory is given out; training.report, once
 * the model is there. */
MUST_USE enum status pretrain_measure_rate(struct pretrain *run);
MUST_USE enum status pretrain_open_report(struct pretrain *run);

#endif
