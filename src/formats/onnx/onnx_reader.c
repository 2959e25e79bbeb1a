/* Reads the ONNX files that bertc writes, and checks that every tensor lies where the file says. */
#include "formats/onnx_reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/text.h"
#include "formats/onnx/onnx_fields.h"
#include "formats/onnx_file.h"
#include "formats/protobuf.h"

#define NAME_LIMIT 4096
#define TENSOR_LIMIT 1000000

/* A file of weights next to the model. */
struct onnx_data_file {
	const char *path, *location;
	struct file_map map;
};

struct reader {
	struct onnx_file *file;
	const char *path;
};

static const struct {
	int64_t number;
	const char *name;
	enum safetensors_dtype dtype;
} types[] = {{ONNX_FLOAT, "float32", ST_F32}, {ONNX_INT64, "int64", ST_I64}, {ONNX_BOOL, "bool", ST_BOOL}};
#define TYPES (sizeof types / sizeof types[0])

static size_t find_type(int64_t number)
{
	size_t i = 0;
	while (i < TYPES && types[i].number != number)
		i++;
	return i;
}

const char *onnx_type_name(int64_t type)
{
	size_t found = find_type(type);
	return found < TYPES ? types[found].name : "unknown";
}

/* ---- Messages ---- */

static enum status malformed(const struct reader *reader, const unsigned char *at)
{
	return error_set(ERR_DATA, "'%s': not a well-formed ONNX model (at byte %lld)", reader->path,
			 (long long)(at - reader->file->model.data));
}

/* Takes the next field of a message, which must have bytes left. */
static enum status next(const struct reader *reader, struct byte_range *message, struct protobuf_field *out)
{
	const unsigned char *at = message->at;
	return protobuf_next(message, out) ? OK : malformed(reader, at);
}

static bool is_bytes(const struct protobuf_field *field)
{
	return field->kind == PROTOBUF_BYTES;
}

static enum status copy_text(struct reader *reader, struct byte_range bytes, const char **out)
{
	size_t size = range_left(&bytes);
	if (size > NAME_LIMIT || memchr(bytes.at, 0, size))
		return error_set(ERR_DATA, "'%s': not a well-formed ONNX model: a name of %zu bytes at byte %lld", reader->path,
				 size, (long long)(bytes.at - reader->file->model.data));
	return string_store_copy(&reader->file->strings, (const char *)bytes.at, size, out);
}

/* A key and its value. */
static enum status read_entry(struct reader *reader, struct byte_range message, const char **key, const char **value)
{
	struct protobuf_field field;
	*key = *value = "";
	while (message.at < message.end) {
		TRY(next(reader, &message, &field));
		if (field.number == ENTRY_KEY && is_bytes(&field))
			TRY(copy_text(reader, field.content, key));
		else if (field.number == ENTRY_VALUE && is_bytes(&field))
			TRY(copy_text(reader, field.content, value));
	}
	return OK;
}

/* ---- Weights ---- */

/* The contents of a TensorProto. */
struct tensor {
	const char *name, *location;
	uint64_t type;
	int rank;
	int64_t shape[STORED_RANK_LIMIT];
	struct byte_range raw;
	bool is_external;
	uint64_t offset, length; /* in the file of weights */
};

static enum status bad_tensor(const struct reader *reader, const struct tensor *tensor, const char *what)
{
	return error_set(ERR_DATA, "'%s': weight '%.200s': %s", reader->path, tensor->name, what);
}

static enum status add_dimension(const struct reader *reader, struct tensor *tensor, uint64_t size)
{
	if (tensor->rank == STORED_RANK_LIMIT)
		return bad_tensor(reader, tensor, "too many dimensions");
	if (size > INT64_MAX)
		return bad_tensor(reader, tensor, "a negative dimension");
	tensor->shape[tensor->rank++] = (int64_t)size;
	return OK;
}

static enum status read_decimal(const struct reader *reader, const struct tensor *tensor, const char *text, uint64_t *out)
{
	char *end;
	*out = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end && *out <= INT64_MAX ? OK
									  : bad_tensor(reader, tensor, "no number in its place");
}

/* An entry of external_data: location, offset or length. */
static enum status read_external(struct reader *reader, struct byte_range message, struct tensor *out)
{
	const char *key, *value;
	TRY(read_entry(reader, message, &key, &value));
	if (strcmp(key, "location") == 0)
		out->location = value;
	else if (strcmp(key, "offset") == 0)
		return read_decimal(reader, out, value, &out->offset);
	else if (strcmp(key, "length") == 0)
		return read_decimal(reader, out, value, &out->length);
	return OK;
}

static enum status read_tensor(struct reader *reader, struct byte_range message, struct tensor *out)
{
	struct protobuf_field field;
	*out = (struct tensor){.name = ""};
	while (message.at < message.end) {
		TRY(next(reader, &message, &field));
		if (field.number == TENSOR_DIMENSIONS) {
			TRY(add_dimension(reader, out, field.value));
		} else if (field.number == TENSOR_TYPE) {
			out->type = field.value;
		} else if (field.number == TENSOR_NAME && is_bytes(&field)) {
			TRY(copy_text(reader, field.content, &out->name));
		} else if (field.number == TENSOR_RAW && is_bytes(&field)) {
			out->raw = field.content;
		} else if (field.number == TENSOR_EXTERNAL && is_bytes(&field)) {
			TRY(read_external(reader, field.content, out));
		} else if (field.number == TENSOR_LOCATION) {
			out->is_external = field.value == LOCATION_EXTERNAL;
		}
	}
	return OK;
}

/* Maps the file of weights that a tensor names, which is in the model's folder. */
static enum status open_data(struct reader *reader, const struct tensor *tensor, const struct onnx_data_file **out)
{
	struct onnx_file *file = reader->file;
	char path[PATH_BYTES];
	const char *location = tensor->location ? tensor->location : "", *slash = strrchr(reader->path, '/');
	for (int64_t i = 0; i < file->data_count; i++)
		if (strcmp(file->data[i].location, location) == 0) {
			*out = &file->data[i];
			return OK;
		}
	if (!*location || *location == '/' || strstr(location, ".."))
		return bad_tensor(reader, tensor, "its data is in a file outside the model's folder");
	int folder = slash ? (int)(slash - reader->path + 1) : 0;
	if (snprintf(path, sizeof path, "%.*s%s", folder, reader->path, location) >= (int)sizeof path)
		return bad_tensor(reader, tensor, "the path of its file is too long");
	if (!file_exists(path) || file_is_folder(path))
		return error_hinted(error_set(ERR_DATA, "'%s': its file of weights, '%s', is missing", reader->path, path),
				    "a model of more than 2 GB consists of both files: copy them together");
	TRY(memory_grow(&file->data, &file->data_capacity, file->data_count + 1, sizeof *file->data, "files of a model"));
	struct onnx_data_file *data = &file->data[file->data_count];
	*data = (struct onnx_data_file){.location = location};
	TRY(string_store_copy(&file->strings, path, strlen(path), &data->path));
	TRY(file_map_open(&data->map, path));
	file->data_count++;
	file->bytes += (int64_t)data->map.size;
	*out = data;
	return OK;
}

static enum status add_tensor(struct reader *reader, struct byte_range message)
{
	struct onnx_file *file = reader->file;
	struct tensor tensor;
	const struct onnx_data_file *data;
	int64_t bytes = 0;
	TRY(read_tensor(reader, message, &tensor));
	if (file->count == TENSOR_LIMIT)
		return error_set(ERR_DATA, "'%s': more than %d weights", reader->path, TENSOR_LIMIT);
	struct stored_tensor stored = {.name = tensor.name, .rank = tensor.rank, .path = reader->path, .dtype = ST_U8};
	size_t type = find_type((int64_t)tensor.type);
	memcpy(stored.shape, tensor.shape, sizeof stored.shape);
	if (!stored_tensor_pack(&stored))
		return bad_tensor(reader, &tensor, "its shape is too large");
	if (type == TYPES)
		return bad_tensor(reader, &tensor, "a type of number that bertc does not write");
	stored.dtype = types[type].dtype;
	if (__builtin_mul_overflow(stored.count, dtype_element_bytes(stored.dtype), &bytes))
		return bad_tensor(reader, &tensor, "its shape is too large");
	struct byte_range numbers = tensor.raw;
	if (tensor.is_external) {
		TRY(open_data(reader, &tensor, &data));
		uint64_t left = tensor.offset <= data->map.size ? data->map.size - tensor.offset : 0;
		if (tensor.offset > data->map.size || tensor.length > left)
			return bad_tensor(reader, &tensor, "its data extends beyond the end of the file");
		numbers = (struct byte_range){data->map.data + tensor.offset, data->map.data + tensor.offset + tensor.length};
		stored.path = data->path;
	}
	if (!numbers.at || range_left(&numbers) != (uint64_t)bytes)
		return bad_tensor(reader, &tensor, "its bytes do not fit its shape");
	stored.data = numbers.at;
	stored.offset = (uint64_t)(numbers.at - (tensor.is_external ? data->map.data : file->model.data));
	TRY(memory_grow(&file->tensors, &file->capacity, file->count + 1, sizeof *file->tensors, "weights of a model"));
	file->tensors[file->count++] = stored;
	return OK;
}

/* ---- Inputs and outputs ---- */

/* "batch x 768" of a TensorShapeProto. */
static enum status read_shape(struct reader *reader, struct byte_range message, struct buffer *out)
{
	struct protobuf_field dimension, field;
	while (message.at < message.end) {
		TRY(next(reader, &message, &dimension));
		if (dimension.number != SHAPE_DIMENSION || !is_bytes(&dimension))
			continue;
		const char *name = "?";
		char number[24];
		struct byte_range content = dimension.content;
		while (content.at < content.end) {
			TRY(next(reader, &content, &field));
			if (field.number == DIMENSION_NAME && is_bytes(&field))
				TRY(copy_text(reader, field.content, &name));
			if (field.number == DIMENSION_SIZE && field.kind == PROTOBUF_VARINT) {
				snprintf(number, sizeof number, "%" PRId64, (int64_t)field.value);
				name = number;
			}
		}
		if (out->size > NAME_LIMIT)
			return malformed(reader, message.at);
		buffer_format(out, "%s%s", out->size ? " x " : "", name);
	}
	return buffer_status(out);
}

static enum status read_type(struct reader *reader, struct byte_range message, struct onnx_port *out, struct buffer *shape)
{
	struct protobuf_field field, part;
	while (message.at < message.end) {
		TRY(next(reader, &message, &field));
		if (field.number != TYPE_TENSOR || !is_bytes(&field))
			continue;
		struct byte_range tensor = field.content;
		while (tensor.at < tensor.end) {
			TRY(next(reader, &tensor, &part));
			if (part.number == TENSOR_TYPE_ELEMENT && part.kind == PROTOBUF_VARINT)
				out->type = (int64_t)part.value;
			if (part.number == TENSOR_TYPE_SHAPE && is_bytes(&part))
				TRY(read_shape(reader, part.content, shape));
		}
	}
	return OK;
}

static enum status read_port(struct reader *reader, struct byte_range message, struct onnx_port *out)
{
	struct protobuf_field field;
	struct buffer shape = {0};
	enum status status = OK;
	*out = (struct onnx_port){.name = "", .shape = ""};
	while (message.at < message.end && status == OK) {
		status = next(reader, &message, &field);
		if (status == OK && field.number == VALUE_NAME && is_bytes(&field))
			status = copy_text(reader, field.content, &out->name);
		else if (status == OK && field.number == VALUE_TYPE && is_bytes(&field))
			status = read_type(reader, field.content, out, &shape);
	}
	if (status == OK)
		status = string_store_copy(&reader->file->strings, buffer_string(&shape), shape.size, &out->shape);
	buffer_release(&shape);
	return status;
}

/* ---- The graph ---- */

static enum status add_input(struct reader *reader, struct byte_range message)
{
	struct onnx_file *file = reader->file;
	TRY(memory_grow(&file->inputs, &file->input_capacity, file->input_count + 1, sizeof *file->inputs, "inputs of a model"));
	return read_port(reader, message, &file->inputs[file->input_count++]);
}

static enum status add_output(struct reader *reader, struct byte_range message)
{
	struct onnx_file *file = reader->file;
	TRY(memory_grow(&file->outputs, &file->output_capacity, file->output_count + 1, sizeof *file->outputs,
			"outputs of a model"));
	return read_port(reader, message, &file->outputs[file->output_count++]);
}

static enum status add_node(struct reader *reader, struct byte_range message)
{
	(void)message;
	reader->file->node_count++;
	return OK;
}

static enum status read_graph(struct reader *reader, struct byte_range graph)
{
	static enum status (*const parts[])(struct reader *, struct byte_range) = {
		[GRAPH_TENSOR] = add_tensor, [GRAPH_INPUT] = add_input, [GRAPH_NODE] = add_node, [GRAPH_OUTPUT] = add_output};
	struct protobuf_field field;
	while (graph.at < graph.end) {
		TRY(next(reader, &graph, &field));
		if (field.number < sizeof parts / sizeof parts[0] && parts[field.number] && is_bytes(&field))
			TRY(parts[field.number](reader, field.content));
	}
	return OK;
}

static enum status read_opset(struct reader *reader, struct byte_range message)
{
	struct protobuf_field field;
	while (message.at < message.end) {
		TRY(next(reader, &message, &field));
		if (field.number == OPSET_VERSION)
			reader->file->opset = (int64_t)field.value;
	}
	return OK;
}

/* The entry at `at` may be a checksum; that of the model is the last one, and covers everything before itself. */
static enum status read_metadata(struct reader *reader, struct byte_range message, const unsigned char *at)
{
	struct onnx_file *file = reader->file;
	const char *key, *value;
	char again[16];
	TRY(read_entry(reader, message, &key, &value));
	bool is_own = strcmp(key, ONNX_CHECKSUM) == 0;
	uint32_t *crc = is_own ? &file->crc32c : &file->data_crc32c;
	if (!is_own && strcmp(key, ONNX_DATA_CHECKSUM) != 0)
		return OK;
	*crc = (uint32_t)strtoul(value, NULL, 16);
	if (is_own)
		file->recorded = (size_t)(at - file->model.data);
	snprintf(again, sizeof again, "%08" PRIx32, *crc);
	bool sound = strcmp(value, again) == 0 && (!is_own || message.end == file->model.data + file->model.size);
	return sound ? OK : malformed(reader, at);
}

static enum status read_model(struct reader *reader)
{
	struct onnx_file *file = reader->file;
	struct byte_range message = {file->model.data, file->model.data}, graph = {0};
	struct protobuf_field field;
	const char *producer = "", *version = "";
	char both[2 * NAME_LIMIT + 2];
	if (file->model.size > 0) /* an empty file has NULL data */
		message.end += file->model.size;
	while (message.at < message.end) {
		const unsigned char *at = message.at;
		TRY(next(reader, &message, &field));
		if (field.number == MODEL_IR_VERSION && field.kind == PROTOBUF_VARINT)
			file->ir_version = (int64_t)field.value;
		else if (field.number == MODEL_PRODUCER && is_bytes(&field))
			TRY(copy_text(reader, field.content, &producer));
		else if (field.number == MODEL_PRODUCER_VERSION && is_bytes(&field))
			TRY(copy_text(reader, field.content, &version));
		else if (field.number == MODEL_OPSET && is_bytes(&field))
			TRY(read_opset(reader, field.content));
		else if (field.number == MODEL_METADATA && is_bytes(&field))
			TRY(read_metadata(reader, field.content, at));
		else if (field.number == MODEL_GRAPH && is_bytes(&field))
			graph = field.content;
	}
	if (!graph.at)
		return error_set(ERR_DATA, "'%s': not an ONNX model: there is no graph in it", reader->path);
	if (strcmp(producer, ONNX_PRODUCER) != 0)
		return error_set(ERR_USAGE, "'%s': an ONNX model that bertc did not write (its producer is '%.40s')",
				 reader->path, producer);
	snprintf(both, sizeof both, "%s%s%s", producer, *producer && *version ? " " : "", version);
	TRY(string_store_copy(&file->strings, both, strlen(both), &file->producer));
	return read_graph(reader, graph);
}

enum status onnx_file_open(struct onnx_file *out, const char *path)
{
	struct reader reader = {.file = out, .path = path};
	*out = (struct onnx_file){.producer = ""};
	TRY(file_map_open(&out->model, path));
	out->bytes = (int64_t)out->model.size;
	enum status status = string_store_copy(&out->strings, path, strlen(path), &reader.path);
	if (status == OK)
		status = read_model(&reader);
	if (status != OK)
		onnx_file_close(out);
	return status;
}

enum status onnx_file_verify(const struct onnx_file *file, const char *path)
{
	bool same = crc32c(0, file->model.data, file->recorded) == file->crc32c;
	for (int64_t i = 0; same && i < file->data_count; i++)
		same = crc32c(0, file->data[i].map.data, file->data[i].map.size) == file->data_crc32c;
	if (same || file->recorded == 0)
		return OK;
	return error_set(ERR_DATA, "'%s': damaged: its bytes are not those that were written", path);
}

void onnx_file_close(struct onnx_file *file)
{
	for (int64_t i = 0; i < file->data_count; i++)
		file_map_close(&file->data[i].map);
	file_map_close(&file->model);
	free(file->data);
	free(file->tensors);
	free(file->inputs);
	free(file->outputs);
	string_store_release(&file->strings);
	*file = (struct onnx_file){.producer = ""};
}
