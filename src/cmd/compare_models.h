/* Comparing two models. */
#ifndef CMD_COMPARE_MODELS_H
#define CMD_COMPARE_MODELS_H

#include "base/error.h"
#include "cmd/compare.h"

/* Compares the tensors and settings of two model folders, checkpoints, or weights files. *out_same becomes the exit code. */
MUST_USE enum status compare_models(const struct compare_settings *settings, const char *a, const char *b, bool *out_same);

#endif
