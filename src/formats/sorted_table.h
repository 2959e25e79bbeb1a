/* LevelDB's sorted string table, the form of a TensorFlow checkpoint's index: blocks of keys that share beginnings, each
 * with a checksum, an index of blocks, a footer. Blocks must be raw, as those of checkpoints are. */
#ifndef FORMATS_SORTED_TABLE_H
#define FORMATS_SORTED_TABLE_H

#include <stddef.h>
#include <stdint.h>
#include "base/buffer.h"
#include "base/error.h"
#include "formats/varint.h"

/* Called for each entry in the order of keys; both are valid during the call. `offset` is that of the entry's block. */
typedef enum status table_visit(void *context, const char *key, size_t key_size, struct byte_range value, uint64_t offset);
/* Reads the table `bytes` of file `path`. Damage of any kind is ERR_DATA with the offset; a status other than OK of
 * `visit` ends it. */
MUST_USE enum status sorted_table_read(const char *path, const unsigned char *bytes, size_t size, table_visit *visit,
				       void *context);

#endif
