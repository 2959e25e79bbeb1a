/* The work of training a model: the floating-point operations of its matrix products and attention, forward and backward, for
 * real tokens only. The formula is in docs/developers/math.md, and in the code only here. */
#ifndef MODEL_FLOPS_H
#define MODEL_FLOPS_H

#include "model/model.h"

/* The row counts of a batch that determine its work. They need not be integers: forecasts compute with averages. */
struct model_work {
	double tokens, sequences;
	double predictions; /* rows that the heads' labels refer to */
	double squares;     /* sum of the squared lengths of the sequences */
};

struct model_work model_work_of(const struct batch *batch);
/* `sequences` of `length` tokens each, with the usual share of predictions. */
struct model_work model_work_of_full(double sequences, double length);

double model_flops_of(const struct model_config *config, const struct model_heads *heads, const struct model_work *work);
/* Pairs of tokens that see each other, on average over the layers. */
double model_pairs_seen(const struct model_config *config, const struct model_work *work);
/* The heads' part of model_flops_of(). */
double model_head_flops(const struct model_config *config, const struct model_heads *heads, const struct model_work *work);

/* The FLOPs of a forward pass alone, which are a third of the total. */
double model_forward_flops(const struct model_config *config, const struct model_heads *heads, const struct model_work *work);

/* model_flops_of() without the backward passes that frozen layers do not have; the second for a batch. */
double model_work_flops(const struct model *model, const struct model_work *work);
double model_training_flops(const struct model *model, const struct batch *batch);

/* An instance of l tokens takes l * (this + l) units of work, in units of attention's square term. Steps are divided into
 * equal parts by this measure. If it changes, resumed runs are divided differently than before. */
int64_t model_linear_work(const struct model_config *config, const struct model_heads *heads);

#endif
