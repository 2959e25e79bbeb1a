/* Weights in int8: a model folder whose linear layers of the encoder are stored as the products of inference multiply them
 * (backend/int8.h), a byte a number and a scale for each output channel; docs/formats.md has the form. */
#ifndef WEIGHTS_INT8_WEIGHTS_H
#define WEIGHTS_INT8_WEIGHTS_H

#include <stdbool.h>
#include "base/error.h"
#include "model/model.h"
#include "weights/folder_file.h"
#include "weights/model_folder.h"

/* Another name than that of floats: a program that does not know the form finds no weights, instead of taking bytes for them. */
#define INT8_WEIGHTS_FILE "model_int8.safetensors"

/* Can the products with this weight of the model be in int8? */
bool int8_weight_fits(const struct weight *weight);
/* Writes the weights into `folder` and appends the file to `files`. `kept` [model->weight_count]: weights that stay in BF16;
 * NULL: none. Tables are BF16, heads, biases and norms F32. */
MUST_USE enum status int8_weights_save(const char *folder, const struct model_folder_content *content, const bool *kept,
				       struct folder_files *files);
/* Are weights of the file that `path` means (weights_file_find) in int8? Then those of the model that are not are marked as
 * unquantised, if `model` is there; before model_allocate. */
MUST_USE enum status int8_weights_mark(const char *path, struct model *model, bool *out);

#endif
