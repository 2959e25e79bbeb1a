/* The options that all training commands share: one struct, and the rows of option tables that fill it. A command's settings have
 * the struct as a member. If the wording of a row differs between commands, the macro takes it as a parameter; a row that only
 * one command has is in that command's table. training_settings.h turns the struct into those of src/run.
 *
 * `phase` is the kind of section that may have a value of its own ("phase"), or NULL. */
#ifndef CMD_TRAINING_OPTIONS_H
#define CMD_TRAINING_OPTIONS_H

#include "base/option.h"
#include "infer/device_options.h"
#include "run/recipe.h"

/* transformers' names for shapes that are the same with its default settings, such as one cycle for cosine_with_restarts, and
 * what to use instead of those that are not. Its polynomial ends at a rate of 1e-7. */
#define SCHEDULE_SYNONYMS "constant_with_warmup=constant cosine_with_restarts=cosine"
#define SCHEDULE_ADVICE                                                                                                          \
	"transformers' polynomial is --schedule poly --min_learning_rate 1e-7, its cosine_with_min_lr is --schedule cosine "     \
	"with --min_learning_rate, and in place of warmup_stable_decay there is wsd with --num_decay_steps"

struct training_settings {
	/* folder */
	const char *out, *resume_from;
	bool fresh, plan;
	int64_t resume_step;
	/* length and batch */
	int64_t num_train_steps, early_stopping_patience;
	double num_train_epochs, early_stopping_threshold;
	int64_t train_batch_size, train_batch_size_per_gpu, per_device_train_batch_size, gradient_accumulation_steps,
		micro_batch_tokens, max_seq_length;
	/* saving and stopping */
	int64_t save_checkpoints_steps, keep_checkpoints, eval_steps, log_steps, stop_at_step, steps_this_run;
	bool save_best;
	const char *best_by, *max_time;
	/* randomness */
	int64_t seed;
	double hidden_dropout_prob, attention_probs_dropout_prob;
	/* ranks */
	int64_t ranks, n_gpus, max_restarts, replicas_per_gpu, check_weights_steps;
	double watchdog_seconds;
	bool allreduce_post_accumulation, allreduce_post_accumulation_fp16, allreduce_post_accumulation_bf16;
	/* numerics */
	double skip_spikes, loss_scale, init_loss_scale;
	/* optimizer */
	const char *optimizer, *schedule, *scale_learning_rate, *trust_ratio, *gradient_normalization;
	int64_t learning_rate_batch_size, num_warmup_steps, min_warmup_steps, num_decay_steps;
	double learning_rate, min_learning_rate, weight_decay, max_grad_norm, adam_beta1, adam_beta2, adam_epsilon;
	double warmup_proportion, poly_degree, max_trust_ratio;
	bool bias_correction, gradient_averaging;
	struct option_list exclude_from_weight_decay, exclude_from_layer_adaptation;
	struct device_options device;
};

/* ---- Rows of option tables ----
 * For a settings struct whose member `member` is a struct training_settings. */

/* The run folder, and how to start in it. */
#define RUN_FOLDER_OPTIONS(settings, member)                                                                                     \
	{.name = "out",                                                                                                          \
	 .letter = 'o',                                                                                                          \
	 .type = OPTION_TEXT,                                                                                                    \
	 .field = offsetof(settings, member.out),                                                                                \
	 .role = ROLE_PLACE,                                                                                                     \
	 .value_name = "FOLDER",                                                                                                 \
	 .alias = "output_dir",                                                                                                  \
	 .help = "run folder for checkpoints, metrics, and the finished model; run the same command again to resume"},           \
		{.name = "fresh",                                                                                                \
		 .type = OPTION_FLAG,                                                                                            \
		 .field = offsetof(settings, member.fresh),                                                                      \
		 .fallback = "false",                                                                                            \
		 .role = ROLE_PLACE,                                                                                             \
		 .help = "remove what an earlier run left in the folder and start over"},                                        \
		{.name = "resume_from",                                                                                          \
		 .type = OPTION_TEXT,                                                                                            \
		 .field = offsetof(settings, member.resume_from),                                                                \
		 .role = ROLE_ENTRY,                                                                                             \
		 .value_name = "PATH",                                                                                           \
		 .help = "resume from this checkpoint: an older one in the run folder (newer ones are set aside), or one of "    \
			 "another run"},                                                                                         \
		{.name = "resume_step",                                                                                          \
		 .type = OPTION_INTEGER,                                                                                         \
		 .field = offsetof(settings, member.resume_step),                                                                \
		 .fallback = "-1",                                                                                               \
		 .range = "-1..",                                                                                                \
		 .role = ROLE_PLACE,                                                                                             \
		 .value_name = "N",                                                                                              \
		 .help = "resume from checkpoint-N in the run folder; -1 = the newest"},                                         \
	{                                                                                                                        \
		.name = "plan", .type = OPTION_FLAG, .field = offsetof(settings, member.plan), .fallback = "false",              \
		.role = ROLE_PLACE, .alias = "dry_run", .help = "print settings, memory, and time, then exit"                    \
	}

/* Length of the training. `epochs_text`: the default number of epochs. */
#define LENGTH_OPTIONS(settings, member, phase, epochs_text)                                                                     \
	{.name = "num_train_steps",                                                                                              \
	 .section = phase,                                                                                                       \
	 .type = OPTION_INTEGER,                                                                                                 \
	 .field = offsetof(settings, member.num_train_steps),                                                                    \
	 .range = "1..",                                                                                                         \
	 .role = ROLE_RESULT,                                                                                                    \
	 .follows = "num_train_epochs time",                                                                                     \
	 .value_name = "N",                                                                                                      \
	 .alias = "max_steps train_iters",                                                                                       \
	 .automatic = "-1",                                                                                                      \
	 .fallback_text = "from num_train_epochs",                                                                               \
	 .help = "number of optimizer updates"},                                                                                 \
		{.name = "num_train_epochs",                                                                                     \
		 .section = phase,                                                                                               \
		 .type = OPTION_NUMBER,                                                                                          \
		 .field = offsetof(settings, member.num_train_epochs),                                                           \
		 .range = "0.001..",                                                                                             \
		 .role = ROLE_RESULT,                                                                                            \
		 .value_name = "X",                                                                                              \
		 .fallback_text = epochs_text,                                                                                   \
		 .help = "number of passes over the training data, instead of steps"},                                           \
		{.name = "early_stopping_patience",                                                                              \
		 .section = phase,                                                                                               \
		 .type = OPTION_INTEGER,                                                                                         \
		 .field = offsetof(settings, member.early_stopping_patience),                                                    \
		 .fallback = "0",                                                                                                \
		 .range = "0..",                                                                                                 \
		 .role = ROLE_RESULT,                                                                                            \
		 .value_name = "N",                                                                                              \
		 .alias = "stop_when_eval_stalls",                                                                               \
		 .help = "stop after this many evaluations in a row without an improvement; 0 = never"},                         \
	{                                                                                                                        \
		.name = "early_stopping_threshold", .section = phase, .type = OPTION_NUMBER,                                     \
		.field = offsetof(settings, member.early_stopping_threshold), .fallback = "0", .range = "0..",                   \
		.role = ROLE_RESULT, .value_name = "X", .help = "smallest change that counts as an improvement"                  \
	}

/* What an update consists of. `unit`: what is counted, such as "examples"; `size_text`: the default batch size. */
#define BATCH_OPTIONS(settings, member, phase, unit, size_text)                                                                  \
	{.name = "train_batch_size",                                                                                             \
	 .section = phase,                                                                                                       \
	 .type = OPTION_INTEGER,                                                                                                 \
	 .field = offsetof(settings, member.train_batch_size),                                                                   \
	 .range = "1..1048576",                                                                                                  \
	 .role = ROLE_RESULT,                                                                                                    \
	 .follows = "train_batch_size_per_gpu",                                                                                  \
	 .value_name = "N",                                                                                                      \
	 .alias = "global_batch_size",                                                                                           \
	 .fallback_text = size_text,                                                                                             \
	 .help = unit " per update, over all ranks, replicas, and micro-batches"},                                               \
		{.name = "train_batch_size_per_gpu",                                                                             \
		 .section = phase,                                                                                               \
		 .type = OPTION_INTEGER,                                                                                         \
		 .field = offsetof(settings, member.train_batch_size_per_gpu),                                                   \
		 .range = "1..1048576",                                                                                          \
		 .role = ROLE_RUN,                                                                                               \
		 .value_name = "N",                                                                                              \
		 .alias = "train_batch_size_per_rank",                                                                           \
		 .fallback_text = "not used",                                                                                    \
		 .help = unit " per update for each rank and replica, including micro-batches, instead of for all (BERT-GPU's "  \
			      "train_batch_size)"},                                                                              \
		{.name = "per_device_train_batch_size",                                                                          \
		 .section = phase,                                                                                               \
		 .type = OPTION_INTEGER,                                                                                         \
		 .field = offsetof(settings, member.per_device_train_batch_size),                                                \
		 .range = "1..1048576",                                                                                          \
		 .role = ROLE_PLACE,                                                                                             \
		 .value_name = "N",                                                                                              \
		 .alias = "per_gpu_train_batch_size micro_batch_size",                                                           \
		 .fallback_text = "not used",                                                                                    \
		 .help = "the batch in transformers' terms: " unit                                                               \
			 " per micro-batch of each rank and replica, of which an update has "                                    \
			 "gradient_accumulation_steps"},                                                                         \
		{.name = "gradient_accumulation_steps",                                                                          \
		 .section = phase,                                                                                               \
		 .type = OPTION_INTEGER,                                                                                         \
		 .field = offsetof(settings, member.gradient_accumulation_steps),                                                \
		 .fallback = "0",                                                                                                \
		 .range = "0..65536",                                                                                            \
		 .role = ROLE_RESULT,                                                                                            \
		 .value_name = "N",                                                                                              \
		 .alias = "num_accumulation_steps",                                                                              \
		 .help = "micro-batches per update for each rank and replica; 0 = as few as micro_batch_tokens allows"},         \
	{                                                                                                                        \
		.name = "micro_batch_tokens", .section = phase, .type = OPTION_INTEGER,                                          \
		.field = offsetof(settings, member.micro_batch_tokens), .range = "128..1048576", .role = ROLE_RESULT,            \
		.value_name = "N|auto", .alias = "micro_batch", .automatic = "auto",                                             \
		.fallback_text = "8192, less where memory has no room for it; on GPUs what fits into theirs, at most 65536",     \
		.help = "maximum number of tokens computed at a time if gradient_accumulation_steps is not given"                \
	}

/* Two rows of the next group, which `bertc plan` has as well. `place`: the offset of the value. */
#define SAVE_STEPS_OPTION(place, phase, every_text)                                                                              \
	{                                                                                                                        \
		.name = "save_checkpoints_steps", .section = phase, .type = OPTION_INTEGER, .field = place, .range = "0..",      \
		.role = ROLE_RUN, .value_name = "N", .alias = "save_steps num_steps_per_checkpoint save_interval",               \
		.fallback_text = every_text, .help = "steps between checkpoints; 0 = only at the end"                            \
	}
#define EVAL_STEPS_OPTION(place, phase, every_text)                                                                              \
	{                                                                                                                        \
		.name = "eval_steps", .section = phase, .type = OPTION_INTEGER, .field = place, .range = "0..",                  \
		.role = ROLE_RUN, .value_name = "N", .alias = "eval_interval", .fallback_text = every_text,                      \
		.help = "steps between evaluations; 0 = only at the end"                                                         \
	}

/* When to save and evaluate. `every_text`: the default interval. */
#define SAVING_OPTIONS(settings, member, phase, every_text)                                                                      \
	SAVE_STEPS_OPTION(offsetof(settings, member.save_checkpoints_steps), phase, every_text),                                 \
		{.name = "keep_checkpoints",                                                                                     \
		 .type = OPTION_INTEGER,                                                                                         \
		 .field = offsetof(settings, member.keep_checkpoints),                                                           \
		 .fallback = "2",                                                                                                \
		 .range = "0..",                                                                                                 \
		 .role = ROLE_RUN,                                                                                               \
		 .value_name = "N",                                                                                              \
		 .alias = "save_total_limit keep_checkpoint_max",                                                                \
		 .help = "number of newest checkpoints to keep, in addition to the best one; 0 = all"},                          \
		EVAL_STEPS_OPTION(offsetof(settings, member.eval_steps), phase, every_text),                                     \
	{                                                                                                                        \
		.name = "log_steps", .section = phase, .type = OPTION_INTEGER, .field = offsetof(settings, member.log_steps),    \
		.fallback = "10", .range = "1..", .role = ROLE_RUN, .value_name = "N",                                           \
		.alias = "logging_steps log_freq log_interval display_loss_steps",                                               \
		.help = "steps between log records in metrics.jsonl"                                                             \
	}

/* When to stop before the end. */
#define STOPPING_OPTIONS(settings, member)                                                                                       \
	{.name = "stop_at_step",                                                                                                 \
	 .type = OPTION_INTEGER,                                                                                                 \
	 .field = offsetof(settings, member.stop_at_step),                                                                       \
	 .fallback = "0",                                                                                                        \
	 .range = "0..",                                                                                                         \
	 .role = ROLE_PLACE,                                                                                                     \
	 .value_name = "N",                                                                                                      \
	 .help = "save and stop at this step without changing the schedule; 0 = at the end"},                                    \
		{.name = "max_time",                                                                                             \
		 .type = OPTION_TEXT,                                                                                            \
		 .field = offsetof(settings, member.max_time),                                                                   \
		 .role = ROLE_PLACE,                                                                                             \
		 .value_name = "TIME",                                                                                           \
		 .fallback_text = "no limit",                                                                                    \
		 .help = "save and stop (status 75) before this much time has passed: seconds, 1h30m, or Slurm's form "          \
			 "1-12:00:00"},                                                                                          \
	{                                                                                                                        \
		.name = "steps_this_run", .type = OPTION_INTEGER, .field = offsetof(settings, member.steps_this_run),            \
		.fallback = "0", .range = "-1..", .role = ROLE_PLACE, .value_name = "N",                                         \
		.help = "save and stop after this many steps of this invocation without changing the schedule; 0 or -1 = at "    \
			"the end"                                                                                                \
	}

/* The random seed. `whose`: what it seeds, such as "initial weights, ...". */
#define SEED_OPTION(settings, member, whose)                                                                                     \
	{                                                                                                                        \
		.name = "seed", .type = OPTION_INTEGER, .field = offsetof(settings, member.seed), .fallback = "12345",           \
		.range = "0..", .role = ROLE_RESULT, .value_name = "N", .alias = "random_seed", .help = "seed of " whose         \
	}

/* Dropout that replaces the model's own. */
#define DROPOUT_OPTIONS(settings, member)                                                                                        \
	{.name = "hidden_dropout_prob",                                                                                          \
	 .type = OPTION_NUMBER,                                                                                                  \
	 .field = offsetof(settings, member.hidden_dropout_prob),                                                                \
	 .range = "0..0.9",                                                                                                      \
	 .role = ROLE_RESULT,                                                                                                    \
	 .value_name = "P",                                                                                                      \
	 .fallback_text = "the model's",                                                                                         \
	 .help = "dropout after the embeddings, after both sub-layers, and before a task's head (there only if "                 \
		 "config.json has no classifier_dropout)"},                                                                      \
	{                                                                                                                        \
		.name = "attention_probs_dropout_prob", .type = OPTION_NUMBER,                                                   \
		.field = offsetof(settings, member.attention_probs_dropout_prob), .range = "0..0.9", .role = ROLE_RESULT,        \
		.value_name = "P", .fallback_text = "the model's", .help = "dropout on the attention probabilities"              \
	}

/* Ranks, and how they work together. */
#define RANK_OPTIONS(settings, member)                                                                                           \
	{.name = "ranks",                                                                                                        \
	 .type = OPTION_INTEGER,                                                                                                 \
	 .field = offsetof(settings, member.ranks),                                                                              \
	 .fallback = "0",                                                                                                        \
	 .range = "0..4096",                                                                                                     \
	 .role = ROLE_RUN,                                                                                                       \
	 .value_name = "N",                                                                                                      \
	 .alias = "nproc_per_node",                                                                                              \
	 .help = "processes that train together on this machine, each with its share of the cores; 0 = one, or one per GPU. "    \
		 "Under mpirun, srun, or torchrun the launcher decides"},                                                        \
		{.name = "n_gpus",                                                                                               \
		 .type = OPTION_INTEGER,                                                                                         \
		 .field = offsetof(settings, member.n_gpus),                                                                     \
		 .fallback = "0",                                                                                                \
		 .range = "0..4096",                                                                                             \
		 .role = ROLE_RUN,                                                                                               \
		 .value_name = "N",                                                                                              \
		 .alias = "gpus num_gpus",                                                                                       \
		 .help = "number of GPUs to train on, one rank per GPU; 0 = all visible ones with --device cuda; a multiple of " \
			 "the visible GPUs emulates that many, see replicas_per_gpu"},                                           \
		{.name = "watchdog_seconds",                                                                                     \
		 .type = OPTION_NUMBER,                                                                                          \
		 .field = offsetof(settings, member.watchdog_seconds),                                                           \
		 .fallback = "60",                                                                                               \
		 .range = "0.5..",                                                                                               \
		 .role = ROLE_RUN,                                                                                               \
		 .value_name = "X",                                                                                              \
		 .help = "end the run (status 6) if a rank gives no sign of life for this long, or spends longer than this and " \
			 "more than five times its usual time in one part of a step; a part that is new is allowed ten "         \
			 "times as long"},                                                                                       \
		{.name = "max_restarts",                                                                                         \
		 .type = OPTION_INTEGER,                                                                                         \
		 .field = offsetof(settings, member.max_restarts),                                                               \
		 .fallback = "0",                                                                                                \
		 .range = "0..1000",                                                                                             \
		 .role = ROLE_RUN,                                                                                               \
		 .value_name = "N",                                                                                              \
		 .help = "if a rank dies or hangs, restart all ranks from the last checkpoint, at most N times"},                \
		{.name = "replicas_per_gpu",                                                                                     \
		 .type = OPTION_INTEGER,                                                                                         \
		 .field = offsetof(settings, member.replicas_per_gpu),                                                           \
		 .fallback = "1",                                                                                                \
		 .range = "1..1024",                                                                                             \
		 .role = ROLE_RUN,                                                                                               \
		 .value_name = "R",                                                                                              \
		 .alias = "replicas_per_rank",                                                                                   \
		 .help = "let each rank compute the shares of R devices one after the other: the same step as on that many "     \
			 "devices, up to rounding, in the memory of one"},                                                       \
		{.name = "allreduce_post_accumulation",                                                                          \
		 .type = OPTION_FLAG,                                                                                            \
		 .field = offsetof(settings, member.allreduce_post_accumulation),                                                \
		 .fallback = "true",                                                                                             \
		 .role = ROLE_RUN,                                                                                               \
		 .help = "sum gradients over ranks once per update, during the last micro-batch; false: after every "            \
			 "micro-batch"},                                                                                         \
		{.name = "allreduce_post_accumulation_fp16",                                                                     \
		 .type = OPTION_FLAG,                                                                                            \
		 .field = offsetof(settings, member.allreduce_post_accumulation_fp16),                                           \
		 .fallback = "false",                                                                                            \
		 .role = ROLE_RUN,                                                                                               \
		 .alias = "allreduce_fp16",                                                                                      \
		 .help = "send gradients between ranks in fp16 (half the bytes) and add them in fp32; uses a dynamic loss "      \
			 "scale unless loss_scale is given"},                                                                    \
		{.name = "allreduce_post_accumulation_bf16",                                                                     \
		 .type = OPTION_FLAG,                                                                                            \
		 .field = offsetof(settings, member.allreduce_post_accumulation_bf16),                                           \
		 .fallback = "false",                                                                                            \
		 .role = ROLE_RUN,                                                                                               \
		 .alias = "allreduce_bf16",                                                                                      \
		 .help = "send gradients in bf16, which needs no loss scale"},                                                   \
	{                                                                                                                        \
		.name = "check_weights_steps", .type = OPTION_INTEGER, .field = offsetof(settings, member.check_weights_steps),  \
		.fallback = "100", .range = "0..", .role = ROLE_RUN, .value_name = "N",                                          \
		.help = "compare the weights of all ranks every N steps and before each save; a difference ends the run "        \
			"(status 6); 0 = only before saves"                                                                      \
	}

/* Safeguards for the numbers: spikes and loss scale. */
#define NUMBER_OPTIONS(settings, member)                                                                                         \
	{.name = "skip_spikes",                                                                                                  \
	 .type = OPTION_NUMBER,                                                                                                  \
	 .field = offsetof(settings, member.skip_spikes),                                                                        \
	 .fallback = "0",                                                                                                        \
	 .range = "0..",                                                                                                         \
	 .role = ROLE_RUN,                                                                                                       \
	 .value_name = "Z",                                                                                                      \
	 .help = "skip updates whose loss or gradient norm is Z standard deviations above the previous 128; 0 = skip none"},     \
		{.name = "loss_scale",                                                                                           \
		 .type = OPTION_NUMBER,                                                                                          \
		 .field = offsetof(settings, member.loss_scale),                                                                 \
		 .fallback = "1",                                                                                                \
		 .range = "0..",                                                                                                 \
		 .role = ROLE_RUN,                                                                                               \
		 .value_name = "X",                                                                                              \
		 .help = "multiply the loss by this before the backward pass; 0 = dynamic, the default with --precision fp16"},  \
	{                                                                                                                        \
		.name = "init_loss_scale", .type = OPTION_NUMBER, .field = offsetof(settings, member.init_loss_scale),           \
		.fallback = "65536", .range = "1..", .role = ROLE_RUN, .value_name = "X", .alias = "initial_loss_scale",         \
		.help = "initial value of a dynamic loss scale"                                                                  \
	}

/* Learning rate, schedule, and optimizer. `rate_text`: the default learning rate. */
#define OPTIMIZER_OPTIONS(settings, member, phase, rate_text)                                                                    \
	{.name = "optimizer",                                                                                                    \
	 .type = OPTION_CHOICE,                                                                                                  \
	 .field = offsetof(settings, member.optimizer),                                                                          \
	 .fallback = "adamw",                                                                                                    \
	 .range = OPTIMIZER_NAMES,                                                                                               \
	 .role = ROLE_RESULT,                                                                                                    \
	 .value_name = "NAME",                                                                                                   \
	 .alias = "optimizer_type",                                                                                              \
	 .help = "adamw: as in PyTorch; google_adamw: without bias correction; lamb: as in NVIDIA's code, for batches of "       \
		 "thousands; nvlamb: with the trust ratio for every tensor"},                                                    \
		{.name = "learning_rate",                                                                                        \
		 .section = phase,                                                                                               \
		 .type = OPTION_NUMBER,                                                                                          \
		 .field = offsetof(settings, member.learning_rate),                                                              \
		 .range = "0..1",                                                                                                \
		 .role = ROLE_RESULT,                                                                                            \
		 .value_name = "X",                                                                                              \
		 .alias = "lr",                                                                                                  \
		 .fallback_text = rate_text,                                                                                     \
		 .help = "peak learning rate"},                                                                                  \
		{.name = "scale_learning_rate",                                                                                  \
		 .section = phase,                                                                                               \
		 .type = OPTION_CHOICE,                                                                                          \
		 .field = offsetof(settings, member.scale_learning_rate),                                                        \
		 .fallback = "none",                                                                                             \
		 .range = "none|linear|sqrt",                                                                                    \
		 .role = ROLE_RESULT,                                                                                            \
		 .value_name = "HOW",                                                                                            \
		 .help = "multiply learning_rate and min_learning_rate by train_batch_size / learning_rate_batch_size, or by "   \
			 "its square root"},                                                                                     \
		{.name = "learning_rate_batch_size",                                                                             \
		 .section = phase,                                                                                               \
		 .type = OPTION_INTEGER,                                                                                         \
		 .field = offsetof(settings, member.learning_rate_batch_size),                                                   \
		 .range = "1..1048576",                                                                                          \
		 .role = ROLE_RESULT,                                                                                            \
		 .value_name = "N",                                                                                              \
		 .fallback_text = "train_batch_size_per_gpu if given, else 256",                                                 \
		 .help = "with scale_learning_rate: the batch size that learning_rate is meant for"},                            \
		{.name = "schedule",                                                                                             \
		 .section = phase,                                                                                               \
		 .type = OPTION_CHOICE,                                                                                          \
		 .field = offsetof(settings, member.schedule),                                                                   \
		 .range = SCHEDULE_NAMES,                                                                                        \
		 .role = ROLE_RESULT,                                                                                            \
		 .value_name = "NAME",                                                                                           \
		 .alias = "lr_scheduler_type lr_decay_style",                                                                    \
		 .synonym = SCHEDULE_SYNONYMS,                                                                                   \
		 .advice = SCHEDULE_ADVICE,                                                                                      \
		 .fallback_text = "linear; with LAMB poly",                                                                      \
		 .help = "how the rate decays after the warm-up; google_linear and nvidia_poly reproduce those programs "        \
			 "exactly, jumps included"},                                                                             \
		{.name = "num_warmup_steps",                                                                                     \
		 .section = phase,                                                                                               \
		 .type = OPTION_INTEGER,                                                                                         \
		 .field = offsetof(settings, member.num_warmup_steps),                                                           \
		 .range = "0..",                                                                                                 \
		 .role = ROLE_RESULT,                                                                                            \
		 .follows = "warmup_proportion",                                                                                 \
		 .value_name = "N",                                                                                              \
		 .alias = "warmup_steps lr_warmup_iters",                                                                        \
		 .advice = "a share of all steps is given as --warmup_proportion",                                               \
		 .fallback_text = "a tenth of the run, at most 10000",                                                           \
		 .help = "number of steps over which the rate rises from 0"},                                                    \
		{.name = "warmup_proportion",                                                                                    \
		 .section = phase,                                                                                               \
		 .type = OPTION_NUMBER,                                                                                          \
		 .field = offsetof(settings, member.warmup_proportion),                                                          \
		 .range = "0..1",                                                                                                \
		 .role = ROLE_RESULT,                                                                                            \
		 .value_name = "X",                                                                                              \
		 .alias = "warmup_ratio lr_warmup_fraction",                                                                     \
		 .fallback_text = "not used",                                                                                    \
		 .help = "warm-up as a share of all steps, instead of num_warmup_steps"},                                        \
		{.name = "min_warmup_steps",                                                                                     \
		 .section = phase,                                                                                               \
		 .type = OPTION_INTEGER,                                                                                         \
		 .field = offsetof(settings, member.min_warmup_steps),                                                           \
		 .fallback = "0",                                                                                                \
		 .range = "0..",                                                                                                 \
		 .role = ROLE_RESULT,                                                                                            \
		 .value_name = "N",                                                                                              \
		 .help = "without num_warmup_steps: at least this many steps, for a new model in proportion to its layers "      \
			 "(N is for four), but no more than a third of the run"},                                                \
		{.name = "num_decay_steps",                                                                                      \
		 .section = phase,                                                                                               \
		 .type = OPTION_INTEGER,                                                                                         \
		 .field = offsetof(settings, member.num_decay_steps),                                                            \
		 .range = "1..",                                                                                                 \
		 .role = ROLE_RESULT,                                                                                            \
		 .value_name = "N",                                                                                              \
		 .alias = "lr_wsd_decay_iters",                                                                                  \
		 .fallback_text = "with wsd a fifth of the run",                                                                 \
		 .help = "with the schedule wsd: number of steps at the end over which the rate falls"},                         \
		{.name = "poly_degree",                                                                                          \
		 .section = phase,                                                                                               \
		 .type = OPTION_NUMBER,                                                                                          \
		 .field = offsetof(settings, member.poly_degree),                                                                \
		 .range = "0.01..10",                                                                                            \
		 .role = ROLE_RESULT,                                                                                            \
		 .value_name = "X",                                                                                              \
		 .alias = "poly_power",                                                                                          \
		 .fallback_text = "1, with LAMB 0.5",                                                                            \
		 .help = "exponent of the polynomial schedules"},                                                                \
		{.name = "min_learning_rate",                                                                                    \
		 .section = phase,                                                                                               \
		 .type = OPTION_NUMBER,                                                                                          \
		 .field = offsetof(settings, member.min_learning_rate),                                                          \
		 .range = "0..1",                                                                                                \
		 .role = ROLE_RESULT,                                                                                            \
		 .value_name = "X",                                                                                              \
		 .alias = "min_lr end_learning_rate lr_end",                                                                     \
		 .fallback_text = "0; slanted_triangular: 1/32 of the peak",                                                     \
		 .help = "final learning rate"},                                                                                 \
		{.name = "weight_decay",                                                                                         \
		 .type = OPTION_NUMBER,                                                                                          \
		 .field = offsetof(settings, member.weight_decay),                                                               \
		 .fallback = "0.01",                                                                                             \
		 .range = "0..1",                                                                                                \
		 .role = ROLE_RESULT,                                                                                            \
		 .value_name = "X",                                                                                              \
		 .help = "decoupled weight decay of all weights except biases and layer norms"},                                 \
		{.name = "exclude_from_weight_decay",                                                                            \
		 .type = OPTION_LIST,                                                                                            \
		 .field = offsetof(settings, member.exclude_from_weight_decay),                                                  \
		 .role = ROLE_RESULT,                                                                                            \
		 .value_name = "NAME...",                                                                                        \
		 .fallback_text = "bias LayerNorm",                                                                              \
		 .help = "do not decay weights whose names contain one of these; none: decay all"},                              \
		{.name = "max_grad_norm",                                                                                        \
		 .type = OPTION_NUMBER,                                                                                          \
		 .field = offsetof(settings, member.max_grad_norm),                                                              \
		 .fallback = "1.0",                                                                                              \
		 .range = "0..",                                                                                                 \
		 .role = ROLE_RESULT,                                                                                            \
		 .value_name = "X",                                                                                              \
		 .alias = "clip_norm clip_grad",                                                                                 \
		 .help = "clip the global gradient norm to this; 0 = do not clip"},                                              \
		{.name = "adam_beta1",                                                                                           \
		 .type = OPTION_NUMBER,                                                                                          \
		 .field = offsetof(settings, member.adam_beta1),                                                                 \
		 .fallback = "0.9",                                                                                              \
		 .range = "0..0.999999",                                                                                         \
		 .role = ROLE_RESULT,                                                                                            \
		 .value_name = "X",                                                                                              \
		 .help = "decay of the first moment"},                                                                           \
		{.name = "adam_beta2",                                                                                           \
		 .type = OPTION_NUMBER,                                                                                          \
		 .field = offsetof(settings, member.adam_beta2),                                                                 \
		 .fallback = "0.999",                                                                                            \
		 .range = "0..0.999999",                                                                                         \
		 .role = ROLE_RESULT,                                                                                            \
		 .value_name = "X",                                                                                              \
		 .help = "decay of the second moment"},                                                                          \
		{.name = "adam_epsilon",                                                                                         \
		 .type = OPTION_NUMBER,                                                                                          \
		 .field = offsetof(settings, member.adam_epsilon),                                                               \
		 .fallback = "1e-6",                                                                                             \
		 .range = "1e-20..1",                                                                                            \
		 .role = ROLE_RESULT,                                                                                            \
		 .value_name = "X",                                                                                              \
		 .alias = "adam_eps",                                                                                            \
		 .help = "added to the square root of the second moment"},                                                       \
		{.name = "bias_correction",                                                                                      \
		 .type = OPTION_FLAG,                                                                                            \
		 .field = offsetof(settings, member.bias_correction),                                                            \
		 .role = ROLE_RESULT,                                                                                            \
		 .fallback_text = "true; google_adamw false",                                                                    \
		 .help = "divide the moments by 1 - beta^t"},                                                                    \
		{.name = "trust_ratio",                                                                                          \
		 .type = OPTION_CHOICE,                                                                                          \
		 .field = offsetof(settings, member.trust_ratio),                                                                \
		 .range = "decayed|all",                                                                                         \
		 .role = ROLE_RESULT,                                                                                            \
		 .value_name = "WHICH",                                                                                          \
		 .fallback_text = "lamb decayed, nvlamb all",                                                                    \
		 .help = "LAMB: which tensors have a trust ratio"},                                                              \
		{.name = "exclude_from_layer_adaptation",                                                                        \
		 .type = OPTION_LIST,                                                                                            \
		 .field = offsetof(settings, member.exclude_from_layer_adaptation),                                              \
		 .role = ROLE_RESULT,                                                                                            \
		 .value_name = "NAME...",                                                                                        \
		 .fallback_text = "none",                                                                                        \
		 .help = "LAMB: no trust ratio for weights whose names contain one of these"},                                   \
		{.name = "max_trust_ratio",                                                                                      \
		 .type = OPTION_NUMBER,                                                                                          \
		 .field = offsetof(settings, member.max_trust_ratio),                                                            \
		 .range = "0..",                                                                                                 \
		 .role = ROLE_RESULT,                                                                                            \
		 .value_name = "X",                                                                                              \
		 .fallback_text = "no limit",                                                                                    \
		 .help = "LAMB: largest trust ratio; 0 = no limit"},                                                             \
		{.name = "gradient_normalization",                                                                               \
		 .type = OPTION_CHOICE,                                                                                          \
		 .field = offsetof(settings, member.gradient_normalization),                                                     \
		 .range = "clip|always",                                                                                         \
		 .role = ROLE_RESULT,                                                                                            \
		 .value_name = "WHEN",                                                                                           \
		 .fallback_text = "clip",                                                                                        \
		 .help = "LAMB: divide gradients by their global norm if it exceeds max_grad_norm (clip), or always, as in "     \
			 "NVLAMB's formula"},                                                                                    \
	{                                                                                                                        \
		.name = "gradient_averaging", .type = OPTION_FLAG, .field = offsetof(settings, member.gradient_averaging),       \
		.role = ROLE_RESULT, .alias = "grad_averaging", .fallback_text = "true",                                         \
		.help = "LAMB: the first moment is an average, beta1 m + (1 - beta1) g, not a sum, beta1 m + g"                  \
	}

#endif
