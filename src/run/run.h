/* A run, whatever it trains: one folder, one model, and its phases, from locking the folder to the finished model. A command says
 * by its options (run/training_options.h) how, and defines by struct run_task what is trained. In order:
 *
 *     machine_find()                      which rank this is; machine_launches(): run_folder_launch() starts them all instead
 *     run_open()                          meets the other ranks; folder, lock, the checkpoint to resume from
 *     ... the record of the checkpoint (phases_record()) may complete the options, for the last time; then machine_resume()
 *     run_take_options()                  of the run and of each phase: copies, in which what is open becomes a choice
 *     run_open_device()
 *     ... the task opens its data, sets run->config, vocab, tokenizer, data_hash and its part of the phases
 *     phase_choose_batch(), the phase's steps, phase_choose() for each phase
 *     run_plan()                          how much at a time, and the memory that takes; shown
 *     run_train()                         unless only the plan was asked for
 *     run_close(), machine_close()        of several runs the machine is closed after the last
 *
 * All ranks call these functions, and what fails on one rank fails on all. */
#ifndef RUN_RUN_H
#define RUN_RUN_H

#include "run/memory.h"
#include "run/phases.h"
#include "run/shapes.h"
#include "train/layer_options.h"
#include "train/loop.h"

struct run;

/* What is trained. `context` is passed to the functions. */
struct run_task {
	void *context;
	const char *decides;        /* the measure that determines the best checkpoint; NULL: the loss */
	struct shape_source shapes; /* with a context of its own */
	const struct model_heads *heads;
	/* Called when a new run has initialized its weights: replaces them if the run starts from others. NULL: it does not. */
	enum status (*load_weights)(void *context, struct model *model, struct replica *replica);
	/* Allocates the task's own memory on the device, for batches within these limits, and frees it before a smaller size is
	 * tried. NULL: it has none. */
	enum status (*allocate)(void *context, const struct shape_limits *limits);
	enum status (*give_back)(void *context);
	/* Adds facts and samples to the report. First rank only. NULL: nothing. */
	enum status (*describe)(void *context, struct report *report);
	/* Opens what the phase of `state` is trained and evaluated on; its steps are in run_phase.steps, which the run has filled
	 * in. The objective is closed by its own close(), then the phase by close_phase(), also after a failure. */
	enum status (*open_phase)(void *context, const struct train_state *state, struct objective **out);
	void (*close_phase)(void *context, int64_t index);
	/* As in struct training. */
	enum status (*locate)(void *context, struct train_state *state);
	/* Called before a save: is the data still what was opened? With `wait`, waits for checks running in the background. NULL:
	 * nothing is checked. */
	enum status (*check_data)(void *context, bool wait);
};

/* Zero-initialize. Released by run_close(), also after a failure. */
struct run {
	const struct run_folder_settings *settings; /* borrowed, like the next two */
	const struct run_task *task;
	struct machine *machine;
	bool brief; /* its options have been shown already: it is a later run of a sweep */
	/* As given, completed by the record, and with what was chosen: what is shown and recorded. */
	struct options options;
	const struct training_options *values;
	struct run_folder folder;
	struct run_start start;
	struct run_phase *phases; /* [phase_count] */
	int64_t phase_count;
	/* Set by the task: */
	struct model_config config;
	const struct vocab *vocab;
	const struct tokenizer_settings *tokenizer;
	struct adapter_base adapter_base;      /* if an adapter is trained: whose */
	const struct task_config *task_config; /* what config.json says about the head; NULL: pre-training */
	const struct layer_options *layers;    /* which layers learn, and how fast; NULL: all, at the same rate */
	uint64_t data_hash;                    /* of vocabulary and training data */
	uint64_t teacher_hash;                 /* of the weights of a teacher; 0: there is no teacher */
	uint64_t evaluation_hash;              /* of the evaluation sets, with their names */
	uint64_t test_hash;                    /* of the sets that are answered after training */
	int32_t longest_evaluated;             /* tokens, if it may exceed max_seq_length */
	/* The run's own: */
	double loss_scale; /* 0 = dynamic */
	struct shapes shapes;
	struct run_memory memory;
	struct phase *schedules;     /* [phase_count] */
	int64_t open_phase;          /* index of the phase whose data is open, or -1 */
	struct objective *objective; /* of that phase */
	struct buffer record_text;
	double opened;         /* clock_seconds() when this process started with it */
	bool wrote_settings;   /* this process wrote settings.json, which was not there */
	char computed_on[128]; /* for the checkpoints' records */
	struct training training;
};

/* For use from the start of the program until the first step: the signals that ask a run to stop end the process at once, with
 * the status that says that it should be run again. */
void run_stop_before_training(void);

MUST_USE enum status run_open(struct run *run, const struct run_folder_settings *settings, struct machine *machine,
			      const struct run_task *task);
/* Copies the options of the run and of its phases [count]; with one phase they are the same. */
MUST_USE enum status run_take_options(struct run *run, const struct options *options, struct options *const *phases,
				      int64_t count);
MUST_USE enum status run_open_device(struct run *run);
/* The dropout that the options say, in place of the configuration's, or else the configuration's. */
MUST_USE enum status run_choose_dropout(struct run *run);
/* Finds the evaluation set that --best_by names, among names[count], which may be NULL or empty; without the option it is the
 * first. ERR_USAGE if there is none. For tasks to call once their sets are known, so that a mistyped name costs no training. */
MUST_USE enum status run_find_best_set(const struct run *run, const char *const *names, int64_t count, int64_t *out);
MUST_USE enum status run_plan(struct run *run);
/* STOPPED, with a message: the run was asked to stop, and has saved its state. */
MUST_USE enum status run_train(struct run *run);
/* `status` is how the run ended: a folder made by a failed run is removed if nothing was put into it. */
void run_close(struct run *run, enum status status);

/* Number of tokens in the longest sequence of all phases. */
int64_t run_longest(const struct run *run);

#endif
