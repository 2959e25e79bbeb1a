/* What fuzz targets share. A target is one file: the function libFuzzer calls with bytes, and a few seeds,
 * small inputs of the right shape from which it begins. `make fuzz` builds and runs them all;
 * tests/fuzz/run.sh says where things go. A file NAME.dict beside it holds words that inputs are made of. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/error.h"
#include "base/log.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);
int LLVMFuzzerInitialize(int *argc, char ***argv);

struct fuzz_seed {
	const void *bytes;
	size_t size;
};
/* A seed from a string literal, which may hold NULs. */
#define FUZZ_SEED(literal)                                                                                   \
	{                                                                                                    \
		literal, sizeof(literal) - 1                                                                 \
	}

/* Writes the seeds into the first folder among the arguments, from which libFuzzer then reads. Each target
 * calls this from its LLVMFuzzerInitialize, through FUZZ_SEEDS. */
static inline void fuzz_write_seeds(char **arguments, const struct fuzz_seed *seeds, size_t count)
{
	log_level = LOG_QUIET;
	const char *folder = NULL;
	for (char **argument = arguments + 1; *argument && !folder; argument++)
		folder = **argument == '-' ? NULL : *argument;
	for (size_t i = 0; folder && i < count; i++) {
		char path[1024];
		snprintf(path, sizeof path, "%s/seed-%02zu", folder, i);
		FILE *file = fopen(path, "wb");
		if (!file)
			continue; /* an input to replay, not a folder */
		fwrite(seeds[i].bytes, 1, seeds[i].size, file);
		fclose(file);
	}
}

/* A file of the repository as one more seed, cut at 64 KiB, for inputs too long for a literal. */
static inline void fuzz_seed_file(char **arguments, const char *path)
{
	static char bytes[1 << 16];
	FILE *file = fopen(path, "rb");
	if (!file)
		return;
	struct fuzz_seed seed = {bytes, fread(bytes, 1, sizeof bytes, file)};
	fclose(file);
	const char *folder = NULL;
	for (char **argument = arguments + 1; *argument && !folder; argument++)
		folder = **argument == '-' ? NULL : *argument;
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	char target[1024];
	snprintf(target, sizeof target, "%s/%s", folder ? folder : "", name);
	file = folder ? fopen(target, "wb") : NULL;
	if (!file)
		return;
	fwrite(seed.bytes, 1, seed.size, file);
	fclose(file);
}

#define FUZZ_SEEDS(...)                                                                                      \
	static const struct fuzz_seed fuzz_seeds[] = {__VA_ARGS__};                                          \
	int LLVMFuzzerInitialize(int *argc, char ***argv)                                                    \
	{                                                                                                    \
		(void)argc;                                                                                  \
		fuzz_write_seeds(*argv, fuzz_seeds, sizeof fuzz_seeds / sizeof *fuzz_seeds);                 \
		return 0;                                                                                    \
	}

/* A copy of exactly this size in a block of its own, so that reading one byte too many is seen. */
static inline char *fuzz_copy(const uint8_t *bytes, size_t count)
{
	char *copy = malloc(count ? count : 1);
	BUG_IF(!copy);
	memcpy(copy, bytes, count);
	return copy;
}

/* A file in memory with these bytes, for readers that take paths; the same path each time. */
static inline const char *fuzz_file(const char *name, const uint8_t *bytes, size_t count)
{
	static char path[256];
	snprintf(path, sizeof path, "/dev/shm/bertc-fuzz-%d-%s", (int)getpid(), name);
	FILE *file = fopen(path, "wb");
	BUG_IF(!file || fwrite(bytes, 1, count, file) != count || fclose(file) != 0);
	return path;
}

#endif
