/* ONNX models, with a file of weights beside them. */
#include "fuzz.h"
#include "formats/onnx_reader.h"

static const uint8_t data[64] = {0, 0, 128, 63};

/* A weight in the model, one beside it, an input, a node, an output. */
static const unsigned char seed[] = "\x08\x08\x12\x05"
				    "bertc\x42\x02\x10\x11\x3a\x69"
				    "\x2a\x11\x08\x02\x10\x01\x42\x01w\x4a\x08\0\0\x80\x3f\0\0\0\x40"
				    "\x2a\x2d\x08\x01\x10\x01\x42\x01v\x6a\x1a\x0a\x08location\x12\x0e"
				    "fuzz.onnx_data\x6a\x0b\x0a\x06offset\x12\x01\x34\x70\x01"
				    "\x5a\x0e\x0a\x01x\x12\x09\x0a\x07\x08\x01\x12\x03\x0a\x01\x62"
				    "\x0a\x0b\x0a\x01x\x0a\x01w\x12\x01y\x22\0"
				    "\x62\x03\x0a\x01y";

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	fuzz_add_seed(*argv, seed, sizeof seed - 1);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	struct onnx_file file;
	fuzz_file("fuzz.onnx_data", data, sizeof data);
	if (onnx_file_open(&file, fuzz_file("fuzz.onnx", bytes, count)) != OK)
		return 0;
	for (int64_t i = 0; i < file.count; i++) {
		const struct stored_tensor *tensor = &file.tensors[i];
		float value;
		BUG_IF(tensor->count < 0);
		if (tensor->data && stored_tensor_is_real(tensor) && tensor->count > 0)
			BUG_IF(stored_tensor_read(tensor, tensor->count - 1, 1, &value) != OK);
	}
	for (int64_t i = 0; i < file.input_count; i++)
		BUG_IF(!file.inputs[i].name || !file.inputs[i].shape);
	onnx_file_close(&file);
	return 0;
}
