/* Comparing two runs. */
#ifndef CMD_COMPARE_RUNS_H
#define CMD_COMPARE_RUNS_H

#include "base/error.h"
#include "cmd/compare.h"

/* Compares the curves and settings of two run folders or metrics.jsonl files. *out_same becomes the exit code. */
MUST_USE enum status compare_runs(const struct compare_settings *settings, const char *a, const char *b, bool *out_same);

#endif
