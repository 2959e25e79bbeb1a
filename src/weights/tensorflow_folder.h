/* Writes a model in the format of Google's code: bert_model.ckpt, bert_config.json, and vocab.txt. */
#ifndef WEIGHTS_TENSORFLOW_FOLDER_H
#define WEIGHTS_TENSORFLOW_FOLDER_H

#include <stdint.h>
#include "base/error.h"
#include "weights/model_folder.h"

/* Writes these files into the existing `folder`: the checkpoint, with Google's names and `step` as its global_step; the file
 * `checkpoint`, which refers to it; the configuration; and the vocabulary. Returns ERR_USAGE if Google's code has no name for a
 * weight. */
MUST_USE enum status tensorflow_folder_save(const char *folder, const struct model_folder_content *content, int64_t step);

#endif
