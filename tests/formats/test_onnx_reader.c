/* Reading ONNX models: one written by ONNX's own library, those that bertc writes, and broken ones of every kind. */
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

static void onnx_s_own_model(void **state)
{
	(void)state;
	struct onnx_file file;
	char type[ONNX_TYPE_BYTES];
	float values[6];
	assert_ok(onnx_file_open(&file, "tests/golden/small.onnx"));
	assert_string_equal(file.producer, "onnx 1.23.2");
	assert_int_equal(file.ir_version, 8);
	assert_int_equal(file.opset, 17); /* not that of com.microsoft */
	assert_int_equal(file.node_count, 3);
	/* A weight that is listed as an input is not an input. */
	assert_int_equal(file.input_count, 2);
	assert_string_equal(file.inputs[0].name, "x");
	assert_string_equal(file.inputs[0].shape, "batch x 2");
	assert_string_equal(onnx_type_name(type, file.inputs[0].type), "float32");
	assert_string_equal(file.inputs[1].name, "flag");
	assert_string_equal(file.inputs[1].shape, "");
	assert_string_equal(onnx_type_name(type, file.inputs[1].type), "bool");
	assert_int_equal(file.output_count, 1);
	assert_string_equal(file.outputs[0].shape, "batch x 3");
	assert_int_equal(file.count, 4);
	const struct stored_tensor *weight = tensor_named(&file, "weight"), *axis = tensor_named(&file, "axis");
	assert_int_equal(weight->rank, 2);
	assert_int_equal(weight->shape[1], 3);
	assert_ok(stored_tensor_read(weight, 0, 6, values));
	for (int i = 0; i < 6; i++)
		assert_near(values[i], i, 0);
	assert_int_equal(tensor_named(&file, "half")->dtype, ST_F16);
	assert_int_equal(axis->rank, 0);
	assert_int_equal(axis->count, 1);
	assert_null(tensor_named(&file, "bias")->data); /* a list of numbers */
	assert_int_equal(tensor_named(&file, "bias")->count, 3);
	onnx_file_close(&file);
	assert_string_equal(onnx_type_name(type, 22), "type 22");
}

/* y = x w, with the weight in the model or in a file beside it. */
static void write_graph(const char *path, int64_t limit, const char *taken, const char *made, const char *given)
{
	static const float numbers[2048] = {1, 2, 3};
	struct onnx_graph graph = {0};
	const struct onnx_dimension x[] = {{.name = "batch"}, {.size = 64}}, y[] = {{.name = "batch"}, {.size = 32}};
	struct onnx_value inputs[2] = {onnx_input(&graph, "x", ONNX_FLOAT, x, 2)}, output;
	inputs[1] =
		onnx_weight(&graph, &(struct onnx_weight){.name = "w", .rank = 2, .rows = 64, .columns = 32, .numbers = numbers});
	snprintf(inputs[0].name, sizeof(inputs[0].name), "%s", taken);
	onnx_node(&graph, "MatMul", made, inputs, 2, NULL, 0);
	snprintf(output.name, sizeof(output.name), "%s", given);
	onnx_output(&graph, &output, ONNX_FLOAT, y, 2);
	assert_ok(onnx_graph_write(&graph, path, limit));
	onnx_graph_release(&graph);
}

static void weights_beside_the_model(void **state)
{
	(void)state;
	const char *path = test_path("large.onnx"), *data = test_path("large.onnx_data");
	struct onnx_file file;
	float values[3];
	write_graph(path, 1000, "x", "y", "y");
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

static void graphs_that_do_not_hang_together(void **state)
{
	(void)state;
	static const struct {
		const char *taken, *made, *given, *message;
	} cases[] = {
		{"nobody", "y", "y", "takes 'nobody', which nothing before it makes"},
		{"y", "y", "y", "takes 'y'"},
		{"x", "w", "w", "'w' is made twice"},
		{"x", "x", "x", "'x' is made twice"},
		{"x", "y", "z", "nothing makes its output 'z'"},
	};
	struct onnx_file file;
	const char *path = test_path("broken.onnx");
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		write_graph(path, ONNX_FILE_LIMIT, cases[i].taken, cases[i].made, cases[i].given);
		assert_error(ERR_DATA, cases[i].message, onnx_file_open(&file, path));
	}
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

/* Truncated anywhere, or with any bit flipped, a model is either read or refused, and nothing else happens. */
static void damaged_bytes(void **state)
{
	(void)state;
	struct buffer bytes = {0};
	struct onnx_file file;
	const char *path = test_path("damaged.onnx");
	int refused = 0, read = 0;
	assert_ok(file_read("tests/golden/small.onnx", 1 << 20, &bytes));
	for (size_t cut = 0; cut < bytes.size; cut++) {
		put_bytes(path, bytes.data, cut);
		if (onnx_file_open(&file, path) == OK)
			onnx_file_close(&file);
		else
			refused++;
	}
	assert_true(refused > (int)bytes.size / 2);
	for (size_t bit = 0; bit < 8 * bytes.size; bit += 7) {
		bytes.data[bit / 8] ^= (char)(1 << bit % 8);
		put_bytes(path, bytes.data, bytes.size);
		enum status status = onnx_file_open(&file, path);
		if (status == OK) {
			onnx_file_close(&file);
			read++;
		}
		assert_true(status == OK || status == ERR_DATA);
		bytes.data[bit / 8] ^= (char)(1 << bit % 8);
	}
	assert_true(read > 0);
	buffer_release(&bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(onnx_s_own_model),
		cmocka_unit_test(weights_beside_the_model),
		cmocka_unit_test(graphs_that_do_not_hang_together),
		cmocka_unit_test(damaged_bytes),
	};
	return cmocka_run_group_tests(tests, test_folder_make, test_folder_drop);
}
