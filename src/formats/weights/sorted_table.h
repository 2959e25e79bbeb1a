/* LevelDB's sorted string table, the format of a TensorFlow checkpoint's index: blocks of prefix-compressed keys, each with a
 * checksum; an index of the blocks; and a footer. Blocks must not be compressed; those of checkpoints are not. */
#ifndef FORMATS_WEIGHTS_SORTED_TABLE_H
#define FORMATS_WEIGHTS_SORTED_TABLE_H

#include <stddef.h>
#include <stdint.h>
#include "base/buffer.h"
#include "base/error.h"
#include "formats/varint.h"

/* Called for each entry in the order of the keys; key and value are valid during the call. `offset` is where the entry's
 * block begins. */
typedef enum status table_visit(void *context, const char *key, size_t key_size, struct byte_range value, uint64_t offset);
/* Reads the table `bytes` of file `path`. Any damage is ERR_DATA with the offset; if `visit` returns a status other than OK,
 * reading ends with it. */
MUST_USE enum status sorted_table_read(const char *path, const unsigned char *bytes, size_t size, table_visit *visit,
				       void *context);

/* Writes a table. Zero-initialize; entries must be added in ascending order of their keys, without duplicates. Blocks have
 * TensorFlow's size of 256 KiB; every sixteenth key of a block is stored in full. */
struct sorted_table_writer {
	struct buffer out; /* the table; the caller releases it */
	struct buffer block, restarts, index, last, index_last;
	int64_t in_block;
};
void sorted_table_add(struct sorted_table_writer *writer, const char *key, const void *value, size_t size);
/* Ends the table: writer->out is complete, and everything else is released. */
MUST_USE enum status sorted_table_finish(struct sorted_table_writer *writer);

#endif
