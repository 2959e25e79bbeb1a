/* Shared by all fuzz targets. A target is one file: the function that libFuzzer calls with bytes, and a few seeds, small
 * well-formed inputs from which it starts. `make fuzz` builds and runs all targets; tests/fuzz/run.sh says where things
 * go, which words inputs are composed of (*.dict) and how long inputs are. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <fcntl.h>
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
#define FUZZ_SEED(literal)                                                                                                       \
	{                                                                                                                        \
		literal, sizeof literal - 1                                                                                      \
	}

/* Writes one more seed into the first folder among the program's arguments, which libFuzzer then reads. */
static inline void fuzz_add_seed(char **arguments, const void *bytes, size_t size)
{
	static int number;
	const char *folder = NULL;
	char path[1024];
	log_level = LOG_QUIET;
	for (char **argument = arguments + 1; *argument && !folder; argument++)
		folder = **argument == '-' ? NULL : *argument;
	snprintf(path, sizeof path, "%s/seed-%02d", folder ? folder : "", number++);
	FILE *file = folder ? fopen(path, "wb") : NULL;
	if (!file)
		return; /* an input to replay, not a folder */
	fwrite(bytes, 1, size, file);
	fclose(file);
}

static inline void fuzz_write_seeds(char **arguments, const struct fuzz_seed *seeds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		fuzz_add_seed(arguments, seeds[i].bytes, seeds[i].size);
}

/* Adds a file of the repository as a seed, truncated to 64 KiB, for inputs too long for a literal. */
static inline void fuzz_seed_file(char **arguments, const char *path)
{
	static char bytes[1 << 16];
	FILE *file = fopen(path, "rb");
	if (!file)
		return;
	fuzz_add_seed(arguments, bytes, fread(bytes, 1, sizeof bytes, file));
	fclose(file);
}

/* The seeds of a target that needs only literals. */
#define FUZZ_SEEDS(...)                                                                                                          \
	static const struct fuzz_seed fuzz_seeds[] = {__VA_ARGS__};                                                              \
	int LLVMFuzzerInitialize(int *argc, char ***argv)                                                                        \
	{                                                                                                                        \
		(void)argc;                                                                                                      \
		fuzz_write_seeds(*argv, fuzz_seeds, sizeof fuzz_seeds / sizeof *fuzz_seeds);                                     \
		return 0;                                                                                                        \
	}

/* A copy in a block of exactly this size, so that reading one byte too many is noticed. */
static inline char *fuzz_copy(const uint8_t *bytes, size_t count)
{
	char *copy = malloc(count ? count : 1);
	BUG_IF(!copy);
	memcpy(copy, bytes, count);
	return copy;
}

/* Files in memory, for readers that take paths. They lie in a folder of this process and stay open, so that replacing
 * their bytes takes only two system calls; the folder is removed at exit, and run.sh removes what a crashed target leaves. */
#define FUZZ_FILES_MAX 8

struct fuzz_open_file {
	char path[256];
	int descriptor;
};
static struct fuzz_open_file fuzz_files[FUZZ_FILES_MAX];
static char fuzz_folder[200];

static inline void fuzz_remove_files(void)
{
	for (int i = 0; i < FUZZ_FILES_MAX && fuzz_files[i].path[0]; i++)
		unlink(fuzz_files[i].path);
	rmdir(fuzz_folder);
}

/* The file `name` with these bytes; the same path each time. */
static inline const char *fuzz_file(const char *name, const uint8_t *bytes, size_t count)
{
	if (!fuzz_folder[0]) {
		const char *parent = getenv("FUZZ_SCRATCH");
		snprintf(fuzz_folder, sizeof fuzz_folder, "%s/bertc-fuzz-XXXXXX", parent ? parent : "/dev/shm");
		BUG_IF(!mkdtemp(fuzz_folder) || atexit(fuzz_remove_files) != 0);
	}
	int i = 0;
	while (i < FUZZ_FILES_MAX && fuzz_files[i].path[0] && strcmp(strrchr(fuzz_files[i].path, '/') + 1, name) != 0)
		i++;
	BUG_IF(i == FUZZ_FILES_MAX);
	struct fuzz_open_file *file = &fuzz_files[i];
	if (!file->path[0]) {
		snprintf(file->path, sizeof file->path, "%s/%s", fuzz_folder, name);
		file->descriptor = open(file->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		BUG_IF(file->descriptor < 0);
	}
	BUG_IF(pwrite(file->descriptor, bytes, count, 0) != (ssize_t)count || ftruncate(file->descriptor, (off_t)count) != 0);
	return file->path;
}

#endif
