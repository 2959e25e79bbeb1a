/* Unaligned little-endian numbers, which most file formats use. */
#ifndef FORMATS_LITTLE_ENDIAN_H
#define FORMATS_LITTLE_ENDIAN_H

#include <stdint.h>

static inline uint16_t read_le16(const unsigned char *at)
{
	return (uint16_t)(at[0] | at[1] << 8);
}

static inline uint32_t read_le32(const unsigned char *at)
{
	return (uint32_t)read_le16(at) | (uint32_t)read_le16(at + 2) << 16;
}

static inline uint64_t read_le64(const unsigned char *at)
{
	return (uint64_t)read_le32(at) | (uint64_t)read_le32(at + 4) << 32;
}

#endif
