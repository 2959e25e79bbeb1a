/* The option rows that all training commands share, and checks of options that exclude each other. */
#include "run/training_options.h"

/* clang-format off */
#define ROW(member, role, value) OPTION_ROW(struct folder_options, member, role, value)
const struct option folder_rows[] = {
	{ROW(out, ROLE_PLACE, "FOLDER"), .letter = 'o', .alias = "output_dir",
	 .help = "run folder for checkpoints, metrics, and the finished model; run the same command again to resume"},
	{ROW(fresh, ROLE_PLACE, NULL), .fallback = "false",
	 .help = "remove what an earlier run left in the folder and start over"},
	{ROW(resume_from, ROLE_ENTRY, "PATH"),
	 .help = "resume from this checkpoint: an older one in the run folder (newer ones are set aside), or one of another run"},
	{ROW(resume_step, ROLE_PLACE, "N"), .range = "-1..", .fallback = "-1", .rare = true,
	 .help = "resume from checkpoint-N in the run folder; -1 = the newest"},
	{ROW(plan, ROLE_PLACE, NULL), .fallback = "false", .alias = "dry_run",
	 .help = "print settings, memory, and time, then exit"},
	{0},
};
#undef ROW

#define ROW(member, role, value) OPTION_ROW(struct stopping_options, member, role, value)
const struct option stopping_rows[] = {
	{ROW(stop_at_step, ROLE_PLACE, "N"), .range = "0..", .fallback = "0", .rare = true,
	 .help = "save and stop at this step without changing the schedule; 0 = at the end"},
	{ROW(max_time, ROLE_PLACE, "TIME"), .fallback_text = "no limit",
	 .help = "save and stop (status 75) before this much time has passed: seconds, 1h30m, or Slurm's form 1-12:00:00"},
	{ROW(steps_this_run, ROLE_PLACE, "N"), .range = "-1..", .fallback = "0", .rare = true,
	 .help = "save and stop after this many steps of this invocation without changing the schedule; 0 or -1 = at the end"},
	{0},
};
#undef ROW

#define ROW(member, role, value) OPTION_ROW(struct length_options, member, role, value)
const struct option length_rows[] = {
	{ROW(num_train_steps, ROLE_RESULT, "N"), .section = "phase", .range = "1..", .alias = "max_steps train_iters",
	 .automatic = "-1", .follows = "num_train_epochs time", .fallback_text = "from num_train_epochs",
	 .help = "number of optimizer updates"},
	{ROW(num_train_epochs, ROLE_RESULT, "X"), .section = "phase", .range = "0.001..",
	 .fallback_text = "from the amount of text",
	 .help = "number of passes over the training data, instead of steps"},
	{ROW(early_stopping_patience, ROLE_RESULT, "N"), .section = "phase", .range = "0..", .fallback = "0",
	 .alias = "stop_when_eval_stalls",
	 .help = "stop after this many evaluations in a row without an improvement; 0 = never"},
	{ROW(early_stopping_threshold, ROLE_RESULT, "X"), .section = "phase", .range = "0..", .fallback = "0", .rare = true,
	 .help = "smallest change that counts as an improvement"},
	{ROW(num_train_tokens, ROLE_RESULT, "N"), .section = "phase", .range = "1..", .fallback_text = "not used", .rare = true,
	 .help = "stop at the step that reaches this many training tokens"},
	{0},
};
#undef ROW

#define ROW(member, role, value) OPTION_ROW(struct saving_options, member, role, value)
const struct option saving_rows[] = {
	{ROW(save_checkpoints_steps, ROLE_RUN, "N"), .section = "phase", .range = "0..",
	 .alias = "save_steps num_steps_per_checkpoint save_interval", .fallback_text = "a twentieth of the run, at most 5000",
	 .help = "steps between checkpoints; 0 = only at the end"},
	{ROW(keep_checkpoints, ROLE_RUN, "N"), .range = "0..", .fallback = "2", .alias = "save_total_limit keep_checkpoint_max",
	 .help = "number of newest checkpoints to keep, in addition to the best one; 0 = all"},
	{ROW(eval_steps, ROLE_RUN, "N"), .section = "phase", .range = "0..", .alias = "eval_interval",
	 .fallback_text = "a twentieth of the run, at most 5000",
	 .help = "steps between evaluations; 0 = only at the end. With --time, they take about a tenth of it at most"},
	{ROW(log_steps, ROLE_RUN, "N"), .section = "phase", .range = "1..", .fallback = "10",
	 .alias = "logging_steps log_freq log_interval display_loss_steps", .rare = true,
	 .help = "steps between log records in metrics.jsonl"},
	{ROW(save_best, ROLE_RUN, NULL), .fallback = "true",
	 .help = "also keep the checkpoint of the best evaluation, as best in the run folder; final is the model of the last "
	 "step in any case (in `bertc finetune` the option makes the best one final)"},
	{ROW(best_by, ROLE_RUN, "NAME"), .fallback_text = "the first", .rare = true,
	 .help = "evaluation set whose loss selects the best checkpoint and triggers early stopping"},
	{0},
};
#undef ROW

#define ROW(member, role, value) OPTION_ROW(struct ranks_options, member, role, value)
const struct option ranks_rows[] = {
	{ROW(ranks, ROLE_RUN, "N"), .range = "0..4096", .fallback = "0", .alias = "nproc_per_node",
	 .help = "processes that train together on this machine, each with its share of the cores; 0 = one, or one per GPU. "
	 "Under mpirun, srun, or torchrun the launcher decides"},
	{ROW(n_gpus, ROLE_RUN, "N"), .range = "0..4096", .fallback = "0", .alias = "gpus num_gpus",
	 .help = "number of GPUs to train on, one rank per GPU; 0 = all visible ones with --device cuda; a multiple of "
	 "the visible GPUs trains as on that many, see replicas_per_gpu"},
	{ROW(watchdog_seconds, ROLE_RUN, "X"), .range = "0.5..", .fallback = "60", .rare = true,
	 .help = "end the run (status 6) if a rank gives no sign of life for this long, or spends longer than this and "
	 "more than five times its usual time in one part of a step; the first time, a part may take ten times as long"},
	{ROW(max_restarts, ROLE_RUN, "N"), .range = "0..1000", .fallback = "0", .rare = true,
	 .help = "if a rank dies or hangs, restart all ranks from the last checkpoint, at most N times"},
	{ROW(replicas_per_gpu, ROLE_RUN, "R"), .range = "1..1024", .fallback = "1", .alias = "replicas_per_rank", .rare = true,
	 .help = "have each rank compute the shares of R devices one after another: up to rounding, the same step as on R "
	 "devices, in the memory of one"},
	{ROW(allreduce_post_accumulation, ROLE_RUN, NULL), .fallback = "true", .rare = true,
	 .help = "sum gradients over ranks once per update, during the last micro-batch; false: after every micro-batch"},
	{ROW(allreduce_post_accumulation_fp16, ROLE_RUN, NULL), .fallback = "false", .alias = "allreduce_fp16", .rare = true,
	 .help = "send gradients between ranks in fp16 (half the bytes) and add them in fp32; uses a dynamic loss scale unless "
	 "loss_scale is given"},
	{ROW(allreduce_post_accumulation_bf16, ROLE_RUN, NULL), .fallback = "false", .alias = "allreduce_bf16", .rare = true,
	 .help = "send gradients in bf16, which needs no loss scale"},
	{ROW(check_weights_steps, ROLE_RUN, "N"), .range = "0..", .fallback = "100", .rare = true,
	 .help = "compare the weights of all ranks every N steps and before each save; a difference ends the run (status 6); 0 = "
	 "only before saves"},
	{0},
};
#undef ROW

#define ROW(member, role, value) OPTION_ROW(struct safeguard_options, member, role, value)
const struct option safeguard_rows[] = {
	{ROW(skip_spikes, ROLE_RUN, "Z"), .range = "0..", .fallback = "0", .rare = true,
	 .help = "skip updates whose loss or gradient norm is Z standard deviations above the previous 128; 0 = skip none"},
	{ROW(loss_scale, ROLE_RUN, "X"), .range = "0..", .fallback = "1", .rare = true,
	 .help = "multiply the loss by this before the backward pass; 0 = dynamic, the default with --precision fp16"},
	{ROW(init_loss_scale, ROLE_RUN, "X"), .range = "1..", .fallback = "65536", .alias = "initial_loss_scale", .rare = true,
	 .help = "initial value of a dynamic loss scale"},
	{0},
};
#undef ROW

#define ROW(member, role, value) OPTION_ROW(struct training_options, member, role, value)
const struct option training_rows[] = {
	{ROW(seed, ROLE_RESULT, "N"), .range = "0..", .fallback = "12345", .alias = "random_seed",
	 .help = "seed of initial weights, sample order, masks, and dropout"},
	{ROW(max_seq_length, ROLE_RESULT, "N"), .section = "phase", .range = "8..65536", .alias = "seq_length",
	 .help = "maximum number of tokens per instance"},
	{ROW(hidden_dropout_prob, ROLE_RESULT, "P"), .range = "0..0.9", .fallback_text = "the model's", .rare = true,
	 .help = "dropout after the embeddings, after both sub-layers, and before a task's head (there only if config.json has "
	 "no classifier_dropout)"},
	{ROW(attention_probs_dropout_prob, ROLE_RESULT, "P"), .range = "0..0.9", .fallback_text = "the model's", .rare = true,
	 .help = "dropout on the attention probabilities"},
	{ROW(recipe, ROLE_RESULT, "NAME"), .range = "original|fast", .fallback = "original",
	 .help = "initial settings: those with which BERT was published (original), or those since found to give a better "
	 "model in the same time (fast, which --time chooses); options that are given take precedence"},
	{0},
};
#undef ROW

/* clang-format on */

/* Pairs of options that are two ways to say the same thing. */
static const struct {
	const char *one, *other;
} alternatives[] = {
	{"num_train_steps", "num_train_epochs"},          {"num_train_epochs", "num_train_tokens"},
	{"train_batch_size", "train_batch_size_per_gpu"}, {"train_batch_size_per_gpu", "per_device_train_batch_size"},
	{"num_warmup_steps", "warmup_proportion"},
};
#define ALTERNATIVES (sizeof alternatives / sizeof *alternatives)

/* Was it set by the user or by a recipe? What a record says was settled when the run started. Some commands lack some of these
 * options. */
static bool is_said(const struct options *options, const char *name)
{
	if (options_find(options, name) < 0)
		return false;
	enum option_origin origin = options_origin(options, name);
	return origin == ORIGIN_RECIPE || origin >= ORIGIN_FILE;
}

static enum status check_alternative(const struct options *options, const char *one, const char *other)
{
	bool both = is_said(options, one) && is_said(options, other);
	if (both && options_origin(options, one) == options_origin(options, other))
		return error_set(ERR_USAGE, "give either --%s or --%s, not both", one, other);
	return OK;
}

enum status training_check(struct options *options)
{
	TRY(options_require(options, "out", "give the run folder: --out FOLDER"));
	for (size_t i = 0; i < ALTERNATIVES; i++)
		TRY(options_blame(options, check_alternative(options, alternatives[i].one, alternatives[i].other)));
	return OK;
}

enum status training_settle(struct options *phase)
{
	TRY(batch_settle(phase));
	for (size_t i = 0; i < ALTERNATIVES; i++) {
		const char *one = alternatives[i].one, *other = alternatives[i].other;
		TRY(check_alternative(phase, one, other));
		if (is_said(phase, one) && is_said(phase, other))
			options_forget(phase, options_origin(phase, one) < options_origin(phase, other) ? one : other);
	}
	return OK;
}
