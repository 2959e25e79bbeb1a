/* `bertc evaluate --predictions`: scoring answers from a file. */
#ifndef CMD_EVALUATE_PREDICTIONS_H
#define CMD_EVALUATE_PREDICTIONS_H

#include <stdbool.h>
#include "base/error.h"
#include "base/option.h"
#include "tasks/squad.h"

extern const struct option prediction_rows[]; /* of a struct squad_prediction_settings */

/* Reads the predictions and `test`, compares them, and prints the measures. ERR_USAGE: options that cannot be combined. */
MUST_USE enum status evaluate_predictions(const struct squad_prediction_settings *settings, const struct squad_settings *squad,
					  const struct option_list *test, bool json);

#endif
