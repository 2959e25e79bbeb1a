/* What every command that trains can be told: one struct, and the rows of option tables that fill it. A command's settings have
 * the struct as a member. Where the words of a row differ from command to command, the fragment takes them; a row that only one
 * command has stands in that command's table. training_settings.h makes src/run's structs of it.
 *
 * `phase` is the kind of section that may have a value of its own ("phase"), or NULL. */
#ifndef CMD_TRAINING_OPTIONS_H
#define CMD_TRAINING_OPTIONS_H

#include "base/option.h"
#include "cmd/device_options.h"
#include "run/recipe.h"

struct training_settings {
	/* folder */
	const char *out, *resume_from;
	bool fresh, plan;
	int64_t resume_step;
	/* length and batch */
	int64_t num_train_steps, early_stopping_patience;
	double num_train_epochs, early_stopping_threshold;
	int64_t train_batch_size, train_batch_size_per_gpu, gradient_accumulation_steps, micro_batch_tokens, max_seq_length;
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
	/* numbers */
	double skip_spikes, loss_scale, init_loss_scale;
	/* optimiser */
	const char *optimizer, *schedule, *scale_learning_rate, *trust_ratio, *gradient_normalization;
	int64_t learning_rate_batch_size, num_warmup_steps;
	double learning_rate, min_learning_rate, weight_decay, max_grad_norm, adam_beta1, adam_beta2, adam_epsilon;
	double warmup_proportion, poly_degree, max_trust_ratio;
	bool bias_correction, gradient_averaging;
	struct option_list exclude_from_weight_decay, exclude_from_layer_adaptation;
	struct device_settings device;
};

/* ---- Rows of option tables ----
 * For a settings struct whose member `member` is a struct training_settings. */

/* The folder of a run, and how to begin in it. */
#define RUN_FOLDER_OPTIONS(settings, member)                                                                                     \
	{.name = "out",                                                                                                          \
	 .letter = 'o',                                                                                                          \
	 .type = OPTION_TEXT,                                                                                                    \
	 .field = offsetof(settings, member.out),                                                                                \
	 .role = ROLE_PLACE,                                                                                                     \
	 .value_name = "FOLDER",                                                                                                 \
	 .alias = "output_dir",                                                                                                  \
	 .help = "run folder: checkpoints, metrics, the finished model; the same command again resumes an interrupted run"},     \
		{.name = "fresh",                                                                                                \
		 .type = OPTION_FLAG,                                                                                            \
		 .field = offsetof(settings, member.fresh),                                                                      \
		 .fallback = "false",                                                                                            \
		 .role = ROLE_PLACE,                                                                                             \
		 .help = "remove what an earlier run left in the folder and begin again"},                                       \
		{.name = "resume_from",                                                                                          \
		 .type = OPTION_TEXT,                                                                                            \
		 .field = offsetof(settings, member.resume_from),                                                                \
		 .role = ROLE_ENTRY,                                                                                             \
		 .value_name = "PATH",                                                                                           \
		 .help = "go on from this checkpoint: an older one of the run folder (newer ones are set aside), or another "    \
			 "run's"},                                                                                               \
		{.name = "resume_step",                                                                                          \
		 .type = OPTION_INTEGER,                                                                                         \
		 .field = offsetof(settings, member.resume_step),                                                                \
		 .fallback = "-1",                                                                                               \
		 .range = "-1..",                                                                                                \
		 .role = ROLE_PLACE,                                                                                             \
		 .value_name = "N",                                                                                              \
		 .help = "the same with checkpoint-N of the run folder; -1 = the newest"},                                       \
	{                                                                                                                        \
		.name = "plan", .type = OPTION_FLAG, .field = offsetof(settings, member.plan), .fallback = "false",              \
		.role = ROLE_PLACE, .alias = "dry_run", .help = "print settings and memory plan, then stop"                      \
	}

/* How long it trains. `epochs_text`: the epochs where nothing is said. */
#define LENGTH_OPTIONS(settings, member, phase, epochs_text)                                                                     \
	{.name = "num_train_steps",                                                                                              \
	 .section = phase,                                                                                                       \
	 .type = OPTION_INTEGER,                                                                                                 \
	 .field = offsetof(settings, member.num_train_steps),                                                                    \
	 .range = "1..",                                                                                                         \
	 .role = ROLE_RESULT,                                                                                                    \
	 .value_name = "N",                                                                                                      \
	 .alias = "max_steps train_iters",                                                                                       \
	 .automatic = "-1",                                                                                                      \
	 .fallback_text = "from num_train_epochs",                                                                               \
	 .help = "optimiser updates"},                                                                                           \
		{.name = "num_train_epochs",                                                                                     \
		 .section = phase,                                                                                               \
		 .type = OPTION_NUMBER,                                                                                          \
		 .field = offsetof(settings, member.num_train_epochs),                                                           \
		 .range = "0.001..",                                                                                             \
		 .role = ROLE_RESULT,                                                                                            \
		 .value_name = "X",                                                                                              \
		 .fallback_text = epochs_text,                                                                                   \
		 .help = "passes over the training data, instead of steps"},                                                     \
		{.name = "early_stopping_patience",                                                                              \
		 .section = phase,                                                                                               \
		 .type = OPTION_INTEGER,                                                                                         \
		 .field = offsetof(settings, member.early_stopping_patience),                                                    \
		 .fallback = "0",                                                                                                \
		 .range = "0..",                                                                                                 \
		 .role = ROLE_RESULT,                                                                                            \
		 .value_name = "N",                                                                                              \
		 .alias = "stop_when_eval_stalls",                                                                               \
		 .help = "end after so many evaluations in a row that are no better than the best before; 0 = never"},           \
	{                                                                                                                        \
		.name = "early_stopping_threshold", .section = phase, .type = OPTION_NUMBER,                                     \
		.field = offsetof(settings, member.early_stopping_threshold), .fallback = "0", .range = "0..",                   \
		.role = ROLE_RESULT, .value_name = "X", .help = "better means better by more than this"                          \
	}

/* What an update is made of. `unit`: what is counted, "examples"; `size_text`: the batch where nothing is said;
 * `other_names`: other names of the batch of a device, each with a space before it, or "". */
#define BATCH_OPTIONS(settings, member, phase, unit, size_text, other_names)                                                     \
	{.name = "train_batch_size",                                                                                             \
	 .section = phase,                                                                                                       \
	 .type = OPTION_INTEGER,                                                                                                 \
	 .field = offsetof(settings, member.train_batch_size),                                                                   \
	 .range = "1..1048576",                                                                                                  \
	 .role = ROLE_RESULT,                                                                                                    \
	 .value_name = "N",                                                                                                      \
	 .alias = "global_batch_size",                                                                                           \
	 .fallback_text = size_text,                                                                                             \
	 .help = unit " an update, over all ranks, replicas and micro-batches"},                                                 \
		{.name = "train_batch_size_per_gpu",                                                                             \
		 .section = phase,                                                                                               \
		 .type = OPTION_INTEGER,                                                                                         \
		 .field = offsetof(settings, member.train_batch_size_per_gpu),                                                   \
		 .range = "1..1048576",                                                                                          \
		 .role = ROLE_RUN,                                                                                               \
		 .value_name = "N",                                                                                              \
		 .alias = "train_batch_size_per_rank" other_names,                                                               \
		 .fallback_text = "not used",                                                                                    \
		 .help = unit " an update of each rank and replica, micro-batches included, instead of all: what BERT-GPU "      \
			      "calls train_batch_size"},                                                                         \
		{.name = "gradient_accumulation_steps",                                                                          \
		 .section = phase,                                                                                               \
		 .type = OPTION_INTEGER,                                                                                         \
		 .field = offsetof(settings, member.gradient_accumulation_steps),                                                \
		 .fallback = "0",                                                                                                \
		 .range = "0..65536",                                                                                            \
		 .role = ROLE_RESULT,                                                                                            \
		 .value_name = "N",                                                                                              \
		 .alias = "num_accumulation_steps",                                                                              \
		 .help = "micro-batches an update, of each rank and replica; 0 = as few as micro_batch_tokens allows"},          \
	{                                                                                                                        \
		.name = "micro_batch_tokens", .section = phase, .type = OPTION_INTEGER,                                          \
		.field = offsetof(settings, member.micro_batch_tokens), .range = "128..1048576", .role = ROLE_RESULT,            \
		.value_name = "N|auto", .alias = "micro_batch", .automatic = "auto",                                             \
		.fallback_text = "8192; on GPUs what fits into the memory that is left, at most 65536",                          \
		.help = "most tokens computed at a time, without gradient_accumulation_steps"                                    \
	}

/* When it saves and evaluates. `every_text`: how often where nothing is said. */
#define SAVING_OPTIONS(settings, member, phase, every_text)                                                                      \
	{.name = "save_checkpoints_steps",                                                                                       \
	 .section = phase,                                                                                                       \
	 .type = OPTION_INTEGER,                                                                                                 \
	 .field = offsetof(settings, member.save_checkpoints_steps),                                                             \
	 .range = "0..",                                                                                                         \
	 .role = ROLE_RUN,                                                                                                       \
	 .value_name = "N",                                                                                                      \
	 .alias = "save_steps num_steps_per_checkpoint save_interval",                                                           \
	 .fallback_text = every_text,                                                                                            \
	 .help = "steps between checkpoints; 0 = only at the end"},                                                              \
		{.name = "keep_checkpoints",                                                                                     \
		 .type = OPTION_INTEGER,                                                                                         \
		 .field = offsetof(settings, member.keep_checkpoints),                                                           \
		 .fallback = "2",                                                                                                \
		 .range = "0..",                                                                                                 \
		 .role = ROLE_RUN,                                                                                               \
		 .value_name = "N",                                                                                              \
		 .alias = "save_total_limit keep_checkpoint_max",                                                                \
		 .help = "newest checkpoints kept, besides the best one; 0 = all"},                                              \
		{.name = "eval_steps",                                                                                           \
		 .section = phase,                                                                                               \
		 .type = OPTION_INTEGER,                                                                                         \
		 .field = offsetof(settings, member.eval_steps),                                                                 \
		 .range = "0..",                                                                                                 \
		 .role = ROLE_RUN,                                                                                               \
		 .value_name = "N",                                                                                              \
		 .alias = "eval_interval",                                                                                       \
		 .fallback_text = every_text,                                                                                    \
		 .help = "steps between evaluations; 0 = only at the end"},                                                      \
	{                                                                                                                        \
		.name = "log_steps", .section = phase, .type = OPTION_INTEGER, .field = offsetof(settings, member.log_steps),    \
		.fallback = "10", .range = "1..", .role = ROLE_RUN, .value_name = "N",                                           \
		.alias = "logging_steps log_freq log_interval display_loss_steps",                                               \
		.help = "steps between lines of metrics.jsonl"                                                                   \
	}

/* When it stops before its end. */
#define STOPPING_OPTIONS(settings, member)                                                                                       \
	{.name = "stop_at_step",                                                                                                 \
	 .type = OPTION_INTEGER,                                                                                                 \
	 .field = offsetof(settings, member.stop_at_step),                                                                       \
	 .fallback = "0",                                                                                                        \
	 .range = "0..",                                                                                                         \
	 .role = ROLE_PLACE,                                                                                                     \
	 .value_name = "N",                                                                                                      \
	 .help = "save and stop there, the schedule unchanged; 0 = at the end"},                                                 \
		{.name = "max_time",                                                                                             \
		 .type = OPTION_TEXT,                                                                                            \
		 .field = offsetof(settings, member.max_time),                                                                   \
		 .role = ROLE_PLACE,                                                                                             \
		 .value_name = "TIME",                                                                                           \
		 .fallback_text = "no limit",                                                                                    \
		 .help = "save and stop (status 75) so as to have ended by then: seconds, 1h30m, or a clock as Slurm's "         \
			 "1-12:00:00"},                                                                                          \
	{                                                                                                                        \
		.name = "steps_this_run", .type = OPTION_INTEGER, .field = offsetof(settings, member.steps_this_run),            \
		.fallback = "0", .range = "-1..", .role = ROLE_PLACE, .value_name = "N",                                         \
		.help = "save and stop after so many steps of this invocation, the schedule unchanged; 0 or -1 = at the end"     \
	}

/* Of what it is random. `whose`: "initial weights, ...". */
#define SEED_OPTION(settings, member, whose)                                                                                     \
	{                                                                                                                        \
		.name = "seed", .type = OPTION_INTEGER, .field = offsetof(settings, member.seed), .fallback = "12345",           \
		.range = "0..", .role = ROLE_RESULT, .value_name = "N", .alias = "random_seed", .help = "of " whose              \
	}

/* The dropout where it is not the model's own. */
#define DROPOUT_OPTIONS(settings, member)                                                                                        \
	{.name = "hidden_dropout_prob",                                                                                          \
	 .type = OPTION_NUMBER,                                                                                                  \
	 .field = offsetof(settings, member.hidden_dropout_prob),                                                                \
	 .range = "0..0.9",                                                                                                      \
	 .role = ROLE_RESULT,                                                                                                    \
	 .value_name = "P",                                                                                                      \
	 .fallback_text = "the model's",                                                                                         \
	 .help = "dropout after embeddings, after both sub-layers, and before a task's head"},                                   \
	{                                                                                                                        \
		.name = "attention_probs_dropout_prob", .type = OPTION_NUMBER,                                                   \
		.field = offsetof(settings, member.attention_probs_dropout_prob), .range = "0..0.9", .role = ROLE_RESULT,        \
		.value_name = "P", .fallback_text = "the model's", .help = "dropout on attention probabilities"                  \
	}

/* Ranks, and what they do together. */
#define RANK_OPTIONS(settings, member)                                                                                           \
	{.name = "ranks",                                                                                                        \
	 .type = OPTION_INTEGER,                                                                                                 \
	 .field = offsetof(settings, member.ranks),                                                                              \
	 .fallback = "0",                                                                                                        \
	 .range = "0..4096",                                                                                                     \
	 .role = ROLE_RUN,                                                                                                       \
	 .value_name = "N",                                                                                                      \
	 .alias = "nproc_per_node",                                                                                              \
	 .help = "processes that train together on this machine, each with its share of the cores; 0 = one, or one for each "    \
		 "GPU. Under mpirun, srun or torchrun they say how many"},                                                       \
		{.name = "n_gpus",                                                                                               \
		 .type = OPTION_INTEGER,                                                                                         \
		 .field = offsetof(settings, member.n_gpus),                                                                     \
		 .fallback = "0",                                                                                                \
		 .range = "0..4096",                                                                                             \
		 .role = ROLE_RUN,                                                                                               \
		 .value_name = "N",                                                                                              \
		 .alias = "gpus num_gpus",                                                                                       \
		 .help = "GPUs to train on, a rank for each; 0 = with --device cuda all that are visible; a multiple of these "  \
			 "computes as so many, see replicas_per_gpu"},                                                           \
		{.name = "watchdog_seconds",                                                                                     \
		 .type = OPTION_NUMBER,                                                                                          \
		 .field = offsetof(settings, member.watchdog_seconds),                                                           \
		 .fallback = "60",                                                                                               \
		 .range = "0.5..",                                                                                               \
		 .role = ROLE_RUN,                                                                                               \
		 .value_name = "X",                                                                                              \
		 .help = "a rank that shows no life for so long, or is in one part of a step for longer than this and five "     \
			 "times its usual time, ends the run (status 6); the first step has ten times as long"},                 \
		{.name = "max_restarts",                                                                                         \
		 .type = OPTION_INTEGER,                                                                                         \
		 .field = offsetof(settings, member.max_restarts),                                                               \
		 .fallback = "0",                                                                                                \
		 .range = "0..1000",                                                                                             \
		 .role = ROLE_RUN,                                                                                               \
		 .value_name = "N",                                                                                              \
		 .help = "after a rank died or hung, start all again from the last checkpoint, so often at most"},               \
		{.name = "replicas_per_gpu",                                                                                     \
		 .type = OPTION_INTEGER,                                                                                         \
		 .field = offsetof(settings, member.replicas_per_gpu),                                                           \
		 .fallback = "1",                                                                                                \
		 .range = "1..1024",                                                                                             \
		 .role = ROLE_RUN,                                                                                               \
		 .value_name = "R",                                                                                              \
		 .alias = "replicas_per_rank",                                                                                   \
		 .help = "a rank computes the shares of so many devices, one after the other: the same step as on that many, "   \
			 "to rounding, in the memory of one"},                                                                   \
		{.name = "allreduce_post_accumulation",                                                                          \
		 .type = OPTION_FLAG,                                                                                            \
		 .field = offsetof(settings, member.allreduce_post_accumulation),                                                \
		 .fallback = "true",                                                                                             \
		 .role = ROLE_RUN,                                                                                               \
		 .help = "gradients are summed over ranks once an update, during the last micro-batch; false: after every "      \
			 "micro-batch"},                                                                                         \
		{.name = "allreduce_post_accumulation_fp16",                                                                     \
		 .type = OPTION_FLAG,                                                                                            \
		 .field = offsetof(settings, member.allreduce_post_accumulation_fp16),                                           \
		 .fallback = "false",                                                                                            \
		 .role = ROLE_RUN,                                                                                               \
		 .alias = "allreduce_fp16",                                                                                      \
		 .help = "gradients travel between ranks in fp16, half the bytes, and are added in fp32; with a dynamic loss "   \
			 "scale unless loss_scale is given"},                                                                    \
		{.name = "allreduce_post_accumulation_bf16",                                                                     \
		 .type = OPTION_FLAG,                                                                                            \
		 .field = offsetof(settings, member.allreduce_post_accumulation_bf16),                                           \
		 .fallback = "false",                                                                                            \
		 .role = ROLE_RUN,                                                                                               \
		 .alias = "allreduce_bf16",                                                                                      \
		 .help = "the same in bf16, which needs no loss scale"},                                                         \
	{                                                                                                                        \
		.name = "check_weights_steps", .type = OPTION_INTEGER, .field = offsetof(settings, member.check_weights_steps),  \
		.fallback = "100", .range = "0..", .role = ROLE_RUN, .value_name = "N",                                          \
		.help = "the weights of all ranks are compared every so many steps, and before each save: a rank that differs "  \
			"ends the run (status 6); 0 = before saves only"                                                         \
	}

/* What guards its numbers. */
#define NUMBER_OPTIONS(settings, member)                                                                                         \
	{.name = "skip_spikes",                                                                                                  \
	 .type = OPTION_NUMBER,                                                                                                  \
	 .field = offsetof(settings, member.skip_spikes),                                                                        \
	 .fallback = "0",                                                                                                        \
	 .range = "0..",                                                                                                         \
	 .role = ROLE_RUN,                                                                                                       \
	 .value_name = "Z",                                                                                                      \
	 .help = "leave out updates whose loss or gradient norm is Z standard deviations above the 128 before; 0 = none"},       \
		{.name = "loss_scale",                                                                                           \
		 .type = OPTION_NUMBER,                                                                                          \
		 .field = offsetof(settings, member.loss_scale),                                                                 \
		 .fallback = "1",                                                                                                \
		 .range = "0..",                                                                                                 \
		 .role = ROLE_RUN,                                                                                               \
		 .value_name = "X",                                                                                              \
		 .help = "the loss is multiplied by it before backward, for numbers of a small range; 0 = dynamic, which "       \
			 "--precision fp16 takes unless this is given"},                                                         \
	{                                                                                                                        \
		.name = "init_loss_scale", .type = OPTION_NUMBER, .field = offsetof(settings, member.init_loss_scale),           \
		.fallback = "65536", .range = "1..", .role = ROLE_RUN, .value_name = "X",                                        \
		.help = "first value of a dynamic loss scale"                                                                    \
	}

/* Learning rate, schedule and optimiser. `rate_text`: the rate where nothing is said. */
#define OPTIMIZER_OPTIONS(settings, member, phase, rate_text)                                                                    \
	{.name = "optimizer",                                                                                                    \
	 .type = OPTION_CHOICE,                                                                                                  \
	 .field = offsetof(settings, member.optimizer),                                                                          \
	 .fallback = "adamw",                                                                                                    \
	 .range = OPTIMIZER_NAMES,                                                                                               \
	 .role = ROLE_RESULT,                                                                                                    \
	 .value_name = "NAME",                                                                                                   \
	 .alias = "optimizer_type",                                                                                              \
	 .help = "adamw as PyTorch has it; google_adamw: without bias correction; lamb as NVIDIA's code runs it, for batches "   \
		 "of thousands; nvlamb: with the trust ratio for every tensor"},                                                 \
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
		 .help = "multiply learning_rate and min_learning_rate by train_batch_size over learning_rate_batch_size, or "   \
			 "by its root"},                                                                                         \
		{.name = "learning_rate_batch_size",                                                                             \
		 .section = phase,                                                                                               \
		 .type = OPTION_INTEGER,                                                                                         \
		 .field = offsetof(settings, member.learning_rate_batch_size),                                                   \
		 .range = "1..1048576",                                                                                          \
		 .role = ROLE_RESULT,                                                                                            \
		 .value_name = "N",                                                                                              \
		 .fallback_text = "train_batch_size_per_gpu if given, else 256",                                                 \
		 .help = "with scale_learning_rate: the batch that learning_rate is meant for"},                                 \
		{.name = "schedule",                                                                                             \
		 .section = phase,                                                                                               \
		 .type = OPTION_CHOICE,                                                                                          \
		 .field = offsetof(settings, member.schedule),                                                                   \
		 .range = SCHEDULE_NAMES,                                                                                        \
		 .role = ROLE_RESULT,                                                                                            \
		 .value_name = "NAME",                                                                                           \
		 .alias = "lr_scheduler_type lr_decay_style",                                                                    \
		 .fallback_text = "linear, with LAMB poly",                                                                      \
		 .help = "how the rate falls after the warm-up; google_linear and nvidia_poly to the letter of those programs, " \
			 "jumps included"},                                                                                      \
		{.name = "num_warmup_steps",                                                                                     \
		 .section = phase,                                                                                               \
		 .type = OPTION_INTEGER,                                                                                         \
		 .field = offsetof(settings, member.num_warmup_steps),                                                           \
		 .range = "0..",                                                                                                 \
		 .role = ROLE_RESULT,                                                                                            \
		 .value_name = "N",                                                                                              \
		 .alias = "warmup_steps",                                                                                        \
		 .fallback_text = "a tenth of the run, at most 10000",                                                           \
		 .help = "steps over which the rate rises from 0"},                                                              \
		{.name = "warmup_proportion",                                                                                    \
		 .section = phase,                                                                                               \
		 .type = OPTION_NUMBER,                                                                                          \
		 .field = offsetof(settings, member.warmup_proportion),                                                          \
		 .range = "0..1",                                                                                                \
		 .role = ROLE_RESULT,                                                                                            \
		 .value_name = "X",                                                                                              \
		 .alias = "warmup_ratio lr_warmup_fraction",                                                                     \
		 .fallback_text = "not used",                                                                                    \
		 .help = "warm-up as a share of the run, instead of steps"},                                                     \
		{.name = "poly_degree",                                                                                          \
		 .section = phase,                                                                                               \
		 .type = OPTION_NUMBER,                                                                                          \
		 .field = offsetof(settings, member.poly_degree),                                                                \
		 .range = "0.01..10",                                                                                            \
		 .role = ROLE_RESULT,                                                                                            \
		 .value_name = "X",                                                                                              \
		 .alias = "poly_power",                                                                                          \
		 .fallback_text = "1, with LAMB 0.5",                                                                            \
		 .help = "power of the poly schedules"},                                                                         \
		{.name = "min_learning_rate",                                                                                    \
		 .section = phase,                                                                                               \
		 .type = OPTION_NUMBER,                                                                                          \
		 .field = offsetof(settings, member.min_learning_rate),                                                          \
		 .range = "0..1",                                                                                                \
		 .role = ROLE_RESULT,                                                                                            \
		 .value_name = "X",                                                                                              \
		 .alias = "min_lr end_learning_rate lr_end",                                                                     \
		 .fallback_text = "0; slanted_triangular a 32nd of the peak",                                                    \
		 .help = "what the rate falls to"},                                                                              \
		{.name = "weight_decay",                                                                                         \
		 .type = OPTION_NUMBER,                                                                                          \
		 .field = offsetof(settings, member.weight_decay),                                                               \
		 .fallback = "0.01",                                                                                             \
		 .range = "0..1",                                                                                                \
		 .role = ROLE_RESULT,                                                                                            \
		 .value_name = "X",                                                                                              \
		 .help = "decoupled decay of all weights but biases and layer norms"},                                           \
		{.name = "exclude_from_weight_decay",                                                                            \
		 .type = OPTION_LIST,                                                                                            \
		 .field = offsetof(settings, member.exclude_from_weight_decay),                                                  \
		 .role = ROLE_RESULT,                                                                                            \
		 .value_name = "NAME...",                                                                                        \
		 .fallback_text = "bias LayerNorm",                                                                              \
		 .help = "weights whose names contain one of these do not decay; none: all decay"},                              \
		{.name = "max_grad_norm",                                                                                        \
		 .type = OPTION_NUMBER,                                                                                          \
		 .field = offsetof(settings, member.max_grad_norm),                                                              \
		 .fallback = "1.0",                                                                                              \
		 .range = "0..",                                                                                                 \
		 .role = ROLE_RESULT,                                                                                            \
		 .value_name = "X",                                                                                              \
		 .alias = "clip_norm clip_grad",                                                                                 \
		 .help = "clip the global gradient to this norm; 0 = do not clip"},                                              \
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
		 .help = "added to the root of the second moment"},                                                              \
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
		 .help = "LAMB: tensors whose update is scaled to their norm"},                                                  \
		{.name = "exclude_from_layer_adaptation",                                                                        \
		 .type = OPTION_LIST,                                                                                            \
		 .field = offsetof(settings, member.exclude_from_layer_adaptation),                                              \
		 .role = ROLE_RESULT,                                                                                            \
		 .value_name = "NAME...",                                                                                        \
		 .fallback_text = "none",                                                                                        \
		 .help = "LAMB: weights whose names contain one of these have no trust ratio"},                                  \
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
		 .help = "LAMB: divide gradients by their global norm where it is above max_grad_norm, or always, as NVLAMB's "  \
			 "formula has it"},                                                                                      \
	{                                                                                                                        \
		.name = "gradient_averaging", .type = OPTION_FLAG, .field = offsetof(settings, member.gradient_averaging),       \
		.role = ROLE_RESULT, .alias = "grad_averaging", .fallback_text = "true",                                         \
		.help = "LAMB: the first moment is a mean (beta1 m + (1 - beta1) g), not a sum (beta1 m + g)"                    \
	}

#endif
