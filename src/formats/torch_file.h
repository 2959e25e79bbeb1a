/* PyTorch's files of weights (.bin, .pt, .pth): a pickle of tensors and the numbers they are views of, in a zip archive
 * or, before PyTorch 1.6, behind one another. The pickle is read as data (pickle.h). */
#ifndef FORMATS_TORCH_FILE_H
#define FORMATS_TORCH_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "base/file.h"
#include "formats/pickle.h"
#include "formats/stored_tensor.h"
#include "formats/zip.h"

struct torch_file {
	struct stored_tensor *tensors; /* of the state dict, in its order */
	int64_t count, capacity;
	struct name_list notes; /* "key=value" of numbers and texts beside them, and "key=a list" of what else is there */
	const char *state_key;  /* "model" or "state_dict" where the state dict lies within another dict, or NULL */
	const char *path;
	struct file_map map;
	struct zip zip;
	struct pickle pickle;
	struct torch_storage *storages; /* sorted by key */
	int64_t storage_count;
};

/* True if the bytes begin as a file of torch.save does. */
bool torch_file_is(const unsigned char *bytes, size_t size);
/* Finds the state dict: the file's dict itself, or the one under "model", "state_dict" or "model_state_dict" in it. What
 * breaks the format is ERR_DATA with file and offset; on failure there is nothing to close. `path` is borrowed. */
MUST_USE enum status torch_file_open(struct torch_file *out, const char *path);
void torch_file_close(struct torch_file *file);

#endif
