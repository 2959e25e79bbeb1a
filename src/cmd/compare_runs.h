/* Two runs, compared. */
#ifndef CMD_COMPARE_RUNS_H
#define CMD_COMPARE_RUNS_H

#include "base/error.h"
#include "cmd/compare.h"

/* Curves and settings of two run folders or metrics.jsonl files. */
MUST_USE enum status compare_runs(const struct compare_settings *settings, const char *a, const char *b, bool *out_same);

#endif
