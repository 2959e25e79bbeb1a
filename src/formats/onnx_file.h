/* Writing ONNX models (onnx.proto of onnx.ai): a graph is built node by node, with weights that stay where they are until the
 * file is written.
 *
 * A failure while the graph is built (lack of memory) is remembered and returned by onnx_graph_write(). */
#ifndef FORMATS_ONNX_FILE_H
#define FORMATS_ONNX_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/buffer.h"
#include "base/error.h"

/* What the file says of its origin; its last two entries of metadata, in hexadecimal: CRC-32Cs of the file of weights, if there
 * is one, and of all bytes of the model before the entry. */
#define ONNX_PRODUCER "bertc"
#define ONNX_DATA_CHECKSUM "data_crc32c"
#define ONNX_CHECKSUM "crc32c"

enum onnx_type { ONNX_FLOAT = 1, ONNX_INT64 = 7, ONNX_BOOL = 9 };

/* The name of a value that a node takes or produces: an input of the graph, a weight, a constant, or a node's output. */
struct onnx_value {
	char name[128];
};

#define ONNX_RANK_LIMIT 4

struct onnx_attribute {
	const char *name;
	enum { ONNX_ATTRIBUTE_FLOAT = 1, ONNX_ATTRIBUTE_INT = 2, ONNX_ATTRIBUTE_INTS = 7 } kind;
	double number;
	int64_t integer, integers[ONNX_RANK_LIMIT];
	int count; /* of integers */
};

/* A dimension of an input or output: a name if it may vary from call to call ("batch"), otherwise a size. */
struct onnx_dimension {
	const char *name;
	int64_t size;
};

struct onnx_weight {
	const char *name; /* copied */
	int rank;
	int64_t rows, columns; /* as the graph sees them; rank 1: columns */
	bool transposed;       /* the numbers are stored as (columns, rows) */
	const float *numbers;  /* borrowed until the file is written */
};

/* Zero-initialize; release with onnx_graph_release. */
struct onnx_graph {
	struct buffer nodes, inputs, outputs;
	struct onnx_tensor *tensors; /* weights and constants */
	int64_t tensor_count, tensor_capacity;
	enum status status;
};
void onnx_graph_release(struct onnx_graph *graph);

struct onnx_value onnx_input(struct onnx_graph *graph, const char *name, enum onnx_type type,
			     const struct onnx_dimension *dimensions, int rank);
/* Makes the value an output of the graph under its name. */
void onnx_output(struct onnx_graph *graph, const struct onnx_value *value, enum onnx_type type,
		 const struct onnx_dimension *dimensions, int rank);
struct onnx_value onnx_weight(struct onnx_graph *graph, const struct onnx_weight *weight);
/* rank 0: a scalar, not a list of one number. */
struct onnx_value onnx_integers(struct onnx_graph *graph, const char *name, const int64_t *numbers, int count, int rank);
struct onnx_value onnx_number(struct onnx_graph *graph, const char *name, float number);
/* A node with one output, `name`, which is also the node's name. Inputs with an empty name are omitted. */
struct onnx_value onnx_node(struct onnx_graph *graph, const char *operation, const char *name, const struct onnx_value *inputs,
			    int input_count, const struct onnx_attribute *attributes, int attribute_count);

/* A model file of at most this many bytes also contains the weights: protocol buffers are limited to 2 GiB. */
#define ONNX_FILE_LIMIT (((int64_t)1 << 31) - (1 << 20))
/* Writes the graph to `path`; if that would exceed `limit` bytes, the weights go to a separate file next to it, named `path` plus
 * "_data" (ONNX's external data). Operators are those of opset 17; the file declares IR version 8, which goes with it. */
MUST_USE enum status onnx_graph_write(const struct onnx_graph *graph, const char *path, int64_t limit);

#endif
