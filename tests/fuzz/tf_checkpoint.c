/* TensorFlow's text file `checkpoint`, which names the newest checkpoint of a folder. */
#include "formats/weights_file.h"
#include "fuzz.h"

FUZZ_SEEDS(FUZZ_SEED("model_checkpoint_path: \"model.ckpt\"\nall_model_checkpoint_paths: \"model.ckpt\"\n"),
	   FUZZ_SEED("model_checkpoint_path: \"/a/b/..\""), FUZZ_SEED("model_checkpoint_path: \"\""))

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	char path[PATH_BYTES];
	fuzz_file("model.ckpt.index", NULL, 0);
	fuzz_file("checkpoint", bytes, count);
	BUG_IF(weights_file_find(fuzz_folder, path) != OK || strncmp(path, fuzz_folder, strlen(fuzz_folder)) != 0);
	return 0;
}
