/* The algorithms chosen on this machine, in a file that outlives the run, one line per product:
 *   rows columns depth ... = 16 hexadecimal digits, eight times
 * The file is in BERTC_CACHE, else XDG_CACHE_HOME/bertc, else ~/.cache/bertc; for users without a home directory, as in many
 * containers, in a folder of their own under /var/tmp. If the file cannot be read or written, the choice is lost but the run
 * goes on. */
#ifndef BACKEND_CUDA_GEMM_CACHE_H
#define BACKEND_CUDA_GEMM_CACHE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/buffer.h"

/* Size of the longest key, including its terminator. */
#define KEY_BYTES 256

struct gemm_cache {
	char path[1024]; /* empty: no file */
	struct buffer text;
};

/* `name` identifies GPU and library: "NVIDIA H100 80GB HBM3, cuBLASLt 13.1.0". */
void gemm_cache_open(struct gemm_cache *cache, const char *name);
/* Finds the line of `key` (the first, if there are several); appends a line. */
bool gemm_line_find(const struct buffer *lines, const char *key, uint64_t out_algorithm[8]);
void gemm_line_add(struct buffer *lines, const char *key, const uint64_t algorithm[8]);
/* Appends the lines whose keys are not in `lines` yet. */
void gemm_lines_merge(struct buffer *lines, const char *more);
/* Stores a choice of this run, unless the file already has one for the key. If another process has stored one since the file
 * was opened, `algorithm` becomes that one: ranks that share the file compute alike, and a later run as this one. */
void gemm_cache_add(struct gemm_cache *cache, const char *key, uint64_t algorithm[8]);
void gemm_cache_close(struct gemm_cache *cache);

#endif
