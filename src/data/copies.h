/* Finds which hashes of a list repeat an earlier one; the list may be larger than memory. */
#ifndef DATA_COPIES_H
#define DATA_COPIES_H

#include <stdint.h>
#include "base/error.h"

/* Memory for the search, in addition to one bit per entry. */
#define COPIES_MEMORY ((int64_t)256 << 20)

/* `path` holds `count` hashes (uint64_t). Sets bit i of the map (map[i / 8] >> i % 8; released with free()) where hash i also
 * occurs before i, and *out_found to the number of bits set. After a failure the map is NULL. Reads the file once for every
 * `memory` / 16 hashes; each pass sorts the hashes in one range of values. */
MUST_USE enum status copies_find(const char *path, int64_t count, int64_t memory, uint8_t **out_map, int64_t *out_found);

#endif
