/* Checksums and hashes: CRC-32C for files (in hardware where available), XXH3 (libxxhash) for content. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* CRC-32C (Castagnoli); start with 0; crc32c(0, "123456789", 9) == 0xE3069283. */
uint32_t crc32c(uint32_t crc, const void *bytes, size_t count);
/* The same using only tables: what crc32c does where the processor has no instruction for it. */
uint32_t crc32c_portable(uint32_t crc, const void *bytes, size_t count);
/* Masks a CRC as TFRecord does. */
uint32_t crc32c_masked(uint32_t crc);

/* 64-bit content hash (XXH3 with seed 0): stable across machines and versions. */
uint64_t hash64(const void *bytes, size_t count);
uint64_t hash64_combine(uint64_t a, uint64_t b);

#endif
