/* Which element of a matrix a lane of a warp holds, for each matrix instruction of kernels/device.cuh, taken from NVIDIA's
 * CUTLASS 4.2 (include/cute/atom: mma_traits_sm75.hpp, mma_traits_sm80.hpp, mma_traits_sm90_gmma.hpp, copy_traits_sm75.hpp),
 * whose kernels run on GPUs, rather than from our reading of the PTX manual. dev/fragment_layouts.cu compares these numbers with
 * CUTLASS's headers. */
#ifndef FRAGMENT_LAYOUTS_H
#define FRAGMENT_LAYOUTS_H

/* Mixed radix: the first digit varies fastest. Unused digits have a size of 1. */
struct fragment_layout {
	int lanes[2], lane_strides[2];   /* digits of a lane's number */
	int values[3], value_strides[3]; /* digits of the number of an element that the lane holds, in the
					    order of registers */
};

static inline int fragment_place(const struct fragment_layout *l, int lane, int value)
{
	int place = lane % l->lanes[0] * l->lane_strides[0] + lane / l->lanes[0] * l->lane_strides[1];
	for (int i = 0; i < 3; i++) {
		place += value % l->values[i] * l->value_strides[i];
		value /= l->values[i];
	}
	return place;
}

/* a: place = row + 16 k; b: place = column + 8 k; c: place = row + 16 column. */
static const struct fragment_layout FRAGMENT_A_16X8X16 = {{4, 8}, {32, 1}, {2, 2, 2}, {16, 8, 128}};
static const struct fragment_layout FRAGMENT_B_16X8X16 = {{4, 8}, {16, 1}, {2, 2, 1}, {8, 64, 0}};
static const struct fragment_layout FRAGMENT_A_16X8X8 = {{4, 8}, {32, 1}, {2, 2, 1}, {16, 8, 0}};
static const struct fragment_layout FRAGMENT_B_16X8X8 = {{4, 8}, {16, 1}, {2, 1, 1}, {8, 0, 0}};
static const struct fragment_layout FRAGMENT_A_16X8X8_TF32 = {{4, 8}, {16, 1}, {2, 2, 1}, {8, 64, 0}};
static const struct fragment_layout FRAGMENT_B_16X8X8_TF32 = {{4, 8}, {8, 1}, {2, 1, 1}, {32, 0, 0}};
static const struct fragment_layout FRAGMENT_C_16X8 = {{4, 8}, {32, 1}, {2, 2, 1}, {16, 8, 0}};

/* wgmma: the same places for 64 rows; each of the four warps is 16 rows further down than the one before. */
enum { FRAGMENT_WARP_ROWS = 16 };
static const struct fragment_layout FRAGMENT_A_64X16 = {{4, 8}, {128, 1}, {2, 2, 2}, {64, 8, 512}};
static const struct fragment_layout FRAGMENT_C_64X64 = {{4, 8}, {128, 1}, {2, 2, 8}, {64, 8, 512}};

/* Its tiles of rows of 64 elements of 16 bits, with the swizzle of 128 bytes, for operands whose rows are a's rows or b's
 * columns (K-major) and for those whose rows are k (MN-major): the byte at which an element lies. */
static inline int fragment_tile_place(int row, int column)
{
	int byte = row * 128 + column * 2;
	return byte ^ (byte >> 3 & 0x70);
}

/* The descriptor of such a tile of 64 rows at address 0, and what is added to it to go on by 16 columns, or by 16 rows. */
#define FRAGMENT_TILE_DESCRIPTOR 0x4000004000010000ull
enum { FRAGMENT_TILE_COLUMNS_16 = 2, FRAGMENT_TILE_ROWS_16 = 128 };

/* ldmatrix: place = column + 8 row + 64 matrix, in elements of 16 bits; lane i supplies the address of place 8 i. */
static const struct fragment_layout FRAGMENT_LOAD = {{4, 8}, {2, 8}, {2, 4, 1}, {1, 64, 0}};
static const struct fragment_layout FRAGMENT_LOAD_TRANSPOSED = {{4, 8}, {16, 1}, {2, 4, 1}, {8, 64, 0}};

#endif
