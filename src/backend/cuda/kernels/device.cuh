/* Shared by all kernels: activation types, vector loads, reductions, dropout, and every instruction that has no name in CUDA
 * C++. Two compilers read this file: nvcc, and, for the tests, g++ with the emulated device of tests/cuda/emulation. A kernel
 * uses nothing of CUDA beyond this file and the plain built-ins (threadIdx, __syncthreads, __shfl_xor_sync, ...), takes all
 * its shared memory from shared_start(), and is launched through launch(). */
#ifndef BACKEND_CUDA_KERNELS_DEVICE_CUH
#define BACKEND_CUDA_KERNELS_DEVICE_CUH

#include <cuda_runtime.h>
#include "backend/cuda/kernels.h"
#include "backend/dropout.h"
#include "backend/loss_scale.h"

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#ifdef __CUDA_ARCH__
#define DEVICE_ARCH __CUDA_ARCH__
#else
#define DEVICE_ARCH 900
#endif
#else
#include <device_emulated.h>
#define DEVICE_ARCH EMULATED_ARCH
#endif

#define DEVICE __device__ __forceinline__

constexpr int WARP = 32;
constexpr unsigned ALL_LANES = 0xffffffffu;

/* ---- Launching ---- */

/* Launches kernel<<<grid, block, shared, stream>>>(arguments). Shared memory of 48 KiB or more must first be allowed with
 * allow_shared(). An empty grid is a no-op. `early` (compute capability 9.0 and later): the kernel may start before the one ahead
 * of it in the stream has ended, and calls wait_for_previous(). */
template <typename... P, typename... A>
static cudaError_t launch_early(bool early, void (*kernel)(P...), dim3 grid, dim3 block, size_t shared, cudaStream_t stream,
				A... arguments)
{
	cudaLaunchAttribute attribute = {};
	attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
	attribute.val.programmaticStreamSerializationAllowed = 1;
	if (grid.x == 0 || grid.y == 0 || grid.z == 0)
		return cudaSuccess;
	cudaLaunchConfig_t config = {};
	config.gridDim = grid;
	config.blockDim = block;
	config.dynamicSmemBytes = shared;
	config.stream = stream;
	config.attrs = early ? &attribute : nullptr;
	config.numAttrs = early ? 1 : 0;
	return cudaLaunchKernelEx(&config, kernel, static_cast<P>(arguments)...);
}
template <typename... P, typename... A>
static cudaError_t launch(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared, cudaStream_t stream, A... arguments)
{
	return launch_early(false, kernel, grid, block, shared, stream, arguments...);
}

/* Raises the kernel's limit of shared memory per block to `bytes`; never lowers it, because a recorded graph may need the old
 * limit. */
template <typename... P> static cudaError_t allow_shared(void (*kernel)(P...), size_t bytes)
{
	struct cudaFuncAttributes now;
	if (bytes < 48 << 10)
		return cudaSuccess;
	cudaError_t error = cudaFuncGetAttributes(&now, kernel);
	if (error != cudaSuccess || now.maxDynamicSharedSizeBytes > (int)bytes)
		return error;
	return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
}

static inline unsigned blocks_of(int64_t count, int64_t per_block)
{
	return (unsigned)((count + per_block - 1) / per_block);
}

/* Start of the block's shared memory, aligned to 1024 bytes; and addresses in it as instructions take them. */
#ifdef __CUDACC__
extern __shared__ __align__(1024) unsigned char shared_memory[];
DEVICE unsigned char *shared_start()
{
	return shared_memory;
}
DEVICE unsigned shared_address(const void *at)
{
	return (unsigned)__cvta_generic_to_shared(at);
}
#else
DEVICE unsigned char *shared_start()
{
	return static_cast<unsigned char *>(emulation_shared(nullptr));
}
DEVICE unsigned shared_address(const void *at)
{
	return (unsigned)(static_cast<const unsigned char *>(at) - shared_start());
}
#endif

/* ---- Activation types: arithmetic is in fp32, memory holds one of float, bf16, f16 ---- */

struct bf16 {
	uint16_t bits;
};
struct f16 {
	uint16_t bits;
};

/* Calls body(T()) with the type that corresponds to `dtype`, and returns its result. */
template <typename F> static cudaError_t for_dtype(enum dtype dtype, F body)
{
	switch (dtype) {
	case DTYPE_F32: return body(float());
	case DTYPE_BF16: return body(bf16());
	case DTYPE_F16: return body(f16());
	default: return cudaErrorInvalidValue;
	}
}

DEVICE float to_float(float x)
{
	return x;
}

#ifdef __CUDACC__
DEVICE float to_float(bf16 x)
{
	return __uint_as_float((unsigned)x.bits << 16);
}
DEVICE float to_float(f16 x)
{
	return __half2float(__ushort_as_half(x.bits));
}
#else
DEVICE float to_float(bf16 x)
{
	return bf16_to_float(x.bits);
}
DEVICE float to_float(f16 x)
{
	return f16_to_float(x.bits);
}
#endif

/* Rounds to nearest, ties to even. */
template <typename T> DEVICE T from_float(float x);
template <> DEVICE float from_float<float>(float x)
{
	return x;
}
#ifdef __CUDACC__
template <> DEVICE bf16 from_float<bf16>(float x)
{
	return bf16{__bfloat16_as_ushort(__float2bfloat16_rn(x))};
}
template <> DEVICE f16 from_float<f16>(float x)
{
	return f16{__half_as_ushort(__float2half_rn(x))};
}
#else
template <> DEVICE bf16 from_float<bf16>(float x)
{
	return bf16{float_to_bf16(x)};
}
template <> DEVICE f16 from_float<f16>(float x)
{
	return f16{float_to_f16(x)};
}
#endif

/* Two 16-bit values in one register, the first in the low half, as matrix instructions expect them. */
template <typename T> DEVICE uint32_t pack2(float low, float high)
{
	return from_float<T>(low).bits | (uint32_t)from_float<T>(high).bits << 16;
}
#ifdef __CUDACC__
template <> DEVICE uint32_t pack2<bf16>(float low, float high)
{
	__nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
	return *reinterpret_cast<uint32_t *>(&pair);
}
template <> DEVICE uint32_t pack2<f16>(float low, float high)
{
	__half2 pair = __floats2half2_rn(low, high);
	return *reinterpret_cast<uint32_t *>(&pair);
}
#endif
template <typename T> DEVICE void unpack2(uint32_t pair, float *low, float *high)
{
	*low = to_float(T{(uint16_t)pair});
	*high = to_float(T{(uint16_t)(pair >> 16)});
}

/* FP8 bytes (backend/fp8.h), as products read them. */
struct e4m3 {
	uint8_t bits;
};
struct e5m2 {
	uint8_t bits;
};
DEVICE float to_float(e4m3 x)
{
	return fp8_decode(DTYPE_E4M3, x.bits);
}
DEVICE float to_float(e5m2 x)
{
	return fp8_decode(DTYPE_E5M2, x.bits);
}

/* Two values rounded to FP8, the first in the low byte: fp8_encode(), or the equivalent instruction where it exists, whose
 * first operand goes to the upper byte (PTX manual, cvt; cuda_fp8.hpp does the same). */
DEVICE uint32_t pack2_fp8(enum dtype format, float low, float high)
{
#if defined(__CUDACC__) && DEVICE_ARCH >= 890
	unsigned short pair;
	if (format == DTYPE_E4M3)
		asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;\n" : "=h"(pair) : "f"(high), "f"(low));
	else
		asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;\n" : "=h"(pair) : "f"(high), "f"(low));
	return pair;
#else
	return fp8_encode(format, low) | (uint32_t)fp8_encode(format, high) << 8;
#endif
}
DEVICE uint32_t pack4_fp8(enum dtype format, float a, float b, float c, float d)
{
	return pack2_fp8(format, a, b) | pack2_fp8(format, c, d) << 16;
}

/* The value as rounded when stored: for use where forward and backward must agree on the rounded value. */
template <typename T> DEVICE float rounded(float x)
{
	return to_float(from_float<T>(x));
}

/* x, of which the compiler knows nothing, so that it neither computes it anew where it is needed nor merges it with other sums.
 */
DEVICE int settled(int x)
{
#ifdef __CUDACC__
	asm volatile("" : "+r"(x));
#endif
	return x;
}

/* ---- Memory ---- */

/* Accesses 16 bytes at an address that is a multiple of 16. */
DEVICE uint4 load16(const void *at)
{
#ifndef __CUDACC__
	emulation_access_aligned(at, 16, false, 16);
#endif
	return *static_cast<const uint4 *>(at);
}
DEVICE void store16(void *at, uint4 value)
{
#ifndef __CUDACC__
	emulation_access_aligned(at, 16, true, 16);
#endif
	*static_cast<uint4 *>(at) = value;
}

/* Rows are processed in blocks of eight columns, which is also the block size of dropout. With ALIGNED, the number of columns
 * is a multiple of eight and a block is read in one or two vector loads; otherwise element by element, where columns beyond
 * the row read as 0 and are not written. */
constexpr int BLOCK = 8;

DEVICE void load_vector(const float *at, float out[BLOCK])
{
	uint4 a = load16(at), b = load16(at + 4);
	const unsigned bits[BLOCK] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
#pragma unroll
	for (int i = 0; i < BLOCK; i++)
		out[i] = __uint_as_float(bits[i]);
}
template <typename T> DEVICE void load_vector(const T *at, float out[BLOCK])
{
	uint4 v = load16(at);
	unpack2<T>(v.x, &out[0], &out[1]);
	unpack2<T>(v.y, &out[2], &out[3]);
	unpack2<T>(v.z, &out[4], &out[5]);
	unpack2<T>(v.w, &out[6], &out[7]);
}
DEVICE void store_vector(float *at, const float in[BLOCK])
{
	store16(at, uint4{__float_as_uint(in[0]), __float_as_uint(in[1]), __float_as_uint(in[2]), __float_as_uint(in[3])});
	store16(at + 4, uint4{__float_as_uint(in[4]), __float_as_uint(in[5]), __float_as_uint(in[6]), __float_as_uint(in[7])});
}
template <typename T> DEVICE void store_vector(T *at, const float in[BLOCK])
{
	store16(at, uint4{pack2<T>(in[0], in[1]), pack2<T>(in[2], in[3]), pack2<T>(in[4], in[5]), pack2<T>(in[6], in[7])});
}

template <bool ALIGNED, typename T> DEVICE void load_block(const T *row, int first, int columns, float out[BLOCK])
{
	if constexpr (ALIGNED) {
		load_vector(row + first, out);
	} else {
#pragma unroll
		for (int i = 0; i < BLOCK; i++)
			out[i] = first + i < columns ? to_float(row[first + i]) : 0;
	}
}
template <bool ALIGNED, typename T> DEVICE void store_block(T *row, int first, int columns, const float in[BLOCK])
{
	if constexpr (ALIGNED) {
		store_vector(row + first, in);
	} else {
#pragma unroll
		for (int i = 0; i < BLOCK; i++)
			if (first + i < columns)
				row[first + i] = from_float<T>(in[i]);
	}
}

/* A block in its in-memory format: takes few registers while it is being loaded, and nothing waits for it before unpack_block.
 * Packing rounds. */
template <typename T> struct raw_block {
	uint32_t word[2 * sizeof(T)];
};
template <typename T> DEVICE raw_block<T> pack_block(const float in[BLOCK])
{
	raw_block<T> out;
#pragma unroll
	for (int i = 0; i < 2 * (int)sizeof(T); i++) {
		if constexpr (sizeof(T) == 2)
			out.word[i] = pack2<T>(in[2 * i], in[2 * i + 1]);
		else
			out.word[i] = __float_as_uint(in[i]);
	}
	return out;
}
template <bool ALIGNED, typename T> DEVICE raw_block<T> load_raw(const T *row, int first, int columns)
{
	raw_block<T> out;
	if constexpr (ALIGNED) {
#pragma unroll
		for (int i = 0; i < (int)sizeof(T) / 2; i++) {
			uint4 v = load16(row + first + i * (16 / (int)sizeof(T)));
			out.word[4 * i] = v.x, out.word[4 * i + 1] = v.y;
			out.word[4 * i + 2] = v.z, out.word[4 * i + 3] = v.w;
		}
	} else {
		float values[BLOCK];
		load_block<false>(row, first, columns, values);
		out = pack_block<T>(values);
	}
	return out;
}
template <typename T> DEVICE void unpack_block(const raw_block<T> &raw, float out[BLOCK])
{
#pragma unroll
	for (int i = 0; i < 2 * (int)sizeof(T); i++) {
		if constexpr (sizeof(T) == 2)
			unpack2<T>(raw.word[i], &out[2 * i], &out[2 * i + 1]);
		else
			out[i] = __uint_as_float(raw.word[i]);
	}
}

template <bool ALIGNED, typename T> DEVICE void store_raw(T *row, int first, int columns, const raw_block<T> &in)
{
	if constexpr (ALIGNED) {
#pragma unroll
		for (int i = 0; i < (int)sizeof(T) / 2; i++)
			store16(row + first + i * (16 / (int)sizeof(T)),
				uint4{in.word[4 * i], in.word[4 * i + 1], in.word[4 * i + 2], in.word[4 * i + 3]});
	} else {
		float values[BLOCK];
		unpack_block(in, values);
		store_block<false>(row, first, columns, values);
	}
}

/* Asynchronous 16-byte copies from global to shared memory: `valid` bytes (16 or 0) are read, the rest is zero-filled. They
 * have arrived after copy_wait<N>() (all but the last N groups) and a barrier. Before sm_80 they are synchronous. */
DEVICE void copy_async16(void *shared, const void *global, int valid)
{
#ifdef __CUDACC__
#if DEVICE_ARCH >= 800
	unsigned address = shared_address(shared);
	asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(address), "l"(global), "r"(valid) : "memory");
#else
	store16(shared, valid > 0 ? load16(global) : uint4{0, 0, 0, 0});
#endif
#else
	emulation_copy_async(shared, global, (size_t)valid, 16);
#endif
}
DEVICE void copy_commit()
{
#ifdef __CUDACC__
#if DEVICE_ARCH >= 800
	asm volatile("cp.async.commit_group;\n" ::: "memory");
#endif
#else
	emulation_copy_commit();
#endif
}
template <int LEFT> DEVICE void copy_wait()
{
#ifdef __CUDACC__
#if DEVICE_ARCH >= 800
	asm volatile("cp.async.wait_group %0;\n" ::"n"(LEFT) : "memory");
#endif
#else
	emulation_copy_wait(LEFT);
#endif
}

/* Barrier number `id` (1 to 15) for `threads` threads of the block, a multiple of 32. */
#ifdef __CUDACC__
DEVICE void barrier_sync(int id, int threads)
{
	asm volatile("bar.sync %0, %1;\n" ::"r"(id), "r"(threads) : "memory");
}
#else
#define barrier_sync(id, threads) emulation_barrier(id, threads, EMULATION_SITE)
#endif

/* In a kernel that was launched early: lets the next such kernel start, and waits until all kernels ahead of this one have ended
 * and their memory can be read. Until then a thread must neither read what they write nor write to global memory; it must not end
 * without having waited. */
DEVICE void start_next()
{
#if defined(__CUDACC__) && DEVICE_ARCH >= 900
	asm volatile("griddepcontrol.launch_dependents;\n" ::: "memory");
#endif
}
DEVICE void wait_for_previous()
{
#if !defined(__CUDACC__)
	emulation_wait_for_previous();
#elif DEVICE_ARCH >= 900
	asm volatile("griddepcontrol.wait;\n" ::: "memory");
#endif
}

/* ---- Reductions: always in the same order ---- */

DEVICE int lane_index()
{
	return (int)(threadIdx.x % WARP);
}

DEVICE float warp_sum(float x)
{
#pragma unroll
	for (int bits = WARP / 2; bits > 0; bits /= 2)
		x += __shfl_xor_sync(ALL_LANES, x, bits);
	return x;
}
DEVICE double warp_sum(double x)
{
#pragma unroll
	for (int bits = WARP / 2; bits > 0; bits /= 2)
		x += __shfl_xor_sync(ALL_LANES, x, bits);
	return x;
}
DEVICE float warp_max(float x)
{
#pragma unroll
	for (int bits = WARP / 2; bits > 0; bits /= 2)
		x = fmaxf(x, __shfl_xor_sync(ALL_LANES, x, bits));
	return x;
}
DEVICE uint32_t warp_max(uint32_t x)
{
#pragma unroll
	for (int bits = WARP / 2; bits > 0; bits /= 2) {
		uint32_t other = __shfl_xor_sync(ALL_LANES, x, bits);
		x = other > x ? other : x;
	}
	return x;
}

/* Sum over a one-dimensional block of whole warps; every thread gets the result. `scratch`: shared memory, one element per
 * warp, free for reuse after the next barrier. */
template <typename T> DEVICE T block_sum(T x, T *scratch)
{
	x = warp_sum(x);
	if (lane_index() == 0)
		scratch[threadIdx.x / WARP] = x;
	__syncthreads();
	T sum = 0;
	for (unsigned i = 0; i < blockDim.x / WARP; i++)
		sum += scratch[i];
	return sum;
}

/* ---- Largest magnitudes, for FP8 (LARGEST_WORDS of kernels.h) ---- */

/* Whether kernels that write activations of type T need code for them. */
template <typename T> constexpr bool has_largest = false;
template <> constexpr bool has_largest<bf16> = true;

/* The larger magnitudes of two pairs of 16-bit values, half by half; larger_pairs() does so for all pairs of a block. */
DEVICE uint32_t larger_pair(uint32_t most, uint32_t pair)
{
	return __vmaxu2(most, pair & 0x7fff7fffu);
}
template <typename T> DEVICE uint32_t larger_pairs(uint32_t most, const raw_block<T> &v)
{
#pragma unroll
	for (int i = 0; i < 2 * (int)sizeof(T); i++)
		most = larger_pair(most, v.word[i]);
	return most;
}
/* Records the bits of the largest magnitude that a warp writes, given those of each lane; all lanes must take part. Warps with
 * different numbers rarely collide. */
DEVICE void note_largest(uint32_t *largest, unsigned number, uint32_t bits)
{
	bits = warp_max(bits);
	if (lane_index() == 0)
		atomicMax(largest + number % LARGEST_SLOTS * LARGEST_STRIDE, bits);
}
/* The same, given pairs of bf16. */
DEVICE void note_pairs(uint32_t *largest, unsigned number, uint32_t most)
{
	note_largest(largest, number, max(most << 16, most & 0xffff0000u));
}

/* ---- Dropout (backend/dropout.h) ---- */

/* Applies dropout to the block of eight columns that begins at `first`, of a token at `position` of `sample`, and scales what
 * is kept. The upper halves of Philox's words are compared in place: the bits below them are too small to matter. */
DEVICE void drop_block(const struct kernel_dropout &dropout, uint64_t seed, int first, int position, uint32_t sample,
		       float v[BLOCK])
{
	struct philox block = philox4x32(seed, (uint32_t)first / BLOCK, (uint32_t)position, dropout.site, sample, 7);
	uint32_t threshold = dropout.threshold << 16;
#pragma unroll
	for (int i = 0; i < BLOCK / 2; i++) {
		v[2 * i] = (block.word[i] << 16) >= threshold ? v[2 * i] * dropout.scale : 0;
		v[2 * i + 1] = block.word[i] >= threshold ? v[2 * i + 1] * dropout.scale : 0;
	}
}

/* The halves of a b. */
DEVICE void multiply_wide(uint32_t a, uint32_t b, uint32_t *low, uint32_t *high)
{
#ifdef __CUDACC__
	asm("{ .reg .b64 p; mul.wide.u32 p, %2, %3; mov.b64 {%0, %1}, p; }" : "=r"(*low), "=r"(*high) : "r"(a), "r"(b));
#else
	uint64_t p = (uint64_t)a * b;
	*low = (uint32_t)p, *high = (uint32_t)(p >> 32);
#endif
}

/* Compares pairs of 16-bit numbers with a threshold, both halves at once where there are instructions for that: adding
 * 65536 - threshold makes 65536 - threshold or more of what is below the threshold, and less of everything else. */
struct pair_limit {
	uint32_t threshold, minus, most, less;
	explicit DEVICE pair_limit(uint32_t t)
	    : threshold(t << 16), minus((0x10000 - t) % 0x10000 * 0x10001), most((0xffff - t) * 0x10001),
	      less((t + 1) % 0x10000 * 0x10001)
	{
	}
	/* Bits 0 and 16 are set if the lower and the upper number are below the threshold. */
	DEVICE uint32_t below(uint32_t pair) const
	{
#if DEVICE_ARCH >= 900
		return __viaddmin_u16x2(__viaddmax_u16x2(pair, minus, most), less, 0x10001);
#else
		return (pair << 16 < threshold ? 1u : 0) + (pair < threshold ? 0x10000u : 0);
#endif
	}
};

/* Ones in the lower half if bit 7 + 8 `byte` is set, and in the upper half if bit 23 + 8 `byte` is; `byte` is 0 or 1. */
DEVICE uint32_t spread_pair(uint32_t bits, int byte)
{
#ifdef __CUDACC__
	uint32_t out;
	asm("prmt.b32 %0, %1, %1, %2;\n" : "=r"(out) : "r"(bits), "r"(byte ? 0xbb99 : 0xaa88));
	return out;
#else
	return (bits >> (7 + 8 * byte) & 1) * 0xffffu | (bits >> (23 + 8 * byte) & 1) * 0xffff0000u;
#endif
}

/* ---- Special functions ---- */

/* 2^x to 2 ulp, by the special function unit; results below 2^-126 become 0. */
DEVICE float exp2_approximate(float x)
{
#ifdef __CUDACC__
	float y;
	asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(y) : "f"(x));
	return y;
#else
	float y = exp2f(x);
	return y < 1.17549435e-38f ? 0 : y;
#endif
}

/* 1/x to 1 ulp, likewise. */
DEVICE float reciprocal_approximate(float x)
{
#ifdef __CUDACC__
	float y;
	asm("rcp.approx.ftz.f32 %0, %1;\n" : "=f"(y) : "f"(x));
	return y;
#else
	float y = inexact(x, 1 / x);
	return fabsf(y) < 1.17549435e-38f ? 0 : y;
#endif
}

/* ---- GELU, of an argument that is stored as T ----
 *
 * fp32 uses erff and tanhf. For results that will be rounded to 16 bits, a third of their instructions suffices, without
 * branches: two of the special function unit and a polynomial, together as fast as memory delivers the arguments. */

/* Phi(-u) exp(u^2 / 2) for u >= 0, with a relative error of 2e-6 for u up to 6, where Phi(-u) is 1e-9: a minimax polynomial in
 * 1 / (1 + 0.34 u) (in the form of Hastings 1955). */
DEVICE float gelu_tail(float u)
{
	float t = reciprocal_approximate(fmaf(0.34f, u, 1));
	float sum = fmaf(t, -0.11179123348f, 0.35163040414f);
	sum = fmaf(t, sum, -0.07127458935f);
	sum = fmaf(t, sum, 0.20927261047f);
	sum = fmaf(t, sum, 0.12096914561f);
	return fmaf(t, sum, 0.00119270611f);
}
/* exp(-x^2 / 2) */
DEVICE float gelu_bell(float x)
{
	return exp2_approximate(x * x * -0.72134752044f);
}
/* The argument of tanh, times 2 log2(e): (1 + tanh z) / 2 = 1 / (1 + 2^-this). */
DEVICE float gelu_tanh_power(float x)
{
	return x * fmaf(0.10294324f, x * x, 2.3022082f);
}

/* 1 / (1 + e^-x) */
template <typename T> DEVICE float logistic(float x)
{
	if constexpr (sizeof(T) == 2)
		return reciprocal_approximate(1 + exp2_approximate(-1.4426950409f * x));
	return 1 / (1 + expf(-x));
}

template <typename T> DEVICE float gelu(enum activation activation, float x)
{
	if (activation == ACTIVATION_RELU)
		return x < 0 ? 0 : x; /* NaN stays NaN */
	if (activation == ACTIVATION_SILU)
		return x * logistic<T>(x);
	if constexpr (sizeof(T) == 2) {
		if (activation == ACTIVATION_GELU_ERF) /* x or 0, minus the tail's share */
			return fmaf(-fabsf(x), gelu_bell(x) * gelu_tail(fabsf(x)), fmaxf(x, 0));
		return x * reciprocal_approximate(1 + exp2_approximate(-gelu_tanh_power(x)));
	} else {
		if (activation == ACTIVATION_GELU_ERF)
			return 0.5f * x * (1 + erff(x * 0.70710678118654752f));
		return 0.5f * x * (1 + tanhf(0.79788456080286536f * (x + 0.044715f * x * x * x)));
	}
}
template <typename T> DEVICE float gelu_derivative(enum activation activation, float x)
{
	if (activation == ACTIVATION_RELU)
		return x > 0 ? 1 : 0;
	if (activation == ACTIVATION_SILU)
		return fmaf(x * logistic<T>(x), logistic<T>(-x), logistic<T>(x));
	if constexpr (sizeof(T) == 2) {
		if (activation == ACTIVATION_GELU_ERF) { /* Phi(x) + x phi(x), whose value at -x is 1 minus that at x */
			float negative = gelu_bell(x) * fmaf(-0.39894228040f, fabsf(x), gelu_tail(fabsf(x)));
			return x > 0 ? 1 - negative : negative;
		}
		float s = reciprocal_approximate(1 + exp2_approximate(-gelu_tanh_power(x)));
		return fmaf(s * (1 - s), x * fmaf(0.21406445f, x * x, 1.5957691f), s);
	} else {
		if (activation == ACTIVATION_GELU_ERF)
			return 0.5f * (1 + erff(x * 0.70710678118654752f)) + x * 0.39894228040143268f * expf(-0.5f * x * x);
		float t = tanhf(0.79788456080286536f * (x + 0.044715f * x * x * x));
		return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * 0.79788456080286536f * (1 + 3 * 0.044715f * x * x);
	}
}

template <enum activation ACTIVATION> struct constant_activation {
	static constexpr enum activation value = ACTIVATION;
};

/* Calls body(constant) with the activation as constant.value, and returns its result. */
template <typename F> static cudaError_t for_activation(enum activation activation, F body)
{
	switch (activation) {
	case ACTIVATION_GELU_ERF: return body(constant_activation<ACTIVATION_GELU_ERF>());
	case ACTIVATION_GELU_TANH: return body(constant_activation<ACTIVATION_GELU_TANH>());
	case ACTIVATION_RELU: return body(constant_activation<ACTIVATION_RELU>());
	case ACTIVATION_SILU: return body(constant_activation<ACTIVATION_SILU>());
	default: return cudaErrorInvalidValue;
	}
}

/* ---- Matrix instructions ----
 *
 * c (16,8) += a (16,K) b (K,8), fp32 sums, with fragments distributed over the lanes of a warp as in the PTX manual. With
 * group = lane / 4 and member = lane % 4:
 *   c[i]  row group + 8 (i / 2), column 2 member + i % 2
 *   16-bit a[r], two elements each: row group + 8 (r % 2), k = 2 member + {0, 1} + 8 (r / 2);  b[r]: k = 2 member + {0, 1} + 8
 *   r, column group
 *   tf32 a[r]: row group + 8 (r % 2), k = member + 4 (r / 2);  b[r]: k = member + 4 r, column group */

/* K = 16; sm_80 and later (bf16), sm_75 in two steps of K = 8 (f16). */
template <typename T> DEVICE void mma16(float c[4], const uint32_t a[4], const uint32_t b[2]);

/* mma8_tf32: K = 8, tf32 (fp32 whose low 13 bits are ignored); sm_80 and later. */
#ifdef __CUDACC__
template <> DEVICE void mma16<bf16>(float c[4], const uint32_t a[4], const uint32_t b[2])
{
#if DEVICE_ARCH >= 800
	asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
		     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
		     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}
template <> DEVICE void mma16<f16>(float c[4], const uint32_t a[4], const uint32_t b[2])
{
#if DEVICE_ARCH >= 800
	asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
		     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
		     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
	asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};\n"
		     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
		     : "r"(a[0]), "r"(a[1]), "r"(b[0]));
	asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};\n"
		     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
		     : "r"(a[2]), "r"(a[3]), "r"(b[1]));
#endif
}
DEVICE void mma8_tf32(float c[4], const uint32_t a[4], const uint32_t b[2])
{
#if DEVICE_ARCH >= 800
	asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
		     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
		     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

/* Loads four 8 x 8 matrices of 16-bit elements from shared memory: lane i gives the address of row i % 8 of matrix i / 8, a
 * multiple of 16. out[m] is row group, columns 2 member + {0, 1} of matrix m; with _transposed, of the transposed matrix. */
DEVICE void load_matrices4(uint32_t out[4], const void *row)
{
	unsigned address = shared_address(row);
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
		     : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
		     : "r"(address)
		     : "memory");
}
DEVICE void load_matrices4_transposed(uint32_t out[4], const void *row)
{
	unsigned address = shared_address(row);
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n"
		     : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
		     : "r"(address)
		     : "memory");
}
/* Loads two matrices; the addresses are those of lanes 0 to 15. */
DEVICE void load_matrices2(uint32_t out[2], const void *row)
{
	unsigned address = shared_address(row);
	asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];\n"
		     : "=r"(out[0]), "=r"(out[1])
		     : "r"(address)
		     : "memory");
}
DEVICE void load_matrices2_transposed(uint32_t out[2], const void *row)
{
	unsigned address = shared_address(row);
	asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];\n"
		     : "=r"(out[0]), "=r"(out[1])
		     : "r"(address)
		     : "memory");
}
#else
template <> DEVICE void mma16<bf16>(float c[4], const uint32_t a[4], const uint32_t b[2])
{
	emulation::mma<emulation::BF16, 16>(c, a, b, "mma16");
}
template <> DEVICE void mma16<f16>(float c[4], const uint32_t a[4], const uint32_t b[2])
{
	emulation::mma<emulation::F16, 16>(c, a, b, "mma16");
}
DEVICE void mma8_tf32(float c[4], const uint32_t a[4], const uint32_t b[2])
{
	emulation::mma<emulation::TF32, 8>(c, a, b, "mma8_tf32");
}
DEVICE void load_matrices4(uint32_t out[4], const void *row)
{
	emulation::ldmatrix<4, false>(out, row, "load_matrices4");
}
DEVICE void load_matrices4_transposed(uint32_t out[4], const void *row)
{
	emulation::ldmatrix<4, true>(out, row, "load_matrices4_transposed");
}
DEVICE void load_matrices2(uint32_t out[2], const void *row)
{
	emulation::ldmatrix<2, false>(out, row, "load_matrices2");
}
DEVICE void load_matrices2_transposed(uint32_t out[2], const void *row)
{
	emulation::ldmatrix<2, true>(out, row, "load_matrices2_transposed");
}
#endif

#endif
