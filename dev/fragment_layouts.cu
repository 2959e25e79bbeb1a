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
#include <cute/atom/mma_traits_sm90_gmma.hpp>
#include <cute/tensor.hpp>

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

static void report(const char *name, int wrong)
{
	std::printf("%-57s: %s\n", name, wrong == 0 ? "equal" : "DIFFERENT");
	failed |= wrong != 0;
}

template <typename Layout> static int wrong_in_group(Layout theirs, const fragment_layout &ours)
{
	int wrong = cute::size<0>(theirs) != 128;
	for (int thread = 0; thread < 128; thread++)
		for (int i = 0; i < cute::size<1>(theirs); i++)
			wrong += theirs(thread, i) != fragment_place(&ours, thread % 32, i) + thread / 32 * FRAGMENT_WARP_ROWS;
	return wrong;
}

/* Tiles of (outer, k), and descriptors of their first 16 k and of the step to the next 16. On the host, CUTLASS complains that
 * it cannot know the address of shared memory, and takes it for 0. */
template <cute::SM90::GMMA::Major MAJOR, typename Atom> static void compare_tile(const char *name, Atom atom)
{
	using namespace cute;
	constexpr bool transposed = MAJOR == SM90::GMMA::Major::MN;
	auto layout = tile_to_shape(atom, Shape<_64, _64>{});
	auto places = as_position_independent_swizzle_layout(layout);
	int wrong = 0;
	for (int outer = 0; outer < 64; outer++)
		for (int k = 0; k < 64; k++)
			wrong += places(outer, k) * 2 !=
				 (transposed ? fragment_tile_place(k, outer) : fragment_tile_place(outer, k));
	auto tensor = make_tensor(make_smem_ptr(static_cast<bfloat16_t *>(nullptr)), layout);
	auto steps = make_tensor<SM90::GMMA::smem_desc<MAJOR>>(zipped_divide(tensor, Shape<_64, _16>{}));
	uint64_t ours = FRAGMENT_TILE_DESCRIPTOR, theirs = steps(0, 0).desc_;
	if (transposed) /* the distance from 64 columns to the next 64, of which there are none */
		theirs = (theirs & ~0x3fff0000ull) | (ours & 0x3fff0000ull);
	for (int i = 0; i < 4; i++)
		wrong += steps(0, i).desc_ - steps(0, 0).desc_ !=
			 (uint64_t)i * (transposed ? FRAGMENT_TILE_ROWS_16 : FRAGMENT_TILE_COLUMNS_16);
	report(name, wrong + (ours != theirs));
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
	report("wgmma m64n64k16 a", wrong_in_group(SM90::GMMA::ALayout_64x16{}, FRAGMENT_A_64X16));
	report("wgmma m64n64k16 c", wrong_in_group(SM90::GMMA::CLayout_64x64{}, FRAGMENT_C_64X64));
	compare_tile<SM90::GMMA::Major::K>("wgmma tile, K-major", SM90::GMMA::Layout_K_SW128_Atom<bfloat16_t>{});
	compare_tile<SM90::GMMA::Major::MN>("wgmma tile, MN-major", SM90::GMMA::Layout_MN_SW128_Atom<bfloat16_t>{});
	return failed;
}
