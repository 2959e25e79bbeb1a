/* Products of a warpgroup, four warps that begin at a multiple of four: wgmma of sm_90a, on tiles of rows of 64 16-bit
 * elements as load_tile<64> arranges them, which is the layout that NVIDIA calls 128-byte swizzle.
 *
 * c (64,64) += a (64,16) b (16,64), where each warp holds 16 rows of c, and of a, in the fragments of mma16 (device.cuh).
 * Products run while the warpgroup continues: until group_wait(), neither their registers nor their shared memory may be
 * touched. */
#ifndef BACKEND_CUDA_KERNELS_WGMMA_CUH
#define BACKEND_CUDA_KERNELS_WGMMA_CUH

#include <type_traits>
#include "backend/cuda/kernels/device.cuh"

constexpr int WARPGROUP = 4 * WARP;

/* A tile at a multiple of 1024 bytes, as wgmma takes it: its address, the 1024 bytes from one group of eight rows to the next,
 * and the kind of swizzle. tile_at() moves it by rows, a multiple of 8, and by chunks of eight elements. */
DEVICE uint64_t tile_descriptor(const void *tile)
{
	return (shared_address(tile) >> 4 & 0x3fff) | (uint64_t)1 << 16 | (uint64_t)(1024 >> 4) << 32 | (uint64_t)1 << 62;
}
DEVICE uint64_t tile_at(uint64_t descriptor, int row, int chunk)
{
	return descriptor + (unsigned)(row * 8 + chunk);
}

/* What the rows of b's tile are: the columns of the product, or what it sums over. */
enum tile_rows { ROWS_ARE_COLUMNS, ROWS_ARE_SUMMED };

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
#define WGMMA(type, operands, ...)                                                                                               \
	asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %32, 0;\n"                                                            \
		     "wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type " {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,"  \
		     "%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, " operands ";\n}\n"          \
		     : WGMMA_SUMS(0), WGMMA_SUMS(1), WGMMA_SUMS(2), WGMMA_SUMS(3), WGMMA_SUMS(4), WGMMA_SUMS(5), WGMMA_SUMS(6),  \
		       WGMMA_SUMS(7)                                                                                             \
		     : "r"((int)add), "n"((int)B), "l"(b), __VA_ARGS__)

/* c += a b, or c = a b; a and b in shared memory, a's rows being those of its tile. */
template <typename E, enum tile_rows B> DEVICE void group_multiply(float (&c)[8][4], uint64_t a, uint64_t b, bool add)
{
	if constexpr (std::is_same_v<E, bf16>)
		WGMMA("bf16", "%35, %34, add, 1, 1, 0, %33", "l"(a));
	else
		WGMMA("f16", "%35, %34, add, 1, 1, 0, %33", "l"(a));
}
/* The same with a in registers. */
template <typename E, enum tile_rows B> DEVICE void group_multiply(float (&c)[8][4], const uint32_t (&a)[4], uint64_t b, bool add)
{
	if constexpr (std::is_same_v<E, bf16>)
		WGMMA("bf16", "{%35,%36,%37,%38}, %34, add, 1, 1, %33", "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]));
	else
		WGMMA("f16", "{%35,%36,%37,%38}, %34, add, 1, 1, %33", "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]));
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
template <typename E, enum tile_rows B> DEVICE void group_multiply(float (&c)[8][4], uint64_t a, uint64_t b, bool add)
{
	emulation_group_multiply({c[0], nullptr, a, b, B == ROWS_ARE_SUMMED, add, std::is_same_v<E, bf16>});
}
template <typename E, enum tile_rows B> DEVICE void group_multiply(float (&c)[8][4], const uint32_t (&a)[4], uint64_t b, bool add)
{
	emulation_group_multiply({c[0], a, 0, b, B == ROWS_ARE_SUMMED, add, std::is_same_v<E, bf16>});
}
#endif

#endif
