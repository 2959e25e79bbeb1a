/* A run, whatever it trains: one folder, one model, its phases, from the folder's lock to the finished model. A command fills
 * struct run_settings from its options, says by struct run_task what is trained, and by struct run_record how its settings are
 * shown and recorded. In order:
 *
 *     machine_find()                      which rank this is; machine_launches(): run_folder_launch() starts them all instead
 *     run_open()                          meets the other ranks; folder, lock, the checkpoint to resume from
 *     run_set_phases(), and fill in run->phases[i].settings; the record of the checkpoint (phases_record()) may complete
 *                                         struct run_settings and, with machine_resume(), the machine's, for the last time
 *     run_open_device()
 *     ... the task opens its data, sets run->config, vocab, tokenizer, data_hash and its part of the phases
 *     phase_choose_batch(), the phase's steps, phase_choose() for each phase
 *     run_plan()                          how much at a time, and the memory that takes; shown
 *     run_train()                         unless only the plan was asked for
 *     run_close(), machine_close()           of several runs the machine is closed after the last
 *
 * Functions are called by all ranks, and what fails in one fails in all. */
#ifndef RUN_RUN_H
#define RUN_RUN_H

#include "run/memory.h"
#include "run/phases.h"
#include "run/shapes.h"
#include "train/loop.h"

/* As given; nothing here is changed. Strings and lists are borrowed. */
struct run_settings {
	struct run_folder_settings folder;
	const char *max_time; /* NULL: no limit */
	uint64_t seed;
	struct recipe recipe;   /* what is open in it is chosen in run->recipe */
	int64_t stop_at_step;   /* 0 = at the end */
	int64_t steps_this_run; /* after which to stop; 0 or less: at the end */
	int64_t keep_checkpoints;
	bool save_best;
	const char *best_by; /* the evaluation set that decides; NULL: the first */
	/* Between ranks: */
	bool reduce_every_batch, wire_fp16, wire_bf16;
	int64_t check_weights_steps;
	/* Numbers: */
	double skip_spikes;
	double loss_scale; /* 0 = dynamic; negative: open */
	double init_loss_scale;
};

struct run;

/* What is trained. The functions get `context`. */
struct run_task {
	void *context;
	const char *decides;        /* the measure that says which checkpoint is best; NULL: the loss */
	struct shape_source shapes; /* with a context of its own */
	const struct model_heads *heads;
	/* A new run has drawn its weights: others over them, where it begins with some. NULL: none. */
	enum status (*load_weights)(void *context, struct model *model, struct replica *replica);
	/* Takes memory of the task's own on the device, for batches of these limits, and gives it back where less is to be tried.
	 * NULL: it has none. */
	enum status (*allocate)(void *context, const struct shape_limits *limits);
	enum status (*give_back)(void *context);
	/* What the report shows besides: facts and samples. Of the first rank alone. NULL: nothing. */
	enum status (*describe)(void *context, struct report *report);
	/* Opens what the phase of `state` trains and is evaluated on; its steps are phase->steps, which the run has put in place.
	 * Closed by its own close() and then by close_phase(), also after a failure. */
	enum status (*open_phase)(void *context, const struct train_state *state, struct objective **out);
	void (*close_phase)(void *context, int64_t index);
	/* As struct training has it. */
	enum status (*locate)(void *context, struct train_state *state);
	/* Before a save: are the data still those that were opened? With `wait` what looks at them in the background is waited
	 * for. NULL: nothing does. */
	enum status (*check_data)(void *context, bool wait);
};

/* How the command shows and records its settings, those chosen included: run->choices, and those of each phase. */
struct run_record {
	void *context;
	enum status (*write)(void *context, const struct run *run, struct json_writer *writer); /* an object */
	enum status (*show)(void *context, const struct run *run, struct buffer *out);
	/* For the report's table; kept until the run is closed. NULL: the report has none. */
	enum status (*options)(void *context, const struct run *run, const struct options **out);
};

/* Zero-initialise. Released by run_close(), also after a failure. */
struct run {
	const struct run_settings *settings; /* borrowed, as the next three */
	const struct run_task *task;
	const struct run_record *record;
	struct machine *machine;
	struct run_folder folder;
	struct run_start start;
	struct recipe recipe;
	struct choices choices;
	struct run_phase *phases; /* [phase_count] */
	int64_t phase_count;
	/* Set by the task: */
	struct model_config config;
	const struct vocab *vocab;
	const struct tokenizer_settings *tokenizer;
	const struct task_config *task_config; /* what config.json says of the head; NULL: pre-training */
	uint64_t data_hash;                    /* of vocabulary and training data */
	uint64_t teacher_hash;                 /* of the weights of a teacher; 0: nobody teaches */
	uint64_t evaluation_hash;              /* of the evaluation sets, with their names */
	int32_t longest_evaluated;             /* tokens, where that may be above max_seq_length */
	/* The run's own: */
	double loss_scale; /* 0 = dynamic */
	struct shapes shapes;
	struct run_memory memory;
	struct phase *schedules;     /* [phase_count] */
	int64_t open_phase;          /* whose data are open: index, or -1 */
	struct objective *objective; /* of that phase */
	struct buffer record_text;
	double opened;                /* clock_seconds() when this process began with it */
	bool wrote_settings, trained; /* settings.json is this process's; the loop was reached */
	char computed_on[128];        /* for the checkpoints' records */
	struct training training;
};

/* From the beginning of the program until the first step: SIGUSR1, with which schedulers end a job that is to be run again, ends
 * it with the status that says so. */
void run_stop_before_training(void);

MUST_USE enum status run_open(struct run *run, const struct run_settings *settings, struct machine *machine,
			      const struct run_task *task, const struct run_record *record);
/* All are zero, but for choices. */
MUST_USE enum status run_set_phases(struct run *run, int64_t count);
MUST_USE enum status run_open_device(struct run *run);
MUST_USE enum status run_plan(struct run *run);
/* STOPPED, with a message: it was asked to, and saved. */
MUST_USE enum status run_train(struct run *run);
/* `status` is how it ended: a folder that a failed run made goes if nothing came into it. */
void run_close(struct run *run, enum status status);

/* Tokens of the longest sequence of all phases. */
int64_t run_longest(const struct run *run);

#endif
