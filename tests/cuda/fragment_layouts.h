/* Which element of a matrix a lane of a warp holds, for each matrix instruction of kernels/device.cuh, taken from NVIDIA's
 * CUTLASS 4.2 (include/cute/atom: mma_traits_sm75.hpp, mma_traits_sm80.hpp, copy_traits_sm75.hpp), whose kernels run on
 * GPUs, rather than from our reading of the PTX manual. dev/fragment_layouts.cu compares these numbers with CUTLASS's
 * headers. */
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

/* ldmatrix: place = column + 8 row + 64 matrix, in elements of 16 bits; lane i supplies the address of place 8 i. */
static const struct fragment_layout FRAGMENT_LOAD = {{4, 8}, {2, 8}, {2, 4, 1}, {1, 64, 0}};
static const struct fragment_layout FRAGMENT_LOAD_TRANSPOSED = {{4, 8}, {16, 1}, {2, 4, 1}, {8, 64, 0}};

#endif
