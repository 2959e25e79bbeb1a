/* A model as Google's code reads it: bert_model.ckpt, bert_config.json, vocab.txt. */
#ifndef WEIGHTS_TENSORFLOW_FOLDER_H
#define WEIGHTS_TENSORFLOW_FOLDER_H

#include <stdint.h>
#include "base/error.h"
#include "weights/model_folder.h"

/* Writes the files into `folder`, which exists: the checkpoint with Google's names and `step` as its global_step, the file
 * `checkpoint` that names it, configuration and vocabulary. A weight for which Google's code has no name is ERR_USAGE. */
MUST_USE enum status tensorflow_folder_save(const char *folder, const struct model_folder_content *content, int64_t step);

#endif
