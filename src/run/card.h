/* The model card of a finished run. */
#ifndef RUN_CARD_H
#define RUN_CARD_H

#include <stdint.h>
#include "run/run.h"
#include "weights/model_card.h"

/* Writes final/README.md, which the manifest of final/ then lists: the settings of the run, and the metrics given, or with NULL
 * those of its last evaluation. `step` is the model's. For the first rank. */
MUST_USE enum status run_write_card(const struct run *run, int64_t step, const struct card_metric *metrics, int count);

#endif
