/* The matrix instructions of a warp, outside kernels: neither are their accesses checked, nor does it take as long. */
#include "device_emulated.h"

namespace emulation
{

template <element TYPE, int K> void multiply(void *const lanes[32], unsigned, const void *)
{
	float a[16][K], b[K][TENSOR_LANES], c[16][TENSOR_LANES];
	int row, k, column;
	for (int lane = 0; lane < 32; lane++) {
		const fragments *f = static_cast<const fragments *>(lanes[lane]);
		for (int i = 0; i < 16 * K / 32; i++) {
			place_of_a(TYPE, lane, i, &row, &k);
			a[row][k] = element_value(TYPE, f->a, i);
		}
		for (int i = 0; i < 8 * K / 32; i++) {
			place_of_b(TYPE, lane, i, &k, &column);
			b[k][column] = element_value(TYPE, f->b, i);
		}
		for (int i = 0; i < 4; i++)
			c[lane / 4 + 8 * (i / 2)][lane % 4 * 2 + i % 2] = f->c[i];
	}
	/* As many products in one addition as on an A100: 8, or 4 for TF32. */
	constexpr int PRODUCTS = TYPE == TF32 ? 4 : 8;
	for (row = 0; row < 16; row++)
		for (int first = 0; first < K; first += PRODUCTS)
			tensor_core_add(c[row], &a[row][first], &b[first], PRODUCTS);
	for (int lane = 0; lane < 32; lane++)
		for (int i = 0; i < 4; i++)
			static_cast<fragments *>(lanes[lane])->c[i] = c[lane / 4 + 8 * (i / 2)][lane % 4 * 2 + i % 2];
}

template void multiply<BF16, 16>(void *const lanes[32], unsigned, const void *);
template void multiply<F16, 16>(void *const lanes[32], unsigned, const void *);
template void multiply<TF32, 8>(void *const lanes[32], unsigned, const void *);

} // namespace emulation
