/* Writes what a model with low-rank matrices has learned, as an adapter that peft reads. */
#ifndef WEIGHTS_ADAPTER_SAVE_H
#define WEIGHTS_ADAPTER_SAVE_H

#include "base/error.h"
#include "model/model.h"
#include "weights/folder_file.h"
#include "weights/model_folder.h"

/* Writes adapter_config.json and adapter_model.safetensors into `folder` and appends them to `files`. content->base names its
 * base. */
MUST_USE enum status adapter_save(const char *folder, const struct model_folder_content *content, struct folder_files *files);
/* The matrices of each layer to which a list of module names refers, as in peft: "query,value" or "output.dense", the last parts
 * of names in transformers' class; "all-linear"; NULL: peft's usual ones, query and value. A name that no matrix has is
 * ERR_USAGE, with a list of the valid ones. `config` needs its vocab_size. */
MUST_USE enum status adapter_targets(const char *list, const struct model_config *config, uint32_t *out);

#endif
