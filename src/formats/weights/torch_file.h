/* PyTorch's files of weights (.bin, .pt, .pth): a pickle of tensors and the numbers of which they are views, in a zip archive or,
 * before PyTorch 1.6, one after the other. The pickle is read as data (pickle.h). */
#ifndef FORMATS_WEIGHTS_TORCH_FILE_H
#define FORMATS_WEIGHTS_TORCH_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "base/file.h"
#include "formats/weights/pickle.h"
#include "formats/stored_tensor.h"
#include "formats/zip.h"

struct torch_file {
	struct stored_tensor *tensors; /* those of the state dict, in its order */
	int64_t count, capacity;
	struct name_list notes; /* "key=value" for numbers and texts beside them, "key=a list" and the like for the rest */
	const char *path;
	struct file_map map;
	struct zip zip;
	struct pickle pickle;
	struct torch_storage *storages; /* sorted by key */
	int64_t storage_count;
};

/* Whether the bytes begin like a file of torch.save. */
bool torch_file_is(const unsigned char *bytes, size_t size);
/* Finds the state dict: the file's dict itself, or the one under "model", "state_dict", or "model_state_dict" in it. Violations
 * of the format are ERR_DATA with file and offset; on failure there is nothing to close. `path` is borrowed. */
MUST_USE enum status torch_file_open(struct torch_file *out, const char *path);
void torch_file_close(struct torch_file *file);

#endif
