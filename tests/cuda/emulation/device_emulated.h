/* What kernels call, on the host: the functions of CUDA C++ under their own names, and the instructions behind
 * src/backend/cuda/kernels/device.cuh, computing exactly what the PTX manual describes (tests/cuda/test_fragments.c checks
 * fragments against CUTLASS). */
#ifndef EMULATION_DEVICE_EMULATED_H
#define EMULATION_DEVICE_EMULATED_H

#include <algorithm>
#include "cuda_runtime.h"
#include "backend/tensor.h"
#include "tensor_core.h"

/* The compute capability that kernels are compiled for. */
#ifndef EMULATED_ARCH
#define EMULATED_ARCH 900
#endif

using std::max;
using std::min;

#define __syncthreads() emulation_barrier(0, 0, EMULATION_SITE)
#define __syncwarp() emulation_warp(0xffffffffu, nullptr, nullptr, nullptr, EMULATION_SITE)
#define __shfl_sync(mask, value, lane) emulation::shuffle(mask, value, lane, EMULATION_SITE)
#define __shfl_xor_sync(mask, value, bits)                                                                                       \
	emulation::shuffle(mask, value, (int)(emulation_lane() ^ (unsigned)(bits)), EMULATION_SITE)
#define __shfl_down_sync(mask, value, delta)                                                                                     \
	emulation::shuffle(mask, value,                                                                                          \
			   emulation_lane() + (delta) < 32 ? (int)(emulation_lane() + (delta)) : (int)emulation_lane(),          \
			   EMULATION_SITE)
#define __shfl_up_sync(mask, value, delta)                                                                                       \
	emulation::shuffle(mask, value,                                                                                          \
			   emulation_lane() >= (unsigned)(delta) ? (int)(emulation_lane() - (delta)) : (int)emulation_lane(),    \
			   EMULATION_SITE)
#define __ballot_sync(mask, bit) emulation::ballot(mask, bit, EMULATION_SITE)
#define __any_sync(mask, bit) (emulation::ballot(mask, bit, EMULATION_SITE) != 0)
#define __all_sync(mask, bit) (emulation::ballot(mask, bit, EMULATION_SITE) == (mask))

namespace emulation
{
template <typename T> struct exchange {
	T value, out;
	int from;
	bool bit;
	unsigned votes;
};

template <typename T> inline T shuffle(unsigned mask, T value, int from, const char *site)
{
	exchange<T> mine = {value, value, from & 31, false, 0};
	emulation_warp(
		mask, &mine,
		[](void *const lanes[32], unsigned, const void *) {
			for (int i = 0; i < 32; i++) {
				auto *e = static_cast<exchange<T> *>(lanes[i]);
				if (e == nullptr)
					continue;
				if (lanes[e->from] == nullptr)
					emulation_fault("shuffle from lane %d, which is not in the mask", e->from);
				e->out = static_cast<exchange<T> *>(lanes[e->from])->value;
			}
		},
		nullptr, site);
	return mine.out;
}

inline unsigned ballot(unsigned mask, bool bit, const char *site)
{
	exchange<int> mine = {0, 0, 0, bit, 0};
	emulation_warp(
		mask, &mine,
		[](void *const lanes[32], unsigned, const void *) {
			unsigned votes = 0;
			for (int i = 0; i < 32; i++)
				if (lanes[i] != nullptr && static_cast<exchange<int> *>(lanes[i])->bit)
					votes |= 1u << i;
			for (int i = 0; i < 32; i++)
				if (lanes[i] != nullptr)
					static_cast<exchange<int> *>(lanes[i])->votes = votes;
		},
		nullptr, site);
	return mine.votes;
}
} // namespace emulation

inline float __uint_as_float(unsigned bits)
{
	float x;
	memcpy(&x, &bits, sizeof x);
	return x;
}
inline unsigned __float_as_uint(float x)
{
	unsigned bits;
	memcpy(&bits, &x, sizeof bits);
	return bits;
}

/* The functions of the GPU's math library and of its special function unit differ from the host's: results may be two
 * units in the last place off (CUDA programming guide, mathematical functions). Here they are, up or down depending on the
 * argument's bits; results that are too small for that are unchanged. */
inline float inexact(float x, float y)
{
	uint32_t bits;
	memcpy(&bits, &y, sizeof bits);
	if (x == 0 || fabsf(y) < 1.17549435e-38f || !(fabsf(y) < INFINITY))
		return y;
	bits += __builtin_parity(__float_as_uint(x)) ? 2 : -2;
	memcpy(&y, &bits, sizeof bits);
	return y;
}
inline float inexact_expf(float x)
{
	return inexact(x, expf(x));
}
inline float inexact_exp2f(float x)
{
	return inexact(x, exp2f(x));
}
inline float inexact_logf(float x)
{
	return x == 1 ? 0 : inexact(x, logf(x));
}
inline float inexact_erff(float x)
{
	return max(-1.0f, min(1.0f, inexact(x, erff(x))));
}
inline float inexact_tanhf(float x)
{
	return max(-1.0f, min(1.0f, inexact(x, tanhf(x))));
}
#define expf(x) inexact_expf(x)
#define exp2f(x) inexact_exp2f(x)
#define logf(x) inexact_logf(x)
#define erff(x) inexact_erff(x)
#define tanhf(x) inexact_tanhf(x)
inline unsigned __umulhi(unsigned a, unsigned b)
{
	return (unsigned)((uint64_t)a * b >> 32);
}
inline int __popc(unsigned x)
{
	return __builtin_popcount(x);
}
inline int __ffs(int x)
{
	return __builtin_ffs(x);
}
inline unsigned __vmaxu2(unsigned a, unsigned b)
{
	unsigned low = (a & 0xffffu) > (b & 0xffffu) ? a & 0xffffu : b & 0xffffu;
	return (a >> 16 > b >> 16 ? a >> 16 : b >> 16) << 16 | low;
}
inline unsigned __vminu2(unsigned a, unsigned b)
{
	return ~__vmaxu2(~a, ~b);
}
inline unsigned add_u16x2(unsigned a, unsigned b)
{
	return ((a & 0xffff0000u) + (b & 0xffff0000u)) | ((a + b) & 0xffffu);
}
inline unsigned __viaddmax_u16x2(unsigned a, unsigned b, unsigned c)
{
	return __vmaxu2(add_u16x2(a, b), c);
}
inline unsigned __viaddmin_u16x2(unsigned a, unsigned b, unsigned c)
{
	return __vminu2(add_u16x2(a, b), c);
}
inline int __clz(int x)
{
	return x == 0 ? 32 : __builtin_clz((unsigned)x);
}
inline void __threadfence(void)
{
}
template <typename T> inline T __ldg(const T *p)
{
	return *p;
}

/* Integers only: sums of floats must not depend on the order. */
template <typename T> inline T atomicAdd(T *at, T value)
{
	static_assert(!(T(0.5) > T(0)), "no atomic addition of floats");
	emulation_access_atomic(at, sizeof(T));
	return __atomic_fetch_add(at, value, __ATOMIC_RELAXED);
}
template <typename T> inline T atomicMax(T *at, T value)
{
	emulation_access_atomic(at, sizeof(T));
	T before = __atomic_load_n(at, __ATOMIC_RELAXED);
	if (value > before)
		__atomic_store_n(at, value, __ATOMIC_RELAXED);
	return before;
}
template <typename T> inline T atomicMin(T *at, T value)
{
	emulation_access_atomic(at, sizeof(T));
	T before = __atomic_load_n(at, __ATOMIC_RELAXED);
	if (value < before)
		__atomic_store_n(at, value, __ATOMIC_RELAXED);
	return before;
}
template <typename T> inline T atomicExch(T *at, T value)
{
	emulation_access_atomic(at, sizeof(T));
	return __atomic_exchange_n(at, value, __ATOMIC_RELAXED);
}
template <typename T> inline T atomicCAS(T *at, T expected, T value)
{
	emulation_access_atomic(at, sizeof(T));
	__atomic_compare_exchange_n(at, &expected, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	return expected;
}
template <typename T> inline T atomicOr(T *at, T bits)
{
	emulation_access_atomic(at, sizeof(T));
	return __atomic_fetch_or(at, bits, __ATOMIC_RELAXED);
}

namespace emulation
{

/* ---- Matrix instructions: c (16,8) += a (16,K) b (K,8), fragments distributed over the warp ---- */

enum element { BF16, F16, TF32 };

inline float element_value(element type, const uint32_t *fragment, int i)
{
	if (type == TF32)
		return __uint_as_float(fragment[i] & 0xffffe000u);
	uint16_t bits = (uint16_t)(fragment[i / 2] >> 16 * (i % 2));
	return type == BF16 ? bf16_to_float(bits) : f16_to_float(bits);
}

struct fragments {
	float *c;
	const uint32_t *a, *b;
};

/* The position of element i of a lane's fragment. For the 16-bit types elements come in pairs along k. */
inline void place_of_a(element type, int lane, int i, int *row, int *k)
{
	int group = lane / 4, member = lane % 4, part = type == TF32 ? i : i / 2;
	*row = group + 8 * (part % 2);
	*k = type == TF32 ? member + 4 * (part / 2) : member * 2 + i % 2 + 8 * (part / 2);
}

inline void place_of_b(element type, int lane, int i, int *k, int *column)
{
	int group = lane / 4, member = lane % 4, part = type == TF32 ? i : i / 2;
	*column = group;
	*k = type == TF32 ? member + 4 * part : member * 2 + i % 2 + 8 * part;
}

/* mma.cc */
template <element TYPE, int K> void multiply(void *const lanes[32], unsigned, const void *);

template <element TYPE, int K> inline void mma(float c[4], const uint32_t *a, const uint32_t *b, const char *site)
{
	fragments mine = {c, a, b};
	emulation_warp(0xffffffffu, &mine, multiply<TYPE, K>, nullptr, site);
}

/* ---- ldmatrix: COUNT matrices of 8 rows of 8 16-bit elements; lane i supplies the address of row i ---- */

struct matrix_rows {
	const uint16_t *row;
	uint32_t *out;
};

template <int COUNT, bool TRANSPOSED> inline void load_matrices(void *const lanes[32], unsigned, const void *)
{
	for (int lane = 0; lane < 32; lane++) {
		for (int m = 0; m < COUNT; m++) {
			uint16_t pair[2];
			for (int i = 0; i < 2; i++) {
				int row = TRANSPOSED ? lane % 4 * 2 + i : lane / 4,
				    column = TRANSPOSED ? lane / 4 : lane % 4 * 2 + i;
				pair[i] = static_cast<const matrix_rows *>(lanes[8 * m + row])->row[column];
			}
			static_cast<matrix_rows *>(lanes[lane])->out[m] = pair[0] | (uint32_t)pair[1] << 16;
		}
	}
}

template <int COUNT, bool TRANSPOSED> inline void ldmatrix(uint32_t *out, const void *row, const char *site)
{
	if (emulation_lane() < 8 * COUNT)
		emulation_access_aligned(row, 16, false, 16);
	matrix_rows mine = {static_cast<const uint16_t *>(row), out};
	emulation_warp(0xffffffffu, &mine, load_matrices<COUNT, TRANSPOSED>, nullptr, site);
}

} // namespace emulation

/* ---- wgmma: c (64,columns) += a (64,16) b (16,columns) by four warps ----
 *
 * A product is computed when its warpgroup waits for it; until then its sums hold NaN, and its shared memory must stay as it
 * was. Descriptors are taken at their word, except that only the swizzle of 128 bytes exists. */
struct emulated_product {
	float *c;          /* of the thread: tiles of 4 */
	int columns;       /* 32 or 64 */
	const uint32_t *a; /* the thread's fragment; NULL: a is in shared memory */
	uint64_t a_rows, b_rows;
	bool a_transposed, b_transposed, add, is_bf16;
};
void emulation_group_multiply(const emulated_product &product);
void emulation_group_fence(void);
void emulation_group_commit(void);
void emulation_group_wait(int groups_left);

/* Copies that arrive when they are waited for; until then their destination holds NaN. */
void emulation_copy_async(void *shared, const void *global, size_t valid, size_t bytes);
void emulation_copy_commit(void);
void emulation_copy_wait(int groups_left);

#endif
