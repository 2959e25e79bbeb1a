/* The model card of a finished run. */
#ifndef RUN_CARD_H
#define RUN_CARD_H

#include <stdint.h>
#include "run/run.h"
#include "weights/model_card.h"

/* Writes final/README.md, which is then listed in the manifest of final/: the run's settings and the given metrics, or those of
 * the run's last evaluation if `metrics` is NULL. `step` is the model's. For the first rank only. */
MUST_USE enum status run_write_card(const struct run *run, int64_t step, const struct card_metric *metrics, int count);

#endif
