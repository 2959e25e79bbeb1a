/* The algorithms that were chosen on this machine, in a file that outlives the run: a line a product,
 *   rows columns depth ... = 16 hexadecimal digits, eight times
 * in BERTC_CACHE, else XDG_CACHE_HOME/bertc, else ~/.cache/bertc; of users without a home, as in many containers, in a folder of
 * their own below /var/tmp. A file that cannot be read or written costs the choice,
 * never the run. */
#ifndef BACKEND_CUDA_GEMM_CACHE_H
#define BACKEND_CUDA_GEMM_CACHE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/buffer.h"

/* Of the longest key, its end included. */
#define KEY_BYTES 256

struct gemm_cache {
	char path[1024]; /* empty: no file */
	struct buffer text;
};

/* `name` tells GPU and library: "NVIDIA H100 80GB HBM3, cuBLASLt 13.1.0". */
void gemm_cache_open(struct gemm_cache *cache, const char *name);
/* Reads the line of `key`, the first if there are several; appends one. */
bool gemm_line_find(const struct buffer *lines, const char *key, uint64_t out_algorithm[8]);
void gemm_line_add(struct buffer *lines, const char *key, const uint64_t algorithm[8]);
/* Appends the lines whose keys `lines` does not have yet. */
void gemm_lines_merge(struct buffer *lines, const char *more);
/* Keeps a choice of this run, unless the file has one. */
void gemm_cache_add(struct gemm_cache *cache, const char *key, const uint64_t algorithm[8]);
void gemm_cache_close(struct gemm_cache *cache);

#endif
