/* Safeguards for the numbers of training: spikes and the loss scale. */
#ifndef TRAIN_NUMBER_OPTIONS_H
#define TRAIN_NUMBER_OPTIONS_H

#include "base/option.h"

struct number_options {
	double skip_spikes;     /* skips updates this many standard deviations above the window; 0 = none */
	double loss_scale;      /* factor of the loss before backward; 0 = dynamic */
	double init_loss_scale; /* of a dynamic one */
};
extern const struct option number_rows[];

#endif
