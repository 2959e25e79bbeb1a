/* The weights of a model, whatever program wrote them: safetensors or PyTorch files, each possibly split into several files with
 * an index, or a TensorFlow checkpoint. */
#ifndef FORMATS_WEIGHTS_FILE_H
#define FORMATS_WEIGHTS_FILE_H

#include <stdint.h>
#include "base/error.h"
#include "base/file.h"
#include "formats/stored_tensor.h"

enum weights_format { WEIGHTS_SAFETENSORS, WEIGHTS_TORCH, WEIGHTS_TENSORFLOW };

struct weights_file {
	enum weights_format format;
	struct stored_tensor *tensors; /* sorted by name */
	int64_t count, capacity;
	struct name_list notes;      /* "key=value" for anything else in the files */
	struct weights_part **parts; /* the files */
	int64_t part_count, part_capacity;
};

/* Finds the file that `path` refers to: the file itself; for a folder, its weights under their usual names (model.safetensors,
 * pytorch_model.bin, their .index.json, bert_model.ckpt.index, the one named by a TensorFlow `checkpoint` file, or the only file
 * of such a kind); for the prefix or a part of a TensorFlow checkpoint, its .index. If nothing is found, the result is
 * ERR_USAGE. */
MUST_USE enum status weights_file_find(const char *path, char out[PATH_BYTES]);
/* ERR_USAGE if `path` is or holds another program's form of a model (an ONNX graph, say), naming it and what to do. */
MUST_USE enum status weights_file_other(const char *path);
/* Opens the file that weights_file_find() finds. Files that violate their format are ERR_DATA, missing parts ERR_USAGE; on
 * failure there is nothing to close. Call stored_tensor_verify() on a tensor before using its values. */
MUST_USE enum status weights_file_open(struct weights_file *out, const char *path);
void weights_file_close(struct weights_file *file);
const struct stored_tensor *weights_file_tensor(const struct weights_file *file, const char *name); /* or NULL */
/* The mapped file if all tensors are in one safetensors file (then tensor offsets refer to it); otherwise NULL. */
const struct file_map *weights_file_map(const struct weights_file *file);
/* "safetensors", "PyTorch", "TensorFlow checkpoint" */
const char *weights_format_name(enum weights_format format);

#endif
