/* Products of a warpgroup, four warps that begin at a multiple of four: wgmma of sm_90a, on tiles of rows of 64 16-bit
 * elements as load_tile<64> arranges them, which is the layout that NVIDIA calls 128-byte swizzle.
 *
 * c (64,N) += a (64,16) b (16,N), N = 32 or 64, where each warp holds 16 rows of c, and of a, in the fragments of mma16
 * (device.cuh). Products run while the warpgroup continues: until group_wait(), neither their registers nor their shared memory
 * may be touched. */
#ifndef BACKEND_CUDA_KERNELS_WGMMA_CUH
#define BACKEND_CUDA_KERNELS_WGMMA_CUH

#include <type_traits>
#include "backend/cuda/kernels/device.cuh"

constexpr int WARPGROUP = 4 * WARP;

/* The lower half of wgmma's descriptor of a tile at a multiple of 1024 bytes: its address in units of 16 bytes. tile_at() moves
 * it by rows, a multiple of 8, and by chunks of eight elements. */
DEVICE uint32_t group_tile(const void *tile)
{
	return (shared_address(tile) >> 4 & 0x3fff) | 1 << 16;
}
DEVICE uint32_t tile_at(uint32_t tile, int row, int chunk)
{
	return tile + (uint32_t)(row * 8 + chunk);
}
/* The upper half: groups of eight rows are 1024 bytes apart, and the swizzle is the one for 128 bytes. */
DEVICE uint64_t tile_descriptor(uint32_t tile)
{
	return (uint64_t)(1 << 30 | 1024 >> 4) << 32 | tile;
}

/* What the rows of an operand's tile are: a's rows or b's columns, or what the product sums over. */
enum tile_rows { ROWS_ARE_KEPT, ROWS_ARE_SUMMED };

#ifdef __CUDACC__

/* Makes what this thread has written to shared memory visible to products after the next barrier. */
DEVICE void fence_shared()
{
	asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
}
/* Precedes products whose registers have been used by anything else. */
DEVICE void group_fence()
{
	asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
}
DEVICE void group_commit()
{
	asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
}
/* Waits for all products but those of the last LEFT commits. */
template <int LEFT> DEVICE void group_wait()
{
	asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(LEFT) : "memory");
}

#define WGMMA_SUMS(n) "+f"(c[n][0]), "+f"(c[n][1]), "+f"(c[n][2]), "+f"(c[n][3])
#define WGMMA_SUMS_32 WGMMA_SUMS(0), WGMMA_SUMS(1), WGMMA_SUMS(2), WGMMA_SUMS(3)
#define WGMMA_SUMS_64 WGMMA_SUMS_32, WGMMA_SUMS(4), WGMMA_SUMS(5), WGMMA_SUMS(6), WGMMA_SUMS(7)
#define WGMMA_LIST_32 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15"
#define WGMMA_LIST_64 WGMMA_LIST_32 ",%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define WGMMA(columns, type, add, operands, ...)                                                                                 \
	asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, " add ", 0;\nwgmma.mma_async.sync.aligned.m64n" #columns              \
		     "k16.f32." type "." type " {" WGMMA_LIST_##columns "}, " operands ";\n}\n"                                  \
		     : WGMMA_SUMS_##columns                                                                                      \
		     : __VA_ARGS__)

/* c += a b, or c = a b; a and b in shared memory. */
template <typename E, enum tile_rows A, enum tile_rows B>
DEVICE void group_multiply(float (&c)[8][4], uint32_t a, uint32_t b, bool add)
{
	if constexpr (std::is_same_v<E, bf16>)
		WGMMA(64, "bf16", "%32", "%33, %34, add, 1, 1, %35, %36", "r"((int)add), "l"(tile_descriptor(a)),
		      "l"(tile_descriptor(b)), "n"((int)A), "n"((int)B));
	else
		WGMMA(64, "f16", "%32", "%33, %34, add, 1, 1, %35, %36", "r"((int)add), "l"(tile_descriptor(a)),
		      "l"(tile_descriptor(b)), "n"((int)A), "n"((int)B));
}
template <typename E, enum tile_rows A, enum tile_rows B>
DEVICE void group_multiply(float (&c)[4][4], uint32_t a, uint32_t b, bool add)
{
	if constexpr (std::is_same_v<E, bf16>)
		WGMMA(32, "bf16", "%16", "%17, %18, add, 1, 1, %19, %20", "r"((int)add), "l"(tile_descriptor(a)),
		      "l"(tile_descriptor(b)), "n"((int)A), "n"((int)B));
	else
		WGMMA(32, "f16", "%16", "%17, %18, add, 1, 1, %19, %20", "r"((int)add), "l"(tile_descriptor(a)),
		      "l"(tile_descriptor(b)), "n"((int)A), "n"((int)B));
}
/* c += a b with a in registers. */
template <typename E, enum tile_rows B> DEVICE void group_multiply(float (&c)[8][4], const uint32_t (&a)[4], uint32_t b)
{
	if constexpr (std::is_same_v<E, bf16>)
		WGMMA(64, "bf16", "%32", "{%33,%34,%35,%36}, %37, add, 1, 1, %38", "r"(1), "r"(a[0]), "r"(a[1]), "r"(a[2]),
		      "r"(a[3]), "l"(tile_descriptor(b)), "n"((int)B));
	else
		WGMMA(64, "f16", "%32", "{%33,%34,%35,%36}, %37, add, 1, 1, %38", "r"(1), "r"(a[0]), "r"(a[1]), "r"(a[2]),
		      "r"(a[3]), "l"(tile_descriptor(b)), "n"((int)B));
}

#else

DEVICE void fence_shared()
{
	emulation_fence_shared();
}
DEVICE void group_fence()
{
	emulation_group_fence();
}
DEVICE void group_commit()
{
	emulation_group_commit();
}
template <int LEFT> DEVICE void group_wait()
{
	emulation_group_wait(LEFT);
}
template <typename E, enum tile_rows A, enum tile_rows B, int TILES>
DEVICE void group_multiply(float (&c)[TILES][4], uint32_t a, uint32_t b, bool add)
{
	emulation_group_multiply({c[0], 8 * TILES, nullptr, tile_descriptor(a), tile_descriptor(b), A == ROWS_ARE_SUMMED,
				  B == ROWS_ARE_SUMMED, add, std::is_same_v<E, bf16>});
}
template <typename E, enum tile_rows B> DEVICE void group_multiply(float (&c)[8][4], const uint32_t (&a)[4], uint32_t b)
{
	emulation_group_multiply(
		{c[0], 64, a, 0, tile_descriptor(b), false, B == ROWS_ARE_SUMMED, true, std::is_same_v<E, bf16>});
}
#endif

#endif
