/* The options of `bertc plan`. */
#ifndef CMD_PLAN_PLAN_OPTIONS_H
#define CMD_PLAN_PLAN_OPTIONS_H

#include "base/option.h"
#include "cmd/command.h"
#include "model/model_size_options.h"
#include "data/pretraining/instance_options.h"
#include "run/device_kinds.h"
#include "run/training_options.h"

struct plan_settings {
	/* as in pretrain */
	struct training_options training; /* of which only a few are options */
	struct model_sizes sizes;
	const char *model;
	enum device_precision precision;
	int64_t vocab_size, threads, eval_instances;
	struct instance_options instances; /* of which two are options */
	/* only in plan */
	int64_t num_train_samples, gpus, ranks, gpus_per_node, cards, device_rate_batch;
	double mean_seq_length, device_rate, device_memory, bucket_size;
	const char *device_kind, *local_link, *link, *within;
	bool json;
};
extern const struct option plan_options[];
extern const struct option_foreign plan_removed[]; /* options of earlier versions */
extern const struct command_text plan_text;

#endif
