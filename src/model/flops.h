/* The work of training a model, in floating-point operations of its matrix products and attention, forward and backward, for
 * real tokens only. The formula stands in docs/math.md, and in code only here. */
#ifndef MODEL_FLOPS_H
#define MODEL_FLOPS_H

#include "model/model.h"

/* The rows of a batch, as far as they decide its work. Not always whole numbers: forecasts compute with averages. */
struct model_work {
	double tokens, sequences;
	double predictions; /* rows that the labels of heads name */
	double squares;     /* sum of the squares of the sequences' lengths */
};

struct model_work model_work_of(const struct batch *batch);
/* `sequences` of `length` tokens each, with the usual share of predictions. */
struct model_work model_work_of_full(double sequences, double length);

double model_flops_of(const struct model_config *config, const struct model_heads *heads, const struct model_work *work);
/* The part of it that the heads take. */
double model_head_flops(const struct model_config *config, const struct model_heads *heads, const struct model_work *work);

/* Of a forward pass alone, which is a third of it. */
double model_forward_flops(const struct model_config *config, const struct model_heads *heads, const struct model_work *work);

/* model_flops_of() a batch. */
double model_training_flops(const struct model *model, const struct batch *batch);

/* An instance of l tokens is l * (this + l) of work, in units of the attention's square: by this, steps are cut into even
 * parts. If it changes, resumed runs are cut differently than when they began. */
int64_t model_linear_work(const struct model_config *config, const struct model_heads *heads);

#endif
