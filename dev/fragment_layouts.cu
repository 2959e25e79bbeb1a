/* Compares tests/cuda/fragment_layouts.h with CUTLASS's headers, element by element. Run
 *
 *   pip download --no-deps nvidia-cutlass==4.2.0.0
 *
 * unpack it, and then, in the root of the tree,
 *
 *   nvcc -std=c++17 -arch=sm_90 -I CUTLASS/cutlass_library/source/include -I tests/cuda -o layouts dev/fragment_layouts.cu */
#include <cstdio>

#include <cute/atom/copy_traits_sm75.hpp>
#include <cute/atom/mma_traits_sm75.hpp>
#include <cute/atom/mma_traits_sm80.hpp>

#include "fragment_layouts.h"

static int failed;

/* CUTLASS's layouts count in elements of `bits` bits; those of ldmatrix count in single bits, of which the first of each
 * element is compared. */
template <typename Layout> static void compare(const char *name, Layout theirs, const fragment_layout &ours, int bits)
{
	int values = cute::size<1>(theirs) / bits, wrong = 0;
	for (int lane = 0; lane < 32; lane++)
		for (int i = 0; i < values; i++)
			wrong += theirs(lane, i * bits) != fragment_place(&ours, lane, i) * bits;
	bool whole = cute::size<0>(theirs) == 32 && values > 1;
	std::printf("%-36s 32 lanes x %d elements: %s\n", name, values, wrong == 0 && whole ? "equal" : "DIFFERENT");
	failed |= wrong != 0 || !whole;
}

template <typename Instruction>
static void compare_mma(const char *name, const fragment_layout &a, const fragment_layout &b, const fragment_layout &c)
{
	using traits = cute::MMA_Traits<Instruction>;
	std::printf("%s\n", name);
	compare("  a", typename traits::ALayout{}, a, 1);
	compare("  b", typename traits::BLayout{}, b, 1);
	compare("  c", typename traits::CLayout{}, c, 1);
}

template <typename Instruction> static void compare_load(const char *name, const fragment_layout &registers, int matrices)
{
	using traits = cute::Copy_Traits<Instruction>;
	std::printf("%s\n", name);
	compare("  registers", typename traits::DstLayout{}, registers, 16);
	/* Lane i supplies the address of place 8 i; lanes beyond the rows supply none. */
	const fragment_layout rows = {{8 * matrices, 4 / matrices}, {8, 0}, {8, 1, 1}, {1, 0, 0}};
	compare("  addresses", typename traits::SrcLayout{}, rows, 16);
}

int main()
{
	using namespace cute;
	compare_mma<SM80_16x8x16_F32BF16BF16F32_TN>("mma m16n8k16 bf16", FRAGMENT_A_16X8X16, FRAGMENT_B_16X8X16, FRAGMENT_C_16X8);
	compare_mma<SM80_16x8x16_F32F16F16F32_TN>("mma m16n8k16 f16", FRAGMENT_A_16X8X16, FRAGMENT_B_16X8X16, FRAGMENT_C_16X8);
	compare_mma<SM75_16x8x8_F32F16F16F32_TN>("mma m16n8k8 f16", FRAGMENT_A_16X8X8, FRAGMENT_B_16X8X8, FRAGMENT_C_16X8);
	compare_mma<SM80_16x8x8_F32TF32TF32F32_TN>("mma m16n8k8 tf32", FRAGMENT_A_16X8X8_TF32, FRAGMENT_B_16X8X8_TF32,
						   FRAGMENT_C_16X8);
	compare_load<SM75_U32x2_LDSM_N>("ldmatrix x2", FRAGMENT_LOAD, 2);
	compare_load<SM75_U32x4_LDSM_N>("ldmatrix x4", FRAGMENT_LOAD, 4);
	compare_load<SM75_U16x4_LDSM_T>("ldmatrix x2 trans", FRAGMENT_LOAD_TRANSPOSED, 2);
	compare_load<SM75_U16x8_LDSM_T>("ldmatrix x4 trans", FRAGMENT_LOAD_TRANSPOSED, 4);
	return failed;
}
