/* Hashes pieces of a file. */
#include "base/file_sample.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/hash.h"

/* Weights of which an adapter changed a few, merged, differ in some of these places. */
#define SAMPLES 64
#define SAMPLE_BYTES 4096

uint64_t file_sample_hash(const char *path, const struct file_stamp *stamp)
{
	unsigned char bytes[SAMPLE_BYTES];
	uint64_t hash = 0;
	int64_t last = stamp->size > SAMPLE_BYTES ? stamp->size - SAMPLE_BYTES : 0;
	int file = stamp->inode != 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1; /* opening a pipe would wait */
	for (int i = 0; file >= 0 && i < SAMPLES; i++) {
		ssize_t count = pread(file, bytes, sizeof bytes, last * i / (SAMPLES - 1));
		hash = hash64_combine(hash, hash64(bytes, count > 0 ? (size_t)count : 0));
	}
	if (file >= 0)
		close(file);
	return hash;
}
