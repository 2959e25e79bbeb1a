/* The weights of a model, whatever program wrote them: safetensors, PyTorch's files, either of them in several files with
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
	struct name_list notes;      /* "key=value" of what else the files hold */
	struct weights_part **parts; /* the files */
	int64_t part_count, part_capacity;
};

/* The file that `path` means: itself; for a folder its weights under their usual names (model.safetensors,
 * pytorch_model.bin, their .index.json, bert_model.ckpt.index, what a `checkpoint` file of TensorFlow names, or the only
 * file of such a kind); for the prefix or a part of a TensorFlow checkpoint its .index. Nothing found is ERR_USAGE. */
MUST_USE enum status weights_file_find(const char *path, char out[PATH_BYTES]);
/* Opens what weights_file_find says. Files that break their format are ERR_DATA, missing parts ERR_USAGE; on failure
 * there is nothing to close. Call stored_tensor_verify on a tensor before its values are used. */
MUST_USE enum status weights_file_open(struct weights_file *out, const char *path);
void weights_file_close(struct weights_file *file);
const struct stored_tensor *weights_file_tensor(const struct weights_file *file, const char *name); /* or NULL */
/* The mapped bytes, where all tensors lie in one safetensors file (offsets of tensors are places in it); else NULL. */
const struct file_map *weights_file_map(const struct weights_file *file);
/* "safetensors", "PyTorch", "TensorFlow checkpoint" */
const char *weights_format_name(enum weights_format format);

#endif
