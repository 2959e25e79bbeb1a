/* Two models, compared. */
#ifndef CMD_COMPARE_MODELS_H
#define CMD_COMPARE_MODELS_H

#include "base/error.h"
#include "cmd/compare.h"

/* Tensors and settings of two model folders, checkpoints or .safetensors files. *out_same is what the
 * exit status says. */
MUST_USE enum status compare_models(const struct compare_settings *settings, const char *a, const char *b, bool *out_same);

#endif
