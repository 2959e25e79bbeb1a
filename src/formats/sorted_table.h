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

/* Writing one. Zero-initialise; entries come in the order of their keys, each greater than the one before. Blocks have the size
 * of TensorFlow's, 256 KiB; every sixteenth key of a block stands in full. */
struct sorted_table_writer {
	struct buffer out; /* the table; the caller releases it */
	struct buffer block, restarts, index, last, index_last;
	int64_t in_block;
};
void sorted_table_add(struct sorted_table_writer *writer, const char *key, const void *value, size_t size);
/* Ends the table: writer->out is complete, all else released. */
MUST_USE enum status sorted_table_finish(struct sorted_table_writer *writer);

#endif
