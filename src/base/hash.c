/* CRC-32C by table or by the processor's instruction, and 64-bit content hashes. */
#include "base/hash.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>
#include "base/library_list.h"
#include "base/processor.h"

/* Slicing by eight: table[k][b] is the CRC of byte b followed by k zero bytes. */
static uint32_t table[8][256];
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static void table_fill(void)
{
	for (uint32_t byte = 0; byte < 256; byte++) {
		uint32_t crc = byte;
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78u : 0); /* Castagnoli's polynomial, reflected */
		table[0][byte] = crc;
	}
	for (int k = 1; k < 8; k++) {
		for (int byte = 0; byte < 256; byte++)
			table[k][byte] = table[k - 1][byte] >> 8 ^ table[0][table[k - 1][byte] & 255];
	}
}

uint32_t crc32c_portable(uint32_t crc, const void *bytes, size_t count)
{
	pthread_once(&table_once, table_fill);
	const unsigned char *p = bytes;
	crc = ~crc;
	for (; count >= 8; count -= 8, p += 8) {
		uint64_t word;
		memcpy(&word, p, 8);
		word ^= crc; /* little-endian, like everything here */
		crc = table[7][word & 255] ^ table[6][word >> 8 & 255] ^ table[5][word >> 16 & 255] ^ table[4][word >> 24 & 255] ^
		      table[3][word >> 32 & 255] ^ table[2][word >> 40 & 255] ^ table[1][word >> 48 & 255] ^ table[0][word >> 56];
	}
	for (; count; count--)
		crc = crc >> 8 ^ table[0][(crc ^ *p++) & 255];
	return ~crc;
}

uint32_t crc32c(uint32_t crc, const void *bytes, size_t count)
{
	crc32c_function *fast = processor_crc32c();
	return fast ? fast(crc, bytes, count) : crc32c_portable(crc, bytes, count);
}

uint32_t crc32c_masked(uint32_t crc)
{
	return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}

void base_libraries(struct library_list *list)
{
	char version[32];
	unsigned number = XXH_versionNumber(); /* 801 */
	snprintf(version, sizeof version, "%u.%u.%u", number / 10000, number / 100 % 100, number % 100);
	library_list_add(list, "xxHash", version);
}

uint64_t hash64(const void *bytes, size_t count)
{
	return XXH3_64bits(bytes, count);
}

uint64_t hash64_combine(uint64_t a, uint64_t b)
{
	uint64_t pair[2] = {a, b};
	return XXH3_64bits(pair, sizeof pair);
}
