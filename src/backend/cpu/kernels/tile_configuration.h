/* AMX's eight tiles, of 16 rows of 64 bytes unless there are fewer rows: 0-3 hold sums, 4 and 5 parts of the left operand, 6 and
 * 7 parts of the right one. Their state belongs to the thread: it is configured before a series of products, and released after
 * it, because held tiles cost 8 KiB at each context switch. */
#ifndef BACKEND_CPU_KERNELS_TILE_CONFIGURATION_H
#define BACKEND_CPU_KERNELS_TILE_CONFIGURATION_H

#include "backend/cpu/kernels/vector.h"

enum { TILE_ROW = 64 /* bytes */, TILE_ROWS_MOST = 16 };

/* The compiler does not know that tiles are loaded from memory: everything stored before this is there for them. */
INLINE void settle_stores(void)
{
	__asm__ volatile("" ::: "memory");
}

/* Sums of `upper` rows in tiles 0 and 1, with the left operand in 4, and of `lower` rows (may be 0) in 2 and 3, with 5. */
INLINE void configure_tiles(int64_t upper, int64_t lower)
{
	struct {
		uint8_t palette, start_row, reserved[14];
		uint16_t column_bytes[16];
		uint8_t rows[16];
	} tiles = {.palette = 1};
	const int64_t rows[8] = {upper, upper, lower, lower, upper, lower, TILE_ROWS_MOST, TILE_ROWS_MOST};
	for (int i = 0; i < 8; i++) {
		tiles.rows[i] = (uint8_t)rows[i];
		tiles.column_bytes[i] = rows[i] ? TILE_ROW : 0;
	}
	__asm__ volatile("" : : "r"(&tiles) : "memory");
	_tile_loadconfig(&tiles);
}

#endif
