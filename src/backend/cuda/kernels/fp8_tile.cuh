/* FP8 output of kernels that know a bound in advance, and tiles in shared memory through which rows become columns. */
#ifndef BACKEND_CUDA_KERNELS_FP8_TILE_CUH
#define BACKEND_CUDA_KERNELS_FP8_TILE_CUH

#include "backend/cuda/kernels/device.cuh"

/* Rows that one thread writes at a time to a column, and of which matrices have a multiple. */
constexpr int FP8_CHUNK = 16;
/* Bytes between the rows of a tile beyond its columns, so that accesses along a column, and to rows 16 apart, have few bank
 * conflicts. */
constexpr int FP8_PAD = 4;

DEVICE int64_t fp8_padded(int64_t rows)
{
	return (rows + FP8_CHUNK - 1) / FP8_CHUNK * FP8_CHUNK;
}

/* The factor of what a kernel rounds; one thread of the kernel stores it for the products that follow. */
DEVICE float fp8_output_scale(const struct kernel_fp8_output &out)
{
	float bound = out.factor * *out.a;
	if (out.b != nullptr)
		bound *= *out.b;
	if (out.add != nullptr)
		bound += *out.add;
	struct fp8_scale scale = fp8_scale_of(out.format, __float_as_uint(bound) & 0x7fffffffu);
	if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0) {
		*out.bound = bound;
		*out.scale = scale;
	}
	return scale.scale;
}

/* Rounds a block of eight into the tile and, unless it is NULL, into the matrix of rows. */
DEVICE void fp8_put_row(enum dtype format, float scale, const float v[BLOCK], unsigned char *tile, unsigned char *rows)
{
	uint2 bytes = {pack4_fp8(format, v[0] * scale, v[1] * scale, v[2] * scale, v[3] * scale),
		       pack4_fp8(format, v[4] * scale, v[5] * scale, v[6] * scale, v[7] * scale)};
	if (rows != nullptr)
		*reinterpret_cast<uint2 *>(rows) = bytes;
	uint32_t *place = reinterpret_cast<uint32_t *>(tile);
	place[0] = bytes.x;
	place[1] = bytes.y;
}

/* Writes a chunk of a column of the tile. */
DEVICE void fp8_put_column(const unsigned char *tile, int pitch, unsigned char *column)
{
	uint32_t words[FP8_CHUNK / 4];
#pragma unroll
	for (int i = 0; i < FP8_CHUNK / 4; i++) {
		const unsigned char *at = tile + 4 * i * pitch;
		words[i] = at[0] | (uint32_t)at[pitch] << 8 | (uint32_t)at[2 * pitch] << 16 | (uint32_t)at[3 * pitch] << 24;
	}
	store16(column, uint4{words[0], words[1], words[2], words[3]});
}

#endif
