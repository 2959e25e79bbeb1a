/* Reads the ONNX models that formats/onnx_file.h writes, to tell what they contain and whether they are intact: inputs, outputs,
 * weights, and a checksum of all bytes. */
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
	int64_t ir_version, opset; /* opset: version of the standard operators */
	const char *producer;      /* "bertc 0.1.0" */
	int64_t node_count;
	struct onnx_port *inputs, *outputs;
	int64_t input_count, input_capacity, output_count, output_capacity;
	struct stored_tensor *tensors; /* [count] weights and constants, in the order of the file */
	int64_t count, capacity;
	int64_t bytes; /* in all files */
	/* Checksums of the model up to `recorded` and of its weights' file; recorded 0: bertc 0.1.0 did not write them. */
	size_t recorded;
	uint32_t crc32c, data_crc32c;

	struct string_store strings;
	struct file_map model;
	struct onnx_data_file *data; /* files of weights next to the model */
	int64_t data_count, data_capacity;
};

/* Reads the model and finds its weights, in it and in a file next to it. Violations of the format are ERR_DATA with the reason: a
 * malformed message, or a weight whose bytes do not fit its shape or its file. A missing file of weights is ERR_DATA, too;
 * another program's model is ERR_USAGE. On failure there is nothing to close. */
MUST_USE enum status onnx_file_open(struct onnx_file *out, const char *path);
void onnx_file_close(struct onnx_file *file);
/* Compares all bytes with the checksums, if there are any. */
MUST_USE enum status onnx_file_verify(const struct onnx_file *file, const char *path);
/* The name of a TensorProto.DataType: "float32". */
const char *onnx_type_name(int64_t type);

#endif
