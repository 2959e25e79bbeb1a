/* Model folders as Hugging Face writes and reads them: config.json, model.safetensors and the tokenizer's files.
 * Every checkpoint of ours is one, with our own files beside it. */
#ifndef WEIGHTS_MODEL_FOLDER_H
#define WEIGHTS_MODEL_FOLDER_H

#include <stdint.h>
#include "base/error.h"
#include "base/file.h"
#include "model/model.h"
#include "text/tokenizer.h"
#include "text/vocab.h"
#include "weights/folder_file.h"
#include "weights/model_weights.h"

/* The configuration that `model` means: a size name, the path of a config.json or bert_config.json, or what
 * model_source_find understands and has one beside it. "gelu" in a bert_config.json is the tanh form, as in Google's
 * code, but the erf form beside weights that are not TensorFlow's, as in Hugging Face's and NVIDIA's. With a size name, and with
 * a file that leaves it out, vocab_size is 0. */
MUST_USE enum status model_folder_config(const char *model, struct model_config *out);

/* What a person means by a model: a folder, a file of weights, the prefix of a TensorFlow checkpoint, or the folder of a
 * run, which stands for its finished model or newest checkpoint. What is not there is "". */
struct model_source {
	char weights[PATH_BYTES]; /* for weights_file_open */
	char config[PATH_BYTES];  /* config.json or bert_config.json beside the weights */
	char vocab[PATH_BYTES];   /* vocab.txt or tokenizer.json beside them */
};
/* No weights at all is ERR_USAGE. */
MUST_USE enum status model_source_find(const char *path, struct model_source *out);

/* Reads weights that fit the model as they are; see model_weights.h. */
MUST_USE enum status model_folder_load(const char *path, const struct model *model, enum missing_weights missing, float *slab,
				       struct model_folder_report *report);

/* Writes config.json, model.safetensors (F32) and the tokenizer's files into `folder`, which exists, and appends
 * them to `files`. `slab` is the host's copy of the masters; `max_length` the longest sequence the tokenizer should
 * make. Each file appears whole or not at all; the folder as a whole is the caller's to rename. */
MUST_USE enum status model_folder_save(const char *folder, const struct model *model, const float *slab,
				       const struct vocab *vocab, const struct tokenizer_settings *settings, int64_t max_length,
				       struct folder_files *files);

#endif
