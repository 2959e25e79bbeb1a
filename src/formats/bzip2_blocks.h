/* Parallel bzip2 decompression. A bzip2 stream is a sequence of blocks of at most 900 kB, each preceded by a 48-bit mark at any
 * bit position; each can be decoded on its own, as a stream of one block. So blocks are searched for, decoded by helper threads,
 * and returned in order. All checksums are verified: libbz2 checks that of each block, and that of the whole stream is combined
 * from them here. Files of one stream and of many are treated the same. Used only inside src/formats; others use stream.h. */
#ifndef FORMATS_BZIP2_BLOCKS_H
#define FORMATS_BZIP2_BLOCKS_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

struct bzip2_blocks;
/* `read` returns the next bytes of the compressed file (*out_count = 0 at its end); `name` is used in messages. */
MUST_USE enum status bzip2_blocks_open(struct bzip2_blocks **out, const char *name, int threads, void *context,
				       enum status (*read)(void *context, void *bytes, size_t capacity, size_t *out_count));
/* Like stream_read(). */
MUST_USE enum status bzip2_blocks_read(struct bzip2_blocks *blocks, void *bytes, size_t capacity, size_t *out_count);
/* Number of bytes of the compressed file whose contents have been returned. */
int64_t bzip2_blocks_position(const struct bzip2_blocks *blocks);
void bzip2_blocks_close(struct bzip2_blocks *blocks); /* NULL is allowed */

#endif
