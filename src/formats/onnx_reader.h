/* Reads ONNX models as far as needed to tell what they contain and whether they are intact: inputs, outputs, weights, and how the
 * nodes are connected. Models are not executed. */
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
	const char *shape; /* "batch x sequence x 768"; "" if unknown */
};

struct onnx_file {
	int64_t ir_version, opset; /* opset: version of the standard operators; 0 if the file does not say */
	const char *producer;      /* program and version; "" if unknown */
	int64_t node_count;
	struct onnx_port *inputs, *outputs; /* not including the weights that older files list as inputs */
	int64_t input_count, input_capacity, output_count, output_capacity;
	/* Weights and constants. `data` is NULL if the numbers are not stored as raw bytes (but as lists of numbers, as in older
	 * files) or have a type that bertc does not know: their values are not examined. */
	struct stored_tensor *tensors; /* [count] in the order of the file */
	int64_t count, capacity;
	int64_t bytes; /* in all files */

	struct string_store strings;
	struct file_map model;
	struct onnx_data_file *data; /* files of weights next to the model */
	int64_t data_count, data_capacity;
};

/* Reads the model and finds its weights, in it and in files next to it. Violations of the format are ERR_DATA with the reason: a
 * malformed message, a weight whose bytes do not fit its shape or its file, a node with an input that nothing before it produces,
 * a name produced twice, an output that nothing produces. A missing file of weights is ERR_DATA, too. On failure there is nothing
 * to close. */
MUST_USE enum status onnx_file_open(struct onnx_file *out, const char *path);
void onnx_file_close(struct onnx_file *file);
/* The name of a TensorProto.DataType: "float32"; "type N" for one that bertc does not know. */
#define ONNX_TYPE_BYTES 24
const char *onnx_type_name(char out[ONNX_TYPE_BYTES], int64_t type);

#endif
