/* Raw Snappy blocks (google/snappy, format_description.txt), which old LevelDB tables may be packed with. */
#ifndef FORMATS_SNAPPY_H
#define FORMATS_SNAPPY_H

#include <stdbool.h>
#include <stddef.h>

/* The unpacked size that a block promises, at most `limit`; false if it promises more or has no such number. */
bool snappy_size(const unsigned char *block, size_t size, size_t limit, size_t *out);
/* Unpacks into exactly `capacity` bytes, what snappy_size said. False for anything that is no such block. */
bool snappy_unpack(const unsigned char *block, size_t size, unsigned char *out, size_t capacity);

#endif
