/* The options of `bertc pretrain`. */
#ifndef RUN_PRETRAINING_OPTIONS_H
#define RUN_PRETRAINING_OPTIONS_H

#include "data/pretraining/instance_options.h"
#include "model/model_size_options.h"
#include "run/initial_weights.h"
#include "run/phases.h"
#include "run/run_data.h"
#include "run/training_options.h"

/* The settings of the run's options and of those of each phase; cmd/pretrain/pretrain_options.c has the table. */
struct pretraining_options {
	struct training_options training; /* first, as run/training_options.h asks */
	struct text_options text;
	struct model_sizes sizes; /* of a new model: override those of the model named */
	struct initial_options initial;
	int64_t eval_instances; /* instances of each evaluation set that are scored */
	const char *time;       /* in which the best model is to be made; NULL: not used */
	bool end_with_pairs;    /* half of the run is a second phase, in which the model learns to compare texts */
	struct second_phase_options second;
	struct instance_options instances;
	bool shuffle;
};

#endif
