/* Weights in int8: a model folder in which the encoder's linear layers are stored as inference multiplies them (backend/int8.h),
 * with one byte per number and a scale for each output channel. docs/formats.md describes the format. */
#ifndef WEIGHTS_INT8_WEIGHTS_H
#define WEIGHTS_INT8_WEIGHTS_H

#include <stdbool.h>
#include "base/error.h"
#include "model/model.h"
#include "weights/folder_file.h"
#include "weights/model_folder.h"

/* Not the name used for floats, so that programs that do not know the format find no weights instead of misreading bytes. */
#define INT8_WEIGHTS_FILE "model_int8.safetensors"

/* Whether products with this weight can be computed in int8. */
bool int8_weight_fits(const struct weight *weight);
/* Writes the weights into `folder` and appends the file to `files`. `kept` [model->weight_count] marks weights that stay in BF16;
 * NULL: none. Tables are written in BF16; heads, biases, and norms in F32. */
MUST_USE enum status int8_weights_save(const char *folder, const struct model_folder_content *content, const bool *kept,
				       struct folder_files *files);
/* Sets *out to whether the file that `path` means (weights_file_find) has weights in int8. If so, and `model` is not NULL, marks
 * the model's other weights as `unquantized`; this must precede model_allocate. */
MUST_USE enum status int8_weights_mark(const char *path, struct model *model, bool *out);

#endif
