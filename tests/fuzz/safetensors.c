/* safetensors files, and indices of several files (inputs that begin with '{'), which may name any file. */
#include "fuzz.h"
#include "formats/safetensors.h"
#include "formats/weights_file.h"

#define HEADER_54 "\x36\0\0\0\0\0\0\0{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}"

static const struct fuzz_seed seeds[] = {
	FUZZ_SEED(HEADER_54 "\0\0\x80?"),
	FUZZ_SEED("\x20\0\0\0\0\0\0\0{\"__metadata__\":{\"format\":\"pt\"}}"),
	FUZZ_SEED("\2\0\0\0\0\0\0\0{}"),
	FUZZ_SEED("{\"metadata\":{\"total_size\":1},\"weight_map\":{\"a\":\"b.safetensors\"}}"),
	FUZZ_SEED("{\"weight_map\":{\"a\":\"../b\"}}"),
	FUZZ_SEED("{\"weight_map\":{\"a\":\"part.safetensors\"}}"),
	FUZZ_SEED("\x9c\0\0\0\0\0\0\0{\"__metadata__\":{\"format\":\"pt\"},\"a\":{\"dtype\":\"F64\",\"shape\":[1],\"data_"
		  "offsets\":[0,8]},"
		  "\"b\":{\"dtype\":\"BF16\",\"shape\":[1,2],\"data_offsets\":[8,12]}}      "
		  "abcdefghijkl"),
	FUZZ_SEED("\x6e\0\0\0\0\0\0\0{\"c\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[0,4]},"
		  "\"d\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[4,12]}}  "
		  "abcdefghijkl"),
};

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	fuzz_write_seeds(*argv, seeds, sizeof seeds / sizeof *seeds);
	fuzz_seed_file(*argv, "tests/golden/bert_tiny.safetensors");
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	if (count > 0 && bytes[0] == '{') {
		struct weights_file file;
		fuzz_file("part.safetensors", (const uint8_t *)seeds[0].bytes, seeds[0].size);
		if (weights_file_open(&file, fuzz_file("model.safetensors.index.json", bytes, count)) == OK)
			weights_file_close(&file);
		return 0;
	}
	struct safetensors file;
	if (safetensors_open(&file, fuzz_file("safetensors", bytes, count)) != OK)
		return 0;
	for (int64_t i = 0; i < file.count; i++) {
		const struct safetensors_entry *entry = &file.entries[i];
		BUG_IF(safetensors_find(&file, entry->name) == NULL);
		if (entry->count > 4096)
			continue;
		float *values = malloc((size_t)entry->count * sizeof *values + 1);
		BUG_IF(!values || safetensors_to_float(entry, "fuzz", values) != OK);
		free(values);
	}
	safetensors_close(&file);
	return 0;
}
