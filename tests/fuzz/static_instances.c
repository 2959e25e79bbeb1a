/* Files of static instances. */
#include "data/pretraining/static_instances.h"
#include "data/pretraining/instance_files.h"
#include "fuzz.h"

#define MOST (1 << 16)

/* A valid file of three instances as a seed. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	struct static_writer *writer;
	struct instance instance;
	static char seed[4096];
	log_level = LOG_QUIET;
	const char *path = fuzz_file("seed", NULL, 0);
	BUG_IF(instance_create(&instance, 16, 4) != OK || static_writer_open(&writer, path) != OK);
	for (int k = 0; k < 3; k++) {
		instance.length = 6 + k;
		for (int32_t i = 0; i < instance.length; i++) {
			instance.ids[i] = k == 1 ? 70000 : i;
			instance.types[i] = k == 2 ? i % 2 : i > 3;
		}
		instance.prediction_count = 2;
		instance.prediction_positions[1] = 3;
		instance.prediction_weights[0] = k == 2 ? 0.5f : 1;
		instance.prediction_weights[1] = 1;
		instance.next_label = k - 1;
		BUG_IF(static_writer_add(writer, &instance) != OK);
	}
	BUG_IF(static_writer_commit(writer, 0) != OK);
	instance_release(&instance);
	FILE *file = fopen(path, "rb");
	BUG_IF(file == NULL);
	size_t size = fread(seed, 1, sizeof seed, file);
	fclose(file);
	fuzz_write_seeds(*argv, &(struct fuzz_seed){seed, size}, 1);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	struct static_file file;
	const char *path = fuzz_file("instances", bytes, count);
	if (static_file_open(&file, path) != OK)
		return 0;
	struct instance instance;
	if (file.summary.max_length <= MOST) {
		BUG_IF(instance_create(&instance, file.summary.max_length, file.summary.max_predictions) != OK);
		for (int64_t i = 0; i < file.summary.count; i++) {
			int32_t length, predictions;
			static_file_sizes(&file, i, &length, &predictions);
			if (static_file_read(&file, i, 100000, &instance) == OK)
				BUG_IF(instance.length != length || instance.prediction_count != predictions);
		}
		instance_release(&instance);
	}
	static_file_close(&file);
	return 0;
}
