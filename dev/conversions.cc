/* Rounding to FP8, bf16 and fp16 (backend/fp8.h, backend/tensor.h) checked against the host code of NVIDIA's headers: every
 * float, and every FP8 byte converted back. Prints the differences; takes half a minute on one core.
 *
 *   g++ -O3 -march=native -fopenmp -std=c++17 -I CUDA/include -Isrc -D_GNU_SOURCE \
 *       -o conversions dev/conversions.cc && ./conversions */
#include <cmath>
#include <cstdio>
#include <cstring>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "backend/fp8.h"
#include "backend/tensor.h"

template <typename Bits, typename From> static Bits bits_of(const From &from)
{
	Bits bits;
	static_assert(sizeof(bits) == sizeof(from));
	memcpy(&bits, &from, sizeof(bits));
	return bits;
}

/* True if the bits differ, unless both are NaN; magnitudes from `least_nan` up are NaN. */
static bool differ(unsigned theirs, unsigned ours, unsigned magnitude, unsigned least_nan)
{
	return theirs != ours && ((theirs & magnitude) < least_nan || (ours & magnitude) < least_nan);
}

int main()
{
	long e4m3 = 0, e5m2 = 0, bf16 = 0, fp16 = 0, decoded = 0;
#pragma omp parallel for reduction(+ : e4m3, e5m2, bf16, fp16)
	for (long i = 0; i < 1L << 32; i++) {
		float x = fp8_float_of((uint32_t)i);
		e4m3 += differ(__nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3), fp8_encode(DTYPE_E4M3, x), 0x7f, 0x7f);
		e5m2 += differ(__nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E5M2), fp8_encode(DTYPE_E5M2, x), 0x7f, 0x7d);
		bf16 += differ(bits_of<uint16_t>(__float2bfloat16_rn(x)), float_to_bf16(x), 0x7fff, 0x7f81);
		fp16 += differ(bits_of<uint16_t>(__float2half_rn(x)), float_to_f16(x), 0x7fff, 0x7c01);
	}
	for (int i = 0; i < 512; i++) {
		__half_raw theirs = __nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)i, i < 256 ? __NV_E4M3 : __NV_E5M2);
		float ours = fp8_decode(i < 256 ? DTYPE_E4M3 : DTYPE_E5M2, (uint8_t)i), value = __half2float(theirs);
		decoded += !(value == ours || (std::isnan(value) && std::isnan(ours)));
	}
	printf("different: e4m3 %ld, e5m2 %ld, bf16 %ld, fp16 %ld of 2^32 floats; %ld of 512 bytes\n", e4m3, e5m2, bf16, fp16,
	       decoded);
	return (e4m3 | e5m2 | bf16 | fp16 | decoded) != 0;
}
