/* bzip2 on many cores. A bzip2 stream is a row of blocks of at most 900 kB, each with a mark of 48 bits
 * before it, at any bit; each can be decoded alone, as a stream of one block. So blocks are searched for,
 * decoded by helper threads, and given out in order. All checksums are checked: libbz2 checks each block's,
 * and those of a whole stream are put together here. Files of one stream and of many are the same to it.
 * Inside src/formats; others use stream.h. */
#ifndef FORMATS_BZIP2_BLOCKS_H
#define FORMATS_BZIP2_BLOCKS_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

struct bzip2_blocks;
/* `read` gives the next bytes of the packed file (*out_count = 0 at its end); `name` is for messages. */
MUST_USE enum status bzip2_blocks_open(struct bzip2_blocks **out, const char *name, int threads, void *context,
				       enum status (*read)(void *context, void *bytes, size_t capacity, size_t *out_count));
/* As stream_read(). */
MUST_USE enum status bzip2_blocks_read(struct bzip2_blocks *blocks, void *bytes, size_t capacity, size_t *out_count);
/* Bytes of the packed file whose text has been given out. */
int64_t bzip2_blocks_position(const struct bzip2_blocks *blocks);
void bzip2_blocks_close(struct bzip2_blocks *blocks); /* NULL is fine */

#endif
