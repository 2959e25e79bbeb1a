/* Which of a list of hashes are copies of an earlier one, for lists larger than memory. */
#ifndef DATA_COPIES_H
#define DATA_COPIES_H

#include <stdint.h>
#include "base/error.h"

/* Memory for the search, beside one bit an entry. */
#define COPIES_MEMORY ((int64_t)256 << 20)

/* `path` holds `count` hashes (uint64_t). Sets bit i of the map (map[i / 8] >> i % 8; released by free) where hash i
 * occurred before i; their number into *out_found. After a failure the map is NULL. Reads the file once for every `memory` / 16 hashes: each time those
 * of one range of values are sorted. */
MUST_USE enum status copies_find(const char *path, int64_t count, int64_t memory, uint8_t **out_map, int64_t *out_found);

#endif
