/* Writes a model's folder for a Triton Inference Server repository: config.pbtxt, labels.txt if classes have names, and the graph
 * in 1/model.onnx. */
#ifndef WEIGHTS_TRITON_FOLDER_H
#define WEIGHTS_TRITON_FOLDER_H

#include <stdint.h>
#include "base/buffer.h"
#include "base/error.h"
#include "weights/config_file.h"
#include "weights/onnx_model.h"

/* Appends the text of config.pbtxt. `name` is the folder's name; `has_labels`: labels.txt names the columns of the logits. */
void triton_config_put(struct buffer *out, const char *name, const struct onnx_model_facts *facts, bool has_labels);
/* Writes the files into the existing `folder`, whose final name will be `name`. `task` (may be NULL) has the names of the
 * classes. If the graph exceeds `limit` bytes, 1/model.onnx becomes a folder with graph and weights, as Triton requires. */
MUST_USE enum status triton_folder_save(const char *folder, const char *name, const struct onnx_model_content *content,
					const struct task_config *task, int64_t limit);

#endif
