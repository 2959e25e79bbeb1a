/* A model's folder in a repository of Triton Inference Server: config.pbtxt, labels.txt where classes have names, and the graph
 * in 1/model.onnx. */
#ifndef WEIGHTS_TRITON_FOLDER_H
#define WEIGHTS_TRITON_FOLDER_H

#include <stdint.h>
#include "base/buffer.h"
#include "base/error.h"
#include "weights/config_file.h"
#include "weights/onnx_model.h"

/* Appends the text of config.pbtxt. `name` is that of the folder; `has_labels`: labels.txt names the columns of the logits. */
void triton_config_put(struct buffer *out, const char *name, const struct onnx_model_facts *facts, bool has_labels);
/* Writes the files into `folder`, which exists and will be called `name`. `task` (may be NULL) has the names of the classes. A
 * graph of more than `limit` bytes becomes a folder 1/model.onnx/ with the graph and its weights, as Triton wants it. */
MUST_USE enum status triton_folder_save(const char *folder, const char *name, const struct onnx_model_content *content,
					const struct task_config *task, int64_t limit);

#endif
