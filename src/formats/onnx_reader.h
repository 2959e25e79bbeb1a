/* Reading ONNX models as far as one needs to say what is in them and whether they are whole: inputs, outputs, weights, and how
 * the nodes hang together. Nothing is computed from them. */
#ifndef FORMATS_ONNX_READER_H
#define FORMATS_ONNX_READER_H

#include <stdint.h>
#include "base/error.h"
#include "base/file.h"
#include "base/string_store.h"
#include "formats/stored_tensor.h"

/* An input or output of the graph. */
struct onnx_port {
	const char *name;
	int64_t type;      /* TensorProto.DataType; 0: not a tensor */
	const char *shape; /* "batch x sequence x 768"; "" if not known */
};

struct onnx_file {
	int64_t ir_version, opset; /* opset: of the standard operators; 0 if the file does not say */
	const char *producer;      /* program and version, "" if not known */
	int64_t node_count;
	struct onnx_port *inputs, *outputs; /* without the weights that older files list as inputs */
	int64_t input_count, input_capacity, output_count, output_capacity;
	/* Weights and constants. `data` is NULL where a number takes more than a field of bytes (older files' lists of numbers)
	 * or has a type that bertc does not know: their values are not looked at. */
	struct stored_tensor *tensors; /* [count] in the order of the file */
	int64_t count, capacity;
	int64_t bytes; /* of all files */

	struct string_store strings;
	struct file_map model;
	struct onnx_data_file *data; /* files of weights beside the model */
	int64_t data_count, data_capacity;
};

/* Reads the model and finds its weights, in it and in files beside it. What breaks the format's rules is ERR_DATA with the
 * reason: a message that cannot be taken apart, a weight whose bytes do not fit its shape or its file, a node whose input nothing
 * before it makes, a name made twice, an output that nothing makes. A missing file of weights is ERR_DATA, too. On failure there
 * is nothing to close. */
MUST_USE enum status onnx_file_open(struct onnx_file *out, const char *path);
void onnx_file_close(struct onnx_file *file);
/* "float32" of a TensorProto.DataType, "type N" of one that bertc does not know. */
#define ONNX_TYPE_BYTES 24
const char *onnx_type_name(char out[ONNX_TYPE_BYTES], int64_t type);

#endif
