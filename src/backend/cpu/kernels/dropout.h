/* Dropout's random numbers, as defined in backend/dropout.h, for many columns of a row at once. */
#ifndef BACKEND_CPU_KERNELS_DROPOUT_H
#define BACKEND_CPU_KERNELS_DROPOUT_H

#include "backend/cpu/kernels.h"
#include "backend/cpu/kernels/elements.h"

/* Bit c of `bits` is set if column c of the row is kept. Writes DROPOUT_BYTES(columns). */
INLINE void dropout_bits(uint64_t seed, uint32_t position, uint32_t site, uint32_t sample, uint32_t threshold, int64_t columns,
			 uint8_t *bits)
{
	for (int64_t c = 0; c < columns; c += 128)
		dropout_columns(seed, (uint32_t)(c / 8), position, site, sample, threshold, bits + c / 8);
}

INLINE void row_bits(const struct dropout_rows *d, int64_t row, int64_t columns)
{
	if (d->threshold)
		dropout_bits(d->seed, (uint32_t)d->positions[row], d->site, d->samples[row], d->threshold, columns, d->bits);
}

INLINE vector drop(const struct dropout_rows *d, vector x, int64_t column)
{
	return d->threshold ? keep_bits(x * vector_set(d->scale), d->bits, column) : x;
}

#endif
