/* What `bertc pretrain` can be told: its settings, one member an option, and the table that declares them. */
#ifndef CMD_PRETRAIN_OPTIONS_H
#define CMD_PRETRAIN_OPTIONS_H

#include "base/option.h"
#include "cmd/command.h"
#include "cmd/device_options.h"

struct pretrain_settings {
	/* text */
	struct option_list corpus, data, input_file, eval_corpus, eval_data, eval_file;
	const char *best_by, *vocab_file;
	struct input_settings input;
	int64_t vocab_size, min_frequency;
	bool cased;
	double held_out_fraction;
	/* model */
	const char *model, *init_checkpoint, *init_vocab, *init_positions;
	bool remap_vocab;
	double hidden_dropout_prob, attention_probs_dropout_prob;
	/* run */
	const char *out;
	const char *resume_from, *max_time;
	bool fresh, plan, save_best;
	int64_t num_train_steps, num_train_tokens, early_stopping_patience, stop_at_step, steps_this_run;
	int64_t train_batch_size, train_batch_size_per_gpu, gradient_accumulation_steps, micro_batch_tokens;
	double num_train_epochs, early_stopping_threshold;
	int64_t save_checkpoints_steps, keep_checkpoints, eval_steps, eval_instances, log_steps, seed;
	/* what ranks do together */
	int64_t replicas_per_gpu, check_weights_steps;
	bool allreduce_post_accumulation, allreduce_post_accumulation_fp16, allreduce_post_accumulation_bf16;
	/* phases */
	bool phase2, resume_phase2;
	int64_t phase1_end_step, resume_step;
	/* numbers */
	double skip_spikes, loss_scale, init_loss_scale;
	/* ranks */
	int64_t ranks, n_gpus, max_restarts;
	double watchdog_seconds;
	/* instances */
	int64_t max_seq_length, min_seq_length, max_predictions_per_seq, max_ngram;
	double masked_lm_prob, short_seq_prob;
	bool whole_word_mask, shuffle;
	const char *next_sentence;
	/* optimiser */
	const char *optimizer, *schedule, *trust_ratio, *gradient_normalization;
	const char *scale_learning_rate;
	int64_t learning_rate_batch_size;
	double learning_rate, min_learning_rate, weight_decay, max_grad_norm, adam_beta1, adam_beta2, adam_epsilon;
	double warmup_proportion, poly_degree, max_trust_ratio;
	int64_t num_warmup_steps;
	bool bias_correction, gradient_averaging;
	struct option_list exclude_from_weight_decay, exclude_from_layer_adaptation;
	struct device_settings device;
};

extern const struct option pretrain_options[];
extern const struct command_text pretrain_text;
extern const struct option_foreign pretrain_foreign[]; /* pretrain_foreign.c */

#endif
