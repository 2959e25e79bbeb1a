/* Constants of the three files of a token shard, shared by reader and writer (docs/formats.md). */
#ifndef DATA_SHARD_FORMAT_H
#define DATA_SHARD_FORMAT_H

#include "base/error.h"

/* Shards are little-endian and are read in place. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "token shards are mapped as little-endian numbers");

/* .idx: magic (9 bytes with both NULs), u64 version, u8 type of the ids, u64 sentences, u64 document ends. */
static const char INDEX_MAGIC[9] = {'M', 'M', 'I', 'D', 'I', 'D', 'X', 0, 0};
#define INDEX_VERSION 1
#define INDEX_HEADER_BYTES 34
#define DTYPE_INT32 4
#define DTYPE_UINT16 8

#define DESCRIPTION_FORMAT "bertc token shard"
#define DESCRIPTION_VERSION 1
#define DESCRIPTION_BYTES_MAX (1 << 20)

/* Writes prefix + suffix into out (a char[PATH_BYTES]). */
MUST_USE enum status shard_path(char *out, const char *prefix, const char *suffix);

#endif
