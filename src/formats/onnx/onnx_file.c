/* Builds an ONNX graph node by node and writes it, with the weights inside the file or beside it. */
#include "formats/onnx_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "formats/onnx/onnx_fields.h"
#include "formats/protobuf.h"

#define IR_VERSION 8
#define OPSET 17

/* Weights in a separate file begin at page boundaries, so that readers can map them. */
#define EXTERNAL_ALIGNMENT 4096

#define SMALL_NUMBERS 8
struct onnx_tensor {
	char name[128];
	enum onnx_type type;
	int rank;
	int64_t shape[2];
	bool transposed;
	const void *numbers; /* NULL: those in `small` */
	int64_t small[SMALL_NUMBERS];
	uint64_t bytes;
};

void onnx_graph_release(struct onnx_graph *graph)
{
	buffer_release(&graph->nodes);
	buffer_release(&graph->inputs);
	buffer_release(&graph->outputs);
	free(graph->tensors);
	*graph = (struct onnx_graph){0};
}

static struct onnx_value value_named(const char *name)
{
	struct onnx_value value;
	BUG_IF(strlen(name) >= sizeof value.name);
	snprintf(value.name, sizeof value.name, "%s", name);
	return value;
}

/* ---- The graph ---- */

static void put_value(struct buffer *out, int field, const char *name, enum onnx_type type,
		      const struct onnx_dimension *dimensions, int rank)
{
	struct buffer value = {0}, kind = {0}, tensor = {0}, shape = {0};
	for (int i = 0; i < rank; i++) {
		struct buffer dimension = {0};
		if (dimensions[i].name)
			protobuf_text(&dimension, DIMENSION_NAME, dimensions[i].name);
		else
			protobuf_integer(&dimension, DIMENSION_SIZE, dimensions[i].size);
		protobuf_message(&shape, SHAPE_DIMENSION, &dimension);
	}
	protobuf_integer(&tensor, TENSOR_TYPE_ELEMENT, type);
	protobuf_message(&tensor, TENSOR_TYPE_SHAPE, &shape);
	protobuf_message(&kind, TYPE_TENSOR, &tensor);
	protobuf_text(&value, VALUE_NAME, name);
	protobuf_message(&value, VALUE_TYPE, &kind);
	protobuf_message(out, field, &value);
}

struct onnx_value onnx_input(struct onnx_graph *graph, const char *name, enum onnx_type type,
			     const struct onnx_dimension *dimensions, int rank)
{
	put_value(&graph->inputs, GRAPH_INPUT, name, type, dimensions, rank);
	return value_named(name);
}

void onnx_output(struct onnx_graph *graph, const struct onnx_value *value, enum onnx_type type,
		 const struct onnx_dimension *dimensions, int rank)
{
	put_value(&graph->outputs, GRAPH_OUTPUT, value->name, type, dimensions, rank);
}

/* Adds a tensor; NULL if there is no memory. */
static struct onnx_tensor *add_tensor(struct onnx_graph *graph, const char *name)
{
	enum status status = memory_grow(&graph->tensors, &graph->tensor_capacity, graph->tensor_count + 1,
					 sizeof *graph->tensors, "weights of a graph");
	if (status != OK) {
		graph->status = status;
		return NULL;
	}
	struct onnx_tensor *tensor = &graph->tensors[graph->tensor_count++];
	*tensor = (struct onnx_tensor){.type = ONNX_FLOAT};
	memcpy(tensor->name, value_named(name).name, sizeof tensor->name);
	return tensor;
}

struct onnx_value onnx_weight(struct onnx_graph *graph, const struct onnx_weight *weight)
{
	struct onnx_tensor *tensor = add_tensor(graph, weight->name);
	BUG_IF(weight->rank < 1 || weight->rank > 2);
	if (tensor) {
		tensor->rank = weight->rank;
		tensor->shape[0] = weight->rank == 2 ? weight->rows : weight->columns;
		tensor->shape[1] = weight->rank == 2 ? weight->columns : 1;
		tensor->transposed = weight->transposed;
		tensor->numbers = weight->numbers;
		tensor->bytes = (uint64_t)(tensor->shape[0] * tensor->shape[1]) * sizeof(float);
	}
	return value_named(weight->name);
}

struct onnx_value onnx_integers(struct onnx_graph *graph, const char *name, const int64_t *numbers, int count, int rank)
{
	struct onnx_tensor *tensor = add_tensor(graph, name);
	BUG_IF(count > SMALL_NUMBERS || rank > 1 || (rank == 0 && count != 1));
	if (tensor) {
		tensor->type = ONNX_INT64;
		tensor->rank = rank;
		tensor->shape[0] = count;
		memcpy(tensor->small, numbers, (size_t)count * sizeof *numbers);
		tensor->bytes = (uint64_t)count * sizeof *numbers;
	}
	return value_named(name);
}

struct onnx_value onnx_number(struct onnx_graph *graph, const char *name, float number)
{
	struct onnx_tensor *tensor = add_tensor(graph, name);
	if (tensor) {
		memcpy(tensor->small, &number, sizeof number);
		tensor->bytes = sizeof number;
	}
	return value_named(name);
}

static void put_attribute(struct buffer *node, const struct onnx_attribute *attribute)
{
	struct buffer out = {0};
	protobuf_text(&out, ATTRIBUTE_NAME, attribute->name);
	if (attribute->kind == ONNX_ATTRIBUTE_FLOAT)
		protobuf_float(&out, ATTRIBUTE_F, (float)attribute->number);
	else if (attribute->kind == ONNX_ATTRIBUTE_INT)
		protobuf_integer(&out, ATTRIBUTE_I, attribute->integer);
	else
		for (int i = 0; i < attribute->count; i++)
			protobuf_integer(&out, ATTRIBUTE_INTS, attribute->integers[i]);
	protobuf_integer(&out, ATTRIBUTE_TYPE, attribute->kind);
	protobuf_message(node, NODE_ATTRIBUTE, &out);
}

struct onnx_value onnx_node(struct onnx_graph *graph, const char *operation, const char *name, const struct onnx_value *inputs,
			    int input_count, const struct onnx_attribute *attributes, int attribute_count)
{
	struct buffer node = {0};
	struct onnx_value output = value_named(name);
	for (int i = 0; i < input_count; i++)
		if (inputs[i].name[0])
			protobuf_text(&node, NODE_INPUT, inputs[i].name);
	protobuf_text(&node, NODE_OUTPUT, output.name);
	protobuf_text(&node, NODE_NAME, output.name);
	protobuf_text(&node, NODE_OPERATOR, operation);
	for (int i = 0; i < attribute_count; i++)
		put_attribute(&node, &attributes[i]);
	protobuf_message(&graph->nodes, GRAPH_NODE, &node);
	return output;
}

static void put_entry(struct buffer *out, int field, const char *key, const char *value)
{
	struct buffer entry = {0};
	protobuf_text(&entry, ENTRY_KEY, key);
	protobuf_text(&entry, ENTRY_VALUE, value);
	protobuf_message(out, field, &entry);
}

/* ---- The file ---- */

struct onnx_writer {
	const struct onnx_graph *graph;
	struct file_writer *model, *data; /* data NULL: the numbers are in the model file */
	const char *location;             /* name of the data file */
	float *block;                     /* rows of a transposed weight */
};

/* Writes what precedes a tensor's numbers, which are in the data file at `offset` if there is one. */
static void put_head(struct buffer *out, const struct onnx_tensor *tensor, const char *location, int64_t offset)
{
	char number[32];
	for (int i = 0; i < tensor->rank; i++)
		protobuf_integer(out, TENSOR_DIMENSIONS, tensor->shape[i]);
	protobuf_integer(out, TENSOR_TYPE, tensor->type);
	protobuf_text(out, TENSOR_NAME, tensor->name);
	if (!location) {
		protobuf_key(out, TENSOR_RAW, PROTOBUF_BYTES);
		protobuf_varint(out, tensor->bytes);
		return;
	}
	put_entry(out, TENSOR_EXTERNAL, "location", location);
	snprintf(number, sizeof number, "%" PRId64, offset);
	put_entry(out, TENSOR_EXTERNAL, "offset", number);
	snprintf(number, sizeof number, "%" PRIu64, tensor->bytes);
	put_entry(out, TENSOR_EXTERNAL, "length", number);
	protobuf_integer(out, TENSOR_LOCATION, LOCATION_EXTERNAL);
}

static bool is_external(const struct onnx_writer *writer, const struct onnx_tensor *tensor)
{
	return writer->data && tensor->numbers;
}

/* Rows of the transposed matrix assembled at a time: one cache line of the stored matrix. */
#define TRANSPOSED_ROWS 16

static enum status write_transposed(struct onnx_writer *writer, struct file_writer *file, const struct onnx_tensor *tensor)
{
	const float *stored = tensor->numbers;
	int64_t rows = tensor->shape[0], columns = tensor->shape[1];
	for (int64_t first = 0; first < rows; first += TRANSPOSED_ROWS) {
		int64_t count = rows - first < TRANSPOSED_ROWS ? rows - first : TRANSPOSED_ROWS;
		for (int64_t j = 0; j < columns; j++)
			for (int64_t i = 0; i < count; i++)
				writer->block[i * columns + j] = stored[j * rows + first + i];
		TRY(file_writer_write(file, writer->block, (size_t)(count * columns) * sizeof(float)));
	}
	return OK;
}

static enum status write_numbers(struct onnx_writer *writer, struct file_writer *file, const struct onnx_tensor *tensor)
{
	if (tensor->transposed)
		return write_transposed(writer, file, tensor);
	return file_writer_write(file, tensor->numbers ? tensor->numbers : tensor->small, tensor->bytes);
}

static enum status pad_data(struct file_writer *data)
{
	static const char zeros[EXTERNAL_ALIGNMENT];
	int64_t beyond = file_writer_offset(data) % EXTERNAL_ALIGNMENT;
	return beyond ? file_writer_write(data, zeros, (size_t)(EXTERNAL_ALIGNMENT - beyond)) : OK;
}

static enum status write_tensor(struct onnx_writer *writer, const struct onnx_tensor *tensor)
{
	struct buffer head = {0}, front = {0};
	bool external = is_external(writer, tensor);
	enum status status = OK;
	if (external)
		TRY_GOTO(pad_data(writer->data), done);
	put_head(&head, tensor, external ? writer->location : NULL, external ? file_writer_offset(writer->data) : 0);
	protobuf_key(&front, GRAPH_TENSOR, PROTOBUF_BYTES);
	protobuf_varint(&front, head.size + (external ? 0 : tensor->bytes));
	buffer_append(&front, head.data, head.size);
	TRY_GOTO(buffer_status(&front), done);
	TRY_GOTO(file_writer_write(writer->model, front.data, front.size), done);
	status = write_numbers(writer, external ? writer->data : writer->model, tensor);
done:
	buffer_release(&head);
	buffer_release(&front);
	return status;
}

static size_t varint_size(uint64_t value)
{
	unsigned char bytes[VARINT_BYTES];
	return varint_put(bytes, value);
}

/* Number of bytes that all tensors take in the model file. */
static enum status tensor_bytes(const struct onnx_writer *writer, bool external, uint64_t *out)
{
	struct buffer head = {0};
	uint64_t offset = 0;
	*out = 0;
	for (int64_t i = 0; i < writer->graph->tensor_count; i++) {
		const struct onnx_tensor *tensor = &writer->graph->tensors[i];
		bool apart = external && tensor->numbers;
		buffer_clear(&head);
		offset = (offset + EXTERNAL_ALIGNMENT - 1) / EXTERNAL_ALIGNMENT * EXTERNAL_ALIGNMENT;
		put_head(&head, tensor, apart ? writer->location : NULL, (int64_t)offset);
		uint64_t bytes = head.size + (apart ? 0 : tensor->bytes);
		*out += varint_size(GRAPH_TENSOR * 8) + varint_size(bytes) + bytes;
		offset += apart ? tensor->bytes : 0;
	}
	enum status status = buffer_status(&head);
	buffer_release(&head);
	return status;
}

/* The whole graph except its tensors. */
static void put_graph(struct buffer *out, const struct onnx_graph *graph)
{
	const struct buffer *parts[] = {&graph->nodes, &graph->inputs, &graph->outputs};
	protobuf_text(out, GRAPH_NAME, "bert");
	for (int i = 0; i < 3; i++) {
		buffer_append(out, parts[i]->data, parts[i]->size);
		out->failed |= parts[i]->failed;
	}
}

static void put_model(struct buffer *out, uint64_t graph_bytes)
{
	struct buffer opset = {0};
	protobuf_integer(out, MODEL_IR_VERSION, IR_VERSION);
	protobuf_text(out, MODEL_PRODUCER, ONNX_PRODUCER);
	protobuf_text(out, MODEL_PRODUCER_VERSION, VERSION);
	protobuf_integer(&opset, OPSET_VERSION, OPSET);
	protobuf_message(out, MODEL_OPSET, &opset);
	protobuf_key(out, MODEL_GRAPH, PROTOBUF_BYTES);
	protobuf_varint(out, graph_bytes);
}

/* Must be the last that is written. */
static enum status write_checksums(struct onnx_writer *writer)
{
	const char *const keys[] = {ONNX_DATA_CHECKSUM, ONNX_CHECKSUM};
	const struct file_writer *const of[] = {writer->data, writer->model};
	for (int i = 0; i < 2; i++) {
		struct buffer entry = {0};
		char value[16];
		if (!of[i])
			continue;
		snprintf(value, sizeof value, "%08" PRIx32, file_writer_crc32c(of[i]));
		put_entry(&entry, MODEL_METADATA, keys[i], value);
		enum status status = buffer_status(&entry);
		if (status == OK)
			status = file_writer_write(writer->model, entry.data, entry.size);
		buffer_release(&entry);
		TRY(status);
	}
	return OK;
}

static enum status write_model(struct onnx_writer *writer, const char *path, const char *data_path, int64_t limit)
{
	struct buffer graph = {0}, front = {0};
	uint64_t tensors = 0;
	enum status status;
	put_graph(&graph, writer->graph);
	TRY_GOTO(tensor_bytes(writer, false, &tensors), done);
	if (graph.size + tensors > (uint64_t)limit) {
		TRY_GOTO(tensor_bytes(writer, true, &tensors), done);
		TRY_GOTO(file_writer_open(&writer->data, data_path), done);
	}
	put_model(&front, graph.size + tensors);
	buffer_append(&front, graph.data, graph.size);
	front.failed |= graph.failed;
	TRY_GOTO(buffer_status(&front), done);
	TRY_GOTO(file_writer_open(&writer->model, path), done);
	TRY_GOTO(file_writer_write(writer->model, front.data, front.size), done);
	int64_t begin = file_writer_offset(writer->model);
	for (int64_t i = 0; i < writer->graph->tensor_count; i++)
		TRY_GOTO(write_tensor(writer, &writer->graph->tensors[i]), done);
	BUG_IF(file_writer_offset(writer->model) - begin != (int64_t)tensors);
	TRY_GOTO(write_checksums(writer), done);
	/* The model refers to the data file, so that must be in place first. */
	if (writer->data)
		TRY_GOTO(file_writer_commit(writer->data), data_gone);
	writer->data = NULL;
	status = file_writer_commit(writer->model);
	writer->model = NULL;
	goto done;
data_gone:
	writer->data = NULL;
done:
	buffer_release(&graph);
	buffer_release(&front);
	return status;
}

enum status onnx_graph_write(const struct onnx_graph *graph, const char *path, int64_t limit)
{
	struct onnx_writer writer = {.graph = graph};
	char data_path[PATH_BYTES];
	int64_t widest = 1;
	TRY(graph->status);
	if (snprintf(data_path, sizeof data_path, "%s_data", path) >= (int)sizeof data_path)
		return error_set(ERR_USAGE, "'%.200s…': path too long", path);
	writer.location = path_name(data_path);
	for (int64_t i = 0; i < graph->tensor_count; i++)
		if (graph->tensors[i].transposed && graph->tensors[i].shape[1] > widest)
			widest = graph->tensors[i].shape[1];
	TRY(memory_new(&writer.block, widest, TRANSPOSED_ROWS * sizeof(float), "rows of a weight"));
	enum status status = write_model(&writer, path, data_path, limit);
	file_writer_abandon(writer.model);
	file_writer_abandon(writer.data);
	free(writer.block);
	return status;
}
