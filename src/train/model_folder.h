/* Model folders as Hugging Face writes and reads them: config.json, model.safetensors and the tokenizer's files.
 * Every checkpoint of ours is one, with our own files beside it. */
#ifndef TRAIN_MODEL_FOLDER_H
#define TRAIN_MODEL_FOLDER_H

#include <stdint.h>
#include "base/error.h"
#include "base/file.h"
#include "model/model.h"
#include "text/tokenizer.h"
#include "text/vocab.h"

/* The configuration that `model` means: a size name, the path of a config.json or bert_config.json, or a folder that
 * holds one. With a size name, and with a file that leaves it out, vocab_size is 0. */
MUST_USE enum status model_folder_config(const char *model, struct model_config *out);

/* What model_folder_load may leave as it was. */
enum missing_weights {
	MISSING_NOTHING,
	MISSING_HEADS, /* the pooler and what follows it: an encoder from elsewhere gets fresh heads */
};

/* What became of each tensor. Zero-initialise; released by model_folder_report_release. */
struct model_folder_report {
	int64_t loaded;           /* parameters of the model found */
	struct name_list missing; /* parameters of the model not found: `slab` keeps what it held */
	struct name_list unused;  /* tensors of the file that the model has no place for (heads of other tasks) */
};
void model_folder_report_release(struct model_folder_report *report);

/* Reads weights of `path`, a folder with a model.safetensors or such a file, into `slab` (model->slab_count floats).
 * Names with or without "bert.", LayerNorm.gamma/.beta for .weight/.bias, and the tied output layer under its own name
 * are understood; the same weight stored twice must be equal. A missing weight that `missing` does not allow, an
 * encoder weight that the model has no place for, and a wrong shape are ERR_STATE that names the tensor. `report` may
 * be NULL. */
MUST_USE enum status model_folder_load(const char *path, const struct model *model, enum missing_weights missing,
				       float *slab, struct model_folder_report *report);

/* Files of a folder with their sizes and checksums, for its manifest. Zero-initialise; free `files`. */
struct folder_file {
	char name[64];
	int64_t bytes;
	uint32_t crc32c;
};
struct folder_files {
	struct folder_file *files;
	int64_t count, capacity;
};
MUST_USE enum status folder_files_add(struct folder_files *list, const char *name, int64_t bytes, uint32_t crc32c);
/* The same for a file that lies in `folder`, which is read to the end. */
MUST_USE enum status folder_files_measure(struct folder_files *list, const char *folder, const char *name);

/* Writes config.json, model.safetensors (F32) and the tokenizer's files into `folder`, which exists, and appends
 * them to `files`. `slab` is the host's copy of the masters; `max_length` the longest sequence the tokenizer should
 * make. Each file appears whole or not at all; the folder as a whole is the caller's to rename. */
MUST_USE enum status model_folder_save(const char *folder, const struct model *model, const float *slab,
				       const struct vocab *vocab, const struct tokenizer_settings *settings,
				       int64_t max_length, struct folder_files *files);

#endif
