/* Reading the ONNX models that bertc writes, whole and broken. */
#include "base/buffer.h"
#include "formats/onnx_file.h"
#include "formats/onnx_reader.h"
#include "test.h"

static const struct stored_tensor *tensor_named(const struct onnx_file *file, const char *name)
{
	for (int64_t i = 0; i < file->count; i++)
		if (strcmp(file->tensors[i].name, name) == 0)
			return &file->tensors[i];
	fail_msg("no weight '%s'", name);
	return NULL;
}

/* y = x w, with the weight in the model or in a file beside it. */
static void write_graph(const char *path, int64_t limit)
{
	static const float numbers[2048] = {1, 2, 3};
	struct onnx_graph graph = {0};
	const struct onnx_dimension x[] = {{.name = "batch"}, {.size = 64}}, y[] = {{.name = "batch"}, {.size = 32}};
	struct onnx_value inputs[2] = {onnx_input(&graph, "x", ONNX_FLOAT, x, 2)}, output;
	inputs[1] =
		onnx_weight(&graph, &(struct onnx_weight){.name = "w", .rank = 2, .rows = 64, .columns = 32, .numbers = numbers});
	output = onnx_node(&graph, "MatMul", "y", inputs, 2, NULL, 0);
	onnx_output(&graph, &output, ONNX_FLOAT, y, 2);
	assert_ok(onnx_graph_write(&graph, path, limit));
	onnx_graph_release(&graph);
}

static void weights_beside_the_model(void **state)
{
	const char *path = test_path("large.onnx"), *data = test_path("large.onnx_data");
	struct onnx_file file;
	float values[3];
	write_graph(path, 1000);
	assert_ok(onnx_file_open(&file, path));
	assert_ok(stored_tensor_read(tensor_named(&file, "w"), 0, 3, values));
	assert_near(values[2], 3, 0);
	assert_string_equal(tensor_named(&file, "w")->path, data);
	assert_int_equal(file.bytes, file_size(path) + file_size(data));
	onnx_file_close(&file);
	/* Truncated, and missing. */
	struct buffer bytes = {0};
	assert_ok(file_read(data, 1 << 20, &bytes));
	assert_ok(file_write(data, bytes.data, bytes.size - 1));
	assert_error(ERR_DATA, "beyond the end of the file", onnx_file_open(&file, path));
	buffer_release(&bytes);
	assert_int_equal(remove(data), 0);
	assert_error(ERR_DATA, "is missing", onnx_file_open(&file, path));
	/* No file outside the folder is opened. */
	assert_ok(file_read(path, 1 << 20, &bytes));
	char *location = memmem(bytes.data, bytes.size, "large.onnx_data", 15);
	memcpy(location, "../large/x_data", 15);
	assert_ok(file_write(path, bytes.data, bytes.size));
	assert_error(ERR_DATA, "outside the model's folder", onnx_file_open(&file, path));
	buffer_release(&bytes);
}

static void what_a_model_holds(void **state)
{
	struct onnx_file file;
	const char *path = test_path("small.onnx");
	struct buffer bytes = {0};
	write_graph(path, ONNX_FILE_LIMIT);
	assert_ok(onnx_file_open(&file, path));
	assert_ok(onnx_file_verify(&file, path));
	assert_string_equal(file.producer, "bertc " VERSION);
	assert_int_equal(file.node_count, 1);
	assert_int_equal(file.input_count, 1);
	assert_string_equal(file.inputs[0].name, "x");
	assert_string_equal(file.inputs[0].shape, "batch x 64");
	assert_string_equal(onnx_type_name(file.inputs[0].type), "float32");
	assert_string_equal(file.outputs[0].shape, "batch x 32");
	assert_int_equal(file.count, 1);
	onnx_file_close(&file);
	/* Another program's, an empty one, none. */
	assert_ok(file_read(path, 1 << 20, &bytes));
	memcpy(memmem(bytes.data, bytes.size, "bertc", 5), "torch", 5);
	assert_ok(file_write(path, bytes.data, bytes.size));
	assert_error(ERR_USAGE, "bertc did not write (its producer is 'torch')", onnx_file_open(&file, path));
	buffer_release(&bytes);
	assert_ok(file_write(path, "", 0));
	assert_error(ERR_DATA, "no graph in it", onnx_file_open(&file, path));
	assert_error(ERR_USAGE, "none.onnx", onnx_file_open(&file, test_path("none.onnx")));
}

/* Without the fsync of file_write(), because there are many. */
static void put_bytes(const char *path, const char *bytes, size_t size)
{
	FILE *file = fopen(path, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

/* Truncated anywhere, or with any bit flipped, a model is refused, or it has lost the record of its bytes. */
static void damaged_bytes(void **state)
{
	struct buffer bytes = {0};
	struct onnx_file file;
	const char *path = test_path("damaged.onnx");
	write_graph(path, 1000); /* the weights are apart: a small file */
	assert_ok(file_read(path, 1 << 20, &bytes));
	for (size_t cut = 0; cut < bytes.size; cut++) {
		put_bytes(path, bytes.data, cut);
		assert_true(onnx_file_open(&file, path) != OK || file.recorded == 0);
		onnx_file_close(&file);
	}
	for (size_t bit = 0; bit < 8 * bytes.size; bit += 7) {
		bytes.data[bit / 8] ^= (char)(1 << bit % 8);
		put_bytes(path, bytes.data, bytes.size);
		if (onnx_file_open(&file, path) == OK && file.recorded > 0)
			assert_error(ERR_DATA, "its bytes are not those", onnx_file_verify(&file, path));
		onnx_file_close(&file);
		bytes.data[bit / 8] ^= (char)(1 << bit % 8);
	}
	buffer_release(&bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_model_holds),
		cmocka_unit_test(weights_beside_the_model),
		cmocka_unit_test(damaged_bytes),
	};
	return cmocka_run_group_tests(tests, test_folder_make, test_folder_drop);
}
