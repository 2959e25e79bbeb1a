/* The learning rate and its schedule: options of a phase. */
#ifndef TRAIN_RATE_OPTIONS_H
#define TRAIN_RATE_OPTIONS_H

#include "base/option.h"
#include "train/schedule.h"

/* The words of --scale_learning_rate, in their order: how the rate grows with the batch size. */
enum rate_scale { SCALE_NONE, SCALE_LINEAR, SCALE_SQRT };

struct rate_options {
	double learning_rate;
	enum rate_scale scale_learning_rate;
	int64_t learning_rate_batch_size; /* that learning_rate is meant for */
	enum schedule_shape schedule;
	int64_t num_warmup_steps;
	double warmup_proportion;
	int64_t min_warmup_steps; /* lower bound on a number of steps chosen by the run; at most a third of all steps */
	int64_t num_decay_steps;  /* of the schedule wsd */
	double poly_degree, min_learning_rate /* 0: the schedule's own */;
	double average_weights; /* the last share of the steps over which weights are averaged; 0 = none */
};
extern const struct option rate_rows[];

#endif
