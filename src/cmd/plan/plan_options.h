/* The options of `bertc plan`. */
#ifndef CMD_PLAN_PLAN_OPTIONS_H
#define CMD_PLAN_PLAN_OPTIONS_H

#include "base/option.h"
#include "cmd/command.h"
#include "model/model_size_options.h"
#include "cmd/recipes.h"
#include "data/pretraining/instance_options.h"
#include "run/device_kinds.h"
#include "run/training_options.h"

struct plan_settings {
	/* as in pretrain */
	struct training_options training; /* of which only a few are options */
	struct model_sizes sizes;
	enum recipe_name recipe;
	const char *model;
	enum device_precision precision;
	int64_t vocab_size, threads;
	int64_t train_batch_size, gradient_accumulation_steps, micro_batch_tokens;
	int64_t num_train_steps, num_train_tokens, eval_instances;
	struct instance_options instances; /* of which two are options */
	int64_t batch_size_per_gpu, replicas;
	bool post_accumulation, gradients_fp16, gradients_bf16;
	/* only in plan */
	int64_t num_train_samples, gpus, ranks, per_host, cards, device_rate_batch;
	double mean_seq_length, device_rate, device_memory, bucket_size;
	const char *device_kind, *local_link, *link, *within;
	bool json;
};
extern const struct option plan_options[];
extern const struct option_foreign plan_removed[]; /* options of earlier versions */
extern const struct command_text plan_text;

#endif
